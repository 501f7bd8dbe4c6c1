// stage.h: stage operations and state.
#ifndef DQI_STAGE_H
#define DQI_STAGE_H

#include "core/counters.h"
#include "pipeline/dq_figures.h"

typedef struct dqi_stage_ops dqi_stage_ops;
typedef struct dqi_gpu dqi_gpu; // cuda/gpu.h

#define DQI_TOUCHES_FIRST 1u
#define DQI_TOUCHES_ALL   ((1u << DQ_MAX_SEGS) - 1)
// Reads the first segment as far as CPU-visible (dqi_seen); packet heads suffice.
#define DQI_TOUCHES_HEADS (1u << DQ_MAX_SEGS)

// A stage in a pipe; its counters are written only by the poller of the pipe's queue.
typedef struct dqi_node {
    dq_stage *stage;
    dqi_counters c;
    uint32_t turn;     // sampler: position; otherwise packets of a stalled burst already processed
    uint32_t rest;     // of these: passed, their indices in scratch
    uint32_t *scratch; // of the pipe: indices of one batch
    bool own;          // packets were created by an earlier stage and have no other reader
} dqi_node;

struct dqi_stage_ops {
    int32_t line_kind; // dq_line_kind
    bool consumer; // accesses packets after its push, or modifies them: two per queue make bursts read-only
    bool changes;  // modifies received packets: only later stages may see them
    uint32_t touches;     // bit s: accesses segment s, in its push or later; or DQI_TOUCHES_HEADS
    bool reads_gpus;      // may access segments in a GPU's memory, prepared in its join
    bool accepts_handles; // does not access packets in its push: accepts handles
    // Rejects a queue with packets the stage can't process; NULL: accepts all.
    int (*check)(const dq_stage *st, const dq_queue *q, dq_diag *diag);
    // A pipe of q starts to use the stage. Control thread; q's poller is paused. NULL: nothing to do.
    int (*join)(dq_stage *st, dq_queue *q, dq_diag *diag);
    // Consumes the caller's reference to in; *out: the burst to pass on, with a reference, or NULL.
    // DQ_NOT_READY: nothing consumed, retry later (policy wait). Queue's poller only; never blocks.
    int (*push)(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out);
    uint64_t (*held)(const dq_stage *st);            // packets inside; NULL: none
    void (*line)(const dq_stage *st, dq_line *line); // adds the stage's own counters; NULL: none
    // Sets kind and counts of the k-th histogram; false past the last. NULL: the stage has none.
    bool (*histogram)(const dq_stage *st, uint32_t k, dq_histogram *out);
    uint32_t (*sources)(const dq_stage *st, dq_source_count *out, uint32_t max); // dq_source_counts; NULL
    int (*start)(dq_stage *st, dq_diag *diag);                                   // NULL: nothing to do
    // Handles timeouts and asynchronous completions; returns the work done. May set st->next_ns, which is
    // INT64_MAX at entry. Called by the poller of the first source, on the virtual clock in each step. Never
    // blocks, except that virtual time must not advance during asynchronous work: it then naps and reports
    // work. NULL: nothing.
    int (*poll)(dq_stage *st);
    uint64_t (*drain)(dq_stage *st); // end of stream: releases packets waiting for more; their number; NULL
    void (*finish)(dq_stage *st);    // writes its data, ends its thread; NULL
    bool blocks;                     // the finish may block on a device
    void (*free)(dq_stage *st);      // of impl; after finish
};

struct dq_stage {
    char name[DQ_NAME_LEN];
    const dqi_stage_ops *ops;
    dq_session *session;
    void *impl;
    uint32_t touches;        // ops->touches, unless the stage overrides it
    dqi_counters past;       // of nodes whose pipes were removed
    const dq_region *region; // region it allocates buffers from; NULL: none
    bool waits;              // for buffers, without a limit
    dq_queue *source;        // first queue that feeds it: its poller serves the stage and its queues; or NULL
    bool threaded;           // polled on the virtual clock only: otherwise its thread does the work
    int64_t next_ns;         // session time of the next useful poll, as for a queue
    _Atomic bool finished;
    bool abandoned;      // its finish did not end
    _Atomic bool failed; // permanently; reason in failure
    char failure[256];
};

static inline int dqi_stage_poll(dq_stage *st) {
    st->next_ns = INT64_MAX;
    return st->ops->poll(st);
}

// Marks the stage as failed, with a reason; the first call counts. Its poller.
void dqi_stage_fail(dq_stage *st, const char *why);
// Ends a poll of a stage with work in flight on a GPU (NULL: on the host): fails the stage if the GPU is
// lost, and requests a poll `next` ns from now (INT64_MAX: nothing is in flight). Returns work, or on the
// virtual clock 1 until nothing is in flight, so that time does not advance. Its poller.
int dqi_stage_await(dq_stage *st, dqi_gpu *gpu, int work, int64_t next);

int dqi_stage_add(dq_session *s, const char *name, const dqi_stage_ops *ops, void *impl, dq_stage **out,
                  dq_diag *diag);
// Checks that a stage that reads `bytes` bytes of packets needs only the heads, where the host has no more.
int dqi_stage_reads(const dq_stage *st, const dq_queue *q, uint32_t bytes, dq_diag *diag);
// Checks that a stage (`what` in errors) may allocate from the region: not if a queue joins its buffers, and
// not if the stage would wait for buffers held by packets before or behind it.
int dqi_stage_may_take(dq_session *s, const char *what, const dq_region *r, bool waits, dq_diag *diag);

#endif
