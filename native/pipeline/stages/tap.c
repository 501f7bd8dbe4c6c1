// tap.c: tap stage: delivers bursts to a task as events through a bounded ring.
#include "core/burst.h"
#include "core/counters.h"
#include "core/err.h"
#include "pipeline/queue.h"
#include "pipeline/stages/dq_stages.h"
#include "pipeline/waiter.h"

#include <errno.h>

typedef struct task_tap {
    dqi_tap tap;
    uint32_t sample;
    dqi_counters c; // written by the task
} task_tap;

static int tap_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    task_tap *t = st->impl;
    bool take = node->turn == 0;
    if (take) {
        dqi_burst_hold(in);
        if (!dqi_consumer_put(&t->tap.in, in, DQ_EV_BURST) &&
            dqi_consumer_refuse(&t->tap.in, t->tap.in.policy == DQ_POLICY_WAIT, node, in) != DQ_OK)
            return DQ_NOT_READY;
        if (t->tap.waiter) dqi_waiter_kick(t->tap.waiter);
    } else {
        dqi_drop(&node->c, DQ_DROP_NOT_SAMPLED, in->n);
    }
    node->turn = (node->turn + 1) % t->sample;
    *out = in;
    return DQ_OK;
}

static uint64_t tap_held(const dq_stage *st) {
    const task_tap *t = st->impl;
    return dqi_consumer_held(&t->tap.in);
}

static void tap_line(const dq_stage *st, dq_line *line) {
    const task_tap *t = st->impl;
    dqi_line_add(line, &t->c);
}

// Drops bursts not taken by a task when the session ends.
static void tap_finish(dq_stage *st) {
    task_tap *t = st->impl;
    dqi_consumer_flush(&t->tap.in, &t->c);
}

static void tap_free(dq_stage *st) {
    task_tap *t = st->impl;
    if (t->tap.waiter) dqi_waiter_remove(t->tap.waiter, &t->tap);
    dqi_ring_free(&t->tap.in.ring);
    free(t);
}

static const dqi_stage_ops tap_ops = {
    .line_kind = DQ_LINE_TAP,
    .consumer = true,
    .accepts_handles = true,
    .push = tap_push,
    .held = tap_held,
    .line = tap_line,
    .finish = tap_finish,
    .free = tap_free,
};

int dq_stage_tap(dq_session *s, const char *name, dq_waiter *w, uint64_t tag, uint32_t depth, int policy,
                 uint32_t sample, dq_stage **out, dq_diag *diag) {
    if (sample == 0) return dqi_fail(diag, DQ_INVALID_PARAMETER, "stage %s: sample must be above 0", name);
    task_tap *t = calloc(1, sizeof *t);
    if (!t || !dqi_consumer_init(&t->tap.in, depth, policy)) {
        free(t);
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "stage %s: no memory", name);
    }
    t->tap.waiter = w;
    t->tap.tag = tag;
    t->tap.c = &t->c;
    t->sample = sample;
    int err = dqi_waiter_add(w, &t->tap);
    if (err != DQ_OK) {
        dqi_fail(diag, err, "stage %s: no memory", name);
    } else if ((err = dqi_stage_add(s, name, &tap_ops, t, out, diag)) != DQ_OK) {
        dqi_waiter_remove(w, &t->tap);
    }
    if (err != DQ_OK) {
        dqi_ring_free(&t->tap.in.ring);
        free(t);
    }
    return err;
}
