// context.h: what the files of this folder share: a context, its rings, and how often an idle ring is looked
// at.
#ifndef DQI_PROXY_CONTEXT_H
#define DQI_PROXY_CONTEXT_H

#include "core/atomics.h"
#include "core/burst.h"
#include "core/counters.h"
#include "cuda/gpu.h"
#include "gpunetio/device/gn_check.h"
#include "gpunetio/device/gn_context.h"
#include "pipeline/op.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"
#include "gpunetio/host/dq_gn.h"

#include <pthread.h>

// When a ring is looked at next: at once for a while after work, then ever less often.
typedef struct dqi_gn_look {
    int64_t worked_ns; // session time of the last work
} dqi_gn_look;

// A burst on its way, or none, and the tickets that are done when it is.
typedef struct dqi_gn_flight {
    dq_burst *b;
    dq_op *op;    // or an operation over a connection
    uint64_t end; // ticket behind the last
    uint64_t bytes, packets;
    int64_t since; // with timers: when it was taken
    uint32_t what; // gn_op of op
} dqi_gn_flight;

#define DQI_GN_FLIGHTS 256 // a power of two
#define DQI_GN_ROWS    256 // regions of a session

typedef struct dqi_gn_tx {
    dq_gn *gn;
    dq_stage *stage;
    dq_queue *queue;
    dqi_burst_pool *bursts;
    dqi_op_pool *pool; // of operations, for a place in flights each; NULL: the ring takes none
    gn_slot *slots;
    gn_tx_state *state;
    gn_tx_posted *posted;
    uint32_t log2, ops;
    dqi_gn_look look;
    dqi_gn_flight flights[DQI_GN_FLIGHTS];
    uint64_t first_flight, n_flights; // numbers; place k % DQI_GN_FLIGHTS
    bool has_next; // made, and not handed over yet: the queue was full; without packets next is NULL
    dq_burst *next;
    uint64_t next_end;
    uint32_t most;  // bytes of a packet
    uint32_t conn;  // the last one that was there
    dq_op *next_op; // of next_bytes, where next is an operation
    uint32_t next_bytes, next_what;
    int64_t next_since, began_ns; // next was taken; the descriptor at `accepted` was begun
    struct dqi_histogram *took;   // tx_timers.c; NULL: no timers
    dq_burst *scratch;            // a buffer that operations over a connection have words in; NULL: none yet
    _Atomic uint64_t accepted, completed; // as in state, of which the kernel may have made anything
    dqi_count refused;
    uint64_t flying, most_flying; // bytes in flights
    int64_t deficit;              // bytes that it may still hand over in this round
    uint64_t copied;              // bytes of the copy at `accepted` that are done
    uint32_t missed;              // times that the ticket at `accepted` was not there
    int64_t hole_ns;              // since when others wait behind a ticket that is not there; 0: none
    dqi_counters c;
    dqi_gauge held;
    _Atomic uint32_t fault; // the last one
    _Atomic bool broken, detached;
} dqi_gn_tx;

typedef struct dqi_gn_rx {
    dq_gn *gn;
    dq_stage *stage;
    dq_queue *queue;
    gn_rx_slot *slots;
    gn_rx_state *state;
    gn_u64 *released;
    gn_rx_local *local;
    uint32_t log2;
    int32_t policy;
    dqi_gn_look look;
    dqi_gn_flight *held_bursts; // a place for each slot
    uint64_t first_held, n_held;
    _Atomic uint64_t filled;
    uint64_t head;                // tickets below it are released
    uint32_t region[DQ_MAX_SEGS]; // row of the queue's k-th region
    uint64_t dropped;
    dqi_counters c;
    dqi_gauge held;
    _Atomic bool detached;
} dqi_gn_rx;

// A semaphore, as the script takes from it.
typedef struct dqi_gn_sem {
    gn_sem_producer *producer;
    gn_sem_consumer *consumer;
    gn_sem_item *items;
    uint64_t taken, done;
    uint32_t log2;
} dqi_gn_sem;

