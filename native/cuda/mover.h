// mover.h: lists of moves that a GPU does, several under way at a time.
//
// One thread appends moves to the open list. It goes out as one launch when it is full, has enough bytes, is
// too old, or is wanted; then the next free list is the open one. A list holds the bursts that its moves
// read, and the latches of what they fill, until the GPU has written its ticket, which whoever polls the
// mover reads with one load: no call of the driver, no thread of its own.
#ifndef DQI_CUDA_MOVER_H
#define DQI_CUDA_MOVER_H

#include "core/dq_burst.h"
#include "core/histogram.h"
#include "cuda/gpu.h"
#include "kernels/k_move.h"

typedef struct dqi_mover dqi_mover;

#define DQI_LIST_MOVES 4096 // moves of a list at most

// The usual dqi_mover_conf: smaller lists are bound by what launches cost (docs/measurements.md). A list
// goes out when its first move is DQI_LIST_NS old; where somebody waits for batches and asks for the list of
// one that closed (dqi_mover_push), DQI_LIST_LAZY_NS, for the sake of the packets that it holds.
#define DQI_LIST_BYTES   (1 << 20)
#define DQI_LIST_NS      20000
#define DQI_LIST_LAZY_NS 100000

typedef struct dqi_mover_conf {
    dqi_gpu *gpu;
    uint32_t conversion; // dqk_conversion of moves that convert; 0: none do
    uint32_t bytes;      // a list whose sources have so many goes out,
    int64_t delay_ns;    // and one whose first move is so old
    dqi_histogram *ran;  // ns of each list from its launch until its ticket was seen; the poll's. NULL
} dqi_mover_conf;

// Makes one, with its lists and streams. `what` names who asks. Control thread.
int dqi_mover_new(const dqi_mover_conf *conf, const char *what, dqi_mover **out, dq_diag *diag);
// Frees it with what its lists still hold: nothing may be under way, unless the GPU is lost. NULL is fine.
void dqi_mover_free(dqi_mover *m);

// Whether n more moves find room, all in one list, which stays open until dqi_mover_push; sends the open list
// out where that helps. False: all lists are under way, try again after a poll; or the GPU is lost
// (dqi_mover_lost). The thread that appends.
bool dqi_mover_room(dqi_mover *m, uint32_t n);
// Appends n moves, for which there is room; far: their sources lie in the host's memory, not the GPU's. Until
// their list has ended it holds b (NULL: none), and has added 1 to *latch (NULL: none), which it takes back
// with release order. The thread that appends.
void dqi_mover_add(dqi_mover *m, const dqk_move *moves, uint32_t n, bool far, dq_burst *b,
                   _Atomic uint32_t *latch);
// Ends the appending. Sends the open list out if it has enough bytes, or, where now, if it has a move at all.
// The thread that appends.
void dqi_mover_push(dqi_mover *m, bool now);

// Ends lists whose tickets are there, and sends the open list out when it is old: lists that it dealt with.
// Of a lost GPU all lists end. One thread at a time, which may be another than that which appends.
int dqi_mover_poll(dqi_mover *m, int64_t mono_ns);
// Between two looks at the ticket of what was launched flown_ns ago: a sixteenth of that, so that a long
// kernel costs little CPU and is seen little later, within 3 us, a load or two, and 1 ms.
static inline int64_t dqi_look_ns(int64_t flown_ns) {
    int64_t ns = flown_ns / 16;
    return ns < 3000 ? 3000 : ns > 1000000 ? 1000000 : ns;
}
// ns until the next poll makes sense; INT64_MAX: nothing is under way or open.
int64_t dqi_mover_next(const dqi_mover *m);
// Sleeps for a moment between two looks: where virtual time stands still, and at the end.
void dqi_mover_nap(void);
bool dqi_mover_lost(const dqi_mover *m);

// What it did. Any thread.
typedef struct dqi_mover_counts {
    uint64_t launches, moves, bytes;
} dqi_mover_counts;
void dqi_mover_read(const dqi_mover *m, dqi_mover_counts *out);

#endif
