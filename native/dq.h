// dq.h: the public face of the native engine and the only header that cgo sees.
//
// A session owns regions (pools of packet buffers in one arena), interfaces with receive and transmit queues,
// stages joined into pipes, and the worker threads that serve them. Packets travel as bursts:
// reference-counted batches with columns (segments, lengths, flow ids, times). C never calls Go; Go keeps C
// pointers only inside handles.
//
// Conventions: set-up calls return 0 (DQ_OK) or a negative dq_err and write the thing at fault into a
// dq_diag. Burst calls return n >= 0 or a negative dq_err and format nothing. Times are int64 nanoseconds
// since the Unix epoch in the session's clock. "Owner's thread" means the one thread that polls the queue:
// its worker, or, in direct mode, the task that adopted it.
#ifndef DQ_H
#define DQ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dq_prog.h"

#define DQ_MAX_SEGS    4
#define DQ_MAX_QUEUES  32
#define DQ_NAME_LEN    64
#define DQ_ADDRESS_LEN 1024
#define DQ_HEADROOM    128 // bytes before each packet, for headers pushed later and for the peer's address

// Status of a call. The first eleven are the reference's; a system error is DQ_ESYS - errno.
typedef enum dq_err {
    DQ_OK = 0,
    DQ_NULL_PTR = -1,
    DQ_NO_FREE_BURST_BUFFERS = -2,
    DQ_NO_FREE_PACKET_BUFFERS = -3,
    DQ_NOT_READY = -4,
    DQ_INVALID_PARAMETER = -5,
    DQ_NO_SPACE_AVAILABLE = -6,
    DQ_NOT_SUPPORTED = -7,
    DQ_GENERIC_FAILURE = -8,
    DQ_CONNECT_FAILURE = -9,
    DQ_INTERNAL_ERROR = -10,
    DQ_ESYS = -1000,
} dq_err;

// The object at fault and what to do, in words; empty after success.
typedef struct dq_diag {
    char text[512];
} dq_diag;

typedef struct dq_session dq_session;
typedef struct dq_region dq_region;
typedef struct dq_iface dq_iface;
typedef struct dq_queue dq_queue;
typedef struct dq_burst dq_burst;
typedef struct dq_stage dq_stage;
typedef struct dq_pipe dq_pipe;
typedef struct dq_write dq_write;
typedef struct dq_waiter dq_waiter;
typedef struct dq_template dq_template;
typedef struct dq_prog dq_prog;

// ---- the end of a process that can't end by itself (witness.c)
// ---------------------------------------------

#define DQ_EXIT_FATAL 70

// A witness is this program under this name, with a socket and two files with records. Of those the one with
// the higher number counts; 0: it is being written.
#define DQ_WITNESS_NAME    "daqiri-run: witness"
#define DQ_WITNESS_SOCKET  3
#define DQ_WITNESS_RECORDS 4

// The parts of a record: what is shown, the path of a JSON file (with its 0) and what it is to hold after a
// fatal error and after SIGKILL, and the paths of files that were being written (each with its 0).
enum { DQ_LAST_TEXT, DQ_LAST_PATH, DQ_LAST_FATAL, DQ_LAST_KILLED, DQ_LAST_FILES, DQ_LAST_PARTS };

typedef struct dq_last_record {
    uint64_t number;
    int64_t mono_ns; // when it was made, on CLOCK_MONOTONIC
    uint64_t len[DQ_LAST_PARTS];
    // the parts follow
} dq_last_record;

// From the first call on SIGABRT ends the process with that code (faults in C do from the start on, and with
// GOTRACEBACK=crash neither does). fd: the socket whose other end a witness has, which hears of it; -1: there
// is none.
void dq_witness(int fd);

// The least memory limit, in bytes, of this process's control groups; UINT64_MAX: none. *file, of n bytes:
// where it stands. Reads files.
uint64_t dq_cgroup_memory(char *file, size_t n);

// The name of a status ("NO_SPACE_AVAILABLE"), or strerror's words for a system error. Static or thread-local
// text.
const char *dq_err_name(int err);

// ---- session ----------------------------------------------------------------------------------------------

// The wire between the loop interfaces of a session. Probabilities are 0..1; 0 in rate_bps means unlimited.
typedef struct dq_wire_conf {
    double loss, dup, reorder, corrupt;
    int64_t delay_ns;
    uint64_t rate_bps;
} dq_wire_conf;

typedef struct dq_session_conf {
    int32_t virtual_clock;    // 1: no threads; time moves by dq_advance only
    uint64_t seed;            // of the wire's faults
    int64_t start_ns;         // time at the start; real clock, 0: the wall clock's
    int64_t mono_ns;          // real clock: when start_ns was read, by CLOCK_MONOTONIC; 0: just now
    uint32_t rx_meta_buffers; // burst descriptors of each receive queue
    uint32_t tx_meta_buffers; // and of each transmit queue
    dq_wire_conf wire;
} dq_session_conf;

typedef enum dq_kind { DQ_KIND_HOST, DQ_KIND_HUGE, DQ_KIND_HOST_PINNED, DQ_KIND_DEVICE } dq_kind;

typedef struct dq_region_conf {
    char name[DQ_NAME_LEN];
    int32_t kind;     // dq_kind
    int32_t affinity; // NUMA node, -1: any
    uint32_t num_bufs;
    uint32_t buf_size; // bytes usable in each buffer
} dq_region_conf;

typedef enum dq_proto { DQ_PROTO_NONE, DQ_PROTO_UDP, DQ_PROTO_TCP } dq_proto;
typedef enum dq_framing { DQ_FRAMING_NONE, DQ_FRAMING_FIXED, DQ_FRAMING_PREFIX } dq_framing;

// What a socket interface needs. Hosts are names or addresses, resolved at open; port 0 local = any free
// port.
typedef struct dq_socket_conf {
    int32_t proto;  // dq_proto
    int32_t server; // 1: bind (and listen)
    char local_host[256];
    char remote_host[256];
    uint16_t local_port, remote_port;
    uint32_t max_payload; // bytes; 0: the buffer size
    int32_t retry_connect_s;
    int32_t framing;        // dq_framing, TCP only
    uint32_t framing_bytes; // FIXED: message bytes; PREFIX: width of the length, 1, 2, 4 or 8
    int32_t framing_le;     // PREFIX: little endian
    int32_t framing_incl;   // PREFIX: the length counts the prefix itself
} dq_socket_conf;

