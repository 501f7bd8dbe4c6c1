// rdma_send.c: transmit path of messages.
//
// Packets of a burst are posted in one chain, one message each, and stay in flight, held by their queue,
// until the device reports their delivery to the peer. Packets that find their connection's send queue full
// wait in the connection, so that others of the queue proceed. A connection is refused (dq_tx_send) while
// more than its share of packets wait.
#include "core/dq_burst.h"
#include "core/err.h"
#include "engine/rdma/rdma_conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SHARE 4 // a connection's share is this fraction (1/SHARE) of the queue's buffers

// ---- posting ----------------------------------------------------------------------------------------------

// Writes the scatter list of packet i; returns its length, or -1 if the packet cannot be sent.
static int gather(const dqi_rconn *c, const dq_burst *b, uint32_t i, vb_sge *sge, uint64_t *bytes) {
    int n = 0;
    *bytes = 0;
    for (uint32_t s = 0; s < b->nseg; s++) {
        if (b->len[s][i] == 0) continue;
        uint32_t key = dqi_rdma_lkey(c->r, b->off[s][i]);
        if (key == 0) return -1;
        sge[n++] = (vb_sge){.addr = (uintptr_t)dqi_bytes(b, s, i), .length = b->len[s][i], .lkey = key};
        *bytes += b->len[s][i];
    }
    const vb_port_attr *port = &c->r->device->port;
    uint64_t most = dqi_rdma_is_ud(c->r) ? 128u << port->active_mtu : port->max_msg_sz;
    return *bytes <= most && n <= (int)c->r->device->attr.max_sge ? n : -1;
}

// Whether a peer of this engine would take the packet for a note.
static bool is_note(const dqi_rconn *c, dqi_imm imm) {
    return c->ours && imm.of != DQI_IMM_NONE && imm.value == DQI_RDMA_NOTE;
}

// Posts packets of b as far as the send queue has room; returns the number handled, including dropped ones.
// Under the connection's lock.
static uint32_t post(dqi_rdma_queue *x, dq_queue *q, dqi_rconn *c, dq_burst *b, uint32_t first, uint32_t n) {
    bool ud = dqi_rdma_is_ud(c->r);
    uint32_t room = ud && !c->ah ? 0 : DQI_RDMA_DEPTH - dqi_rconn_sending(c), k = 0, made = 0;
    vb_send_wr *bad;
    vb_sge *sge = x->sge;
    for (; k < n && made < room; k++) {
        uint64_t bytes;
        int parts = gather(c, b, first + k, sge, &bytes);
        const dqi_imm imm = dqi_burst_imm(b, first + k);
        if (parts < 0 || is_note(c, imm)) {
            dqi_add_shared(&q->c.dropped[parts < 0 ? DQ_DROP_TOO_LONG : DQ_DROP_SEND_ERROR], 1);
            dqi_gauge_add(&q->held, -1);
            continue;
        }
        uint32_t at = c->sent_tail + made;
        *dqi_rconn_sent_at(c, at) = (dqi_rdma_sent){.queue = q, .bytes = bytes, .packet = true};
        x->wr[made] = (vb_send_wr){.wr_id = (uint64_t)dqi_rconn_id(c) << 32 | DQI_RDMA_SEND | at,
                                   .next = &x->wr[made + 1],
                                   .sg_list = sge,
                                   .num_sge = parts,
                                   .opcode = imm.of ? VB_WR_SEND_WITH_IMM : VB_WR_SEND,
                                   .imm_data = htonl(imm.value),
                                   .send_flags = bytes <= c->inline_bytes ? VB_SEND_INLINE : 0};
        if (ud) {
            x->wr[made].wr.ud.ah = c->ah;
            x->wr[made].wr.ud.remote_qpn = c->qpn;
            x->wr[made].wr.ud.remote_qkey = c->qkey;
        }
        if (++c->unsignalled >= DQI_RDMA_SIGNAL) {
            x->wr[made].send_flags |= VB_SEND_SIGNALED;
            c->unsignalled = 0;
        }
        sge += parts;
        made++;
    }
    if (made == 0) return k;
    x->wr[made - 1].next = NULL;
    x->wr[made - 1].send_flags |= VB_SEND_SIGNALED;
    c->unsignalled = 0;
    dq_burst_ref(b); // until the last of them is completed
    dqi_rconn_sent_at(c, c->sent_tail + made - 1)->b = b;
    int err = vb_post_send(c->qp, x->wr, &bad);
    uint32_t posted = err == 0 ? made : (uint32_t)(bad - x->wr);
    for (uint32_t i = posted; i < made; i++) // behind those posted, in order: they are flushed
        dqi_rdma_settle(dqi_rconn_sent_at(c, c->sent_tail + i), false, DQ_DROP_SEND_ERROR, strerror(err));
    dqi_rconn_posted(c, posted);
    if (posted == made) return k;
    dqi_queue_error_add(q->errors, err, made - posted);
    dqi_rconn_break(c, DQ_ESYS - err);
    return k;
}

// ---- waiting packets --------------------------------------------------------------------------------------

// Posts waiting packets; returns their number.
static int serve_waits(dqi_rdma_queue *x, dqi_rconn *c) {
    int work = 0;
    dqi_rconn_lock(c);
    while (c->qp && c->wait_head != c->wait_tail) {
        dqi_rdma_wait *w = dqi_rconn_wait_at(c, c->wait_head);
        uint32_t k = post(x, w->queue, c, w->b, w->first, w->n);
        if (k == 0) break;
        dqi_rconn_advance(c, k);
        work += (int)k;
    }
    dqi_rconn_unlock(c);
    return work;
}

