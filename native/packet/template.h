// template.h: templates, for tx.c; and the project's mixing function.
#ifndef DQI_TEMPLATE_H
#define DQI_TEMPLATE_H

#include "core/burst.h"

// Buffers of a region that already contain the whole template, by buffer id from `first`: those whose entry
// has `stamp` (above 0) in its upper half, and in its lower the id of the first buffer of its gapless run of
// packets: its own, unless packets are packed.
typedef struct dqi_stamped {
    uint64_t *places;
    uint32_t stamp, first;
    bool packs; // packets in adjacent buffers are stored without gaps
} dqi_stamped;

// Adds a reference, dropped by dq_template_unref. Any thread; t may be NULL.
void dqi_template_ref(dq_template *t);
uint32_t dqi_template_len(const dq_template *t); // bytes of each packet
// Returns the checksums that a device may compute for each packet: none if nothing needs recomputing, or if a
// varied field changes checksum coverage.
dqi_sums dqi_template_sums(const dq_template *t);
// Writes the template's packets into b, whose buffers are unused and large enough; b->sums lists the
// checksums left to the device. s is NULL if others may write the buffers; packets that already contain the
// template get only their varied fields.
void dqi_template_write(dq_template *t, dq_burst *b, const dqi_stamped *s);
uint64_t dqi_mix64(uint64_t z); // a bijective mixing function

#endif