// How a capture is replayed (engine pcap): with its own gaps divided by speed, or at bps (of frames, without
// FCS), or at pps; flat out where all are 0.
typedef struct dq_replay_conf {
    double speed, bps, pps;
    uint64_t loops; // 0: without end
} dq_replay_conf;

typedef struct dq_iface_conf {
    char name[DQ_NAME_LEN];
    char engine[16];
    char address[DQ_ADDRESS_LEN];
    int32_t flow_isolation;
    int32_t hardware_timestamps, accurate_send; // the device's clock is asked for, where it has one
    dq_socket_conf socket;
    dq_replay_conf replay;
} dq_iface_conf;

typedef enum dq_dir { DQ_RX, DQ_TX } dq_dir;

typedef struct dq_queue_conf {
    char name[DQ_NAME_LEN];
    uint32_t id;
    int32_t dir;    // dq_dir
    int32_t direct; // 1: polled by the task that adopts it, 0: by a worker
    int32_t core;   // worker's core, -1: not pinned
    uint32_t batch_size;
    uint64_t timeout_us; // 0: deliver full bursts only (loop); sockets deliver what is there
    uint32_t n_regions;
    dq_region *regions[DQ_MAX_SEGS];
    double pace_bps;    // 0: unpaced
    int32_t tx_eth_src; // 1: the interface's MAC becomes the source of each frame (not where a tee still
                        // reads it)
} dq_queue_conf;

// Makes an empty session. The caller owns it until dq_session_close. Control thread.
int dq_session_new(const dq_session_conf *conf, dq_session **out, dq_diag *diag);
// The add calls fill the session before dq_session_open; what they return lives as long as the session.
int dq_region_add(dq_session *s, const dq_region_conf *conf, dq_region **out, dq_diag *diag);
int dq_iface_add(dq_session *s, const dq_iface_conf *conf, dq_iface **out, dq_diag *diag);
int dq_queue_add(dq_iface *i, const dq_queue_conf *conf, dq_queue **out, dq_diag *diag);
// Allocates the arena, opens the engines (sockets are bound). Nothing moves yet. May resolve host names:
// blocks.
int dq_session_open(dq_session *s, dq_diag *diag);
// Starts workers and writers. Direct queues move when their task waits.
int dq_session_start(dq_session *s, dq_diag *diag);
// Ends generation, sends what the transmit rings hold, for at most drain_ns of the first call, and ends
// receiving, at one moment for all queues: what came before is delivered, what comes later is nobody's and in
// no account. Hands partial bursts to their consumers, ends the workers. Writers go on until
// dq_session_finish. Returns the packets that wait for tasks to take some: serve the taps (dq_wait with
// timeout 0) and call it again until 0; dq_session_finish drops what is left. No task may be in dq_wait on a
// direct queue of this session meanwhile. Idempotent.
uint64_t dq_session_stop(dq_session *s, int64_t drain_ns);
// Session time at which receiving had ended and the last packet had left; 0: before dq_session_stop.
int64_t dq_session_rested(const dq_session *s);
// Drops what waits in taps and rings (counted as stopped) and ends the writers: what they hold is written and
// files are closed. Idempotent. Blocks.
void dq_session_finish(dq_session *s);
// Frees everything. Works on a half-built session and on NULL. Bursts still held outside stay readable no
// longer. Returns the number of packet buffers that were not in their pools.
uint64_t dq_session_close(dq_session *s);

// Session clock, ns since the epoch. Any thread.
int64_t dq_now(const dq_session *s);
// ns since the epoch at dq_session_new.
int64_t dq_start_ns(const dq_session *s);
// Virtual clock: polls everything once; the number of objects that made progress, 0 before the start. One
// thread.
int dq_step(dq_session *s);
// Virtual clock: the next time at which something of this session is due; INT64_MAX: nothing.
int64_t dq_next_time(const dq_session *s);
// Virtual clock: moves time forward to t_ns.
void dq_advance(dq_session *s, int64_t t_ns);
// The i-th line of the session's report (what is hardware, software, copy and why; page sizes): true while
// there is one.
bool dq_session_report(const dq_session *s, uint32_t i, char *buf, size_t len);

typedef struct dq_region_info {
    uint8_t *base;   // CPU address of the arena; packets are at base + offset
    uint64_t offset; // of the region in the arena, bytes
    uint32_t stride; // bytes from buffer to buffer
    uint32_t num_bufs, buf_size, free_bufs;
    uint32_t group; // buffers of a super-buffer; 1: there are none
    int32_t kind;
    int32_t huge; // 1: really on huge pages
} dq_region_info;
void dq_region_read(const dq_region *r, dq_region_info *out);
// The stride that an engine (by its name) asks for buffers of buf_size bytes, 0: it is not in this version. A
// session takes the largest of its engines'.
uint32_t dq_stride(uint32_t buf_size, const char *engine);
// Whether the library that engine dpdk is in is there, for the interface of that name: DQ_NOT_SUPPORTED
// otherwise, and diag says which.
int dq_dpdk_there(const char *iface, dq_diag *diag);

// ---- bursts -----------------------------------------------------------------------------------------------

#define DQ_BURST_REORDERED       (1u << 28)
#define DQ_BURST_REORDER_TIMEOUT (1u << 29)
#define DQ_BURST_SHARED          (1u << 0) // somebody else may read it: its packets are read-only

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

// Types of the elements of an aggregate's data.
typedef enum dq_dtype {
    DQ_DTYPE_BYTES, // as it came
    DQ_DTYPE_INT4,  // two a byte, the high half first
    DQ_DTYPE_INT8,
    DQ_DTYPE_INT16,
    DQ_DTYPE_INT32,
    DQ_DTYPE_FP16,
    DQ_DTYPE_BF16,
    DQ_DTYPE_FP32,
    DQ_DTYPE_FP64,
    DQ_DTYPES
} dq_dtype;

// What the elements of payloads are, and what they become (dq_dtype): int4 to int32 become fp16, bf16, fp32,
// fp64, int32 or int8. Both BYTES: they stay as they are. k_convert.h has the rounding.
typedef struct dq_data_types {
    int32_t input, output;
    int32_t network; // 1: input has its highest byte first; 0: the host's order
} dq_data_types;

// As scripts write it: "int16"; NULL: there is no such type.
const char *dq_dtype_name(int dtype);

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
} dq_aggregate;

