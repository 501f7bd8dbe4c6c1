// rdma_recv.c: buffers for messages, and the messages.
//
// Each connection has buffers of its own posted: a fair share of half the queue's region, so that consumers
// may hold the other half, and at first no more than a quarter of what is free, as those who say nothing hold
// what they have. One that nobody takes messages of has none: its peer's device waits and asks again.
#include "core/dq_burst.h"
#include "core/peers.h"
#include "engine/rdma/rdma.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define STARVED_NS 100000 // until a queue without free buffers looks again
#define CHAIN      16     // buffers posted together, where there is no hurry

// ---- buffers ----------------------------------------------------------------------------------------------

static uint32_t smallest_region(const dq_queue *q) {
    uint32_t n = UINT32_MAX;
    for (uint32_t s = 0; s < q->conf.n_regions; s++)
        if (q->conf.regions[s]->conf.num_bufs < n) n = q->conf.regions[s]->conf.num_bufs;
    return n;
}

// How many buffers a connection of the queue may have posted.
static uint32_t share(const dqi_rdma_queue *x) {
    uint32_t conns = (atomic_load(&x->r->conns.n) + x->r->iface->n_rx - 1) / x->r->iface->n_rx;
    uint32_t n = smallest_region(x->queue) / 2 / (conns > 0 ? conns : 1);
    return n < 1 ? 1 : n > DQI_RDMA_DEPTH ? DQI_RDMA_DEPTH : n;
}

// Takes at most n sets of buffers, one of each region; how many.
static uint32_t take_buffers(const dq_queue *q, dqi_rconn *c, uint32_t n) {
    uint32_t ids[DQI_RDMA_DEPTH], got = n;
    for (uint32_t s = 0; s < q->conf.n_regions; s++) {
        uint32_t k = dqi_bufs_some(q->conf.regions[s], ids, got);
        for (uint32_t i = k; i < got; i++) // the others' have no use without it
            for (uint32_t t = 0; t < s; t++)
                dqi_bufs_free(q->session, &c->recv[(c->recv_tail + i) % DQI_RDMA_DEPTH].ids[t], 1);
        for (uint32_t i = 0; i < k; i++)
            c->recv[(c->recv_tail + i) % DQI_RDMA_DEPTH].ids[s] = ids[i];
        got = k;
    }
    return got;
}

// Posts n sets of buffers in one chain. Under the connection's lock.
static void post(const dqi_rdma_queue *x, dqi_rconn *c, uint32_t n) {
    const dq_queue *q = x->queue;
    vb_recv_wr wr[DQI_RDMA_DEPTH], *bad;
    vb_sge sge[DQI_RDMA_DEPTH * DQ_MAX_SEGS];
    uint32_t got = take_buffers(q, c, n), nseg = q->conf.n_regions;
    if (got == 0) return;
    for (uint32_t i = 0; i < got; i++) {
        dqi_rdma_recv *v = &c->recv[(c->recv_tail + i) % DQI_RDMA_DEPTH];
        v->op = NULL;
        for (uint32_t s = 0; s < nseg; s++) {
            const dq_region *g = q->conf.regions[s];
            uint64_t off = dqi_buf_off(g, v->ids[s]);
            uint32_t before = s == 0 && dqi_rdma_is_ud(x->r) ? DQI_RDMA_GRH : 0; // into the headroom
            sge[i * nseg + s] = (vb_sge){.addr = (uintptr_t)(g->base + off) - before,
                                         .length = g->conf.buf_size + before,
                                         .lkey = dqi_rdma_lkey(x->r, off)};
        }
        wr[i] = (vb_recv_wr){.wr_id = (uint64_t)dqi_rconn_id(c) << 32 | (c->recv_tail + i),
                             .next = i + 1 < got ? &wr[i + 1] : NULL,
                             .sg_list = &sge[i * nseg],
                             .num_sge = (int)nseg};
    }
    uint32_t done = vb_post_recv(c->qp, wr, &bad) == 0 ? got : (uint32_t)(bad - wr);
    for (uint32_t i = done; i < got; i++)
        dqi_bufs_free(q->session, c->recv[(c->recv_tail + i) % DQI_RDMA_DEPTH].ids, nseg);
    c->recv_tail += done;
}

