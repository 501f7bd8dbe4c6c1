// engine_rdma.c: roce:// interfaces: queues hold messages, which the device transfers without the kernel.
//
// Each queue of the interface has completion queues, on which its poller polls and sleeps; each connection
// has a queue pair and is assigned to the queues in turn, as TCP connections are. The engine has no threads
// of its own. This file is the engine table; see rdma.h for the parts and their threads.
#include "core/err.h"
#include "core/peers.h"
#include "engine/rdma/rdma_ops.h"

#include <errno.h>
#include <string.h>

// ---- open -------------------------------------------------------------------------------------------------

static int no_memory(const dq_iface *i, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
}

static int check_conf(const dq_iface *i, dq_diag *diag) {
    const dq_socket_conf *c = &i->conf.socket;
    if (c->proto != DQ_PROTO_ROCE)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: engine rdma needs an address such as roce://10.0.0.1:4096",
                        i->conf.name);
    if (!c->local_host[0])
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: local_addr is needed: the address of the network device of an RDMA device",
            i->conf.name);
    return DQ_OK;
}

static int resolve(const dq_iface *i, const char *host, uint16_t port, dqi_sockaddr *out, dq_diag *diag) {
    const char *why = "";
    int n = dqi_addr_resolve(host, port, out, 1, &why);
    if (n > 0) return DQ_OK;
    return dqi_fail(diag, n, "interface %s: %s: %s; hint: write the address in digits, or correct the name",
                    i->conf.name, host, why);
}

static int open_queue(dqi_rdma *r, dq_queue *q, dq_diag *diag) {
    dqi_rdma_queue *x = calloc(1, sizeof *x);
    if (!x) return no_memory(r->iface, diag);
    q->engine = x;
    x->r = r;
    x->queue = q;
    x->pipes_seen = x->conns_seen = UINT32_MAX;
    int most = r->device->attr.max_sge;
    if ((int)q->conf.n_regions > most)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "interface %s: queue %s: %u memory regions, and device %s takes %d segments a message",
            r->iface->conf.name, q->conf.name, q->conf.n_regions, r->device->verbs->device->name, most);
    if (q->conf.n_regions > 0) dqi_rdma_share_buffers(x);
    return dqi_rdma_cqs_open(x, diag);
}

static int open_rdma(dq_iface *i, dq_diag *diag) {
    const dq_socket_conf *conf = &i->conf.socket;
    int err = check_conf(i, diag);
    if (err == DQ_OK) err = dqi_cm_load(i->conf.name, diag);
    if (err != DQ_OK) return err;
    dqi_rdma *r = calloc(1, sizeof *r);
    if (!r) return no_memory(i, diag);
    dqi_conn_table_init(&r->conns, i, sizeof(dqi_rconn));
    i->engine = r;
    r->iface = i;
    pthread_mutex_init(&r->dialling, NULL);
    r->keeper = i->n_rx ? i->rx[0] : i->n_tx ? i->tx[0] : NULL;
    err = resolve(i, conf->local_host, conf->local_port, &r->local, diag);
    if (err == DQ_OK && conf->remote_host[0] && !conf->server) {
        err = resolve(i, conf->remote_host, conf->remote_port, &r->remote, diag);
        r->dials = true;
        dqi_redial_init(&r->own, i);
    }
    if (err == DQ_OK) err = dqi_rdma_bind(r, diag);
    if (err == DQ_OK) err = dqi_rdma_device_open(r, r->listener->verbs, r->listener->port_num, diag);
    for (uint32_t k = 0; k < i->n_rx && err == DQ_OK; k++)
        err = open_queue(r, i->rx[k], diag);
    for (uint32_t k = 0; k < i->n_tx && err == DQ_OK; k++)
        err = open_queue(r, i->tx[k], diag);
    if (err == DQ_OK)
        dqi_note(i->session, "interface %s: rdma on %s, port %u, MTU %u", i->conf.name,
                 r->device->verbs->device->name, r->device->port_num, 128u << r->device->port.active_mtu);
    return err;
}

// ---- stop and close ---------------------------------------------------------------------------------------

static void stop(dq_iface *i) {
    dqi_rdma *r = i->engine;
    if (!r) return;
    atomic_store(&r->stopped, true);
    dqi_rdma_wake(r);
}

static void close_queue(dq_queue *q) {
    dqi_rdma_queue *x = q->engine;
    q->engine = NULL;
    if (!x) return;
    dqi_rdma_cqs_close(&x->cqs);
    free(x);
}

static void free_conn(dqi_rconn *c) {
    if (!c) return;
    if (dqi_rconn_state(c) != DQI_CONN_FREE) dqi_rconn_stop_qp(c);
    dqi_rconn_destroy(c);
    free(c);
}

