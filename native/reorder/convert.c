// convert.c: selects the conversion of a pair of element types; the loops are in kernels/loops.c.
#include "reorder/convert.h"
#include "core/err.h"
#include "kernels/k_convert.h"

#include <math.h>
#include <stdio.h>

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
    return t->input == t->output && t->input <= DQ_DTYPE_INT32 &&
           (!t->network || types[t->input].bits <= 8 || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
}

// ---- samples ----------------------------------------------------------------------------------------------

static bool plain_values(const dq_data_types *t) {
    return !t->any_scale && (t->scale == 0 || t->scale == 1) && t->offset == 0 && !t->full_scale &&
           !t->levels;
}

// Sets input and network to the type that a sample type is; returns false if it is none of these.
static bool is_old(dq_data_types *t) {
    const dq_sample *s = &t->sample;
    const int32_t type = s->bits == 4    ? DQ_DTYPE_INT4
                         : s->bits == 8  ? DQ_DTYPE_INT8
                         : s->bits == 16 ? DQ_DTYPE_INT16
                                         : DQ_DTYPE_INT32;
    const bool stream = s->order == DQ_ORDER_MSB && s->bits <= 8;
    const bool words = (s->order == DQ_ORDER_BE || s->order == DQ_ORDER_LE) && s->container == s->bits;
    if (s->kind != DQ_SAMPLE_SIGNED || s->complex == 2 || types[type].bits != s->bits || !(stream || words))
        return false;
    t->input = type;
    t->network = s->order == DQ_ORDER_BE;
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ || stream || t->network;
}

// Returns the sample type of an input type and byte order.
static dq_sample sample_of(const dq_data_types *t) {
    const uint8_t bits = types[t->input].bits;
    const bool big = t->network || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    return (dq_sample){.bits = bits,
                       .order = bits <= 8 ? DQ_ORDER_MSB
                                : big     ? DQ_ORDER_BE
                                          : DQ_ORDER_LE,
                       .container = bits <= 8 ? 0 : bits};
}

static int find_packed(const dq_data_types *t, dqi_convert *out, const char *what, dq_diag *diag) {
    const dq_sample *s = &t->sample;
    dq_sample_write(s, out->input);
    if (!dqk_unpack_init(&out->unpack, s, t->output))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "%s: no conversion of %s to %s: samples become fp16, bf16, fp32, fp64, int32, int16 or "
            "int8, and u32 a float",
            what, out->input, dq_dtype_name(t->output));
    if (t->levels && (s->bits > 8 || s->kind == DQ_SAMPLE_BLOCK))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: levels are for types of up to 8 bits, not for %s",
                        what, out->input);
    const int bits = dqk_is_float(s) ? 0 : s->bits - (s->kind != DQ_SAMPLE_UNSIGNED);
    double scale = t->full_scale ? ldexp(1, -bits) : t->scale == 0 ? 1 : t->scale;
    dqk_unpack_scale(&out->unpack, scale, t->offset);
    if (t->levels) dqk_unpack_levels(&out->unpack, t->levels);
    out->packed = true;
    out->conversion = dqk_is_float(s) ? 0 : dqk_packed(t->output);
    dq_sample_unit(s, &out->bytes, &out->elements);
    out->out_bytes = types[t->output].bits / 8u;
    return DQ_OK;
}

// ---- selection --------------------------------------------------------------------------------------------

static int unknown_pair(const dq_data_types *t, const char *what, dq_diag *diag) {
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "%s: no conversion of %s to %s: int4, int8, int16 and int32 become fp16, bf16, fp32, "
                    "fp64, int32, int16 or int8",
                    what, dq_dtype_name(t->input), dq_dtype_name(t->output));
}

int dqi_convert_find(const dq_data_types *of, dqi_convert *out, const char *what, dq_diag *diag) {
    dq_data_types t = *of;
    *out = (dqi_convert){.bytes = 1, .elements = 1, .out_bytes = 1};
    if (!dq_dtype_name(t.input) || !dq_dtype_name(t.output))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: unknown data types", what);
    bool integer = t.input >= DQ_DTYPE_INT4 && t.input <= DQ_DTYPE_INT32;
    bool old = t.sample.bits ? is_old(&t) : true;
    if (old && t.sample.bits == 0 && integer && t.output != DQ_DTYPE_BYTES) t.sample = sample_of(&t);
    bool to_int16 = t.output == DQ_DTYPE_INT16 && !same(&t);
    if (t.sample.bits && (!old || to_int16 || !plain_values(&t))) return find_packed(&t, out, what, diag);
    if (t.input == DQ_DTYPE_BYTES && t.output == DQ_DTYPE_BYTES) return DQ_OK;
    uint32_t conversion = conversion_of(&t), elements = types[t.input].bits == 4 ? 2 : 1;
    if (conversion == 0 && !same(&t)) return unknown_pair(&t, what, diag);
    if (same(&t)) conversion = 0;
    out->fn = dqk_loop(conversion);
    out->conversion = conversion;
    out->elements = elements;
    out->bytes = types[t.input].bits * elements / 8;
    out->out_bytes = types[t.output].bits / 8u;
    snprintf(out->input, sizeof out->input, "%s", dq_dtype_name(t.input));
    return DQ_OK;
}

int dqi_convert_by_gpu(const dqi_convert *c, const char *what, dq_diag *diag) {
    if (!c->packed || c->conversion) return DQ_OK;
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "%s: a GPU does not convert floating-point samples such as %s: hint: a host region", what,
                    c->input);
}
