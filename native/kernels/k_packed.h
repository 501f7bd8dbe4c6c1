// k_packed.h: one warp's part of a conversion of packed elements, which a dqk_packing describes.
//
// Each lane makes whole words of output, so that a warp writes whole lines of 128 bytes. Elements of up to 16
// bits in one stream are converted by fours, of at most three words of input. The bytes of others are loaded
// singly: neighbours share lines, and the cache serves all loads of a line but the first.
// The description is an argument of the launch, so one module has all packings; its branches are uniform.
#ifndef K_PACKED_H
#define K_PACKED_H

#include "kernels/k_convert.h"
#include "kernels/k_fours.h"

enum { K_DEEP = 4 }; // elements per lane whose loads are in flight together

// ---- outputs ----------------------------------------------------------------------------------------------

K_FN uint64_t k_bits(uint32_t type, int32_t v) {
    return type == K_TYPE_fp16    ? k_to_fp16(v)
           : type == K_TYPE_bf16  ? k_to_bf16(v)
           : type == K_TYPE_fp32  ? k_to_fp32(v)
           : type == K_TYPE_fp64  ? k_to_fp64(v)
           : type == K_TYPE_int32 ? k_to_int32(v)
           : type == K_TYPE_int16 ? k_to_int16(v)
                                  : k_to_int8(v);
}

K_FN uint32_t k_float_bits(float f) {
    uint32_t bits;
    __builtin_memcpy(&bits, &f, sizeof bits);
    return bits;
}

// Returns the nearest whole number, ties to even, of up to 2^51.
K_FN double k_whole(double d) { return d + 0x1.8p52 - 0x1.8p52; }

