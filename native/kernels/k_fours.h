// k_fours.h: loads of four consecutive packed elements per lane.
//
// Elements of up to 16 bits, four of which have 64 bits, are in three aligned words at most. These are put
// into the order of the bit stream and shifted together, so that the place of each element is the same in all
// lanes.
#ifndef K_FOURS_H
#define K_FOURS_H

#include "kernels/k_lanes.h"
#include "kernels/k_move.h"

// Returns the upper 32 bits of high:low shifted left by n, modulo 32, and the lower ones of it shifted right.
K_FN uint32_t k_shift_left(uint32_t low, uint32_t high, uint32_t n) {
#ifdef __CUDA__
    uint32_t v;
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(low), "r"(high), "r"(n));
    return v;
#else
    return (uint32_t)(((uint64_t)high << 32 | low) << (n & 31) >> 32);
#endif
}
K_FN uint32_t k_shift_right(uint32_t low, uint32_t high, uint32_t n) {
#ifdef __CUDA__
    uint32_t v;
    asm("shf.r.wrap.b32 %0, %1, %2, %3;" : "=r"(v) : "r"(low), "r"(high), "r"(n));
    return v;
#else
    return (uint32_t)(((uint64_t)high << 32 | low) >> (n & 31));
#endif
}

// Reports whether four consecutive elements lie in 64 bits of one stream, which can be read in words of 4
// bytes, and their output is aligned.
K_FN bool k_packed_fits(const dqk_move *m, const dqk_packing *p, uint32_t size) {
    const uint32_t store = size < 4 ? 4 * size : 16;
    const bool words = p->mirror == 0 || (!p->low_first && p->mirror <= 3 && (m->src & p->mirror) == 0);
    return words && p->stride <= 16 && !(p->gev | p->groups | p->swapped | p->padded) && m->len >> 31 == 0 &&
           (m->dst & (store - 1)) == 0;
}

// Sets top to the i-th four elements, the highest bit of each in bit 31.
K_FN void k_packed_four(const dqk_move *m, const dqk_packing *p, uint32_t i, uint32_t *top) {
    const uint32_t pick = p->low_first || p->mirror == 3 ? 0x3210 : p->mirror ? 0x1032 : 0x0123;
    const uint32_t half = i * p->stride; // half bytes before them
    const uint64_t first = m->src + half / 2;
    const uint32_t bit = (uint32_t)first % 4 * 8 + half % 2 * 4;
    const uint32_t last = (bit + 3 * p->stride + p->skip + p->bits - 1) / 32;
    uint32_t w[3];
    K_UNROLL
    for (uint32_t k = 0; k < 3; k++)
        w[k] = k_permute(k_load((first & ~UINT64_C(3)) + 4 * (k < last ? k : last), 4).w[0], 0, pick);
    if (p->low_first) {
        const uint32_t low = k_shift_right(w[0], w[1], bit), high = k_shift_right(w[1], w[2], bit);
        K_UNROLL
        for (uint32_t e = 0; e < 4; e++) {
            const uint32_t at = e * p->stride + p->skip;
            top[e] = k_shift_right(at < 32 ? low : high, at < 32 ? high : 0, at) << (32 - p->bits);
        }
        return;
    }
    const uint32_t high = k_shift_left(w[1], w[0], bit), low = k_shift_left(w[2], w[1], bit);
    K_UNROLL
    for (uint32_t e = 0; e < 4; e++) {
        const uint32_t at = e * p->stride + p->skip;
        top[e] = k_shift_left(at < 32 ? low : 0, at < 32 ? high : low, at);
    }
}

#endif
