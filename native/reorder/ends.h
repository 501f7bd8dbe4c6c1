// ends.h: distinguishes missing cells of a stream from cells cut off at its begin or end. For reorder and
// heaps stages, called by the poller of the stage's own queue for each batch in the order of delivery.
//
// A cell that was not received is missing once a later packet shows that its sender had passed it; otherwise
// it is cut. So the same packets give the same figures, however long the capture continues after them and for
// whatever reason the last batch was closed.
//
// - Sequence number: cells between the first and the last received one are missing.
// - Batch and slot with sources: the same for the cells of each source (reorder_sources.c).
// - Batch and slot without sources, and heaps: the order of cells is unknown, and several batches are open at
// once. Cells lacking before a full batch, or `window` batches before the last one, are missing. Cells that
// the stream's first batch lacks are cut; of the first heap, those before its first byte. In other heaps,
// cells lacking before the last received byte are missing.
#ifndef DQI_ENDS_H
#define DQI_ENDS_H

#include "core/dq_burst.h"
#include "reorder/handover.h"

#include <stdbool.h>
#include <stdint.h>

#define DQI_MAX_OPEN_ENDS 64 // DQ_MAX_WINDOW

// Cells that a batch lacks and that are neither missing nor cut yet.
typedef struct dqi_open_end {
    uint64_t ordinal, cells;
} dqi_open_end;

typedef struct dqi_ends {
    uint32_t stream; // of the batches so far
    bool begun;      // the stream has received a cell
    uint64_t last;   // the highest ordinal of the stream so far
    bool any_full;
    uint64_t full;                        // highest ordinal of a full batch
    uint64_t tail;                        // with a sequence: cells after the last received one
    dqi_open_end open[DQI_MAX_OPEN_ENDS]; // otherwise, n entries
    uint32_t n;
} dqi_ends;

// Counts cells as missing, or as cut.
static inline void dqi_ends_count(dqi_handover *h, uint64_t missing, uint64_t cut) {
    dqi_add(&h->c.extra[DQ_EXTRA_EXPECTED], missing);
    dqi_add(&h->c.extra[DQ_EXTRA_MISSING], missing);
    dqi_add(&h->c.extra[DQ_EXTRA_CUT], cut);
}

// Records that a batch of the stream was closed. With a sequence number, its cells are ordered.
void dqi_ends_of_sequence(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t stream);
// The same for batches and heaps, whose cells are not ordered.
void dqi_ends_of_batch(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t stream, uint32_t window);
void dqi_ends_of_heap(dqi_ends *e, dqi_handover *h, const dq_aggregate *a, uint32_t window);
// Ends the stream; another may begin.
void dqi_ends_close(dqi_ends *e, dqi_handover *h);

#endif
