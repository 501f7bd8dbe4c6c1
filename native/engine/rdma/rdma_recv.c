// rdma_recv.c: posting of receive buffers, and delivery of messages.
//
// Each connection has its own posted buffers: a fair share of half the queue's region (consumers may hold the
// other half), and at first at most a quarter of the free ones, because idle connections keep theirs. A
// connection without a consumer has none: its peer's device retries.
#include "core/dq_burst.h"
#include "core/peers.h"
#include "engine/rdma/rdma_ops.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#define STARVED_NS 100000 // polling interval of a queue without free buffers
#define CHAIN      16     // buffers posted at once unless few are left
#define FIRST      64     // initial share of a connection: 1/FIRST of the queue's buffers
#define FEW        4
#define NOTES      4 // buffers for notes of a connection without a consumer

// ---- buffers ----------------------------------------------------------------------------------------------

static bool has(const dq_queue *q, const dq_region *r) {
    bool found = false;
    for (uint32_t s = 0; s < q->conf.n_regions && !found; s++)
        found = q->conf.regions[s] == r;
    return found;
}

// Returns the number of receive queues of the session that use the region.
static uint32_t users(const dq_region *r) {
    const dq_session *s = r->session;
    uint32_t n = 0;
    for (uint32_t k = 0; k < s->n_ifaces; k++)
        for (uint32_t j = 0; j < s->ifaces[k]->n_rx; j++)
            n += has(s->ifaces[k]->rx[j], r);
    return n > 0 ? n : 1;
}

static uint32_t most_buffers(const dq_queue *q) {
    uint32_t least = UINT32_MAX;
    for (uint32_t s = 0; s < q->conf.n_regions; s++) {
        uint32_t n = q->conf.regions[s]->conf.num_bufs / 2 / users(q->conf.regions[s]);
        if (n < least) least = n;
    }
    return least;
}

void dqi_rdma_share_buffers(dqi_rdma_queue *x) { x->buffers = most_buffers(x->queue); }

// Returns the limit of posted buffers of a connection. On reliable connections, whose peers retry without
// buffers, one share is left for a further connection.
static uint32_t share(const dqi_rdma_queue *x) {
    uint32_t conns = (atomic_load(&x->r->conns.n) + x->r->iface->n_rx - 1) / x->r->iface->n_rx;
    uint32_t parts = (conns > 0 ? conns : 1) + (dqi_rdma_transport(x->r) == DQ_TRANSPORT_RC);
    uint32_t n = x->buffers / parts;
    return n < 1 ? 1 : n > DQI_RDMA_DEPTH ? DQI_RDMA_DEPTH : n;
}

// Returns the limit before the first message. On reliable connections it is lower, so that idle ones do not
// occupy buffers that others need.
static uint32_t first_share(const dqi_rdma_queue *x, const dqi_rconn *c) {
    uint32_t n = x->buffers / FIRST > 0 ? x->buffers / FIRST : 1;
    bool begins = c->recv_head == 0 && dqi_rdma_transport(x->r) == DQ_TRANSPORT_RC;
    return begins && n < share(x) ? n : share(x);
}

// Returns how many buffers a connection with `has` posted may post now, given the free ones. All connections
// together are limited to half the region; beyond it a connection without any gets a few.
static uint32_t most_now(const dqi_rdma_queue *x, uint32_t has, uint32_t free) {
    uint32_t posted = atomic_load(&x->posted), spare = posted < x->buffers ? x->buffers - posted : 0;
    if (has == 0 && spare == 0) spare = free > x->buffers / 4 * 3 ? FEW : 1;
    if (has == 0 && free > 0) free = free / 4 + 1;
    return free < spare ? free : spare;
}

// Allocates at most n sets of buffers, one of each region; returns their number.
static uint32_t take_buffers(const dq_queue *q, dqi_rconn *c, uint32_t n) {
    uint32_t ids[DQI_RDMA_DEPTH], got = n;
    for (uint32_t s = 0; s < q->conf.n_regions; s++) {
        uint32_t k = dqi_bufs_some(q->conf.regions[s], ids, got);
        for (uint32_t i = k; i < got; i++) // frees incomplete sets
            for (uint32_t t = 0; t < s; t++)
                dqi_bufs_free(q->session, &c->recv[(c->recv_tail + i) % DQI_RDMA_DEPTH].ids[t], 1);
        for (uint32_t i = 0; i < k; i++)
            c->recv[(c->recv_tail + i) % DQI_RDMA_DEPTH].ids[s] = ids[i];
        got = k;
    }
    return got;
}

