// convert.h: conversion of payloads between element types, with SIMD instructions.
#ifndef DQI_CONVERT_H
#define DQI_CONVERT_H

#include "core/dq_core.h"
#include "kernels/kernels.h"
#include "reorder/dq_reorder.h"

#include <string.h>

// A conversion of payloads.
typedef struct dqi_convert {
    dqk_convert_fn *fn;         // NULL: plain copy
    uint32_t conversion;        // number among the kernels; 0: plain copy
    uint32_t in_bits, out_bits; // per element, powers of 2; bytes: 8
} dqi_convert;

// Finds the conversion of the types; if both are BYTES, a plain copy. INVALID_PARAMETER if there is none;
// `what` is the stage's name in the error.
int dqi_convert_find(const dq_data_types *types, dqi_convert *out, const char *what, dq_diag *diag);
// Returns the conversion loop for the level-th instruction set of this processor, from 0, plain C; NULL: past
// the last.
dqk_convert_fn *dqi_convert_at(uint32_t level, const dq_data_types *types);

// Computes the output size of n bytes of payload. Returns false if they are not whole elements or the output
// is too large.
static inline bool dqi_convert_size(const dqi_convert *c, uint64_t n, uint32_t *out) {
    if (n > UINT32_MAX || (n * 8 & (c->in_bits - 1)) != 0) return false;
    n = (n * 8 >> __builtin_ctz(c->in_bits)) * (c->out_bits / 8);
    *out = (uint32_t)n;
    return n <= UINT32_MAX;
}

// Converts n bytes of payload, which must be whole elements.
static inline void dqi_convert_bytes(const dqi_convert *c, uint8_t *dst, const uint8_t *src, uint32_t n) {
    if (c->fn)
        c->fn(dst, src, (uint64_t)n * 8 >> __builtin_ctz(c->in_bits));
    else
        memcpy(dst, src, n);
}

#endif
