// pipe.c: dispatch of received bursts to a queue's pipes.
//
// Each pipe of a queue gets the burst by reference, so a second pipe acts as a tee. A stage that can't accept
// a burst (a tap with policy wait whose ring is full) stalls the dispatch: its position is kept and the queue
// is not polled until the stage accepts it. Counters are in the pipe's nodes, written only by the queue's
// poller.
#include "pipeline/pipe.h"
#include "core/burst.h"
#include "core/err.h"
#include "core/histogram.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/poller.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/stage_queue.h"

#include <errno.h>
#include <string.h>

// Passes d->cur through the pipe's stages from d->node on; the result stays in d->cur. False: stalled.
static bool run_nodes(dqi_dispatch *d, dq_pipe *p) {
    while (d->cur && d->node < p->n) {
        dqi_node *node = &p->nodes[d->node];
        uint32_t n = d->cur->n;
        uint64_t bytes = d->cur->bytes;
        dq_burst *out = NULL;
        if (node->stage->ops->push(node->stage, node, d->cur, &out) == DQ_NOT_READY) return false;
        dqi_add(&node->c.in, n);
        dqi_add(&node->c.in_bytes, bytes);
        dqi_add(&node->c.bursts, 1);
        d->cur = out;
        d->node++;
    }
    d->node = 0;
    return true;
}

static bool run_pipe(dqi_dispatch *d, dq_pipe *p) {
    if (!run_nodes(d, p)) return false;
    if (d->cur) dq_burst_unref(d->cur);
    d->cur = NULL;
    return true;
}

// Runs the claim; the packets it leaves become the burst for the pipes. False: stalled.
static bool run_claim(dq_queue *q) {
    dqi_dispatch *d = &q->rx.dispatch;
    if (d->claimed) return true;
    if (!d->cur) {
        d->cur = d->burst;
        d->burst = NULL;
    }
    if (!run_nodes(d, q->rx.claim)) return false;
    uint32_t left = d->cur ? d->cur->n : 0;
    uint64_t bytes = d->cur ? d->cur->bytes : 0;
    dqi_add(&q->c.out, d->n - left);
    dqi_add(&q->c.out_bytes, d->bytes - bytes);
    dqi_gauge_add(&q->held, (int64_t)left - d->n);
    d->burst = d->cur;
    d->cur = NULL;
    d->n = left;
    d->bytes = bytes;
    d->claimed = true;
    return true;
}

// Whether a pipe is dedicated to this connection: its bursts then go to no other pipe.
static bool has_own_pipe(const dq_queue *q, uint32_t conn) {
    for (uint32_t i = 0; conn != 0 && i < q->rx.n_pipes; i++)
        if (q->rx.pipes[i]->conn == conn) return true;
    return false;
}

// Returns the first pipe at or after `from` for this connection (0: any connection); n_pipes: none.
static uint32_t next_pipe(const dq_queue *q, uint32_t from, uint32_t conn) {
    while (from < q->rx.n_pipes && q->rx.pipes[from]->conn != conn)
        from++;
    return from;
}

bool dqi_dispatch_run(dq_queue *q) {
    dqi_dispatch *d = &q->rx.dispatch;
    if (!d->active) return true;
    if (!run_claim(q)) return false;
    while (d->cur || d->burst) {
        if (!d->cur) {
            d->pipe = next_pipe(q, d->pipe, d->conn);
            if (d->pipe == q->rx.n_pipes) break;
            d->cur = d->burst;
            d->taken = true;
            if (next_pipe(q, d->pipe + 1, d->conn) == q->rx.n_pipes)
                d->burst = NULL; // the last pipe gets the dispatch's own reference
            else
                dq_burst_ref(d->burst);
        }
        if (!run_pipe(d, q->rx.pipes[d->pipe])) return false;
        d->pipe++;
        if (!d->burst) break;
    }
    if (d->taken || d->n == 0) {
        dqi_add(&q->c.out, d->n);
        dqi_add(&q->c.out_bytes, d->bytes);
        dqi_add(&q->c.bursts, 1);
    } else {
        dqi_drop(&q->c, DQ_DROP_NO_CONSUMER, d->n);
    }
    dqi_gauge_add(&q->held, -(int64_t)d->n);
    dq_burst_unref(d->burst);
    *d = (dqi_dispatch){0};
    return true;
}