// Brings a connection's buffers to its share. False: there are too few free ones.
static bool top_up(const dqi_rdma_queue *x, dqi_rconn *c) {
    uint32_t want = share(x), free = UINT32_MAX;
    for (uint32_t s = 0; s < x->queue->conf.n_regions; s++) {
        uint32_t level = dqi_region_level(x->queue->conf.regions[s]);
        if (level < free) free = level;
    }
    bool enough = true;
    dqi_lock(&c->lock);
    uint32_t has = dqi_rconn_posted(c);
    if (c->qp && !c->flushing && has < want) {
        uint32_t n = want - has, most = has == 0 ? free / 4 + (free > 0) : free;
        enough = most > 0 || has > 0;
        if (n > most) n = most;
        if (n > 0 && (n >= CHAIN || has <= want / 2)) post(x, c, n);
    }
    dqi_unlock(&c->lock);
    return enough;
}

void dqi_rconn_post_recv(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    atomic_fetch_add(&r->version, 1);
    if (!c->rx || c->rx->conf.n_regions == 0) return;
    if (c->rx == r->keeper && dqi_queue_wants(c->rx, dqi_rconn_id(c)))
        top_up(dqi_rdma_queue_of(c->rx), c);
    else
        dqi_queue_kick(c->rx); // its own poller knows who listens
}

static bool may_receive(const dqi_rconn *c) {
    int state = dqi_rconn_state(c);
    return state == DQI_CONN_CONNECTING || state == DQI_CONN_OPEN;
}

void dqi_rdma_review(dqi_rdma_queue *x) {
    const dq_queue *q = x->queue;
    uint32_t version = atomic_load(&x->r->version);
    int64_t now = x->starved ? dq_now(q->session) : 0;
    if (version == x->conns_seen && q->pipes_version == x->pipes_seen && (!x->starved || now < x->look_ns))
        return;
    x->conns_seen = version;
    x->pipes_seen = q->pipes_version;
    x->starved = false;
    if (q->conf.n_regions == 0) return;
    for (uint32_t k = 0; k < DQI_CONNS && atomic_load(&x->r->conns.n) > 0; k++) {
        dqi_rconn *c = dqi_rconn_at(x->r, k);
        if (!c || c->rx != q || !may_receive(c) || !dqi_queue_wants(q, dqi_rconn_id(c))) continue;
        if (!top_up(x, c)) x->starved = true;
    }
    x->look_ns = dq_now(q->session) + STARVED_NS;
}

// ---- messages ---------------------------------------------------------------------------------------------

// The first datagram of a peer says where it is. Under the connection's lock.
static void meet(dqi_rconn *c, const dqi_rdma_recv *v, const vb_wc *wc) {
    const dq_region *g = c->rx->conf.regions[0];
    vb_wc from = *wc;
    if (c->ah || !(wc->wc_flags & VB_WC_GRH)) return;
    c->qpn = wc->src_qp;
    c->qkey = DQI_RDMA_QKEY;
    c->ah = vb.create_ah_from_wc(c->r->device->pd, &from, g->base + dqi_buf_off(g, v->ids[0]) - DQI_RDMA_GRH,
                                 c->r->device->port_num);
    if (c->tx) dqi_queue_kick(c->tx);
}

// Puts a message into b, whose columns have a place for it.
static void append(dqi_rdma_queue *x, const dqi_rconn *c, dq_burst *b, const dqi_rdma_recv *v,
                   const vb_wc *wc, int64_t now) {
    const dq_queue *q = x->queue;
    uint32_t at = b->n++, left = wc->opcode == VB_WC_RECV ? wc->byte_len : 0;
    if (dqi_rdma_is_ud(x->r)) left = left > DQI_RDMA_GRH ? left - DQI_RDMA_GRH : 0;
    b->bytes += left;
    for (uint32_t s = 0; s < q->conf.n_regions; s++) {
        const dq_region *g = q->conf.regions[s];
        uint32_t len = left < g->conf.buf_size ? left : g->conf.buf_size;
        b->off[s][at] = dqi_buf_off(g, v->ids[s]);
        b->len[s][at] = len;
        b->bufs[s][at] = v->ids[s];
        left -= len;
    }
    b->n_bufs = b->n;
    b->ts[at] = now;
    b->flow[at] = 0;
    *dqi_buf_peer(q->conf.regions[0], v->ids[0]) = c->peer;
    dqi_imm *imm = dqi_buf_imm(q->conf.regions[0], v->ids[0]);
    if (imm) *imm = (dqi_imm){.there = (wc->wc_flags & VB_WC_WITH_IMM) != 0, .value = ntohl(wc->imm_data)};
}

static void drop(dqi_rdma_queue *x, const dqi_rdma_recv *v, const vb_wc *wc, dq_reason why) {
    dqi_add(&x->queue->c.in, 1);
    dqi_add(&x->queue->c.in_bytes, wc->byte_len);
    dqi_drop(&x->queue->c, why, 1);
    dqi_bufs_free(x->queue->session, v->ids, x->queue->conf.n_regions);
}

