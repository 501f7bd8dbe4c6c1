// reorder.h: a reorder stage's window of open batches, for its three parts: stage_reorder.c (set-up),
// reorder_place.c (packets into batches, on the sources' pollers), reorder_out.c (aggregates out of it, on
// the poller of the stage's own queue); reorder_window.c opens and closes batches for all of them, and
// reorder_trial.c those of unexpected numbers.
//
// A batch lies in one buffer of the stage's region, and what is known of it in a record that belongs to that
// buffer. The window holds the batches low .. low + window - 1, which are handed over in order: the lowest
// one when it is full, when its time is up, or when a packet comes that has no room in the window. What the
// window is, is changed under the lock, once for a run of packets of one batch; payloads are copied without
// it, by any number of threads: who sets a cell's bit in `present` has the cell. A closed batch is read when
// its last filler has gone.
//
// Where a GPU moves the payloads, placing a packet appends to the list of its source's mover (cuda/mover.h)
// instead of copying; each list is one more filler of its batches, until the GPU has done it. Gaps are one
// more list.
#ifndef DQI_REORDER_H
#define DQI_REORDER_H

#include "core/dq_burst.h"
#include "reorder/convert.h"
#include "core/counters.h"
#include "cuda/mover.h"
#include "pipeline/engine.h"
#include "reorder/ends.h"
#include "reorder/handover.h"
#include "reorder/reorder_sources.h"
#include "core/ring.h"
#include "core/histogram.h"
#include "program/payload.h"
#include "pipeline/stage.h"

typedef struct dqi_batch {
    dq_aggregate agg;
    dq_burst *burst; // of one packet, with the buffer
    uint8_t *data;
    _Atomic uint64_t *present, *extra; // as in agg
    _Atomic uint16_t *ids;             // of each cell: its packet's source; NULL: sources are not told apart
    uint32_t epoch;                    // of the stage's
    uint64_t first;                    // what slot 0 has: the number (by a sequence), or the batch's
    _Atomic uint32_t fillers;          // threads that copy into it
    int64_t due_ns;                    // session time; INT64_MAX: none
    int64_t opened_ns;                 // session time: its first packet came
    uint64_t gap_cell;                 // those below are there, or their gaps are on a list
    bool marked;                       // bitmap and extra numbers are on a list, as they stay
    dq_reason otherwise;               // of a trial: what its packets are
    bool rejected;                     // and they are
} dqi_batch;

// A second window, with batches of numbers that the window does not expect: reorder_trial.c.
typedef struct dqi_trial {
    bool begun, over;  // over: the window has taken it, or something else happened, since it was last asked
    dqi_batch **open;  // batch o at o & open_mask
    uint64_t low, top; // it has had packets of both. Counted as those of the window
    int64_t score;     // its packets, less those of the window since it began
    bool alone;        // the window had none since it began
    int64_t needed;    // score that makes it the window
} dqi_trial;

// Bitmaps and extra numbers that a GPU gets, too: of each buffer, in the host's memory, which GPUs reach, and
// in the GPU's.
typedef struct dqi_marks {
    uint8_t *host; // NULL: the GPU gets none
    cu_ptr gpu;
    uint64_t each, bytes; // of a buffer, and those of them that are something
    size_t mapped;        // of the host's
} dqi_marks;

#define DQI_MAX_SOURCES 64

// A queue that feeds the stage, and how far it has come.
typedef struct dqi_source {
    dq_queue *queue;
    bool begun;       // under the stage's lock
    uint64_t reached; // the highest batch of its packets
    dqi_mover *mover; // NULL: its poller copies
} dqi_source;

