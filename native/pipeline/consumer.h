// consumer.h: bounded ring of bursts for a consumer that is not a poller: a task (stage_tap.c) or a writer
// outside the engine (external_writer.c), with its packet accounting and overflow policy.
#ifndef DQI_CONSUMER_H
#define DQI_CONSUMER_H

#include "core/ring.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"

typedef struct dqi_consumer {
    dqi_ring ring;               // of bursts, each with a reference; aux: a tag
    dqi_gauge held;              // packets in the ring, or with the consumer and not yet settled
    _Atomic(dq_queue *) stalled; // queue that waits for space in the ring
    int policy;                  // dq_policy
} dqi_consumer;

// Initializes the ring. Returns false without memory.
bool dqi_consumer_init(dqi_consumer *t, uint32_t depth, int policy);

// Appends b with a reference of the caller and counts its packets as in flight. Returns false if the ring is
// full; the reference is then released. Any thread.
bool dqi_consumer_put(dqi_consumer *t, dq_burst *b, uint32_t tag);
// Handles a burst b that found the ring full: with `wait` returns DQ_NOT_READY and its queue retries later,
// otherwise drops it as DQ_DROP_BEHIND and returns DQ_OK.
int dqi_consumer_refuse(dqi_consumer *t, bool wait, dqi_node *node, const dq_burst *b);
// Takes the oldest entry; resumes a stalled queue once half of the ring is free. Consumer's thread.
bool dqi_consumer_pop(dqi_consumer *t, void **entry, uint32_t *tag);
// Whether half of the ring is free; if so, resumes a stalled queue.
bool dqi_consumer_has_room(dqi_consumer *t);
// Drops all remaining bursts, counted in c as stopped.
void dqi_consumer_flush(dqi_consumer *t, dqi_counters *c);

// Returns the packets in flight; the gauge may be negative briefly while the consumer is ahead of the
// producer.
static inline uint64_t dqi_consumer_held(const dqi_consumer *t) {
    int64_t n = dqi_gauge_get(&t->held);
    return n > 0 ? (uint64_t)n : 0;
}

#endif
