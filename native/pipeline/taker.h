// taker.h: where bursts wait for one taker that is no poller: a task (stage_tap.c), or a writer outside the
// engine (external_writer.c). A bounded ring, what is in it, and what becomes of a burst that finds no room.
#ifndef DQI_TAKER_H
#define DQI_TAKER_H

#include "core/ring.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"

typedef struct dqi_taker {
    dqi_ring ring;               // of bursts, each with a reference; aux: a tag
    dqi_gauge held;              // packets in the ring, and with the taker until it says what became of them
    _Atomic(dq_queue *) stalled; // waits for room
    int policy;                  // dq_policy
} dqi_taker;

// False: no memory.
bool dqi_taker_init(dqi_taker *t, uint32_t depth, int policy);

// Puts b, with a reference of the caller's, into the ring and counts its packets as held; false: there is no
// room, and the reference is given back. Any thread.
bool dqi_taker_put(dqi_taker *t, dq_burst *b, uint32_t tag);
// b found no room: DQ_NOT_READY where its queue is to wait and try again, DQ_OK where it was dropped as
// behind.
int dqi_taker_refuse(dqi_taker *t, bool wait, dqi_node *node, const dq_burst *b);
// Takes the oldest entry; a queue that waits goes on as soon as half of the ring is free. The taker's thread.
bool dqi_taker_pop(dqi_taker *t, void **entry, uint32_t *tag);
// Whether half of the ring is free; then a queue that waits goes on.
bool dqi_taker_has_room(dqi_taker *t);
// Drops what nobody took, counted in c as stopped.
void dqi_taker_flush(dqi_taker *t, dqi_counters *c);

// Packets held; the taker may be ahead of who put them.
static inline uint64_t dqi_taker_held(const dqi_taker *t) {
    int64_t n = dqi_gauge_get(&t->held);
    return n > 0 ? (uint64_t)n : 0;
}

#endif
