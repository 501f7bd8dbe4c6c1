// expr.h: packet programs: compiled conditions and numbers over packet fields (dq_insn), checked once and run
// over bursts.
//
// Programs come from runtime/expr, but nothing is believed: a program that passes the check cannot read
// outside a packet, overrun its stack, divide by zero, or loop.
#ifndef DQI_EXPR_H
#define DQI_EXPR_H

#include "core/burst.h"
#include "core/dq_core.h"
#include "packet/dq_rules.h"
#include "program/dq_program.h"
#include "packet/lanes.h"

// The field that a LOAD reads.
static inline dq_field dqi_insn_field(const dq_insn *i) {
    return (dq_field){.base = i->a,
                      .meta = (uint8_t)i->imm,
                      .flags = (uint8_t)(i->imm >> 8),
                      .need = (uint8_t)(i->imm >> 16),
                      .bit_width = i->b,
                      .bit_offset = i->c};
}

// What a FIND looks for.
static inline dqi_item_key dqi_insn_key(const dq_insn *i) {
    return (dqi_item_key){.bytes = i->a, .value_bits = i->b, .key = i->imm};
}

// Packets [first, first + n) of a burst whose columns are there, as far as the CPU can read them.
static inline dqi_packets dqi_packets_at(const dq_burst *b, uint32_t first, uint32_t n) {
    return (dqi_packets){.base = b->session->base,
                         .off = dqi_seen(b) + first,
                         .len = dqi_seen_len(b) + first,
                         .whole = b->heads ? b->len[0] + first : NULL,
                         .origin = b->origins ? b->origin + first : NULL,
                         .flow = b->flow + first,
                         .ts = b->ts + first,
                         .time_origin = b->time_origin,
                         .n = n};
}

// Refuses a program that is not well formed: unknown opcode, unreadable field, jump not forward or out of
// range, a number where a condition is wanted, stack too deep, too shallow or different on two ways, no RET
// at the end. DQ_INVALID_PARAMETER, with the instruction and the reason in diag (may be NULL). *condition
// (may be NULL) gets whether it leaves a condition or a number. Any thread.
int dqi_prog_check(const dq_insn *insns, uint32_t n, bool *condition, dq_diag *diag);

// Bytes of a packet that its fields at fixed offsets need at least; 0: none do.
uint32_t dqi_prog_needs(const dq_prog *prog);

// Runs a program over packets; payload: of a queue that holds payloads, where comparisons with header fields
// are false and payload offsets count from 0. Any number of threads may run one program. None of these blocks
// or allocates. A number as a condition holds where it is not 0.
//
// Writes the indices of the packets that match to out (room for n), rising, and returns their number.
uint32_t dqi_prog_select(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload,
                         uint32_t *out);
// How many match.
uint32_t dqi_prog_count(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload);
// out[i] = the number for packet i, or 1 and 0 of a condition; ok (may be NULL) [i] = 0 and out[i] = 0 where
// the packet lacks a field of it or it divides by 0. How many packets have it.
uint32_t dqi_prog_eval(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload,
                       uint64_t *out, uint8_t *ok);

#endif
