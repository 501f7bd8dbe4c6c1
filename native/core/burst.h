// burst.h: bursts, their pools, and the operations of engines and stages on them.
#ifndef DQI_BURST_H
#define DQI_BURST_H

#include "core/core.h"
#include "core/dq_burst.h"
#include "core/origin.h"
#include "core/region.h"

#include <string.h>

// Checksum offload of a burst's packets: the device computes the IPv4 and the transport checksum.
typedef struct dqi_sums {
    uint8_t has;    // DQ_HAS_IPV4 or DQ_HAS_IPV6, with DQ_HAS_UDP or DQ_HAS_TCP; 0: no offload
    uint8_t l2_len; // bytes before the IP header, the same in all packets
    uint8_t l3_len; // bytes of the IP header, likewise
} dqi_sums;

// Immediate value of an RDMA message, and what it came with: a message, or a write to memory of the receiver,
// which leaves a packet without bytes.
enum dqi_imm_of { DQI_IMM_NONE, DQI_IMM_SEND, DQI_IMM_WRITE };
typedef struct dqi_imm {
    uint32_t value; // in host order
    uint32_t of;    // dqi_imm_of
} dqi_imm;

// A burst owns the buffers bufs[seg][0..n_bufs), or references its parent (a selection owns no buffers).
// Where each packet has its own buffer, bufs[seg][i] is packet i's and n_bufs == n, or more if packets were
// truncated while the burst was shared; with super-buffers the two lists are independent.
struct dq_burst {
    _Atomic uint32_t refs;
    uint32_t n, cap, n_bufs, nseg, flags, conn;
    int32_t clock;
    int64_t time_origin; // in ts: origin of the receive times that scripts see
    bool slices;         // packets are slices of super-buffers
    bool payload;        // packets are payloads without headers, of a socket's queue
    // NULL: the columns are filled. Else off[0][0..n) holds engine handles, len, flow and bufs are unset, and
    // only ts[0] is valid, for the first same_ts packets; readable by the thread of the one reference only.
    // The function fills the columns (empty where a handle is NULL) and sets this to NULL.
    void (*to_columns)(dq_burst *b);
    uint32_t shortest, longest; // packet lengths in bytes; valid while to_columns is set
    uint32_t same_ts;           // while to_columns is set: packets received with the first one, at ts[0]
    bool grown;                 // a packet starts in the headroom and is longer than its buffer
    bool holes;                 // some segments of length 0 were freed and stay empty
    uint8_t device_only;        // bit s: the CPU can't read segment s
    bool heads; // whole packets lie in GPU memory; head and head_len describe the copy on the host
    uint64_t bytes;
    dq_session *session;
    dq_queue *queue;               // queue that received it, or that it was allocated for
    dqi_burst_pool *home;          // pool of its descriptor
    dq_burst *parent;              // of a selection, else NULL
    const dq_aggregate *aggregate; // of a reordered burst, else NULL
    int64_t due_ns;                // wire: earliest delivery time
    uint64_t *off[DQ_MAX_SEGS];
    uint32_t *len[DQ_MAX_SEGS];
    uint32_t *bufs[DQ_MAX_SEGS];
    uint64_t *head; // head and head_len: NULL where no queue of the session has heads
    uint32_t *head_len;
    uint32_t *flow;
    int64_t *ts;
    int64_t *tx_time; // valid if timed
    bool timed;
    dqi_origin *origin; // per packet, valid if origins; NULL: the session replays no capture
    bool origins;
    dqi_imm *imm; // per packet, valid if imms; NULL: no engine of the session carries immediates
    bool imms;
    dqi_sums sums; // if allocated for a queue with device_sums
};

// Allocates n descriptors of cap packets and nseg segments each. NULL: no memory.
dqi_burst_pool *dqi_burst_pool_new(dq_session *s, uint32_t n, uint32_t cap, uint32_t nseg);
void dqi_burst_pool_free(dqi_burst_pool *p);
uint32_t dqi_burst_pool_level(dqi_burst_pool *p); // free descriptors
// Reports whether all descriptors are in the pool. Any thread.
bool dqi_burst_pool_whole(dqi_burst_pool *p);
// Takes an empty burst with one reference from the pool; NULL: none is free. Any thread.
dq_burst *dqi_burst_get(dqi_burst_pool *p);
// Allocates n buffers of each of the regions for b (empty) and sets off; the caller fills the other columns.
// Returns DQ_OK or DQ_NO_FREE_PACKET_BUFFERS.
int dqi_burst_fill(dq_burst *b, dq_region *const *regions, uint32_t nseg, uint32_t n);
// Moves packets [first, first + n) of src, with their buffers, to the end of dst. src must have one reference
// and no slices; dst must have room.
void dqi_burst_move(dq_burst *dst, dq_burst *src, uint32_t first, uint32_t n);
// Copies the clock and time origin of src's receive times to dst.
static inline void dqi_burst_take_clock(dq_burst *dst, const dq_burst *src) {
    dst->clock = src->clock;
    dst->time_origin = src->time_origin;
}
static inline bool dqi_burst_exclusive(const dq_burst *b) { return dqi_load_acq32(&b->refs) == 1; }
// Reports whether b owns its buffers, one per packet, and has a single reference: they can be detached.
static inline bool dqi_burst_detachable(const dq_burst *b) {
    return dqi_burst_exclusive(b) && !b->parent && !b->slices && b->n_bufs == b->n;
}
// Fills the columns of a burst that still has handles. Caller: the only reference. Before columns are read.
static inline void dqi_burst_columns(dq_burst *b) {
    if (b->to_columns) b->to_columns(b);
}
// Reports whether the packet's segment was freed, or may have been: its buffer may be in use elsewhere.
static inline bool dqi_burst_hole(const dq_burst *b, uint32_t seg, uint32_t i) {
    return b->holes && b->len[seg][i] == 0;
}

