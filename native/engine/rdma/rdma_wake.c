// rdma_wake.c: locks of connections, and marks by which any thread makes the keeper or other pollers act.
#include "engine/rdma/rdma_conn.h"

// Both functions write `wanted` in one step, so either the unlock sees the request or the second try
// succeeds.
void dqi_rconn_unlock(dqi_rconn *c) {
    dqi_unlock(&c->lock);
    uint32_t by = atomic_exchange(&c->wanted, 0);
    if (by & 1u << DQ_RX && c->conn.rx) dqi_queue_kick(c->conn.rx);
    if (by & 1u << DQ_TX && c->conn.tx) dqi_queue_kick(c->conn.tx);
}

bool dqi_rconn_try_lock(dqi_rconn *c, const dq_queue *q) {
    if (dqi_try_lock(&c->lock)) return true;
    atomic_fetch_or(&c->wanted, 1u << q->conf.dir);
    return dqi_try_lock(&c->lock);
}

void dqi_rdma_wake(dqi_rdma *r) {
    atomic_store(&r->attention, true);
    if (r->keeper) dqi_queue_kick(r->keeper);
}

void dqi_rdma_kick_all(const dqi_rdma *r) {
    for (uint32_t k = 0; k < r->iface->n_tx; k++)
        dqi_queue_kick(r->iface->tx[k]);
    for (uint32_t k = 0; k < r->iface->n_rx; k++)
        dqi_queue_kick(r->iface->rx[k]);
}

void dqi_rconn_in_error(dqi_rconn *c) {
    atomic_store(&c->conn.broken, true);
    dqi_rdma_wake(c->r);
}

void dqi_rconn_break(dqi_rconn *c, int status) {
    atomic_store(&c->why, status);
    dqi_rconn_in_error(c);
}

void dqi_rconn_flushed(dqi_rconn *c) {
    if (!c->flushing) atomic_store(&c->conn.broken, true);
    dqi_rdma_wake(c->r);
}