static void empty(dqi_rconn *c, dqi_rdma_recv *v) {
    if (!v->named && c->conn.rx) dqi_bufs_free(c->r->iface->session, v->ids, c->conn.rx->conf.n_regions);
    *v = (dqi_rdma_recv){0};
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
        v->named = false;
        v->state = DQI_RECV_POSTED;
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
        empty(c, &c->recv[(c->recv_tail + i) % DQI_RDMA_DEPTH]);
    c->recv_tail += done;
    c->n_posted += done;
    atomic_fetch_add(&dqi_rdma_queue_of(q)->posted, done);
}

static bool may_receive(const dqi_rconn *c) {
    int state = dqi_rconn_state(c);
    return state == DQI_CONN_CONNECTING || state == DQI_CONN_OPEN;
}

// Posts buffers up to the connection's share. Returns false if too few are free.
static bool top_up(const dqi_rdma_queue *x, dqi_rconn *c) {
    const dq_queue *q = x->queue;
    uint32_t want = first_share(x, c), free = UINT32_MAX;
    if (!may_receive(c)) return true;
    if (!dqi_queue_wants(q, dqi_rconn_id(c))) want = c->ours ? NOTES : 0;
    for (uint32_t s = 0; s < q->conf.n_regions; s++) {
        uint32_t level = dqi_region_level(q->conf.regions[s]);
        if (level < free) free = level;
    }
    bool enough = true;
    dqi_rconn_lock(c);
    uint32_t has = c->n_posted, room = DQI_RDMA_DEPTH - (c->recv_tail - c->recv_head);
    if (want > has + room) want = has + room;
    if (c->qp && !c->flushing && has < want) {
        uint32_t n = want - has, most = most_now(x, has, free);
        enough = most > 0 || has > 0;
        if (n > most) n = most;
        if (n > 0 && (n >= CHAIN || has <= want / 2)) post(x, c, n);
    }
    dqi_rconn_unlock(c);
    return enough;
}

void dqi_rconn_post_recv(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    atomic_fetch_add(&r->version, 1);
    if (!c->conn.rx || c->conn.rx->conf.n_regions == 0) return;
    if (c->conn.rx == r->keeper)
        top_up(dqi_rdma_queue_of(c->conn.rx), c);
    else
        dqi_queue_kick(c->conn.rx); // its own poller knows the consumers
}

void dqi_rdma_review(dqi_rdma_queue *x) {
    const dq_queue *q = x->queue;
    uint32_t version = atomic_load(&x->r->version);
    int64_t now = x->starved ? dq_now(q->session) : 0;
    if (version == x->conns_seen && q->rx.pipes_version == x->pipes_seen && (!x->starved || now < x->look_ns))
        return;
    x->conns_seen = version;
    x->pipes_seen = q->rx.pipes_version;
    x->starved = false;
    if (q->conf.n_regions == 0) return;
    for (uint32_t k = 0; k < DQI_CONNS && atomic_load(&x->r->conns.n) > 0; k++) {
        dqi_rconn *c = dqi_rconn_at(x->r, k);
        if (!c || c->conn.rx != q || dqi_rconn_state(c) == DQI_CONN_FREE) continue;
        if (!top_up(x, c)) x->starved = true;
        if (c->n_parked == 0 || c->ready) continue;
        c->ready = true;
        x->ready[x->ready_tail++ % DQI_CONNS] = dqi_rconn_id(c);
    }
    x->look_ns = dq_now(q->session) + STARVED_NS;
}

// ---- received messages ------------------------------------------------------------------------------------

// Returns the address of a message.
static uint8_t *recv_bytes(const dqi_rconn *c, const dqi_rdma_recv *v) {
    const dq_region *g = c->conn.rx->conf.regions[0];
    return g->base + dqi_buf_off(g, v->ids[0]);
}

// Derives the peer's address from its first datagram. Under the connection's lock.
static void meet(dqi_rconn *c, const dqi_rdma_recv *v, const vb_wc *wc) {
    const dq_region *g = c->conn.rx->conf.regions[0];
    vb_wc from = *wc;
    if (c->ah || !(wc->wc_flags & VB_WC_GRH)) return;
    c->qpn = wc->src_qp;
    c->qkey = DQI_RDMA_QKEY;
    c->ah = vb.create_ah_from_wc(c->r->device->pd, &from, g->base + dqi_buf_off(g, v->ids[0]) - DQI_RDMA_GRH,
                                 c->r->device->port_num);
    if (c->conn.tx) dqi_queue_kick(c->conn.tx);
}