// Returns the base address of `off` for CPU-readable segments.
static inline const uint8_t *dqi_burst_base(const dq_burst *b) { return dqi_core_of(b->session)->base; }
// Returns the address of segment seg of packet i. Not for device-only segments.
static inline uint8_t *dqi_bytes(const dq_burst *b, uint32_t seg, uint32_t i) {
    return dqi_core_of(b->session)->base + b->off[seg][i];
}
// The CPU-readable part of the first segment: dqi_seen_len(b)[i] bytes of packet i at base + dqi_seen(b)[i].
static inline const uint64_t *dqi_seen(const dq_burst *b) { return b->heads ? b->head : b->off[0]; }
static inline const uint32_t *dqi_seen_len(const dq_burst *b) { return b->heads ? b->head_len : b->len[0]; }
static inline const uint8_t *dqi_seen_bytes(const dq_burst *b, uint32_t i) {
    return dqi_core_of(b->session)->base + dqi_seen(b)[i];
}
// Returns the address of a segment as a device uses it: a GPU, or an engine that emulates one.
uint8_t *dqi_device_bytes(const dq_burst *b, uint32_t seg, uint32_t i);
// Returns a bitmap of the device-only segments of a queue with these regions.
static inline uint32_t dqi_device_only(dq_region *const *regions, uint32_t nseg) {
    uint32_t device_only = 0;
    for (uint32_t s = 0; s < nseg; s++)
        device_only |= (uint32_t)!regions[s]->cpu << s;
    return device_only;
}

// Adds a reference without filling columns.
static inline void dqi_burst_hold(dq_burst *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}
// Fills *out like dq_burst_view, without filling columns.
void dqi_burst_view_raw(dq_burst *b, dq_view *out);
// Returns the bytes of packets [first, first + n), all segments.
uint64_t dqi_burst_sum(const dq_burst *b, uint32_t first, uint32_t n);
// Returns the bytes of packet i, all segments.
static inline uint32_t dqi_packet_len(const dq_burst *b, uint32_t i) {
    uint32_t len = 0;
    for (uint32_t s = 0; s < b->nseg; s++)
        len += b->len[s][i];
    return len;
}
// Records the capture's metadata of packet i.
void dqi_burst_set_origin(dq_burst *b, uint32_t i, const dqi_origin *origin);
// Records the immediate value of packet i. Only in sessions with an engine that carries immediates, except
// DQI_IMM_NONE.
void dqi_burst_set_imm(dq_burst *b, uint32_t i, dqi_imm imm);
// Copies the immediates of packets [first, first + n) of src to dst, from packet `at` on.
void dqi_burst_copy_imms(dq_burst *dst, uint32_t at, const dq_burst *src, uint32_t first, uint32_t n);
// Returns the immediate value of packet i.
static inline dqi_imm dqi_burst_imm(const dq_burst *b, uint32_t i) {
    return b->imms ? b->imm[i] : (dqi_imm){0, DQI_IMM_NONE};
}
static inline uint32_t dqi_cut_of(const dq_burst *b, uint32_t i) { return b->origins ? b->origin[i].cut : 0; }
static inline const dqi_remark *dqi_remark_of(const dq_burst *b, uint32_t i) {
    return b->origins ? b->origin[i].remark : NULL;
}
// Swaps packets i and k of a burst that owns its buffers, one per packet.
void dqi_burst_swap(dq_burst *b, uint32_t i, uint32_t k);
// Allocates ids of buffers of each region for up to n packets at the end of b; returns the number.
uint32_t dqi_burst_take(dq_burst *b, dq_region *const *regions, uint32_t n);
// Returns the burst that owns the buffers of b's packets: b, or the burst that it was selected from.
static inline dq_burst *dqi_burst_owner(const dq_burst *b) {
    return b->parent ? b->parent : (dq_burst *)(uintptr_t)b;
}
// Marks b as shared, before another reader can see it: from then on its columns and packets are read-only,
// through every burst that refers to them.
void dqi_burst_share(dq_burst *b);
// Reports whether only the caller's thread can reach the packets' bytes.
bool dqi_burst_writable(const dq_burst *b);
// Copies a packet's bytes. Lengths of 32 to 64, the most common, are copied as two overlapping halves inline.
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
