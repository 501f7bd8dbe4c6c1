// convert.h: payloads from one element type to another, with the processor's vector instructions.
#ifndef DQI_CONVERT_H
#define DQI_CONVERT_H

#include "core/dq_core.h"
#include "kernels/kernels.h"
#include "reorder/dq_reorder.h"

#include <string.h>

// A conversion of whole payloads.
typedef struct dqi_convert {
    dqk_convert_fn *fn;         // NULL: bytes stay as they are
    uint32_t conversion;        // its number among the kernels; 0: bytes stay as they are
    uint32_t in_bits, out_bits; // of an element, powers of 2; bytes: 8
} dqi_convert;

// What does it. Types that are both BYTES copy. INVALID_PARAMETER when there is no such conversion; `what`
// names who asked.
int dqi_convert_find(const dq_data_types *types, dqi_convert *out, const char *what, dq_diag *diag);
// The same of the level-th instruction set that this processor has, from 0, plain C; NULL: it has fewer.
dqk_convert_fn *dqi_convert_at(uint32_t level, const dq_data_types *types);

// Bytes that n bytes of payload become. False: they are no whole number of elements, or too many bytes.
static inline bool dqi_convert_size(const dqi_convert *c, uint64_t n, uint32_t *out) {
    if (n > UINT32_MAX || (n * 8 & (c->in_bits - 1)) != 0) return false;
    n = (n * 8 >> __builtin_ctz(c->in_bits)) * (c->out_bits / 8);
    *out = (uint32_t)n;
    return n <= UINT32_MAX;
}

// Writes n bytes of payload, a whole number of elements.
static inline void dqi_convert_bytes(const dqi_convert *c, uint8_t *dst, const uint8_t *src, uint32_t n) {
    if (c->fn)
        c->fn(dst, src, (uint64_t)n * 8 >> __builtin_ctz(c->in_bits));
    else
        memcpy(dst, src, n);
}

#endif
