// rewrite.c: rewrites packet fields in place (program/rewrite.h). No other reader sees the change:
// pipe.c rejects pipes with other readers, and bursts that have readers elsewhere are dropped.
#include "program/rewrite.h"
#include "core/burst.h"
#include "core/err.h"
#include "core/peers.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"
#include "pipeline/stages/dq_stages.h"
#include "program/burst_ops.h"

#include <errno.h>
#include <stdlib.h>

typedef struct rewriter {
    dqi_rewrite *rules;
    bool loops;
    _Atomic uint64_t seen; // packets; atomic, as the stage's queues may have several threads
} rewriter;

// Fills scratch, of one batch, with the capture loop of each packet.
static const uint32_t *find_loops(const dq_burst *b, uint32_t *scratch) {
    for (uint32_t i = 0; i < b->n; i++)
        scratch[i] = dqi_burst_loop(b, i);
    return scratch;
}

static int rewrite_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    rewriter *rw = st->impl;
    if (!node->own && !dqi_burst_writable(in)) {
        dqi_drop(&node->c, DQ_DROP_SHARED, in->n);
        dq_burst_unref(in);
        *out = NULL;
        return DQ_OK;
    }
    dqi_packets packets = dqi_packets_of(in);
    uint64_t number = atomic_fetch_add_explicit(&rw->seen, in->n, memory_order_relaxed);
    const uint32_t *loops = rw->loops ? find_loops(in, node->scratch) : NULL;
    uint32_t n = dqi_rewrite_run(rw->rules, dqi_level_best(), &packets, in->payload, number, loops);
    dqi_add(&node->c.extra[DQ_EXTRA_REWRITTEN], n);
    if (!node->own && in->queue->rx.n_consumers > 1) dqi_burst_share(in);
    dqi_add(&node->c.out, in->n);
    dqi_add(&node->c.out_bytes, in->bytes);
    *out = in;
    return DQ_OK;
}

static int rewrite_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const rewriter *rw = st->impl;
    if (!rw->loops || (!q->owner && q->iface->ops->loops)) return DQ_OK;
    return dqi_fail(
        diag, DQ_INVALID_PARAMETER,
        "rewrite %s: per_loop is for what a capture brings, and queue %s's packets have no loops: hint: "
        "the rewrite first in a pipe of the queue that replays the capture",
        st->name, q->conf.name);
}

static int rewrite_join(dq_stage *st, dq_queue *q, dq_diag *diag) {
    const rewriter *rw = st->impl;
    return rw->loops ? dqi_region_keep_loops(q->conf.regions[0], diag) : DQ_OK;
}

static void rewriter_free(rewriter *rw) {
    dqi_rewrite_free(rw->rules);
    free(rw);
}

static void rewrite_free(dq_stage *st) { rewriter_free(st->impl); }

static const dqi_stage_ops rewrite_ops = {
    .line_kind = DQ_LINE_STAGE,
    .changes = true,
    .touches = DQI_TOUCHES_FIRST,
    .check = rewrite_check,
    .join = rewrite_join,
    .push = rewrite_push,
    .free = rewrite_free,
};

int dq_stage_rewrite(dq_session *s, const char *name, const dq_rewrite_rule *rules, uint32_t n, int csum,
                     dq_stage **out, dq_diag *diag) {
    rewriter *rw = calloc(1, sizeof *rw);
    if (!rw) return dqi_fail(diag, DQ_ESYS - ENOMEM, "rewrite %s: no memory", name);
    dq_diag why = {{0}};
    int err = dqi_rewrite_new(rules, n, csum, &rw->rules, &why);
    if (err != DQ_OK) {
        free(rw);
        return dqi_fail(diag, err, "rewrite %s: %s", name, why.text);
    }
    rw->loops = dqi_rewrite_loops(rw->rules);
    err = dqi_stage_add(s, name, &rewrite_ops, rw, out, diag);
    if (err != DQ_OK) rewriter_free(rw);
    return err;
}