typedef enum dq_clock_id { DQ_CLOCK_REALTIME, DQ_CLOCK_VIRTUAL, DQ_CLOCK_FILE } dq_clock_id;

// A burst's columns. Pointers are valid while the caller's reference lasts; packet i segment s is the
// len[s][i] bytes at base + off[s][i].
typedef struct dq_view {
    uint8_t *base;
    uint32_t n, nseg, flags;
    int32_t clock; // dq_clock_id of ts
    // Of the burst that owns the packets' buffers: where one of the two has DQ_BURST_SHARED, packets are
    // read-only.
    const uint32_t *owner_flags;
    uint32_t conn; // connection, 0: none
    uint64_t bytes;
    uint64_t *off[DQ_MAX_SEGS];
    uint32_t *len[DQ_MAX_SEGS];
    uint32_t *flow; // flow ids, 0: none
    int64_t *ts;    // receive times, ns
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
// A reordered burst as a block of a block file (BATCHES.md), for who writes one: its bytes with header and
// padding, and those of the header; 0: it is not reordered. The other two are for reordered bursts. While a
// reference lasts, any thread.
uint64_t dq_block_bytes(const dq_burst *b, uint32_t *header_bytes);
// Writes the header of a file of such blocks, DQ_BLOCK_FILE_HEADER bytes; text: the user's; index: of the
// file.
#define DQ_BLOCK_FILE_HEADER 4096
void dq_block_file_header(const dq_burst *b, const char *writer, const char *text, uint64_t index,
                          uint8_t *dst);
// Writes the block's header, header_bytes.
void dq_block_header(const dq_burst *b, uint8_t *dst);
void dq_burst_ref(dq_burst *b);
// Drops one reference; the last returns buffers and descriptor to their pools. Any thread.
void dq_burst_unref(dq_burst *b);
// Prepares b, the caller's reference, for being held for long: when its packets are less than a quarter of
// the super-buffers that they keep from the others, they are copied to some that kept packets share. *out:
// the burst to go on with, b itself or one in its place. Any thread.
void dq_burst_keep(dq_burst *b, dq_burst **out);
// The address that packet i came from, as "192.0.2.1:7148" or "[2001:db8::1]:7148"; empty where the queue has
// none.
void dq_burst_peer(const dq_burst *b, uint32_t i, char *buf, size_t len);
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
// Computes the checksums of IPv4, UDP, TCP and ICMP of packet i, of all packets with i < 0. A packet that has
// none stays as it is. INVALID_PARAMETER past the burst, or where others read it.
int dq_burst_checksums(dq_burst *b, int64_t i);
// A burst of the packets idx[0..n): holds b. INVALID_PARAMETER past the burst, NO_FREE_BURST_BUFFERS when the
// queue has no descriptor left.
int dq_burst_pick(dq_burst *b, const uint32_t *idx, uint32_t n, dq_burst **out);

// ---- waiting ----------------------------------------------------------------------------------------------

typedef enum dq_event_kind { DQ_EV_BURST = 1, DQ_EV_CONNECT, DQ_EV_DISCONNECT } dq_event_kind;

// One thing that happened. BURST: b is the receiver's reference. CONNECT/DISCONNECT: conn and, in code, the
// reason (0 or a negative dq_err). tag is what the tap was made with.
typedef struct dq_event {
    uint64_t tag;
    int32_t kind;
    int32_t code;
    uint32_t conn;
    dq_burst *b;
    dq_view view; // of b
} dq_event;

int dq_waiter_new(dq_waiter **out, dq_diag *diag);
void dq_waiter_free(dq_waiter *w);
// Makes w's task the owner of a direct queue (of none before, or of another that is not waiting).
int dq_waiter_adopt(dq_waiter *w, dq_queue *q);
// Ends that, where it is so: w polls q no more. Its task's thread, or while that is not waiting.
void dq_waiter_disown(dq_waiter *w, dq_queue *q);
// Ends a dq_wait of w now, or its next one. Any thread.
void dq_waiter_wake(dq_waiter *w);
// Serves w's direct queues and taps: returns as soon as there are events (their number, at most max), after
// timeout_ns (0 events; negative: for ever), or after dq_waiter_wake. Owner's thread; blocks.
int dq_wait(dq_waiter *w, int64_t timeout_ns, dq_event *ev, int max);

// ---- pipes ------------------------------------------------------------------------------------------------

typedef enum dq_policy { DQ_POLICY_DROP, DQ_POLICY_WAIT } dq_policy;
typedef enum dq_filter_kind { DQ_FILTER_MATCH, DQ_FILTER_PROG, DQ_FILTER_CBPF } dq_filter_kind;

typedef struct dq_filter_conf {
    int32_t kind; // dq_filter_kind
    const dq_match *match;
    const dq_insn *insns;
    uint32_t n_insns;
    const dq_cbpf_insn *cbpf;
    uint32_t n_cbpf;
} dq_filter_conf;

#define DQ_MAX_DIRS 16 // of one writer

typedef enum dq_writer_kind {
    DQ_WRITE_PCAP,        // DIR/PREFIX.pcap
    DQ_WRITE_RAW_PACKETS, // DIR/PREFIX_INDEX, a file for each packet
    DQ_WRITE_RAW_BURSTS,  // the same for each burst
    DQ_WRITE_RAW_FILE,    // DIR/PREFIX.raw, all packets back to back
    DQ_WRITE_PCAPNG,      // DIR/PREFIX.pcapng
    DQ_WRITE_BATCHES,     // DIR/PREFIX_INDEX.dqb, aggregates back to back
} dq_writer_kind;

typedef struct dq_writer_conf {
    int32_t kind;    // dq_writer_kind
    uint32_t n_dirs; // bursts go to the folders in turn
    char dirs[DQ_MAX_DIRS][1024], prefix[256];
    uint32_t packet_data_offset; // raw: bytes left out at the front of each packet
    uint32_t snaplen;            // pcap: 0 = whole packets
    int32_t policy;              // dq_policy when the writer is behind
    bool micro;                  // pcap: times in µs, not ns
    bool append;                 // pcap: go on behind what the file has
    bool by_slot;                // batches: a bit of the bitmap for each slot, not for each packet
    char text[3072];             // pcapng: the section's comment; batches: the user's text in each header
    // Files end before they are larger than this, or have more packets, or when they are older; 0: no limit.
    // With one of them, and of batches, names are PREFIX_INDEX, over all folders, behind those that are
    // there. Not for a file per packet or burst.
    uint64_t rotate_bytes, rotate_packets;
    int64_t rotate_ns;
    uint64_t quota;     // bytes of all files of this run, 0: no limit; no packet is written from there on
    bool delete_oldest; // at the quota the oldest file goes instead
} dq_writer_conf;

// Stages belong to the session and end with it. Names are unique in a session.
int dq_stage_filter(dq_session *s, const char *name, const dq_filter_conf *conf, dq_stage **out,
                    dq_diag *diag);
int dq_stage_count(dq_session *s, const char *name, dq_stage **out, dq_diag *diag);
// Passes one burst of `every`.
int dq_stage_sample(dq_session *s, const char *name, uint32_t every, dq_stage **out, dq_diag *diag);
int dq_stage_forward(dq_session *s, const char *name, dq_queue *tx, int policy, dq_stage **out,
                     dq_diag *diag);
// Hands bursts to w's task as events with this tag; depth bursts may wait. sample: one of so many bursts (1:
// all).
int dq_stage_tap(dq_session *s, const char *name, dq_waiter *w, uint64_t tag, uint32_t depth, int policy,
                 uint32_t sample, dq_stage **out, dq_diag *diag);
int dq_stage_writer(dq_session *s, const char *name, const dq_writer_conf *conf, dq_stage **out,
                    dq_diag *diag);
// A number over the fields of a packet; n 0: none.
typedef struct dq_number {
    const dq_insn *insns;
    uint32_t n;
} dq_number;

#define DQ_FILL_KEEP   (-1) // gaps keep what the stage's buffer had
#define DQ_MAX_WINDOW  64
#define DQ_REORDER_LEN 52 // longest name of a reorder stage

// Where packets belong. Either seq: a number of seq_bits bits counts the packets, `slots` to a batch, on and
// on; or batch and slot.
typedef struct dq_reorder_conf {
    dq_region *region; // an aggregate fills one buffer
    dq_number seq;
    uint32_t seq_bits;
    dq_number batch, slot;
    uint64_t wrap;         // batch is less than this and goes on at 0; 0: 2^64
    dq_number offset;      // bytes in the slot, a multiple of packet_bytes
    dq_number extra;       // kept for each slot
    dq_number source;      // what came and is missing is counted by it,
    int32_t source_peer;   // or, 1, by the packet's peer; n 0 and 0: not by source
    uint32_t slots;        // of a batch
    uint32_t slot_bytes;   // 0: the longest payload so far, with buf_size / slots as its limit
    uint32_t packet_bytes; // with offset: payload of a packet, the last of a slot may be shorter; else 0
    uint32_t segment, payload_offset; // where the payload begins: bytes from the segment's start,
    int32_t at_payload;               // 1: from the innermost payload's (segment 0); 2: from what is
                                      // behind its SPEAD-64-48 items, and packets without are bad_place
    dq_data_types types;              // of payloads; slot_bytes, packet_bytes and offset are bytes of input
    uint32_t window;                  // batches open at a time; 0: up to 4, by the region's buffers
    int64_t timeout_ns;               // of a batch, from its first packet; 0: none
    int32_t fill;                     // of gaps: a byte, or DQ_FILL_KEEP
    int32_t drop_incomplete;          // 1: only complete batches are handed over
    int32_t wait;             // 1: a queue that is ahead of others waits for them, at most until timeout_ns
    int32_t policy;           // dq_policy when no buffer is free
    const uint32_t *flow_ids; // only packets of these flows, others pass; n_flow_ids 0: all
    uint32_t n_flow_ids;
} dq_reorder_conf;

// A stage that puts packets together to aggregates (dq_aggregate), from the open on. These come in order, one
// a burst, from *aggregates, a receive queue of the stage's own: it is served by whoever serves the stage's
// first source, and feeds pipes like any other. Packets that the stage doesn't take go on in its pipe.
// INVALID_PARAMETER names what can't be.
int dq_stage_reorder(dq_session *s, const char *name, const dq_reorder_conf *conf, dq_stage **out,
                     dq_queue **aggregates, dq_diag *diag);

// What a convert stage makes of a payload, in buffers of its own.
typedef struct dq_convert_conf {
    dq_region *region;       // a packet fills one buffer
    dq_data_types types;     // of payloads
    uint32_t payload_offset; // where the payload begins: bytes from the packet's start,
    int32_t at_payload;      // or as in dq_reorder_conf
    int32_t policy;          // dq_policy when no buffer is free; one that waits has the region for itself
} dq_convert_conf;

// Makes packets whose payloads are of another type, in a session that is open. What is in front of the
// payload stays; of frames the lengths and checksums of IP and UDP follow, and what is behind the payload
// goes. INVALID_PARAMETER names what can't be.
int dq_stage_convert(dq_session *s, const char *name, const dq_convert_conf *conf, dq_stage **out,
                     dq_diag *diag);

// The writer's first error in words, empty when there is none; and the path of the file that it writes or
// wrote last in a folder, empty when there is none: false when the writer has no such folder.
void dq_writer_error(dq_stage *writer, char *buf, size_t len);
bool dq_writer_path(dq_stage *writer, uint32_t dir, char *buf, size_t len);
// One of the files of a writer, but for those of a file per packet or burst.
typedef struct dq_writer_file {
    char path[1024 + 256 + 64];
    uint64_t bytes, packets;          // bytes at its end; packets (batches) that are in it
    int64_t first_ns, last_ns;        // receive times of the first and the last packet handed to it; 0: none
    uint64_t first_batch, last_batch; // batches: their ids
    uint32_t crc32c;                  // of the file
    bool closed, deleted;             // until it is closed only the path is right; deleted: for the quota
} dq_writer_file;
// Reads the file of this number, from 0 on in the order in which they were begun; false: there are not so
// many. Any thread.
bool dq_writer_file_read(dq_stage *writer, uint32_t number, dq_writer_file *out);

// A writer whose work somebody else does: one taker. At most depth bursts wait for it.
int dq_stage_outlet(dq_session *s, const char *name, uint32_t depth, int policy, dq_stage **out,
                    dq_diag *diag);
// Waits for the next burst: the taker's reference. *tag: what it was given with, 0: it came through a pipe.
// NULL: the outlet has ended, and nothing is left. One thread at a time; blocks.
dq_burst *dq_outlet_take(dq_stage *outlet, dq_view *view, uint32_t *tag);
// Hands b over; the caller keeps its own reference, and the packets are read-only from now on. tag: above 0.
// DQ_OK, DQ_NO_SPACE_AVAILABLE (depth bursts wait), DQ_NOT_READY (it has ended). Any thread; never blocks.
int dq_outlet_give(dq_stage *outlet, dq_burst *b, uint32_t tag);
// Nothing more comes: what is pushed from now on is dropped as stopped. Any thread.
void dq_outlet_end(dq_stage *outlet);
// What became of so many of the packets that were taken; every one is told of once. reason: dq_reason; extra:
// dq_extra. Any thread.
void dq_outlet_out(dq_stage *outlet, uint64_t packets, uint64_t bytes);
void dq_outlet_lost(dq_stage *outlet, int reason, uint64_t packets);
void dq_outlet_note(dq_stage *outlet, int extra, uint64_t n);
// So many more (fewer) things that the taker began are not over: virtual time stands still meanwhile. Any
// thread.
void dq_outlet_busy(dq_stage *outlet, int n);

// What became of a burst that was handed to a writer, so far.
typedef struct dq_write_state {
    bool done;                  // nothing more will change
    uint32_t completed, failed; // packets; completed: handed to the system, in a file
    uint64_t bytes;             // of the completed packets
} dq_write_state;

// What one burst has of its own. prefix: of a file per packet, PREFIX_I for its packet I, from 0, instead of
// the writer's own count; empty: none. comment: of its packets, in a pcapng; empty: none.
typedef struct dq_write_names {
    char prefix[208], comment[208]; // at most 200 bytes each
    uint32_t packet_data_offset;    // with a prefix: instead of the writer's
} dq_write_names;

// Hands b to a writer by reference, in a pipe or not; the caller keeps its own, and the packets are read-only
// from now on. names: NULL, or what the burst has of its own; copied. *out: the account, the
// caller's until dq_write_free. DQ_OK, DQ_NO_SPACE_AVAILABLE (the ring is full), DQ_NOT_READY (the writer has
// finished), DQ_INVALID_PARAMETER (another kind of writer takes these). Any thread; never blocks.
int dq_writer_write(dq_stage *writer, dq_burst *b, const dq_write_names *names, dq_write **out);
// Any thread, also when the session has gone; dq_write_error: the first failure in words, or empty.
void dq_write_read(const dq_write *op, dq_write_state *out);
void dq_write_error(const dq_write *op, char *buf, size_t len);
// Lets go of the account; the writing goes on. NULL is fine.
void dq_write_free(dq_write *op);

// Sends every burst of q through the stages in order. Adding and removing are safe while packets flow (the
// queue's worker is held for a moment). A direct queue's pipes change on its owner's thread. conn != 0:
// bursts of that connection only, and they go to no other pipe.
int dq_pipe_add(dq_queue *q, dq_stage *const *stages, uint32_t n, uint32_t conn, dq_pipe **out,
                dq_diag *diag);
void dq_pipe_remove(dq_pipe *p);
// Every burst of q goes through these stages first, once, and its pipes get what they leave. Once, before the
// start.
int dq_queue_claim(dq_queue *q, dq_stage *const *stages, uint32_t n, dq_diag *diag);

// ---- queues -----------------------------------------------------------------------------------------------

// A burst of n packets with buffers of each of q's regions, lengths 0. The caller owns it.
// NO_FREE_BURST_BUFFERS, NO_FREE_PACKET_BUFFERS, INVALID_PARAMETER (n is 0 or above the batch size).
int dq_tx_alloc(dq_queue *q, uint32_t n, dq_burst **out);
// Queues b for sending. Takes the caller's reference on DQ_OK only. NO_SPACE_AVAILABLE when the ring is full,
// when b's connection has its share of the queue already, as its peer doesn't read, or, where there are
// several connections, when half of what the queue has is still to be looked at. In direct mode, on the
// owner's thread, sends what can be sent at once.
int dq_tx_send(dq_queue *q, dq_burst *b);
// Changes the pace: bits/s and packets/s of what the queue holds (frames without FCS, or payloads); 0: not
// limited.
void dq_tx_pace(dq_queue *q, double bps, double pps);
// Instead of a pace: packets leave with the gaps of their receive times divided by speed (above 0). Those of
// templates and those with send times don't.
void dq_tx_follow(dq_queue *q, double speed);
// Where its receive times come from (dq_stamps), known once the session is open.
int dq_rx_stamps(const dq_queue *q);
// 1: the device keeps to the send times of a transmit queue's packets, 0: the queue's poller does.
int dq_tx_device_times(const dq_queue *q);
// Discards what waits in a receive queue, counted as flushed. Packets discarded.
int64_t dq_rx_flush(dq_queue *q);

typedef enum dq_vary_kind { DQ_VARY_INC, DQ_VARY_RANDOM } dq_vary_kind;

// A field that changes from packet to packet: start, start + step, …, wrapping after max; or random in
// start..max.
typedef struct dq_vary {
    dq_field field;
    int32_t kind; // dq_vary_kind
    uint64_t start, step, max;
} dq_vary;

// A packet to send many times. checksums: 1 sets IPv4 and UDP/TCP lengths' checksums of each packet sent.
int dq_template_new(const uint8_t *bytes, uint32_t len, const dq_vary *vary, uint32_t n_vary, int checksums,
                    uint64_t seed, dq_template **out, dq_diag *diag);
// Drops the maker's reference; queues that send the template have their own. NULL too.
void dq_template_unref(dq_template *t);
// Fills packets of b from t (lengths too); the template's counters move on. Needs a single-segment burst.
int dq_template_fill(dq_template *t, dq_burst *b);
// The queue's own thread sends count packets of t (0: until the stop) at the queue's pace. Replaces what was
// being transmitted; t NULL ends it. t must outlive the transmission. INVALID_PARAMETER when t is longer than
// a buffer.
int dq_tx_transmit(dq_queue *q, dq_template *t, uint64_t count);
// Packets of the current transmission still to be sent; UINT64_MAX for one without end, 0 when none.
uint64_t dq_tx_remaining(const dq_queue *q);

// ---- columns ----------------------------------------------------------------------------------------------

// A program that runs over bursts: a condition, or a number (dq_prog.h). Checked and copied; the caller frees
// it. INVALID_PARAMETER with the instruction and the reason, GENERIC_FAILURE: no memory. Any thread.
int dq_prog_new(const dq_insn *insns, uint32_t n, dq_prog **out, dq_diag *diag);
void dq_prog_free(dq_prog *prog);

// Verbs look at the first segment; any number of threads may run one program. None of them blocks.
//
// out[i] = the field of packet i; ok (may be NULL) [i] = 0 where the packet hasn't got it. The number of
// packets that have it.
uint32_t dq_burst_column(dq_burst *b, const dq_field *f, uint64_t *out, uint8_t *ok);
// The same of a program's number; 1 and 0 for a condition.
uint32_t dq_burst_eval(dq_burst *b, const dq_prog *prog, uint64_t *out, uint8_t *ok);
// Indices of the packets for which the program holds; n.
uint32_t dq_burst_select(dq_burst *b, const dq_prog *prog, uint32_t *idx);
// How many there are.
uint32_t dq_burst_count(dq_burst *b, const dq_prog *prog);

// What becomes of the IPv4, UDP, TCP and ICMP checksums of a packet in which a field is set.
typedef enum dq_csum {
    DQ_CSUM_KEEP,   // nothing
    DQ_CSUM_UPDATE, // they follow by the difference (RFC 1624): right ones stay right, wrong ones stay wrong,
                    // and a UDP checksum of 0 stays 0. Computed anew where the field says what they cover
                    // (lengths, protocol, fragment offset) or is a checksum.
} dq_csum;
// Sets the field in every packet to v + i * step. The number of packets set. INVALID_PARAMETER on a shared
// burst.
int dq_burst_set(dq_burst *b, const dq_field *f, uint64_t v, uint64_t step, int csum);
// The named field ("udp_dst"), false when there is none of that name; and the i-th name, NULL past the end.
bool dq_field_named(const char *name, dq_field *out);
const char *dq_field_name(uint32_t i);
// libpcap's compiler, when libpcap is there. Caller frees *out with free().
int dq_pcap_compile(const char *text, int dlt, dq_cbpf_insn **out, uint32_t *n, dq_diag *diag);

// ---- flows ------------------------------------------------------------------------------------------------

// Takes out an interface's receive rules of these orders and adds others, between two bursts: all of it or
// nothing. Each rule of the interface needs an order of its own. The cost hardly depends on the number of
// rules there are. An interface that never had rules sends everything to its first queue. With none to take
// out or to add, packets are looked up faster after it: changes leave traces, and it takes them out.
// INVALID_PARAMETER for an order that is not there; NOT_SUPPORTED on engines without flows. Rules name their
// actions in `actions`; a rule with some needs a flow id of its own. A frame that isn't what they are for is
// dropped (bad_tunnel).
int dq_iface_change_rules(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                          uint32_t n_add, const dq_action *actions, dq_diag *diag);
// Sets an interface's transmit rules, between two bursts and instead of those that it has: the frames that
// match get their actions, with the actions' headers in front, before they are sent. All of it or nothing;
// n 0: none any more. Queues of the rules are not looked at. Control thread, after the open.
int dq_iface_set_tx_rules(dq_iface *i, const dq_rule *rules, uint32_t n, const dq_action *actions,
                          dq_diag *diag);
int dq_iface_drop_all(dq_iface *i, bool drop, dq_diag *diag);
// The interface's MAC address; NOT_SUPPORTED where it has none.
int dq_iface_mac(const dq_iface *i, uint8_t mac[6]);
// Joins or leaves a multicast group (text address), of any source when source is empty. The kernel reports
// it; where there is none, the interface does, through its first transmit queue. Control thread, after the
// open.
int dq_iface_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);

