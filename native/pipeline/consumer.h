// consumer.h: where bursts wait for one consumer that is no poller: a task (stage_tap.c), or a writer outside
// the engine (external_writer.c). A bounded ring, what is in it, and what becomes of a burst that finds no
// room.
#ifndef DQI_CONSUMER_H
#define DQI_CONSUMER_H

#include "core/ring.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"

typedef struct dqi_consumer {
    dqi_ring ring;  // of bursts, each with a reference; aux: a tag
    dqi_gauge held; // packets in the ring, and with the consumer until it says what became of them
    _Atomic(dq_queue *) stalled; // waits for room
    int policy;                  // dq_policy
} dqi_consumer;

// False: no memory.
bool dqi_consumer_init(dqi_consumer *t, uint32_t depth, int policy);

// Puts b, with a reference of the caller's, into the ring and counts its packets as held; false: there is no
// room, and the reference is given back. Any thread.
bool dqi_consumer_put(dqi_consumer *t, dq_burst *b, uint32_t tag);
// b found no room: DQ_NOT_READY where its queue is to wait and try again, DQ_OK where it was dropped as
// behind.
int dqi_consumer_refuse(dqi_consumer *t, bool wait, dqi_node *node, const dq_burst *b);
// Takes the oldest entry; a queue that waits goes on as soon as half of the ring is free. The consumer's
// thread.
bool dqi_consumer_pop(dqi_consumer *t, void **entry, uint32_t *tag);
// Whether half of the ring is free; then a queue that waits goes on.
bool dqi_consumer_has_room(dqi_consumer *t);
// Drops what nobody took, counted in c as stopped.
void dqi_consumer_flush(dqi_consumer *t, dqi_counters *c);

// Packets held; the consumer may be ahead of who put them.
static inline uint64_t dqi_consumer_held(const dqi_consumer *t) {
    int64_t n = dqi_gauge_get(&t->held);
    return n > 0 ? (uint64_t)n : 0;
}

#endif
