// filter.c: passes packets accepted by a match, a compiled condition or a cBPF program, as a selection.
#include "core/burst.h"
#include "core/err.h"
#include "packet/match.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"
#include "pipeline/stages/dq_stages.h"
#include "program/cbpf.h"
#include "program/expr.h"

#include <errno.h>
#include <string.h>

typedef struct filter {
    int kind;
    dqi_flow_table *tab; // of one rule
    dq_prog *prog;
    dq_cbpf_insn *cbpf;
    uint32_t n_cbpf;
} filter;

static uint32_t choose_cbpf(const filter *f, dq_burst *b, uint32_t *idx) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        if (dqi_cbpf_run(f->cbpf, f->n_cbpf, dqi_seen_bytes(b, i), b->len[0][i] + dqi_cut_of(b, i),
                         dqi_seen_len(b)[i]) != 0)
            idx[n++] = i;
    return n;
}

// Writes the indices of the packets of b that pass; returns their number. Reads the first segment.
static uint32_t choose(const filter *f, dq_burst *b, uint32_t *idx) {
    if (f->kind == DQ_FILTER_MATCH)
        return dqi_flow_table_select(f->tab, dqi_burst_base(b), dqi_seen(b), dqi_seen_len(b), b->n, idx);
    if (f->kind == DQ_FILTER_CBPF) return choose_cbpf(f, b, idx);
    return dq_burst_select(b, f->prog, idx);
}

static int filter_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    const filter *f = st->impl;
    uint32_t *idx = node->scratch;
    uint32_t n = choose(f, in, idx);
    dqi_drop(&node->c, DQ_DROP_FILTERED, in->n - n);
    if (n == in->n) {
        *out = in;
    } else {
        if (n > 0 && dq_burst_pick(in, idx, n, out) != DQ_OK) {
            dqi_drop(&node->c, DQ_DROP_NO_BURST_BUFFER, n);
            *out = NULL;
        }
        dq_burst_unref(in);
    }
    if (*out) {
        dqi_add(&node->c.out, n);
        dqi_add(&node->c.out_bytes, (*out)->bytes);
    }
    return DQ_OK;
}

static void filter_drop(filter *f) {
    dqi_flow_table_free(f->tab);
    dq_prog_free(f->prog);
    free(f->cbpf);
    free(f);
}

static void filter_free(dq_stage *st) { filter_drop(st->impl); }

static int filter_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const filter *f = st->impl;
    int err = dqi_stage_reads(st, q, dqi_prog_needs(f->prog), diag);
    if (err != DQ_OK) return err;
    if (!q->iface->ops->payload || f->kind == DQ_FILTER_PROG) return DQ_OK;
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "filter %s: match tables and libpcap text need frames, but queue %s holds payloads; "
                    "hint: filter with where = \"...\"",
                    st->name, q->conf.name);
}

static const dqi_stage_ops filter_ops = {
    .line_kind = DQ_LINE_STAGE,
    .touches = DQI_TOUCHES_HEADS,
    .check = filter_check,
    .push = filter_push,
    .free = filter_free,
};

static int compile(filter *f, const dq_filter_conf *conf, dq_diag *diag) {
    f->kind = conf->kind;
    if (conf->kind == DQ_FILTER_MATCH) {
        dq_rule rule = {.match = *conf->match, .n_queues = 1};
        return dqi_flow_table_build(&rule, 1, &f->tab, diag);
    }
    if (conf->kind == DQ_FILTER_PROG) return dq_prog_new(conf->insns, conf->n_insns, &f->prog, diag);
    int err = dqi_cbpf_check(conf->cbpf, conf->n_cbpf, diag);
    if (err != DQ_OK) return err;
    f->cbpf = malloc(conf->n_cbpf * sizeof *f->cbpf);
    if (!f->cbpf) return DQ_ESYS - ENOMEM;
    memcpy(f->cbpf, conf->cbpf, conf->n_cbpf * sizeof *f->cbpf);
    f->n_cbpf = conf->n_cbpf;
    return DQ_OK;
}

int dq_stage_filter(dq_session *s, const char *name, const dq_filter_conf *conf, dq_stage **out,
                    dq_diag *diag) {
    filter *f = calloc(1, sizeof *f);
    int err = f ? compile(f, conf, diag) : DQ_ESYS - ENOMEM;
    if (err == DQ_OK) err = dqi_stage_add(s, name, &filter_ops, f, out, diag);
    if (err != DQ_OK && f) filter_drop(f);
    return err;
}
