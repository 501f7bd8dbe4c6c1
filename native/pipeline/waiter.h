// waiter.h: taps, for stages and interfaces.
#ifndef DQI_WAITER_H
#define DQI_WAITER_H

#include "core/dq_core.h"
#include "pipeline/dq_pipeline.h"
#include "core/atomics.h"
#include "pipeline/consumer.h"

// A bounded queue of events from pollers to a task.
typedef struct dqi_tap {
    dqi_consumer in; // of events; of bursts, where it is a stage's
    dq_waiter *waiter;
    uint64_t tag;
} dqi_tap;

// Feeds t to w's task. The tap stays the caller's and is removed before it is freed.
int dqi_waiter_add(dq_waiter *w, dqi_tap *t);
void dqi_waiter_remove(dq_waiter *w, dqi_tap *t);
// Wakes w's task if it sleeps: something lies in a tap. Any thread.
void dqi_waiter_kick(dq_waiter *w);
// The end of an operation, for the task that watches it.
typedef struct dqi_op_end {
    struct dqi_op_end *next;
    dq_op *op;
    uint64_t tag;
} dqi_op_end;

// w's task is told of it, and e->op is let go then; a hold of w ends. Any thread.
void dqi_waiter_ended(dq_waiter *w, dqi_op_end *e);
// w's memory stays until as many dqi_waiter_ended have come, though its task may have gone.
void dqi_waiter_hold(dq_waiter *w);
// Takes the oldest event of t. Task's thread.
bool dqi_tap_pop(dqi_tap *t, dq_event *ev);

#endif
