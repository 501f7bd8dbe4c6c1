// dq_template.h: templates of packets to send many times.
#ifndef DQ_TEMPLATE_H
#define DQ_TEMPLATE_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"

typedef enum dq_vary_kind { DQ_VARY_INC, DQ_VARY_RANDOM, DQ_VARY_TOGGLE } dq_vary_kind;

// A field that varies from packet to packet. INC: start, start + step, ..., wraps from max to start or,
// without a max (UINT64_MAX), from the field's largest value to 0. RANDOM: in start..max. TOGGLE: alternates
// between start and start with the bits of step inverted.
typedef struct dq_vary {
    dq_field field;
    int32_t kind; // dq_vary_kind
    uint64_t start, step, max;
    uint64_t every; // consecutive packets with the same value; 0: 1
} dq_vary;

// Creates a template. checksums 1: recomputes the IPv4 and the UDP or TCP checksum of each packet sent.
int dq_template_new(const uint8_t *bytes, uint32_t len, const dq_vary *vary, uint32_t n_vary, int checksums,
                    uint64_t seed, dq_template **out, dq_diag *diag);
// Drops the creator's reference; queues that send the template have their own. t may be NULL.
void dq_template_unref(dq_template *t);
// Fills packets of b from t (lengths too) and advances the template's counters. Needs a single-segment burst.
int dq_template_fill(dq_template *t, dq_burst *b);
// Prepends the template's packet, as headers, to each packet of b, in the headroom of its buffer, and sets
// the lengths and checksums of its IP and UDP headers. Changes all packets or none. INVALID_PARAMETER: the
// template varies, b has several segments, a packet would be too long or has too little headroom, or others
// read b. NOT_SUPPORTED: the packets lie in device memory.
int dq_template_prepend(const dq_template *t, dq_burst *b, dq_diag *diag);

#endif
