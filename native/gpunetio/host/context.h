// context.h: shared by the files of this folder: context, rings, and the polling interval of idle rings.
#ifndef DQI_PROXY_CONTEXT_H
#define DQI_PROXY_CONTEXT_H

#include "core/atomics.h"
#include "core/burst.h"
#include "core/counters.h"
#include "cuda/gpu.h"
#include "gpunetio/device/gn_check.h"
#include "gpunetio/device/gn_context.h"
#include "gpunetio/device/gn_mlx5.h"
#include "gpunetio/host/dq_gn.h"
#include "pipeline/op.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"

#include <pthread.h>

// Polling state of a ring: continuous for some time after work, then less and less often.
typedef struct dqi_gn_look {
    int64_t worked_ns; // session time of the last work
} dqi_gn_look;

// A submitted burst or operation, or none, and the tickets that complete with it.
typedef struct dqi_gn_flight {
    dq_burst *b;
    dq_op *op;    // operation over a connection or to a file
    uint64_t end; // ticket after the last one
    uint64_t bytes, packets;
    int64_t since; // with timers: when it was taken
    uint32_t what; // gn_op of op
} dqi_gn_flight;

#define DQI_GN_FLIGHTS 256 // a power of two
#define DQI_GN_ROWS    256 // maximum regions of a context

typedef struct dqi_gn_tx {
    dq_gn *gn;
    dq_stage *stage;
    dq_queue *queue;
    dqi_burst_pool *bursts;
    dqi_op_pool *pool; // operations, one per entry of flights; NULL: the ring needs none
    gn_slot *slots;
    gn_tx_state *state;
    gn_tx_posted *posted;
    uint32_t log2, ops;
    gn_mlx5_queue mlx5; // the ring has such entries in place of slots; completions NULL: it has not
    dqi_gn_look look;
    dqi_gn_flight flights[DQI_GN_FLIGHTS];
    uint64_t first_flight, n_flights; // numbers; entry k % DQI_GN_FLIGHTS
    bool has_next; // prepared but not submitted: the queue was full; next NULL: without packets
    dq_burst *next;
    uint64_t next_end;
    uint32_t most;  // maximum bytes of a packet
    uint32_t conn;  // last one known to exist
    dq_op *next_op; // with next_bytes, if next is an operation
    uint32_t next_bytes, next_what;
    int64_t next_since, began_ns; // when next was taken; when the descriptor at `accepted` was started
    struct dqi_histogram *took;   // tx_timers.c; NULL: no timers
    dq_burst *scratch; // buffer with words of operations over a connection; NULL: not allocated yet
    _Atomic uint64_t accepted, completed; // as in state, which the kernel may have overwritten
    dqi_count refused;
    uint64_t flying, most_flying; // bytes in flights
    int64_t deficit;              // bytes it may still submit in this round
    uint64_t copied;              // bytes of the copy at `accepted` done so far
    _Atomic uint64_t failed;      // ticket + 1 of the first that failed; 0: none
    uint32_t missed;              // polls that did not find the ticket at `accepted`
    int64_t hole_ns;              // since when others wait behind a missing ticket; 0: none
    int64_t wait_ns;              // since when `accepted` waits for another ring; 0: it does not
    bool unmet;                   // a wait failed: the next operation fails
    dqi_counters c;
    dqi_gauge held;
    _Atomic uint32_t fault; // last gn_fault
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
    dqi_gn_flight *held_bursts; // an entry per slot
    uint64_t first_held, n_held;
    _Atomic uint64_t filled;
    uint64_t head;                // lower tickets are released
    uint32_t region[DQ_MAX_SEGS]; // row of the queue's k-th region
    uint64_t dropped;
    dqi_counters c;
    dqi_gauge held;
    _Atomic bool detached;
} dqi_gn_rx;

// A semaphore consumed by the script.
typedef struct dqi_gn_sem {
    gn_sem_producer *producer;
    gn_sem_consumer *consumer;
    gn_sem_item *items;
    uint64_t taken, done;
    uint32_t log2;
} dqi_gn_sem;

typedef struct dqi_gn_run dqi_gn_run; // kernel_run.c

