// heaps.h: state of a heaps stage, shared by heaps_place.c (pieces into heaps, on the sources' pollers) and
// stage_heaps.c (setup, open heaps).
//
// Heap ids are arbitrary numbers: they may jump, interleave and restart. So open heaps are kept in a short
// list, and the least recently used one is closed when a new heap needs its place. A piece is copied to its
// byte offset, and a bitmap with one bit per byte detects overlaps in any order. Bits are set under the lock,
// once for a run of packets of one heap; bytes are copied without it.
#ifndef DQI_HEAPS_H
#define DQI_HEAPS_H

#include "pipeline/dq_pipeline.h"
#include "program/payload.h"
#include "reorder/assembly.h"
#include "reorder/dq_reorder.h"

#define DQI_HEAPS_PAST 128 // closed heaps with remembered ids: fewer than 2^8 ids

typedef struct dqi_heap {
    dqi_assembled base; // agg: one slot of the heap's size; cells are bytes
    uint64_t *present;  // as in agg
    uint64_t *items;    // as in agg
    uint32_t end;       // no byte from here on has been received
    bool closed;
} dqi_heap;

typedef struct dqi_past_heap {
    uint64_t id;
    int64_t last_ns; // time of its last packet
    bool full;
} dqi_past_heap;

typedef struct dqi_heaps {
    dqi_assembly base;
    dq_heaps_conf conf; // without its pointers
    dq_prog *id, *size, *offset, *items_at, *items;
    dqi_payload_rule payload;

    dqi_spin lock; // protects the following fields
    uint32_t n_open;
    dqi_heap *open[DQ_MAX_WINDOW]; // in order of their last packet, least recent first
    uint64_t ordinal;              // of the next heap
    dqi_past_heap past[DQI_HEAPS_PAST];
    uint32_t n_past, next_past;
} dqi_heaps;

// ---- heaps_place.c ----------------------------------------------------------------------------------------

int dqi_heaps_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out);

// ---- stage_heaps.c: with the lock -------------------------------------------------------------------------

// Closes the i-th open heap, with the flag if it is incomplete.
void dqi_heap_close(dqi_heaps *h, uint32_t i, uint32_t flag);
// Opens a heap, closing the least recently used one if the window is full. NULL: no free buffer.
dqi_heap *dqi_heap_open(dqi_heaps *h, uint64_t id, uint32_t size, int64_t ts);

static inline bool dqi_heap_full(const dqi_heap *b) { return dqi_aggregate_full(&b->base.agg); }

#endif
