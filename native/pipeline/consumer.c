#include "pipeline/consumer.h"
#include "core/burst.h"
#include "core/counters.h"

bool dqi_consumer_init(dqi_consumer *t, uint32_t depth, int policy) {
    t->policy = policy;
    return dqi_ring_init(&t->ring, depth);
}

bool dqi_consumer_put(dqi_consumer *t, dq_burst *b, uint32_t tag) {
    uint32_t n = b->n; // read first: the consumer may own b once it is pushed
    dqi_gauge_add(&t->held, n);
    if (dqi_ring_push(&t->ring, b, tag)) return true;
    dqi_gauge_add(&t->held, -(int64_t)n);
    dq_burst_unref(b);
    return false;
}

bool dqi_consumer_has_room(dqi_consumer *t) {
    bool room = dqi_ring_level(&t->ring) <= t->ring.mask / 2;
    if (room) dqi_queue_go_on(&t->stalled);
    return room;
}

int dqi_consumer_refuse(dqi_consumer *t, bool wait, dqi_node *node, const dq_burst *b) {
    if (wait) {
        atomic_store(&t->stalled, b->queue);
        dqi_consumer_has_room(t); // the consumer may have freed space before `stalled` was visible to it
        return DQ_NOT_READY;
    }
    dqi_drop(&node->c, DQ_DROP_BEHIND, b->n);
    return DQ_OK;
}

bool dqi_consumer_pop(dqi_consumer *t, void **entry, uint32_t *tag) {
    if (!dqi_ring_pop(&t->ring, entry, tag)) return false;
    dqi_consumer_has_room(t);
    return true;
}

void dqi_consumer_flush(dqi_consumer *t, dqi_counters *c) {
    for (void *p; dqi_ring_pop(&t->ring, &p, NULL);) {
        dq_burst *b = p;
        dqi_add_shared(&c->dropped[DQ_DROP_STOPPED], b->n);
        dqi_gauge_add(&t->held, -(int64_t)b->n);
        dq_burst_unref(b);
    }
}
