// rdma_conn.c: start and end of connections, and the control calls. The table is implemented by conn_table.h.
//
// The end of a connection has phases. First queued packets are sent, unless the peer has disconnected or does
// not read for 5 s; then the queue pair is moved to the error state, and all posted requests complete as
// flushed, behind earlier completions; after the last one the queue pair is freed and the end is reported.
// Requests that the device does not return within 2 s are dropped.
#include "core/err.h"
#include "engine/rdma/rdma.h"
#include "engine/rdma/rdma_hello.h"
#include "pipeline/dq_pipeline.h"

#include <errno.h>
#include <string.h>

#define FIRST_WAIT_NS INT64_C(1000000000) // first delay between two connection attempts; it doubles
#define MAX_WAIT_NS   INT64_C(30000000000)
#define STEP_NS       1000000 // interval between checks of ending connections
#define INLINE_BYTES  DQI_RDMA_NOTE_BYTES

// ---- lock -------------------------------------------------------------------------------------------------

// Both functions write `wanted` in one step, so either the unlock sees the request or the second try
// succeeds.
void dqi_rconn_unlock(dqi_rconn *c) {
    dqi_unlock(&c->lock);
    uint32_t by = atomic_exchange(&c->wanted, 0);
    if (by & 1u << DQ_RX && c->rx) dqi_queue_kick(c->rx);
    if (by & 1u << DQ_TX && c->tx) dqi_queue_kick(c->tx);
}

bool dqi_rconn_try_lock(dqi_rconn *c, const dq_queue *q) {
    if (dqi_try_lock(&c->lock)) return true;
    atomic_fetch_or(&c->wanted, 1u << q->conf.dir);
    return dqi_try_lock(&c->lock);
}

// ---- setup ------------------------------------------------------------------------------------------------

static bool make_room(dqi_rconn *c) {
    if (!c->recv) c->recv = calloc(DQI_RDMA_DEPTH, sizeof *c->recv);
    if (!c->sent) c->sent = calloc(DQI_RDMA_DEPTH, sizeof *c->sent);
    return c->recv && c->sent;
}

static void reset(dqi_rconn *c) {
    c->local = c->peer = (dqi_sockaddr){0};
    c->by_hand = false;
    c->pair = c->pair_peer = (dq_queue_pair){0};
    c->primary = c->flushing = c->gone = c->ours = c->ready = false;
    c->id = NULL;
    c->qp = NULL;
    c->ah = NULL;
    c->recv_head = c->recv_tail = c->n_posted = c->n_parked = 0;
    c->sent_head = c->sent_tail = c->unsignalled = 0;
    c->wait_head = c->wait_tail = 0;
    c->n_remotes = 0;
    c->given_bytes = c->heard_bytes = 0;
    c->ending_ns = 0;
    c->ending_done = 0;
    atomic_store(&c->closing, false);
    atomic_store(&c->joined, false);
    atomic_store(&c->broken, false);
    atomic_store(&c->why, DQ_OK);
    atomic_store(&c->waiting, 0);
    atomic_store(&c->done, 0);
}

dqi_rconn *dqi_rconn_new(dqi_rdma *r) {
    const dq_iface *i = r->iface;
    uint32_t id = 0;
    bool anew = false;
    pthread_mutex_lock(&r->lock);
    dqi_rconn *c = (dqi_rconn *)dqi_conn_reserve(&r->conns, &id, &anew);
    if (c && !make_room(c)) {
        free(c->recv);
        c->recv = NULL;
        if (anew) free(c);
        atomic_fetch_sub(&r->conns.n, 1);
        c = NULL;
    }
    if (c) {
        c->r = r;
        reset(c);
        uint32_t pair = r->n_made++;
        c->rx = i->n_rx ? i->rx[pair % i->n_rx] : NULL;
        c->tx = i->n_tx ? i->tx[pair % i->n_tx] : NULL;
        dqi_conn_enter(&r->conns, &c->conn, id);
    }
    pthread_mutex_unlock(&r->lock);
    return c;
}

void dqi_rconn_give_up(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    dqi_rconn_destroy(c);
    pthread_mutex_lock(&r->lock);
    dqi_conn_take_back(&r->conns, &c->conn);
    pthread_mutex_unlock(&r->lock);
}

