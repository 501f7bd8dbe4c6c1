// dq_burst.h: bursts: batches of packets with columns, reference-counted.
#ifndef DQ_BURST_H
#define DQ_BURST_H

#include "core/dq_core.h"

#define DQ_BURST_REORDERED       (1u << 28)
#define DQ_BURST_REORDER_TIMEOUT (1u << 29)
#define DQ_BURST_SHARED          (1u << 0) // somebody else may read it: its packets are read-only

#define DQ_HEAD 128 // bytes of a packet that lies on a GPU whole which the host has, too

// Where the receive times of a queue come from. Words in dq_stamps_name.
typedef enum dq_stamps {
    DQ_STAMPS_SOFTWARE, // the session's clock, when the packet was taken in
    DQ_STAMPS_KERNEL,   // when the kernel got the packet from its driver
    DQ_STAMPS_HARDWARE, // the network device
    DQ_STAMPS_VIRTUAL,  // the simulated wire
    DQ_STAMPS_FILE,     // a capture
    DQ_STAMPS
} dq_stamps;
const char *dq_stamps_name(int stamps);

enum dq_aggregate_flags {
    DQ_AGGREGATE_TIMEOUT = 1 << 0, // its time was up
    DQ_AGGREGATE_PUSHED = 1 << 1,  // a newer batch needed its place in the window
    DQ_AGGREGATE_FIRST = 1 << 2,   // the stream was joined in it: what came before is no loss
    DQ_AGGREGATE_STOPPED = 1 << 3, // the session stopped: what would have come is no loss
};

// What is known of an aggregate, the one packet of a burst with DQ_BURST_REORDERED: the payloads of one
// batch, each at its place. Its data are slots * slot_bytes long, of the output's type. A cell is the
// smallest part that comes or is missing: a whole slot, or one of the equal parts of a slot that packets fill
// by an offset.
typedef struct dq_aggregate {
    uint64_t batch_id; // as the packets have it
    uint64_t ordinal;  // the same, going on where the packets' number wraps
    uint32_t slots, slot_bytes;
    uint32_t cells, cell_bytes; // cells of the whole batch
    uint32_t present_cells;
    uint32_t packets; // that were placed
    int32_t dtype;    // dq_dtype of the data
    uint32_t flags;   // dq_aggregate_flags
    int32_t fill;     // the byte that missing cells have; DQ_FILL_KEEP: what the buffer had
    int64_t first_ns,
        last_ns; // receive times of the packets that opened and that ended it, in the burst's clock
    const uint64_t *present; // bit c % 64 of word c / 64: cell c is there
    const uint64_t *extra;   // a number for each slot, 0 where nothing came; NULL: there is no rule for it
    uint64_t on_gpu;       // where the GPU that has the data has present, and extra behind it; 0: it has not
    const uint64_t *items; // of a heap: items of its packets' lists, each once, as numbers
    uint32_t n_items;
} dq_aggregate;

typedef enum dq_clock_id { DQ_CLOCK_REALTIME, DQ_CLOCK_VIRTUAL, DQ_CLOCK_FILE } dq_clock_id;

// A burst's columns. Pointers are valid while the caller's reference lasts; packet i segment s is the
// len[s][i] bytes at base + off[s][i].
typedef struct dq_view {
    uint8_t *base;
    uint32_t n, nseg, flags;
    int32_t clock;       // dq_clock_id of ts
    int64_t time_origin; // in ts: the session's start, or the first packet of the capture; 0: it has no time
    // Of the burst that owns the packets' buffers: where one of the two has DQ_BURST_SHARED, packets are
    // read-only.
    const uint32_t *owner_flags;
    uint32_t conn; // connection, 0: none
    uint64_t bytes;
    uint32_t device_only; // bit s: segment s lies in memory that the CPU can't read: its off leads nowhere
    // Of packets that lie on a GPU whole: the first head_len[i] bytes, up to DQ_HEAD, are at base + head[i],
    // to be read. NULL: the first segment is all that there is of it.
    const uint64_t *head;
    const uint32_t *head_len;
    uint64_t *off[DQ_MAX_SEGS];
    uint32_t *len[DQ_MAX_SEGS];
    uint32_t *flow; // flow ids, 0: none
    int64_t *ts;    // receive times, ns; DQ_NO_TIME: none
    dq_queue *queue;
    dq_burst *handles; // in an event only: dq_burst_columns is to be called with it before off, len, flow and
                       // ts are read; NULL: they are there
} dq_view;

void dq_burst_view(dq_burst *b, dq_view *out);
// Fills the columns of a burst that its engine left as handles, for one that is only sent on. What other
// calls need they fill themselves. Its holder.
void dq_burst_columns(dq_burst *b);
// The column of requested send times, ns since the epoch, 0: at once; the first call makes it, all zero. NULL
// where the burst is read-only.
int64_t *dq_burst_times(dq_burst *b);
// What a reorder stage says about its burst, NULL for any other burst. Valid while a reference lasts.
const dq_aggregate *dq_burst_aggregate(const dq_burst *b);

void dq_burst_ref(dq_burst *b);
// Drops one reference; the last returns buffers and descriptor to their pools. Any thread.
void dq_burst_unref(dq_burst *b);
// Prepares b, the caller's reference, for being held for long: when its packets are less than a quarter of
// the super-buffers that they keep from the others, they are copied to some that kept packets share. *out:
// the burst to go on with, b itself or one in its place. Any thread.
void dq_burst_compact(dq_burst *b, dq_burst **out);
// The address that packet i came from, as "192.0.2.1:7148" or "[2001:db8::1]:7148"; empty where the queue has
// none.
void dq_burst_peer(const dq_burst *b, uint32_t i, char *buf, size_t len);
// The immediate value that packet i, an RDMA message, came with; false: it came without.
bool dq_burst_imm(const dq_burst *b, uint32_t i, uint32_t *value);
// Sets lengths of segment seg: len for all packets (i < 0) or of packet i. INVALID_PARAMETER past the buffer
// or the burst.
int dq_burst_set_len(dq_burst *b, uint32_t seg, int64_t i, uint32_t len);
// Keeps the first n packets and returns the others' buffers. INVALID_PARAMETER when n > burst's n.
int dq_burst_truncate(dq_burst *b, uint32_t n);
// Frees one packet, one segment of all packets, or one segment of one packet (the reference's partial frees):
// lengths become 0.
int dq_burst_free_packet(dq_burst *b, uint32_t i);
int dq_burst_free_segment(dq_burst *b, uint32_t seg);
int dq_burst_free_packet_segment(dq_burst *b, uint32_t seg, uint32_t i);

// A burst of the packets idx[0..n): holds b. INVALID_PARAMETER past the burst, NO_FREE_BURST_BUFFERS when the
// queue has no descriptor left.
int dq_burst_pick(dq_burst *b, const uint32_t *idx, uint32_t n, dq_burst **out);

// Makes the packets of b, the caller's reference, go to this connection (0: the interface's default peer).
// *out: the burst to go on with, b itself, or where somebody else reads b one that holds it.
// NO_FREE_BURST_BUFFERS: there is none for that now, and b is as it was.
int dq_burst_redirect(dq_burst *b, uint32_t conn, dq_burst **out);

#endif
