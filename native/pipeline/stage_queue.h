// stage_queue.h: receive queues for the output of a stage, as of an engine, read by pipes, handlers and
// get_burst. They are polled with the stage, by the poller of its first source.
#ifndef DQI_STAGE_QUEUE_H
#define DQI_STAGE_QUEUE_H

#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"

typedef struct dqi_stage_queue_conf {
    const char *line; // its name in the ledger
    dq_queue_conf queue;
    uint32_t n_bursts; // number of bursts, of batch_size packets
    bool payload;      // it holds payloads, not frames
    // As an engine's (dqi_engine_ops); q->engine is impl.
    int (*rx)(dq_queue *q, dq_burst **b, uint32_t room);
    void (*wanted)(dq_queue *q); // NULL: nothing to do
    void *impl;
} dqi_stage_queue_conf;

// Creates a queue of an open session. It is polled once a stage owns it. NO_SPACE_AVAILABLE:
// DQI_MAX_STAGE_QUEUES exist. Control thread.
int dqi_stage_queue_new(dq_session *s, const dqi_stage_queue_conf *conf, dq_queue **out, dq_diag *diag);
// Frees a queue that no stage owns, or at the end of the session.
void dqi_stage_queue_free(dq_queue *q);
// Makes the stage the owner of q, before the stage has a source.
void dqi_stage_queue_own(dq_stage *st, dq_queue *q);

// Registers q as feeding the stage; the first such queue is its source. q's poller is paused; the session's
// control lock is held if q has a poller.
int dqi_stage_feed(dq_stage *st, dq_queue *q, dq_diag *diag);
// Whether q receives output of the stage, directly or through other stages.
bool dqi_stage_is_before(const dq_stage *st, const dq_queue *q);

#endif