// What there is to know of an interface that replays a capture.
typedef struct dq_source {
    bool ended;        // no more comes: its end, its last loop's, a fault; or no queue of it is read
    int64_t origin_ns; // time of its first packet, in the file's clock; 0: there is none
    char fault[512];   // why the rest of the file can't be read; empty: it can
} dq_source;
// Fills out; false: the interface replays none. Any thread, after the open.
bool dq_iface_source(const dq_iface *i, dq_source *out);

// An IPv4 or IPv6 address.
typedef struct dq_ip {
    uint8_t len; // 4 or 16
    uint8_t bytes[16];
} dq_ip;
// Has the interface answer ARP requests and neighbour solicitations for these addresses, instead of those of
// the last call; n 0: for none. Answers leave through its first transmit queue. NOT_SUPPORTED where the
// kernel does that; INVALID_PARAMETER names what is wrong. Control thread, after the open.
int dq_iface_answer(dq_iface *i, const dq_ip *addrs, uint32_t n, dq_diag *diag);
// Asks the interface's network, or a VLAN of it (0: none), once which Ethernet address addr has, by ARP or
// neighbour discovery, through its first transmit queue. As from, len 0: as the first of the addresses that
// it answers for, or as nobody. NOT_READY before the start; NOT_SUPPORTED where its answer would go to the
// kernel, or there are no frames; INVALID_PARAMETER without a queue of each direction. Control thread.
int dq_iface_ask(dq_iface *i, const dq_ip *addr, uint16_t vlan, const dq_ip *from, dq_diag *diag);
// What was answered within the last minute; false: nothing yet. Any thread, after the open.
bool dq_iface_neighbour(const dq_iface *i, const dq_ip *addr, uint16_t vlan, uint8_t mac[6]);