bool dqi_queue_wants(const dq_queue *q, uint32_t conn) {
    return next_pipe(q, 0, has_own_pipe(q, conn) ? conn : 0) < q->rx.n_pipes;
}

// Whether the pipe of this connection modifies its bursts: it is then their only reader, and may share them
// later.
static bool changes(const dq_queue *q, uint32_t conn) {
    uint32_t k = next_pipe(q, 0, conn);
    return k < q->rx.n_pipes && q->rx.pipes[k]->changes;
}

void dqi_dispatch_start(dq_queue *q, dq_burst *b) {
    if (q->rx.sizes) dqi_histogram_note(q->rx.sizes, b->n - 1); // stage's queue: NULL, bursts have one packet
    uint32_t conn = has_own_pipe(q, b->conn) ? b->conn : 0;
    if (q->rx.n_consumers > 1 && !changes(q, conn)) b->flags |= DQ_BURST_SHARED;
    if (!q->rx.handles) dqi_burst_columns(b);
    q->rx.dispatch = (dqi_dispatch){
        .active = true,
        .claimed = q->rx.claim == NULL,
        .burst = b,
        .n = b->n,
        .bytes = b->bytes,
        .conn = conn,
    };
}

void dqi_dispatch_drop(dq_queue *q) {
    dqi_dispatch *d = &q->rx.dispatch;
    if (!d->active) return;
    dqi_drop(&q->c, DQ_DROP_STOPPED, d->n);
    dqi_gauge_add(&q->held, -(int64_t)d->n);
    dq_burst_unref(d->cur);
    dq_burst_unref(d->burst);
    *d = (dqi_dispatch){0};
}

// Returns the number of consumers: stages of q's pipes that access packets after the push, or modify them.
static uint32_t count_consumers(const dq_queue *q) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < q->rx.n_pipes; i++)
        for (uint32_t k = 0; k < q->rx.pipes[i]->n; k++)
            n += q->rx.pipes[i]->nodes[k].stage->ops->consumer;
    return n;
}

// Whether no stage of q's pipes reads packets in its push and at most one does so later.
static bool takes_handles(const dq_queue *q) {
    bool accepts_handles = !q->rx.claim && q->rx.n_pipes == 1 && q->rx.n_consumers <= 1;
    for (uint32_t k = 0; accepts_handles && k < q->rx.pipes[0]->n; k++)
        accepts_handles = q->rx.pipes[0]->nodes[k].stage->ops->accepts_handles;
    return accepts_handles;
}

static void pipe_free(dq_pipe *p) {
    if (p) free(p->scratch);
    free(p);
}

static dq_pipe *pipe_new(dq_queue *q, dq_stage *const *stages, uint32_t n, uint32_t conn) {
    dq_pipe *p = calloc(1, sizeof *p + n * sizeof p->nodes[0]);
    if (!p || !(p->scratch = malloc(q->conf.batch_size * sizeof *p->scratch))) {
        pipe_free(p);
        return NULL;
    }
    p->queue = q;
    p->conn = conn;
    p->n = n;
    bool own = false;
    for (uint32_t i = 0; i < n; i++) {
        p->nodes[i].stage = stages[i];
        p->nodes[i].scratch = p->scratch;
        p->nodes[i].own = own;
        p->changes |= stages[i]->ops->changes && !own;
        own |= stages[i]->region != NULL;
    }
    return p;
}

static int refuse_device_only(const dq_queue *q, const dq_stage *st, uint32_t segments, dq_diag *diag) {
    uint32_t s = (uint32_t)__builtin_ctz(segments);
    const dq_region *r = q->conf.regions[s];
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "stage %s reads the %s segment of queue %s's packets, and the CPU can't read region %s, where it "
        "lies: hint: %s",
        st->name, dq_ordinal(s), q->conf.name, r->conf.name,
        r->gpu ? "s:copy before it moves them to a region of the host"
               : "what needs no bytes of it takes them: count, sample, forward, a handler");
}