// Reserves completion queue entries in the connection's queues; a missing direction uses the other's.
static int take_cqs(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    int err;
    pthread_mutex_lock(&r->lock);
    c->recv_cq = dqi_rdma_cq_for(dqi_rdma_queue_of(c->rx ? c->rx : c->tx), DQI_RDMA_DEPTH, &err);
    if (c->recv_cq)
        c->send_cq = dqi_rdma_cq_for(dqi_rdma_queue_of(c->tx ? c->tx : c->rx), DQI_RDMA_DEPTH, &err);
    if (err != DQ_OK && c->recv_cq) c->recv_cq->used -= DQI_RDMA_DEPTH;
    pthread_mutex_unlock(&r->lock);
    return err;
}

static void leave_cqs(const dqi_rconn *c) {
    pthread_mutex_lock(&c->r->lock);
    c->recv_cq->used -= DQI_RDMA_DEPTH;
    c->send_cq->used -= DQI_RDMA_DEPTH;
    pthread_mutex_unlock(&c->r->lock);
}

static uint32_t segments(const dqi_rconn *c, bool rx) {
    const dq_queue *q = rx ? c->rx : c->tx;
    uint32_t most = (uint32_t)c->r->device->attr.max_sge, n = q ? q->conf.n_regions : 1;
    if (!rx) n = DQ_MAX_SEGS; // forwarded bursts may have more
    return n == 0 ? 1 : n < most ? n : most;
}

static int qp_type(const dqi_rconn *c) {
    static const int types[] = {
        [DQ_TRANSPORT_RC] = VB_QPT_RC, [DQ_TRANSPORT_UC] = VB_QPT_UC, [DQ_TRANSPORT_UD] = VB_QPT_UD};
    return types[dqi_rdma_transport(c->r)];
}

int dqi_rconn_make_qp(dqi_rconn *c) {
    int err = take_cqs(c);
    if (err != DQ_OK) return err;
    vb_qp_init_attr a = {.qp_context = c,
                         .send_cq = c->send_cq->cq,
                         .recv_cq = c->recv_cq->cq,
                         .cap = {.max_send_wr = DQI_RDMA_DEPTH,
                                 .max_recv_wr = DQI_RDMA_DEPTH,
                                 .max_send_sge = segments(c, false),
                                 .max_recv_sge = segments(c, true),
                                 .max_inline_data = INLINE_BYTES},
                         .qp_type = qp_type(c)};
    vb_qp *qp = vb.create_qp(c->r->device->pd, &a);
    err = errno;
    a.cap.max_inline_data = qp ? a.cap.max_inline_data : 0; // not supported by every device
    if (!qp) qp = vb.create_qp(c->r->device->pd, &a);
    if (!qp) {
        leave_cqs(c);
        return DQ_ESYS - err;
    }
    c->inline_bytes = a.cap.max_inline_data;
    dqi_rconn_lock(c);
    c->qp = qp;
    dqi_rconn_unlock(c);
    return dqi_rconn_step(c, VB_QPS_INIT);
}

void dqi_rconn_stop_qp(dqi_rconn *c) {
    vb_qp_attr a = {.qp_state = VB_QPS_ERR};
    if (c->id && !dqi_rdma_is_ud(c->r)) cm.disconnect(c->id); // notifies the peer
    dqi_rconn_lock(c);
    if (c->qp) vb.modify_qp(c->qp, &a, VB_QP_STATE);
    dqi_rconn_unlock(c);
}

static void kick_all(const dqi_rdma *r) {
    for (uint32_t k = 0; k < r->iface->n_tx; k++)
        dqi_queue_kick(r->iface->tx[k]);
    for (uint32_t k = 0; k < r->iface->n_rx; k++)
        dqi_queue_kick(r->iface->rx[k]);
}

