// stage_kernel.c: stage that launches a user kernel per burst.
//
// Each burst is passed by reference: the stage holds it until the kernel has ended, then delivers it in order
// through a queue of the stage. A burst with other readers is delivered as a selection, because a burst
// stores its queue. On the host the poller that delivers the burst waits for the kernel.
#include "compute/arguments.h"
#include "compute/launch.h"
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/memory.h"
#include "cuda/mover.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/session.h"
#include "pipeline/stage_queue.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define RING 256                // bursts inside, including those waiting for a consumer
#define NAME (DQ_NAME_LEN - 16) // maximum length of the name

typedef struct user {
    dq_stage *stage;
    dq_queue *out;
    dq_launcher *launcher;
    dq_kernel_arg args[DQ_MAX_KERNEL_ARGS];
    uint32_t n_args;
    int policy;
    dqi_spin lock;           // protects pushes by several pollers
    dq_burst *ring[RING];    // of launch k: k % RING
    uint64_t head;           // next one to deliver, by out's poller
    _Atomic uint64_t pushed; // launches
    dqi_counters c;          // of delivered packets, by out's poller
    dqi_gauge held;
    bool timed;        // launches on a GPU with a real clock
    dqi_histogram ran; // ns of launches, by out's poller
} user;

// ---- input ------------------------------------------------------------------------------------------------

static bool has_room(const user *u) {
    uint64_t head = __atomic_load_n(&u->head, __ATOMIC_ACQUIRE);
    return atomic_load_explicit(&u->pushed, memory_order_relaxed) - head < RING &&
           dqi_launcher_room(u->launcher);
}

// Returns the burst to deliver, consuming in: in itself, or a selection of all its packets. NULL: no free
// burst.
static dq_burst *own(dq_burst *in) {
    if (dqi_burst_exclusive(in)) return in;
    dq_burst *out = NULL;
    uint32_t all[in->n];
    for (uint32_t i = 0; i < in->n; i++)
        all[i] = i;
    if (dq_burst_pick(in, all, in->n, &out) != DQ_OK) return NULL;
    dq_burst_unref(in);
    return out;
}

static int user_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    user *u = st->impl;
    dq_diag diag;
    *out = NULL;
    dqi_lock(&u->lock);
    bool lost = atomic_load_explicit(&st->failed, memory_order_relaxed) || dqi_launcher_lost(u->launcher);
    bool room = has_room(u);
    if (!room && !lost && u->policy == DQ_POLICY_WAIT) {
        dqi_unlock(&u->lock);
        return DQ_NOT_READY;
    }
    uint32_t n = in->n;
    dq_burst *b = room && !lost ? own(in) : NULL;
    dq_reason why = lost ? DQ_DROP_DEVICE_LOST : room ? DQ_DROP_NO_BURST_BUFFER : DQ_DROP_BEHIND;
    int err = b ? dqi_launch(u->launcher, u->args, u->n_args, b, NULL, &diag) : DQ_OK;
    if (b && err == DQ_OK) {
        uint64_t k = atomic_load_explicit(&u->pushed, memory_order_relaxed);
        u->ring[k % RING] = b;
        dqi_gauge_add(&u->held, n);
        atomic_store_explicit(&u->pushed, k + 1, memory_order_release);
    }
    dqi_unlock(&u->lock);
    if (err != DQ_OK) { // the first failure ends the stage's work
        dqi_stage_fail(st, diag.text);
        why = DQ_DROP_DEVICE_LOST;
    }
    if (!b || err != DQ_OK) {
        dqi_drop(&node->c, why, n);
        dq_burst_unref(b ? b : in);
    }
    dqi_queue_kick(u->out);
    return DQ_OK;
}

// ---- output -----------------------------------------------------------------------------------------------

// Returns the next burst whose kernel has ended, or NULL.
static dq_burst *next_out(user *u) {
    if (u->head == atomic_load_explicit(&u->pushed, memory_order_acquire) ||
        u->head >= dqi_launcher_ended(u->launcher))
        return NULL;
    dq_burst *b = u->ring[u->head % RING];
    dqi_gauge_add(&u->held, -(int64_t)b->n);
    __atomic_store_n(&u->head, u->head + 1, __ATOMIC_RELEASE);
    return b;
}

