// socket_queue.c: resources of a socket queue besides its sockets: the stock of buffers and the arrays for
// system calls. Control thread.
//
// Transmit queues come and go while the interface is open: they send on its sockets, whichever these are.
// Receive queues do not: each has a socket of its own, among which the kernel divides the peers.
#include "core/dq_burst.h"
#include "core/err.h"
#include "engine/socket/socket_conn.h"
#include "engine/socket/socket_open.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"

#include <errno.h>

// Returns the number of buffers in a queue's stock: a batch, for streams enough for a large read, limited so
// that other users of the region have enough.
static uint32_t stock_size(const dq_queue *q) {
    const dq_session *s = q->session;
    const dq_region *r = q->conf.regions[0];
    uint32_t users = 0, n = q->conf.batch_size, read = DQI_SOCK_READ / r->conf.buf_size;
    if (q->iface->conf.socket.proto == DQ_PROTO_TCP && n < read) n = read;
    if (n > DQI_SOCK_BATCH) n = DQI_SOCK_BATCH;
    for (uint32_t k = 0; k < s->n_ifaces; k++)
        for (uint32_t j = 0; j < s->ifaces[k]->n_rx; j++)
            users += s->ifaces[k]->rx[j]->conf.regions[0] == r;
    uint32_t share = r->conf.num_bufs / (4 * (users ? users : 1));
    if (n > share) n = share;
    return n ? n : 1;
}

int dqi_sock_open_rx(dqi_sock *s, uint32_t k, dq_diag *diag) {
    dq_queue *q = s->iface->rx[k];
    const char *name = s->iface->conf.name;
    uint32_t max = s->iface->conf.socket.max_payload;
    dq_region *region = q->conf.regions[0];
    dqi_sock_rx *r = calloc(1, sizeof *r);
    if (!r) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: queue %s: no memory", name, q->conf.name);
    q->engine = r;
    q->rx.immediate = true;
    r->sock = s;
    r->queue = q;
    r->region = region;
    r->n_bursts = dqi_burst_pool_level(q->bursts);
    r->limit = max ? max : region->conf.buf_size;
    if (r->limit > region->conf.buf_size)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: max_payload_size %u is more than the %u bytes of region %s's buffers",
                        name, max, region->conf.buf_size, region->conf.name);
    r->cap_stock = stock_size(q);
    if (dqi_gro_open(r) != DQ_OK)
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: queue %s: no memory", name, q->conf.name);
    r->iov = calloc(2 * DQI_SOCK_BATCH, sizeof *r->iov);
    bool udp = dqi_sock_is_udp(s);
    if (udp) q->rx.stamping = DQ_STAMPS_KERNEL;
    if (udp) r->msgs = calloc(DQI_SOCK_BATCH, sizeof *r->msgs);
    if (udp) r->ctl = calloc(DQI_SOCK_BATCH, DQI_SOCK_CTL);
    if (!r->iov || (udp && (!r->msgs || !r->ctl)))
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: queue %s: no memory", name, q->conf.name);
    int err = dqi_reactor_init(&r->reactor, s, q);
    return err == DQ_OK ? DQ_OK
                        : dqi_fail(diag, err, "interface %s: queue %s: cannot create an epoll instance: %s",
                                   name, q->conf.name, dq_err_name(err));
}

int dqi_sock_open_tx(dqi_sock *s, dq_queue *q, uint32_t k, dq_diag *diag) {
    dqi_sock_tx *t = calloc(1, sizeof *t);
    q->engine = t;
    if (t) {
        bool udp = dqi_sock_is_udp(s);
        t->sock = s;
        t->index = k;
        t->blocked_fd = -1;
        t->iov = calloc(DQI_SOCK_IOVS, sizeof *t->iov);
        t->msgs = udp ? calloc(DQI_SOCK_BATCH, sizeof *t->msgs) : NULL;
        t->runs = udp ? calloc(DQI_SOCK_BATCH, sizeof *t->runs) : NULL;
        t->ctl = udp ? calloc(DQI_SOCK_BATCH, DQI_SOCK_CTL) : NULL;
        t->names = udp ? calloc(DQI_SOCK_BATCH, sizeof *t->names) : NULL;
        t->prefix = udp ? NULL : calloc(DQI_SOCK_IOVS, sizeof *t->prefix);
        bool ok = t->iov && (udp ? t->msgs && t->runs && t->ctl && t->names : t->prefix != NULL);
        if (ok && (udp || dqi_backlog_open(t, q) == DQ_OK)) return DQ_OK;
    }
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: queue %s: no memory", s->iface->conf.name,
                    q->conf.name);
}

// Uses the state of a deleted queue for the next one of its id. What the earlier one sent is settled, which
// connections that are ending may still have to read.
static void open_again(dqi_sock_tx *t, const dq_queue *q) {
    atomic_store(&t->conn.base, atomic_load(&t->conn.settled));
    t->blocked_fd = -1;
    t->stays = 0;
    t->backlogs.packets_cap = q->conf.regions[0]->conf.num_bufs;
}

int dqi_sock_queue_open(dq_queue *q, dq_diag *diag) {
    dqi_sock *s = q->iface->engine;
    if (q->conf.dir == DQ_RX)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "interface %s: queue %s: a receive queue of sockets can't be added: the kernel divides "
            "the peers among the sockets of the open, and would give some to another queue; hint: "
            "transmit queues can, and s:pipe can divide the packets of a queue",
            q->iface->conf.name, q->conf.name);
    if (q->engine) {
        open_again(q->engine, q);
        return DQ_OK;
    }
    int err = dqi_sock_open_tx(s, q, q->iface->n_tx, diag);
    if (err != DQ_OK)
        dqi_sock_close_tx(q);
    else if (s->n_base > 0)
        ((dqi_sock_tx *)q->engine)->base = s->base[q->iface->n_tx % s->n_base];
    return err;
}

int dqi_sock_queue_deletable(const dq_queue *q, dq_diag *diag) {
    const dqi_sock *s = q->iface->engine;
    const char *why = q->conf.dir == DQ_RX ? "peers belong to the socket of a receive queue"
                      : s->idle.queue == q
                          ? "its thread serves the connections of the interface, which has no "
                            "receive queue"
                          : NULL;
    return why ? dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: queue %s can't be deleted: %s",
                          q->iface->conf.name, q->conf.name, why)
               : DQ_OK;
}

void dqi_sock_close_rx(dq_queue *q) {
    dqi_sock_rx *r = q->engine;
    q->engine = NULL;
    if (!r) return;
    dqi_bufs_free(q->session, r->stock, r->n_stock);
    dqi_gro_close(r);
    dqi_reactor_close(&r->reactor);
    free(r->iov);
    free(r->msgs);
    free(r->ctl);
    free(r);
}

void dqi_sock_close_tx(dq_queue *q) {
    dqi_sock_tx *t = q->engine;
    q->engine = NULL;
    if (!t) return;
    free(t->iov);
    free(t->msgs);
    free(t->runs);
    free(t->ctl);
    free(t->names);
    free(t->prefix);
    dqi_backlog_close(t);
    free(t);
}
