// ends.h: which cells of a stream are missing, and which were cut off with its begin or its end. For stages
// of blocks and of heaps, on the poller of the stage's own queue, batch by batch in the order in which they
// leave.
//
// A cell that did not come is missing once something that came later shows that its sender had gone past it.
// What no later packet shows so is cut: the same packets give the same figures, however long the recorder
// goes on behind them and whatever closed the last batch.
//
//   - Numbers of a sequence: what lies between the first and the last cell that came is missing.
//   - Batch and slot with a source: the same for the cells of each source (reorder_sources.c).
//   - Batch and slot without one, and heaps: cells have no order that is known, and several batches are under
//     way at once. What lacks in front of a full batch, or `window` batches in front of the last one, is
//     missing. What the stream's first batch lacks is cut; of the first heap what lacks in front of its first
//     byte. Of the other heaps what lacks in front of the last byte that came is missing.
#ifndef DQI_ENDS_H
#define DQI_ENDS_H

#include "core/dq_burst.h"
#include "reorder/handover.h"

#include <stdbool.h>
#include <stdint.h>

#define DQI_MAX_OPEN_ENDS 64 // DQ_MAX_WINDOW

// What a batch lacks that nothing vouches for so far.
typedef struct dqi_open_end {
    uint64_t ordinal, cells;
} dqi_open_end;

typedef struct dqi_ends {
    uint32_t stream; // of the batches so far
    bool begun;      // a cell of this stream came
    uint64_t last;   // the highest ordinal of the stream so far
    bool any_full;
    uint64_t full;                        // the highest of a full batch
    uint64_t tail;                        // by a sequence: cells behind the last one that came
    dqi_open_end open[DQI_MAX_OPEN_ENDS]; // else, n of them
    uint32_t n;
} dqi_ends;

// Cells turn out to be missing, or cut.
static inline void dqi_ends_count(dqi_handover *h, uint64_t missing, uint64_t cut) {
    dqi_add(&h->c.extra[DQ_EXTRA_EXPECTED], missing);
    dqi_add(&h->c.extra[DQ_EXTRA_MISSING], missing);
    dqi_add(&h->c.extra[DQ_EXTRA_CUT], cut);
}

// A batch of that stream leaves. By a sequence: its cells have the order of the numbers.
void dqi_ends_of_sequence(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t stream);
// Else they have none.
void dqi_ends_of_batch(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t stream, uint32_t window);
void dqi_ends_of_heap(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t window);
// The stream ends; another may begin.
void dqi_ends_close(dqi_ends *e, dqi_handover *h);

#endif