typedef struct dqi_reorder {
    dq_stage *stage;
    dq_queue *out;        // the stage's own
    dq_reorder_conf conf; // without its pointers; its sizes are of the output
    dqi_convert convert;
    dq_prog *seq, *batch, *slot, *offset, *extra;
    dqi_payload_rule payload;
    uint32_t *flow_ids;
    dqi_reorder_sources *by_source; // NULL: they are not told apart
    uint64_t mask;                  // of a sequence number's bits
    uint32_t most;                  // bytes of a slot at most
    bool stream;         // payloads go past the caches: they are copied as they are, into large batches
    uint32_t cells_each; // of a slot
    uint64_t back;       // batches behind top that numbers reach; the others that they tell apart are ahead
    int64_t far;         // batches: a place further away is of another stream
    int64_t silence_ns;  // of packets' times: a sender may have restarted
    int64_t agree;       // score that a trial needs without silence
    uint32_t late_agree; // packets in a row that look late, and are of a sender that restarted

    dqi_spin lock; // of what follows
    bool synced;
    uint64_t low, top;  // the lowest batch that is not handed over; the highest that had a packet
    uint64_t top_first; // what slot 0 of top has
    uint64_t sync;      // the batch in which the stream was joined,
    uint32_t epoch;     // how often it was joined before
    uint64_t full;      // bit o % 64: batch o, one of the last 64 below low, was full
    int64_t last_ts;    // the latest of the packets' times
    uint64_t stray_at;  // the batch of the last packet that was late, and how many in a row agree
    uint32_t strays;
    dqi_trial trial;
    uint32_t longest; // payload so far
    dqi_batch **open; // batch o at o & open_mask
    uint32_t open_mask;
    dqi_counters side; // skipped batches, resyncs

    _Atomic int64_t due_ns; // the first time-out of an open batch; INT64_MAX: none
    dqi_ring closed;        // batches in order, until they are read
    dqi_batch *head;        // the next of them
    dqi_handover done;
    dqi_ends ends;    // where by_source is NULL
    uint8_t *records; // one a buffer
    size_t record_bytes, records_bytes;
    dqi_source sources[DQI_MAX_SOURCES];
    _Atomic uint32_t n_sources;
    dqi_gpu *gpu;    // moves payloads; NULL: pollers do
    dqi_mover *gaps; // of what is missing, by out's poller; NULL: pollers fill gaps, or nobody does
    dqi_marks marks;
    dqi_histogram ran; // ns of the lists of all movers, by the stage's poll
} dqi_reorder;

enum { DQI_PLACED = -1 }; // of no dq_reason

// ---- reorder_window.c: with the lock ----------------------------------------------------------------------

// The open batch of a number (of a sequence, or of a batch) with one more filler, or NULL and why not. ts: of
// the packet; len: its payload.
dqi_batch *dqi_window_find(dqi_reorder *r, uint64_t number, uint32_t len, int64_t ts, dq_reason *why);
// True when a packet of source `self` with this number would push batches out before all sources have come as
// far. Notes how far this one has.
bool dqi_window_ahead(dqi_reorder *r, uint64_t number, dqi_source *self);
// A filler leaves b having placed n packets in as many cells, the last of them with that time; longest:
// payload that it saw.
void dqi_window_leave(dqi_reorder *r, dqi_batch *b, uint32_t n, int64_t ts, uint32_t longest);
// Closes every open batch below `to`, with that flag where they are not full.
void dqi_window_advance(dqi_reorder *r, uint64_t to, uint32_t flag);
// Closes the batches whose time is up, and those before them.
void dqi_window_expire(dqi_reorder *r, int64_t now);
// Closes all, with that flag those behind which none is full; how many.
uint64_t dqi_window_close(dqi_reorder *r, uint32_t flag);

// Closes the lowest batches as long as they are full.
void dqi_window_close_full(dqi_reorder *r);
// What slot 0 has of the batch that is so far from top.
uint64_t dqi_window_first(const dqi_reorder *r, int64_t away);
// The window begins again with the batch of this number; an open one is closed.
void dqi_window_synchronise(dqi_reorder *r, uint64_t number);
// A new batch, whose slot 0 has `first`. NULL: why not.
dqi_batch *dqi_window_open(dqi_reorder *r, uint64_t ordinal, uint64_t first, uint32_t len, int64_t ts,
                           dq_reason *why);
