// renewal.c: restarts a context whose kernel has died. The block then has no other writer: rings restart in
// the same memory, with the tickets after those already taken, so that counters and ledger lines continue.
#include "gpunetio/host/context.h"
#include "pipeline/poller.h"
#include "pipeline/stage.h"

void dqi_gn_break(dq_gn *g) {
    atomic_store(&g->died, true);
    for (uint32_t k = 0; k < g->n_tx; k++) {
        atomic_store_explicit(&g->tx[k].broken, true, memory_order_release);
        gn_store(&g->tx[k].state->epoch, 1 | GN_BROKEN_RING);
    }
}

// Resets the ring; submitted bursts are sent, without completion.
static void empty_tx(dqi_gn_tx *t) {
    t->first_flight = t->n_flights = 0;
    t->flying = t->copied = 0;
    atomic_store(&t->failed, 0);
    t->deficit = t->hole_ns = t->wait_ns = 0;
    t->unmet = false;
    atomic_store(&t->completed, atomic_load(&t->accepted));
    atomic_store(&t->fault, 0);
    atomic_store(&t->broken, false);
}

// Collects the distinct pollers of all rings.
static uint32_t pollers_of(const dq_gn *g, dqi_poller **out) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < g->n_tx + g->n_rx; k++) {
        dqi_poller *p = k < g->n_tx ? g->tx[k].queue->poller : g->rx[k - g->n_tx].queue->poller;
        bool is = false;
        for (uint32_t i = 0; i < n; i++)
            is = is || out[i] == p;
        if (!is) out[n++] = p;
    }
    return n;
}

static void reset_rings(dq_gn *g) {
    dq_diag none = {{0}};
    for (uint32_t k = 0; k < g->n_tx; k++)
        empty_tx(&g->tx[k]);
    dqi_gn_write_block(g, &none); // it is allocated already
    if (atomic_load(&g->aborted)) gn_store(&g->proxy->abort, 1);
    atomic_store(&g->died, false);
    for (uint32_t k = 0; k < g->n_tx; k++)
        atomic_store(&g->tx[k].detached, false);
    for (uint32_t k = 0; k < g->n_rx; k++)
        atomic_store(&g->rx[k].detached, false);
}

void dqi_gn_renew(dq_gn *g) {
    dqi_poller *pollers[2 * DQ_GN_RINGS];
    uint32_t n = pollers_of(g, pollers);
    dq_gn_detach(g);
    for (uint32_t k = 0; k < n; k++)
        dqi_poller_hold(pollers[k]);
    reset_rings(g);
    for (uint32_t k = 0; k < n; k++)
        dqi_poller_release(pollers[k]);
    for (uint32_t k = 0; k < g->n_tx; k++)
        dqi_queue_kick(g->tx[k].queue);
}