void dqi_rconn_opened(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    uint32_t id = dqi_rconn_id(c);
    if (dqi_rconn_state(c) != DQI_CONN_CONNECTING) return;
    pthread_mutex_lock(&r->lock);
    if (c->primary) {
        r->since_ns = dq_now(r->iface->session);
        r->last_err = 0;
    }
    atomic_store(&c->conn.state, DQI_CONN_OPEN);
    atomic_store(&r->newest, id);
    atomic_fetch_add(&r->version, 1);
    pthread_mutex_unlock(&r->lock);
    dqi_iface_event(r->iface, DQ_EV_CONNECT, id, DQ_OK);
    kick_all(r);
}

// ---- end --------------------------------------------------------------------------------------------------

void dqi_rdma_wake(dqi_rdma *r) {
    atomic_store(&r->attention, true);
    if (r->keeper) dqi_queue_kick(r->keeper);
}

void dqi_rconn_in_error(dqi_rconn *c) {
    atomic_store(&c->broken, true);
    dqi_rdma_wake(c->r);
}

void dqi_rconn_break(dqi_rconn *c, int status) {
    atomic_store(&c->why, status);
    dqi_rconn_in_error(c);
}

void dqi_rconn_flushed(dqi_rconn *c) {
    if (!c->flushing) atomic_store(&c->broken, true);
    dqi_rdma_wake(c->r);
}

void dqi_rconn_destroy(dqi_rconn *c) {
    dqi_rconn_lock(c);
    vb_qp *qp = c->qp;
    vb_ah *ah = c->ah;
    c->qp = NULL;
    c->ah = NULL;
    dqi_rconn_unlock(c);
    if (ah) vb.destroy_ah(ah);
    if (qp) { // ends all access through it
        vb.destroy_qp(qp);
        leave_cqs(c);
    }
    dqi_rconn_lock(c);
    dqi_rconn_drop_waits(c, DQ_DROP_CONNECTION_LOST);
    dqi_rconn_drop_sent(c, DQ_DROP_CONNECTION_LOST, "its connection ended");
    dqi_rconn_drop_recv(c);
    free(c->recv); // a free slot owns no memory
    free(c->sent);
    free(c->waits);
    free(c->remotes);
    c->recv = NULL;
    c->sent = NULL;
    c->waits = NULL;
    c->remotes = NULL;
    c->waits_cap = c->n_remotes = 0;
    dqi_rconn_unlock(c);
    dqi_rdma_await_dial(c->r);
    if (c->id) cm.destroy_id(c->id);
    c->id = NULL;
}

// Schedules a client's next attempt: at once after a lasting connection, else after a doubling delay.
static void schedule(dqi_rconn *c, bool was_open) {
    dqi_rdma *r = c->r;
    int64_t now = dq_now(r->iface->session);
    r->retired = r->retired || atomic_load(&c->closing);
    r->dials = true;
    atomic_store(&r->attention, true);
    if (was_open) {
        r->wait_ns = FIRST_WAIT_NS;
        r->dial_ns = now - r->since_ns >= FIRST_WAIT_NS ? now : now + FIRST_WAIT_NS;
        return;
    }
    r->dial_ns = now + r->wait_ns;
    r->wait_ns = 2 * r->wait_ns < MAX_WAIT_NS ? 2 * r->wait_ns : MAX_WAIT_NS;
}

// Returns the reason of the end; a queue pair in error without a failed completion is reported separately.
static int reason(const dqi_rconn *c) {
    int why = atomic_load(&c->why);
    if (why != DQ_OK || !atomic_load(&c->broken)) return why;
    char peer[64];
    dqi_addr_text(&c->peer, peer, sizeof peer);
    dqi_note(c->r->iface->session, "interface %s: the connection with %s ends: its queue pair is in error",
             c->r->iface->conf.name, peer);
    return DQ_ESYS - EREMOTEIO;
}

// Frees the slot and reports the end.
static void finish(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    uint32_t id = dqi_rconn_id(c);
    int code = reason(c);
    bool was_open = dqi_rconn_state(c) != DQI_CONN_CONNECTING, tell = true;
    dqi_rconn_destroy(c);
    pthread_mutex_lock(&r->lock);
    dqi_conn_leave(&r->conns, &c->conn);
    atomic_fetch_add(&r->version, 1);
    if (atomic_load(&r->newest) == id) atomic_store(&r->newest, dqi_conn_newest(&r->conns));
    if (c->primary) schedule(c, was_open);
    if (c->primary && !was_open) { // an unreachable server is reported only once
        tell = r->last_err != code;
        r->last_err = code;
        id = 0;
    }
    pthread_mutex_unlock(&r->lock);
    if (tell) dqi_iface_event(r->iface, DQ_EV_DISCONNECT, id, code);
    kick_all(r);
}