// Appends the message of v to b, which has room.
static void append(dqi_rdma_queue *x, const dqi_rconn *c, dq_burst *b, const dqi_rdma_recv *v, int64_t now) {
    const dq_queue *q = x->queue;
    uint32_t at = b->n++, left = v->bytes;
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
    *dqi_buf_peer(q->conf.regions[0], v->ids[0]) = c->conn.peer;
    dqi_burst_set_imm(b, at, v->imm);
}

// ---- completions ------------------------------------------------------------------------------------------

// Converts a completion status to the nearest system error.
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

static void skip_empty(dqi_rconn *c) {
    while (c->recv_head != c->recv_tail && c->recv[c->recv_head % DQI_RDMA_DEPTH].state == DQI_RECV_EMPTY)
        c->recv_head++;
}

// Parks a received message in its connection until delivery.
static void park(dqi_rconn *c, dqi_rdma_recv *v, const vb_wc *wc) {
    bool message = wc->opcode == VB_WC_RECV;
    v->bytes = message ? wc->byte_len : 0; // the data of a WRITE is elsewhere
    v->imm = (dqi_imm){0, DQI_IMM_NONE};
    if (wc->wc_flags & VB_WC_WITH_IMM)
        v->imm = (dqi_imm){ntohl(wc->imm_data), message ? DQI_IMM_SEND : DQI_IMM_WRITE};
    if (c->ours && v->imm.of != DQI_IMM_NONE && v->imm.value == DQI_RDMA_NOTE) {
        dqi_rconn_take_note(c, recv_bytes(c, v), v->bytes);
        atomic_fetch_add(&c->r->version, 1); // a review posts another buffer; this may be the only one
        return empty(c, v);
    }
    if (dqi_rdma_is_ud(c->r)) {
        v->bytes = v->bytes > DQI_RDMA_GRH ? v->bytes - DQI_RDMA_GRH : 0;
        meet(c, v, wc);
    }
    v->state = DQI_RECV_PARKED;
    c->n_parked++;
    dqi_rdma_queue *x = dqi_rdma_queue_of(c->conn.rx);
    if (c->ready) return;
    c->ready = true;
    x->ready[x->ready_tail++ % DQI_CONNS] = dqi_rconn_id(c);
}

// Accounts a message received into an operation's memory as a packet of its queue in the ledger.
static void count_named(dq_queue *q, uint32_t bytes) {
    dqi_add_shared(&q->c.in, 1);
    dqi_add_shared(&q->c.in_bytes, bytes);
    dqi_add_shared(&q->c.out, 1);
    dqi_add_shared(&q->c.out_bytes, bytes);
}

// Handles a receive completion. Under the connection's lock.
static void recv_done(dqi_rconn *c, const vb_wc *wc) {
    dqi_rdma_recv *v = &c->recv[(uint32_t)wc->wr_id % DQI_RDMA_DEPTH];
    bool ok = wc->status == VB_WC_SUCCESS;
    if (v->state != DQI_RECV_POSTED) return; // already removed
    c->n_posted--;
    if (!v->named) atomic_fetch_sub(&dqi_rdma_queue_of(c->conn.rx)->posted, 1);
    atomic_fetch_add(&c->done, 1);
    if (ok && !v->named) {
        park(c, v, wc);
    } else {
        if (v->got) *v->got = ok ? wc->byte_len : 0;
        if (ok && c->conn.rx) count_named(c->conn.rx, wc->byte_len);
        if (ok)
            dq_op_ok(v->op, 1, wc->byte_len);
        else
            dq_op_lost(v->op, 1, vb_status_text(wc->status));
        empty(c, v);
    }
    skip_empty(c);
    if (ok) return;
    if (wc->status == VB_WC_WR_FLUSH_ERR)
        dqi_rconn_flushed(c);
    else
        dqi_rconn_break(c, status_of(wc));
}