// Ends a burst: counted as output without a consumer, otherwise as dropped.
static void end(user *u, dq_burst *b, bool lost, bool wanted) {
    if (lost || wanted) {
        dqi_drop(&u->c, lost ? DQ_DROP_DEVICE_LOST : DQ_DROP_STOPPED, b->n);
    } else {
        dqi_add(&u->c.out, b->n);
        dqi_add(&u->c.out_bytes, b->bytes);
    }
    dq_burst_unref(b);
}

static int user_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    user *u = q->engine;
    for (dq_burst *out; (out = next_out(u)) != NULL;) {
        bool lost = dqi_launcher_lost(u->launcher);
        if (room == 0 || lost) {
            end(u, out, lost, false);
            continue;
        }
        dqi_add(&u->c.out, out->n);
        dqi_add(&u->c.out_bytes, out->bytes);
        dqi_add(&q->c.in, out->n);
        dqi_add(&q->c.in_bytes, out->bytes);
        dq_burst_unref(*b); // empty
        *b = out;
        return (int)out->n;
    }
    return 0;
}

static int user_poll(dq_stage *st) {
    user *u = st->impl;
    uint32_t ended;
    dq_launcher_look(u->launcher, &ended);
    return dqi_stage_await(st, dqi_launcher_gpu(u->launcher), (int)ended, dqi_launcher_next(u->launcher));
}

// ---- stage ------------------------------------------------------------------------------------------------

static bool wants_aggregate(const user *u) {
    bool is = false;
    for (uint32_t k = 0; k < u->n_args; k++)
        is = is || u->args[k].kind == DQ_ARG_PRESENT || u->args[k].kind == DQ_ARG_EXTRA ||
             u->args[k].kind == DQ_ARG_BATCH_ID || u->args[k].kind == DQ_ARG_DATA;
    return is;
}

static int user_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const user *u = st->impl;
    dqi_gpu *gpu = dqi_launcher_gpu(u->launcher);
    if (dqi_stage_is_before(st, q))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "kernel %s: a stage cannot consume its own output",
                        st->name);
    if (!q->owner && wants_aggregate(u))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "kernel %s: \"data\", \"present\", \"extra\" and \"batch_id\" are of what a reorder stage "
            "makes, and queue %s hands out packets; hint: s:reorder before it, or \"burst\"",
            st->name, q->conf.name);
    for (uint32_t k = 0; k < q->conf.n_regions; k++) {
        const dq_region *r = q->conf.regions[k];
        if (r->cpu || (gpu && r->gpu == gpu)) continue;
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "kernel %s: it runs on %s, out of whose reach region %s lies; hint: "
                        "s:copy before it",
                        st->name, gpu ? "another GPU" : "the host", r->conf.name);
    }
    return DQ_OK;
}

static uint64_t user_held(const dq_stage *st) {
    return (uint64_t)dqi_gauge_get(&((const user *)st->impl)->held);
}

static void user_line(const dq_stage *st, dq_line *line) { dqi_line_add(line, &((const user *)st->impl)->c); }

static bool user_histogram(const dq_stage *st, uint32_t k, dq_histogram *out) {
    const user *u = st->impl;
    if (k > 0 || !u->timed) return false;
    out->kind = DQ_HISTOGRAM_RUN_TIME;
    dqi_histogram_read(&u->ran, out);
    return true;
}

static void user_finish(dq_stage *st) {
    user *u = st->impl;
    uint32_t ended;
    while (dq_launcher_look(u->launcher, &ended) > 0)
        dqi_mover_nap();
    bool wanted = atomic_load(&u->out->rx.consumed);
    for (dq_burst *b; (b = next_out(u)) != NULL;)
        end(u, b, dqi_launcher_lost(u->launcher), wanted);
}

