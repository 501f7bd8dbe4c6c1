// assembly.h: what the stages reorder and heaps have in common: a record per buffer, timeouts, delivery of
// closed aggregates through the stage's own queue, and their accounts.
//
// Sources' pollers place packets in open aggregates; what is open is the stage's own business, under its
// lock. A closed aggregate waits in a ring until its fillers, the threads and lists that still copy into it,
// have finished. Then the poller of the stage's queue delivers it, or drops it.
#ifndef DQI_ASSEMBLY_H
#define DQI_ASSEMBLY_H

#include "core/ring.h"
#include "cuda/gpu.h"
#include "pipeline/stage_queue.h"
#include "program/dq_program.h"
#include "reorder/ends.h"
#include "reorder/handover.h"

typedef struct dqi_assembly dqi_assembly;

// An aggregate: first member of a stage's record of a buffer.
typedef struct dqi_assembled {
    dq_aggregate agg;
    dq_burst *burst; // of one packet, with the buffer
    uint8_t *data;
    _Atomic uint32_t fillers; // threads copying into it
    int64_t due_ns;           // session time; INT64_MAX: none
    int64_t opened_ns;        // session time of its first packet
} dqi_assembled;

// The stage's part. The last four are called by the poller of the stage's queue for closed aggregates.
typedef struct dqi_assembly_ops {
    const char *kind; // in errors
    dqi_stage_ops stage;
    void (*wanted)(dq_queue *q);                        // of the stage's queue (dqi_stage_queue_conf); NULL
    void (*expire)(dqi_assembly *a, int64_t now);       // closes aggregates at their timeout
    uint64_t (*close)(dqi_assembly *a);                 // end of stream: closes all; returns their number
    bool (*discard)(dqi_assembly *a, dqi_assembled *b); // drops b if it is not part of the stream; NULL
    bool (*pending)(dqi_assembly *a, dqi_assembled *b); // whether a device has yet to complete b; NULL
    void (*fill_gaps)(dqi_assembly *a, dqi_assembled *b);
    void (*account)(dqi_assembly *a, const dqi_assembled *b); // cells that b lacks
} dqi_assembly_ops;

// First member of a stage's data.
struct dqi_assembly {
    const dqi_assembly_ops *ops;
    dq_stage *stage;
    dq_queue *out;    // the stage's queue
    uint8_t *records; // one per buffer
    size_t record_bytes, records_bytes;
    int64_t timeout_ns; // of an aggregate, from its first packet; 0: none
    dqi_gpu *gpu;       // moves payloads; NULL: pollers do
    int32_t fill;       // for gaps: a byte, or DQ_FILL_KEEP
    uint32_t segment;   // of packets, with the payload
    bool drop_incomplete, wait;
    uint32_t burst_flags; // of delivered bursts, besides DQ_BURST_REORDERED

    _Atomic int64_t due_ns; // earliest timeout of an open aggregate; INT64_MAX: none
    dqi_ring closed;        // in order until they are delivered
    dqi_assembled *head;    // next one to deliver
    dqi_handover done;
    dqi_ends ends;
};

// ---- setup ------------------------------------------------------------------------------------------------

// Checks the name of a new stage, and that the session is open.
int dqi_assembly_check_name(const dq_session *s, const char *kind, const char *name, dq_diag *diag);
// Returns the default window of a stage with this region.
uint32_t dqi_assembly_window(const dq_region *region);
// Compiles the n numbers; those without instructions remain NULL.
int dqi_assembly_compile(const dq_number *const *from, dq_prog **const *to, size_t n, dq_diag *diag);
// Maps a record of record_bytes per buffer of the region. The caller has set ops, timeout_ns, fill, segment,
// drop_incomplete and wait, and frees a with dqi_assembly_free also after an error.
int dqi_assembly_open(dqi_assembly *a, const char *name, const dq_region *region, size_t record_bytes,
                      dq_diag *diag);
// Creates the stage and its queue.
int dqi_assembly_add(dqi_assembly *a, const char *name, dq_region *region, dq_diag *diag);
void dqi_assembly_free(dqi_assembly *a);

// ---- sources' pollers -------------------------------------------------------------------------------------

// Takes a buffer for an aggregate. Returns its record, with burst, times and fillers set; NULL: no free
// buffer.
dqi_assembled *dqi_assembly_take(dqi_assembly *a);
// Starts the times of an aggregate whose buffer was taken earlier.
void dqi_assembly_begin(const dqi_assembly *a, dqi_assembled *b);
// Notes the timeout of an open aggregate. With the stage's lock.
void dqi_assembly_note_due(dqi_assembly *a, const dqi_assembled *b);
// Hands a closed aggregate to the poller of the stage's queue. With the stage's lock.
void dqi_assembly_close(dqi_assembly *a, dqi_assembled *b);
// No buffer is free: returns whether to wait for one, because closed aggregates are not yet polled, or
// because their consumer blocks the source.
bool dqi_assembly_waits(const dqi_assembly *a);
// Counts packets [from, to) of a burst, processed before a stall, as received now; from > to: subtracts them
// when the whole burst is counted.
void dqi_assembly_count_through(dqi_node *node, const dq_burst *b, uint32_t from, uint32_t to);

// ---- poller of the stage's queue --------------------------------------------------------------------------

// Drops a closed aggregate, counted.
void dqi_assembly_drop(dqi_assembly *a, dqi_assembled *b, dq_reason why);
// Drops all closed aggregates.
void dqi_assembly_drop_closed(dqi_assembly *a, dq_reason why);

// ---- operations of the stage (dqi_stage_ops) --------------------------------------------------------------

int dqi_assembly_check(const dq_stage *st, const dq_queue *q, dq_diag *diag);
int dqi_assembly_poll(dq_stage *st);
uint64_t dqi_assembly_held(const dq_stage *st);
void dqi_assembly_line(const dq_stage *st, dq_line *line);
bool dqi_assembly_histogram(const dq_stage *st, uint32_t k, dq_histogram *out);
uint64_t dqi_assembly_drain(dq_stage *st);

#endif
