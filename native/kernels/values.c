// values.c: the values and codes of packed samples, for scripts that inspect them.
#include "kernels/k_convert.h"
#include "kernels/unpack.h"

#include <string.h>

enum { TILE = 960 }; // elements per pass, whole units of every type

// ---- sizes ------------------------------------------------------------------------------------------------

// Whether elements are one stream of bits, of which any number may be used.
static bool is_stream(const dq_sample *t) {
    return t->kind != DQ_SAMPLE_BLOCK && (t->order == DQ_ORDER_MSB || t->order == DQ_ORDER_LSB);
}

uint64_t dq_sample_elements(const dq_sample *t, uint64_t n) {
    uint32_t bytes, elements;
    dq_sample_unit(t, &bytes, &elements);
    uint64_t all = n / bytes * elements;
    if (is_stream(t)) all += n % bytes * 8 / t->bits;
    return t->complex ? all & ~UINT64_C(1) : all;
}

uint64_t dq_sample_bytes(const dq_sample *t, uint64_t n) {
    uint32_t bytes, elements;
    dq_sample_unit(t, &bytes, &elements);
    uint64_t all = n / elements * bytes, rest = n % elements;
    if (rest == 0) return all;
    return all + (is_stream(t) ? (rest * t->bits + 7) / 8 : bytes);
}

// ---- values and codes -------------------------------------------------------------------------------------

void dq_sample_values(const dq_sample *t, double scale, double offset, const double *levels,
                      const uint8_t *src, uint64_t n, double *out) {
    dqk_unpack u;
    dqk_unpack_init(&u, t, K_TYPE_fp64);
    dqk_unpack_scale(&u, scale, offset);
    if (levels && t->bits <= 8) dqk_unpack_levels(&u, levels);
    dqk_unpack_run(&u, (uint8_t *)out, src, n);
}

int dq_sample_count(const dq_sample *t, const uint8_t *src, uint64_t n, uint64_t *counts) {
    if (t->kind > DQ_SAMPLE_OFFSET || t->bits > 16) return DQ_INVALID_PARAMETER;
    dq_sample codes = *t;
    codes.kind = DQ_SAMPLE_UNSIGNED;
    dqk_unpack u;
    dqk_unpack_init(&u, &codes, K_TYPE_int32);
    uint32_t bytes, elements;
    dq_sample_unit(t, &bytes, &elements);
    for (uint64_t i = 0; i < n; i += TILE) {
        int32_t v[TILE];
        uint64_t some = n - i < TILE ? n - i : TILE;
        dqk_unpack_run(&u, (uint8_t *)v, src + i / elements * bytes, some);
        for (uint64_t k = 0; k < some; k++)
            counts[v[k]]++;
    }
    return DQ_OK;
}
