// lane_body.h: loops over lanes, included by lane_level.c once per instruction set.
//
// Before each inclusion: LEVEL is the level's name, WIDTH the number of 64-bit lanes of a vector. BITS(v)
// packs the lanes' top bits into a number; EQUAL and LESS (of numbers below 2^63) yield all ones or 0, SPREAD
// copies of each lane's top bit; LOW_TIMES(v, k) is each lane's lower half times k; WIRE converts lanes to or
// from wire order, LITTLE to or from little endian; LANE_BITS has bit j in lane j; NEXT(a, b) is b shifted up
// by one lane after the last of a; WORDS reads the 8 bytes at that offset from each address, GATHER the words
// w12 to w36. The compiler maps vector operators to the instruction set.

#define GLUE2(a, b) a##_##b
#define GLUE(a, b)  GLUE2(a, b)
#define NAME(what)  GLUE(what, LEVEL)
#define VU          NAME(vu)
#define VS          NAME(vs)
#define VL          NAME(vl)
#define VH          NAME(vh)
#define VN          NAME(vn)
#define VR          NAME(vr)

typedef uint64_t VU __attribute__((vector_size(8 * WIDTH), may_alias));
typedef uint64_t VL __attribute__((vector_size(8 * WIDTH), may_alias, aligned(8))); // as in bursts' columns
typedef uint32_t VH __attribute__((vector_size(8 * WIDTH), may_alias, aligned(4)));
typedef uint32_t VN __attribute__((vector_size(4 * WIDTH), may_alias, aligned(4))); // burst lengths
typedef uint64_t VR __attribute__((vector_size(32), may_alias, aligned(1)));        // packet bytes
typedef int64_t VS __attribute__((vector_size(8 * WIDTH), may_alias));

// Lanes i .. i + WIDTH of a column.
#define AT(col)         (*(VU *)((col)->v + i))
#define CONST_AT(col)   (*(const VU *)((col)->v + i))
#define EACH            for (uint32_t i = 0; i < DQI_LANES; i += WIDTH)
#define SOME            for (uint32_t i = 0; i < l->n; i += WIDTH) // lanes in use
#define PUT(mask, cond) (mask) |= (uint64_t)BITS(cond) << i
#define ALL(x)          ((VU){0} + (x))
#define WHERE(m, v)     ((m) & (v))

// ---- operators: one row of lane_ops.h is one kernel -------------------------------------------------------

#define UNARY(op, expr)                                                                                      \
    static void NAME(op)(dqi_col * x) {                                                                      \
        EACH {                                                                                               \
            VU a = AT(x);                                                                                    \
            AT(x) = (VU)(expr);                                                                              \
        }                                                                                                    \
    }
#define BINARY(op, expr)                                                                                     \
    static void NAME(op)(dqi_col * x, const dqi_col *y) {                                                    \
        EACH {                                                                                               \
            VU a = AT(x), b = CONST_AT(y);                                                                   \
            AT(x) = (VU)(expr);                                                                              \
        }                                                                                                    \
    }
#define SCALAR(op, expr)                                                                                     \
    static void NAME(op)(dqi_col * x, const dqi_col *y) {                                                    \
        for (uint32_t i = 0; i < DQI_LANES; i++) {                                                           \
            uint64_t a = x->v[i], b = y->v[i];                                                               \
            x->v[i] = (expr);                                                                                \
        }                                                                                                    \
    }
#define COMPARE(op, sign, expr)                                                                              \
    static uint64_t NAME(op)(const dqi_col *x, const dqi_col *y) {                                           \
        uint64_t out = 0;                                                                                    \
        EACH {                                                                                               \
            sign a = (sign)CONST_AT(x), b = (sign)CONST_AT(y);                                               \
            out |= (uint64_t)BITS((VU)(expr)) << i;                                                          \
        }                                                                                                    \
        return out;                                                                                          \
    }
DQI_UNARY_OPS(UNARY)
DQI_BINARY_OPS(BINARY, SCALAR)
DQI_COMPARE_OPS(COMPARE, VU, VS)
#undef UNARY
#undef BINARY
#undef SCALAR
#undef COMPARE