// ---- connections ------------------------------------------------------------------------------------------

typedef struct dq_conn_info {
    char local[64], peer[64]; // "address:port"
    int32_t open;
    dq_queue *rx, *tx;
} dq_conn_info;

// Delivers connect and disconnect events of i to w with this tag.
int dq_iface_events(dq_iface *i, dq_waiter *w, uint64_t tag, dq_diag *diag);
// Starts a connection to "host:port" from a client interface; the outcome comes as an event. *conn: its id.
int dq_conn_open(dq_iface *i, const char *address, const char *local, uint32_t *conn, dq_diag *diag);
int dq_conn_close(dq_iface *i, uint32_t conn);
int dq_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out);
// Makes the packets of b, the caller's reference, go to this connection (0: the interface's default peer).
// *out: the burst to go on with, b itself, or where somebody else reads b one that holds it.
// NO_FREE_BURST_BUFFERS: there is none for that now, and b is as it was.
int dq_burst_redirect(dq_burst *b, uint32_t conn, dq_burst **out);
// setsockopt(2) with an opaque value; conn 0: the interface's own socket. System errors as DQ_ESYS - errno.
int dq_conn_setsockopt(dq_iface *i, uint32_t conn, int level, int option, const void *value, uint32_t len);

// ---- hardware clocks --------------------------------------------------------------------------------------

