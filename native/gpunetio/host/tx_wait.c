// tx_wait.c: descriptors that wait for a ticket of another transmit ring, polled by another thread perhaps:
// the proxy of this ring reads the other one's counters, not the words in the block, which kernels can write.
#include "gpunetio/host/tx_wait.h"
#include "core/clock.h"

// Whether the ticket will not complete well: it, or one before it, failed, or the ring is broken.
static bool is_lost(const dqi_gn_tx *other, uint64_t ticket) {
    uint64_t failed = atomic_load_explicit(&other->failed, memory_order_relaxed);
    return (failed && ticket + 1 >= failed) || atomic_load_explicit(&other->broken, memory_order_acquire);
}

int dqi_gn_wait(dqi_gn_tx *t, const gn_desc *d, bool *done) {
    const dq_gn *g = t->gn;
    *done = true;
    if (d->conn >= g->conf.n_tx) return GN_FAULT_WAIT;
    const dqi_gn_tx *other = &g->tx[d->conn];
    bool completed = atomic_load_explicit(&other->completed, memory_order_acquire) > d->from;
    int64_t now = completed ? 0 : dqi_mono_ns(), since = t->wait_ns ? t->wait_ns : now;
    t->wait_ns = 0;
    if (is_lost(other, d->from)) return GN_FAULT_WAIT;
    if (completed) return GN_FAULT_NONE;
    if ((uint64_t)(now - since) > g->conf.limit_ns) return GN_FAULT_WAIT;
    t->wait_ns = since;
    *done = false;
    return GN_FAULT_NONE;
}
