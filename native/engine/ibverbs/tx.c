// tx.c: transmit: packets of a burst are posted in one chain, by reference from any region of the arena, and
// are in flight until their completion. Each transmit queue has a queue pair, used only by its poller.
#include "core/dq_burst.h"
#include "core/err.h"
#include "engine/ibverbs/raw.h"
#include "packet/packet.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#define SIGNAL       32    // packets per requested completion, at most
#define SOON_NS      50000 // interval between polls for completions
#define INLINE_BYTES 64
#define END_ROUNDS   100 // of 1 ms: wait for sends in flight at the end

int vraw_tx_open(const dqi_port *p, dq_queue *q, dq_diag *diag) {
    const vraw_port *v = p->state;
    vraw_tx *t = calloc(1, sizeof *t);
    if (!t) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", p->iface->conf.name);
    q->engine = t;
    uint32_t most = (uint32_t)v->attr.max_sge;
    vb_qp_init_attr a = {.cap = {.max_send_wr = VRAW_SENDS,
                                 .max_recv_wr = 1,
                                 .max_send_sge = most < DQ_MAX_SEGS ? most : DQ_MAX_SEGS,
                                 .max_recv_sge = 1,
                                 .max_inline_data = INLINE_BYTES}};
    int err = vraw_cq_open(p, &t->cq, VRAW_SENDS);
    a.send_cq = a.recv_cq = t->cq.cq;
    if (err == 0) err = vraw_qp_open(p, &a, &t->qp);
    if (err != 0 && !t->qp && t->cq.cq) { // some devices do not support inline data
        a.cap.max_inline_data = 0;
        err = vraw_qp_open(p, &a, &t->qp);
    }
    t->inline_bytes = a.cap.max_inline_data;
    if (err == 0) return DQ_OK;
    return dqi_fail(diag, DQ_ESYS - err,
                    "interface %s: device %s: cannot create a raw packet queue pair: %s%s",
                    p->iface->conf.name, v->ctx->device->name, strerror(err),
                    err == EPERM ? "; hint: run as root, or with the capability CAP_NET_RAW" : "");
}

void vraw_tx_close(dq_queue *q) {
    vraw_tx *t = q->engine;
    q->engine = NULL;
    if (!t) return;
    if (t->qp) vb.destroy_qp(t->qp);
    vraw_cq_close(&t->cq);
    free(t);
}

// ---- completions ------------------------------------------------------------------------------------------

static void settle(dq_queue *q, vraw_tx *t, bool ok, dq_reason why) {
    vraw_sent *s = &t->sent[t->head++ % VRAW_SENDS];
    if (ok) {
        dqi_add(&q->c.out, 1);
        dqi_add(&q->c.out_bytes, s->bytes);
    } else {
        dqi_drop(&q->c, why, 1);
    }
    dqi_gauge_add(&t->inside, -1);
    if (s->b) dq_burst_unref(s->b);
    *s = (vraw_sent){0};
}

static void fail(dq_queue *q, vraw_tx *t, int status) {
    dqi_queue_error_add(q->errors, EIO, 1);
    if (t->broken) return;
    t->broken = true;
    dqi_note(q->session, "interface %s: queue %s stopped sending: %s", q->iface->conf.name, q->conf.name,
             vb_status_text(status));
}

// Handles completions; each completes all packets up to its own. Returns the number of packets.
static int complete(dq_queue *q, vraw_tx *t) {
    int done = 0;
    const vb_wc *wc;
    while ((wc = vraw_next(&t->cq)) != NULL) {
        uint32_t at = (uint32_t)wc->wr_id;
        for (; t->head != at; done++)
            settle(q, t, true, 0);
        bool ok = wc->status == VB_WC_SUCCESS;
        if (!ok) fail(q, t, wc->status);
        settle(q, t, ok, DQ_DROP_SEND_ERROR);
        t->cq.at++;
        done++;
    }
    return done;
}

static void look_again(dq_queue *q) {
    int64_t then = dq_now(q->session) + SOON_NS;
    if (then < q->next_ns) q->next_ns = then;
}

int vraw_reap(dq_queue *q) {
    vraw_tx *t = q->engine;
    if (t->head == t->tail) return 0;
    int done = complete(q, t);
    if (t->head != t->tail) look_again(q);
    return done;
}

// ---- posting ----------------------------------------------------------------------------------------------