void dqi_rconn_end(dqi_rconn *c, int code) {
    dqi_rdma *r = c->r;
    uint32_t id = dqi_rconn_id(c);
    int32_t none = DQ_OK;
    int state = dqi_rconn_state(c);
    if (state == DQI_CONN_FREE) return;
    atomic_compare_exchange_strong(&c->why, &none, code);
    if (state == DQI_CONN_CONNECTING) return finish(c);
    if (state == DQI_CONN_OPEN) {
        pthread_mutex_lock(&r->lock);
        atomic_store(&c->conn.state, DQI_CONN_ENDING);
        c->ending_ns = dq_now(r->iface->session);
        for (uint32_t k = 0; k < r->iface->n_tx; k++)
            c->mark[k] = atomic_load(&r->iface->tx[k]->ring.tail);
        if (atomic_load(&r->newest) == id) atomic_store(&r->newest, dqi_conn_newest(&r->conns));
        atomic_fetch_add(&r->version, 1);
        pthread_mutex_unlock(&r->lock);
    }
    atomic_store(&r->attention, true);
}

// Flushes all posted requests.
static void flush(dqi_rconn *c, int64_t now) {
    c->flushing = true;
    c->ending_ns = now;
    dqi_rconn_stop_qp(c);
    dqi_rconn_lock(c);
    dqi_rconn_drop_waits(c, DQ_DROP_CONNECTION_LOST);
    dqi_rconn_unlock(c);
    kick_all(c->r);
}

// Returns true if all packets queued before the end began were passed to their connections.
static bool queues_passed(const dqi_rconn *c) {
    const dq_iface *i = c->r->iface;
    bool passed = true;
    for (uint32_t k = 0; k < i->n_tx && passed; k++)
        passed = (int32_t)(atomic_load(&dqi_rdma_queue_of(i->tx[k])->settled) - c->mark[k]) >= 0;
    return passed;
}

// Checks an ending connection; returns false when it has ended.
static bool step(dqi_rconn *c, int64_t now) {
    dqi_rconn_lock(c);
    bool sends = dqi_rconn_sending(c) > 0 || atomic_load(&c->waiting) > 0;
    bool under_way = dqi_rconn_sending(c) > 0 || c->n_posted > 0;
    bool read = c->rx && atomic_load_explicit(&c->rx->consumed, memory_order_relaxed);
    bool waits = c->n_parked > 0 && read && !dqi_rdma_stopped(c->r);
    bool untaken = waits && (c->ready || now - c->ending_ns < DQI_RDMA_END_NS);
    dqi_rconn_unlock(c);
    uint64_t done = atomic_load(&c->done);
    if (!c->flushing) {
        if (done != c->ending_done) c->ending_ns = now;
        c->ending_done = done;
        bool rest = sends || !queues_passed(c);
        bool over = c->gone || atomic_load(&c->broken) || !rest || now - c->ending_ns >= DQI_RDMA_IDLE_NS;
        if (!over) return true;
        flush(c, now);
        return true;
    }
    if (under_way && now - c->ending_ns < DQI_RDMA_END_NS) return true;
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
        bool wants = atomic_load(&c->broken) || atomic_load(&c->closing) || c->gone;
        if (wants && dqi_rconn_state(c) != DQI_CONN_ENDING) dqi_rconn_end(c, DQ_OK);
        if (dqi_rconn_state(c) == DQI_CONN_ENDING && step(c, now)) next = now + STEP_NS;
    }
    return next;
}

// ---- control calls ----------------------------------------------------------------------------------------

