#include "pipeline/connection/conn.h"
#include "core/dq_burst.h"
#include "core/err.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/iface.h"
#include "pipeline/session.h"

#include <string.h>

#define NS           INT64_C(1000000000)
#define MAX_WAIT_NS  (30 * NS) // longest delay between two attempts to connect
#define FLUSH_ROUNDS 1024      // bursts discarded by one flush; later arrivals may stay

// ---- a client's own connections ---------------------------------------------------------------------------

void dqi_redial_init(dqi_redial *d, const dq_iface *i) {
    int32_t s = i->conf.socket.retry_connect_s;
    d->first_ns = d->wait_ns = NS * (s > 0 ? s : 1);
}

// Schedules the next attempt: at once after a lasting connection, else after a doubling delay.
static void schedule(dqi_redial *d, const dqi_conn *c, bool was_open, int64_t now) {
    atomic_store(&d->conn, NULL);
    d->retired = d->retired || atomic_load(&c->closing);
    if (was_open) {
        d->due_ns = now - d->since_ns >= d->first_ns ? now : now + d->first_ns;
        d->wait_ns = d->first_ns;
        return;
    }
    d->due_ns = now + d->wait_ns;
    if (d->wait_ns < MAX_WAIT_NS) d->wait_ns = 2 * d->wait_ns < MAX_WAIT_NS ? 2 * d->wait_ns : MAX_WAIT_NS;
}

// ---- start and end ----------------------------------------------------------------------------------------

void dqi_conn_opened(dqi_conn_table *t, dqi_conn *c) {
    dqi_redial *d = c->redial;
    pthread_mutex_lock(&t->lock);
    if (d) d->since_ns = dq_now(t->iface->session);
    if (d) d->last_err = 0;
    dqi_conn_set_open(t, c);
    pthread_mutex_unlock(&t->lock);
    dqi_iface_event(t->iface, DQ_EV_CONNECT, dqi_conn_id_of(c), DQ_OK);
}

void dqi_conn_begin_end(dqi_conn_table *t, dqi_conn *c, uint64_t moved, int64_t now) {
    c->ending_ns = now;
    c->ending_moved = moved;
    dqi_conn_set_ending(t, c);
}

int64_t dqi_conn_idle_ns(dqi_conn *c, uint64_t moved, int64_t now) {
    if (moved != c->ending_moved) c->ending_ns = now;
    c->ending_moved = moved;
    return now - c->ending_ns;
}

void dqi_conn_mark(const dqi_conn_table *t, dqi_conn *c) {
    for (uint32_t k = 0; k < t->iface->n_tx; k++) {
        const dqi_conn_tx *x = t->iface->tx[k]->engine;
        c->mark[k] = atomic_load(&t->iface->tx[k]->tx.ring.tail) + atomic_load(&x->base);
    }
}

bool dqi_conn_passed(const dqi_conn_table *t, const dqi_conn *c) {
    bool passed = true;
    for (uint32_t k = 0; k < t->iface->n_tx && passed; k++) {
        const dqi_conn_tx *x = t->iface->tx[k]->engine;
        passed = (int32_t)(atomic_load(&x->settled) - c->mark[k]) >= 0;
    }
    return passed;
}

bool dqi_conn_ended(dqi_conn_table *t, dqi_conn *c, int code, uint32_t *id) {
    dqi_redial *d = c->redial;
    bool was_open = dqi_conn_takes(c);
    *id = dqi_conn_id_of(c);
    dqi_conn_leave(t, c);
    if (d) schedule(d, c, was_open, dq_now(t->iface->session));
    if (!d || was_open) return true;
    *id = 0;
    bool news = d->last_err != code; // an unreachable server is reported once
    d->last_err = code;
    return news;
}

// ---- queues -------------------------------------------------------------------------------------------------

void dqi_conn_settle(const dq_queue *q) {
    dqi_conn_tx *x = q->engine;
    uint32_t taken = atomic_load_explicit(&q->tx.ring.head, memory_order_relaxed);
    bool under_way = q->tx.cur && !q->tx.made;
    atomic_store(&x->settled, atomic_load(&x->base) + (under_way ? taken - 1 : taken));
}

uint32_t dqi_conn_named(const dq_queue *q, const dq_burst *b) {
    const dq_queue *from = b->queue;
    bool foreign = from && from->conf.dir == DQ_RX && from->iface != q->iface &&
                   dqi_conn_is_of(b->conn, from->iface->index);
    return foreign ? 0 : b->conn;
}

int64_t dqi_conn_flush(dq_queue *q, int (*rx)(dq_queue *q, dq_burst **b, uint32_t room)) {
    int64_t n = 0;
    bool more = true;
    for (int round = 0; round < FLUSH_ROUNDS && more; round++) {
        dq_burst *b = dqi_burst_get(q->bursts);
        if (!b) break;
        int k = rx(q, &b, q->conf.batch_size);
        more = k > 0;
        n += k;
        dq_burst_unref(b);
    }
    return n;
}

// ---- control calls ----------------------------------------------------------------------------------------

int dqi_conn_check_client(const dq_iface *i, dq_diag *diag) {
    if (!i->conf.socket.server) return DQ_OK;
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "interface %s: cannot connect from a server; hint: connect from a client", i->conf.name);
}

static const char *scheme_of(const dq_iface *i) {
    dq_proto proto = (dq_proto)i->conf.socket.proto;
    return proto == DQ_PROTO_UDP ? "udp" : proto == DQ_PROTO_TCP ? "tcp" : "roce";
}

int dqi_conn_addresses(const dq_iface *i, const char *text, bool need_port, dqi_sockaddr *out, int max,
                       dq_diag *diag) {
    char host[256];
    int32_t port;
    dq_proto proto, mine = (dq_proto)i->conf.socket.proto;
    const char *why = "", *name = i->conf.name, *scheme = scheme_of(i);
    bool roce = mine == DQ_PROTO_ROCE && strncmp(text, "roce://", 7) == 0;
    if (!dqi_addr_split(roce ? text + 7 : text, host, sizeof host, &port, &proto) ||
        (need_port && (port <= 0 || !host[0])))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: '%s' is not an address; hint: \"host:port\" or \"[IPv6]:port\"", name,
                        text);
    if (proto != DQ_PROTO_NONE && proto != mine)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: '%s' is not a valid address (expected %s://)", name, text, scheme);
    int n = dqi_addr_resolve(host, port > 0 ? (uint16_t)port : 0, out, max, &why);
    if (n > 0) return n;
    return dqi_fail(diag, n, "interface %s: %s: %s; hint: write the address in digits, or correct the name",
                    name, text, why);
}

int dqi_conn_full(const dq_iface *i, dq_diag *diag) {
    return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE,
                    "interface %s: cannot open a connection: there are %u, or ended ones whose events were "
                    "not handled; hint: close some, and let the connection handlers run",
                    i->conf.name, DQI_CONNS);
}

dqi_conn *dqi_conn_request_end(dqi_conn_table *t, uint32_t id) {
    dqi_conn *c = dqi_conn_look_up(t, id);
    bool live = c && dqi_conn_state_of(c) != DQI_CONN_FREE && !atomic_exchange(&c->closing, true);
    return live ? c : NULL;
}

void dqi_conn_describe(const dqi_conn *c, dq_conn_info *out) {
    dqi_addr_text(&c->local, out->local, sizeof out->local);
    dqi_addr_text(&c->peer, out->peer, sizeof out->peer);
    out->open = dqi_conn_state_of(c) == DQI_CONN_OPEN && !atomic_load(&c->closing);
    out->rx = c->rx;
    out->tx = c->tx;
}
