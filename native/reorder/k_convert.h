// k_convert.h: elements of payloads from one type to another, one at a time: what the host and a GPU's
// kernels share. Plain C that CUDA takes, too: K_FN says what its functions are there.
//
// An input is read as int32 whatever its type, and an output is made of that: exact where it can be, or else
// rounded to the nearest, ties to even. fp16 and bf16 go through fp32, as in the reference: an int32 above
// 2^24 is rounded twice. Beyond fp16's range an element becomes an infinity; int8 stops at -128 and 127.
#ifndef K_CONVERT_H
#define K_CONVERT_H

#include <stdint.h>
#include <string.h>

#ifndef K_FN
#define K_FN static inline __attribute__((always_inline))
#endif

// Two a byte, the high half first.
K_FN int32_t k_from_int4(const uint8_t *src, uint64_t i) {
    int32_t v = src[i / 2] >> (i % 2 ? 0 : 4) & 15;
    return (v ^ 8) - 8;
}

K_FN int32_t k_from_int8(const uint8_t *src, uint64_t i) { return (int8_t)src[i]; }

K_FN int32_t k_from_int16(const uint8_t *src, uint64_t i) {
    int16_t v;
    memcpy(&v, src + 2 * i, sizeof v);
    return v;
}

K_FN int32_t k_from_int32(const uint8_t *src, uint64_t i) {
    int32_t v;
    memcpy(&v, src + 4 * i, sizeof v);
    return v;
}

// The bytes are in the other order than the host's.
K_FN int32_t k_from_int16_swapped(const uint8_t *src, uint64_t i) {
    uint16_t v;
    memcpy(&v, src + 2 * i, sizeof v);
    return (int16_t)(uint16_t)(v << 8 | v >> 8);
}

K_FN int32_t k_from_int32_swapped(const uint8_t *src, uint64_t i) {
    uint32_t v;
    memcpy(&v, src + 4 * i, sizeof v);
    return (int32_t)(v << 24 | (v & 0xff00) << 8 | (v >> 8 & 0xff00) | v >> 24);
}

K_FN uint32_t k_fp32_bits(int32_t v) {
    float f = (float)v;
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    return bits;
}

// No integer is a subnormal or a NaN in fp16 or bf16, and only 0 has the exponent 0.
K_FN void k_to_fp16(uint8_t *dst, uint64_t i, int32_t v) {
    uint32_t f = k_fp32_bits(v), size = f & 0x7fffffff;
    uint32_t h = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    h = size > 0x477fefff ? 0x7c00 : h; // 65520 and more
    h = size ? h : 0;
    uint16_t out = (uint16_t)(f >> 16 & 0x8000u) | (uint16_t)h;
    memcpy(dst + 2 * i, &out, sizeof out);
}

K_FN void k_to_bf16(uint8_t *dst, uint64_t i, int32_t v) {
    uint32_t f = k_fp32_bits(v);
    uint16_t out = (uint16_t)((f + 0x7fff + (f >> 16 & 1)) >> 16);
    memcpy(dst + 2 * i, &out, sizeof out);
}

K_FN void k_to_fp32(uint8_t *dst, uint64_t i, int32_t v) {
    float f = (float)v;
    memcpy(dst + 4 * i, &f, sizeof f);
}

K_FN void k_to_fp64(uint8_t *dst, uint64_t i, int32_t v) {
    double d = v;
    memcpy(dst + 8 * i, &d, sizeof d);
}

K_FN void k_to_int32(uint8_t *dst, uint64_t i, int32_t v) { memcpy(dst + 4 * i, &v, sizeof v); }

K_FN void k_to_int8(uint8_t *dst, uint64_t i, int32_t v) {
    dst[i] = (uint8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
}

// Every output of an input: X(input, output, more); and the inputs of whole bytes with them.
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

#endif
