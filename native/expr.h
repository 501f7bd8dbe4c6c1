// expr.h: packet programs: compiled conditions over packet fields (dq_insn), checked once and run over
// bursts.
//
// Programs come from runtime/expr, but nothing is believed: a program that passes the check cannot read
// outside a packet, overrun its stack, divide by zero, or loop.
#ifndef DQI_EXPR_H
#define DQI_EXPR_H

#include "dq.h"

typedef struct dqi_prog dqi_prog;

// Refuses a program that is not well formed: unknown opcode, unreadable field, jump not forward or out of
// range, stack too deep, too shallow or different on two ways, no RET at the end. DQ_INVALID_PARAMETER, with
// the instruction and the reason in diag (may be NULL). Any thread.
int dqi_prog_check(const dq_insn *insns, uint32_t n, dq_diag *diag);

// Checks and copies a program into *out, to be freed with dqi_prog_free. DQ_INVALID_PARAMETER as above;
// DQ_GENERIC_FAILURE: no memory. Any thread; allocates.
int dqi_prog_new(const dq_insn *insns, uint32_t n, dqi_prog **out, dq_diag *diag);
void dqi_prog_free(dqi_prog *prog);

// Writes to out (room for n) the indices of the Ethernet frames that match, rising, and returns their number.
// Frame i is the len[i] bytes at base + off[i], with flow id flow[i] and receive time ts[i] in ns; flow and
// ts may be NULL, then comparisons with them are false. Reads prog only, so any number of threads may use
// one. Never blocks, never allocates.
uint32_t dqi_prog_select(const dqi_prog *prog, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                         const uint32_t *flow, const int64_t *ts, uint32_t n, uint32_t *out);

// The same for queues that hold payloads: comparisons with header fields are false, payload offsets count
// from 0.
uint32_t dqi_prog_select_payload(const dqi_prog *prog, const uint8_t *base, const uint64_t *off,
                                 const uint32_t *len, const uint32_t *flow, const int64_t *ts, uint32_t n,
                                 uint32_t *out);

#endif
