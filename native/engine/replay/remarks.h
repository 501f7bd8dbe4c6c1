// remarks.h: what a capture says of its packets, kept as long as the session lasts: alike remarks are one.
#ifndef DQI_REMARKS_H
#define DQI_REMARKS_H

#include "capture/capture_file.h"

typedef struct dqi_remarks {
    uint32_t section, n_links, links_cap; // of the links of this section
    dqi_origin_link **links;
    uint32_t n, cap; // remarks, in a table by hash
    dqi_remark **table;
    struct dqi_remarks_block *blocks; // everything that was allocated
    uint64_t lost;                    // packets whose remark found no room
} dqi_remarks;

// What c says of p, NULL: nothing. One thread at a time; others may read what it returned.
const dqi_remark *dqi_remarks_of(dqi_remarks *r, const dqi_capture *c, const dqi_capture_packet *p);
// The same capture is read once more: what is kept stays.
void dqi_remarks_again(dqi_remarks *r);
void dqi_remarks_free(dqi_remarks *r);

#endif
