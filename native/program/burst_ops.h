// burst_ops.h: burst verbs over columns of packets, with the instruction set as a parameter so that tests can
// compare them. None of them blocks or allocates.
#ifndef DQI_BURST_OPS_H
#define DQI_BURST_OPS_H

#include "core/dq_burst.h"
#include "packet/lanes.h"
#include "program/dq_program.h"

// out[i] = a checked field of packet i, 0 where ok[i] (may be NULL) = 0; how many have it.
uint32_t dqi_verb_column(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f,
                         uint64_t *out, uint8_t *ok);
// A checked field that is going to be set, with csum as in enum dq_csum; what follows from the two is found
// once.
typedef struct dqi_setter {
    dq_field f;
    int csum;
    bool together; // patch is for plain frames
    dqi_patch patch;
} dqi_setter;
void dqi_setter_init(dqi_setter *c, const dq_field *f, int csum);

// What up to DQI_LANES packets, from `first` on, get.
typedef struct dqi_set_to {
    uint64_t lanes;        // bit i: packet first + i
    const dqi_col *values; // of packet first + i the i-th; NULL: packet i of all gets start + i * step
    uint64_t start, step;
    const dqi_col *by; // its field lies so many bits further on; NULL: none does
} dqi_set_to;
// Sets them; bit i: packet first + i has the field.
uint64_t dqi_set_lanes(const dqi_setter *c, const dqi_level *k, const dqi_packets *in, uint32_t first,
                       bool payload, const dqi_set_to *to);
// Numbers of up to DQI_LANES packets, from `first` on; bit i: packet first + i has one.
uint64_t dqi_places(const dq_prog *place, const dqi_level *k, const dqi_packets *in, uint32_t first,
                    bool payload, dqi_col *out);

// Sets a checked field to v + i * step, with csum as in enum dq_csum; how many have it.
uint32_t dqi_verb_set(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f, uint64_t v,
                      uint64_t step, int csum);
// The same of a field that lies as many bits further on as `place` says of each packet.
uint32_t dqi_verb_set_at(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f,
                         const dq_prog *place, uint64_t v, uint64_t step, int csum);

// A burst's packets. Its holder.
dqi_packets dqi_packets_of(dq_burst *b);

#endif