static void close_rdma(dq_iface *i) {
    dqi_rdma *r = i->engine;
    if (!r) return;
    atomic_store(&r->stopped, true);
    for (uint32_t k = 0; k < DQI_CONNS; k++)
        free_conn(dqi_rconn_at(r, k));
    for (uint32_t k = 0; k < i->n_rx; k++)
        close_queue(i->rx[k]);
    for (uint32_t k = 0; k < i->n_tx; k++)
        close_queue(i->tx[k]);
    dqi_rdma_revoke_all(r);
    if (r->listener) cm.destroy_id(r->listener);
    dqi_rdma_device_close(r);
    if (r->channel) dqi_rdma_refuse_rest(r);
    if (r->channel) cm.destroy_event_channel(r->channel);
    pthread_mutex_destroy(&r->conns.lock);
    pthread_mutex_destroy(&r->dialling);
    free(r);
    i->engine = NULL;
}

// ---- poll -------------------------------------------------------------------------------------------------

static int rx(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_rdma_queue *x = dqi_rdma_queue_of(q);
    dqi_rdma *r = x->r;
    bool stopped = dqi_rdma_stopped(r);
    if (q == r->keeper) {
        dqi_rdma_serve(r);
        if (r->next_ns < q->next_ns) q->next_ns = r->next_ns;
    }
    if (x->over) return 0;
    if (b) (*b)->nseg = q->conf.n_regions;
    if (!stopped) dqi_rdma_review(x);
    int n = dqi_rdma_take(x, b ? *b : NULL, room);
    if (x->starved && !stopped && x->look_ns < q->next_ns) q->next_ns = x->look_ns;
    return n;
}

static int arm(dq_queue *q, struct pollfd *fds, int max) {
    dqi_rdma_queue *x = dqi_rdma_queue_of(q);
    dqi_rdma *r = x->r;
    int n = 0;
    if (max < 3) return 0;
    // A completion that cannot be handled now stays: the holder of its connection's lock wakes this queue.
    if (x->cqs.at == x->cqs.n) {
        if (dqi_rdma_cqs_arm(&x->cqs))
            fds[n++] = (struct pollfd){.fd = x->cqs.channel->fd, .events = POLLIN};
        else
            q->next_ns = 0;
    }
    if (q != r->keeper) return n;
    fds[n++] = (struct pollfd){.fd = r->channel->fd, .events = POLLIN};
    fds[n++] = (struct pollfd){.fd = r->device->verbs->async_fd, .events = POLLIN};
    return n;
}

static void woken(dq_queue *q, const struct pollfd *fds, int n) {
    dqi_rdma_queue *x = dqi_rdma_queue_of(q);
    for (int k = 0; k < n; k++) {
        if (fds[k].revents == 0) continue;
        if (fds[k].fd == x->cqs.channel->fd)
            dqi_rdma_cqs_woken(&x->cqs);
        else
            x->r->looked_ns = 0; // the keeper checks at once
    }
}

static int take(dq_queue *q, dq_burst **b, uint32_t room) {
    (*b)->nseg = q->conf.n_regions;
    return dqi_rdma_take(dqi_rdma_queue_of(q), *b, room);
}

static int64_t flush(dq_queue *q) {
    int64_t n = q->bursts && atomic_load(&q->rx.consumed) ? dqi_conn_flush(q, take) : 0;
    q->rx.deliver_now = false;
    dqi_drop(&q->c, q->session->state < DQI_STOPPED ? DQ_DROP_FLUSHED : DQ_DROP_STOPPED, (uint64_t)n);
    return n;
}

static int multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag) {
    (void)source;
    return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: group %s can't be %s: multicast is for udp://",
                    i->conf.name, group, join ? "joined" : "left");
}

static const dqi_link_ops links = {.multicast = multicast};

static const dqi_conn_ops conns = {
    .open = dqi_rconn_open_op,
    .close = dqi_rconn_close_op,
    .read = dqi_rconn_read_op,
    .refuse = dqi_rdma_refuse,
};

static bool carries_imm(const dq_queue *q, uint32_t value) {
    (void)q;
    return value != DQI_RDMA_NOTE;
}

static const dqi_rma_ops rma = {
    .post = dqi_rdma_post,
    .refuses = dqi_rdma_refuses,
    .lend = dqi_rdma_lend,
    .revoke = dqi_rdma_revoke,
    .lent = dqi_rdma_lent,
    .declare = dqi_rdma_declare,
};

static const dqi_pair_ops pairs = {
    .open = dqi_rdma_pair_open,
    .join = dqi_rdma_pair_join,
    .read = dqi_rdma_pair_read,
};

static int change_region(const dq_iface *i, const dq_region *r, dq_diag *diag) {
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "interface %s: region%s%s: engine rdma registers the regions of the configuration with its "
        "device, until the session ends",
        i->conf.name, r ? " " : "", r ? r->conf.name : "s can't be added");
}

static const dqi_region_ops regions = {.change = change_region};

const dqi_engine_ops dqi_engine_rdma = {
    .name = "rdma",
    .payload = true,
    .waits = true,
    .no_regions = true,
    .leaves = true,
    .align = 64,
    .carries_imm = carries_imm,
    .open = open_rdma,
    .stop = stop,
    .close = close_rdma,
    .rx = rx,
    .tx = dqi_rdma_tx,
    .reap = dqi_rdma_reap,
    .drop_rest = dqi_rdma_drop_rest,
    .arm = arm,
    .woken = woken,
    .flush = flush,
    .link = &links,
    .conns = &conns,
    .rma = &rma,
    .pairs = &pairs,
    .regions = &regions,
};
