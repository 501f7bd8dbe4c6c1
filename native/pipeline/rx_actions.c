// rx_actions.c: actions of receive flows. An engine marks packets with flow ids; this code looks up the
// actions by id and applies them in place, before the packets become visible to stages.
//
// The control thread keeps a list of flows with actions. Each change builds a new table from it and publishes
// it to the queues.
#include "core/burst.h"
#include "core/err.h"
#include "core/region.h"
#include "packet/transform.h"
#include "pipeline/actions.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LATE_NS 1000000000 // how long packets of a deleted flow may arrive

typedef struct flow_acts {
    _Atomic uint32_t refs; // held by the list and by tables
    uint64_t order;
    uint32_t flow_id;
    bool gone;
    int64_t gone_ns; // session time
    dqi_acts acts;
} flow_acts;

typedef struct table_slot {
    uint32_t flow_id; // 0: empty
    flow_acts *flow;
} table_slot;

// Open-addressing hash table, at most half full.
typedef struct acts_table {
    _Atomic uint32_t refs;
    uint32_t mask;
    table_slot slots[];
} acts_table;

struct dqi_rx_acts {
    dqi_spin lock; // protects the pointer to the table
    acts_table *table;
    flow_acts **list;
    uint32_t n;
    uint32_t lead; // maximum of acts.shrinks; never decreases, as packets received with it may be in flight
};

// ---- control ----------------------------------------------------------------------------------------------

static uint32_t slot_of(uint32_t flow_id, uint32_t mask) { return (flow_id * 0x9e3779b1u >> 8) & mask; }

static void flow_drop(flow_acts *f) {
    if (atomic_fetch_sub(&f->refs, 1) == 1) free(f);
}

static void table_drop(acts_table *t) {
    if (!t || atomic_fetch_sub(&t->refs, 1) != 1) return;
    for (uint32_t at = 0; at <= t->mask; at++)
        if (t->slots[at].flow_id != 0) flow_drop(t->slots[at].flow);
    free(t);
}

static acts_table *table_get(dqi_rx_acts *a) {
    dqi_lock(&a->lock);
    acts_table *t = a->table;
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    dqi_unlock(&a->lock);
    return t;
}

static acts_table *make_table(flow_acts *const *list, uint32_t n) {
    uint32_t size = 4;
    while (size < 2 * n)
        size *= 2;
    acts_table *t = calloc(1, sizeof *t + size * sizeof *t->slots);
    if (!t) return NULL;
    t->mask = size - 1;
    atomic_init(&t->refs, 1);
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = slot_of(list[k]->flow_id, t->mask);
        while (t->slots[at].flow_id != 0)
            at = (at + 1) & t->mask;
        t->slots[at] = (table_slot){list[k]->flow_id, list[k]};
        atomic_fetch_add(&list[k]->refs, 1);
    }
    return t;
}

// Publishes a table of the list to the queues. Returns false without memory; nothing has changed then.
static bool publish(dq_iface *i, flow_acts *const *list, uint32_t n) {
    dqi_rx_acts *a = i->rx_acts;
    acts_table *t = make_table(list, n), *old = a->table;
    if (!t) return false;
    for (uint32_t k = 0; k < n; k++)
        if (list[k]->acts.shrinks > a->lead) a->lead = list[k]->acts.shrinks;
    if (a->lead > DQ_HEADROOM) a->lead = DQ_HEADROOM;
    dqi_lock(&a->lock);
    a->table = t;
    dqi_unlock(&a->lock);
    for (uint32_t k = 0; k < i->n_rx; k++) // after the table: queues read it once they have a lead
        atomic_store_explicit(&i->rx[k]->rx.lead, a->lead, memory_order_release);
    table_drop(old);
    return true;
}

static int no_memory(const dq_iface *i, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory for its flows' actions", i->conf.name);
}

static int make_flow(const dq_rule *r, const dq_action *actions, flow_acts **out, dq_diag *diag) {
    dq_diag why = {{0}};
    flow_acts *f = calloc(1, sizeof *f);
    if (!f) return dqi_fail(diag, DQ_ESYS - ENOMEM, "flow %u: no memory", r->flow_id);
    atomic_init(&f->refs, 1);
    f->order = r->order;
    f->flow_id = r->flow_id;
    int err = dqi_acts_make(actions + r->first_action, r->n_actions, &f->acts, &why);
    if (err == DQ_OK && r->flow_id == 0)
        err = dqi_fail(&why, DQ_INVALID_PARAMETER, "a flow with actions needs an id other than 0");
    *out = f;
    if (err == DQ_OK) return DQ_OK;
    free(f);
    return dqi_fail(diag, err, "flow %u: %s", r->flow_id, why.text);
}

