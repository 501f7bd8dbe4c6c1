// stage.c: list of a session's stages, and the simple stages count, sample and forward.
#include "pipeline/dq_pipeline.h"
#include "core/burst.h"
#include "pipeline/engine.h"
#include "core/err.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "core/region.h"
#include "pipeline/stage.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Called with the session's control lock held: tasks add stages concurrently.
static int stage_add(dq_session *s, const char *name, const dqi_stage_ops *ops, void *impl, dq_stage **out,
                     dq_diag *diag) {
    uint32_t n = atomic_load(&s->n_stages);
    if (n == DQI_MAX_STAGES)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "stage %s: more than %d stages in one session", name,
                        DQI_MAX_STAGES);
    if (strlen(name) >= DQ_NAME_LEN)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "stage %s: the name is longer than %d bytes", name,
                        DQ_NAME_LEN - 1);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(s->stages[i]->name, name) == 0)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "stage %s: the session has a stage of this name",
                            name);
    dq_stage *st = calloc(1, sizeof *st);
    if (!st) return dqi_fail(diag, DQ_ESYS - ENOMEM, "stage %s: no memory", name);
    strcpy(st->name, name);
    st->ops = ops;
    st->touches = ops->touches;
    st->next_ns = INT64_MAX;
    st->session = s;
    st->impl = impl;
    if (ops->start && s->state >= DQI_STARTED) {
        int err = ops->start(st, diag);
        if (err != DQ_OK) {
            free(st);
            return err;
        }
    }
    s->stages[n] = st;
    atomic_store(&s->n_stages, n + 1); // readers of the ledger see a complete stage
    *out = st;
    return DQ_OK;
}

int dqi_stage_add(dq_session *s, const char *name, const dqi_stage_ops *ops, void *impl, dq_stage **out,
                  dq_diag *diag) {
    pthread_mutex_lock(&s->control);
    int err = stage_add(s, name, ops, impl, out, diag);
    pthread_mutex_unlock(&s->control);
    return err;
}

// Returns the name of another user of the region: a queue, if the stage waits, or a stage; NULL: none.
static const char *other_user(const dq_session *s, const dq_region *r, bool waits) {
    const char *queue;
    if (waits && dqi_region_uses(s, r, &queue) > 0) return queue;
    for (uint32_t k = 0; k < atomic_load(&s->n_stages); k++)
        if (s->stages[k]->region == r && (waits || s->stages[k]->waits)) return s->stages[k]->name;
    return NULL;
}

int dqi_stage_reads(const dq_stage *st, const dq_queue *q, uint32_t bytes, dq_diag *diag) {
    if (!q->heads || bytes <= DQ_HEAD) return DQ_OK;
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "stage %s reads byte %u of packets, and those of queue %s lie on a GPU: the host has the "
                    "first %d; hint: s:copy before it, or a region of kind host_pinned",
                    st->name, bytes - 1, q->conf.name, DQ_HEAD);
}

int dqi_stage_may_take(dq_session *s, const char *what, const dq_region *r, bool waits, dq_diag *diag) {
    if (!r->cpu && !r->gpu)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "%s: it writes into region %s by the CPU, which can't: hint: a region of kind host or huge", what,
            r->conf.name);
    if (r->group > 1 || r->holders)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "%s: a receive queue joins the buffers of region %s: give the stage a region of its own", what,
            r->conf.name);
    const char *other = other_user(s, r, waits);
    if (other)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "%s: packets of %s may have all buffers of region %s, and policy \"wait\" would wait for "
            "ever: give the stage a region of its own",
            what, other, r->conf.name);
    dqi_tx_share_region(s, r);
    return DQ_OK;
}

void dqi_stage_fail(dq_stage *st, const char *why) {
    if (atomic_load_explicit(&st->failed, memory_order_relaxed)) return;
    snprintf(st->failure, sizeof st->failure, "%s", why);
    atomic_store_explicit(&st->failed, true, memory_order_release);
}

bool dq_stage_failure(const dq_stage *st, char *buf, size_t len) {
    bool is = atomic_load_explicit(&st->failed, memory_order_acquire);
    snprintf(buf, len, "%s", is ? st->failure : "");
    return is;
}

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
