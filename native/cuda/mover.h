// mover.h: lists of moves executed by a GPU, several in flight at a time.
//
// One thread appends moves to the open list. It is launched when it is full, has enough bytes, is too old, or
// on request; then the next free list is opened. A list holds references to the bursts that its moves read,
// and the latches of their destinations, until the GPU has written its ticket. The poller of the mover reads
// the ticket with one load: no driver call and no extra thread.
#ifndef DQI_CUDA_MOVER_H
#define DQI_CUDA_MOVER_H

#include "core/dq_burst.h"
#include "core/histogram.h"
#include "cuda/gpu.h"
#include "kernels/unpack.h"

typedef struct dqi_mover dqi_mover;

#define DQI_LIST_MOVES 4096 // maximum moves of a list

// Defaults of dqi_mover_conf: the cost of launches dominates smaller lists (docs/measurements.md). A list is
// launched DQI_LIST_NS after its first move; if the consumer requests the lists of closed batches
// (dqi_mover_push), after DQI_LIST_LAZY_NS, because of the packets that it holds.
#define DQI_LIST_BYTES   (1 << 20)
#define DQI_LIST_NS      20000
#define DQI_LIST_LAZY_NS 100000

typedef struct dqi_mover_conf {
    dqi_gpu *gpu;
    uint32_t conversion;      // dqk_conversion or dqk_packed of converting moves; 0: none
    const dqk_unpack *packed; // of dqk_packed; read by dqi_mover_new alone
    uint32_t bytes;           // source bytes at which a list is launched
    int64_t delay_ns;         // age of its first move at which a list is launched
    dqi_histogram *ran;       // ns from launch until its ticket was seen; written by the poll; may be NULL
} dqi_mover_conf;

// Creates a mover with its lists and streams. `what` names the object in errors. Control thread.
int dqi_mover_new(const dqi_mover_conf *conf, const char *what, dqi_mover **out, dq_diag *diag);
// Frees it with all its lists: none may be in flight, unless the GPU is lost. m may be NULL.
void dqi_mover_free(dqi_mover *m);

// Reports whether n more moves fit in one list, which then stays open until dqi_mover_push; launches the open
// list if necessary. False: all lists are in flight, retry after a poll; or the GPU is lost (dqi_mover_lost).
// Appending thread.
bool dqi_mover_room(dqi_mover *m, uint32_t n);
// Appends n moves, for which there must be room; far: their sources are in host memory, not the GPU's. Until
// their list has ended it references b (may be NULL), and has added 1 to *latch (may be NULL), which it
// subtracts with release order. Appending thread.
void dqi_mover_add(dqi_mover *m, const dqk_move *moves, uint32_t n, bool far, dq_burst *b,
                   _Atomic uint32_t *latch);
// Ends appending. Launches the open list if it has enough bytes, or, if now is set, any move. Appending
// thread.
void dqi_mover_push(dqi_mover *m, bool now);

// Ends lists whose tickets are written, and launches the open list if it is old; returns the number of lists
// ended. If the GPU is lost, all lists end. One thread at a time, not necessarily the appending one.
int dqi_mover_poll(dqi_mover *m, int64_t mono_ns);
// Returns the interval between checks of the ticket of a launch flown_ns ago: a sixteenth of that, at least 3
// us and at most 1 ms, so that a long kernel costs little CPU and is detected with little delay.
static inline int64_t dqi_look_ns(int64_t flown_ns) {
    int64_t ns = flown_ns / 16;
    return ns < 3000 ? 3000 : ns > 1000000 ? 1000000 : ns;
}
// Returns the ns until the next useful poll; INT64_MAX: no list is in flight or open.
int64_t dqi_mover_next(const dqi_mover *m);
// Sleeps briefly between checks: on the virtual clock, and at the end of a session.
void dqi_mover_nap(void);
bool dqi_mover_lost(const dqi_mover *m);

// Counters of a mover. Any thread.
typedef struct dqi_mover_counts {
    uint64_t launches, moves, bytes;
} dqi_mover_counts;
void dqi_mover_read(const dqi_mover *m, dqi_mover_counts *out);

#endif
