// dq_ledger.h: ledger accounts: drop reasons, additional counters, histograms.
#ifndef DQ_LEDGER_H
#define DQ_LEDGER_H

#include "core/dq_core.h"

// The tables of this file: one row describes a reason, a counter or a histogram, and every output derives
// from it (DQ_REASON_ROWS below: enum, ledger, summary, JSON, metrics, Lua, documents).

// Drop reasons: X(NAME, name, 1 if the script requested the drop, reason, advice).
#define DQ_REASON_ROWS(X)                                                                                    \
    X(NO_PACKET_BUFFER, "no_packet_buffer", 0,                                                               \
      "the memory region had no free buffer: raise num_bufs or free bursts sooner",                          \
      "raise `num_bufs` of the queue's region, let bursts go sooner (`b:free()`), or make the consumer "     \
      "faster")                                                                                              \
    X(NO_BURST_BUFFER, "no_burst_buffer", 0,                                                                 \
      "no free burst descriptor: raise rx_meta_buffers or free bursts sooner",                               \
      "raise `rx_meta_buffers` (or `tx_meta_buffers`), or let bursts go sooner")                             \
    X(QUEUE_FULL, "queue_full", 0, "the queue's ring was full: its reader is too slow",                      \
      "make the reader faster, or slow the sender down: `send` returns `NO_SPACE_AVAILABLE` if it can wait") \
    X(TOO_LONG, "too_long", 0,                                                                               \
      "longer than its place, a buffer or slot, or than the interface takes: raise buf_size or the MTU",     \
      "raise `buf_size`, `max_payload_size` or the MTU; shorten what flows put in front")                    \
    X(NO_FLOW, "no_flow", 0,                                                                                 \
      "no flow matched and flow_isolation is on, or a replayed frame was not for the socket",                \
      "add a flow that matches; without `flow_isolation` a pcap writer shows what comes")                    \
    X(DROP_ALL, "drop_all", 1, "drop_all_traffic was on",                                                    \
      "it was asked for: `i:allow_all_traffic()` ends it")                                                   \
    X(WIRE_LOSS, "wire_loss", 0, "lost by the simulated wire", "it was asked for: `loss` of `loopback`")     \
    X(FILTERED, "filtered", 1, "refused by the filter", "it was asked for: the stage's condition")           \
    X(NOT_SAMPLED, "not_sampled", 1, "left out by the sampler", "it was asked for: `every` of the sampler")  \
    X(BEHIND, "behind", 0, "the consumer was behind and its policy is drop",                                 \
      "`policy = \"wait\"` stops the queue instead; or a faster disk, a handler that does less, "            \
      "`sample`")                                                                                            \
    X(WRITE_ERROR, "write_error", 0, "the file, or the object, could not be written",                        \
      "the writer's error in the summary has the system's reason: a full disk, a removed folder")            \
    X(QUOTA, "quota", 0, "the writer's quota is used up", "a larger `quota`, or `delete_oldest`")            \
    X(ENOUGH, "enough", 1, "the writer has what it was to write",                                            \
      "it was asked for: `quota` with `when_full = \"stop\"`")                                               \
    X(SEND_ERROR, "send_error", 0, "the system refused to send it",                                          \
      "the errors in the summary have the system's message")                                                 \
    X(NO_PEER, "no_peer", 0, "there was no peer to send it to",                                              \
      "a remote address, or wait until the peer has sent or connected")                                      \
    X(CONNECTION_LOST, "connection_lost", 0, "its connection ended before the peer had it",                  \
      "the disconnect event has the reason")                                                                 \
    X(BAD_FRAMING, "bad_framing", 0, "invalid length prefix",                                                \
      "the same length prefix at both ends: width, byte order, whether it counts itself")                    \
    X(FLUSHED, "flushed", 1, "thrown away by flush", "it was asked for: `q:flush()`")                        \
    X(NO_CONSUMER, "no_consumer", 0, "no pipe or handler of the queue took it",                              \
      "give the queue a handler, a pipe or `get_burst`")                                                     \
    X(BAD_TUNNEL, "bad_tunnel", 0, "a length or a checksum of the headers that its flow takes off is wrong", \
      "the sender: what comes has wrong lengths or checksums outside")                                       \
    X(LATE, "late", 0, "its batch had been handed over: a larger window or timeout_us waits longer",         \
      "a larger `window` or `timeout_us`; where several queues feed one stage, `wait`")                      \
    X(OUTLIER, "outlier", 0, "its number is far from those before it, and too few others agreed with it",    \
      "the sender whose number is wrong; a sender that restarts is found again")                             \
    X(DUPLICATE, "duplicate", 0, "its place in the batch was taken already",                                 \
      "the sender, or the network, sends packets twice; or the numbers' width is wrong")                     \
    X(BAD_PLACE, "bad_place", 0,                                                                             \
      "it has no place in a batch: a field is absent, or slot or offset are outside; or no payload",         \
      "the fields of the place rule: offset, width, byte order, `slots`")                                    \
    X(BAD_FORMAT, "bad_format", 0, "its header does not match the stage's format, or is truncated",          \
      "`f:decode(packet)` reports which constant differs: give the stage that format")                       \
    X(OVERLAP, "overlap", 0, "some of its bytes of the heap were there already, and others not",             \
      "the sender: its pieces of one heap overlap, or two senders use the same heap ids")                    \
    X(PAST_END, "past_end", 0, "it reaches past the end of its heap",                                        \
      "the fields for offset and size: bytes, not elements")                                                 \
    X(SIZE_CHANGED, "size_changed", 0, "its heap size differs from earlier packets of the heap",             \
      "the sender: it uses the heap's id for two heaps")                                                     \
    X(BAD_PAYLOAD, "bad_payload", 0, "its payload is not a whole number of elements of input_type",          \
      "`input_type` and `payload_offset`")                                                                   \
    X(INCOMPLETE, "incomplete", 0, "its batch was not complete, and missing_action is drop",                 \
      "`missing_action` other than drop hands it over with gaps")                                            \
    X(FRAGMENT, "fragment", 0, "IP fragment: replay does not reassemble fragments",                          \
      "replay at a raw interface keeps fragments")                                                           \
    X(JOINED, "joined", 0,                                                                                   \
      "several packets that were joined to one on the way: ethtool -K DEVICE gro off lro off, and where a "  \
      "kernel sends over veth, tso off gso off there",                                                       \
      "`ethtool -K DEVICE gro off lro off`, and where a kernel sends over veth `tso off gso off` there")     \
    X(SHARED, "shared", 0, "others read it, so it could not be rewritten",                                   \
      "`s:copy` in front of the rewriting stage: it then changes packets that are its own")                  \
    X(DEVICE_LOST, "device_lost", 0,                                                                         \
      "the GPU or the kernel that had it failed: its stage's error has the reason",                          \
      "the stage's error in the summary has the reason: a kernel that wrote where it may not, or "           \
      "hardware")                                                                                            \
    X(BAD_DESCRIPTOR, "bad_descriptor", 0,                                                                   \
      "invalid descriptor: bad operation, flag, length, writer or ticket",                                   \
      "the kernel: descriptors that the functions of gn.h write are valid; `k.fault` has the last one")      \
    X(NOT_ITS_REGION, "not_its_region", 0,                                                                   \
      "the kernel's descriptor names a region that the kernel was not given, or not for that",               \
      "name the region in `regions` (or `remote`) of `k:start`")                                             \
    X(OUTSIDE_REGION, "outside_region", 0,                                                                   \
      "the kernel's descriptor reaches past the end of its region, or of a packet buffer",                   \
      "the kernel: a packet lies in one buffer of its region")                                               \
    X(OTHER_LINK, "other_link", 0,                                                                           \
      "the capture has it of a link that is not Ethernet, and it can't be made a frame: 802.11, CAN, "       \
      "netlink",                                                                                             \
      "nothing: what can be made a frame is; `tshark -r FILE -T fields -e frame.protocols` names the "       \
      "others")                                                                                              \
    X(CUT, "cut", 0, "the capture has not all of the datagram: record it with a larger snaplen",             \
      "record with a larger snaplen (`tcpdump -s 0`)")                                                       \
    X(STOPPED, "stopped", 0, "came or was queued before the stop, and not taken or sent in the time left",   \
      "nothing: it came, or was queued, too close to the stop")

