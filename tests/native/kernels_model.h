// kernels_model.h: lists of moves from a seed, and what they have to write, byte by byte: for the kernels'
// bodies on the host and for a GPU.
#ifndef KERNELS_MODEL_H
#define KERNELS_MODEL_H

#include "convert_model.h"
#include "kernels/k_move.h"

#include <string.h>

#define MODEL_MOVES  256       // of a list: every alignment of both sides, 0 to 15
#define MODEL_POISON 0xa5      // of what nothing is written to
#define MODEL_SRC    (1 << 20) // bytes of source, random

// A conversion, as dqk_list has it, specified again. number 0: bytes.
typedef struct model_kind {
    uint32_t number, in_bits, out_bits;
    int from, to;
    bool swapped;
} model_kind;

static inline model_kind model_kind_of(uint32_t number) {
    static const uint8_t from[] = {K_TYPE_int4,  K_TYPE_int8,  K_TYPE_int16,
                                   K_TYPE_int32, K_TYPE_int16, K_TYPE_int32},
                         in[] = {4, 8, 16, 32, 16, 32}, to[] = {K_TYPE_fp16, K_TYPE_bf16,  K_TYPE_fp32,
                                                                K_TYPE_fp64, K_TYPE_int32, K_TYPE_int8},
                         out[] = {16, 16, 32, 64, 32, 8};
    if (number == 0) return (model_kind){0, 8, 8, 0, 0, false};
    uint32_t row = (number - 1) / 6, column = (number - 1) % 6;
    return (model_kind){number, in[row], out[column], from[row], to[column], row >= 4};
}

static inline uint32_t model_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 33);
}

// Bytes that a move writes.
static inline uint32_t model_out(const model_kind *c, const dqk_move *m) {
    return m->what == DQK_CONVERT ? (uint32_t)((uint64_t)m->len * c->out_bits / c->in_bits) : m->len;
}

static inline int32_t model_value(const model_kind *c, const uint8_t *src, uint64_t i) {
    uint64_t v = 0;
    uint32_t bytes = c->in_bits / 8;
    if (c->in_bits == 4) v = i % 2 ? src[i / 2] & 15 : src[i / 2] >> 4;
    for (uint32_t b = 0; b < bytes; b++)
        v |= (uint64_t)src[i * bytes + b] << 8 * (c->swapped ? bytes - 1 - b : b);
    uint64_t half = UINT64_C(1) << (c->in_bits - 1);
    return (int32_t)((int64_t)(v ^ half) - (int64_t)half);
}

// What a list writes; moves have offsets into src and dst.
static inline void model_apply(const model_kind *c, const dqk_move *m, uint32_t n, const uint8_t *src,
                               uint8_t *dst) {
    static uint64_t known[1 << 16];
    static uint8_t have[1 << 16];
    memset(have, 0, sizeof have); // of this conversion
    for (; n-- > 0; m++) {
        uint8_t *to = dst + m->dst;
        for (uint32_t i = 0; m->what != DQK_CONVERT && i < m->len; i++)
            to[i] = m->what == DQK_FILL ? (uint8_t)m->src : src[m->src + i];
        for (uint64_t i = 0; m->what == DQK_CONVERT && i < (uint64_t)m->len * 8 / c->in_bits; i++) {
            int32_t v = model_value(c, src + m->src, i);
            uint64_t bits;
            if (c->number == 0) {
                bits = (uint64_t)v;
            } else if (c->in_bits == 32) {
                bits = model_bits(v, c->to);
            } else {
                uint16_t at = (uint16_t)v;
                if (!have[at]) known[at] = model_bits(v, c->to);
                have[at] = 1;
                bits = known[at];
            }
            for (uint32_t b = 0; b < c->out_bits / 8; b++)
                to[i * c->out_bits / 8 + b] = (uint8_t)(bits >> 8 * b);
        }
    }
}

// A list of moves of up to len bytes, most of them of just as many, `most` at most, as offsets; with what of
// dst it covers. Every alignment of both sides comes once in MODEL_MOVES; of conversions those of whole
// elements come more often than in bytes.
static inline uint32_t model_list(const model_kind *c, uint32_t len, uint32_t most, uint64_t seed,
                                  dqk_move *m, uint64_t *covers) {
    uint64_t state = seed * 2654435761u + len, at = 0;
    uint32_t size = c->out_bits / 8, from = model_random(&state) % MODEL_MOVES, n = 0;
    for (; n < most; n++) {
        uint32_t k = (from + n) % MODEL_MOVES, r = model_random(&state);
        dqk_move *x = &m[n];
        x->what = c->number == 0 ? DQK_COPY : r % 8 == 0 ? DQK_COPY : DQK_CONVERT;
        if (r % 8 == 1) x->what = DQK_FILL;
        x->len = r % 16 == 2 ? model_random(&state) % (len + 1) : len;
        if (x->what == DQK_CONVERT && c->in_bits > 8) x->len -= x->len % (c->in_bits / 8);
        uint32_t slack = k / 16;
        if (x->what == DQK_CONVERT && r % 3 != 0) slack -= slack % size;
        x->dst = at + ((slack - at) & 15); // neighbours share words of 16 bytes, or don't
        x->src = x->what == DQK_FILL
                     ? r >> 8
                     : (uint64_t)(model_random(&state) % ((MODEL_SRC - len - 32) / 16)) * 16 + k % 16;
        at = x->dst + model_out(c, x) + (r & 256 ? 0 : 16);
    }
    *covers = at + 32;
    return n;
}

// Where two memories differ first; n: nowhere.
static inline uint64_t model_differs(const uint8_t *a, const uint8_t *b, uint64_t n) {
    if (memcmp(a, b, n) == 0) return n;
    uint64_t i = 0;
    while (a[i] == b[i])
        i++;
    return i;
}

#endif