// Whether no packet in flight can still need f, or one of the rules reuses its id.
static bool is_over(const dq_iface *i, const flow_acts *f, const dq_rule *rules, uint32_t n) {
    if (!f->gone) return false;
    for (uint32_t k = 0; k < n; k++)
        if (rules[k].n_actions > 0 && rules[k].flow_id == f->flow_id) return true;
    return dq_now(i->session) - f->gone_ns > LATE_NS;
}

// Appends the rules with actions to the list; stops at the first error.
static int add_new(flow_acts **list, uint32_t *n, const dq_rule *rules, uint32_t n_rules,
                   const dq_action *actions, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t k = 0; err == DQ_OK && k < n_rules; k++) {
        if (rules[k].n_actions == 0) continue;
        err = make_flow(&rules[k], actions, &list[*n], diag);
        *n += err == DQ_OK;
    }
    return err;
}

// Replaces a's list by `list`, which begins with some of a's flows in their order, and drops the others.
static void exchange(dqi_rx_acts *a, flow_acts **list, uint32_t n) {
    for (uint32_t k = 0, kept = 0; k < a->n; k++)
        if (list[kept] == a->list[k])
            kept++;
        else
            flow_drop(a->list[k]);
    free(a->list);
    a->list = list;
    a->n = n;
}

int dqi_actions_possible(const dq_iface *i, dq_dir dir, dq_diag *diag) {
    for (uint32_t k = 0; k < (dir == DQ_RX ? i->n_rx : i->n_tx); k++) {
        const dq_queue *q = dir == DQ_RX ? i->rx[k] : i->tx[k];
        for (uint32_t s = 0; s < q->conf.n_regions; s++)
            if (!q->conf.regions[s]->cpu)
                return dqi_fail(
                    diag, DQ_NOT_SUPPORTED,
                    "interface %s: flows with actions change packets by the CPU, which can't read region "
                    "%s of queue %s: hint: regions of kind host or huge",
                    i->conf.name, q->conf.regions[s]->conf.name, q->conf.name);
    }
    return DQ_OK;
}

int dqi_rx_actions_add(dq_iface *i, const dq_rule *rules, uint32_t n, const dq_action *actions,
                       dq_diag *diag) {
    uint32_t count = 0, m = 0;
    for (uint32_t k = 0; k < n; k++)
        count += rules[k].n_actions > 0;
    if (count == 0) return DQ_OK;
    int possible = dqi_actions_possible(i, DQ_RX, diag);
    if (possible != DQ_OK) return possible;
    dqi_rx_acts *a = i->rx_acts ? i->rx_acts : (i->rx_acts = calloc(1, sizeof *a));
    flow_acts **list = a ? calloc(a->n + count, sizeof *list) : NULL;
    if (!list) return no_memory(i, diag);
    for (uint32_t k = 0; k < a->n; k++)
        if (!is_over(i, a->list[k], rules, n)) list[m++] = a->list[k];
    uint32_t first = m;
    int err = add_new(list, &m, rules, n, actions, diag);
    if (err == DQ_OK && !publish(i, list, m)) err = no_memory(i, diag);
    if (err == DQ_OK) {
        exchange(a, list, m);
        return DQ_OK;
    }
    while (m > first)
        flow_drop(list[--m]);
    free(list);
    return err;
}

static void mark_gone(dq_iface *i, uint64_t order) {
    dqi_rx_acts *a = i->rx_acts;
    for (uint32_t k = 0; a && k < a->n; k++) {
        if (a->list[k]->order != order || a->list[k]->gone) continue;
        a->list[k]->gone = true;
        a->list[k]->gone_ns = dq_now(i->session);
    }
}

void dqi_rx_actions_take_back(dq_iface *i, const dq_rule *rules, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        if (rules[k].n_actions > 0) mark_gone(i, rules[k].order);
}

void dqi_rx_actions_retire(dq_iface *i, const uint64_t *gone, uint32_t n) {
    for (uint32_t k = 0; k < n; k++)
        mark_gone(i, gone[k]);
}

const dqi_acts *dqi_rx_actions_of(const dq_iface *i, uint64_t order) {
    const dqi_rx_acts *a = i->rx_acts;
    for (uint32_t k = 0; a && k < a->n; k++)
        if (a->list[k]->order == order && !a->list[k]->gone) return &a->list[k]->acts;
    return NULL;
}

