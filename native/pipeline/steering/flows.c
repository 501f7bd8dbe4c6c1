#include "pipeline/steering/flows.h"
#include "core/err.h"
#include "packet/layers.h"
#include "pipeline/actions.h"
#include "pipeline/queue.h"
#include "pipeline/responder.h"

#include <errno.h>
#include <string.h>

struct dqi_flow_rules {
    dqi_flow_table *tab; // rules that leave frames unchanged
    dqi_layers *layers;  // decapsulating rules, matched first; NULL: none
    _Atomic uint32_t refs;
};

void dqi_flows_let_go(dqi_flow_rules *r) {
    if (!r || atomic_fetch_sub(&r->refs, 1) != 1) return;
    dqi_flow_table_free(r->tab);
    dqi_layers_let_go(r->layers);
    free(r);
}

dqi_flow_rules *dqi_flows_hold(dqi_flows *f) {
    dqi_lock(&f->lock);
    dqi_flow_rules *r = f->rules;
    if (r) atomic_fetch_add(&r->refs, 1);
    dqi_unlock(&f->lock);
    return r;
}

// The reference to *mine prevents reuse of its address.
dqi_flow_rules *dqi_flows_look(dqi_flows *f, dqi_flow_rules **mine) {
    if (__atomic_load_n(&f->rules, __ATOMIC_RELAXED) == *mine) return *mine;
    dqi_flows_let_go(*mine);
    return *mine = dqi_flows_hold(f);
}

dq_queue *dqi_rx_queue(const dq_iface *i, uint32_t id) {
    for (uint32_t k = 0; k < i->n_rx; k++)
        if (!dqi_queue_gone(i->rx[k]) && i->rx[k]->conf.id == id) return i->rx[k];
    return NULL;
}

static int check_queues(const dq_iface *i, const dq_rule *rules, uint32_t n, dq_diag *diag) {
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t k = 0; k < rules[r].n_queues && k < DQ_RULE_MAX_QUEUES; k++) {
            const dq_queue *q = dqi_rx_queue(i, rules[r].queues[k]);
            if (!q || !dqi_queue_alive(q))
                return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: flow %u: no receive queue %u",
                                i->conf.name, rules[r].flow_id, rules[r].queues[k]);
        }
    return DQ_OK;
}

const dq_rule *dqi_flows_rule(const dqi_flow_rules *r, uint64_t order) {
    const dqi_layered *l = dqi_layers_find(r->layers, order);
    return l ? &l->rule : dqi_flow_table_rule(r->tab, order);
}

// Consumes the reference to r.
static void exchange(dqi_flows *f, dqi_flow_rules *r) {
    dqi_lock(&f->lock);
    dqi_flow_rules *old = f->rules;
    __atomic_store_n(&f->rules, r, __ATOMIC_RELAXED);
    dqi_unlock(&f->lock);
    dqi_flows_let_go(old);
}

void dqi_flows_put_back(dqi_flows *f, dqi_flow_rules *r) {
    if (r) atomic_fetch_add(&r->refs, 1);
    exchange(f, r);
}

// A change, split: decapsulating rules have a table of their own.
typedef struct change {
    uint64_t *gone;
    dq_rule *add;
    dqi_layered *layered; // all resulting decapsulating rules
    uint32_t n_gone, n_add, n_layered;
} change;

static int no_memory(const dq_iface *i, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory for its flows", i->conf.name);
}

static bool is_among(uint64_t order, const uint64_t *orders, uint32_t n) {
    uint32_t k = 0;
    while (k < n && orders[k] != order)
        k++;
    return k < n;
}

static bool changes_layers(const dqi_layers *old, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                           uint32_t n_add) {
    for (uint32_t k = 0; k < n_gone; k++)
        if (dqi_layers_find(old, gone[k])) return true;
    for (uint32_t k = 0; k < n_add; k++)
        if (add[k].n_actions > 0) return true;
    return false;
}

