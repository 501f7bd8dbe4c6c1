// tx_actions.c: actions of transmit flows: for each frame of a burst from the ring, the first matching rule
// defines the headers to prepend, before the engine gets the burst. As this modifies packets and their
// headroom, a burst with other readers is copied first. A change of rules builds a new table; users of the
// old one hold it until their burst is done.
#include "core/burst.h"
#include "core/err.h"
#include "core/region.h"
#include "packet/match.h"
#include "packet/transform.h"
#include "pipeline/actions.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/tx_gpu.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RETRY_NS    5000 // after a failed allocation for a copy
#define CHUNK       64
#define LEAST_FRAME 60

struct dqi_tx_acts {
    _Atomic uint32_t refs;
    dqi_flow_table *tab; // queue ids are indices into acts
    uint32_t longest;
    uint32_t n;
    dqi_acts acts[];
};

// ---- control ----------------------------------------------------------------------------------------------

// Builds a table of the rules, each with its own index as queue.
static int make_table(const dq_rule *rules, uint32_t n, dqi_flow_table **out, dq_diag *diag) {
    dq_rule *own = calloc(n + 1, sizeof *own);
    if (!own) return dqi_fail(diag, DQ_ESYS - ENOMEM, "no memory for %u flows", n);
    for (uint32_t k = 0; k < n; k++) {
        own[k] = rules[k];
        own[k].n_queues = 1;
        own[k].rss = 0;
        own[k].queues[0] = (uint16_t)k;
    }
    int err = dqi_flow_table_build(own, n, out, diag);
    free(own);
    return err;
}

// Returns the maximum bytes of an untagged frame of i.
static uint32_t longest(const dq_iface *i) {
    uint32_t mtu = i->ops->link && i->ops->link->mtu ? i->ops->link->mtu(i) : 0;
    return mtu > 0 ? mtu + 14 : UINT32_MAX;
}

static int make_acts(dqi_tx_acts *t, const dq_rule *r, const dq_action *actions, dq_diag *diag) {
    dqi_acts *a = &t->acts[t->n++];
    int err = dqi_acts_make(actions + r->first_action, r->n_actions, a, diag);
    if (err != DQ_OK || a->grows + LEAST_FRAME <= t->longest) return err;
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "its actions add %u bytes, and the interface's MTU of %u leaves no room for a frame",
                    a->grows, t->longest - 14);
}

static int fill(dqi_tx_acts *t, const dq_iface *i, const dq_rule *rules, uint32_t n, const dq_action *actions,
                dq_diag *diag) {
    t->longest = longest(i);
    int err = DQ_OK;
    dq_diag why = {{0}};
    for (uint32_t k = 0; k < n && err == DQ_OK; k++)
        if ((err = make_acts(t, &rules[k], actions, &why)) != DQ_OK)
            dqi_fail(diag, err, "interface %s: transmit flow %u: %s", i->conf.name, rules[k].flow_id,
                     why.text);
    if (err != DQ_OK) return err;
    err = make_table(rules, n, &t->tab, &why);
    return err == DQ_OK ? DQ_OK
                        : dqi_fail(diag, err, "interface %s: transmit flows: %s", i->conf.name, why.text);
}

dqi_tx_acts *dqi_tx_acts_hold(dq_iface *i) {
    if (!atomic_load_explicit(&i->tx_acts, memory_order_relaxed)) return NULL;
    dqi_lock(&i->tx_lock);
    dqi_tx_acts *t = atomic_load_explicit(&i->tx_acts, memory_order_relaxed);
    if (t) atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    dqi_unlock(&i->tx_lock);
    return t;
}

void dqi_tx_acts_let_go(dqi_tx_acts *t) {
    if (!t || atomic_fetch_sub(&t->refs, 1) != 1) return;
    dqi_flow_table_free(t->tab);
    free(t);
}

static void exchange(dq_iface *i, dqi_tx_acts *t) {
    dqi_lock(&i->tx_lock);
    dqi_tx_acts *old = atomic_exchange(&i->tx_acts, t);
    dqi_unlock(&i->tx_lock);
    dqi_tx_acts_let_go(old);
}

int dq_iface_set_tx_rules(dq_iface *i, const dq_rule *rules, uint32_t n, const dq_action *actions,
                          dq_diag *diag) {
    if (i->ops->payload)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: engine %s sends no frames", i->conf.name,
                        i->ops->name);
    if (n >= DQI_NO_QUEUE)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "interface %s: there is room for %d transmit flows",
                        i->conf.name, DQI_NO_QUEUE - 1);
    int possible = n > 0 ? dqi_actions_possible(i, DQ_TX, diag) : DQ_OK;
    if (possible != DQ_OK) return possible;
    dqi_tx_acts *t = n > 0 ? calloc(1, sizeof *t + n * sizeof *t->acts) : NULL;
    if (n > 0 && !t)
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory for its flows", i->conf.name);
    if (t) atomic_init(&t->refs, 1);
    int err = t ? fill(t, i, rules, n, actions, diag) : DQ_OK;
    if (err == DQ_OK)
        exchange(i, t);
    else
        dqi_tx_acts_let_go(t);
    return err;
}

void dqi_tx_actions_free(dq_iface *i) { exchange(i, NULL); }

// ---- bursts with other readers ----------------------------------------------------------------------------

