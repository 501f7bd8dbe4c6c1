// burst.h: what engines and stages do with bursts beyond dqi.h.
#ifndef DQI_BURST_H
#define DQI_BURST_H

#include "dqi.h"

#include <string.h>

// One holder more of a burst that goes on without being looked at.
static inline void dqi_burst_hold(dq_burst *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}
// dq_burst_view without filling columns.
void dqi_burst_glance(dq_burst *b, dq_view *out);
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
// Buffers of each of the regions for n more packets at the end of b, ids alone; how many there are.
uint32_t dqi_burst_take(dq_burst *b, dq_region *const *regions, uint32_t n);
// The burst that owns the buffers of b's packets: b itself, or the one that it was selected from.
static inline dq_burst *dqi_burst_owner(const dq_burst *b) {
    return b->parent ? b->parent : (dq_burst *)(uintptr_t)b;
}
// Somebody else reads b from now on: its columns and its packets stay as they are, whichever burst they are
// reached through. Before that somebody can see b.
void dqi_burst_share(dq_burst *b);
// True when nobody but the caller's thread can see the packets' bytes.
bool dqi_burst_writable(const dq_burst *b);
// Copies a packet's bytes. Those of 32 to 64, the commonest, are two halves that may overlap: no call.
static inline void dqi_copy_bytes(uint8_t *to, const uint8_t *from, uint32_t n) {
    if (n < 32 || n > 64) {
        memcpy(to, from, n);
        return;
    }
    uint8_t head[32], tail[32];
    memcpy(head, from, 32);
    memcpy(tail, from + n - 32, 32);
    memcpy(to, head, 32);
    memcpy(to + n - 32, tail, 32);
}

#endif