// Writes the scatter list and length of packet i; returns its entries, or -1 with the drop reason in *why.
static int gather(const dqi_port *p, const dq_burst *b, uint32_t i, vb_sge *sge, uint32_t *bytes,
                  dq_reason *why) {
    const vraw_port *v = p->state;
    int n = 0;
    *bytes = 0;
    for (uint32_t s = 0; s < b->nseg; s++) {
        if (b->len[s][i] == 0) continue;
        uint32_t key = vraw_lkey(p, b->off[s][i]);
        *why = DQ_DROP_SEND_ERROR;
        if (key == 0) return -1;
        sge[n++] = (vb_sge){.addr = (uintptr_t)dqi_bytes(b, s, i), .length = b->len[s][i], .lkey = key};
        *bytes += b->len[s][i];
    }
    *why = *bytes < DQI_ETH_LEN ? DQ_DROP_SEND_ERROR : DQ_DROP_TOO_LONG;
    bool fits = *bytes >= DQI_ETH_LEN && *bytes <= v->frame && n <= v->attr.max_sge;
    return fits ? n : -1;
}

// Prepares as many packets of b as there is room for; *made of them are to be posted. Returns the number
// handled, including dropped ones.
static uint32_t describe(dq_queue *q, vraw_tx *t, dq_burst *b, uint32_t first, uint32_t n, uint32_t *made) {
    const dqi_port *p = dqi_port_of(q->iface);
    uint32_t room = VRAW_SENDS - (t->tail - t->head), k = 0, m = 0;
    vb_sge *sge = t->sge;
    for (; k < n && m < room; k++) {
        uint32_t bytes;
        dq_reason why;
        int parts = gather(p, b, first + k, sge, &bytes, &why);
        if (parts < 0) {
            dqi_drop(&q->c, why, 1);
            continue;
        }
        t->sent[(t->tail + m) % VRAW_SENDS] = (vraw_sent){.bytes = bytes};
        bool signaled = (t->tail + m) % SIGNAL == SIGNAL - 1;
        t->wr[m] = (vb_send_wr){.wr_id = t->tail + m,
                                .next = &t->wr[m + 1],
                                .sg_list = sge,
                                .num_sge = parts,
                                .opcode = VB_WR_SEND,
                                .send_flags = (signaled ? VB_SEND_SIGNALED : 0u) |
                                              (bytes <= t->inline_bytes ? VB_SEND_INLINE : 0u)};
        sge += parts;
        m++;
    }
    *made = m;
    return k;
}

int vraw_send(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    vraw_tx *t = q->engine;
    uint32_t made = 0;
    complete(q, t);
    if (t->broken) {
        dqi_drop(&q->c, DQ_DROP_SEND_ERROR, n);
        dqi_queue_error_add(q->errors, EIO, n);
        if (first + n == b->n) dq_burst_unref(b);
        return (int)n;
    }
    uint32_t k = describe(q, t, b, first, n, &made);
    if (made > 0) {
        vb_send_wr *bad = NULL;
        t->wr[made - 1].next = NULL;
        t->wr[made - 1].send_flags |= VB_SEND_SIGNALED;
        dq_burst_ref(b); // until the last of them is completed
        t->sent[(t->tail + made - 1) % VRAW_SENDS].b = b;
        int err = vb_post_send(t->qp, t->wr, &bad);
        uint32_t posted = err == 0 ? made : (uint32_t)(bad - t->wr);
        t->tail += made;
        dqi_gauge_add(&t->inside, made);
        if (posted < made) { // earlier ones complete as flushed, or are settled at the end
            t->broken = true;
            dqi_queue_error_add(q->errors, err, made - posted);
        }
    }
    complete(q, t);
    if (t->head != t->tail || k == 0) look_again(q);
    if (k > 0 && first + k == b->n) dq_burst_unref(b);
    return (int)k;
}

uint64_t vraw_held(dq_queue *q) {
    const vraw_tx *t = q->engine;
    return t ? (uint64_t)dqi_gauge_get(&t->inside) : 0;
}

void vraw_drop_rest(dq_queue *q) {
    vraw_tx *t = q->engine;
    vb_qp_attr a = {.qp_state = VB_QPS_ERR};
    if (!t) return;
    complete(q, t);
    if (t->head != t->tail && t->qp) vb.modify_qp(t->qp, &a, VB_QP_STATE);
    for (int round = 0; t->head != t->tail && round < END_ROUNDS; round++) {
        if (complete(q, t) == 0) usleep(1000);
    }
    while (t->head != t->tail)
        settle(q, t, false, DQ_DROP_STOPPED);
}