// A PTP hardware clock, /dev/ptpINDEX.
typedef struct dq_ptp {
    int32_t index;
    char name[64];     // the driver's
    int64_t offset_ns; // it shows so much more than the system's clock (mostly the 37 s from UTC to TAI)
    int64_t within_ns; // how exactly that is known
} dq_ptp;
// Indices of the clocks that there are, at most max; the number. Control thread.
uint32_t dq_ptp_list(int *index, uint32_t max);
// Reads one. System errors as DQ_ESYS - errno; index and name are there all the same.
int dq_ptp_read(int index, dq_ptp *out);

// ---- the ledger -------------------------------------------------------------------------------------------

// Why a packet did not go on. Words in dq_reason_name.
typedef enum dq_reason {
    DQ_DROP_NO_PACKET_BUFFER, // the region had no free buffer
    DQ_DROP_NO_BURST_BUFFER,  // the queue had no free burst descriptor
    DQ_DROP_QUEUE_FULL,       // the queue's or the consumer's ring was full
    DQ_DROP_TOO_LONG,    // longer than the buffers, or with pushed headers longer than the interface takes
    DQ_DROP_NO_FLOW,     // no flow matched
    DQ_DROP_DROP_ALL,    // drop_all_traffic was on
    DQ_DROP_WIRE_LOSS,   // the simulated wire lost it
    DQ_DROP_FILTERED,    // a filter refused it
    DQ_DROP_NOT_SAMPLED, // a sampler left it out
    DQ_DROP_BEHIND,      // the consumer was behind and its policy is drop
    DQ_DROP_WRITE_ERROR, // the file, or the object, could not be written
    DQ_DROP_QUOTA,       // the writer's quota is used up
    DQ_DROP_SEND_ERROR,  // the system refused to send it
    DQ_DROP_NO_PEER,     // nobody to send it to
    DQ_DROP_BAD_FRAMING, // the stream's length prefix made no sense
    DQ_DROP_FLUSHED,     // thrown away by q:flush
    DQ_DROP_NO_CONSUMER, // no pipe of the queue took it
    DQ_DROP_BAD_TUNNEL,  // not what the flow's actions are for
    DQ_DROP_LATE,        // its batch has been handed over
    DQ_DROP_TOO_EARLY,   // its number is far ahead of the others', and not yet believed
    DQ_DROP_DUPLICATE,   // its place was taken already
    DQ_DROP_BAD_PLACE,   // it has no place in a batch: a field is absent, the slot or offset outside;
                         // or no payload
    DQ_DROP_BAD_PAYLOAD, // its payload is no whole number of elements of the input's type
    DQ_DROP_INCOMPLETE,  // its batch was not complete and missing_action is drop
    DQ_DROP_FRAGMENT,    // a piece of a datagram: a replay for a socket joins none
    DQ_DROP_JOINED,      // several packets that the kernel or the device has joined: no frame
    DQ_DROP_CUT,         // the capture holds a part of the datagram only
    DQ_DROP_STOPPED,     // of before the stop, and not taken or sent until the end
    DQ_REASONS
} dq_reason;
const char *dq_reason_name(int reason);
const char *dq_reason_text(int reason);