static void user_free(user *u) {
    dq_launcher_free(u->launcher);
    for (uint32_t k = 0; k < u->n_args; k++)
        if (u->args[k].kind == DQ_ARG_ARRAY) dq_array_free(u->args[k].array);
    free(u);
}

static void stage_free(dq_stage *st) { user_free(st->impl); }

static const dqi_stage_ops user_ops = {
    .line_kind = DQ_LINE_STAGE,
    .consumer = true,
    .check = user_check,
    .push = user_push,
    .held = user_held,
    .line = user_line,
    .histogram = user_histogram,
    .poll = user_poll,
    .finish = user_finish,
    .blocks = true, // while a kernel runs
    .free = stage_free,
};

static int make_queue(user *u, dq_session *s, const char *name, dq_diag *diag) {
    char line[DQ_NAME_LEN];
    snprintf(line, sizeof line, "%s.done", name);
    dqi_stage_queue_conf conf = {
        .line = line,
        .queue = {.core = -1, .batch_size = s->core.picks_cap},
        .n_bursts = 2, // empty ones: it delivers input bursts
        .payload = true,
        .rx = user_rx,
        .impl = u,
    };
    snprintf(conf.queue.name, sizeof conf.queue.name, "%s", name);
    return dqi_stage_queue_new(s, &conf, &u->out, diag);
}

static int prepare(user *u, dq_session *s, const char *name, const dq_kernel_conf *conf, dq_diag *diag) {
    char what[DQ_NAME_LEN + 16];
    snprintf(what, sizeof what, "kernel %s", name);
    if (s->state == DQI_NEW || strlen(name) > NAME || conf->n_args > DQ_MAX_KERNEL_ARGS)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "%.80s: it needs a session that is open, a name of at most %d bytes and at most %d arguments",
            what, NAME, DQ_MAX_KERNEL_ARGS);
    int err = dq_launcher_new(what, conf->kernel, &conf->grid, conf->stream, &u->launcher, diag);
    dqi_gpu *gpu = err == DQ_OK ? dqi_launcher_gpu(u->launcher) : NULL;
    if (gpu && !dqi_cuda_use(s, gpu->info.number, what, diag)) err = DQ_NOT_SUPPORTED;
    u->timed = gpu && !dqi_virtual(s);
    if (u->timed) dqi_launcher_time(u->launcher, &u->ran);
    for (uint32_t k = 0; k < conf->n_args && err == DQ_OK; k++) {
        u->args[u->n_args++] = conf->args[k];
        if (conf->args[k].kind == DQ_ARG_ARRAY) {
            dqi_array_hold(conf->args[k].array);
            err = dqi_arguments_check(gpu, what, &conf->args[k], 1, NULL, diag);
        }
    }
    return err;
}

int dq_stage_kernel(dq_session *s, const char *name, const dq_kernel_conf *conf, dq_stage **out,
                    dq_queue **done, dq_diag *diag) {
    user *u = calloc(1, sizeof *u);
    if (!u) return dqi_fail(diag, DQ_ESYS - ENOMEM, "kernel %s: no memory", name);
    u->policy = conf->policy;
    int err = prepare(u, s, name, conf, diag);
    if (err == DQ_OK) err = make_queue(u, s, name, diag);
    if (err != DQ_OK) goto fail;
    if ((err = dqi_stage_add(s, name, &user_ops, u, &u->stage, diag)) != DQ_OK) goto fail_queue;
    dqi_stage_queue_own(u->stage, u->out);
    u->stage->waits = conf->policy == DQ_POLICY_WAIT;
    *out = u->stage;
    *done = u->out;
    return DQ_OK;
fail_queue:
    dqi_stage_queue_free(u->out);
fail:
    user_free(u);
    return err;
}

void dq_stage_kernel_like(dq_queue *done, const dq_queue *source) {
    memcpy(done->conf.regions, source->conf.regions, sizeof done->conf.regions);
    done->conf.n_regions = source->conf.n_regions;
    done->device_only = source->device_only;
    done->heads = source->heads;
    dq_stage_queue_holds(done, source->iface->ops->payload);
}
