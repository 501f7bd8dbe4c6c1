// stage_queue.h: receive queues that a stage hands bursts out of, as an engine does: pipes, handlers and
// get_burst read them. They are polled with the stage, by the poller of its first source.
#ifndef DQI_STAGE_QUEUE_H
#define DQI_STAGE_QUEUE_H

#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"

typedef struct dqi_stage_queue_conf {
    const char *line; // its name in the ledger
    dq_queue_conf queue;
    uint32_t n_bursts; // of batch_size packets, that may be under way
    bool payload;      // it holds payloads, not frames
    // As an engine's (dqi_engine_ops); q->engine is impl.
    int (*rx)(dq_queue *q, dq_burst **b, uint32_t room);
    void (*wanted)(dq_queue *q); // NULL: nothing to do
    void *impl;
} dqi_stage_queue_conf;

// Makes a queue of an open session. Nothing polls it until a stage owns it. NO_SPACE_AVAILABLE: there are
// DQI_MAX_STAGE_QUEUES. Control thread.
int dqi_stage_queue_new(dq_session *s, const dqi_stage_queue_conf *conf, dq_queue **out, dq_diag *diag);
// Frees one that no stage owns, or at the session's end.
void dqi_stage_queue_free(dq_queue *q);
// From now on it goes with the stage, before this one has a source.
void dqi_stage_queue_own(dq_stage *st, dq_queue *q);

// q feeds the stage: the first one that does is its source. q's poller stands still; the session's control
// lock is held where it has one.
int dqi_stage_feed(dq_stage *st, dq_queue *q, dq_diag *diag);
// Whether what the stage hands out comes to q.
bool dqi_stage_is_before(const dq_stage *st, const dq_queue *q);

#endif