// Returns the segments that the stage would read and can't.
static uint32_t out_of_reach(const dq_queue *q, const dq_stage *st, uint32_t device_only) {
    uint32_t segments = device_only & st->touches;
    if (st->touches & DQI_TOUCHES_HEADS && !q->heads) segments |= device_only & DQI_TOUCHES_FIRST;
    for (uint32_t s = 0; s < q->conf.n_regions && st->ops->reads_gpus; s++)
        if (q->conf.regions[s]->gpu) segments &= ~(1u << s);
    return segments;
}

static int check_stages(const dq_queue *q, dq_stage *const *stages, uint32_t n, dq_diag *diag) {
    if (q->conf.dir != DQ_RX)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: only receive queues feed pipes", q->conf.name);
    int err = DQ_OK;
    uint32_t device_only = q->device_only;
    for (uint32_t i = 0; i < n && err == DQ_OK; i++) {
        uint32_t segments = out_of_reach(q, stages[i], device_only);
        if (segments) return refuse_device_only(q, stages[i], segments, diag);
        if (stages[i]->ops->check) err = stages[i]->ops->check(stages[i], q, diag);
        if (stages[i]->region) device_only = 0; // the stage's output is in that region
    }
    return err;
}

static int refuse_change(const dq_queue *q, const dq_stage *st, const char *who, dq_diag *diag) {
    return dqi_fail(
        diag, DQ_INVALID_PARAMETER,
        "stage %s rewrites the packets of queue %s where they lie, and %s would see it: hint: rewrite "
        "copies: s:copy{ memory_region = ... } in front of it in its pipe",
        st->name, q->conf.name, who);
}

// Returns the stage of p that modifies received packets.
static const dq_stage *changer(const dq_pipe *p) {
    uint32_t i = 0;
    while (!p->nodes[i].stage->ops->changes)
        i++;
    return p->nodes[i].stage;
}

// Checks that a pipe that modifies packets is their only one, with no consumer before the change.
static int check_changes(const dq_queue *q, const dq_pipe *p, dq_diag *diag) {
    for (uint32_t i = 0; i < q->rx.n_pipes; i++) {
        const dq_pipe *other = q->rx.pipes[i];
        if (other->conn == p->conn && (other->changes || p->changes))
            return refuse_change(q, changer(p->changes ? p : other), "another pipe or handler of the queue",
                                 diag);
    }
    const dq_stage *st = p->changes ? changer(p) : NULL;
    for (uint32_t i = 0; st && p->nodes[i].stage != st; i++)
        if (p->nodes[i].stage->ops->consumer) return refuse_change(q, st, p->nodes[i].stage->name, diag);
    return DQ_OK;
}

// Joins the stages to q. q's poller is paused.
static int join_stages(dq_queue *q, dq_stage *const *stages, uint32_t n, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t i = 0; i < n && err == DQ_OK; i++) {
        if (stages[i]->ops->join) err = stages[i]->ops->join(stages[i], q, diag);
        if (err == DQ_OK) err = dqi_stage_feed(stages[i], q, diag);
    }
    return err;
}

int dq_pipe_add(dq_queue *q, dq_stage *const *stages, uint32_t n, uint32_t conn, dq_pipe **out,
                dq_diag *diag) {
    int err = check_stages(q, stages, n, diag);
    if (err != DQ_OK) return err;
    dq_pipe *p = pipe_new(q, stages, n, conn);
    pthread_mutex_lock(&q->session->control);
    dq_pipe **more = p ? malloc((q->rx.n_pipes + 1) * sizeof(dq_pipe *)) : NULL;
    if (!more) {
        pthread_mutex_unlock(&q->session->control);
        pipe_free(p);
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "queue %s: no memory for a pipe", q->conf.name);
    }
    dqi_poller_hold(q->poller);
    err = check_changes(q, p, diag);
    if (err == DQ_OK) err = join_stages(q, stages, n, diag);
    if (err != DQ_OK) {
        dqi_poller_release(q->poller);
        pthread_mutex_unlock(&q->session->control);
        pipe_free(p);
        free(more);
        return err;
    }
    if (q->rx.n_pipes > 0) memcpy(more, q->rx.pipes, q->rx.n_pipes * sizeof *more);
    more[q->rx.n_pipes] = p;
    free(q->rx.pipes);
    q->rx.pipes = more;
    q->rx.n_pipes++;
    q->rx.pipes_version++;
    q->rx.n_consumers = count_consumers(q);
    q->rx.handles = takes_handles(q);
    if (!q->rx.claim) atomic_store(&q->rx.consumed, true);
    dqi_poller_release(q->poller);
    pthread_mutex_unlock(&q->session->control);
    dqi_queue_kick(q); // packets may have waited for a consumer
    if (q->iface->ops->wanted) q->iface->ops->wanted(q);
    *out = p;
    return DQ_OK;
}

