// reorder_sources.h: what a reorder stage got and missed of each source, which a number over the packet's
// fields, or its peer, tells apart.
//
// A packet that is missing says nothing about itself: it is put down to the source that had its cell last. A
// later packet shows that it is missing (ends.h): with a sequence number any, else one of the same source; of
// cells that no source had so far, any of a later batch. What the stream's first batch lacks of these waits
// until its source is known.
// Cells are learnt from what is handed over, by the poller of the stage's own queue alone; so are `packets`
// and `missing`. What packets are lost for is counted where that happens, by several pollers.
#ifndef DQI_REORDER_SOURCES_H
#define DQI_REORDER_SOURCES_H

#include "pipeline/dq_figures.h"
#include "core/id_table.h"

struct dqi_batch;
struct dqi_reorder;

typedef struct dqi_source_counts {
    dqi_count packets, missing;
    _Atomic uint64_t late, duplicate, dropped; // dropped: for all other reasons
} dqi_source_counts;

typedef struct dqi_reorder_sources {
    dq_prog *number; // NULL: the peer is the source
    dqi_id_table keys;
    dqi_source_counts of[DQI_KEY_IDS];
    uint64_t skipped;            // batches that are missing as a whole, so far put down
    uint32_t stream;             // of the batches so far
    bool joined;                 // it has had a batch
    uint64_t tail[DQI_KEY_IDS];  // cells that nothing vouches for so far
    uint64_t tails;              // their sum
    bool begun[DQI_KEY_IDS];     // a cell of this stream came; by a sequence number: of DQI_KEY_NONE, any
    uint32_t first[DQI_KEY_IDS]; // cell of the stream's first batch
    uint32_t n_unlearnt;         // cells that the first batch lacks of a source that is not known:
    uint8_t *unlearnt;           // 1 for these
    uint16_t last[];             // of each cell: the id of the source that had it
} dqi_reorder_sources;

// For a stage with so many cells a batch. Takes number over. NULL: no memory.
dqi_reorder_sources *dqi_reorder_sources_new(dq_prog *number, uint32_t cells);
void dqi_reorder_sources_free(dqi_reorder_sources *s);

// A packet of this source isn't placed. Any thread.
void dqi_reorder_sources_lost(dqi_reorder_sources *s, uint32_t id, dq_reason why);
// Puts down what a closed batch has and lacks, and the batches before it that never were. Out's poller.
void dqi_reorder_sources_account(struct dqi_reorder *r, const struct dqi_batch *b);
// The stream ends; another may begin.
void dqi_reorder_sources_close(struct dqi_reorder *r);
// dqi_stage_ops' sources.
uint32_t dqi_reorder_sources_read(const dq_stage *st, dq_source_count *out, uint32_t max);

#endif