typedef enum dq_reason {
#define X(id, ...) DQ_DROP_##id,
    DQ_REASON_ROWS(X)
#undef X
        DQ_REASONS
} dq_reason;

typedef struct dq_reason_row {
    const char *name;
    bool wanted; // requested by the script: not a loss
    const char *text, *advice;
} dq_reason_row;
extern const dq_reason_row dq_reasons[DQ_REASONS];

// Additional counters of a line: X(NAME, name, unit, what it counts).
#define DQ_EXTRA_ROWS(X)                                                                                     \
    X(COPIED, "copied", "packets", "packets copied rather than handed over by reference")                    \
    X(DUPLICATED, "duplicated", "packets", "packets that the simulated wire doubled; they count as in, too") \
    X(CORRUPTED, "corrupted", "packets", "packets that the simulated wire spoiled")                          \
    X(REORDERED, "reordered", "packets",                                                                     \
      "packets that the simulated wire delivered out of order; of a gaps stage, new numbers below the "      \
      "highest")                                                                                             \
    X(KERNEL_DROPPED, "kernel_dropped", "packets",                                                           \
      "datagrams or frames that the kernel dropped before they came to a queue: larger kernel buffers, or "  \
      "a faster consumer")                                                                                   \
    X(KERNEL_DROPPED_SUPER, "kernel_dropped_super", "messages",                                              \
      "of those, counted in joined messages: each may have been many datagrams")                             \
    X(SYSCALLS, "syscalls", "calls", "system calls to send or receive")                                      \
    X(FILES, "files", "files", "files written")                                                              \
    X(FILE_BYTES, "file_bytes", "bytes", "bytes of these files, headers included")                           \
    X(DELETED_FILES, "deleted_files", "files", "of these files, deleted to keep the quota")                  \
    X(STALL_NS, "stall_ns", "ns", "time for which a writer waited for the disk")                             \
    X(TRUNCATED, "truncated", "packets", "packets written, or captured, shorter than they were")             \
    X(TIMED, "timed", "packets", "packets sent that had a send time")                                        \
    X(LATE, "late", "packets",                                                                               \
      "of those, packets whose time had passed when their turn came; of a gaps stage, packets whose number " \
      "lies below its window")                                                                               \
    X(REFUSED, "refused", "packets",                                                                         \
      "packets that send refused (NO_SPACE_AVAILABLE), as their connection's peer does not read")            \
    X(ONE_SIDED, "one_sided", "operations",                                                                  \
      "reads, writes and atomics on the memory of peers that succeeded")                                     \
    X(ONE_SIDED_BYTES, "one_sided_bytes", "bytes", "bytes that these moved")                                 \
    X(COPIES, "copies", "operations", "copies between a kernel's own regions (`gn_copy`)")                   \
    X(COPIED_BYTES, "copied_bytes", "bytes", "bytes that these moved")                                       \
    X(TRANSFORMED, "transformed", "packets",                                                                 \
      "packets that got or lost headers by the actions of their flow")                                       \
    X(RAW, "raw", "packets",                                                                                 \
      "packets that a convert stage passed unchanged: the type or scale of their samples is not known")      \
    X(REWRITTEN, "rewritten", "packets",                                                                     \
      "packets that had every field that the stage rewrites, and for a map one of its values")               \
    X(NIC_MISSED, "nic_missed", "frames",                                                                    \
      "frames that the device had no room for: more descriptors, or a faster consumer")                      \
    X(NIC_NO_BUFFER, "nic_no_buffer", "times", "times that the device found no buffer: raise num_bufs")      \
    X(NIC_RX_ERRORS, "nic_rx_errors", "frames", "frames that came damaged")                                  \
    X(NIC_TX_ERRORS, "nic_tx_errors", "frames", "frames that the device could not send")                     \
    X(NIC_PAUSE_RECEIVED, "nic_pause_received", "frames",                                                    \
      "pause frames (802.3x) that the device received: its peer throttles what is sent")                     \
    X(NIC_PAUSE_SENT, "nic_pause_sent", "frames",                                                            \
      "pause frames (802.3x) that the device sent: the receive path was behind, and throttled the peer")     \
    X(ANSWERED, "answered", "packets",                                                                       \
      "packets of the interface's own: answers, questions, membership reports")                              \
    X(UNANSWERED, "unanswered", "packets",                                                                   \
      "of these, packets never made, for want of room in the queue or of buffers")                           \
    X(LOOPS, "loops", "times", "times that a capture was read to its end")                                   \
    X(BAD_RECORDS, "bad_records", "records", "records of a capture that are cut off or damaged")             \
    X(BATCHES, "batches", "batches", "batches handed over complete")                                         \
    X(PARTIAL, "partial", "batches", "batches that were not complete, also where they were dropped")         \
    X(TIMEOUTS, "timeouts", "batches", "of these, batches whose time was up")                                \
    X(PUSHED, "pushed", "batches", "of these, batches whose place newer ones needed")                        \
    X(SKIPPED, "skipped", "batches", "batches of which nothing came, between two others")                    \
    X(EXPECTED, "expected", "cells",                                                                         \
      "cells that came, and those that are missing; of a gaps stage, numbers from the first to the highest") \
    X(UNIQUE, "unique", "numbers", "of these, numbers that came")                                            \
    X(MISSING, "missing", "cells", "of these, cells that did not come, and something behind them did")       \
    X(CUT, "cut", "cells", "cells that did not come where a stream begins or ends: they are in neither")     \
    X(RESYNCS, "resyncs", "times", "times that the stream was found at another place")                       \
    X(OUTLIERS, "outliers", "packets", "packets with a number far from those before, which no others had")   \
    X(DUPLICATE, "duplicate", "packets", "packets whose number came before")                                 \
    X(RESTARTS, "restarts", "times", "times that the numbers of a stream continued far from those before")   \
    X(UNNUMBERED, "unnumbered", "packets", "packets without a number, or without the field of their stream") \
    X(UNTRACKED, "untracked", "packets",                                                                     \
      "packets of streams beyond the first 256, whose numbers are not followed")                             \
    X(OBJECTS, "objects", "objects", "objects uploaded")                                                     \
    X(RETRIES, "retries", "requests", "requests of uploads that were made again")                            \
    X(READERS, "readers", "readers", "programs that attached to a shared stream")                            \
    X(LENT, "lent", "blocks", "blocks lent to readers, each once for each reader")                           \
    X(MISSED, "missed", "blocks",                                                                            \
      "blocks not lent to a reader, as it had not released earlier ones: raise lend, or release sooner")