static void NAME(fill)(dqi_col *a, uint64_t v) { EACH AT(a) = (VU){0} + v; }

static void NAME(keep)(dqi_col *a, uint64_t lanes) {
    const VU bit = LANE_BITS;
    EACH AT(a) &= EQUAL(ALL(lanes >> i) & bit, bit);
}

static void NAME(cut)(dqi_col *a, uint32_t left, uint32_t right, bool sign) {
    if (sign)
        EACH AT(a) = (VU)((VS)(AT(a) << left) >> right);
    else
        EACH AT(a) = AT(a) << left >> right;
}

#include "packet/lane_shape.h"

// ---- fields at fixed places -------------------------------------------------------------------------------

static void NAME(fixed)(const dqi_lanes *l, uint32_t at, uint32_t left, uint32_t right, dqi_col *out) {
    SOME AT(out) = WIRE(WORDS(l->p.v + i, at)) << left >> right;
}

static void NAME(reach)(const dqi_lanes *l, const dqi_col *from, dqi_col *at) {
    SOME AT(at) = CONST_AT(&l->p) + CONST_AT(from);
}

static uint64_t NAME(holding)(const dqi_lanes *l, const dqi_col *at, const dqi_col *limit, uint64_t end) {
    uint64_t outside = 0; // lanes where the difference is negative
    SOME PUT(outside, CONST_AT(limit) + CONST_AT(&l->p) - CONST_AT(at) - end);
    return ~outside;
}

static void NAME(gather)(const dqi_lanes *l, const dqi_col *at, uint64_t byte, uint64_t lanes, dqi_col *out) {
    if (lanes == UINT64_MAX) {
        EACH AT(out) = WORDS(at->v + i, byte);
        return;
    }
    SOME {
        VU p;
        for (uint32_t j = 0; j < WIDTH; j++)
            p[j] = lanes >> (i + j) & 1 ? at->v[i + j] + byte : (uintptr_t)dqi_zeros;
        AT(out) = WORDS(p, 0);
    }
}

static void NAME(part)(const dqi_lanes *l, const dqi_col *words, bool little, uint32_t left, uint32_t right,
                       dqi_col *out) {
    if (little)
        SOME AT(out) = LITTLE(CONST_AT(words)) << left >> right;
    else
        SOME AT(out) = WIRE(CONST_AT(words)) << left >> right;
}

#include "packet/lane_keys.h"
#include "packet/lane_match.h"
#include "packet/lane_patch.h"

#define ENTRY(op, ...) [op] = NAME(op),
static const dqi_level NAME(level) = {
    .name = LEVEL_TEXT,
    .shape = NAME(shape),
    .extents = NAME(extents),
    .fixed = NAME(fixed),
    .reach = NAME(reach),
    .holding = NAME(holding),
    .gather = NAME(gather),
    .part = NAME(part),
    .fill = NAME(fill),
    .keep = NAME(keep),
    .cut = NAME(cut),
    .unary = {DQI_UNARY_OPS(ENTRY)},
    .binary = {DQI_BINARY_OPS(ENTRY, ENTRY)},
    .compare = {DQI_COMPARE_OPS(ENTRY, , )},
    .match = NAME(match),
    .patch = NAME(patch),
    .keys = NAME(keys),
    .hash = NAME(hash),
};

#undef ENTRY
#undef PUT
#undef ALL
#undef EACH
#undef SOME
#undef AT
#undef CONST_AT
#undef VU
#undef VS
#undef VL
#undef VH
#undef VN
#undef VR
#undef NAME
#undef GLUE
#undef GLUE2
#undef LEVEL
#undef LEVEL_TEXT
#undef WIDTH
#undef BITS
#undef WHERE
#undef WIRE
#undef LITTLE
#undef LANE_BITS
#undef WORDS
#undef GATHER
#undef NEXT
#undef EQUAL
#undef LESS
#undef LOW_TIMES
#undef SPREAD