// Private lines of rings in the GPU's memory, for a kernel on a GPU; transmit rings first.
typedef struct dqi_gn_lines {
    cu_ptr at; // 0: none
    uint32_t n_tx, n_rx;
    gn_rx_local *home[DQ_GN_RINGS]; // of each receive ring, in the block
} dqi_gn_lines;

struct dq_gn {
    _Atomic uint32_t refs; // its caller, and each of its stages
    char name[DQ_NAME_LEN], what[DQ_NAME_LEN + 16];
    dq_session *session;
    dq_gn_conf conf; // without its name
    dqi_gpu *gpu;    // NULL: kernel on the host
    uint8_t *block;
    size_t bytes;
    bool apart;         // the kernel runs in its own process
    dqi_gn_lines lines; // otherwise, for a kernel on a GPU
    gn_proxy_words *proxy;
    gn_kernel_words *kernel;
    dqi_gn_tx tx[DQ_GN_RINGS];
    dqi_gn_rx rx[DQ_GN_RINGS];
    dqi_gn_sem sems[DQ_GN_SEMS];
    uint32_t n_tx, n_rx, n_sems;
    gn_region regions[DQI_GN_ROWS]; // the proxy's own copy of the rows
    dq_region *bound[DQI_GN_ROWS];  // their regions; NULL: a peer's, in the last n_peers rows
    dq_remote peers[DQ_GN_REGIONS];
    uint32_t n_regions, n_peers, conn;
    dqi_gn_run *run;      // NULL: not started
    uint64_t beat;        // last value in `kernel`
    int64_t beat_ns;      // when it last changed
    pthread_mutex_t lock; // protects replacement of the run, and the script's semaphores
    uint32_t restarted;
    _Atomic bool aborted, died; // died: its kernel has died and is not replaced yet
};

// Returns the row of a region, or UINT32_MAX.
uint32_t dqi_gn_row(const dq_gn *g, const dq_region *r);
// Releases a reference.
void dqi_gn_unref(dq_gn *g);
// Sets the next poll time of the stage. Returns worked.
int dqi_gn_look_again(dqi_gn_look *l, dq_stage *st, int worked);

// Create the stage of a ring with initialized memory. Control thread.
int dqi_gn_tx_open(dqi_gn_tx *t, dq_session *s, const char *name, dq_diag *diag);
// Whether the kernel has posted the ticket: reads its words, without lap bits, unless the entries are mlx5's;
// then the entry that had its place before must be completed, too. Any thread.
bool dqi_gn_tx_posted(const dqi_gn_tx *t, uint64_t ticket, gn_u64 words[GN_TX_WORDS]);
int dqi_gn_rx_open(dqi_gn_rx *r, dq_session *s, const char *name, dq_diag *diag);
// Release everything a ring references; its poller is paused.
void dqi_gn_tx_detach(dqi_gn_tx *t);
void dqi_gn_rx_detach(dqi_gn_rx *r);
// Frees the run; its kernel has ended.
// Ends the use of the GPU by a kernel that has ended; false: it still runs, and uses all that it has.
bool dqi_gn_run_rest(dqi_gn_run *run);
void dqi_gn_run_free(dqi_gn_run *run);
// Lays out and initializes the block: rings and semaphores are empty, tickets continue.
int dqi_gn_write_block(dq_gn *g, dq_diag *diag);

// Places the kernel's private ring state, starting at the first tickets, in the GPU's memory, and updates the
// block's rows. The caller frees l->at.
int dqi_gn_local_lines(dqi_gpu *g, uint8_t *block, dqi_gn_lines *l, const char *what, dq_diag *diag);
// Writes the kernel's progress in each receive ring back to the block. The kernel has ended.
int dqi_gn_lines_home(dqi_gpu *g, const dqi_gn_lines *l, const char *what, dq_diag *diag);

// renewal.c. Breaks the rings of a kernel that has died: they accept no more. Any thread.
void dqi_gn_break(dq_gn *g);
// Empties and restarts its rings for another kernel. Control thread.
void dqi_gn_renew(dq_gn *g);

#endif
