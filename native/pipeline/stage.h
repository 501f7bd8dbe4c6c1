// stage.h: what a stage of a pipe is.
#ifndef DQI_STAGE_H
#define DQI_STAGE_H

#include "pipeline/dq_figures.h"
#include "core/counters.h"

typedef struct dqi_stage_ops dqi_stage_ops;

#define DQI_TOUCHES_FIRST 1u
#define DQI_TOUCHES_ALL   ((1u << DQ_MAX_SEGS) - 1)
// It reads the first segment, as far as the CPU can (dqi_seen): heads do.
#define DQI_TOUCHES_HEADS (1u << DQ_MAX_SEGS)

// One stage in one pipe: counters written by the pipe's queue's poller alone.
typedef struct dqi_node {
    dq_stage *stage;
    dqi_counters c;
    uint32_t turn;     // a sampler's position; how many packets of a stalled burst are through
    uint32_t rest;     // of these: that pass, their indices in scratch
    uint32_t *scratch; // of the pipe: room for the indices of one batch
    bool own;          // a stage before it made the packets: nobody else has them
} dqi_node;

struct dqi_stage_ops {
    int32_t line_kind;    // dq_line_kind
    bool consumer;        // looks at packets after its push, or changes them: two on a queue make its bursts
                          // read-only
    bool changes;         // it writes into what comes: nothing but stages behind it may see that
    uint32_t touches;     // bit s: it reads or writes the bytes of segment s, in its push or later;
                          // or DQI_TOUCHES_HEADS
    bool reads_gpus;      // what it touches may lie in a GPU's memory: its join sees to that
    bool accepts_handles; // never looks at packets in its push: takes handles
    // Refuses a queue whose packets the stage can't take; NULL: takes all.
    int (*check)(const dq_stage *st, const dq_queue *q, dq_diag *diag);
    // A pipe of q begins to use the stage. Control thread; q's poller stands still. NULL: nothing to do.
    int (*join)(dq_stage *st, dq_queue *q, dq_diag *diag);
    // Consumes the caller's reference to in; *out: the burst to go on with, with a reference, or NULL.
    // DQ_NOT_READY: nothing consumed, try the same again later (policy wait). Queue's poller only; never
    // blocks.
    int (*push)(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out);
    uint64_t (*held)(const dq_stage *st);            // packets inside; NULL: none
    void (*line)(const dq_stage *st, dq_line *line); // adds counters of its own; NULL: none
    // Fills kind and counts of its k-th histogram; false: there are no more. NULL: it has none.
    bool (*histogram)(const dq_stage *st, uint32_t k, dq_histogram *out);
    uint32_t (*sources)(const dq_stage *st, dq_source_count *out, uint32_t max); // dq_source_counts; NULL
    int (*start)(dq_stage *st, dq_diag *diag);                                   // NULL: nothing to do
    // What it does by itself, time-outs and work that has ended elsewhere: work done. It may set
    // st->next_ns, which is INT64_MAX before. By the poller of its first source, on the virtual clock in each
    // step. Never blocks; but where work of it goes on outside, virtual time has to stand still: then it naps
    // and says that it worked. NULL: nothing.
    int (*poll)(dq_stage *st);
    uint64_t (*drain)(dq_stage *st); // the end of the stream: lets go what waits for more; how many; NULL
    void (*finish)(dq_stage *st);    // writes what it holds, ends its thread; NULL
    bool blocks;                     // the finish may, for as long as a device does
    void (*free)(dq_stage *st);      // of impl; after finish
};

struct dq_stage {
    char name[DQ_NAME_LEN];
    const dqi_stage_ops *ops;
    dq_session *session;
    void *impl;
    uint32_t touches;        // ops->touches, unless the stage knows better
    dqi_counters past;       // of nodes whose pipes were removed
    const dq_region *region; // whose buffers it takes; NULL: none
    bool waits;              // for them, however long it takes
    dq_queue *source; // the first queue that feeds it: its poller polls the stage and its queues, too. NULL
    bool threaded;    // polled on the virtual clock alone: else a thread of its own does the work
    int64_t next_ns;  // session time at which polling makes sense again, as a queue's
    _Atomic bool finished;
    bool abandoned;      // its finish has no end
    _Atomic bool failed; // for good: failure says why
    char failure[256];
};

static inline int dqi_stage_poll(dq_stage *st) {
    st->next_ns = INT64_MAX;
    return st->ops->poll(st);
}

// The stage does no more work, for the reason in words: the first one counts. Its poller.
void dqi_stage_fail(dq_stage *st, const char *why);

int dqi_stage_add(dq_session *s, const char *name, const dqi_stage_ops *ops, void *impl, dq_stage **out,
                  dq_diag *diag);
// Refuses to read so many bytes of packets of which the host has heads alone.
int dqi_stage_reads(const dq_stage *st, const dq_queue *q, uint32_t bytes, dq_diag *diag);
// Whether a stage, `what` in errors, may take the region's buffers: not where a queue joins them, and not
// where it would wait for those that packets behind or before it have.
int dqi_stage_may_take(dq_session *s, const char *what, const dq_region *r, bool waits, dq_diag *diag);

#endif
