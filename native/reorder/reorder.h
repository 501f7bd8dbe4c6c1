// reorder.h: window of open batches of a reorder stage, shared by stage_reorder.c (setup), reorder_place.c
// (packets into batches, on the sources' pollers), reorder_out.c (closed batches, on the poller of the
// stage's own queue), reorder_window.c (opens and closes batches) and reorder_trial.c (batches of unexpected
// numbers).
//
// A batch is one buffer of the stage's region, with a record per buffer. The window has the batches low ..
// low + window - 1, delivered in order: the lowest one is closed when it is full, at its timeout, or when a
// packet arrives beyond the window. The window changes under the lock, once for a run of packets of one
// batch; any number of threads copies payloads without it: the thread that sets a cell's bit in `present`
// owns the cell. A closed batch is read after its last filler has finished.
//
// If a GPU moves the payloads, placing a packet appends to the list of its source's mover (cuda/mover.h)
// instead of copying; each list is one more filler of its batches until the GPU has executed it. Gaps form
// another list.
#ifndef DQI_REORDER_H
#define DQI_REORDER_H

#include "cuda/mover.h"
#include "program/payload.h"
#include "reorder/assembly.h"
#include "reorder/convert.h"
#include "reorder/reorder_sources.h"

typedef struct dqi_batch {
    dqi_assembled base;
    _Atomic uint64_t *present, *extra; // as in agg
    _Atomic uint16_t *ids;             // source of each cell; NULL: no accounting by source
    uint32_t epoch;                    // copy of the stage's
    uint64_t first;                    // number of slot 0 (with a sequence), or of the batch
    uint64_t gap_cell;                 // cells below are present, or their gaps on a list
    bool marked;                       // final bitmap and extra numbers are on a list
    dq_reason otherwise;               // of a trial: drop reason of its packets
    bool rejected;                     // the trial was rejected
} dqi_batch;

// Second window, for batches with numbers that the window does not expect: reorder_trial.c.
typedef struct dqi_trial {
    bool begun, over;  // over: the trial has been resolved since the last call
    dqi_batch **open;  // batch o at o & open_mask
    uint64_t low, top; // lowest and highest batch, counted as in the window
    int64_t score;     // its packets minus those of the window since it began
    bool alone;        // the window has had no packets since
    int64_t needed;    // score that makes the trial the window
} dqi_trial;

// Bitmaps and extra numbers copied to a GPU, per buffer: in the host's memory, which the GPU reads, and in
// the GPU's.
typedef struct dqi_marks {
    uint8_t *host; // NULL: not copied
    cu_ptr gpu;
    uint64_t each, bytes; // stride per buffer; bytes used of it
    size_t mapped;        // host bytes
} dqi_marks;

#define DQI_MAX_SOURCES 64

// A queue that feeds the stage, with its progress.
typedef struct dqi_source {
    dq_queue *queue;
    bool begun;       // under the stage's lock
    uint64_t reached; // highest batch of its packets
    dqi_mover *mover; // NULL: its poller copies
} dqi_source;

typedef struct dqi_reorder {
    dqi_assembly base;
    dq_reorder_conf conf; // without its pointers; sizes count output bytes
    dqi_convert convert;
    dq_prog *seq, *batch, *slot, *offset, *extra;
    dqi_payload_rule payload;
    uint32_t *flow_ids;
    dqi_reorder_sources *by_source; // NULL: no accounting by source
    uint64_t mask;                  // of the sequence number's bits
    uint32_t most;                  // maximum bytes per slot
    bool stream;                    // payloads bypass the caches: unconverted, into large batches
    uint32_t cells_each;            // per slot
    uint64_t back;                  // batches behind top within reach of the numbers; others are ahead
    int64_t far;                    // batches: a larger distance means another stream
    int64_t silence_ns;             // gap in packet time after which a sender may have restarted
    int64_t agree;                  // score that a trial needs without a preceding silence
    uint32_t late_agree;            // consecutive packets that look late and prove a restart

    dqi_spin lock; // protects the following fields
    bool synced;
    uint64_t low, top;  // lowest batch not closed; highest batch with a packet
    uint64_t top_first; // number of top's slot 0
    uint64_t sync;      // batch at which the stream was joined
    uint32_t epoch;     // incremented when it is joined again
    uint64_t full;      // bit o % 64: batch o, one of the 64 below low, was full
    int64_t last_ts;    // latest packet time
    uint64_t stray_at;  // batch of the last late packet, and number of consecutive ones near it
    uint32_t strays;
    dqi_trial trial;
    uint32_t longest; // longest payload so far
    dqi_batch **open; // batch o at o & open_mask
    uint32_t open_mask;
    dqi_assembled **armed; // with a ring: per buffer of the region, its record while it waits for packets
    dqi_counters side;     // skipped batches, resyncs

    dqi_source sources[DQI_MAX_SOURCES];
    _Atomic uint32_t n_sources;
    dqi_mover *gaps; // fills gaps, by out's poller; NULL: pollers fill them, or they are kept
    dqi_marks marks;
    dqi_histogram ran; // execution times in ns of the movers' lists, by the stage's poll
} dqi_reorder;

enum { DQI_PLACED = -1 }; // not a dq_reason

// ---- reorder_window.c: with the lock ----------------------------------------------------------------------

