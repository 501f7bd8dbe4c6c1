// template.h: templates, for tx.c; and the project's one mixing function.
#ifndef DQI_TEMPLATE_H
#define DQI_TEMPLATE_H

#include "core/burst.h"

// Which buffers of a region hold the whole of a template already, by buffer from id `first` on: those whose
// place is `stamp` (above 0) in its upper half, and in its lower the first of the buffers that the packets
// before it fill without a gap: itself, unless they are packed.
typedef struct dqi_stamped {
    uint64_t *places;
    uint32_t stamp, first;
    bool packs; // packets in neighbouring buffers lie one behind the other
} dqi_stamped;

// One holder more. Any thread, NULL too; dq_template_unref ends it.
void dqi_template_ref(dq_template *t);
uint32_t dqi_template_len(const dq_template *t); // bytes of each packet
// What a device may compute of each packet: nothing, where there is nothing to compute anew, or where a
// varied field changes what checksums cover.
dqi_sums dqi_template_sums(const dq_template *t);
// Writes the template's packets into b, whose buffers are fresh and large enough; b->sums says which
// checksums are left to the device. s, NULL where others may write the buffers: packets that hold the
// template already get their varied fields alone.
void dqi_template_write(dq_template *t, dq_burst *b, const dqi_stamped *s);
uint64_t dqi_mix64(uint64_t z); // a well-mixed function of z

#endif
