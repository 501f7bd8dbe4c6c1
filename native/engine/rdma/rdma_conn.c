// rdma_conn.c: slots of connections: reserved, open, freed. The table is implemented by conn_table.h.
#include "engine/rdma/rdma_conn.h"

// Frees the rings of a slot: a free one owns no memory.
static void free_rings(dqi_rconn *c) {
    free(c->recv);
    free(c->sent);
    free(c->waits);
    free(c->remotes);
    c->recv = NULL;
    c->sent = NULL;
    c->waits = NULL;
    c->remotes = NULL;
    c->waits_cap = c->n_remotes = 0;
}

static bool make_rings(dqi_rconn *c) {
    c->recv = calloc(DQI_RDMA_DEPTH, sizeof *c->recv);
    c->sent = calloc(DQI_RDMA_DEPTH, sizeof *c->sent);
    if (c->recv && c->sent) return true;
    free_rings(c);
    return false;
}

static void reset(dqi_rconn *c) {
    c->by_hand = false;
    c->pair = c->pair_peer = (dq_queue_pair){0};
    c->flushing = c->gone = c->ours = c->ready = false;
    c->id = NULL;
    c->qp = NULL;
    c->ah = NULL;
    c->recv_head = c->recv_tail = c->n_posted = c->n_parked = 0;
    c->sent_head = c->sent_tail = c->unsignalled = 0;
    c->wait_head = c->wait_tail = 0;
    c->n_remotes = 0;
    c->private_out_bytes = c->private_in_bytes = 0;
    atomic_store(&c->joined, false);
    atomic_store(&c->why, DQ_OK);
    atomic_store(&c->waiting, 0);
    atomic_store(&c->done, 0);
}

dqi_rconn *dqi_rconn_new(dqi_rdma *r) {
    uint32_t id = 0;
    bool fresh = false;
    pthread_mutex_lock(&r->conns.lock);
    dqi_rconn *c = (dqi_rconn *)dqi_conn_reserve(&r->conns, &id, &fresh);
    if (c && !make_rings(c)) {
        if (fresh) free(c);
        atomic_fetch_sub(&r->conns.n, 1);
        c = NULL;
    }
    if (c) {
        c->r = r;
        reset(c);
        dqi_conn_place(&r->conns, &c->conn, -1);
        dqi_conn_enter(&r->conns, &c->conn, id);
    }
    pthread_mutex_unlock(&r->conns.lock);
    return c;
}

void dqi_rconn_give_up(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    dqi_rconn_destroy(c);
    pthread_mutex_lock(&r->conns.lock);
    dqi_conn_take_back(&r->conns, &c->conn);
    pthread_mutex_unlock(&r->conns.lock);
}

void dqi_rconn_opened(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    if (dqi_rconn_state(c) != DQI_CONN_CONNECTING) return;
    dqi_conn_opened(&r->conns, &c->conn);
    atomic_fetch_add(&r->version, 1);
    dqi_rdma_kick_all(r);
}

void dqi_rconn_destroy(dqi_rconn *c) {
    dqi_rconn_drop_qp(c);
    dqi_rconn_lock(c);
    dqi_rconn_drop_waits(c, DQ_DROP_CONNECTION_LOST);
    dqi_rconn_drop_sent(c, DQ_DROP_CONNECTION_LOST, "its connection ended");
    dqi_rconn_drop_recv(c);
    free_rings(c);
    dqi_rconn_unlock(c);
    dqi_rdma_await_dial(c->r);
    if (c->id) cm.destroy_id(c->id);
    c->id = NULL;
}
