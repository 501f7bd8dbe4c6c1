// rdma_end.c: the end of connections, by the keeper.
//
// The end has phases. First queued packets are sent, unless the peer has disconnected or does not read for 5
// s; then the queue pair is moved to the error state, and all posted requests complete as flushed, behind
// earlier completions; after the last one the queue pair is freed and the end is reported. Requests that the
// device does not return within 2 s are dropped.
#include "core/err.h"
#include "engine/rdma/rdma_conn.h"

#include <errno.h>

#define STEP_NS 1000000 // interval between checks of ending connections

// Returns the reason of the end; a queue pair in error without a failed completion is reported separately.
static int reason(const dqi_rconn *c) {
    int why = atomic_load(&c->why);
    if (why != DQ_OK || !atomic_load(&c->conn.broken)) return why;
    char peer[64];
    dqi_addr_text(&c->conn.peer, peer, sizeof peer);
    dqi_note(c->r->iface->session, "interface %s: the connection with %s ends: its queue pair is in error",
             c->r->iface->conf.name, peer);
    return DQ_ESYS - EREMOTEIO;
}

// Frees the slot and reports the end.
static void finish(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    uint32_t id;
    int code = reason(c);
    bool own = c->conn.redial != NULL;
    dqi_rconn_destroy(c);
    pthread_mutex_lock(&r->conns.lock);
    bool report = dqi_conn_ended(&r->conns, &c->conn, code, &id);
    atomic_fetch_add(&r->version, 1);
    pthread_mutex_unlock(&r->conns.lock);
    if (own) atomic_store(&r->attention, true); // the next attempt
    if (report) dqi_iface_event(r->iface, DQ_EV_DISCONNECT, id, code);
    dqi_rdma_kick_all(r);
}

void dqi_rconn_end(dqi_rconn *c, int code) {
    dqi_rdma *r = c->r;
    int32_t none = DQ_OK;
    int state = dqi_rconn_state(c);
    if (state == DQI_CONN_FREE) return;
    atomic_compare_exchange_strong(&c->why, &none, code);
    if (state == DQI_CONN_CONNECTING) return finish(c);
    if (state == DQI_CONN_OPEN) {
        pthread_mutex_lock(&r->conns.lock);
        dqi_conn_begin_end(&r->conns, &c->conn, atomic_load(&c->done), dq_now(r->iface->session));
        dqi_conn_mark(&r->conns, &c->conn);
        atomic_fetch_add(&r->version, 1);
        pthread_mutex_unlock(&r->conns.lock);
    }
    atomic_store(&r->attention, true);
}

// Flushes all posted requests.
static void flush(dqi_rconn *c, int64_t now) {
    c->flushing = true;
    c->conn.ending_ns = now;
    dqi_rconn_stop_qp(c);
    dqi_rconn_lock(c);
    dqi_rconn_drop_waits(c, DQ_DROP_CONNECTION_LOST);
    dqi_rconn_unlock(c);
    dqi_rdma_kick_all(c->r);
}

// Checks an ending connection; returns false when it has ended.
static bool step(dqi_rconn *c, int64_t now) {
    dqi_rconn_lock(c);
    bool sends = dqi_rconn_sending(c) > 0 || atomic_load(&c->waiting) > 0;
    bool under_way = dqi_rconn_sending(c) > 0 || c->n_posted > 0;
    bool read = c->conn.rx && atomic_load_explicit(&c->conn.rx->rx.consumed, memory_order_relaxed);
    bool waits = c->n_parked > 0 && read && !dqi_rdma_stopped(c->r);
    bool untaken = waits && (c->ready || now - c->conn.ending_ns < DQI_RDMA_END_NS);
    dqi_rconn_unlock(c);
    if (!c->flushing) {
        bool idle = dqi_conn_idle_ns(&c->conn, atomic_load(&c->done), now) >= DQI_RDMA_IDLE_NS;
        bool rest = sends || !dqi_conn_passed(&c->r->conns, &c->conn);
        bool over = c->gone || atomic_load(&c->conn.broken) || !rest || idle;
        if (!over) return true;
        flush(c, now);
        return true;
    }
    if (under_way && now - c->conn.ending_ns < DQI_RDMA_END_NS) return true;
    if (untaken) return true; // its end is reported after its messages
    finish(c);
    return false;
}

int64_t dqi_rconn_ending_serve(dqi_rdma *r) {
    int64_t now = dq_now(r->iface->session), next = INT64_MAX;
    for (uint32_t k = 0; k < DQI_CONNS && atomic_load(&r->conns.n) > 0; k++) {
        dqi_rconn *c = dqi_rconn_at(r, k);
        if (!c || dqi_rconn_state(c) == DQI_CONN_FREE) continue;
        if (atomic_load(&c->joined)) dqi_rconn_opened(c);
        bool wants = atomic_load(&c->conn.broken) || atomic_load(&c->conn.closing) || c->gone;
        if (wants && dqi_rconn_state(c) != DQI_CONN_ENDING) dqi_rconn_end(c, DQ_OK);
        if (dqi_rconn_state(c) == DQI_CONN_ENDING && step(c, now)) next = now + STEP_NS;
    }
    return next;
}
