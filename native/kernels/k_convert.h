// k_convert.h: converts single elements of payloads between types; shared by the host's loops and the GPU's
// kernels. The functions take and return an element's bits and access no memory.
//
// Any input is read as int32 and any output computed from that: exact where possible, else rounded to
// nearest, ties to even. fp16 and bf16 go through fp32, as in NVIDIA DAQIRI: an int32 above 2^24 is rounded
// twice. Beyond fp16's range the result is an infinity; int8 saturates at -128 and 127.
#ifndef K_CONVERT_H
#define K_CONVERT_H

#include "kernels/k_lanes.h"

// Element types; the numbers are those of dq_dtype.
enum {
    K_TYPE_bytes,
    K_TYPE_int4,
    K_TYPE_int8,
    K_TYPE_int16,
    K_TYPE_int32,
    K_TYPE_fp16,
    K_TYPE_bf16,
    K_TYPE_fp32,
    K_TYPE_fp64,
    K_TYPES,
    K_TYPE_packed = K_TYPES, // as the list's packing describes it
    K_TYPE_int16_swapped = K_TYPE_int16,
    K_TYPE_int32_swapped = K_TYPE_int32,
};

K_FN uint32_t k_bits_of(uint32_t type) {
    return type == K_TYPE_int4                                                  ? 4
           : type == K_TYPE_int8 || type == K_TYPE_bytes                        ? 8
           : type == K_TYPE_int16 || type == K_TYPE_fp16 || type == K_TYPE_bf16 ? 16
           : type == K_TYPE_fp64                                                ? 64
                                                                                : 32;
}

// Storage types of elements. int4: two per byte, the high half first.
typedef uint8_t k_int4, k_int8;
typedef uint16_t k_int16, k_int16_swapped, k_fp16, k_bf16;
typedef uint32_t k_int32, k_int32_swapped, k_fp32;
typedef uint64_t k_fp64;

// ---- inputs -----------------------------------------------------------------------------------------------

// Reads the low half of v.
K_FN int32_t k_from_int4(uint32_t v) { return (int32_t)((v & 15) ^ 8) - 8; }
K_FN int32_t k_from_int8(uint32_t v) { return (int8_t)v; }
K_FN int32_t k_from_int16(uint32_t v) { return (int16_t)v; }
K_FN int32_t k_from_int32(uint32_t v) { return (int32_t)v; }

// Input in the byte order that is not the host's.
K_FN int32_t k_from_int16_swapped(uint32_t v) { return (int16_t)(uint16_t)(v << 8 | (v >> 8 & 0xff)); }
K_FN int32_t k_from_int32_swapped(uint32_t v) {
    return (int32_t)(v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24);
}

// ---- outputs ----------------------------------------------------------------------------------------------

K_FN k_fp32 k_to_fp32(int32_t v) {
    float f = (float)v;
    k_fp32 bits;
    __builtin_memcpy(&bits, &f, sizeof bits);
    return bits;
}

// An integer is never subnormal or NaN in fp16 or bf16, and only 0 has exponent 0.
K_FN k_fp16 k_to_fp16(int32_t v) {
#ifdef __CUDA__
    k_fp16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"((float)v));
    return h;
#else
    uint32_t f = k_to_fp32(v), size = f & 0x7fffffff;
    uint32_t h = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    h = size > 0x477fefff ? 0x7c00 : h; // 65520 and above
    h = size ? h : 0;
    return (uint16_t)((uint16_t)(f >> 16 & 0x8000u) | (uint16_t)h);
#endif
}

K_FN k_bf16 k_to_bf16(int32_t v) {
    uint32_t f = k_to_fp32(v);
    return (uint16_t)((f + 0x7fff + (f >> 16 & 1)) >> 16);
}

K_FN k_fp64 k_to_fp64(int32_t v) {
    double d = v;
    k_fp64 bits;
    __builtin_memcpy(&bits, &d, sizeof bits);
    return bits;
}

K_FN k_int32 k_to_int32(int32_t v) { return (k_int32)v; }
K_FN k_int8 k_to_int8(int32_t v) { return (k_int8)(v < -128 ? -128 : v > 127 ? 127 : v); }
K_FN k_int16 k_to_int16(int32_t v) { return (k_int16)(v < -32768 ? -32768 : v > 32767 ? 32767 : v); }

// Two 16-bit outputs, the first in the low half.
K_FN uint32_t k_two_fp16(int32_t first, int32_t second) {
#ifdef __CUDA__
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"((float)second), "f"((float)first));
    return both;
#else
    return k_to_fp16(first) | (uint32_t)k_to_fp16(second) << 16;
#endif
}

K_FN uint32_t k_two_bf16(int32_t first, int32_t second) {
#ifdef __CUDA__
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"((float)second), "f"((float)first));
    return both;
#else
    return k_to_bf16(first) | (uint32_t)k_to_bf16(second) << 16;
#endif
}

// ---- all conversions --------------------------------------------------------------------------------------

// Lists the outputs of an input, X(input, output, more), and the inputs of whole bytes with their outputs, in
// the order of dqk_conversion's numbers.
#define K_OUTPUTS(X, input, more)                                                                            \
    X(input, fp16, more)                                                                                     \
    X(input, bf16, more)                                                                                     \
    X(input, fp32, more)                                                                                     \
    X(input, fp64, more)                                                                                     \
    X(input, int32, more)                                                                                    \
    X(input, int8, more)
#define K_WHOLE_BYTES(X, more)                                                                               \
    K_OUTPUTS(X, int8, more)                                                                                 \
    K_OUTPUTS(X, int16, more)                                                                                \
    K_OUTPUTS(X, int32, more)                                                                                \
    K_OUTPUTS(X, int16_swapped, more)                                                                        \
    K_OUTPUTS(X, int32_swapped, more)
#define K_PACKED_OUTPUTS(X, more) K_OUTPUTS(X, packed, more) X(packed, int16, more)

#endif
