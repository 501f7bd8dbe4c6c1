#include "pipeline/taker.h"
#include "core/burst.h"
#include "core/counters.h"

bool dqi_taker_init(dqi_taker *t, uint32_t depth, int policy) {
    t->policy = policy;
    return dqi_ring_init(&t->ring, depth);
}

bool dqi_taker_put(dqi_taker *t, dq_burst *b, uint32_t tag) {
    uint32_t n = b->n; // the taker may have it already when the push returns
    dqi_gauge_add(&t->held, n);
    if (dqi_ring_push(&t->ring, b, tag)) return true;
    dqi_gauge_add(&t->held, -(int64_t)n);
    dq_burst_unref(b);
    return false;
}

bool dqi_taker_has_room(dqi_taker *t) {
    bool room = dqi_ring_level(&t->ring) <= t->ring.mask / 2;
    if (room) dqi_queue_go_on(&t->stalled);
    return room;
}

int dqi_taker_refuse(dqi_taker *t, bool wait, dqi_node *node, const dq_burst *b) {
    if (wait) {
        atomic_store(&t->stalled, b->queue);
        dqi_taker_has_room(t); // the taker may have made some before it could see who waits
        return DQ_NOT_READY;
    }
    dqi_drop(&node->c, DQ_DROP_BEHIND, b->n);
    return DQ_OK;
}

bool dqi_taker_pop(dqi_taker *t, void **entry, uint32_t *tag) {
    if (!dqi_ring_pop(&t->ring, entry, tag)) return false;
    dqi_taker_has_room(t);
    return true;
}

void dqi_taker_flush(dqi_taker *t, dqi_counters *c) {
    for (void *p; dqi_ring_pop(&t->ring, &p, NULL);) {
        dq_burst *b = p;
        dqi_add_shared(&c->dropped[DQ_DROP_STOPPED], b->n);
        dqi_gauge_add(&t->held, -(int64_t)b->n);
        dq_burst_unref(b);
    }
}
