// simple.c: the stages count, sample and forward.
#include "core/burst.h"
#include "core/err.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"
#include "pipeline/stages/dq_stages.h"

#include <errno.h>

static void passed(dqi_node *node, const dq_burst *b) {
    dqi_add(&node->c.out, b->n);
    dqi_add(&node->c.out_bytes, b->bytes);
}

// ---- count ------------------------------------------------------------------------------------------------

static int count_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    (void)st;
    passed(node, in);
    *out = in;
    return DQ_OK;
}

static const dqi_stage_ops count_ops = {
    .line_kind = DQ_LINE_STAGE, .accepts_handles = true, .push = count_push};

int dq_stage_count(dq_session *s, const char *name, dq_stage **out, dq_diag *diag) {
    return dqi_stage_add(s, name, &count_ops, NULL, out, diag);
}

// ---- sample -----------------------------------------------------------------------------------------------

typedef struct sampler {
    uint32_t every;
} sampler;

static int sample_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    const sampler *sa = st->impl;
    bool pass = node->turn == 0;
    node->turn = (node->turn + 1) % sa->every;
    if (pass) {
        passed(node, in);
        *out = in;
    } else {
        dqi_drop(&node->c, DQ_DROP_NOT_SAMPLED, in->n);
        dq_burst_unref(in);
    }
    return DQ_OK;
}

static void free_impl(dq_stage *st) { free(st->impl); }

static const dqi_stage_ops sample_ops = {
    .line_kind = DQ_LINE_STAGE, .accepts_handles = true, .push = sample_push, .free = free_impl};

int dq_stage_sample(dq_session *s, const char *name, uint32_t every, dq_stage **out, dq_diag *diag) {
    if (every == 0) return dqi_fail(diag, DQ_INVALID_PARAMETER, "stage %s: sample must be above 0", name);
    sampler *sa = malloc(sizeof *sa);
    if (!sa) return dqi_fail(diag, DQ_ESYS - ENOMEM, "stage %s: no memory", name);
    sa->every = every;
    int err = dqi_stage_add(s, name, &sample_ops, sa, out, diag);
    if (err != DQ_OK) free(sa);
    return err;
}

// ---- forward ----------------------------------------------------------------------------------------------

typedef struct forwarder {
    dq_queue *tx;
    int policy;
} forwarder;

static int forward_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    const forwarder *f = st->impl;
    uint32_t n = in->n;
    uint64_t bytes = in->bytes;
    int err = dq_tx_send(f->tx, in);
    if (err == DQ_OK) {
        dqi_add(&node->c.out, n);
        dqi_add(&node->c.out_bytes, bytes);
    } else if (f->policy == DQ_POLICY_WAIT && err == DQ_NO_SPACE_AVAILABLE) {
        return DQ_NOT_READY;
    } else {
        dqi_drop(&node->c, DQ_DROP_BEHIND, n);
        dq_burst_unref(in);
    }
    *out = NULL;
    return DQ_OK;
}

static const char *layer(const dq_queue *q) { return q->iface->ops->payload ? "payloads" : "frames"; }

static int forward_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const forwarder *f = st->impl;
    if (!q->owner && q->iface->conf.joined)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "queue %s receives packets that the kernel joined, and queue %s can't send them; hint: no "
            "key joined in rx of %s",
            q->conf.name, f->tx->conf.name, q->iface->conf.name);
    if (q->iface->ops->payload != f->tx->iface->ops->payload)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "queue %s holds %s and queue %s sends %s: it can't be forwarded", q->conf.name,
                        layer(q), f->tx->conf.name, layer(f->tx));
    if (q->conf.n_regions != f->tx->conf.n_regions)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "queue %s has %u memory regions and queue %s %u: segments can't be forwarded",
                        q->conf.name, q->conf.n_regions, f->tx->conf.name, f->tx->conf.n_regions);
    return dqi_tx_reaches(f->tx, q->device_only, q, diag);
}

static const dqi_stage_ops forward_ops = {
    .line_kind = DQ_LINE_STAGE,
    .consumer = true,
    .accepts_handles = true,
    .check = forward_check,
    .push = forward_push,
    .free = free_impl,
};

int dq_stage_forward(dq_session *s, const char *name, dq_queue *tx, int policy, dq_stage **out,
                     dq_diag *diag) {
    if (tx->conf.dir != DQ_TX)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "stage %s: queue %s is not a transmit queue", name,
                        tx->conf.name);
    if (tx->session != s)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "stage %s: queue %s belongs to another session", name,
                        tx->conf.name);
    forwarder *f = malloc(sizeof *f);
    if (!f) return dqi_fail(diag, DQ_ESYS - ENOMEM, "stage %s: no memory", name);
    *f = (forwarder){.tx = tx, .policy = policy};
    int err = dqi_stage_add(s, name, &forward_ops, f, out, diag);
    if (err != DQ_OK) free(f);
    return err;
}
