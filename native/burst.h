// burst.h: what engines and stages do with bursts beyond dqi.h.
#ifndef DQI_BURST_H
#define DQI_BURST_H

#include "dqi.h"

// Bytes of packets [first, first + n), all segments.
uint64_t dqi_burst_sum(const dq_burst *b, uint32_t first, uint32_t n);
// Bytes of packet i, all segments.
static inline uint32_t dqi_packet_len(const dq_burst *b, uint32_t i) {
    uint32_t len = 0;
    for (uint32_t s = 0; s < b->nseg; s++)
        len += b->len[s][i];
    return len;
}
// Exchanges packets i and k of a burst that owns its buffers, one a packet.
void dqi_burst_swap(dq_burst *b, uint32_t i, uint32_t k);
// True when nobody but the caller can see the packets' bytes.
bool dqi_burst_writable(const dq_burst *b);

#endif
