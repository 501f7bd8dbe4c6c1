// remarks.h: metadata of a capture's packets, kept for the whole session; equal remarks are stored once.
#ifndef DQI_REMARKS_H
#define DQI_REMARKS_H

#include "capture/capture_file.h"

typedef struct dqi_remarks {
    uint32_t section, n_links, links_cap; // of this section's links
    dqi_origin_link **links;
    uint32_t n, cap; // remarks, in a hash table
    dqi_remark **table;
    struct dqi_remarks_block *blocks; // list of all allocations
    uint64_t lost;                    // packets whose remark could not be stored
} dqi_remarks;

// Returns p's remark; NULL: none. One thread at a time; other threads may read the result.
const dqi_remark *dqi_remarks_of(dqi_remarks *r, const dqi_capture *c, const dqi_capture_packet *p);
// Prepares for another loop of the same capture; stored remarks stay valid.
void dqi_remarks_again(dqi_remarks *r);
void dqi_remarks_free(dqi_remarks *r);

#endif
