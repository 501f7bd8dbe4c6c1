// burst_ops.h: burst verbs over columns of packets, parameterized by instruction set so that tests can
// compare them. None of them blocks or allocates.
#ifndef DQI_BURST_OPS_H
#define DQI_BURST_OPS_H

#include "core/dq_burst.h"
#include "packet/lanes.h"
#include "program/dq_program.h"

// Writes a checked field of packet i to out[i], or 0 with ok[i] (may be NULL) = 0; returns how many have it.
uint32_t dqi_verb_column(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f,
                         uint64_t *out, uint8_t *ok);
// A checked field to set, with csum as in enum dq_csum, and what can be derived from the two once.
typedef struct dqi_setter {
    dq_field f;
    int csum;
    bool together; // plain frames can use patch
    dqi_patch patch;
} dqi_setter;
void dqi_setter_init(dqi_setter *c, const dq_field *f, int csum);

// Values for up to DQI_LANES packets from `first`.
typedef struct dqi_set_to {
    uint64_t lanes;        // bit i: packet first + i
    const dqi_col *values; // entry i is for packet first + i; NULL: packet i of all gets start + i * step
    uint64_t start, step;
    const dqi_col *by; // bits to add to the field's offset; NULL: none
} dqi_set_to;
// Sets the field; bit i of the result: packet first + i has it.
uint64_t dqi_set_lanes(const dqi_setter *c, const dqi_level *k, const dqi_packets *in, uint32_t first,
                       bool payload, const dqi_set_to *to);
// Evaluates a number for up to DQI_LANES packets from `first`; bit i of the result: packet first + i has one.
uint64_t dqi_places(const dq_prog *place, const dqi_level *k, const dqi_packets *in, uint32_t first,
                    bool payload, dqi_col *out);

// Sets a checked field to v + i * step, with csum as in enum dq_csum; returns how many packets have it.
uint32_t dqi_verb_set(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f, uint64_t v,
                      uint64_t step, int csum);
// Does the same for a field whose bit offset is increased by the number `place` of each packet.
uint32_t dqi_verb_set_at(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f,
                         const dq_prog *place, uint64_t v, uint64_t step, int csum);

// Returns a burst's packets. Caller: the only reference.
dqi_packets dqi_packets_of(dq_burst *b);

#endif