static int serve_all_waits(dqi_rdma_queue *x) {
    int work = 0;
    for (uint32_t k = 0; k < DQI_CONNS && atomic_load(&x->n_waiting) > 0; k++) {
        dqi_rconn *c = dqi_rconn_at(x->r, k);
        if (c && c->conn.tx == x->queue && atomic_load(&c->waiting) > 0) work += serve_waits(x, c);
    }
    return work;
}

// ---- queue ------------------------------------------------------------------------------------------------

// Returns the destination of b, in any state, or NULL.
static dqi_rconn *target(const dq_queue *q, const dq_burst *b) {
    const dqi_rdma *r = dqi_rdma_queue_of(q)->r;
    uint32_t id = dqi_conn_named(q, b);
    return dqi_rconn_find(r, id ? id : atomic_load(&r->conns.newest));
}

// Returns true if a connection is being set up for which unaddressed packets can wait.
static bool one_comes(const dqi_rdma *r) {
    bool comes = r->dials && !r->own.retired && !atomic_load(&r->own.conn);
    for (uint32_t k = 0; k < DQI_CONNS && !comes && atomic_load(&r->conns.n) > 0; k++) {
        const dqi_rconn *c = dqi_rconn_at(r, k);
        comes = c && !r->iface->conf.socket.server && dqi_rconn_state(c) == DQI_CONN_CONNECTING;
    }
    return comes && !dqi_rdma_stopped(r);
}

static int drop_no_peer(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    dqi_drop(&q->c, DQ_DROP_NO_PEER, n);
    if (first + n == b->n) dq_burst_unref(b);
    return (int)n;
}

int dqi_rdma_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    dqi_rdma_queue *x = dqi_rdma_queue_of(q);
    dqi_rconn *c = target(q, b);
    bool connects = c && dqi_rconn_state(c) == DQI_CONN_CONNECTING;
    if (!c && b->conn == 0 && one_comes(x->r)) return 0;
    if (connects && !atomic_load(&c->conn.closing) && !dqi_rdma_stopped(x->r)) return 0;
    if (!c || !dqi_conn_takes(&c->conn)) return drop_no_peer(q, b, first, n);
    dqi_rconn_lock(c);
    if (!c->qp || c->flushing || atomic_load(&c->conn.broken)) {
        dqi_rconn_unlock(c);
        return drop_no_peer(q, b, first, n);
    }
    dqi_gauge_add(&q->held, n); // the core subtracts them, as the engine takes them
    uint32_t k = c->wait_head != c->wait_tail ? 0 : post(x, q, c, b, first, n);
    bool waits = k < n && !q->tx.made && dqi_rconn_add_wait(c, q, b, first + k, n - k);
    dqi_rconn_unlock(c);
    if (waits) k = n;
    dqi_gauge_add(&q->held, -(int64_t)(n - k));
    if (k > 0 && first + k == b->n) dq_burst_unref(b);
    return (int)k;
}

bool dqi_rdma_refuse(dq_queue *q, const dq_burst *b) {
    dqi_rconn *c = target(q, b);
    uint32_t bufs = q->conf.n_regions ? q->conf.regions[0]->conf.num_bufs : UINT32_MAX;
    if (!c || atomic_load(&c->waiting) <= bufs / SHARE) return false;
    dqi_add_shared(&q->c.extra[DQ_EXTRA_REFUSED], b->n);
    return true;
}

int dqi_rdma_reap(dq_queue *q) {
    dqi_rdma_queue *x = dqi_rdma_queue_of(q);
    dqi_rdma *r = x->r;
    dqi_conn_settle(q);
    if (q == r->keeper) dqi_rdma_serve(r);
    int work = (int)dqi_rdma_drain(x);
    if (atomic_load(&x->n_waiting) > 0) work += serve_all_waits(x);
    if (q == r->keeper && r->next_ns < q->next_ns) q->next_ns = r->next_ns;
    return work;
}

// Returns the next connection of q, from index *k on, with packets to send; NULL: none.
static dqi_rconn *next_sending(const dqi_rdma_queue *x, uint32_t *k) {
    for (; *k < DQI_CONNS && atomic_load(&x->r->conns.n) > 0; (*k)++) {
        dqi_rconn *c = dqi_rconn_at(x->r, *k);
        bool mine = c && c->conn.tx == x->queue && dqi_rconn_state(c) != DQI_CONN_FREE;
        if (mine && (dqi_rconn_sending(c) > 0 || atomic_load(&c->waiting) > 0)) return c;
    }
    return NULL;
}

void dqi_rdma_drop_rest(dq_queue *q) {
    dqi_rdma_queue *x = dqi_rdma_queue_of(q);
    uint32_t k = 0;
    dqi_rconn *c;
    if (!x) return;
    int64_t until = dq_now(q->session) + DQI_RDMA_END_NS;
    for (; (c = next_sending(x, &k)) != NULL; k++) {
        dqi_rconn_lock(c);
        dqi_rconn_drop_waits(c, DQ_DROP_STOPPED);
        dqi_rconn_unlock(c);
        c->flushing = true;
        dqi_rconn_stop_qp(c);
    }
    while (k = 0, (c = next_sending(x, &k)) != NULL) {
        if (dqi_rdma_reap(q) > 0) continue;
        if (dq_now(q->session) < until)
            usleep(100);
        else
            dqi_rconn_destroy(c);
    }
}
