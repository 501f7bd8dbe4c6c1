// engine.h: engine operations.
#ifndef DQI_ENGINE_H
#define DQI_ENGINE_H

#include "core/dq_core.h"
#include "core/dq_ledger.h"
#include "packet/dq_rules.h"
#include "pipeline/dq_session.h"

typedef struct dqi_engine_ops dqi_engine_ops;
typedef struct dq_queue_pair dq_queue_pair; // dq_queue_pair.h
typedef struct dq_rma dq_rma;               // dq_rma.h
typedef struct dq_loan dq_loan;
typedef struct dq_lease dq_lease;
typedef struct dq_remote dq_remote;
struct pollfd;

// Flow operations of engines with frames. All are set.
typedef struct dqi_flow_ops {
    int (*change_rules)(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                        uint32_t n_add, dq_diag *diag);
    int (*drop_all)(dq_iface *i, bool drop);
} dqi_flow_ops;

// Link operations. NULL: not supported by the engine.
typedef struct dqi_link_ops {
    int (*mac)(const dq_iface *i, uint8_t mac[6]);
    uint32_t (*mtu)(const dq_iface *i); // bytes after the Ethernet header; 0: no known limit
    int (*multicast)(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);
    // Whether dqi_flows_classify sees the interface's frames, so that it can answer for addresses; DQ_OK, or
    // the reason why not. NULL: it does not.
    int (*answers)(const dq_iface *i, dq_diag *diag);
} dqi_link_ops;