typedef enum dq_extra {
#define X(id, ...) DQ_EXTRA_##id,
    DQ_EXTRA_ROWS(X)
#undef X
        DQ_EXTRAS
} dq_extra;

typedef struct dq_extra_row {
    const char *name, *unit, *text;
} dq_extra_row;
extern const dq_extra_row dq_extras[DQ_EXTRAS];

typedef enum dq_line_kind {
    DQ_LINE_RX,
    DQ_LINE_TX,
    DQ_LINE_WIRE,
    DQ_LINE_STAGE,
    DQ_LINE_TAP,
    DQ_LINE_WRITER
} dq_line_kind;

// One account: in = out + held + the sum of dropped; exact when quiescent.
typedef struct dq_line {
    char name[DQ_NAME_LEN];  // interface, or stage
    char queue[DQ_NAME_LEN]; // queue name, for RX and TX
    int32_t kind;            // dq_line_kind
    uint32_t queue_id;
    uint64_t in, in_bytes, out, out_bytes, bursts, held;
    uint64_t dropped[DQ_REASONS];
    uint64_t extra[DQ_EXTRAS];
    double pace_bps, pace_pps; // TX: the requested rates
    double pace_speed;         // TX: speed at which it follows receive times
} dq_line;

#define DQ_OTHER_ERRORS INT32_MAX // errno of errors without a count of their own

