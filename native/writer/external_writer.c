// external_writer.c: writer with an external consumer: bursts wait in a bounded ring for the consumer, which
// copies the data, releases the bursts, and later reports the outcome of their packets.
//
// Ledger: the nodes count `in` and packets that found the ring full; dq_external_put counts `in` of bursts
// from scripts; the consumer counts the rest. A consumer that must not block a queue (policy drop) drops
// packets itself when it has no space, so that the ring, and with it the queue's memory, stays free.
#include "core/burst.h"
#include "core/counters.h"
#include "core/err.h"
#include "pipeline/consumer.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/poller.h"
#include "pipeline/session.h"
#include "writer/staged.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define NAP_NS  100000 // between two checks of a busy consumer on the virtual clock
#define REST_NS 50000  // between two checks of the ring by a consumer that has emptied it

typedef struct outlet {
    dqi_stage_ops ops;
    dqi_consumer in;
    dqi_wake wake;
    const dq_session *session;
    dq_stage *stage;
    pthread_mutex_t reaching; // serializes allocation of staging memory
    _Atomic(dqi_staging *) staging;
    dqi_staged staged; // of the burst taken last
    _Atomic uint32_t ended;
    dqi_gauge busy; // bursts in the ring or being processed, and pending operations of the consumer
    bool taken;     // consumer only: it has a burst
    bool active;    // consumer only: it took a burst since it waited last
    bool refused;   // virtual clock: a push found the ring full since the last step
    dqi_counters c; // of the consumer and of scripts; any thread adds
} outlet;

// Queues a reference to b; false: the ring is full.
static bool hand_over(outlet *o, dq_burst *b, uint32_t tag) {
    dq_burst_ref(b);
    dqi_gauge_add(&o->busy, 1);
    bool ok = dqi_consumer_put(&o->in, b, tag);
    if (ok)
        dqi_wake_up(&o->wake);
    else
        dqi_gauge_add(&o->busy, -1);
    return ok;
}

static int outlet_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    outlet *o = st->impl;
    *out = in;
    if (atomic_load_explicit(&o->ended, memory_order_relaxed) != 0) {
        dqi_drop(&node->c, DQ_DROP_STOPPED, in->n);
    } else if (!hand_over(o, in, 0)) {
        const bool is_virtual = dqi_virtual(o->session);
        o->refused |= is_virtual;
        return dqi_consumer_refuse(&o->in, is_virtual || o->in.policy == DQ_POLICY_WAIT, node, in);
    }
    return DQ_OK;
}

// ---- consumer ---------------------------------------------------------------------------------------------

// Waits until the ring may have a burst; false: it is empty and the input has ended. A consumer that took
// bursts first rests without an announcement, so that the queue's thread needs no system call for each of
// many bursts.
static bool wait_for_burst(outlet *o) {
    struct pollfd fds[1];
    if (o->active && !dqi_virtual(o->session)) {
        o->active = false;
        nanosleep(&(struct timespec){.tv_nsec = REST_NS}, NULL);
        return true;
    }
    dqi_wake_announce(&o->wake);
    bool ended = atomic_load(&o->ended) != 0; // before the ring is checked
    if (dqi_ring_level(&o->in.ring) > 0 || ended)
        dqi_wake_stay(&o->wake);
    else
        dqi_wake_sleep(&o->wake, fds, 1, INT64_MAX);
    return !ended || dqi_ring_level(&o->in.ring) > 0;
}

dq_burst *dq_external_take(dq_stage *st, dq_view *view, uint32_t *tag) {
    outlet *o = st->impl;
    void *p;
    dqi_staged_end(&o->staged);
    if (o->taken) dqi_gauge_add(&o->busy, -1); // its operations have been counted
    o->taken = false;
    while (!dqi_consumer_pop(&o->in, &p, tag))
        if (!wait_for_burst(o)) return NULL;
    o->taken = o->active = true;
    dq_burst_view(p, view);
    o->staged.staging = atomic_load(&o->staging);
    dqi_staged_begin(&o->staged, p);
    return p;
}

const uint8_t *dq_external_bytes(dq_stage *st, uint32_t seg, uint32_t i, uint32_t at, uint32_t *n) {
    outlet *o = st->impl;
    const uint8_t *p;
    char words[256];
    dqi_staged_release(&o->staged);
    while (!(p = dqi_staged_bytes(&o->staged, seg, i, at, n)) && *n > 0)
        dqi_staged_release(&o->staged);
    if (!p && dqi_gpu_lost(dqi_staging_gpu(o->staged.staging), words, sizeof words))
        dqi_stage_fail(st, words);
    return p;
}

static int reach(outlet *o, dq_region *const *regions, uint32_t n, dq_diag *diag) {
    char what[DQ_NAME_LEN + 16];
    snprintf(what, sizeof what, "writer %s", o->stage->name);
    pthread_mutex_lock(&o->reaching);
    int err = dqi_staging_reach(&o->staging, regions, n, NULL, what, diag);
    pthread_mutex_unlock(&o->reaching);
    return err;
}

static int outlet_join(dq_stage *st, dq_queue *q, dq_diag *diag) {
    return reach(st->impl, q->conf.regions, q->conf.n_regions, diag);
}