// Copies packet i of b to packet k of c. Returns false if a segment is longer than c's buffers.
static bool copy_packet(dq_burst *c, uint32_t k, dq_burst *b, uint32_t i) {
    for (uint32_t s = 0; s < c->nseg; s++) {
        c->len[s][k] = b->len[s][i];
        if (c->len[s][k] > c->queue->conf.regions[s]->conf.buf_size) return false;
    }
    for (uint32_t s = 0; s < c->nseg; s++) {
        if (b->device_only & ~c->device_only & 1u << s)
            dqi_tx_bring(c->queue, b, s, i, dqi_bytes(c, s, k));
        else
            memcpy(dqi_bytes(c, s, k), dqi_bytes(b, s, i), c->len[s][k]);
    }
    c->flow[k] = b->flow[i];
    c->ts[k] = b->ts[i];
    if (b->timed) c->tx_time[k] = b->tx_time[i];
    dqi_burst_copy_imms(c, k, b, i, 1);
    return true;
}

static void count_drop(dq_queue *q, dq_reason why, uint32_t n) {
    dqi_drop(&q->c, why, n);
    dqi_gauge_add(&q->held, -(int64_t)n);
}

// Copies packets of b, from `first` on, to c.
static void copy_part(dq_queue *q, dq_burst *c, dq_burst *b, uint32_t first) {
    uint32_t n = c->n, kept = 0;
    c->timed = b->timed;
    c->conn = b->conn;
    for (uint32_t i = first; i < first + n; i++)
        kept += copy_packet(c, kept, b, i);
    dqi_add(&q->c.extra[DQ_EXTRA_COPIED], kept);
    if (kept == n) return;
    count_drop(q, DQ_DROP_TOO_LONG, n - kept);
    dq_burst_truncate(c, kept);
}

// Whether headers may be prepended to b's packets in place; buffers of regions without a queue have no
// headroom.
static bool has_headroom(const dq_burst *b) {
    const dq_region *r = dqi_buf_region(b->session, b->bufs[0][0]);
    return !r || r->headroom > 0;
}

dq_burst *dqi_tx_own(dq_queue *q, dq_burst *b) {
    bool far = (b->device_only & ~q->device_only) != 0; // in a GPU's memory
    if (!q->tx.shared && !far && dqi_burst_detachable(b) && has_headroom(b)) return b;
    dq_burst *c;
    q->tx.shared = b;
    uint32_t n = b->n - q->tx.shared_pos < q->conf.batch_size ? b->n - q->tx.shared_pos : q->conf.batch_size;
    if (dqi_tx_take_burst(q, n, &c) != DQ_OK && dqi_tx_take_burst(q, n = 1, &c) != DQ_OK) {
        q->next_ns = q->tx.now_ns + RETRY_NS;
        return NULL;
    }
    copy_part(q, c, b, q->tx.shared_pos);
    c->bytes = dqi_burst_sum(c, 0, c->n);
    q->tx.shared_pos += n;
    if (q->tx.shared_pos == b->n) {
        q->tx.shared = NULL;
        q->tx.shared_pos = 0;
        dq_burst_unref(b);
    }
    if (far) dqi_tx_bringing(q, c);
    return far ? dqi_tx_brought(q) : c;
}

// ---- packets ----------------------------------------------------------------------------------------------

// Applies the actions to packet i, with the headroom of its buffer.
static int change(const dqi_tx_acts *t, dq_burst *b, uint32_t i, const dqi_acts *acts) {
    const dq_region *r = dqi_buf_region(b->session, b->bufs[0][i]);
    uint8_t *p = dqi_bytes(b, 0, i);
    uint32_t rest = dqi_packet_len(b, i) - b->len[0][i];
    uint64_t start = dqi_buf_off(r, b->bufs[0][i]) - r->headroom;
    dqi_frame f = {.p = p, .len = b->len[0][i], .rest = rest, .room = (uint32_t)(b->off[0][i] - start)};
    int why = dqi_acts_apply(acts, &f, t->longest);
    b->off[0][i] += (uint64_t)(f.p - p);
    b->len[0][i] = f.len;
    b->grown |= f.len > r->conf.buf_size;
    return why;
}

uint32_t dqi_tx_actions(dq_queue *q, const dqi_tx_acts *t, dq_burst *b) {
    uint32_t flow[CHUNK], kept = 0, n = b->n, changed = 0;
    uint16_t which[CHUNK];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t at = i % CHUNK, m = n - i < CHUNK ? n - i : CHUNK;
        if (at == 0)
            dqi_flow_table_classify(t->tab, dqi_burst_base(b), b->off[0] + i, b->len[0] + i, m, flow, which);
        bool hit = which[at] != DQI_NO_QUEUE && b->bufs[0][i] != DQI_NO_BUF;
        int why = hit ? change(t, b, i, &t->acts[which[at]]) : DQI_DONE;
        if (why != DQI_DONE) {
            count_drop(q, (dq_reason)why, 1);
            continue;
        }
        changed += hit;
        if (kept != i) dqi_burst_swap(b, kept, i);
        kept++;
    }
    dqi_add(&q->c.extra[DQ_EXTRA_TRANSFORMED], changed);
    b->bytes = dqi_burst_sum(b, 0, n);
    if (kept < n) dq_burst_truncate(b, kept);
    return n - kept;
}