uint32_t dqi_rx_actions_lead(const dq_iface *i) { return i->rx_acts ? i->rx_acts->lead : 0; }

void dqi_rx_actions_free(dq_iface *i) {
    dqi_rx_acts *a = i->rx_acts;
    if (!a) return;
    for (uint32_t k = 0; k < a->n; k++)
        flow_drop(a->list[k]);
    free(a->list);
    table_drop(a->table);
    free(a);
}

// ---- packets ----------------------------------------------------------------------------------------------

static const dqi_acts *find(const acts_table *t, uint32_t flow_id) {
    uint32_t at = slot_of(flow_id, t->mask);
    for (; t->slots[at].flow_id != 0; at = (at + 1) & t->mask)
        if (t->slots[at].flow_id == flow_id) return &t->slots[at].flow->acts;
    return NULL;
}

// Shortens the remaining segments of packet i to `rest` bytes in all.
static void cut_rest(dq_burst *b, uint32_t i, uint32_t rest) {
    for (uint32_t s = 1; s < b->nseg; s++) {
        if (b->len[s][i] > rest) b->len[s][i] = rest;
        rest -= b->len[s][i];
    }
}

static int change(dq_burst *b, uint32_t i, const dqi_acts *acts) {
    uint8_t *p = dqi_bytes(b, 0, i);
    uint32_t rest = dqi_packet_len(b, i) - b->len[0][i];
    dqi_frame f = {.p = p, .len = b->len[0][i], .rest = rest};
    int why = dqi_acts_apply(acts, &f, UINT32_MAX);
    b->off[0][i] += (uint64_t)(f.p - p);
    b->len[0][i] = f.len;
    if (f.rest < rest) cut_rest(b, i, f.rest);
    return why;
}

// Handles a received segment that is longer than its buffer because an action might have shortened it: the
// excess moves to the front of the next segment, as with header split.
static int settle(const dq_queue *q, dq_burst *b, uint32_t i) {
    for (uint32_t s = 0; s < b->nseg; s++) {
        uint32_t size = q->conf.regions[s]->conf.buf_size;
        if (b->len[s][i] <= size) continue;
        if (s + 1 == b->nseg) return DQ_DROP_TOO_LONG;
        uint32_t more = b->len[s][i] - size;
        uint64_t start = dqi_buf_off(q->conf.regions[s + 1], b->bufs[s + 1][i]) - DQ_HEADROOM;
        if (b->off[s + 1][i] < start + more) return DQ_DROP_TOO_LONG;
        b->off[s + 1][i] -= more;
        b->len[s + 1][i] += more;
        b->len[s][i] = size;
        memcpy(dqi_bytes(b, s + 1, i), dqi_bytes(b, s, i) + size, more);
    }
    return DQI_DONE;
}

// Applies the actions to packet i unless the device has done so, and clears the flags in its off.
static int act(dq_burst *b, uint32_t i, const dqi_acts *acts, bool *changed) {
    const uint64_t flags = b->off[0][i] & DQI_OFF_FLAGS;
    b->off[0][i] &= ~DQI_OFF_FLAGS;
    *changed = flags || acts;
    if (flags) return flags & DQI_OFF_BROKEN ? DQ_DROP_BAD_TUNNEL : DQI_DONE;
    return acts ? change(b, i, acts) : DQI_DONE;
}

uint32_t dqi_rx_actions(dq_queue *q, dq_burst *b, uint32_t first) {
    acts_table *t = table_get(q->iface->rx_acts);
    const dqi_acts *acts = NULL;
    uint32_t kept = first, n = b->n, changed = 0, last = 0;
    for (uint32_t i = first; i < n; i++) {
        if (b->flow[i] != last) acts = find(t, last = b->flow[i]);
        bool did;
        int why = act(b, i, acts, &did);
        if (why == DQI_DONE) why = settle(q, b, i);
        if (why != DQI_DONE) {
            dqi_drop(&q->c, (dq_reason)why, 1);
            continue;
        }
        changed += did;
        if (kept != i) dqi_burst_swap(b, kept, i);
        kept++;
    }
    table_drop(t);
    dqi_add(&q->c.extra[DQ_EXTRA_TRANSFORMED], changed);
    b->bytes = dqi_burst_sum(b, 0, n);
    if (kept < n) dq_burst_truncate(b, kept);
    return n - kept;
}
