// flows.c: see flows.h.
#include "flows.h"
#include "responder.h"

#include <errno.h>
#include <string.h>

struct dqi_flow_rules {
    dqi_ftab *tab;
    _Atomic uint32_t refs;
};

void dqi_flows_let_go(dqi_flow_rules *r) {
    if (!r || atomic_fetch_sub(&r->refs, 1) != 1) return;
    dqi_ftab_free(r->tab);
    free(r);
}

dqi_flow_rules *dqi_flows_hold(dqi_flows *f) {
    dqi_lock(&f->lock);
    dqi_flow_rules *r = f->rules;
    if (r) atomic_fetch_add(&r->refs, 1);
    dqi_unlock(&f->lock);
    return r;
}

dq_queue *dqi_rx_queue(const dq_iface *i, uint32_t id) {
    for (uint32_t k = 0; k < i->n_rx; k++)
        if (i->rx[k]->conf.id == id) return i->rx[k];
    return NULL;
}

static int check_queues(const dq_iface *i, const dq_rule *rules, uint32_t n, dq_diag *diag) {
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t k = 0; k < rules[r].n_queues && k < DQ_RULE_MAX_QUEUES; k++)
            if (!dqi_rx_queue(i, rules[r].queues[k]))
                return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: flow %u: no receive queue %u",
                                i->conf.name, rules[r].flow_id, rules[r].queues[k]);
    return DQ_OK;
}

const dq_rule *dqi_flows_rule(const dqi_flow_rules *r, uint64_t order) {
    return dqi_ftab_rule(r->tab, order);
}

// Takes the reference over.
static void exchange(dqi_flows *f, dqi_flow_rules *r) {
    dqi_lock(&f->lock);
    dqi_flow_rules *old = f->rules;
    f->rules = r;
    dqi_unlock(&f->lock);
    dqi_flows_let_go(old);
}

void dqi_flows_put_back(dqi_flows *f, dqi_flow_rules *r) {
    if (r) atomic_fetch_add(&r->refs, 1);
    exchange(f, r);
}

// Puts tab, which it takes over, in the place of the table that there is.
static int put(dqi_flows *f, const dq_iface *i, dqi_ftab *tab, dq_diag *diag) {
    dqi_flow_rules *r = calloc(1, sizeof *r);
    if (!r) {
        dqi_ftab_free(tab);
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory for its flows", i->conf.name);
    }
    r->tab = tab;
    atomic_init(&r->refs, 1);
    exchange(f, r);
    return DQ_OK;
}

int dqi_flows_change(dqi_flows *f, const dq_iface *i, const uint64_t *gone, uint32_t n_gone,
                     const dq_rule *add, uint32_t n_add, dq_diag *diag) {
    if (!f->rules && n_gone > 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: it has no flows", i->conf.name);
    dqi_ftab *tab = NULL;
    int err = check_queues(i, add, n_add, diag);
    if (err == DQ_OK)
        err = f->rules ? dqi_ftab_change(f->rules->tab, gone, n_gone, add, n_add, &tab, diag)
                       : dqi_ftab_build(add, n_add, &tab, diag);
    return err == DQ_OK ? put(f, i, tab, diag) : err;
}

void dqi_flows_classify(dqi_flows *f, const dq_iface *i, const uint8_t *base, const uint64_t *off,
                        const uint32_t *len, uint32_t n, uint32_t *flow, uint16_t *queue) {
    uint16_t other = i->n_rx > 0 ? (uint16_t)i->rx[0]->conf.id : DQI_NO_QUEUE;
    dqi_responder *own = dqi_responder_of(i);
    if (own) dqi_responder_look(own, base, off, len, n);
    dqi_flow_rules *r = dqi_flows_hold(f);
    if (!r) {
        memset(flow, 0, n * sizeof *flow);
        for (uint32_t k = 0; k < n; k++)
            queue[k] = other;
        return;
    }
    dqi_ftab_classify(r->tab, base, off, len, n, flow, queue);
    dqi_flows_let_go(r);
    for (uint32_t k = 0; k < n && !i->conf.flow_isolation; k++)
        queue[k] = queue[k] == DQI_NO_QUEUE ? other : queue[k];
}

void dqi_flows_free(dqi_flows *f) {
    dqi_flows_let_go(f->rules);
    f->rules = NULL;
}
