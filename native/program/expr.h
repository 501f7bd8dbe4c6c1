// expr.h: packet programs: compiled conditions and numbers over packet fields (dq_insn), run over bursts.
//
// Programs come from runtime/expr but are not trusted: one that passes the check cannot read outside a
// packet, overrun its stack, divide by zero, or loop.
#ifndef DQI_EXPR_H
#define DQI_EXPR_H

#include "core/burst.h"
#include "core/dq_core.h"
#include "packet/dq_rules.h"
#include "packet/lanes.h"
#include "program/dq_program.h"

// Returns the field that a LOAD reads.
static inline dq_field dqi_insn_field(const dq_insn *i) {
    return (dq_field){.base = i->a,
                      .meta = (uint8_t)i->imm,
                      .flags = (uint8_t)(i->imm >> 8),
                      .need = (uint8_t)(i->imm >> 16),
                      .bit_width = i->b,
                      .bit_offset = i->c};
}

// Returns the key that a FIND searches for.
static inline dqi_item_key dqi_insn_key(const dq_insn *i) {
    return (dqi_item_key){.bytes = i->a, .value_bits = i->b, .key = i->imm};
}

// Returns packets [first, first + n) of a burst with filled columns, as far as the CPU can read them.
static inline dqi_packets dqi_packets_at(const dq_burst *b, uint32_t first, uint32_t n) {
    return (dqi_packets){.base = dqi_core_of(b->session)->base,
                         .off = dqi_seen(b) + first,
                         .len = dqi_seen_len(b) + first,
                         .whole = b->heads ? b->len[0] + first : NULL,
                         .origin = b->origins ? b->origin + first : NULL,
                         .flow = b->flow + first,
                         .ts = b->ts + first,
                         .time_origin = b->time_origin,
                         .n = n};
}

// Rejects a malformed program: unknown opcode, invalid field, jump not forward or out of range, a number in
// place of a condition, stack too deep, too shallow or different on two paths, no RET at the end. Returns
// DQ_INVALID_PARAMETER, with the instruction and the reason in diag (may be NULL). *condition (may be NULL)
// is set to whether the result is a condition. Any thread.
int dqi_prog_check(const dq_insn *insns, uint32_t n, bool *condition, dq_diag *diag);

// Returns the minimum packet length in bytes for its fields at fixed offsets; 0: no such fields.
uint32_t dqi_prog_needs(const dq_prog *prog);

// Run a program over packets; payload: of a queue of payloads, where comparisons with header fields are false
// and payload offsets count from 0. Any number of threads may run one program. None of these blocks or
// allocates. A number is true as a condition if it is not 0.
//
// Writes the indices of matching packets, ascending, to out (room for n); returns their number.
uint32_t dqi_prog_select(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload,
                         uint32_t *out);
// Returns the number of matching packets.
uint32_t dqi_prog_count(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload);
// Writes the number for packet i to out[i], or 1 and 0 for a condition; ok (may be NULL) [i] = 0 and out[i] =
// 0 if the packet lacks a field or it divides by 0. Returns how many packets have it.
uint32_t dqi_prog_eval(const dq_prog *prog, const dqi_level *k, const dqi_packets *in, bool payload,
                       uint64_t *out, uint8_t *ok);

#endif