// Resolves "host:port" into *out. Returns DQ_OK or an error.
static int address(const dqi_rdma *r, const char *text, bool need_port, dqi_sockaddr *out, dq_diag *diag) {
    char host[256];
    int32_t port;
    dq_proto proto;
    const char *why = "", *name = r->iface->conf.name,
               *bare = strstr(text, "roce://") == text ? text + 7 : text;
    if (!dqi_addr_split(bare, host, sizeof host, &port, &proto) || (need_port && (port <= 0 || !host[0])))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: '%s' is not an address; hint: \"host:port\" or \"[IPv6]:port\"", name,
                        text);
    if (proto != DQ_PROTO_NONE)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: '%s': this interface speaks roce", name,
                        text);
    int n = dqi_addr_resolve(host, port > 0 ? (uint16_t)port : 0, out, 1, &why);
    return n > 0 ? DQ_OK : dqi_fail(diag, n, "interface %s: %s: %s", name, text, why);
}

int dqi_rconn_open_op(dq_iface *i, const dq_connect *asked, uint32_t *conn, dq_diag *diag) {
    dqi_rdma *r = i->engine;
    dqi_sockaddr to, from = r->local;
    dqi_addr_set_port(&from, 0);
    if (i->conf.socket.server)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "interface %s: a server waits for its peers; hint: connect from a client",
                        i->conf.name);
    const char *local = asked->local ? asked->local : "";
    int err = address(r, asked->address, true, &to, diag);
    if (err == DQ_OK && local[0]) err = address(r, local, false, &from, diag);
    if (err == DQ_OK) err = dqi_rdma_check_private(r, asked, diag);
    if (err != DQ_OK) return err;
    if (!dqi_addr_same_host(&from, &r->local))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: '%s' is not its address: it connects from the address that it is bound to",
            i->conf.name, local);
    dqi_rconn *c = dqi_rconn_new(r);
    if (!c)
        return dqi_fail(
            diag, DQ_NO_SPACE_AVAILABLE,
            "interface %s: it has %u connections, or as many have come and gone unseen; hint: close "
            "some, and let the connection handlers run",
            i->conf.name, DQI_CONNS);
    *conn = dqi_rconn_id(c);
    c->given_bytes = (uint8_t)asked->private_bytes;
    if (c->given_bytes > 0) memcpy(c->given, asked->private_data, c->given_bytes);
    err = dqi_rdma_dial(c, &from, &to);
    if (err == DQ_OK) return DQ_OK;
    dqi_rconn_give_up(c);
    return dqi_fail(diag, err, "interface %s: connection to %s: %s", i->conf.name, asked->address,
                    dq_err_name(err));
}

int dqi_rconn_close_op(dq_iface *i, uint32_t conn) {
    dqi_rdma *r = i->engine;
    pthread_mutex_lock(&r->lock);
    dqi_rconn *c = dqi_rconn_find(r, conn);
    bool live = c && dqi_rconn_state(c) != DQI_CONN_FREE && !atomic_exchange(&c->closing, true);
    pthread_mutex_unlock(&r->lock);
    if (live) dqi_rdma_wake(r);
    return live ? DQ_OK : DQ_INVALID_PARAMETER;
}

int dqi_rconn_read_op(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    dqi_rdma *r = i->engine;
    pthread_mutex_lock(&r->lock);
    dqi_rconn *c = dqi_rconn_find(r, conn ? conn : atomic_load(&r->newest));
    *out = (dq_conn_info){0};
    if (conn == 0) {
        dqi_addr_text(&r->local, out->local, sizeof out->local);
        dqi_addr_text(&r->remote, out->peer, sizeof out->peer);
        out->open = i->conf.socket.server;
        out->rx = i->n_rx ? i->rx[0] : NULL;
        out->tx = i->n_tx ? i->tx[0] : NULL;
    }
    if (c) {
        dqi_addr_text(&c->local, out->local, sizeof out->local);
        dqi_addr_text(&c->peer, out->peer, sizeof out->peer);
        out->open = dqi_rconn_state(c) == DQI_CONN_OPEN && !atomic_load(&c->closing);
        out->private_bytes = out->open ? c->heard_bytes : 0;
        memcpy(out->private_data, c->heard, out->private_bytes);
        out->rx = c->rx;
        out->tx = c->tx;
    }
    pthread_mutex_unlock(&r->lock);
    return c || conn == 0 ? DQ_OK : DQ_INVALID_PARAMETER;
}
