// floats.c: conversion of floating-point elements.
#include "kernels/k_packed.h"
#include "kernels/unpack.h"

#include <string.h>

#define INLINE static inline __attribute__((always_inline))

// Returns the value of an fp16.
INLINE float half_of(uint32_t code) {
    uint32_t size = (code & 0x7fff) << 13, bits;
    float f;
    memcpy(&f, &size, sizeof f);
    f *= 0x1p112f; // exact, also for subnormals
    bits = k_float_bits(f) | (code >> 15) << 31;
    if ((code & 0x7c00) == 0x7c00) bits |= 0x7f800000; // an infinity or NaN
    memcpy(&f, &bits, sizeof f);
    return f;
}

// Returns the value of the element of `bits` bits at p; big: its highest byte is first.
INLINE double float_at(const uint8_t *p, const uint32_t bits, const bool brain, const bool big) {
    const bool turn = big != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    uint64_t wide;
    uint32_t word;
    uint16_t half;
    double d;
    float f;
    if (bits == 64) {
        memcpy(&wide, p, sizeof wide);
        if (turn) wide = __builtin_bswap64(wide);
        memcpy(&d, &wide, sizeof d);
        return d;
    }
    if (bits == 16) {
        memcpy(&half, p, sizeof half);
        if (turn) half = __builtin_bswap16(half);
        if (!brain) return half_of(half);
        word = (uint32_t)half << 16;
    } else {
        memcpy(&word, p, sizeof word);
        if (turn) word = __builtin_bswap32(word);
    }
    memcpy(&f, &word, sizeof f);
    return f;
}

// Returns the integer nearest to d, ties to even, within the limits of a type; 0 for NaN.
INLINE int32_t nearest(double d, double least, double most) {
    return d != d ? 0 : (int32_t)k_whole(d < least ? least : d > most ? most : d);
}

INLINE void put(uint8_t *dst, uint64_t i, int output, double d) {
    float f = (float)d;
    uint16_t half;
    int32_t whole;
    switch (output) {
    case K_TYPE_fp64:
        memcpy(dst + 8 * i, &d, 8);
        return;
    case K_TYPE_fp32:
        memcpy(dst + 4 * i, &f, 4);
        return;
    case K_TYPE_int32:
        whole = nearest(d, INT32_MIN, INT32_MAX);
        memcpy(dst + 4 * i, &whole, 4);
        return;
    case K_TYPE_int8:
        dst[i] = (uint8_t)(int8_t)nearest(d, INT8_MIN, INT8_MAX);
        return;
    default:
        half = output == K_TYPE_int16 ? (uint16_t)(int16_t)nearest(d, INT16_MIN, INT16_MAX)
                                      : (uint16_t)k_float_as((uint32_t)output, f);
        memcpy(dst + 2 * i, &half, 2);
    }
}

INLINE void convert(const dqk_unpack *u, uint8_t *dst, const uint8_t *src, uint64_t n, const uint32_t bits,
                    const bool brain, const bool big) {
    const bool wide = bits == 64 || u->output == K_TYPE_fp64;
    const float scale = (float)u->scale, offset = (float)u->offset;
    const uint64_t swap = u->type.complex == 2;
    for (uint64_t i = 0; i < n; i++) {
        double d = float_at(src + (i ^ swap) * (bits / 8), bits, brain, big);
        if (u->scaled) d = wide ? (d + u->offset) * u->scale : (double)(((float)d + offset) * scale);
        put(dst, i, u->output, d);
    }
}

void dqk_floats_run(const dqk_unpack *u, uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n) {
    const dq_sample *t = &u->type;
    const bool big = t->order == DQ_ORDER_BE, brain = t->kind == DQ_SAMPLE_BRAIN;
    if (t->bits == 64)
        big ? convert(u, dst, src, n, 64, false, true) : convert(u, dst, src, n, 64, false, false);
    else if (t->bits == 32)
        big ? convert(u, dst, src, n, 32, false, true) : convert(u, dst, src, n, 32, false, false);
    else if (brain)
        big ? convert(u, dst, src, n, 16, true, true) : convert(u, dst, src, n, 16, true, false);
    else
        big ? convert(u, dst, src, n, 16, false, true) : convert(u, dst, src, n, 16, false, false);
}
