// stage.c: list of a session's stages, and checks of what a stage may access.
#include "pipeline/stage.h"
#include "core/clock.h"
#include "core/dq_burst.h"
#include "core/err.h"
#include "core/region.h"
#include "cuda/gpu.h"
#include "cuda/mover.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
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

int dqi_stage_await(dq_stage *st, dqi_gpu *gpu, int work, int64_t next) {
    char words[sizeof st->failure];
    if (gpu && dqi_gpu_lost(gpu, words, sizeof words)) dqi_stage_fail(st, words);
    if (next == INT64_MAX) return work;
    if (dqi_virtual(st->session)) {
        if (work == 0) dqi_mover_nap();
        return 1;
    }
    int64_t at = dq_now(st->session) + next;
    if (at < st->next_ns) st->next_ns = at;
    return work;
}

bool dq_stage_failure(const dq_stage *st, char *buf, size_t len) {
    bool is = atomic_load_explicit(&st->failed, memory_order_acquire);
    snprintf(buf, len, "%s", is ? st->failure : "");
    return is;
}
