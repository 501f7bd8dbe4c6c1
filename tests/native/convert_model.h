// convert_model.h: what elements become, by the definition of each format: slow, and without the code that is
// tested.
#ifndef CONVERT_MODEL_H
#define CONVERT_MODEL_H

#include "kernels/k_convert.h"

#include <math.h>

// An IEEE number with so many bits of exponent and of fraction that is nearest to the whole number v.
static inline uint64_t model_ieee(double v, int exponent, int fraction) {
    if (v == 0) return 0;
    int power;
    double part = frexp(fabs(v), &power) * 2; // 1 <= part < 2
    power--;
    double steps = ldexp(part - 1, fraction), below = floor(steps);
    uint64_t whole = (uint64_t)below;
    if (steps - below > 0.5 || (steps - below == 0.5 && whole % 2 == 1)) whole++;
    uint64_t bias = (UINT64_C(1) << (exponent - 1)) - 1, top = (2 * bias + 1) << fraction;
    uint64_t bits = (((uint64_t)power + bias) << fraction) + whole; // a carry continues into the exponent
    if (bits > top) bits = top;
    return bits | (v < 0 ? UINT64_C(1) << (exponent + fraction) : 0);
}

// As fp32, of which fp16 and bf16 are made.
static inline double model_single(double v) {
    uint64_t bits = model_ieee(v, 8, 23);
    double size = ldexp((double)(bits & 0x7fffff) / 0x800000 + 1, (int)(bits >> 23 & 0xff) - 127);
    return v == 0 ? 0 : v < 0 ? -size : size;
}

// The bits of v as an element of type output (dq_dtype).
static inline uint64_t model_bits(int32_t v, int output) {
    switch (output) {
    case K_TYPE_fp16:
        return model_ieee(model_single(v), 5, 10);
    case K_TYPE_bf16:
        return model_ieee(model_single(v), 8, 7);
    case K_TYPE_fp32:
        return model_ieee(v, 8, 23);
    case K_TYPE_fp64:
        return model_ieee(v, 11, 52);
    case K_TYPE_int8:
        return (uint8_t)(v < -128 ? -128 : v > 127 ? 127 : v);
    default:
        return (uint32_t)v;
    }
}

#endif
