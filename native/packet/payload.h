// payload.h: where in a received packet the payload lies that a stage takes.
#ifndef DQI_PAYLOAD_H
#define DQI_PAYLOAD_H

#include "core/burst.h"
#include "packet/packet.h"
#include "packet/spead.h"

typedef struct dqi_payload_rule {
    uint32_t segment, offset; // bytes from the segment's start,
    int32_t at_payload;       // 1: from the innermost payload's; 2: from behind its SPEAD-64-48 items
} dqi_payload_rule;

// Offsets in its segment where packet k's payload begins and ends; false: there is none.
static inline bool dqi_payload_find(const dq_burst *b, const dqi_payload_rule *r, uint32_t k, uint32_t *from,
                                    uint32_t *to) {
    const uint8_t *p = dqi_bytes(b, r->segment, k);
    *from = 0;
    *to = b->len[r->segment][k];
    if (r->at_payload && !b->payload) {
        dqi_pkt pkt;
        if (!dqi_parse(p, *to, &pkt) || pkt.payload == DQI_NONE) return false;
        *from = pkt.payload;
        *to = pkt.payload + pkt.payload_len;
    }
    if (r->at_payload == 2) {
        uint32_t items = *from < *to ? dqi_spead_header(p + *from, *to - *from) : 0;
        if (items == 0) return false;
        *from += items;
    }
    *from += r->offset;
    return *from < *to;
}

#endif
