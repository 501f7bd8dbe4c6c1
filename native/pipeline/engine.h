// engine.h: what every engine does.
#ifndef DQI_ENGINE_H
#define DQI_ENGINE_H

#include "core/dq_core.h"
#include "core/dq_ledger.h"
#include "packet/dq_rules.h"
#include "pipeline/dq_queue_pair.h"
#include "pipeline/dq_session.h"

typedef struct dqi_engine_ops dqi_engine_ops;
typedef struct dq_rma dq_rma; // dq_rma.h
typedef struct dq_loan dq_loan;
typedef struct dq_lease dq_lease;
typedef struct dq_remote dq_remote;
struct pollfd;

// Flows: engines of frames. Nothing here is NULL.
typedef struct dqi_flow_ops {
    int (*change_rules)(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                        uint32_t n_add, dq_diag *diag);
    int (*drop_all)(dq_iface *i, bool drop);
} dqi_flow_ops;

// The link and who else is there. What an engine lacks is NULL.
typedef struct dqi_link_ops {
    int (*mac)(const dq_iface *i, uint8_t mac[6]);
    uint32_t (*mtu)(const dq_iface *i); // bytes behind the Ethernet header; 0: no limit is known
    int (*multicast)(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);
    // Whether the interface's frames come to dqi_flows_classify, so that it can answer for addresses; DQ_OK,
    // or why not. NULL: they don't.
    int (*answers)(const dq_iface *i, dq_diag *diag);
} dqi_link_ops;