// Returns false without memory.
static bool part(const dq_iface *i, const dqi_layers *old, const uint64_t *gone, uint32_t n_gone,
                 const dq_rule *add, uint32_t n_add, change *c) {
    uint32_t n_old;
    const dqi_layered *was = dqi_layers_rules(old, &n_old);
    c->gone = calloc((size_t)n_gone + 1, sizeof *c->gone);
    c->add = calloc((size_t)n_add + 1, sizeof *c->add);
    c->layered = calloc((size_t)n_old + n_add + 1, sizeof *c->layered);
    if (!c->gone || !c->add || !c->layered) return false;
    for (uint32_t k = 0; k < n_gone; k++)
        if (!dqi_layers_find(old, gone[k])) c->gone[c->n_gone++] = gone[k];
    for (uint32_t k = 0; k < n_old; k++)
        if (!is_among(was[k].rule.order, gone, n_gone)) c->layered[c->n_layered++] = was[k];
    for (uint32_t k = 0; k < n_add; k++) {
        const dqi_acts *acts = add[k].n_actions > 0 ? dqi_rx_actions_of(i, add[k].order) : NULL;
        if (acts)
            c->layered[c->n_layered++] = (dqi_layered){add[k], *acts};
        else
            c->add[c->n_add++] = add[k];
    }
    return true;
}

static int make_tab(const dqi_flow_rules *old, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                    uint32_t n_add, dqi_flow_table **out, dq_diag *diag) {
    return old ? dqi_flow_table_change(old->tab, gone, n_gone, add, n_add, out, diag)
               : dqi_flow_table_build(add, n_add, out, diag);
}

// Fills r with the result of applying the change to old (NULL: empty).
static int make_rules(const dqi_flow_rules *old, const dq_iface *i, const uint64_t *gone, uint32_t n_gone,
                      const dq_rule *add, uint32_t n_add, dqi_flow_rules *r, dq_diag *diag) {
    dqi_layers *layers = old ? old->layers : NULL;
    if (!changes_layers(layers, gone, n_gone, add, n_add)) {
        r->layers = dqi_layers_hold(layers);
        return make_tab(old, gone, n_gone, add, n_add, &r->tab, diag);
    }
    change c = {0};
    int err = part(i, layers, gone, n_gone, add, n_add, &c) ? DQ_OK : no_memory(i, diag);
    if (err == DQ_OK) err = make_tab(old, c.gone, c.n_gone, c.add, c.n_add, &r->tab, diag);
    if (err == DQ_OK && c.n_layered > 0) err = dqi_layers_build(c.layered, c.n_layered, &r->layers, diag);
    free(c.gone);
    free(c.add);
    free(c.layered);
    return err;
}

int dqi_flows_change(dqi_flows *f, const dq_iface *i, const uint64_t *gone, uint32_t n_gone,
                     const dq_rule *add, uint32_t n_add, dq_diag *diag) {
    if (!f->rules && n_gone > 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: it has no flows", i->conf.name);
    int err = check_queues(i, add, n_add, diag);
    if (err != DQ_OK) return err;
    dqi_flow_rules *r = calloc(1, sizeof *r);
    if (!r) return no_memory(i, diag);
    atomic_init(&r->refs, 1);
    err = make_rules(f->rules, i, gone, n_gone, add, n_add, r, diag);
    if (err == DQ_OK)
        exchange(f, r);
    else
        dqi_flows_let_go(r);
    return err;
}

void dqi_flows_classify(dqi_flows *f, const dq_iface *i, dqi_flow_rules **mine, const uint8_t *base,
                        const uint64_t *off, const uint32_t *len, uint32_t n, uint32_t *flow,
                        uint16_t *queue) {
    const dq_queue *unmatched = dqi_first_rx(i);
    uint16_t other = unmatched ? (uint16_t)unmatched->conf.id : DQI_NO_QUEUE;
    dqi_responder *own = dqi_responder_of(i);
    if (own) dqi_responder_look(own, base, off, len, n);
    const dqi_flow_rules *r = dqi_flows_look(f, mine);
    if (!r) {
        memset(flow, 0, n * sizeof *flow);
        for (uint32_t k = 0; k < n; k++)
            queue[k] = i->conf.flow_isolation ? DQI_NO_QUEUE : other;
        return;
    }
    dqi_flow_table_classify(r->tab, base, off, len, n, flow, queue);
    if (r->layers) dqi_layers_classify(r->layers, base, off, len, n, flow, queue);
    for (uint32_t k = 0; k < n && !i->conf.flow_isolation; k++)
        queue[k] = queue[k] == DQI_NO_QUEUE ? other : queue[k];
}

void dqi_flows_free(dqi_flows *f) {
    dqi_flows_let_go(f->rules);
    f->rules = NULL;
}