void dqi_window_note_due(dqi_reorder *r);

// ---- reorder_trial.c: with the lock -----------------------------------------------------------------------

// Whether there is a trial, and such a batch fits into it.
bool dqi_trial_has(const dqi_reorder *r, uint64_t ordinal);
// The batch of a packet that the window does not expect, with one more filler. why: what the packet is if it
// does not belong to the stream. NULL: with trial.over, look again, as the window has moved; else why not.
dqi_batch *dqi_trial_find(dqi_reorder *r, uint64_t ordinal, uint32_t len, int64_t ts, bool quiet,
                          dq_reason *why);
// n packets were placed in b, which may be of the trial or of the window.
void dqi_trial_count(dqi_reorder *r, const dqi_batch *b, uint32_t n);
// Ends the trial, if there is one.
void dqi_trial_reject(dqi_reorder *r);

static inline bool dqi_block_full(const dqi_batch *b) { return dqi_aggregate_full(&b->agg); }
// True when the number, in a sequence or of a batch, is of this batch. Any filler of b.
static inline bool dqi_block_has(const dqi_reorder *r, const dqi_batch *b, uint64_t number) {
    return r->seq ? ((number - b->first) & r->mask) < r->conf.slots : number == b->first;
}

// ---- reorder_place.c --------------------------------------------------------------------------------------

// The stage's push (dqi_stage_ops).
int dqi_reorder_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out);

// ---- reorder_out.c ----------------------------------------------------------------------------------------

// The next run of missing cells of a closed batch from *cell on: where it begins in the data and its *bytes,
// 0: there is none. *cell: the one behind it.
uint64_t dqi_batch_gap(const dqi_reorder *r, const dqi_batch *b, uint64_t *cell, uint64_t *bytes);
// Drops a closed batch, counted.
void dqi_reorder_drop(dqi_reorder *r, dqi_batch *b, dq_reason why);
// Drops all that is closed.
void dqi_reorder_drop_closed(dqi_reorder *r, dq_reason why);

// The rest of the stage's poll, and what its queue does (dqi_stage_queue_conf).
int dqi_reorder_poll(dq_stage *st);
int dqi_reorder_rx(dq_queue *q, dq_burst **b, uint32_t room);
void dqi_reorder_wanted(dq_queue *q);

// ---- reorder_gpu.c ----------------------------------------------------------------------------------------

// The stage's payloads are moved by that GPU, or nothing changes where its region and conf want none. Control
// thread.
int dqi_reorder_gpu_open(dqi_reorder *r, const char *name, dq_diag *diag);
// The mover of one more source.
int dqi_reorder_gpu_join(dqi_reorder *r, dqi_source *s, dq_diag *diag);
// Looks at what the GPU has done: work. Sets *next_ns to an earlier session time where it has to look again.
int dqi_reorder_gpu_poll(dqi_reorder *r, int64_t *next_ns);
// The moves of b's bitmap and extra numbers, which stay as they are, go on m's list, where the GPU gets them.
// It has room for dqi_reorder_gpu_marks of them.
void dqi_reorder_gpu_mark(dqi_reorder *r, dqi_batch *b, dqi_mover *m);
uint32_t dqi_reorder_gpu_marks(const dqi_reorder *r);
// Puts the gaps of b, which nobody fills any more, on lists, and what dqi_reorder_gpu_mark did not. False:
// there is nothing, or it has been done.
bool dqi_reorder_gpu_gaps(dqi_reorder *r, dqi_batch *b);
// Waits until nothing is under way.
void dqi_reorder_gpu_finish(dqi_reorder *r);
void dqi_reorder_gpu_free(dqi_reorder *r);
// Whether lists are launched, on a clock that runs meanwhile: then r->ran has how long they took.
bool dqi_reorder_gpu_timed(const dqi_reorder *r);

// ---- stage_reorder.c --------------------------------------------------------------------------------------

// The reorder stage whose aggregates q has; NULL: it has none.
const dqi_reorder *dqi_reorder_of(const dq_queue *q);

#endif