// Connection operations. NULL if not supported, except read.
typedef struct dqi_conn_ops {
    int (*open)(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
    int (*close)(dq_iface *i, uint32_t conn);
    int (*read)(dq_iface *i, uint32_t conn, dq_conn_info *out);
    int (*setsockopt)(dq_iface *i, uint32_t conn, int level, int option, const void *v, uint32_t len);
    // Returns true if the queue accepts no more for b's destination although its ring has space; dq_tx_send
    // then returns NO_SPACE_AVAILABLE. Counts rejections caused by b's connection alone (DQ_EXTRA_REFUSED).
    // Any thread.
    bool (*refuse)(dq_queue *q, const dq_burst *b);
    void (*captured)(dq_iface *i); // received packets will be captured: record their destinations
} dqi_conn_ops;

// Operations that name their memory. All are set.
typedef struct dqi_rma_ops {
    // Posts up to n operations, already checked by dq_rma_post, in order; returns how many. Each settles one
    // part of its op on completion, on any thread; the close settles the rest. Never blocks.
    uint32_t (*post)(dq_queue *q, const dq_rma *list, uint32_t n);
    // Returns why the connection can't accept an operation, as text; NULL: it can. Any thread.
    const char *(*refuses)(dq_queue *q, const dq_rma *m);
    // Lends memory to the peer of a connection, and revokes it (dq_rma.h). Control thread.
    int (*lend)(dq_iface *i, uint32_t conn, const dq_loan *loan, dq_lease *out, dq_diag *diag);
    int (*revoke)(dq_iface *i, dq_lease *lease);
    // Returns the k-th region lent by a connection's peer; false if k is out of range. Any thread.
    bool (*lent)(dq_iface *i, uint32_t conn, uint32_t k, dq_remote *out);
    // Adds a region by hand, for a peer that does not announce it.
    int (*declare)(dq_iface *i, uint32_t conn, const dq_remote *remote, dq_diag *diag);
} dqi_rma_ops;

// Manually connected queue pairs; the arguments are checked by dq_queue_pair_*. All are set.
typedef struct dqi_pair_ops {
    int (*open)(dq_iface *i, uint32_t *conn, dq_diag *diag);
    int (*join)(dq_iface *i, uint32_t conn, const dq_queue_pair *peer, dq_diag *diag);
    int (*read)(dq_iface *i, uint32_t conn, dq_queue_pair *ours);
} dqi_pair_ops;

// Memory regions that come and go while the session is open.
typedef struct dqi_region_ops {
    // Whether region r can be deleted, or one can be added (r NULL): DQ_OK, or NOT_SUPPORTED with the reason.
    int (*change)(const dq_iface *i, const dq_region *r, dq_diag *diag);
    // Registers a region with the interface's device before any queue uses it, and ends that when none of its
    // buffers is in use. Both NULL: there is nothing to register.
    int (*join)(dq_iface *i, const dq_region *r, dq_diag *diag);
    void (*leave)(dq_iface *i, const dq_region *r);
} dqi_region_ops;

// Operations of an engine. Calls on one interface never overlap, except rx, tx and arm on different queues.
struct dqi_engine_ops {
    const char *name;
    const dqi_engine_ops *sockets; // engine of interfaces with a socket_config; NULL: this one
    bool payload;                  // queues hold payloads, not frames
    bool origins;                  // packets may carry the origin recorded in a capture
    bool waits;                    // received packets wait for space without a limit
    bool virtual_clock;            // may run without threads
    bool reaches_device_only;      // all segments but the first may be in memory the CPU can't read
    bool no_regions;               // queues may have none: operations name their memory
    bool copies;                   // packet bytes are not accessed after tx has accepted them
    bool leaves;                   // only the queue writes the bytes of its packets
    bool loops;                    // receives a capture, which may be repeated
    uint32_t align;                // of buffers, bytes
    // Whether packets of a transmit queue, and writes to a peer's memory, can carry this immediate value.
    // NULL: none.
    bool (*carries_imm)(const dq_queue *q, uint32_t value);
    // Declares its use of regions (dqi_region_want_groups), before they are laid out. NULL.
    void (*claim)(dq_iface *i);
    // Whether the device can place segment `seg` of the receive queue's packets directly into a GPU's memory,
    // tested with `bytes` at `at`; false: why has the reason. Before the open. NULL: no device can.
    bool (*reaches_gpu)(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                        dq_diag *why);
    // Opens a queue added to an interface that is open, before any poller or classifier sees it. NULL: the
    // engine opens queues with the interface only.
    int (*queue_open)(dq_queue *q, dq_diag *diag);
    // Whether a queue can be deleted: DQ_OK, or NOT_SUPPORTED with the reason. NULL: each can.
    int (*queue_deletable)(const dq_queue *q, dq_diag *diag);
    // Whether a queue being deleted has no packet left inside the engine. Any thread. NULL: held alone
    // decides.
    bool (*queue_empty)(const dq_queue *q);
    // Releases the device's part of a deleted queue, which no thread polls. NULL: nothing to do before the
    // close.
    void (*queue_close)(dq_queue *q);
    // Acquires the interface: regions and queues are known (i->rx, i->tx), the arena is mapped. May block.
    int (*open)(dq_iface *i, dq_diag *diag);
    int (*start)(dq_iface *i, dq_diag *diag); // NULL: nothing to do
    // Ends reception and new connections: records the position of each of its sources. Queued sends may still
    // be drained. Pollers continue, but none gets past dqi_stop_time until all interfaces have stopped, so
    // this must wait neither for a poller nor for a lock that a poller holds there.
    void (*stop)(dq_iface *i);
    // Frees everything; accepts a partially opened interface. All pollers have ended.
    void (*close)(dq_iface *i);
    // Appends at most room packets to *b (its off, len, ts, bufs, bytes, or handles and to_columns where
    // q->rx.handles allows; tx accepts such bursts of the same engine; c.in counts arrivals, including
    // drops). May replace an empty *b by another burst of at most batch_size packets. Returns the packets
    // added. Sets q->next_ns if it knows when more will arrive. With room 0 (b is NULL if the queue has no
    // regions) it only serves its connections. A connection without a consumer (dqi_queue_wants) is not read.
    // Queue's poller; never blocks.
    int (*rx)(dq_queue *q, dq_burst **b, uint32_t room);
    // Sends packets [first, first + n) of b; returns the number accepted. Accepting the last packet of b
    // consumes the caller's reference. Packets that can never be sent are accepted and counted as dropped; 0:
    // retry later (it sets q->next_ns, or the queue is kicked). Counts c.out, c.out_bytes. Queue's poller;
    // never blocks.
    int (*tx)(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
    // Completes earlier sends; called on every poll of a transmit queue, also an idle one. Returns the work
    // done. NULL.
    int (*reap)(dq_queue *q);
    // Drops packets inside the engine of a transmit queue, counted as stopped; pollers have ended. NULL.
    void (*drop_rest)(dq_queue *q);
    // Writes up to max descriptors for poll(2) that become ready with work for q; returns the number. NULL:
    // kicks only.
    int (*arm)(dq_queue *q, struct pollfd *fds, int max);
    // Called after a sleep that did not time out, with the n descriptors of arm and their revents. NULL.
    void (*woken)(dq_queue *q, const struct pollfd *fds, int n);
    uint64_t (*held)(dq_queue *q); // packets inside the engine, counted in c.in; NULL: none
    // Returns how many bursts waiting before a receive queue reference `of`; its poller is paused. NULL: none
    // do.
    uint32_t (*holds)(const dq_queue *q, const dq_burst *of);
    int64_t (*flush)(dq_queue *q);                  // discards waiting packets, counted; NULL
    int (*lines)(dq_iface *i, dq_line *l, int max); // additional ledger lines; NULL
    void (*refresh)(dq_iface *i);                   // reads kernel counters into extras; NULL. Any thread.
    void (*wanted)(dq_queue *q); // a pipe was added to a receive queue. Control thread. NULL: nothing to do
    const dqi_flow_ops *flows;   // NULL if not supported, as the following
    const dqi_link_ops *link;
    const dqi_conn_ops *conns;
    const dqi_rma_ops *rma;
    const dqi_pair_ops *pairs;
    const dqi_region_ops *regions; // NULL: no memory is registered, regions come and go freely
};

// The engines of this build, terminated by NULL (engine/engines.c).
extern const dqi_engine_ops *const dqi_engines[];
// Returns the engine of this name, or NULL.
const dqi_engine_ops *dqi_engine_find(const char *name);

#endif