// What an end means as a status: the system error that is nearest.
static int status_of(const vb_wc *wc) {
    switch (wc->status) {
    case VB_WC_LOC_LEN_ERR:
        return DQ_ESYS - EMSGSIZE;
    case VB_WC_LOC_PROT_ERR:
    case VB_WC_LOC_ACCESS_ERR:
        return DQ_ESYS - EFAULT;
    }
    return DQ_ESYS - EREMOTEIO;
}

void dqi_rconn_recv_done(dqi_rconn *c, const vb_wc *wc) {
    dqi_rdma_recv *v = &c->recv[(uint32_t)wc->wr_id % DQI_RDMA_DEPTH];
    bool ok = wc->status == VB_WC_SUCCESS;
    c->recv_head++;
    atomic_fetch_add(&c->done, 1);
    if (v->op && ok)
        dq_op_ok(v->op, 1, wc->byte_len);
    else if (v->op)
        dq_op_lost(v->op, 1, vb_status_text(wc->status));
    else if (!ok && c->rx)
        dqi_bufs_free(c->r->iface->session, v->ids, c->rx->conf.n_regions);
    if (ok || wc->status == VB_WC_WR_FLUSH_ERR) {
        if (!ok) atomic_store(&c->r->attention, true);
        return;
    }
    dqi_rconn_break(c, status_of(wc));
}

typedef enum verdict { TAKEN, PASSED, WAITS } verdict;

// One completion: a message for b, or something else, or not now.
static verdict look(dqi_rdma_queue *x, dqi_rconn *c, dq_burst *b, uint32_t room, const vb_wc *wc,
                    int64_t now) {
    uint32_t id = dqi_rconn_id(c);
    int state = dqi_rconn_state(c);
    dqi_rdma_recv *v = &c->recv[(uint32_t)wc->wr_id % DQI_RDMA_DEPTH];
    if (v->op) {
        dqi_rconn_recv_done(c, wc);
        return PASSED;
    }
    bool other = b && b->n > 0 && b->conn != id, ok = wc->status == VB_WC_SUCCESS;
    if (!ok && b && b->n > 0 && !other) { // what it has brought goes before its end
        x->queue->deliver_now = true;
        return WAITS;
    }
    if (!ok) {
        dqi_rconn_recv_done(c, wc);
        return PASSED;
    }
    if (state == DQI_CONN_CONNECTING) return WAITS; // its beginning is told first
    bool wanted = room > 0 && dqi_queue_wants(x->queue, id);
    if (!wanted && state == DQI_CONN_OPEN && room == 0) return WAITS;
    if (!wanted) {
        drop(x, v, wc, DQ_DROP_NO_CONSUMER);
        dqi_rconn_recv_done(c, wc);
        return PASSED;
    }
    if (other) x->queue->deliver_now = true;
    if (other) return WAITS;
    b->conn = id;
    if (dqi_rdma_is_ud(x->r)) meet(c, v, wc);
    append(x, c, b, v, wc, now);
    dqi_rconn_recv_done(c, wc);
    return TAKEN;
}

int dqi_rdma_take(dqi_rdma_queue *x, dq_burst *b, uint32_t room) {
    dqi_rconn *last = NULL;
    uint64_t bytes = b ? b->bytes : 0;
    int64_t now = 0;
    uint32_t n = 0;
    vb_wc *wc;
    for (uint32_t looked = 0; looked < 4 * DQI_RDMA_POLL && (room == 0 || n < room); looked++) {
        if (!(wc = dqi_rdma_cq_next(&x->cq))) break;
        if (now == 0) now = dq_now(x->queue->session);
        dqi_rconn *c = dqi_rconn_find(x->r, (uint32_t)(wc->wr_id >> 32));
        verdict v = PASSED;
        if (c) {
            dqi_lock(&c->lock);
            if ((uint32_t)wc->wr_id & DQI_RDMA_SEND)
                dqi_rconn_sent_done(c, wc);
            else if (c->recv_head != c->recv_tail)
                v = look(x, c, b, room - n, wc, now);
            dqi_unlock(&c->lock);
        }
        if (v == WAITS) break;
        x->cq.at++;
        n += v == TAKEN;
        if (last && last != c && !dqi_rdma_stopped(x->r) && !top_up(x, last)) x->starved = true;
        last = c && may_receive(c) ? c : NULL;
    }
    bool more = last && !dqi_rdma_stopped(x->r) && dqi_queue_wants(x->queue, dqi_rconn_id(last));
    if (more && !top_up(x, last)) x->starved = true;
    if (n == 0) return 0;
    dqi_add(&x->queue->c.in, n);
    dqi_add(&x->queue->c.in_bytes, b->bytes - bytes);
    return (int)n;
}
