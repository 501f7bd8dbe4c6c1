// dq_figures.h: what a session has counted.
#ifndef DQ_FIGURES_H
#define DQ_FIGURES_H

#include "core/dq_ledger.h"

// Fills at most max lines; the number that there are. Any thread.
uint32_t dq_ledger(const dq_session *s, dq_line *lines, uint32_t max);

// How the departures of a transmit queue kept to its pace and to the packets' send times. Departures are
// session times, read just before a packet is handed to the engine.
typedef struct dq_tx_accuracy {
    char name[DQ_NAME_LEN], queue[DQ_NAME_LEN]; // interface; queue
    uint32_t queue_id;
    uint32_t reserved;
    // What the pace gives the gaps between packets that left, and what they took. A new transmission and a
    // new pace begin a gap of their own, which isn't counted.
    uint64_t wanted_ns, took_ns;
    uint64_t overdue_ns; // for so long a packet that is there should have left
} dq_tx_accuracy;

// Fills at most max, of the transmit queues with a pace or send times; the number that there are. Any thread.
uint32_t dq_tx_accuracies(const dq_session *s, dq_tx_accuracy *out, uint32_t max);

// Fills at most max; the number that there are. Any thread.
uint32_t dq_histograms(const dq_session *s, dq_histogram *out, uint32_t max);

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