// Further figures of a line. Words and units in dq_extra_name.
typedef enum dq_extra {
    DQ_EXTRA_COPIED,               // packets copied rather than handed over
    DQ_EXTRA_DUPLICATED,           // made by the wire (counted in `in` too)
    DQ_EXTRA_CORRUPTED,            // by the wire
    DQ_EXTRA_REORDERED,            // by the wire
    DQ_EXTRA_KERNEL_DROPPED,       // datagrams that the kernel dropped before us
    DQ_EXTRA_KERNEL_DROPPED_SUPER, // of those, counted in super-packets: joined datagrams count as one
    DQ_EXTRA_SYSCALLS,
    DQ_EXTRA_FILES, // files written
    DQ_EXTRA_FILE_BYTES,
    DQ_EXTRA_DELETED_FILES, // of these, to keep the quota
    DQ_EXTRA_STALL_NS,      // time a writer's consumer spent waiting for the disk
    DQ_EXTRA_TRUNCATED,     // packets written, or captured, shorter than they were
    DQ_EXTRA_TIMED,         // packets sent that had a send time
    DQ_EXTRA_LATE,          // of those: their time had passed when their burst's turn came
    DQ_EXTRA_REFUSED,       // packets not taken (NO_SPACE_AVAILABLE), as their connection's peer doesn't read
    DQ_EXTRA_TRANSFORMED,   // packets that got or lost headers by their flow's actions
    DQ_EXTRA_NIC_MISSED,    // frames that the device had no room for
    DQ_EXTRA_NIC_NO_BUFFER, // times that the device found no buffer
    DQ_EXTRA_NIC_RX_ERRORS, // frames that came damaged
    DQ_EXTRA_NIC_TX_ERRORS, // frames that it could not send
    DQ_EXTRA_ANSWERED,      // packets of the interface's own: answers, questions, membership reports
    DQ_EXTRA_UNANSWERED,    // of these, for want of room in the queue or its buffers never made
    DQ_EXTRA_LOOPS,         // times that a capture was read to its end
    DQ_EXTRA_BAD_RECORDS,   // of a capture: cut off, or damaged
    DQ_EXTRA_BATCHES,       // batches handed over complete
    DQ_EXTRA_PARTIAL,       // the other ones, also where they were dropped then
    DQ_EXTRA_TIMEOUTS,      // of these: their time was up
    DQ_EXTRA_PUSHED,        // of these: newer ones needed their place
    DQ_EXTRA_SKIPPED,       // batches of which nothing came between two others
    DQ_EXTRA_EXPECTED,      // cells that should have come; of the first and the last batch those that came
    DQ_EXTRA_MISSING,       // cells of these that did not
    DQ_EXTRA_CUT,           // cells of the first and the last batch that are in neither
    DQ_EXTRA_RESYNCS,       // times that the stream was found at another place
    DQ_EXTRA_OBJECTS,       // objects uploaded
    DQ_EXTRA_RETRIES,       // requests of uploads that were made again
    DQ_EXTRAS
} dq_extra;
const char *dq_extra_name(int extra);