#define DQ_SOURCES  256 // sources, or peers, with separate counters
#define DQ_PEER_LEN 80

// Histograms of lines: X(NAME, name, unit: packets or ns, kind of line, metric, what it counts, title in the
// summary; empty: not shown in the summary's list). Lines of queues, taps and writers have theirs from the
// start, those of stages are created when the stage fills one.
#define DQ_HISTOGRAM_ROWS(X)                                                                                 \
    X(BURST_SIZE, "burst_size", "packets", RX, "rx.burst.size",                                              \
      "Packets of each burst that a receive queue delivered", "bursts of %s")                                \
    X(HANDLER_TIME, "handler_time", "ns", TAP, "handler.time", "Time of each call of an on_burst handler",   \
      "calls of %s")                                                                                         \
    X(WRITE_STALL, "write_stall", "ns", WRITER, "write.stall", "Waits of a writer for the disk",             \
      "waits of %s for the disk")                                                                            \
    X(COMPLETION_TIME, "completion_time", "ns", STAGE, "reorder.completion.time",                            \
      "From the first packet of a batch until it was handed over",                                           \
      "batches of %s from their first packet on")                                                            \
    X(RUN_TIME, "run_time", "ns", STAGE, "gpu.run.time",                                                     \
      "From a launch of a list of moves or of a kernel until its ticket was seen", "launches of %s")         \
    X(SEND_TIME, "send_time", "ns", STAGE, "kernel.send.time",                                               \
      "From when a kernel's send was taken from its ring until it was done", "sends of %s")                  \
    X(PUT_TIME, "put_time", "ns", STAGE, "kernel.put.time",                                                  \
      "From when a kernel's put was taken from its ring until it was done", "puts of %s")                    \
    X(GET_TIME, "get_time", "ns", STAGE, "kernel.get.time",                                                  \
      "From when a kernel's get was taken from its ring until it was done", "gets of %s")                    \
    X(ADD_TIME, "add_time", "ns", STAGE, "kernel.add.time",                                                  \
      "From when a kernel's signal or fetch_add was taken from its ring until it was done", "adds of %s")    \
    X(COPY_TIME, "copy_time", "ns", STAGE, "kernel.copy.time",                                               \
      "From when a kernel's copy was taken from its ring until it was done", "copies of %s")                 \
    X(FILE_TIME, "file_time", "ns", STAGE, "kernel.file.time",                                               \
      "From when what a kernel writes to a file was taken from its ring until the system had it",            \
      "file writes of %s")                                                                                   \
    X(GAP_ERROR, "gap_error", "ns", TX, "tx.gap.error",                                                      \
      "How far gaps between paced packets were from what was asked for", "")                                 \
    X(TIME_ERROR, "time_error", "ns", TX, "tx.time.error", "How long after their send time packets left", "")

typedef enum dq_histogram_kind {
#define X(id, ...) DQ_HISTOGRAM_##id,
    DQ_HISTOGRAM_ROWS(X)
#undef X
        DQ_HISTOGRAMS
} dq_histogram_kind;

typedef struct dq_histogram_row {
    const char *name, *unit;
    int32_t line; // dq_line_kind
    const char *metric, *text, *title;
} dq_histogram_row;
extern const dq_histogram_row dq_histogram_rows[DQ_HISTOGRAMS];

// Buckets are exact below 32, then 16 per octave. The last bucket starts above 128 s for times in ns.
#define DQ_HISTOGRAM_BUCKETS 544

// Returns the largest value of bucket k.
uint64_t dq_histogram_most(uint32_t k);

// A histogram of a queue or of a stage.
typedef struct dq_histogram {
    char name[DQ_NAME_LEN]; // interface, or stage
    int32_t kind;           // dq_histogram_kind
    uint32_t queue_id;
    uint64_t first, most; // value of bucket 0; largest possible value, 0: unlimited
    uint64_t sum;         // sum of the values, each less `first`
    uint64_t n[DQ_HISTOGRAM_BUCKETS];
} dq_histogram;

#endif
