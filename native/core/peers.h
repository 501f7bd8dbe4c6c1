// peers.h: who sent each packet that came through a socket, to which address, and with which number beside
// it; of a replayed packet in which loop: arrays of its region, beside the packets. A region has them from
// when a queue or a stage needs them.
#ifndef DQI_PEERS_H
#define DQI_PEERS_H

#include "core/burst.h"
#include "core/region.h"
#include "core/socket_addr.h"

// Of one buffer: family AF_UNSPEC where it is not known.
struct dqi_peer {
    _Alignas(32) dqi_sockaddr from;
};

// The address that it was sent to.
struct dqi_target {
    int32_t family; // AF_INET, AF_INET6, or 0: not known
    uint8_t ip[16];
};

// The immediate value that an RDMA message came with.
struct dqi_imm {
    bool there;
    uint32_t value; // in host order
};

// Makes the region keep peers, 32 bytes a buffer; the arena is laid out. Control thread, any number of times.
int dqi_region_keep_peers(dq_region *r, dq_diag *diag);
// Makes the region keep immediates. Control thread, any number of times.
int dqi_region_keep_imms(dq_region *r, dq_diag *diag);
// Makes the region keep loops, of what is received from now on. Control thread, any number of times.
int dqi_region_keep_loops(dq_region *r, dq_diag *diag);
// Makes all regions that keep peers, now or later, keep targets too. Control thread.
int dqi_session_keep_targets(dq_session *s);

// Of buffer id: NULL where the region keeps none.
static inline dqi_sockaddr *dqi_buf_peer(const dq_region *r, uint32_t id) {
    dqi_peer *p = atomic_load_explicit(&r->peers, memory_order_acquire);
    return p ? &p[id - r->first_id].from : NULL;
}
static inline dqi_target *dqi_buf_target(const dq_region *r, uint32_t id) {
    dqi_target *t = atomic_load_explicit(&r->targets, memory_order_acquire);
    return t ? &t[id - r->first_id] : NULL;
}
static inline dqi_imm *dqi_buf_imm(const dq_region *r, uint32_t id) {
    dqi_imm *m = atomic_load_explicit(&r->imms, memory_order_acquire);
    return m ? &m[id - r->first_id] : NULL;
}
static inline uint32_t *dqi_buf_loop(const dq_region *r, uint32_t id) {
    uint32_t *n = atomic_load_explicit(&r->loops, memory_order_acquire);
    return n ? &n[id - r->first_id] : NULL;
}
// What is known of buffer `from` of a region is known of buffer `to` of another.
void dqi_buf_copy_peer(const dq_region *r, uint32_t to, const dq_region *of, uint32_t from);

// The same of packet i, which lies in a buffer or in a super-buffer; NULL where nothing is kept, or the
// packet was freed.
dqi_sockaddr *dqi_burst_peer_addr(const dq_burst *b, uint32_t i);
const dqi_target *dqi_burst_target(const dq_burst *b, uint32_t i);
// The loop in which packet i was replayed, from 0; 0 where nothing is kept.
uint32_t dqi_burst_loop(const dq_burst *b, uint32_t i);
// What is known of packet i of `from` is known of packet k of `to`.
void dqi_burst_copy_peer(const dq_burst *to, uint32_t k, const dq_burst *from, uint32_t i);

#endif
