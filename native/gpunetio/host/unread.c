// unread.c: detects packets sent by a kernel that wait before unread receive queues. The loop engine passes
// packets by reference, and the kernel owns them again once the receiver has released them.
#include "gpunetio/host/context.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/poller.h"
#include "pipeline/session.h"

static bool is_read(const dq_queue *q) { return atomic_load_explicit(&q->rx.consumed, memory_order_relaxed); }

// Returns how many references to b wait before q if it is unread. `held` is already paused, and not paused
// again.
static uint32_t holders_at(dq_queue *q, const dq_burst *b, const dqi_poller *held) {
    if (is_read(q) || !q->iface->ops->holds) return 0;
    if (q->poller != held) dqi_poller_hold(q->poller);
    uint32_t n = q->iface->ops->holds(q, b);
    if (q->poller != held) dqi_poller_release(q->poller);
    return n;
}

// Returns the first unread queue with b, if all references but the ring's are in such queues.
static dq_queue *holder_of(const dq_session *s, const dq_burst *b, const dqi_poller *held) {
    dq_queue *found = NULL;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        for (uint32_t k = 0; k < s->ifaces[i]->n_rx; k++) {
            uint32_t here = holders_at(s->ifaces[i]->rx[k], b, held);
            if (here > 0 && !found) found = s->ifaces[i]->rx[k];
            n += here;
        }
    return n + 1 == dqi_load_acq32(&b->refs) ? found : NULL;
}

// Tickets complete in order, so the ring waits for its oldest burst in flight.
static dq_queue *of_ring(const dqi_gn_tx *t) {
    dqi_poller_hold(t->queue->poller);
    const dq_burst *b =
        t->first_flight == t->n_flights ? NULL : t->flights[t->first_flight % DQI_GN_FLIGHTS].b;
    dq_queue *q = b ? holder_of(t->gn->session, b, t->queue->poller) : NULL;
    dqi_poller_release(t->queue->poller);
    return q;
}

dq_queue *dq_gn_unread(dq_gn *g) {
    dq_queue *q = NULL;
    for (uint32_t k = 0; k < g->n_tx && !q; k++)
        if (!atomic_load(&g->tx[k].detached)) q = of_ring(&g->tx[k]);
    return q;
}
