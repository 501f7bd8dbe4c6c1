// burst_ops.h: burst verbs over columns of packets, with the instruction set as a parameter so that tests can
// compare them. None of them blocks or allocates.
#ifndef DQI_BURST_OPS_H
#define DQI_BURST_OPS_H

#include "packet/lanes.h"

// out[i] = a checked field of packet i, 0 where ok[i] (may be NULL) = 0; how many have it.
uint32_t dqi_verb_column(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f,
                         uint64_t *out, uint8_t *ok);
// Sets a checked field to v + i * step, with csum as in enum dq_csum; how many have it.
uint32_t dqi_verb_set(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f, uint64_t v,
                      uint64_t step, int csum);
// The same of a field that in packet i lies by[i] bits further on, and only where ok[i].
uint32_t dqi_verb_set_at(const dqi_packets *in, bool payload, const dq_field *f, const uint64_t *by,
                         const uint8_t *ok, uint64_t v, uint64_t step, int csum);

#endif
