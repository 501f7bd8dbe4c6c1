// dq_figures.h: counters of a session.
#ifndef DQ_FIGURES_H
#define DQ_FIGURES_H

#include "core/dq_ledger.h"

// Writes up to max lines of the ledger; returns the total available. Any thread.
uint32_t dq_ledger(const dq_session *s, dq_line *lines, uint32_t max);

// Accuracy of a transmit queue: how departures matched its pace and the packets' send times. A departure is
// the session time read just before a packet is handed to the engine.
typedef struct dq_tx_accuracy {
    char name[DQ_NAME_LEN], queue[DQ_NAME_LEN]; // interface; queue
    uint32_t queue_id;
    uint32_t reserved;
    // Sums of the gaps between packets as paced, and as measured. A new transmission or a new pace starts a
    // new sequence, and its first gap is not counted.
    uint64_t wanted_ns, took_ns;
    uint64_t overdue_ns; // time by which an available packet is late
} dq_tx_accuracy;

// Writes up to max entries, for transmit queues with a pace or send times; returns how many exist. Any
// thread.
uint32_t dq_tx_accuracies(const dq_session *s, dq_tx_accuracy *out, uint32_t max);

// Writes up to max histograms; returns the number the session has. Any thread.
uint32_t dq_histograms(const dq_session *s, dq_histogram *out, uint32_t max);

#define DQ_FLOW_COUNTS 16384 // flows per queue with counters of their own

// Packets received by a queue for one flow, counted before the flow's actions, or after them if the device
// has applied them.
typedef struct dq_flow_count {
    uint32_t iface; // index in the order of dq_iface_add
    uint32_t queue_id;
    uint32_t flow_id; // 0: all flows beyond the first DQ_FLOW_COUNTS
    uint32_t reserved;
    uint64_t packets, bytes;
} dq_flow_count;
// Writes up to max entries, for flows that have received packets; returns how many there are. Any thread.
uint32_t dq_flow_counts(const dq_session *s, dq_flow_count *out, uint32_t max);

typedef enum dq_source_kind {
    DQ_SOURCE_NUMBER,
    DQ_SOURCE_PEER,
    DQ_SOURCE_OTHERS, // all beyond the first DQ_SOURCES
    DQ_SOURCE_UNKNOWN // packets without the field; missing: cells with no source so far
} dq_source_kind;

// Packets received and missed by a reorder or gaps stage for one source. A missing packet of a reorder stage
// is attributed to the source that last filled its cell. The sum of `missing` over all sources is the stage's
// DQ_EXTRA_MISSING.
typedef struct dq_source_count {
    char name[DQ_NAME_LEN]; // stage
    char peer[DQ_PEER_LEN]; // "host:port", of DQ_SOURCE_PEER
    uint64_t number;        // of DQ_SOURCE_NUMBER
    int32_t which;          // dq_source_kind
    uint32_t reserved;
    uint64_t packets; // placed, in closed batches; of a gaps stage, with a new number
    uint64_t missing;
    uint64_t late, duplicate, dropped; // dropped: for any other reason
    uint64_t reordered, restarts;      // of a gaps stage
} dq_source_count;
// Writes up to max entries; returns the number of sources. Any thread.
uint32_t dq_source_counts(const dq_session *s, dq_source_count *out, uint32_t max);

// Packets a socket's receive queue received from one peer.
typedef struct dq_peer_count {
    char name[DQ_NAME_LEN]; // interface
    char peer[DQ_PEER_LEN]; // "host:port"; empty: all beyond the first DQ_SOURCES
    uint32_t queue_id;
    uint32_t reserved;
    uint64_t packets, bytes;
} dq_peer_count;
// Writes up to max entries; returns the number of peers. Any thread.
uint32_t dq_peer_counts(const dq_session *s, dq_peer_count *out, uint32_t max);

// System errors of one kind on a queue's socket.
typedef struct dq_queue_error {
    char name[DQ_NAME_LEN], queue[DQ_NAME_LEN]; // interface; queue
    int32_t dir;                                // dq_dir
    uint32_t queue_id;
    int32_t err; // errno, or DQ_OTHER_ERRORS; ESHUTDOWN on a receive queue: it was shut down
    uint64_t n;  // transmit: packets not sent; receive: times reception stopped
} dq_queue_error;
// Writes up to max entries; returns the number of errors. Any thread.
uint32_t dq_queue_errors(const dq_session *s, dq_queue_error *out, uint32_t max);

#endif