// Returns the open batch of a number (of a sequence, or of a batch) with one more filler; NULL, with the
// reason in *why. ts: packet time; len: payload.
dqi_batch *dqi_window_find(dqi_reorder *r, uint64_t number, uint32_t len, int64_t ts, dq_reason *why);
// Whether a packet of source `self` with this number would close batches that not all sources have reached.
// Updates the progress of self.
bool dqi_window_ahead(dqi_reorder *r, uint64_t number, dqi_source *self);
// Ends a filler of b that has placed n packets in as many cells, the last with time ts; longest: longest
// payload seen.
void dqi_window_leave(dqi_reorder *r, dqi_batch *b, uint32_t n, int64_t ts, uint32_t longest);
// Closes all open batches below `to`, with the flag if incomplete.
void dqi_window_advance(dqi_reorder *r, uint64_t to, uint32_t flag);
// Closes batches at their timeout, and those before them.
void dqi_window_expire(dqi_reorder *r, int64_t now);
// Closes all batches, with the flag for those after the last full one; returns their number.
uint64_t dqi_window_close(dqi_reorder *r, uint32_t flag);

// Closes the lowest batches while they are full.
void dqi_window_close_full(dqi_reorder *r);
// Returns the number of slot 0 of the batch at distance `away` from top.
uint64_t dqi_window_first(const dqi_reorder *r, int64_t away);
// Restarts the window at the batch of this number, closing the open ones.
void dqi_window_synchronise(dqi_reorder *r, uint64_t number);
// Opens a batch whose slot 0 has the number `first`. NULL, with the reason in *why.
dqi_batch *dqi_window_open(dqi_reorder *r, uint64_t ordinal, uint64_t first, uint32_t len, int64_t ts,
                           dq_reason *why);
void dqi_window_note_due(dqi_reorder *r);

// ---- reorder_trial.c: with the lock -----------------------------------------------------------------------

// Whether a trial is active whose window can include this batch.
bool dqi_trial_has(const dqi_reorder *r, uint64_t ordinal);
// Returns the trial's batch for a packet that the window does not expect, with one more filler. why: on entry
// the drop reason if the packet is not part of the stream. NULL: with trial.over, retry, as the window has
// moved; otherwise *why is the reason.
dqi_batch *dqi_trial_find(dqi_reorder *r, uint64_t ordinal, uint32_t len, int64_t ts, bool quiet,
                          dq_reason *why);
// Counts n packets placed in b, a batch of the trial or of the window.
void dqi_trial_count(dqi_reorder *r, const dqi_batch *b, uint32_t n);
// Rejects the active trial, if any.
void dqi_trial_reject(dqi_reorder *r);

static inline bool dqi_block_full(const dqi_batch *b) { return dqi_aggregate_full(&b->base.agg); }
// Whether the number, of a sequence or a batch, belongs to this batch. Any filler of b.
static inline bool dqi_block_has(const dqi_reorder *r, const dqi_batch *b, uint64_t number) {
    return r->seq ? ((number - b->first) & r->mask) < r->conf.slots : number == b->first;
}

// ---- reorder_place.c --------------------------------------------------------------------------------------

// The stage's push (dqi_stage_ops).
int dqi_reorder_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out);

// ---- reorder_out.c ----------------------------------------------------------------------------------------

// Finds the next run of missing cells of a closed batch from *cell on: returns its position in the data and
// its *bytes, 0: none. *cell: set to the cell after it.
uint64_t dqi_batch_gap(const dqi_reorder *r, const dqi_batch *b, uint64_t *cell, uint64_t *bytes);
// Operations of the stage on closed batches (dqi_assembly_ops).
bool dqi_reorder_discard(dqi_assembly *a, dqi_assembled *b);
void dqi_reorder_fill_gaps(dqi_assembly *a, dqi_assembled *b);
void dqi_reorder_account(dqi_assembly *a, const dqi_assembled *b);

// ---- reorder_gpu.c ----------------------------------------------------------------------------------------

// Sets up the GPU that moves the stage's payloads; no effect if neither its region nor its conf requires one.
// Control thread.
int dqi_reorder_gpu_open(dqi_reorder *r, const char *name, dq_diag *diag);
// Creates the mover of another source.
int dqi_reorder_gpu_join(dqi_reorder *r, dqi_source *s, dq_diag *diag);
// Processes the GPU's progress; returns as dqi_stage_await does.
int dqi_reorder_gpu_poll(dqi_reorder *r);
// Appends moves of b's final bitmap and extra numbers to m's list, if the GPU gets them. The list needs space
// for dqi_reorder_gpu_marks moves.
void dqi_reorder_gpu_mark(dqi_reorder *r, dqi_batch *b, dqi_mover *m);
uint32_t dqi_reorder_gpu_marks(const dqi_reorder *r);
// Appends to lists the gaps of b, which has no more fillers, and the marks unless appended earlier. False:
// nothing to do, or done.
bool dqi_reorder_gpu_gaps(dqi_reorder *r, dqi_batch *b);
// Waits for all lists.
void dqi_reorder_gpu_finish(dqi_reorder *r);
void dqi_reorder_gpu_free(dqi_reorder *r);
// Whether lists are launched on a real clock, so that r->ran has their execution times.
bool dqi_reorder_gpu_timed(const dqi_reorder *r);

// ---- stage_reorder.c --------------------------------------------------------------------------------------

// Returns the reorder stage that delivers through q; NULL: none.
const dqi_reorder *dqi_reorder_of(const dq_queue *q);

#endif
