// reorder_sources.h: packets received and missed by a reorder stage, per source: a number computed from the
// packet's fields, or its peer.
//
// A missing packet has no source of its own: it is attributed to the last source of its cell. A later packet
// shows that it is missing (ends.h): with a sequence number any, otherwise one of the same source; for cells
// without a source so far, any of a later batch. Such cells that the stream's first batch lacks wait until
// their source is known.
// The sources of cells, `packets` and `missing` are updated on delivery, only by the poller of the stage's
// own queue. Drops are counted where they occur, by several pollers.
#ifndef DQI_REORDER_SOURCES_H
#define DQI_REORDER_SOURCES_H

#include "core/id_table.h"
#include "pipeline/dq_figures.h"

struct dqi_batch;
struct dqi_reorder;

typedef struct dqi_source_counts {
    dqi_count packets, missing;
    _Atomic uint64_t late, duplicate, dropped; // dropped: for any other reason
} dqi_source_counts;

typedef struct dqi_reorder_sources {
    dq_prog *number; // NULL: the source is the peer
    dqi_id_table keys;
    dqi_source_counts of[DQI_KEY_IDS];
    uint64_t skipped;            // skipped batches already attributed
    uint32_t stream;             // of the batches so far
    bool joined;                 // it has had a batch
    uint64_t tail[DQI_KEY_IDS];  // cells neither missing nor cut yet
    uint64_t tails;              // their sum
    bool begun[DQI_KEY_IDS];     // it has received a cell; with a sequence number: DQI_KEY_NONE, for any
    uint32_t first[DQI_KEY_IDS]; // its first cell in the stream's first batch
    uint32_t n_unlearnt;         // cells without a known source that the first batch lacks:
    uint8_t *unlearnt;           // 1 for these
    uint16_t last[];             // last source id of each cell
} dqi_reorder_sources;

// Creates the accounts of a stage with `cells` cells per batch. Takes ownership of number. NULL: no memory.
dqi_reorder_sources *dqi_reorder_sources_new(dq_prog *number, uint32_t cells);
void dqi_reorder_sources_free(dqi_reorder_sources *s);

// Counts a packet of this source that is not placed. Any thread.
void dqi_reorder_sources_lost(dqi_reorder_sources *s, uint32_t id, dq_reason why);
// Accounts the present and lacking cells of a closed batch, and skipped batches before it. Out's poller.
void dqi_reorder_sources_account(struct dqi_reorder *r, const struct dqi_batch *b);
// Ends the stream; cells not proven missing count as cut.
void dqi_reorder_sources_close(struct dqi_reorder *r);
// Implements sources of dqi_stage_ops.
uint32_t dqi_reorder_sources_read(const dq_stage *st, dq_source_count *out, uint32_t max);

#endif
