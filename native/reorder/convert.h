// convert.h: conversion of payloads between element types, with SIMD instructions.
#ifndef DQI_CONVERT_H
#define DQI_CONVERT_H

#include "core/dq_core.h"
#include "kernels/unpack.h"
#include "reorder/dq_reorder.h"

#include <string.h>

// A conversion of payloads.
typedef struct dqi_convert {
    dqk_convert_fn *fn;         // NULL: plain copy, or packed
    bool packed;                // by unpack
    uint32_t conversion;        // number among the kernels; 0: plain copy, or no GPU has it
    uint32_t bytes, elements;   // of the smallest payload of whole elements; bytes: 1 and 1
    uint32_t out_bytes;         // of an element
    char input[DQ_SAMPLE_NAME]; // name of the input's type
    dqk_unpack unpack;
} dqi_convert;

// Finds the conversion of the types; if both are BYTES, a plain copy. INVALID_PARAMETER if there is none;
// `what` is the stage's name in the error.
int dqi_convert_find(const dq_data_types *types, dqi_convert *out, const char *what, dq_diag *diag);
// Returns OK if a GPU has the conversion, otherwise NOT_SUPPORTED.
int dqi_convert_by_gpu(const dqi_convert *c, const char *what, dq_diag *diag);
// Returns the conversion loop for the level-th instruction set of this processor, from 0, plain C; NULL: past
// the last, or packed.
dqk_convert_fn *dqi_convert_at(uint32_t level, const dq_data_types *types);

// Whether payloads are converted, not copied.
static inline bool dqi_converts(const dqi_convert *c) { return c->fn || c->packed; }

// Returns what a GPU needs of a packed conversion; NULL: it is not packed.
static inline const dqk_unpack *dqi_convert_packed(const dqi_convert *c) {
    return c->packed ? &c->unpack : NULL;
}

// Computes the number of elements of n bytes of payload; the rest of an incomplete unit is ignored.
static inline uint64_t dqi_convert_elements(const dqi_convert *c, uint32_t n) {
    return c->bytes == 1 ? (uint64_t)n * c->elements : (uint64_t)(n / c->bytes) * c->elements;
}

// Computes the output size of n bytes of payload. Returns false if they are not whole elements or the output
// is too large.
static inline bool dqi_convert_size(const dqi_convert *c, uint64_t n, uint32_t *out) {
    if (n > UINT32_MAX || (c->bytes > 1 && (uint32_t)n % c->bytes != 0)) return false;
    n = dqi_convert_elements(c, (uint32_t)n) * c->out_bytes;
    *out = (uint32_t)n;
    return n <= UINT32_MAX;
}

// Converts n bytes of payload, which must be whole elements.
static inline void dqi_convert_bytes(const dqi_convert *c, uint8_t *dst, const uint8_t *src, uint32_t n) {
    if (c->fn)
        c->fn(dst, src, dqi_convert_elements(c, n));
    else if (c->packed)
        dqk_unpack_run(&c->unpack, dst, src, dqi_convert_elements(c, n));
    else
        memcpy(dst, src, n);
}

#endif