typedef struct dqi_gn_run dqi_gn_run; // kernel_run.c

// The lines of rings that a kernel on a GPU keeps in the GPU's memory, transmit rings' first.
typedef struct dqi_gn_lines {
    cu_ptr at; // 0: there are none
    uint32_t n_tx, n_rx;
    gn_rx_local *home[DQ_GN_RINGS]; // of each receive ring, in the block
} dqi_gn_lines;

struct dq_gn {
    _Atomic uint32_t refs; // its caller, and each of its stages
    char name[DQ_NAME_LEN], what[DQ_NAME_LEN + 16];
    dq_session *session;
    dq_gn_conf conf; // without its name
    dqi_gpu *gpu;    // NULL: the host runs the kernel
    uint8_t *block;
    size_t bytes;
    bool apart;         // its kernel runs in a process of its own
    dqi_gn_lines lines; // else, of a kernel on a GPU
    gn_proxy_words *proxy;
    gn_kernel_words *kernel;
    dqi_gn_tx tx[DQ_GN_RINGS];
    dqi_gn_rx rx[DQ_GN_RINGS];
    dqi_gn_sem sems[DQ_GN_SEMS];
    uint32_t n_tx, n_rx, n_sems;
    gn_region regions[DQI_GN_ROWS]; // the proxy's own copy of the rows; bound: what they are of
    dq_region *bound[DQI_GN_ROWS];  // NULL: a peer's, of the last n_peers rows
    dq_remote peers[DQ_GN_REGIONS];
    uint32_t n_regions, n_peers, conn;
    dqi_gn_run *run;      // NULL: not started
    uint64_t beat;        // of kernel, as it was seen last,
    int64_t beat_ns;      // and when it changed
    pthread_mutex_t lock; // of the run's replacement, and of the semaphores as the script has them
    uint32_t restarted;
    _Atomic bool aborted, died; // died: its kernel has, and was not replaced yet
};

// The row of a region, or UINT32_MAX.
uint32_t dqi_gn_row(const dq_gn *g, const dq_region *r);
// One holder less.
void dqi_gn_unref(dq_gn *g);
// Says when the stage is polled next. Returns worked.
int dqi_gn_look_again(dqi_gn_look *l, dq_stage *st, int worked);

// Each makes the stage of a ring whose memory is there. Control thread.
int dqi_gn_tx_open(dqi_gn_tx *t, dq_session *s, const char *name, dq_diag *diag);
int dqi_gn_rx_open(dqi_gn_rx *r, dq_session *s, const char *name, dq_diag *diag);
// Lets go of what a ring holds that nobody will take any more; its poller stands still.
void dqi_gn_tx_detach(dqi_gn_tx *t);
void dqi_gn_rx_detach(dqi_gn_rx *r);
// Frees the run; its kernel has ended.
void dqi_gn_run_free(dqi_gn_run *run);
// Lays the block out and writes it: rings and semaphores are empty, tickets go on.
int dqi_gn_write_block(dq_gn *g, dq_diag *diag);

// Has what a kernel keeps of its rings for itself, from their first tickets on, lie in the GPU's memory: the
// block's rows say where. l->at is the caller's to free.
int dqi_gn_local_lines(dqi_gpu *g, uint8_t *block, dqi_gn_lines *l, const char *what, dq_diag *diag);
// The kernel has ended: writes what it had taken of each receive ring to the block.
int dqi_gn_lines_home(dqi_gpu *g, const dqi_gn_lines *l, const char *what, dq_diag *diag);

// renewal.c: a kernel has died. Its rings take nothing any more; at once, on any thread.
void dqi_gn_break(dq_gn *g);
// Its rings let go of what they hold and begin anew, for another kernel. Control thread.
void dqi_gn_renew(dq_gn *g);

#endif
