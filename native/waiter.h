// waiter.h: taps, for stages and interfaces.
#ifndef DQI_WAITER_H
#define DQI_WAITER_H

#include "dq.h"
#include "atomics.h"
#include "ring.h"

// A bounded queue of events from pollers to a task.
typedef struct dqi_tap {
    dqi_ring ring;
    dq_waiter *waiter;
    uint64_t tag;
    dqi_gauge packets; // in the ring
} dqi_tap;

// Feeds t to w's task. The tap stays the caller's and is removed before it is freed.
int dqi_waiter_add(dq_waiter *w, dqi_tap *t);
void dqi_waiter_remove(dq_waiter *w, dqi_tap *t);
// Wakes w's task if it sleeps: something lies in a tap. Any thread.
void dqi_waiter_kick(dq_waiter *w);
// Takes the oldest event of t. Task's thread.
bool dqi_tap_pop(dqi_tap *t, dq_event *ev);

#endif
