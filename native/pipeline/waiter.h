// waiter.h: taps and completion events of tasks.
#ifndef DQI_WAITER_H
#define DQI_WAITER_H

#include "core/atomics.h"
#include "core/dq_core.h"
#include "pipeline/consumer.h"
#include "pipeline/dq_pipeline.h"

// A bounded queue of events from pollers to a task.
typedef struct dqi_tap {
    dqi_consumer in; // of events; for a stage, of bursts
    dq_waiter *waiter;
    uint64_t tag;
    dqi_counters *c; // of delivered bursts, written by the task; NULL: no stage's tap
} dqi_tap;

// Connects t to w's task. The caller owns the tap and must remove it before freeing it.
int dqi_waiter_add(dq_waiter *w, dqi_tap *t);
void dqi_waiter_remove(dq_waiter *w, dqi_tap *t);
// Wakes w's task if it sleeps, as a tap has an event. Any thread.
void dqi_waiter_kick(dq_waiter *w);
// Completion event of an operation, for the watching task.
typedef struct dqi_op_end {
    struct dqi_op_end *next;
    dq_op *op;
    uint64_t tag;
} dqi_op_end;

// Queues the event for w's task, which then releases e->op; releases a reference to w. Any thread.
void dqi_waiter_ended(dq_waiter *w, dqi_op_end *e);
// Keeps w's memory until a matching dqi_waiter_ended, even if its task has ended.
void dqi_waiter_hold(dq_waiter *w);

#endif