void dqi_rconn_drop_recv(dqi_rconn *c) {
    for (; c->recv_head != c->recv_tail; c->recv_head++) {
        dqi_rdma_recv *v = &c->recv[c->recv_head % DQI_RDMA_DEPTH];
        if (v->op) dq_op_lost(v->op, 1, "its connection ended");
        if (v->state == DQI_RECV_POSTED && !v->named)
            atomic_fetch_sub(&dqi_rdma_queue_of(c->conn.rx)->posted, 1);
        if (v->state == DQI_RECV_PARKED && c->conn.rx) {
            dqi_add_shared(&c->conn.rx->c.in, 1);
            dqi_add_shared(&c->conn.rx->c.in_bytes, v->bytes);
            dqi_add_shared(
                &c->conn.rx->c.dropped[dqi_rdma_stopped(c->r) ? DQ_DROP_STOPPED : DQ_DROP_NO_CONSUMER], 1);
        }
        if (v->state != DQI_RECV_EMPTY) empty(c, v);
    }
    c->n_posted = c->n_parked = 0;
}

// Handles the next completion; false: another thread has locked its connection, and it stays.
static bool complete(dqi_rdma_queue *x, const vb_wc *wc) {
    dqi_rconn *c = dqi_rconn_find(x->r, (uint32_t)(wc->wr_id >> 32));
    if (c && !dqi_rconn_try_lock(c, x->queue)) return false;
    x->cqs.at++;
    if (!c) return true;
    if (c->qp && ((uint32_t)wc->wr_id & DQI_RDMA_SEND)) // else already removed
        dqi_rconn_sent_done(c, wc);
    else if (c->qp)
        recv_done(c, wc);
    dqi_rconn_unlock(c);
    return true;
}

uint32_t dqi_rdma_drain(dqi_rdma_queue *x) {
    uint32_t n = 0;
    vb_wc *wc;
    while (n < 4 * DQI_RDMA_POLL && (wc = dqi_rdma_cq_next(&x->cqs)) != NULL && complete(x, wc))
        n++;
    return n;
}

// ---- delivery ---------------------------------------------------------------------------------------------

// Moves at most room messages of c to b; returns their number.
static uint32_t deliver(dqi_rdma_queue *x, dqi_rconn *c, dq_burst *b, uint32_t room, int64_t now) {
    uint32_t n = 0;
    dqi_rconn_lock(c);
    for (uint32_t k = c->recv_head; k != c->recv_tail && n < room && c->n_parked > 0; k++) {
        dqi_rdma_recv *v = &c->recv[k % DQI_RDMA_DEPTH];
        if (v->state != DQI_RECV_PARKED) continue;
        append(x, c, b, v, now);
        *v = (dqi_rdma_recv){0};
        c->n_parked--;
        n++;
    }
    skip_empty(c);
    dqi_rconn_unlock(c);
    b->conn = dqi_rconn_id(c);
    if (dqi_rconn_state(c) == DQI_CONN_ENDING) x->queue->rx.deliver_now = true; // before its end is reported
    return n;
}

// Returns the next connection in turn with messages for a consumer; NULL: none.
static dqi_rconn *next_ready(dqi_rdma_queue *x) {
    while (x->ready_head != x->ready_tail) {
        dqi_rconn *c = dqi_rconn_find(x->r, x->ready[x->ready_head % DQI_CONNS]);
        bool begun = c && dqi_rconn_state(c) != DQI_CONN_CONNECTING; // its start is reported first
        if (begun && c->n_parked > 0 && dqi_queue_wants(x->queue, dqi_rconn_id(c))) return c;
        if (c) c->ready = false; // set again by a review
        x->ready_head++;
    }
    return NULL;
}

int dqi_rdma_take(dqi_rdma_queue *x, dq_burst *b, uint32_t room) {
    uint64_t bytes = b ? b->bytes : 0;
    uint32_t n = 0, looked = dqi_rdma_drain(x);
    int64_t now = dq_now(x->queue->session);
    dqi_rconn *c;
    while (n < room && (c = next_ready(x)) != NULL) {
        x->queue->rx.deliver_now = b->n > 0 && b->conn != dqi_rconn_id(c);
        if (x->queue->rx.deliver_now) break;
        n += deliver(x, c, b, room - n, now);
        if (!dqi_rdma_stopped(x->r) && !top_up(x, c)) x->starved = true;
    }
    x->over = dqi_rdma_stopped(x->r) && looked == 0 && x->cqs.at == x->cqs.n && n == 0 &&
              x->ready_head == x->ready_tail;
    if (n == 0) return 0;
    dqi_add_shared(&x->queue->c.in, n);
    dqi_add_shared(&x->queue->c.in_bytes, b->bytes - bytes);
    return (int)n;
}