// Connections. What an engine lacks is NULL, but for read.
typedef struct dqi_conn_ops {
    int (*open)(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
    int (*close)(dq_iface *i, uint32_t conn);
    int (*read)(dq_iface *i, uint32_t conn, dq_conn_info *out);
    int (*setsockopt)(dq_iface *i, uint32_t conn, int level, int option, const void *v, uint32_t len);
    // True when the queue takes no more for where b goes, though its ring has room: dq_tx_send says
    // NO_SPACE_AVAILABLE. Counts what b's connection alone is to blame for (DQ_EXTRA_REFUSED). Any thread.
    bool (*refuse)(dq_queue *q, const dq_burst *b);
    void (*captured)(dq_iface *i); // what it receives will be in a capture: it notes where each packet went
} dqi_conn_ops;

// Operations that name their memory. Nothing here is NULL.
typedef struct dqi_rma_ops {
    // Begins operations that dq_rma_post has checked, in their order, at most n: how many. Each settles one
    // part of its op when it ends, on any thread; at the close those that are left do. Never blocks.
    uint32_t (*post)(dq_queue *q, const dq_rma *list, uint32_t n);
    // Why an operation can't be begun on its connection, in words; NULL: it can. Any thread.
    const char *(*refuses)(dq_queue *q, const dq_rma *m);
    // Lends memory to the peer of a connection, and takes it back (dq_rma.h). Control thread.
    int (*lend)(dq_iface *i, uint32_t conn, const dq_loan *loan, dq_lease *out, dq_diag *diag);
    int (*revoke)(dq_iface *i, dq_lease *lease);
    // The k-th of what a connection's peer has lent; false: there are not so many. Any thread.
    bool (*lent)(dq_iface *i, uint32_t conn, uint32_t k, dq_remote *out);
    // Adds to it by hand, for a peer of another kind.
    int (*tell)(dq_iface *i, uint32_t conn, const dq_remote *remote, dq_diag *diag);
} dqi_rma_ops;

// Queue pairs that are connected by hand (dq_queue_pair.h, which has checked what it was given). Nothing here
// is NULL.
typedef struct dqi_pair_ops {
    int (*open)(dq_iface *i, uint32_t *conn, dq_diag *diag);
    int (*join)(dq_iface *i, uint32_t conn, const dq_queue_pair *peer, dq_diag *diag);
    int (*read)(dq_iface *i, uint32_t conn, dq_queue_pair *ours);
} dqi_pair_ops;

// What every engine does. Calls on one interface never overlap, except rx, tx and arm on different queues.
struct dqi_engine_ops {
    const char *name;
    const dqi_engine_ops *sockets; // has the interfaces with a socket_config; NULL: this one
    bool payload;                  // queues hold payloads, not frames
    bool origins;                  // packets may come with what a capture says of them
    bool waits;                    // what comes waits for room, as long as it takes
    bool virtual_clock;            // may run without threads
    bool reaches_device_only; // packets may lie, but for their first segment, where the CPU can't read them
    bool no_regions;          // queues may have none: operations name their memory
    bool copies;              // when tx has taken a packet nobody reads or writes its bytes any more
    bool leaves;              // nobody but the queue writes the bytes of its packets
    bool loops;               // what it receives is a capture, which may come several times
    uint32_t align;           // of buffers, bytes
    // Says how it will use regions (dqi_region_want_groups), before they are laid out. NULL.
    void (*claim)(dq_iface *i);
    // Whether the device can put segment `seg` of what the receive queue gets straight into a GPU's memory,
    // of which it may try `bytes` at `at`; false: why says what is in the way. Before the open. NULL: none
    // can.
    bool (*reaches_gpu)(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                        dq_diag *why);
    // Acquires the interface: regions and queues are known (i->rx, i->tx), the arena is mapped. May block.
    int (*open)(dq_iface *i, dq_diag *diag);
    int (*start)(dq_iface *i, dq_diag *diag); // NULL: nothing to do
    // Ends reception and new connections: takes down how far each of its sources has come. Queued sends may
    // still be drained. Pollers go on, but none of them gets past dqi_stop_time until all interfaces have
    // stopped: it waits for none, and for no lock that they hold then.
    void (*stop)(dq_iface *i);
    // Frees all; works on a half-open interface. All pollers have ended.
    void (*close)(dq_iface *i);
    // Appends at most room packets to *b (its off, len, ts, bufs, bytes, or handles and to_columns where
    // q->handles allows; tx takes such bursts of the same engine; c.in counts what arrived, drops included).
    // May exchange an empty *b for another of at most batch_size packets. Packets added, 0: none. Sets
    // q->next_ns when it knows when there will be more. With room 0 (b is NULL where the queue has no
    // regions) it only sees to its connections. A connection that nobody takes packets of (dqi_queue_wants)
    // isn't read. Queue's poller; never blocks.
    int (*rx)(dq_queue *q, dq_burst **b, uint32_t room);
    // Sends packets [first, first + n) of b; the number taken. When it takes the burst's last packet it also
    // takes the caller's reference. What it can't send for good it takes and counts as dropped; 0: try again
    // later (it sets q->next_ns, or the queue is kicked). Counts c.out, c.out_bytes. Queue's poller; never
    // blocks.
    int (*tx)(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
    // Completes earlier sends, on every poll of a transmit queue, also when there is nothing to send; work
    // done. NULL.
    int (*reap)(dq_queue *q);
    // Drops what it keeps of a transmit queue, counted as stopped; pollers have ended. NULL.
    void (*drop_rest)(dq_queue *q);
    // Descriptors whose readiness means work for q, for poll(2); at most max; the number. NULL: kicks only.
    int (*arm)(dq_queue *q, struct pollfd *fds, int max);
    // Something ended the sleep that arm was called for: the same n descriptors, with what poll(2) says of
    // them. NULL.
    void (*woken)(dq_queue *q, const struct pollfd *fds, int n);
    uint64_t (*held)(dq_queue *q); // packets inside the engine, counted in c.in; NULL: none
    // How many bursts that wait before a receive queue hold `of`; its poller stands still. NULL: none do.
    uint32_t (*holds)(const dq_queue *q, const dq_burst *of);
    int64_t (*flush)(dq_queue *q);                  // discards what waits, counting it; NULL
    int (*lines)(dq_iface *i, dq_line *l, int max); // further ledger lines; NULL
    void (*refresh)(dq_iface *i);                   // reads kernel counters into extras; NULL. Any thread.
    void (*wanted)(dq_queue *q); // a pipe more reads a receive queue. Control thread. NULL: nothing to do
    const dqi_flow_ops *flows;   // these: NULL where there are none
    const dqi_link_ops *link;
    const dqi_conn_ops *conns;
    const dqi_rma_ops *rma;
    const dqi_pair_ops *pairs;
};

// The engines of this version by their names; NULL ends them (engine/engines.c).
extern const dqi_engine_ops *const dqi_engines[];
// The engine of this name, or NULL.
const dqi_engine_ops *dqi_engine_find(const char *name);

#endif
