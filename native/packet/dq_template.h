// dq_template.h: packets to be sent many times.
#ifndef DQ_TEMPLATE_H
#define DQ_TEMPLATE_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"

typedef enum dq_vary_kind { DQ_VARY_INC, DQ_VARY_RANDOM, DQ_VARY_TOGGLE } dq_vary_kind;

// A field that changes from packet to packet: start, start + step, …, from max on to start, or without a max
// (UINT64_MAX) from the field's largest value on to 0; random in start..max; or start and start with the bits
// of step the other way round, by turns.
typedef struct dq_vary {
    dq_field field;
    int32_t kind; // dq_vary_kind
    uint64_t start, step, max;
    uint64_t every; // packets with the same value, one after the other; 0: 1
} dq_vary;

// A packet to send many times. checksums: 1 sets IPv4 and UDP/TCP lengths' checksums of each packet sent.
int dq_template_new(const uint8_t *bytes, uint32_t len, const dq_vary *vary, uint32_t n_vary, int checksums,
                    uint64_t seed, dq_template **out, dq_diag *diag);
// Drops the maker's reference; queues that send the template have their own. NULL too.
void dq_template_unref(dq_template *t);
// Fills packets of b from t (lengths too); the template's counters move on. Needs a single-segment burst.
int dq_template_fill(dq_template *t, dq_burst *b);

#endif
