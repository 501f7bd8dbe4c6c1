// convert.c: every conversion of k_convert.h as a loop, for each instruction set, and the choice among them.
// The compiler makes vectors of the plain loops: all levels have the same source.
#include "reorder/convert.h"
#include "core/err.h"
#include "reorder/k_convert.h"
#include "core/cpu_target.h"

#include <string.h>

// ---- loops ------------------------------------------------------------------------------------------------

#define LOOP(from, to, level)                                                                                \
    static void from##_##to##_##level(uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n) {      \
        for (uint64_t i = 0; i < n; i++)                                                                     \
            k_to_##to(dst, i, k_from_##from(src, i));                                                        \
    }
// A step is a byte, of two elements.
#define HALVES_LOOP(from, to, level)                                                                         \
    static void from##_##to##_##level(uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n) {      \
        for (uint64_t i = 0; i < n / 2; i++) {                                                               \
            k_to_##to(dst, 2 * i, k_from_##from(src + i, 0));                                                \
            k_to_##to(dst, 2 * i + 1, k_from_##from(src + i, 1));                                            \
        }                                                                                                    \
    }
#define LOOPS(level) K_OUTPUTS(HALVES_LOOP, int4, level) K_WHOLE_BYTES(LOOP, level)

LOOPS(plain)

#ifdef __x86_64__
DQI_TARGET("avx2")
LOOPS(avx2)
DQI_TARGET_END
DQI_TARGET(DQI_AVX512)
LOOPS(avx512)
DQI_TARGET_END
#endif

// ---- tables -----------------------------------------------------------------------------------------------

static const struct {
    const char *name;
    uint8_t bits;
    int8_t row, swapped_row, column; // in a level's table; -1: it isn't converted from, or to
} types[DQ_DTYPES] = {
    [DQ_DTYPE_BYTES] = {"bytes", 8, -1, -1, -1}, [DQ_DTYPE_INT4] = {"int4", 4, 0, 0, -1},
    [DQ_DTYPE_INT8] = {"int8", 8, 1, 1, 5},      [DQ_DTYPE_INT16] = {"int16", 16, 2, 4, -1},
    [DQ_DTYPE_INT32] = {"int32", 32, 3, 5, 4},   [DQ_DTYPE_FP16] = {"fp16", 16, -1, -1, 0},
    [DQ_DTYPE_BF16] = {"bf16", 16, -1, -1, 1},   [DQ_DTYPE_FP32] = {"fp32", 32, -1, -1, 2},
    [DQ_DTYPE_FP64] = {"fp64", 64, -1, -1, 3},
};

enum { ROWS = 6, COLUMNS = 6 };

#define NAME(from, to, level) from##_##to##_##level,
#define TABLE(level)                                                                                         \
    { K_OUTPUTS(NAME, int4, level) K_WHOLE_BYTES(NAME, level) }

static dqi_convert_fn *const levels[][ROWS * COLUMNS] = {
    TABLE(plain),
#ifdef __x86_64__
    TABLE(avx2),
    TABLE(avx512),
#endif
};

static uint32_t n_levels(void) {
#ifdef __x86_64__
    if (!__builtin_cpu_supports("avx2")) return 1;
    bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return wide ? 3 : 2;
#else
    return 1;
#endif
}

// ---- the choice -------------------------------------------------------------------------------------------

const char *dq_dtype_name(int dtype) { return dtype >= 0 && dtype < DQ_DTYPES ? types[dtype].name : NULL; }

dqi_convert_fn *dqi_convert_at(uint32_t level, const dq_data_types *t) {
    bool swap = t->network && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    int row = swap ? types[t->input].swapped_row : types[t->input].row, column = types[t->output].column;
    return level < n_levels() && row >= 0 && column >= 0 ? levels[level][row * COLUMNS + column] : NULL;
}

// Elements of one byte have no order.
static bool same(const dq_data_types *t) {
    return t->input == t->output &&
           (!t->network || types[t->input].bits <= 8 || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

int dqi_convert_find(const dq_data_types *t, dqi_convert *out, const char *what, dq_diag *diag) {
    const char *from = dq_dtype_name(t->input), *to = dq_dtype_name(t->output);
    if (!from || !to) return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: unknown data types", what);
    bool bytes = t->input == DQ_DTYPE_BYTES && t->output == DQ_DTYPE_BYTES;
    if (!bytes && !dqi_convert_at(0, t))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "%s: no conversion of %s to %s: int4, int8, int16 and int32 become fp16, bf16, fp32, "
                        "fp64, int32 or int8",
                        what, from, to);
    *out = (dqi_convert){.fn = bytes || same(t) ? NULL : dqi_convert_at(n_levels() - 1, t),
                         .in_bits = types[t->input].bits,
                         .out_bits = types[t->output].bits};
    return DQ_OK;
}
