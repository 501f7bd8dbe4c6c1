// peers.h: source and destination address of each received packet, and the replay loop of a replayed one:
// side arrays of its region, allocated once a queue or a stage needs them.
#ifndef DQI_PEERS_H
#define DQI_PEERS_H

#include "core/burst.h"
#include "core/region.h"
#include "core/socket_addr.h"

// Source address of a buffer's packet; family AF_UNSPEC: unknown.
struct dqi_peer {
    _Alignas(32) dqi_sockaddr from;
};

// Destination address of a buffer's packet.
struct dqi_target {
    int32_t family; // AF_INET, AF_INET6, or 0: unknown
    uint8_t ip[16];
};

// Makes the region record peers, 32 bytes per buffer. After the arena's layout; control thread; idempotent.
int dqi_region_keep_peers(dq_region *r, dq_diag *diag);
// Makes the region record replay loops of packets received from now on. Control thread; idempotent.
int dqi_region_keep_loops(dq_region *r, dq_diag *diag);
// Makes all regions that record peers, now or later, record targets too. Control thread.
int dqi_session_keep_targets(dq_session *s);

// These return the entry of buffer id, or NULL where the region records none.
static inline dqi_sockaddr *dqi_buf_peer(const dq_region *r, uint32_t id) {
    dqi_peer *p = atomic_load_explicit(&r->peers, memory_order_acquire);
    return p ? &p[id - r->first_id].from : NULL;
}
static inline dqi_target *dqi_buf_target(const dq_region *r, uint32_t id) {
    dqi_target *t = atomic_load_explicit(&r->targets, memory_order_acquire);
    return t ? &t[id - r->first_id] : NULL;
}
static inline uint32_t *dqi_buf_loop(const dq_region *r, uint32_t id) {
    uint32_t *n = atomic_load_explicit(&r->loops, memory_order_acquire);
    return n ? &n[id - r->first_id] : NULL;
}
// Copies the peer and target of buffer `from` of region `of` to buffer `to` of region r.
void dqi_buf_copy_peer(const dq_region *r, uint32_t to, const dq_region *of, uint32_t from);

// These return the entry of packet i, which lies in a buffer or super-buffer; NULL if nothing is recorded or
// the packet was freed.
dqi_sockaddr *dqi_burst_peer_addr(const dq_burst *b, uint32_t i);
const dqi_target *dqi_burst_target(const dq_burst *b, uint32_t i);
// Returns the loop in which packet i was replayed, from 0; 0 if nothing is recorded.
uint32_t dqi_burst_loop(const dq_burst *b, uint32_t i);
// Copies the peer and target of packet i of `from` to packet k of `to`.
void dqi_burst_copy_peer(const dq_burst *to, uint32_t k, const dq_burst *from, uint32_t i);

#endif