int dq_queue_claim(dq_queue *q, dq_stage *const *stages, uint32_t n, dq_diag *diag) {
    int err = check_stages(q, stages, n, diag);
    if (err != DQ_OK) return err;
    if (q->session->state >= DQI_STARTED || q->rx.claim)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: it was claimed before, or the session runs",
                        q->conf.name);
    dq_pipe *p = pipe_new(q, stages, n, 0);
    if (!p) return dqi_fail(diag, DQ_ESYS - ENOMEM, "queue %s: no memory for a pipe", q->conf.name);
    err = join_stages(q, stages, n, diag);
    if (err != DQ_OK) {
        pipe_free(p);
        return err;
    }
    pthread_mutex_lock(&q->session->control);
    q->rx.claim = p;
    q->rx.handles = takes_handles(q);
    pthread_mutex_unlock(&q->session->control);
    return DQ_OK;
}

static void add_counters(dqi_counters *to, const dqi_counters *from) {
    dqi_add(&to->in, dqi_get(&from->in));
    dqi_add(&to->in_bytes, dqi_get(&from->in_bytes));
    dqi_add(&to->out, dqi_get(&from->out));
    dqi_add(&to->out_bytes, dqi_get(&from->out_bytes));
    dqi_add(&to->bursts, dqi_get(&from->bursts));
    for (int i = 0; i < DQ_REASONS; i++)
        dqi_add(&to->dropped[i], dqi_get(&from->dropped[i]));
    for (int i = 0; i < DQ_EXTRAS; i++)
        dqi_add(&to->extra[i], dqi_get(&from->extra[i]));
}

// Adjusts the dispatch for the removal of pipe `at`: a burst stalled there continues after it.
static void leave_dispatch(dq_queue *q, uint32_t at) {
    dqi_dispatch *d = &q->rx.dispatch;
    if (!d->active || !d->claimed || d->pipe < at) return;
    if (d->pipe == at) {
        dq_burst_unref(d->cur);
        d->cur = NULL;
        d->node = 0;
        if (!d->burst) d->pipe = q->rx.n_pipes - 1; // `at` was the last pipe with the burst
    } else {
        d->pipe--;
    }
}

void dq_pipe_remove(dq_pipe *p) {
    dq_queue *q = p->queue;
    pthread_mutex_lock(&q->session->control);
    dqi_poller_hold(q->poller);
    for (uint32_t i = 0; i < q->rx.n_pipes; i++) {
        if (q->rx.pipes[i] != p) continue;
        leave_dispatch(q, i);
        memmove(q->rx.pipes + i, q->rx.pipes + i + 1, (q->rx.n_pipes - i - 1) * sizeof *q->rx.pipes);
        q->rx.n_pipes--;
        q->rx.pipes_version++;
        break;
    }
    q->rx.n_consumers = count_consumers(q);
    q->rx.handles = takes_handles(q);
    if (!q->rx.claim) atomic_store(&q->rx.consumed, q->rx.n_pipes > 0);
    for (uint32_t i = 0; i < p->n; i++)
        add_counters(&p->nodes[i].stage->past, &p->nodes[i].c);
    dqi_poller_release(q->poller);
    pthread_mutex_unlock(&q->session->control);
    pipe_free(p);
}

void dqi_pipes_free(dq_queue *q) {
    for (uint32_t i = 0; i < q->rx.n_pipes; i++)
        pipe_free(q->rx.pipes[i]);
    pipe_free(q->rx.claim);
    free(q->rx.pipes);
}
