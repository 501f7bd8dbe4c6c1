// region.h: regions of packet buffers in the session's arena (arena.h).
#ifndef DQI_REGION_H
#define DQI_REGION_H

#include "core/dq_core.h"
#include "core/atomics.h"

typedef struct dqi_pool dqi_pool;
typedef struct dqi_peer dqi_peer; // peers.h
typedef struct dqi_target dqi_target;
typedef struct dqi_gpu dqi_gpu; // cuda/gpu.h
typedef struct dqi_imm dqi_imm;

// A group whose buffers are given out one by one; its owner is a holder.
typedef struct dqi_spare {
    uint32_t id, used; // id: DQI_NO_BUF, none
} dqi_spare;

// A fixed pool of packet buffers. Buffer ids are unique in the session: first_id .. first_id + num_bufs - 1.
struct dq_region {
    dq_region_conf conf;
    dq_session *session;
    uint8_t *base;   // of the arena
    uint64_t offset; // of the region in the arena
    uint32_t stride;
    uint32_t headroom; // bytes before each packet: DQ_HEADROOM where queues use it, else 0
    uint32_t first_id;
    uint32_t want_bytes, want_least; // dqi_region_want_groups
    bool huge;                       // on huge pages
    bool cpu;                        // the CPU can read and write it, at base + offset
    dqi_pool *pool;
    // Holders of each super-buffer (UDP GRO, framed TCP); NULL where each buffer has one holder. Never in
    // packet memory.
    _Atomic uint32_t *holders;
    // Groups: the pool hands buffers out `group` at a time, under the first one's id, so that packets may lie
    // across them; 1: it doesn't. across[k]: they do so in group k, and have one peer.
    uint32_t group, n_groups;
    uint8_t *across;
    _Atomic(dqi_peer *) peers;     // one a buffer; NULL: the region keeps none
    _Atomic(dqi_target *) targets; // the same
    _Atomic(dqi_imm *) imms;       // the same
    _Atomic(uint32_t *) loops;     // the same
    uint8_t *device;               // where a device reaches it, or what stands for one; NULL: as the CPU does
    dqi_gpu *gpu;                  // in whose memory it lies; NULL: in the host's
    bool whole;                    // a queue receives packets whole into a GPU's memory
    uint8_t *heads; // then: pages of the host with the first bytes of each buffer's packet, DQ_HEAD each
    dqi_spin spare_lock;
    dqi_spare spare; // kept packets are copied there
};

#define DQI_NO_BUF UINT32_MAX

// Takes n buffer ids from the region; all or none: n or 0. Any thread.
uint32_t dqi_bufs_alloc(dq_region *r, uint32_t *ids, uint32_t n);
// The same, but as many as there are.
uint32_t dqi_bufs_some(dq_region *r, uint32_t *ids, uint32_t n);
// Returns buffers (DQI_NO_BUF skipped; super-buffers lose one holder). Regions may be mixed. Any thread.
void dqi_bufs_free(dq_session *s, const uint32_t *ids, uint32_t n);
dq_region *dqi_buf_region(const dq_session *s, uint32_t id);
// Adds a holder to a buffer of a region with a side array. The caller holds it already.
void dqi_buf_hold(dq_region *r, uint32_t id);
// Gives the region a side array; before open.
int dqi_region_share(dq_region *r, dq_diag *diag);
// Asks for groups of at least so many bytes behind one headroom, and for `least` of them: fewer, and the
// region stays as it is. Before the arena is laid out.
void dqi_region_want_groups(dq_region *r, uint32_t bytes, uint32_t least);
// The next buffer of *s, from a new group where that one has no more, or DQI_NO_BUF. The caller adds a holder
// to its group. One caller at a time.
uint32_t dqi_spare_take(dq_region *r, dqi_spare *s);
// The first buffer of the group that a buffer is in.
static inline uint32_t dqi_group_of(const dq_region *r, uint32_t id) {
    return id - (id - r->first_id) % r->group;
}
// Where a packet in buffer id starts: arena offset just after the headroom.
static inline uint64_t dqi_buf_off(const dq_region *r, uint32_t id) {
    return r->offset + (uint64_t)(id - r->first_id) * r->stride + r->headroom;
}

#define DQI_MIN_ALIGN 64 // bytes: a cache line

// v, or the next multiple of `to` above it.
static inline uint64_t dqi_round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }
// Bytes of a page of the usual size.
uint32_t dqi_page_size(void);
#define DQI_HUGE_PAGE (2u << 20) // bytes of the huge pages that are asked for
// Bytes from buffer to buffer, of buf_size bytes behind the headroom, a multiple of align. Without a headroom
// buffers begin at multiples of the largest power of two in buf_size, up to a page.
uint32_t dqi_stride(uint32_t buf_size, uint32_t headroom, uint32_t align);
// Settles the stride and the groups of a region, before the arena is laid out.
int dqi_region_size(dq_region *r, uint32_t align, dq_diag *diag);
// Fills the pools of all regions, once the arena is laid out.
int dqi_pools_fill(dq_session *s, dq_diag *diag);
// Frees all regions; the number of buffers that were not in their pools.
uint64_t dqi_regions_free(dq_session *s);
// From now on buffers that are taken together lie one behind the other, ascending. Once, at the open.
void dqi_region_ascend(dq_region *r);
// The buffers, or groups, in the region's pool. Any thread.
uint32_t dqi_region_level(const dq_region *r);
// Bytes that the region takes in the arena.
static inline uint64_t dqi_region_bytes(const dq_region *r) {
    return (uint64_t)r->stride * r->group * r->n_groups;
}
// Whether this arena offset lies in the region.
static inline bool dqi_region_has(const dq_region *r, uint64_t off) {
    return off - r->offset < dqi_region_bytes(r);
}
// The region that holds this arena offset, or NULL.
dq_region *dqi_off_region(const dq_session *s, uint64_t off);

#endif