typedef enum dq_line_kind {
    DQ_LINE_RX,
    DQ_LINE_TX,
    DQ_LINE_WIRE,
    DQ_LINE_STAGE,
    DQ_LINE_TAP,
    DQ_LINE_WRITER
} dq_line_kind;

// One account: in = out + held + the sum of dropped, exactly when quiescent.
typedef struct dq_line {
    char name[DQ_NAME_LEN];  // interface, or stage
    char queue[DQ_NAME_LEN]; // queue name, for RX and TX
    int32_t kind;            // dq_line_kind
    uint32_t queue_id;
    uint64_t in, in_bytes, out, out_bytes, bursts, held;
    uint64_t dropped[DQ_REASONS];
    uint64_t extra[DQ_EXTRAS];
    double pace_bps, pace_pps; // TX: what was asked for
    double pace_speed;         // TX: it follows receive times
} dq_line;
// Fills at most max lines; the number that there are. Any thread.
uint32_t dq_ledger(const dq_session *s, dq_line *lines, uint32_t max);

#define DQ_SPREAD_BUCKETS                                                                                    \
    544 // of a histogram: exact below 32, then 16 to an octave; of times in ns, the last takes more than 128
        // s

// How the departures of a transmit queue kept to its pace and to the packets' send times. Departures are
// session times, read just before a packet is handed to the engine.
typedef struct dq_timing {
    char name[DQ_NAME_LEN], queue[DQ_NAME_LEN]; // interface; queue
    uint32_t queue_id;
    uint32_t reserved;
    // What the pace gives the gaps between packets that left, and what they took. A new transmission and a
    // new pace begin a gap of their own, which isn't counted.
    uint64_t wanted_ns, took_ns;
    uint64_t overdue_ns;                    // for so long a packet that is there should have left
    uint64_t gap_error[DQ_SPREAD_BUCKETS];  // gaps between paced packets, by |gap - wanted|; none where the
                                            // queue ran dry
    uint64_t time_error[DQ_SPREAD_BUCKETS]; // packets with a send time, by how long after it they left
} dq_timing;
// The largest number that falls into bucket k.
uint64_t dq_spread_most(uint32_t k);
// Fills at most max, of the transmit queues with a pace or send times; the number that there are. Any thread.
uint32_t dq_timings(const dq_session *s, dq_timing *out, uint32_t max);

typedef enum dq_spread_kind {
    DQ_SPREAD_BURST_SIZE, // packets of the bursts that a receive queue delivered, less one: powers of two end
                          // buckets
    DQ_SPREAD_WRITE_STALL, // ns that a writer waited for the disk, for a burst or a flush
    DQ_SPREAD_COMPLETION   // ns from the first packet of a reorder stage's batch until it was handed over
} dq_spread_kind;

// A histogram of a queue, or of a stage.
typedef struct dq_spread {
    char name[DQ_NAME_LEN]; // interface, or stage
    int32_t kind;           // dq_spread_kind
    uint32_t queue_id;
    uint64_t sum; // of the values
    uint64_t n[DQ_SPREAD_BUCKETS];
} dq_spread;
// Fills at most max; the number that there are. Any thread.
uint32_t dq_spreads(const dq_session *s, dq_spread *out, uint32_t max);

#define DQ_FLOW_COUNTS 16384 // flows of a queue that are counted one by one

// What a receive queue received of a flow, before the flow's actions, or after those that the device has
// carried out.
typedef struct dq_flow_count {
    uint32_t iface; // its place in the order of dq_iface_add
    uint32_t queue_id;
    uint32_t flow_id; // 0: all flows that came after DQ_FLOW_COUNTS others
    uint32_t reserved;
    uint64_t packets, bytes;
} dq_flow_count;
// Fills at most max, of the flows of which something came; the number that there are. Any thread.
uint32_t dq_flow_counts(const dq_session *s, dq_flow_count *out, uint32_t max);

#define DQ_SOURCES  256 // sources, or peers, that are counted one by one
#define DQ_PEER_LEN 80

typedef enum dq_source_kind {
    DQ_SOURCE_NUMBER,
    DQ_SOURCE_PEER,
    DQ_SOURCE_OTHERS, // those that came after DQ_SOURCES others
    DQ_SOURCE_UNKNOWN // packets that lack the field; missing: cells that nobody has had yet
} dq_source_kind;

// What a reorder stage got and missed of a source. A missing packet is put down to the source that had its
// cell last. Over all sources missing is the stage's DQ_EXTRA_MISSING.
typedef struct dq_source_count {
    char name[DQ_NAME_LEN]; // stage
    char peer[DQ_PEER_LEN]; // "host:port", of DQ_SOURCE_PEER
    uint64_t number;        // of DQ_SOURCE_NUMBER
    int32_t which;          // dq_source_kind
    uint32_t reserved;
    uint64_t packets; // placed, of batches that are closed
    uint64_t missing;
    uint64_t late, duplicate, dropped; // dropped: for all other reasons
} dq_source_count;
// Fills at most max; the number that there are. Any thread.
uint32_t dq_source_counts(const dq_session *s, dq_source_count *out, uint32_t max);

// What a socket's receive queue received of a peer.
typedef struct dq_peer_count {
    char name[DQ_NAME_LEN]; // interface
    char peer[DQ_PEER_LEN]; // "host:port"; empty: all that came after DQ_SOURCES others
    uint32_t queue_id;
    uint32_t reserved;
    uint64_t packets, bytes;
} dq_peer_count;
// Fills at most max; the number that there are. Any thread.
uint32_t dq_peer_counts(const dq_session *s, dq_peer_count *out, uint32_t max);

#define DQ_FAULT_OTHERS INT32_MAX

// A system error that a queue's socket met.
typedef struct dq_fault {
    char name[DQ_NAME_LEN], queue[DQ_NAME_LEN]; // interface; queue
    int32_t dir;                                // dq_dir
    uint32_t queue_id;
    int32_t err; // errno, DQ_FAULT_OTHERS; ESHUTDOWN of a receive queue: it was shut down
    uint64_t n;  // transmit: packets not sent; receive: how often it ceased to work
} dq_fault;
// The same for these.
uint32_t dq_faults(const dq_session *s, dq_fault *out, uint32_t max);

#endif
