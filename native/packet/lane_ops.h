// lane_ops.h: operators of packet programs, one row each; lane_body.h expands them to the kernels of every
// instruction set. In an expression a and b are vectors of unsigned 64-bit lanes; vector comparisons yield
// all ones or 0. In SCALAR rows they are single lanes.
#ifndef DQI_LANE_OPS_H
#define DQI_LANE_OPS_H

#include "packet/dq_ops.h"

// Number of set bits, summed in pairs, then in fours, then in bytes.
#define DQI_ONES2(a) (a - (a >> 1 & 0x5555555555555555ull))
#define DQI_ONES4(a) ((a & 0x3333333333333333ull) + (a >> 2 & 0x3333333333333333ull))
#define DQI_ONES8(a) ((a + (a >> 4)) & 0x0f0f0f0f0f0f0f0full)

#define DQI_UNARY_OPS(V)                                                                                     \
    V(DQ_OP_NEG, 0 - a)                                                                                      \
    V(DQ_OP_INV, ~a)                                                                                         \
    V(DQ_OP_ONES, DQI_ONES8(DQI_ONES4(DQI_ONES2(a))) * 0x0101010101010101ull >> 56)

// Divisors are never 0. GCC shifts signed numbers arithmetically.
#define DQI_BINARY_OPS(V, S)                                                                                 \
    V(DQ_OP_ADD, a + b)                                                                                      \
    V(DQ_OP_SUB, a - b)                                                                                      \
    V(DQ_OP_MUL, a *b)                                                                                       \
    S(DQ_OP_DIV_S, floor_div((int64_t)a, (int64_t)b))                                                        \
    S(DQ_OP_DIV_U, a / b)                                                                                    \
    S(DQ_OP_MOD_S, floor_mod((int64_t)a, (int64_t)b))                                                        \
    S(DQ_OP_MOD_U, a % b)                                                                                    \
    V(DQ_OP_AND, a &b)                                                                                       \
    V(DQ_OP_OR, a | b)                                                                                       \
    V(DQ_OP_XOR, a ^ b)                                                                                      \
    V(DQ_OP_SHL, (a << (b & 63)) & (VU)(b <= 63))                                                            \
    V(DQ_OP_SHR, (a >> (b & 63)) & (VU)(b <= 63))                                                            \
    V(DQ_OP_SAR, (VS)a >> (VS)((b & 63) | ((VU)(b > 63) & 63)))

#define DQI_COMPARE_OPS(C, U, S)                                                                             \
    C(DQ_OP_EQ, U, a == b)                                                                                   \
    C(DQ_OP_NE, U, a != b)                                                                                   \
    C(DQ_OP_LT_S, S, a < b)                                                                                  \
    C(DQ_OP_LE_S, S, a <= b)                                                                                 \
    C(DQ_OP_GT_S, S, a > b)                                                                                  \
    C(DQ_OP_GE_S, S, a >= b)                                                                                 \
    C(DQ_OP_LT_U, U, a < b)                                                                                  \
    C(DQ_OP_LE_U, U, a <= b)                                                                                 \
    C(DQ_OP_GT_U, U, a > b)                                                                                  \
    C(DQ_OP_GE_U, U, a >= b)

#endif
