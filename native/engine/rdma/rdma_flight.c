// rdma_flight.c: packets and operations of a connection that were passed to it and are not yet sent: posted
// work requests, up to their completion, and packets that wait for room in the send queue.
#include "core/dq_burst.h"
#include "core/err.h"
#include "engine/rdma/rdma_conn.h"

#include <errno.h>

#define WAITS_LEAST 64

// ---- work requests in flight ------------------------------------------------------------------------------

void dqi_rdma_settle(dqi_rdma_sent *w, bool ok, dq_reason why, const char *words) {
    if (w->op && ok) dq_op_ok(w->op, 1, w->bytes);
    if (w->op && !ok) dq_op_lost(w->op, 1, words);
    if (w->one_sided && ok) {
        dqi_add_shared(&w->queue->c.extra[DQ_EXTRA_ONE_SIDED], 1);
        dqi_add_shared(&w->queue->c.extra[DQ_EXTRA_ONE_SIDED_BYTES], w->bytes);
    }
    if (w->packet) {
        dq_queue *q = w->queue;
        if (ok) {
            dqi_add_shared(&q->c.out, 1);
            dqi_add_shared(&q->c.out_bytes, w->bytes);
        } else {
            dqi_add_shared(&q->c.dropped[why], 1);
        }
        dqi_gauge_add(&q->held, -1);
    }
    if (w->b) dq_burst_unref(w->b);
    *w = (dqi_rdma_sent){0};
}

void dqi_rconn_posted(dqi_rconn *c, uint32_t n) {
    c->sent_tail += n;
    if (atomic_fetch_add(&c->send_cq->sending, n) == 0) dqi_queue_kick(c->conn.tx ? c->conn.tx : c->conn.rx);
}

static void settle_first(dqi_rconn *c, bool ok, dq_reason why, const char *words) {
    dqi_rdma_settle(dqi_rconn_sent_at(c, c->sent_head++), ok, why, words);
    atomic_fetch_sub(&c->send_cq->sending, 1);
}

void dqi_rconn_drop_sent(dqi_rconn *c, dq_reason why, const char *words) {
    while (c->sent_head != c->sent_tail)
        settle_first(c, false, why, words);
}

static int error_of(int status) {
    switch (status) {
    case VB_WC_RETRY_EXC_ERR:
        return ETIMEDOUT;
    case VB_WC_RNR_RETRY_EXC_ERR:
        return ENOBUFS;
    case VB_WC_REM_ACCESS_ERR:
        return EACCES;
    case VB_WC_REM_INV_REQ_ERR:
        return EBADMSG;
    case VB_WC_LOC_PROT_ERR:
    case VB_WC_LOC_ACCESS_ERR:
        return EFAULT;
    case VB_WC_LOC_LEN_ERR:
        return EMSGSIZE;
    }
    return EREMOTEIO;
}

// Ends the connection on its first failure; the report contains the specification's text.
static void fail(dqi_rconn *c, const dqi_rdma_sent *w, int status) {
    const char *name = c->r->iface->conf.name;
    char peer[64];
    dqi_addr_text(&c->conn.peer, peer, sizeof peer);
    dqi_note(c->r->iface->session, "interface %s: the connection with %s ends: %s", name, peer,
             vb_status_text(status));
    if (w->queue) dqi_queue_error_add(w->queue->errors, error_of(status), 1);
    dqi_rconn_break(c, DQ_ESYS - error_of(status));
}

void dqi_rconn_sent_done(dqi_rconn *c, const vb_wc *wc) {
    uint32_t at = (uint32_t)wc->wr_id & ~DQI_RDMA_SEND, ahead = (at - c->sent_head) & ~DQI_RDMA_SEND;
    if (ahead >= dqi_rconn_sending(c)) return; // already removed
    for (; ahead > 0; ahead--)
        settle_first(c, true, 0, NULL);
    dqi_rdma_sent *w = dqi_rconn_sent_at(c, c->sent_head);
    bool ok = wc->status == VB_WC_SUCCESS, flushed = wc->status == VB_WC_WR_FLUSH_ERR;
    if (!ok && !flushed) fail(c, w, wc->status);
    dq_reason why = !flushed                 ? DQ_DROP_SEND_ERROR
                    : dqi_rdma_stopped(c->r) ? DQ_DROP_STOPPED
                                             : DQ_DROP_CONNECTION_LOST;
    settle_first(c, ok, why, vb_status_text(wc->status));
    atomic_fetch_add(&c->done, 1);
    if (flushed) dqi_rconn_flushed(c);
}

// ---- waiting packets --------------------------------------------------------------------------------------

static bool grow(dqi_rconn *c) {
    uint32_t n = c->wait_tail - c->wait_head, cap = c->waits_cap ? 2 * c->waits_cap : WAITS_LEAST;
    if (n < c->waits_cap) return true;
    dqi_rdma_wait *more = malloc(cap * sizeof *more);
    if (!more) return false;
    for (uint32_t k = 0; k < n; k++)
        more[k] = *dqi_rconn_wait_at(c, c->wait_head + k);
    free(c->waits);
    c->waits = more;
    c->waits_cap = cap;
    c->wait_head = 0;
    c->wait_tail = n;
    return true;
}

bool dqi_rconn_add_wait(dqi_rconn *c, dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    if (!grow(c)) return false;
    dq_burst_ref(b);
    *dqi_rconn_wait_at(c, c->wait_tail++) = (dqi_rdma_wait){.queue = q, .b = b, .first = first, .n = n};
    if (atomic_fetch_add(&c->waiting, n) == 0) atomic_fetch_add(&dqi_rdma_queue_of(c->conn.tx)->n_waiting, 1);
    return true;
}

void dqi_rconn_advance(dqi_rconn *c, uint32_t n) {
    dqi_rdma_wait *w = dqi_rconn_wait_at(c, c->wait_head);
    w->first += n;
    w->n -= n;
    if (atomic_fetch_sub(&c->waiting, n) == n) atomic_fetch_sub(&dqi_rdma_queue_of(c->conn.tx)->n_waiting, 1);
    if (w->n > 0) return;
    dq_burst_unref(w->b);
    c->wait_head++;
}

void dqi_rconn_drop_waits(dqi_rconn *c, dq_reason why) {
    while (c->wait_head != c->wait_tail) {
        dqi_rdma_wait *w = dqi_rconn_wait_at(c, c->wait_head);
        dqi_add_shared(&w->queue->c.dropped[why], w->n);
        dqi_gauge_add(&w->queue->held, -(int64_t)w->n);
        dqi_rconn_advance(c, w->n);
    }
}
