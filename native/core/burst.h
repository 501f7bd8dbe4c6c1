// burst.h: bursts, their pools, and what engines and stages do with them.
#ifndef DQI_BURST_H
#define DQI_BURST_H

#include "core/dq_burst.h"
#include "core/origin.h"
#include "core/region.h"
#include "core/session.h"

#include <string.h>

// The checksums of a burst's packets that the device is to compute: of IPv4 and of the transport behind it.
typedef struct dqi_sums {
    uint8_t has;    // DQ_HAS_IPV4 or DQ_HAS_IPV6, with DQ_HAS_UDP or DQ_HAS_TCP; 0: they are in the packets
    uint8_t l2_len; // bytes before the IP header,
    uint8_t l3_len; // and of it, in all packets
} dqi_sums;

// A burst owns the buffers bufs[seg][0..n_bufs), or holds its parent (a selection owns none). Where each
// packet has a buffer of its own, bufs[seg][i] is packet i's and n_bufs == n, or more where packets were cut
// off that another holder could reach; with super-buffers the two lists are independent.
struct dq_burst {
    _Atomic uint32_t refs;
    uint32_t n, cap, n_bufs, nseg, flags, conn;
    int32_t clock;
    int64_t time_origin; // in ts: what scripts count receive times from
    bool slices;         // packets are slices of super-buffers
    bool payload;        // packets are payloads without headers, of a socket's queue
    // NULL: the columns are there. Else off[0][0..n) holds handles of the engine of its queue, len, flow and
    // bufs nothing yet, and ts no more than ts[0] of the first same_ts; its one holder may look, and no other
    // thread. The function fills the columns, empty where a handle is NULL, and sets this to NULL.
    void (*to_columns)(dq_burst *b);
    uint32_t shortest, longest; // bytes; where to_columns: of its packets
    uint32_t same_ts;           // where to_columns: packets that came with the first, at ts[0]
    bool grown;                 // a packet begins in the headroom and is longer than its buffer
    bool holes;                 // some packets' segments of length 0 were freed, and stay empty
    uint8_t device_only;        // bit s: segment s lies where the CPU can't read it
    bool heads; // packets lie on a GPU whole, and head and head_len say what the host has of them
    uint64_t bytes;
    dq_session *session;
    dq_queue *queue;               // that received it, or that it was allocated for
    dqi_burst_pool *home;          // where its descriptor returns
    dq_burst *parent;              // of a selection
    const dq_aggregate *aggregate; // of a reordered burst; NULL
    int64_t due_ns;                // wire: not before this time
    uint64_t *off[DQ_MAX_SEGS];
    uint32_t *len[DQ_MAX_SEGS];
    uint32_t *bufs[DQ_MAX_SEGS];
    uint64_t *head; // these two: NULL where no queue of the session has heads
    uint32_t *head_len;
    uint32_t *flow;
    int64_t *ts;
    int64_t *tx_time; // values where timed
    bool timed;
    dqi_origin *origin; // where origins: of each packet. NULL: the session replays no capture
    bool origins;
    dqi_sums sums; // of a burst made for a queue with device_sums
};

// n descriptors of cap packets and nseg segments each. NULL: no memory.
dqi_burst_pool *dqi_burst_pool_new(dq_session *s, uint32_t n, uint32_t cap, uint32_t nseg);
void dqi_burst_pool_free(dqi_burst_pool *p);
uint32_t dqi_burst_pool_level(dqi_burst_pool *p); // free descriptors
// An empty burst with one reference, or NULL. Any thread.
dq_burst *dqi_burst_get(dqi_burst_pool *p);
// Allocates n buffers of each of the regions for b (empty) and sets off; the other columns are the caller's
// to fill. DQ_OK or DQ_NO_FREE_PACKET_BUFFERS.
int dqi_burst_fill(dq_burst *b, dq_region *const *regions, uint32_t nseg, uint32_t n);
// Moves packets [first, first + n) of src, with their buffers, to the end of dst. src must be owned alone,
// without slices; dst must have room.
void dqi_burst_move(dq_burst *dst, dq_burst *src, uint32_t first, uint32_t n);
// Has dst's receive times be of src's clock.
static inline void dqi_burst_take_clock(dq_burst *dst, const dq_burst *src) {
    dst->clock = src->clock;
    dst->time_origin = src->time_origin;
}
static inline bool dqi_burst_exclusive(const dq_burst *b) { return dqi_load_acq32(&b->refs) == 1; }
// True when b's buffers are its own, one for each packet, and nobody else holds it: they may go on without
// it.
static inline bool dqi_burst_detachable(const dq_burst *b) {
    return dqi_burst_exclusive(b) && !b->parent && !b->slices && b->n_bufs == b->n;
}
// Fills the columns of a burst that came as handles: before they are read. Its holder.
static inline void dqi_burst_columns(dq_burst *b) {
    if (b->to_columns) b->to_columns(b);
}
// The packet's segment was freed, or may have been: its buffer can be somebody else's.
static inline bool dqi_burst_hole(const dq_burst *b, uint32_t seg, uint32_t i) {
    return b->holes && b->len[seg][i] == 0;
}

// What off of segments that the CPU can read is from.
static inline const uint8_t *dqi_burst_base(const dq_burst *b) { return b->session->base; }
// Where segment seg of packet i begins. Nobody asks for one that the CPU can't read.
static inline uint8_t *dqi_bytes(const dq_burst *b, uint32_t seg, uint32_t i) {
    return b->session->base + b->off[seg][i];
}
// What the CPU can read of the first segment: of packet i dqi_seen_len(b)[i] bytes at base + dqi_seen(b)[i].
static inline const uint64_t *dqi_seen(const dq_burst *b) { return b->heads ? b->head : b->off[0]; }
static inline const uint32_t *dqi_seen_len(const dq_burst *b) { return b->heads ? b->head_len : b->len[0]; }
static inline const uint8_t *dqi_seen_bytes(const dq_burst *b, uint32_t i) {
    return b->session->base + dqi_seen(b)[i];
}
// Where a device finds a segment: a GPU, or an engine that stands for one.
uint8_t *dqi_device_bytes(const dq_burst *b, uint32_t seg, uint32_t i);
// The segments of a queue with these regions that the CPU can't read, a bit each.
static inline uint32_t dqi_device_only(dq_region *const *regions, uint32_t nseg) {
    uint32_t device_only = 0;
    for (uint32_t s = 0; s < nseg; s++)
        device_only |= (uint32_t)!regions[s]->cpu << s;
    return device_only;
}

// One holder more of a burst that goes on without being looked at.
static inline void dqi_burst_hold(dq_burst *b) {
    atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
}
// dq_burst_view without filling columns.
void dqi_burst_view_raw(dq_burst *b, dq_view *out);
// Bytes of packets [first, first + n), all segments.
uint64_t dqi_burst_sum(const dq_burst *b, uint32_t first, uint32_t n);
// Bytes of packet i, all segments.
static inline uint32_t dqi_packet_len(const dq_burst *b, uint32_t i) {
    uint32_t len = 0;
    for (uint32_t s = 0; s < b->nseg; s++)
        len += b->len[s][i];
    return len;
}
// Notes what a capture says of packet i.
void dqi_burst_set_origin(dq_burst *b, uint32_t i, const dqi_origin *origin);
static inline uint32_t dqi_cut_of(const dq_burst *b, uint32_t i) { return b->origins ? b->origin[i].cut : 0; }
static inline const dqi_remark *dqi_remark_of(const dq_burst *b, uint32_t i) {
    return b->origins ? b->origin[i].remark : NULL;
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