K_FN uint32_t k_float_fp16(float f) {
#ifdef __CUDA__
    k_fp16 h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    const uint32_t bits = k_float_bits(f), sign = bits >> 16 & 0x8000, size = bits & 0x7fffffff;
    if (size > 0x7f800000) return sign | 0x7e00;
    if (size > 0x477fefff) return sign | 0x7c00; // 65520 and above
    if (size < 0x38800000)                       // subnormal: steps of 2^-24
        return sign | (uint32_t)k_whole((f < 0 ? -f : f) * 16777216.0);
    return sign | (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
#endif
}

K_FN uint32_t k_float_bf16(float f) {
    const uint32_t bits = k_float_bits(f);
    return f != f ? bits >> 16 | 0x40 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// Returns the integer nearest to f, ties to even, within the limits of int32; 0 for NaN.
K_FN int32_t k_float_int32(float f) {
#ifdef __CUDA__
    int32_t v;
    asm("cvt.rni.s32.f32 %0, %1;" : "=r"(v) : "f"(f));
    return v;
#else
    const double d = f != f ? 0 : f < -2147483648.0 ? -2147483648.0 : f > 2147483647.0 ? 2147483647.0 : f;
    return (int32_t)k_whole(d);
#endif
}

// Returns the bits of f as an element of a type other than fp64.
K_FN uint32_t k_float_as(uint32_t type, float f) {
    return type == K_TYPE_fp16   ? k_float_fp16(f)
           : type == K_TYPE_bf16 ? k_float_bf16(f)
           : type == K_TYPE_fp32 ? k_float_bits(f)
                                 : (uint32_t)k_bits(type, k_float_int32(f));
}

// ---- inputs -----------------------------------------------------------------------------------------------

// Where an element is: `n` bytes, and the bits before its highest one.
typedef struct k_place {
    uint64_t first; // its highest byte, before words are mirrored
    uint32_t n, left;
} k_place;

// Returns the place of the element that begins at bit `start`.
K_FN k_place k_packed_place(const dqk_packing *p, uint64_t start) {
    const uint64_t first = start / 8, last = (start + p->bits - 1) / 8;
    return (k_place){.first = p->low_first ? last : first,
                     .n = (uint32_t)(last - first) + 1,
                     .left = (uint32_t)(p->low_first ? (last + 1) * 8 - start - p->bits : start % 8)};
}

// Returns byte k of an element, 0 past its last. It always loads one, so that no load waits for a branch.
K_FN uint32_t k_packed_byte(const dqk_packing *p, uint64_t src, const k_place at, uint32_t k) {
    const uint32_t step = k < at.n ? k : 0;
    const uint32_t byte = k_load_byte(src + ((p->low_first ? at.first - step : at.first + step) ^ p->mirror));
    return k < at.n ? byte : 0;
}

// Sets top to `count` elements that begin at bits `start` of src, the highest bit of each in bit 31.
K_FN void k_packed_tops(const dqk_packing *p, uint64_t src, const uint64_t *start, uint32_t *top,
                        uint32_t count) {
    k_place at[K_DEEP];
    K_UNROLL
    for (uint32_t u = 0; u < count; u++) {
        at[u] = k_packed_place(p, start[u]);
        top[u] = k_packed_byte(p, src, at[u], 0) << 24 | k_packed_byte(p, src, at[u], 1) << 16 |
                 k_packed_byte(p, src, at[u], 2) << 8;
    }
    if (p->bits <= 17) { // in 3 bytes
        K_UNROLL
        for (uint32_t u = 0; u < count; u++)
            top[u] <<= at[u].left;
        return;
    }
    K_UNROLL
    for (uint32_t u = 0; u < count; u++)
        top[u] = (top[u] | k_packed_byte(p, src, at[u], 3)) << at[u].left |
                 k_packed_byte(p, src, at[u], 4) >> (8 - at[u].left);
}

// Returns element i of two in 3 bytes, its highest bit in bit 31.
K_FN uint32_t k_packed_gev(const dqk_packing *p, uint64_t src, uint32_t i) {
    const uint64_t unit = src + (uint64_t)(i / 2) * 3;
    const uint32_t low = p->bits - 8, both = k_load_byte(unit + 1) >> i % 2 * 4;
    return k_load_byte(unit + i % 2 * 2) << 24 | (both & ((1u << low) - 1)) << (24 - low);
}

// Computes the integers of `count` elements.
K_FN void k_packed_values(const dqk_packing *p, uint64_t src, const uint32_t *element, int32_t *v,
                          uint32_t count) {
    uint32_t top[K_DEEP], exponent[K_DEEP];
    uint64_t start[K_DEEP];
    K_UNROLL
    for (uint32_t u = 0; u < count; u++) {
        start[u] = (uint64_t)(element[u] ^ p->swapped) * p->stride + p->skip;
        exponent[u] = 0;
    }
    if (p->groups | p->padded) {
        K_UNROLL
        for (uint32_t u = 0; u < count; u++) {
            const uint32_t e = element[u] ^ p->swapped, each = p->groups ? p->unit_elements : p->padded;
            const uint64_t unit = (uint64_t)(e / each) * (p->groups ? p->unit_bytes : 4u);
            start[u] = (unit + p->groups) * 8 + e % each * p->bits;
            exponent[u] = p->groups ? k_load_byte(src + unit) & 15 : 0;
        }
    }
    if (p->gev) {
        K_UNROLL
        for (uint32_t u = 0; u < count; u++)
            top[u] = k_packed_gev(p, src, element[u] ^ p->swapped);
    } else {
        k_packed_tops(p, src, start, top, count);
    }
    K_UNROLL
    for (uint32_t u = 0; u < count; u++) {
        const uint32_t t = top[u] ^ p->flip;
        v[u] = (int32_t)((p->positive ? t >> (32 - p->bits) : (uint32_t)((int32_t)t >> (32 - p->bits)))
                         << exponent[u]);
    }
}

// Returns the bits of an integer as an element of the output.
K_FN uint64_t k_packed_output(const dqk_packing *p, const uint32_t to, int32_t v) {
    if (!p->scaled && !p->levels) return k_bits(to, v);
    float level = p->levels ? *K_AT(const float, p->levels + (uint64_t)(uint32_t)v * sizeof level) : 0;
    if (to == K_TYPE_fp64) {
        double d = p->levels ? level : p->positive ? (double)(uint32_t)v : (double)v;
        uint64_t bits;
        d = (d + p->offset) * p->scale;
        __builtin_memcpy(&bits, &d, sizeof bits);
        return bits;
    }
    float f = p->levels ? level : p->positive ? (float)(uint32_t)v : (float)v;
    return k_float_as(to, (f + (float)p->offset) * (float)p->scale);
}

// ---- a move -----------------------------------------------------------------------------------------------

// Converts words i, i + 32, … of the output, of K_DEEP elements together.
K_FN void k_packed_words(const dqk_move *m, const dqk_packing *p, const uint32_t to, uint32_t i,
                         uint32_t words) {
    const uint32_t size = k_bits_of(to) / 8, each = size < 4 ? 4 / size : 1, deep = K_DEEP / each;
    uint32_t element[K_DEEP];
    int32_t v[K_DEEP];
    K_UNROLL
    for (uint32_t u = 0; u < K_DEEP; u++) {
        uint32_t word = i + u / each * 32;
        element[u] = (word < words ? word : i) * each + u % each;
    }
    k_packed_values(p, m->src, element, v, K_DEEP);
    K_UNROLL
    for (uint32_t d = 0; d < deep; d++) {
        k_word w = {{0, 0, 0, 0}};
        K_UNROLL
        for (uint32_t e = 0; e < each; e++) {
            uint64_t bits = k_packed_output(p, to, v[d * each + e]);
            w.w[0] |= (uint32_t)bits << 8 * size % 32 * e;
            w.w[1] = (uint32_t)(bits >> 32);
        }
        if (i + 32 * d < words) k_store(m->dst + (uint64_t)(i + 32 * d) * size * each, w, size * each);
    }
}

// ---- four elements per lane -------------------------------------------------------------------------------

// Writes four elements to dst.
K_FN void k_packed_store(uint64_t dst, const dqk_packing *p, const uint32_t to, const uint32_t *top) {
    const uint32_t size = k_bits_of(to) / 8, right = 32 - p->bits;
    k_word w = {{0, 0, 0, 0}}, high = w;
    K_UNROLL
    for (uint32_t e = 0; e < 4; e++) {
        const uint32_t t = top[e] ^ p->flip, at = e * size % 16;
        const uint64_t bits =
            k_packed_output(p, to, p->positive ? (int32_t)(t >> right) : (int32_t)t >> right);
        k_word *of = size == 8 && e > 1 ? &high : &w;
        of->w[at / 4] |= (uint32_t)bits << at % 4 * 8;
        if (size == 8) of->w[at / 4 + 1] = (uint32_t)(bits >> 32);
    }
    k_store(dst, w, size < 4 ? size * 4 : 16);
    if (size == 8) k_store(dst + 16, high, 16);
}

// Converts one part of `parts`. Without aligned words of output, and for the rest behind them, elements are
// written byte by byte.
K_FN void k_packed(dqk_move m, const dqk_packing *p, const uint32_t to, uint32_t part, uint32_t parts) {
    const uint32_t size = k_bits_of(to) / 8, each = size < 4 ? 4 / size : 1, step = 32 * K_DEEP / each;
    const uint32_t n = m.len / p->unit_bytes * p->unit_elements;
    const bool fits = k_packed_fits(&m, p, size);
    const uint32_t fours = fits ? n / 4 : 0, words = !fits && (m.dst & (size * each - 1)) == 0 ? n / each : 0;
    const uint32_t done = fits ? fours * 4 : words * each;
    K_EACH(k) {
        for (uint32_t i = part * 32 + k_lane(k); i < fours; i += parts * 32) {
            uint32_t top[4];
            k_packed_four(&m, p, i, top);
            k_packed_store(m.dst + (uint64_t)i * 4 * size, p, to, top);
        }
        for (uint32_t i = part * step + k_lane(k); i < words; i += parts * step)
            k_packed_words(&m, p, to, i, words);
        for (uint32_t i = done + part * 32 + k_lane(k); i < n; i += parts * 32) {
            int32_t v;
            k_packed_values(p, m.src, &i, &v, 1);
            uint64_t bits = k_packed_output(p, to, v);
            K_UNROLL
            for (uint32_t b = 0; b < size; b++)
                k_store_byte(m.dst + (uint64_t)i * size + b, (uint32_t)(bits >> 8 * b) & 255);
        }
    }
}

#endif