// The same for a burst from a script.
static int reach_burst(outlet *o, const dq_burst *b) {
    dq_region *regions[DQ_MAX_SEGS];
    int n = dqi_staging_regions(b, regions);
    return n < 0 ? DQ_NOT_SUPPORTED : reach(o, regions, (uint32_t)n, NULL);
}

int dq_external_put(dq_stage *st, dq_burst *b, uint32_t tag) {
    outlet *o = st->impl;
    uint32_t n = b->n;
    uint64_t bytes = b->bytes;
    if (atomic_load(&o->ended) != 0) return DQ_NOT_READY;
    dqi_burst_columns(b);
    int err = b->device_only ? reach_burst(o, b) : DQ_OK;
    if (err != DQ_OK) return err;
    dqi_burst_share(b);
    dqi_add_shared(&o->c.in, n);
    dqi_add_shared(&o->c.in_bytes, bytes);
    dqi_add_shared(&o->c.bursts, 1);
    if (hand_over(o, b, tag)) return DQ_OK;
    dqi_add_shared(&o->c.in, -(uint64_t)n);
    dqi_add_shared(&o->c.in_bytes, -bytes);
    dqi_add_shared(&o->c.bursts, UINT64_MAX);
    return DQ_NO_SPACE_AVAILABLE;
}

void dq_external_end(dq_stage *st) {
    outlet *o = st->impl;
    atomic_store(&o->ended, 1);
    dqi_wake_up(&o->wake);
}

void dq_external_out(dq_stage *st, uint64_t packets, uint64_t bytes) {
    outlet *o = st->impl;
    dqi_add_shared(&o->c.out, packets);
    dqi_add_shared(&o->c.out_bytes, bytes);
    dqi_gauge_add(&o->in.held, -(int64_t)packets);
}

void dq_external_lost(dq_stage *st, int reason, uint64_t packets) {
    outlet *o = st->impl;
    dqi_add_shared(&o->c.dropped[reason], packets);
    dqi_gauge_add(&o->in.held, -(int64_t)packets);
}

void dq_external_note(dq_stage *st, int extra, uint64_t n) {
    outlet *o = st->impl;
    dqi_add_shared(&o->c.extra[extra], n);
}

void dq_external_busy(dq_stage *st, int n) {
    outlet *o = st->impl;
    dqi_gauge_add(&o->busy, n);
}

// ---- stage ------------------------------------------------------------------------------------------------

static uint64_t outlet_held(const dq_stage *st) {
    const outlet *o = st->impl;
    return dqi_consumer_held(&o->in);
}

static void outlet_line(const dq_stage *st, dq_line *line) {
    const outlet *o = st->impl;
    dqi_line_add(line, &o->c);
}

// Virtual time does not advance while the consumer, which runs in real time, is busy: so runs are
// reproducible, and a script's timeout does not expire before the consumer could act. At the end only space
// in the ring is waited for.
static int outlet_poll(dq_stage *st) {
    outlet *o = st->impl;
    bool room = dqi_consumer_has_room(&o->in), again = o->refused;
    o->refused = false;
    if (room && (o->session->ending || dqi_gauge_get(&o->busy) <= 0)) return again;
    nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    return 1;
}

// Drops bursts that were not taken.
static void outlet_finish(dq_stage *st) {
    outlet *o = st->impl;
    dq_external_end(st);
    dqi_consumer_flush(&o->in, &o->c);
}

static void outlet_free(dq_stage *st) {
    outlet *o = st->impl;
    outlet_finish(st);
    dqi_wake_close(&o->wake);
    dqi_ring_free(&o->in.ring);
    dqi_staging_free(atomic_load(&o->staging));
    pthread_mutex_destroy(&o->reaching);
    free(o);
}

static const dqi_stage_ops outlet_ops = {
    .consumer = true,
    .touches = DQI_TOUCHES_ALL,
    .reads_gpus = true,
    .join = outlet_join,
    .push = outlet_push,
    .held = outlet_held,
    .line = outlet_line,
    .poll = outlet_poll,
    .finish = outlet_finish,
    .free = outlet_free,
};

int dq_stage_external(dq_session *s, const char *name, int line_kind, uint32_t depth, int policy,
                      dq_stage **out, dq_diag *diag) {
    outlet *o = calloc(1, sizeof *o);
    if (!o || !dqi_consumer_init(&o->in, depth, policy)) {
        free(o);
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "stage %s: no memory", name);
    }
    o->session = s;
    o->ops = outlet_ops;
    o->ops.line_kind = line_kind;
    pthread_mutex_init(&o->reaching, NULL);
    int err = dqi_wake_init(&o->wake);
    if (err != DQ_OK)
        dqi_fail(diag, err, "stage %s: wake-up descriptor: %s", name, dq_err_name(err));
    else if ((err = dqi_stage_add(s, name, &o->ops, o, out, diag)) != DQ_OK)
        dqi_wake_close(&o->wake);
    if (err == DQ_OK) {
        (*out)->threaded = true;
        o->stage = *out;
        return DQ_OK;
    }
    dqi_ring_free(&o->in.ring);
    free(o);
    return err;
}
