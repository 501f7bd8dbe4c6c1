// dq_burst.h: bursts: reference-counted batches of packets with columns.
#ifndef DQ_BURST_H
#define DQ_BURST_H

#include "core/dq_core.h"

#define DQ_BURST_REORDERED       (1u << 28)
#define DQ_BURST_REORDER_TIMEOUT (1u << 29)
#define DQ_BURST_DIRECT_PLACED   (1u << 30) // of a stage with a ring (dq_reorder_conf)
#define DQ_BURST_SHARED          (1u << 0)  // another reader may have it: its packets are read-only

#define DQ_HEAD 128 // bytes of a packet in GPU memory that the host has a copy of

// Sources of a queue's receive timestamps. Names: dq_stamps_name.
typedef enum dq_stamps {
    DQ_STAMPS_SOFTWARE, // the session's clock, when the engine read the packet
    DQ_STAMPS_KERNEL,   // when the kernel got the packet from its driver
    DQ_STAMPS_HARDWARE, // the network device
    DQ_STAMPS_VIRTUAL,  // the simulated wire
    DQ_STAMPS_FILE,     // a capture
    DQ_STAMPS
} dq_stamps;
const char *dq_stamps_name(int stamps);

enum dq_aggregate_flags {
    DQ_AGGREGATE_TIMEOUT = 1 << 0, // its timeout expired
    DQ_AGGREGATE_PUSHED = 1 << 1,  // a newer batch needed its place in the window
    DQ_AGGREGATE_FIRST = 1 << 2,   // the stream started in it: packets missing before are not counted as lost
    DQ_AGGREGATE_STOPPED = 1 << 3, // the session stopped: packets missing after are not counted as lost
};

// Description of an aggregate, the one packet of a burst with DQ_BURST_REORDERED: the payloads of one batch,
// each at its place. Its data are slots * slot_bytes bytes of the output's type. A cell is the smallest part
// that can be missing: a whole slot, or one of the equal parts of a slot that packets fill by an offset.
typedef struct dq_aggregate {
    uint64_t batch_id; // number in the packets
    uint64_t ordinal;  // batch_id extended across wraps of the packets' number
    uint32_t slots, slot_bytes;
    uint32_t cells, cell_bytes; // cells of the whole batch
    uint32_t present_cells;
    uint32_t packets; // packets placed
    int32_t dtype;    // dq_dtype of the data
    uint32_t flags;   // dq_aggregate_flags
    int32_t fill;     // byte value of missing cells; DQ_FILL_KEEP: the buffer's old content
    int64_t first_ns,
        last_ns;             // receive times of the packets that opened and closed it, in the burst's clock
    const uint64_t *present; // bitmap: bit c % 64 of word c / 64: cell c is present
    const uint64_t *extra;   // one number per slot, 0 if it is missing; NULL: no rule for it
    uint64_t on_gpu;         // GPU address of a copy of present, followed by extra; 0: no copy
    const uint64_t *items;   // of a heap: distinct items of its packets' lists, as numbers
    uint32_t n_items;
} dq_aggregate;

typedef enum dq_clock_id { DQ_CLOCK_REALTIME, DQ_CLOCK_VIRTUAL, DQ_CLOCK_FILE } dq_clock_id;

// A burst's columns. Pointers are valid while the caller's reference lasts; segment s of packet i is the
// len[s][i] bytes at base + off[s][i].
typedef struct dq_view {
    uint8_t *base;
    uint32_t n, nseg, flags;
    int32_t clock;       // dq_clock_id of ts
    int64_t time_origin; // in ts: the session's start, or the first packet of the capture; 0: none
    // Flags of the burst that owns the packets' buffers: packets are read-only if flags or *owner_flags
    // contain DQ_BURST_SHARED.
    const uint32_t *owner_flags;
    uint32_t conn; // connection; 0: none
    uint64_t bytes;
    uint32_t device_only; // bit s: segment s is device-only: its off is not a CPU address
    // For whole packets in GPU memory: the first head_len[i] bytes, at most DQ_HEAD, at base + head[i],
    // read-only. NULL: segment 0 can be read in full.
    const uint64_t *head;
    const uint32_t *head_len;
    uint64_t *off[DQ_MAX_SEGS];
    uint32_t *len[DQ_MAX_SEGS];
    uint32_t *flow; // flow ids; 0: none
    int64_t *ts;    // receive times, ns; DQ_NO_TIME: none
    dq_queue *queue;
    dq_burst *handles; // in events only: pass it to dq_burst_columns before reading off, len, flow and ts;
                       // NULL: they are filled
} dq_view;

void dq_burst_view(dq_burst *b, dq_view *out);
// Returns the region with segment s of the burst's packets; NULL: none. Its columns must be filled.
const dq_region *dq_burst_region(const dq_burst *b, uint32_t s);
// Fills the columns of a burst that its engine delivered as handles. All other calls that need columns do so
// themselves. Caller: the only reference.
void dq_burst_columns(dq_burst *b);
// Returns the column of requested send times, ns since the epoch, 0: at once; the first call zeroes it. NULL
// if the burst is read-only.
int64_t *dq_burst_times(dq_burst *b);
// Returns a reorder stage's description of its burst, else NULL. Valid while a reference lasts.
const dq_aggregate *dq_burst_aggregate(const dq_burst *b);

void dq_burst_ref(dq_burst *b);
// Drops one reference; the last returns buffers and descriptor to their pools. Any thread.
void dq_burst_unref(dq_burst *b);
// Prepares b, whose reference the caller passes, for being kept for long: if its packets use less than a
// quarter of their super-buffers, they are copied to super-buffers shared by kept packets. *out: the burst to
// use instead, b or its replacement. Any thread.
void dq_burst_compact(dq_burst *b, dq_burst **out);
// Writes the source address of packet i, "192.0.2.1:7148" or "[2001:db8::1]:7148"; empty: it has none.
void dq_burst_peer(const dq_burst *b, uint32_t i, char *buf, size_t len);
// Returns in *value the immediate value of packet i, an RDMA message; false: it has none.
bool dq_burst_imm(const dq_burst *b, uint32_t i, uint32_t *value);
// Sets lengths of segment seg: len for all packets (i < 0) or of packet i. INVALID_PARAMETER if it exceeds a
// buffer or the burst.
int dq_burst_set_len(dq_burst *b, uint32_t seg, int64_t i, uint32_t len);
// Keeps the first n packets and frees the others' buffers. INVALID_PARAMETER when n > burst's n.
int dq_burst_truncate(dq_burst *b, uint32_t n);
// Free one packet, one segment of all packets, or one segment of one packet (DAQIRI's partial frees): lengths
// become 0.
int dq_burst_free_packet(dq_burst *b, uint32_t i);
int dq_burst_free_segment(dq_burst *b, uint32_t seg);
int dq_burst_free_packet_segment(dq_burst *b, uint32_t seg, uint32_t i);

// Creates a burst of the packets idx[0..n), which references b's buffers. INVALID_PARAMETER if an index is
// outside the burst, NO_FREE_BURST_BUFFERS if no descriptor is free.
int dq_burst_pick(dq_burst *b, const uint32_t *idx, uint32_t n, dq_burst **out);

// Directs the packets of b, whose reference the caller passes, to this connection (0: the interface's default
// peer). *out: the burst to use instead: b, or, if b has other references, a new burst that references it.
// NO_FREE_BURST_BUFFERS: no descriptor is free, and b is unchanged.
int dq_burst_redirect(dq_burst *b, uint32_t conn, dq_burst **out);

#endif
