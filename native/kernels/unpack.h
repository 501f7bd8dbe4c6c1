// unpack.h: conversion of packed samples (dq_sample) by one loop whose constants describe the packing.
//
// Each element lies in at most 4 bytes of a window of 16. It is picked into 32 bits, highest byte first,
// shifted left to its first bit, for offset binary its highest bit is flipped, and shifted right. Elements
// for which this does not hold, and those near the end of the input, are read byte by byte.
#ifndef DQK_UNPACK_H
#define DQK_UNPACK_H

#include "kernels/dq_samples.h"
#include "kernels/kernels.h"

#define DQK_LANES 8 // elements per step
#define DQK_STEPS 8 // maximum steps until the constants repeat
#define DQK_CODES 256

// Constants of 8 elements: two windows of four.
typedef struct dqk_step {
    uint32_t at[2]; // byte at which a window begins
    uint8_t pick[32];
    uint32_t left[DQK_LANES], low[DQK_LANES]; // shifts; low: of the lower bits of gev
} dqk_step;

// A conversion of packed samples. The value of an element is (v + offset) * scale, where v is its integer, or
// levels[code]. In fp32 it is rounded after each operation; fp64 output and input are computed in fp64.
typedef struct dqk_unpack {
    dq_sample type;
    int32_t output;                               // a type of k_convert.h
    uint32_t steps, period, period_bytes, window; // steps 0: byte by byte; window: bytes read by a period
    uint32_t right, flip, low_mask;
    bool scaled, levelled;
    double scale, offset;
    float levels[DQK_CODES];
    dqk_convert_fn *finish; // from int32, if neither scaled nor levelled; NULL: int16, or already int32
    dqk_step step[DQK_STEPS];
} dqk_unpack;

// Returns whether elements are floating-point numbers.
static inline bool dqk_is_float(const dq_sample *t) {
    return t->kind == DQ_SAMPLE_FLOAT || t->kind == DQ_SAMPLE_BRAIN;
}

// Fills in the constants for type and output. Returns false if there is no such conversion: to bytes, or
// unsigned 32 bits to integers.
bool dqk_unpack_init(dqk_unpack *u, const dq_sample *type, int output);
// Sets the scale and offset of the values; 1 and 0: none.
void dqk_unpack_scale(dqk_unpack *u, double scale, double offset);
// Sets the value of each code, 2^bits of them; at most 8 bits.
void dqk_unpack_levels(dqk_unpack *u, const double *levels);

// Converts floating-point elements as dqk_unpack_run.
void dqk_floats_run(const dqk_unpack *u, uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n);

// Returns what lists of the conversion need (dqk_packed), without the address of its levels.
dqk_packing dqk_unpack_packing(const dqk_unpack *u);

// Converts n elements of src to dst. Neither needs alignment; they must not overlap. It reads only the bytes
// of these elements. Blocks must be whole.
void dqk_unpack_run(const dqk_unpack *u, uint8_t *restrict dst, const uint8_t *restrict src, uint64_t n);
// Converts as dqk_unpack_run, with the level-th instruction set of this processor, from 0, plain C. Returns
// false past the last.
bool dqk_unpack_at(uint32_t level, const dqk_unpack *u, uint8_t *restrict dst, const uint8_t *restrict src,
                   uint64_t n);

#endif
