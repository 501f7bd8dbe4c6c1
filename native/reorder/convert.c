// convert.c: selects the conversion of a pair of element types; the loops are in kernels/loops.c.
#include "reorder/convert.h"
#include "core/err.h"
#include "kernels/k_convert.h"

static const struct {
    const char *name;
    uint8_t bits;
} types[DQ_DTYPES] = {
    [DQ_DTYPE_BYTES] = {"bytes", 8},  [DQ_DTYPE_INT4] = {"int4", 4},    [DQ_DTYPE_INT8] = {"int8", 8},
    [DQ_DTYPE_INT16] = {"int16", 16}, [DQ_DTYPE_INT32] = {"int32", 32}, [DQ_DTYPE_FP16] = {"fp16", 16},
    [DQ_DTYPE_BF16] = {"bf16", 16},   [DQ_DTYPE_FP32] = {"fp32", 32},   [DQ_DTYPE_FP64] = {"fp64", 64},
};

_Static_assert((int)DQ_DTYPES == (int)K_TYPES && (int)DQ_DTYPE_INT4 == (int)K_TYPE_int4 &&
                   (int)DQ_DTYPE_INT32 == (int)K_TYPE_int32 && (int)DQ_DTYPE_FP16 == (int)K_TYPE_fp16 &&
                   (int)DQ_DTYPE_FP64 == (int)K_TYPE_fp64,
               "types have the same numbers in both");

const char *dq_dtype_name(int dtype) { return dtype >= 0 && dtype < DQ_DTYPES ? types[dtype].name : NULL; }

static uint32_t conversion_of(const dq_data_types *t) {
    return dqk_conversion(t->input, t->output, t->network && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
}

dqk_convert_fn *dqi_convert_at(uint32_t level, const dq_data_types *t) {
    return dqk_loop_at(level, conversion_of(t));
}

// Whether both types are the same in memory. Elements of one byte have no byte order.
static bool same(const dq_data_types *t) {
    return t->input == t->output &&
           (!t->network || types[t->input].bits <= 8 || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

int dqi_convert_find(const dq_data_types *t, dqi_convert *out, const char *what, dq_diag *diag) {
    const char *from = dq_dtype_name(t->input), *to = dq_dtype_name(t->output);
    if (!from || !to) return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: unknown data types", what);
    bool bytes = t->input == DQ_DTYPE_BYTES && t->output == DQ_DTYPE_BYTES;
    uint32_t conversion = conversion_of(t);
    if (!bytes && conversion == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "%s: no conversion of %s to %s: int4, int8, int16 and int32 become fp16, bf16, fp32, "
                        "fp64, int32 or int8",
                        what, from, to);
    if (same(t)) conversion = 0;
    *out = (dqi_convert){.fn = dqk_loop(conversion),
                         .conversion = conversion,
                         .in_bits = types[t->input].bits,
                         .out_bits = types[t->output].bits};
    return DQ_OK;
}
