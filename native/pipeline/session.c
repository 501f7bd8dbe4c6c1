// session.c: session states: new -> add -> open -> start -> stop -> finish -> close. Errors at any step
// unwind by close.
#include "pipeline/session.h"
#include "core/arena.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/histogram.h"
#include "core/peers.h"
#include "cuda/memory.h"
#include "packet/dq_template.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/engine.h"
#include "pipeline/pipe.h"
#include "pipeline/poller.h"
#include "pipeline/queue.h"
#include "pipeline/responder.h"
#include "pipeline/rx_count.h"
#include "pipeline/stage_queue.h"
#include "pipeline/tx_accuracy.h"
#include "pipeline/tx_gpu.h"

#include <errno.h>
#include <stdio.h>
#include <time.h>

#define PICKS     1024               // selections in use at a time
#define SETTLE_NS INT64_C(100000000) // minimum time for packets in flight at the stop

int dq_session_new(const dq_session_conf *conf, dq_session **out, dq_diag *diag) {
    dq_session *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "session: no memory");
    s->core.conf = *conf;
    s->core.fds[0] = s->core.fds[1] = s->core.fds[2] = -1;
    pthread_mutex_init(&s->control, NULL);
    pthread_mutex_init(&s->engines, NULL);
    s->end_ns = DQI_END_NS;
    dqi_clock_start(s);
    atomic_init(&s->stop_ns, DQI_RECEIVING);
    *out = s;
    return DQ_OK;
}

int dqi_queue_check(const dq_iface *i, const dq_queue_conf *conf, dq_diag *diag) {
    if (conf->n_regions > DQ_MAX_SEGS || conf->batch_size == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "queue %s: needs a batch_size, and at most %d memory regions", conf->name,
                        DQ_MAX_SEGS);
    if (conf->n_regions == 0 && !i->ops->no_regions)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: engine %s needs memory regions for it",
                        conf->name, i->ops->name);
    return DQ_OK;
}

void dqi_queue_init(dq_queue *q, dq_iface *i, const dq_queue_conf *conf) {
    q->conf = *conf;
    q->session = i->session;
    q->iface = i;
    q->rx.immediate = i->ops->payload || conf->direct;
    q->rx.stamping = dqi_virtual(i->session) ? DQ_STAMPS_VIRTUAL : DQ_STAMPS_SOFTWARE;
    atomic_init(&q->tx.pace.bps, conf->pacing_mbps * 1e6);
}

int dqi_queue_place(const dq_iface *i, const dq_queue_conf *conf, dq_diag *diag) {
    if ((conf->dir == DQ_RX ? i->n_rx : i->n_tx) < DQ_MAX_QUEUES) return DQ_OK;
    return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE,
                    "queue %s: interface %s has or had %d queues with other ids, the limit", conf->name,
                    i->conf.name, DQ_MAX_QUEUES);
}

void dqi_queue_list(dq_queue *q) {
    dq_iface *i = q->iface;
    bool rx = q->conf.dir == DQ_RX;
    uint32_t n = rx ? i->n_rx : i->n_tx;
    (rx ? i->rx : i->tx)[n] = q;
    *(rx ? &i->n_rx : &i->n_tx) = n + 1;
}

int dq_queue_add(dq_iface *i, const dq_queue_conf *conf, dq_queue **out, dq_diag *diag) {
    if (i->session->state != DQI_NEW)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: the session is open already", conf->name);
    int err = dqi_queue_place(i, conf, diag);
    if (err == DQ_OK) err = dqi_queue_check(i, conf, diag);
    if (err != DQ_OK) return err;
    dq_queue *q = calloc(1, sizeof *q);
    if (!q) return dqi_fail(diag, DQ_ESYS - ENOMEM, "queue %s: no memory", conf->name);
    dqi_queue_init(q, i, conf);
    dqi_queue_list(q);
    *out = q;
    return DQ_OK;
}

// ---- iteration over queues --------------------------------------------------------------------------------

// Returns the k-th queue of the session, for each interface transmit before receive queues, then those of
// stages; NULL past the end. Deleted ones are among them.
static dq_queue *queue_at(const dq_session *s, uint32_t k) {
    for (uint32_t i = 0; i < s->n_ifaces; i++) {
        const dq_iface *f = s->ifaces[i];
        if (k < f->n_tx) return f->tx[k];
        k -= f->n_tx;
        if (k < f->n_rx) return f->rx[k];
        k -= f->n_rx;
    }
    return k < atomic_load(&s->n_stage_queues) ? s->stage_queues[k] : NULL;
}

// Like queue_at, without deleted queues: advances *k to the next other one.
static dq_queue *live_at(const dq_session *s, uint32_t *k) {
    dq_queue *q;
    while ((q = queue_at(s, *k)) != NULL && dqi_queue_gone(q))
        ++*k;
    return q;
}

// ---- open -------------------------------------------------------------------------------------------------

// Returns the number of bursts of a queue. One that delivers immediately uses few of a burst's places (a
// socket under light load: one), and so needs more bursts for as many packets; unused ones cost no memory.
static uint32_t descriptors(const dq_queue *q) {
    if (q->conf.dir == DQ_TX) return q->session->core.conf.tx_meta_buffers;
    return q->session->core.conf.rx_meta_buffers * (q->rx.immediate && q->conf.timeout_us == 0 ? 16 : 1);
}

// Checks that the engine can access the queue's regions, and that headers are readable.
static int check_regions(const dq_queue *q, dq_diag *diag) {
    const dqi_engine_ops *ops = q->iface->ops;
    for (uint32_t k = 0; k < q->conf.n_regions; k++) {
        const dq_region *r = q->conf.regions[k];
        if (r->cpu) continue;
        if (!ops->reaches_device_only && r->conf.kind != DQ_KIND_DEVICE)
            return dqi_fail(diag, DQ_NOT_SUPPORTED,
                            "queue %s: engine %s can't reach region %s, which the CPU can't read: hint: a "
                            "region of kind host or huge",
                            q->conf.name, ops->name, r->conf.name);
        if (k == 0 && !r->whole)
            return dqi_fail(diag, DQ_NOT_SUPPORTED,
                            "queue %s: the CPU reads headers, and can't in region %s: hint: name a region of "
                            "kind host before it, into whose buffers they fit",
                            q->conf.name, r->conf.name);
    }
    return DQ_OK;
}

// Makes the counts that a queue keeps for the session's life. Returns false without memory.
static bool open_counts(dq_queue *q) {
    const dqi_engine_ops *ops = q->iface->ops;
    if (q->conf.dir == DQ_TX) {
        if (!q->tx.timing) q->tx.timing = dqi_tx_accuracy_new(q->session->core.picks_cap);
        return q->tx.timing != NULL;
    }
    if (!q->rx.sizes) q->rx.sizes = calloc(1, sizeof *q->rx.sizes);
    if (ops->flows && !q->rx.flow_counts) q->rx.flow_counts = dqi_flow_counts_new();
    if (ops->payload && !q->rx.peer_counts) q->rx.peer_counts = dqi_peer_counts_new();
    return q->rx.sizes && (q->rx.flow_counts || !ops->flows) && (q->rx.peer_counts || !ops->payload);
}

int dqi_queue_open(dq_queue *q, dq_diag *diag) {
    bool rx = q->conf.dir == DQ_RX;
    uint32_t n = descriptors(q);
    int err = check_regions(q, diag);
    bool regions = q->conf.n_regions > 0;
    if (err != DQ_OK) return err;
    q->device_only = (uint8_t)dqi_device_only(q->conf.regions, q->conf.n_regions);
    q->heads = regions && q->conf.regions[0]->whole;
    if (regions) q->bursts = dqi_burst_pool_new(q->session, n, q->conf.batch_size, q->conf.n_regions);
    bool ok = (q->bursts || !regions) && (rx || dqi_ring_init(&q->tx.ring, n));
    bool packs = q->iface->ops->copies, leaves = packs || q->iface->ops->leaves;
    // What an application's own memory has from an earlier packet may have been overwritten by it.
    leaves &= regions && !q->session->core.open && !q->conf.regions[0]->bound;
    if (ok && !rx && leaves && dqi_region_uses(q->session, q->conf.regions[0], NULL) == 1) {
        if (packs) dqi_region_ascend(q->conf.regions[0]);
        q->tx.stamped.packs = packs;
        q->tx.stamped.first = q->conf.regions[0]->first_id;
        q->tx.stamped.places = calloc(q->conf.regions[0]->conf.num_bufs, sizeof *q->tx.stamped.places);
        ok = q->tx.stamped.places != NULL;
    }
    ok = ok && open_counts(q);
    if (!ok)
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "queue %s: no memory for %u bursts of %u packets",
                        q->conf.name, n, q->conf.batch_size);
    return rx && regions && q->iface->ops->payload ? dqi_region_keep_peers(q->conf.regions[0], diag) : DQ_OK;
}

static int picks_open(dq_session *s, dq_diag *diag) {
    dq_queue *q;
    uint32_t nseg = 1;
    for (uint32_t k = 0; (q = queue_at(s, k)) != NULL; k++) {
        if (q->conf.batch_size > s->core.picks_cap) s->core.picks_cap = q->conf.batch_size;
        if (q->conf.n_regions > nseg) nseg = q->conf.n_regions;
    }
    s->core.picks = dqi_burst_pool_new(s, PICKS, s->core.picks_cap ? s->core.picks_cap : 1, nseg);
    s->core.picks_segs = nseg;
    return s->core.picks ? DQ_OK : dqi_fail(diag, DQ_ESYS - ENOMEM, "session: no memory for selections");
}

// Whether the session receives packets that are lost if they wait.
static bool hurried(const dq_session *s) {
    for (uint32_t k = 0; k < s->n_ifaces; k++) {
        const dq_iface *i = s->ifaces[k];
        if (i->n_rx > 0 && !i->ops->waits && i->conf.socket.proto != DQ_PROTO_TCP) return true;
    }
    return false;
}

typedef struct gpu_trial {
    const dq_queue *q;
    uint32_t seg;
} gpu_trial;

static bool try_gpu(void *arg, uint8_t *at, uint64_t bytes, dq_diag *why) {
    const gpu_trial *t = arg;
    return t->q->iface->ops->reaches_gpu(t->q->iface, t->q, t->seg, at, bytes, why);
}

// Whether the queue's device can place its segment in the GPU's memory; false: why has the reason.
static bool reaches_gpu(const dq_queue *q, uint32_t seg, dq_diag *why) {
    const dq_region *r = q->conf.regions[seg];
    gpu_trial t = {q, seg};
    char what[DQ_NAME_LEN + 32];
    snprintf(what, sizeof what, "queue %s", q->conf.name);
    if (q->conf.dir == DQ_TX || !q->iface->ops->reaches_gpu)
        dqi_fail(why, DQ_NOT_SUPPORTED, "engine %s of queue %s reaches no GPU", q->iface->ops->name,
                 q->conf.name);
    else if (seg == 0 && q->conf.n_regions > 1)
        dqi_fail(why, DQ_NOT_SUPPORTED,
                 "queue %s has headers in it, which the CPU reads, and payloads elsewhere (a region of kind "
                 "host before it takes headers; alone it takes packets whole)",
                 q->conf.name);
    else if (dqi_region_uses(q->session, r, NULL) > 1)
        dqi_fail(why, DQ_NOT_SUPPORTED, "queue %s is not the only one that has it", q->conf.name);
    else
        return dqi_cuda_try(r->conf.gpu, what, try_gpu, &t, why);
    return false;
}

// Allocates regions of kind device that no queue's device can write to as pinned host memory, which kernels
// access in place.
static void pin_regions(dq_session *s) {
    dq_queue *q;
    for (uint32_t k = 0; k < s->n_ifaces; k++)
        if (s->ifaces[k]->conf.joined) s->ifaces[k]->conf.joined->headroom = DQ_HEADROOM;
    for (uint32_t k = 0; (q = queue_at(s, k)) != NULL; k++)
        for (uint32_t n = 0; n < q->conf.n_regions; n++) {
            dq_region *r = q->conf.regions[n];
            r->headroom = DQ_HEADROOM;
            if (r->conf.kind != DQ_KIND_DEVICE || r->cpu) continue;
            dq_diag why = {{0}};
            r->nic = reaches_gpu(q, n, &why);
            r->cpu = !r->nic;
            r->whole = r->nic && n == 0;
            s->core.heads |= r->whole;
            if (!r->cpu) continue;
            dqi_note(
                s,
                "memory region %s: device: %s: its buffers lie in pinned host memory, where kernels read "
                "and write them in place",
                r->conf.name, why.text);
        }
}

// Determines where regions lie and what else engines need; returns the alignment of buffers.
static uint32_t plan_regions(dq_session *s) {
    uint32_t align = DQI_MIN_ALIGN;
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        if (s->ifaces[i]->ops->align > align) align = s->ifaces[i]->ops->align;
    for (uint32_t i = 0; i < s->n_ifaces; i++) {
        s->core.origins |= s->ifaces[i]->ops->origins;
        s->core.imms |= s->ifaces[i]->ops->carries_imm != NULL;
    }
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        if (s->ifaces[i]->ops->claim) s->ifaces[i]->ops->claim(s->ifaces[i]);
    pin_regions(s);
    dqi_cuda_share_regions(s);
    return align;
}

int dq_session_measure(dq_session *s, dq_diag *diag) {
    if (s->state != DQI_NEW || s->core.base)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "session: opened before");
    return dqi_arena_measure(s, plan_regions(s), diag);
}

int dq_session_open(dq_session *s, dq_diag *diag) {
    if (s->state != DQI_NEW || s->core.base)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "session: opened before");
    int err = dqi_arena_open(s, plan_regions(s), diag);
    if (err == DQ_OK && hurried(s)) err = dqi_arena_touch(s, diag);
    if (err == DQ_OK) err = dqi_cuda_open_regions(s, diag);
    if (err == DQ_OK) err = picks_open(s, diag);
    dq_queue *q;
    for (uint32_t k = 0; err == DQ_OK && (q = queue_at(s, k)) != NULL; k++)
        err = dqi_queue_open(q, diag);
    for (uint32_t i = 0; err == DQ_OK && i < s->n_ifaces; i++)
        err = s->ifaces[i]->ops->open(s->ifaces[i], diag);
    if (err != DQ_OK) return err;
    s->core.open = true;
    s->state = DQI_OPEN;
    return DQ_OK;
}

// ---- start ------------------------------------------------------------------------------------------------

// Returns the worker that is to serve q: that of its core, one without queues, or a new one; NULL: there is
// none, and *err and diag have the reason.
static dqi_poller *worker_for(dq_session *s, const dq_queue *q, int *err, dq_diag *diag) {
    for (uint32_t i = 0; q->conf.core >= 0 && i < s->n_workers; i++)
        if (s->workers[i]->core == q->conf.core) return s->workers[i];
    for (uint32_t i = 0; i < s->n_workers; i++)
        if (!s->workers[i]->running && s->workers[i]->n == 0 && s->workers[i]->n_stages == 0) {
            s->workers[i]->core = q->conf.core;
            return s->workers[i];
        }
    *err = DQ_NO_SPACE_AVAILABLE;
    if (s->n_workers == DQI_MAX_WORKERS) {
        dqi_fail(diag, *err, "queue %s: more than %d workers", q->conf.name, DQI_MAX_WORKERS);
        return NULL;
    }
    dqi_poller *p = calloc(1, sizeof *p);
    *err = p ? dqi_poller_init(p, s) : DQ_ESYS - ENOMEM;
    if (*err != DQ_OK) {
        dqi_fail(diag, *err, "queue %s: its worker: %s", q->conf.name, dq_err_name(*err));
        free(p);
        return NULL;
    }
    p->core = q->conf.core;
    return s->workers[s->n_workers++] = p;
}

int dqi_queue_assign(dq_queue *q, dqi_poller **fresh, dq_diag *diag) {
    int err = DQ_OK;
    dqi_poller *p = worker_for(q->session, q, &err, diag);
    if (!p) return err;
    dqi_poller_hold(p);
    err = dqi_poller_add(p, q);
    dqi_poller_release(p);
    *fresh = p->running ? NULL : p;
    return err == DQ_OK ? DQ_OK : dqi_fail(diag, err, "queue %s: no memory for its worker", q->conf.name);
}

int dq_session_start(dq_session *s, dq_diag *diag) {
    if (s->state != DQI_OPEN)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "session: not open, or started before");
    int err = DQ_OK;
    dq_queue *q;
    dqi_poller *fresh; // all workers are started below
    for (uint32_t k = 0; err == DQ_OK && !dqi_virtual(s) && (q = live_at(s, &k)) != NULL; k++)
        if (!q->conf.direct && !q->owner) err = dqi_queue_assign(q, &fresh, diag);
    for (uint32_t i = 0; err == DQ_OK && i < s->n_ifaces; i++)
        if (s->ifaces[i]->ops->start) err = s->ifaces[i]->ops->start(s->ifaces[i], diag);
    for (uint32_t i = 0; err == DQ_OK && i < atomic_load(&s->n_stages); i++)
        if (s->stages[i]->ops->start) err = s->stages[i]->ops->start(s->stages[i], diag);
    s->state = DQI_STARTED; // so that the stop also ends a partial start
    for (uint32_t i = 0; err == DQ_OK && i < s->n_workers; i++)
        err = dqi_worker_start(s->workers[i], diag);
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
        dqi_queue_kick(q); // tasks may be sleeping in dq_wait
    return err;
}

// ---- virtual clock ----------------------------------------------------------------------------------------

static bool has_worker(const dq_queue *q) { return q->poller && q->poller->running; }

// Polls the stages without a worker.
static int poll_stages(dq_session *s) {
    int work = 0;
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++) {
        dq_stage *st = s->stages[i];
        bool served = !dqi_virtual(s) && (st->threaded || (st->source && has_worker(st->source)));
        if (st->ops->poll && !served) work += dqi_stage_poll(st) > 0;
    }
    return work;
}

int dq_step(dq_session *s) {
    int work = 0;
    dq_queue *q;
    if (s->state != DQI_STARTED) return 0;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
        work += dqi_queue_poll(q) > 0;
    return work + poll_stages(s);
}

// Returns the earliest time at which a queue or a stage of this session has work.
static int64_t next_time(const dq_session *s) {
    int64_t soonest = INT64_MAX;
    dq_queue *q;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
        if (q->next_ns < soonest) soonest = q->next_ns;
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++)
        if (s->stages[i]->next_ns < soonest) soonest = s->stages[i]->next_ns;
    return soonest;
}

int64_t dq_next_time(const dq_session *s) { return s->state == DQI_STARTED ? next_time(s) : INT64_MAX; }

// ---- stop -------------------------------------------------------------------------------------------------

static void end_workers(dq_session *s) {
    for (uint32_t i = 0; i < s->n_workers; i++)
        dqi_worker_stop(s->workers[i]);
}

// Returns the packets waiting to be sent.
static uint64_t unsent(const dq_session *s) {
    uint64_t n = 0;
    dq_queue *q;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
        if (q->conf.dir == DQ_TX) n += (uint64_t)dqi_gauge_get(&q->held);
    return n;
}

// Polls queues and stages without a worker; returns the work done.
static int poll_unserved(dq_session *s) {
    int work = 0;
    dq_queue *q;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
        if (!has_worker(q)) work += dqi_queue_poll(q);
    return work + poll_stages(s);
}

// Advances time to the next known event, at most to `until`; false when that is reached.
static bool pass_time(dq_session *s, int64_t until) {
    int64_t now = dq_now(s);
    if (now >= until) return false;
    if (dqi_virtual(s)) {
        int64_t next = next_time(s);
        if (next > until) return false;
        dq_advance(s, next > now ? next : now + 1000);
        return true;
    }
    struct timespec t = {.tv_nsec = 50000};
    nanosleep(&t, NULL);
    return true;
}

// Returns the packets of queues without a worker that wait for space in a tap, which only the caller can
// free.
static uint64_t stalled(const dq_session *s) {
    uint64_t n = 0;
    dq_queue *q;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
        if (!has_worker(q) && q->conf.dir == DQ_RX && q->rx.dispatch.active)
            n += (uint64_t)dqi_gauge_get(&q->held);
    return n;
}

// Returns the session time until which queues are polled: a forwarding loop of queues never becomes idle.
// Virtual time needs no limit.
static int64_t patience(const dq_session *s, int64_t until) {
    int64_t least = dq_now(s) + SETTLE_NS;
    if (dqi_virtual(s)) return INT64_MAX;
    return until > least ? until : least;
}

// Returns the packets in stages of a kind: taps or writers.
static uint64_t in_stages(const dq_session *s, int kind) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++) {
        const dq_stage *st = s->stages[i];
        if (st->ops->line_kind == kind && st->ops->held) n += st->ops->held(st);
    }
    return n;
}

// Returns the packets that wait for the caller to serve taps. On the virtual clock, taps alone do not block
// the stop.
static uint64_t for_caller(const dq_session *s) {
    return stalled(s) + (dqi_virtual(s) ? 0 : in_stages(s, DQ_LINE_TAP));
}

// Sends the queued packets; returns those that wait for the caller first.
static uint64_t drain_tx(dq_session *s, int64_t until) {
    int64_t limit = patience(s, until);
    while (unsent(s) > 0 && dq_now(s) < limit) {
        if (poll_unserved(s) > 0) continue;
        if (for_caller(s) > 0) return dq_now(s) < until ? for_caller(s) : 0;
        if (!pass_time(s, until)) break;
    }
    return 0;
}

// Waits for packets that left through the kernel and may return to this session.
static void let_arrive(dq_session *s) {
    bool sent = false;
    dq_queue *q;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL && !sent; k++)
        sent = q->conf.dir == DQ_TX && !q->iface->ops->virtual_clock && dqi_get(&q->c.out) > 0;
    int64_t until = dq_now(s) + DQI_ON_WAY_NS;
    while (sent && dq_now(s) < until)
        if (poll_unserved(s) == 0) pass_time(s, until);
}

// Whether a receive queue is blocked by empty pools.
static bool short_of_room(const dq_session *s) {
    bool is = false;
    dq_queue *q;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL && !is; k++)
        is = q->conf.dir == DQ_RX && q->rx.blocked && !q->rx.dispatch.active && !dqi_virtual(s);
    return is;
}

// Receives packets still in flight; packets circulating in a forwarding loop are dropped at the finish.
// Workers have ended, so all queues are polled here. Returns the packets that wait for the caller to serve
// taps.
static uint64_t settle(dq_session *s, int64_t until) {
    int64_t limit = patience(s, until);
    while (dq_now(s) < limit) {
        if (poll_unserved(s) > 0) continue;
        int64_t next = next_time(s);
        if (stalled(s) > 0 || next == INT64_MAX || next > until) break;
        bool room = short_of_room(s); // taps or writers free it
        if ((room || unsent(s) > 0) && for_caller(s) > 0) return for_caller(s);
        if (room && unsent(s) == 0 && in_stages(s, DQ_LINE_WRITER) == 0) break;
        if (!pass_time(s, until)) break;
    }
    return stalled(s);
}

// Drains stages that wait for more packets; their output passes on through the pipes.
static bool drain_stages(dq_session *s) {
    uint64_t n = 0;
    for (uint32_t i = 0; i < atomic_load(&s->n_stages) && n == 0; i++)
        if (s->stages[i]->ops->drain) n = s->stages[i]->ops->drain(s->stages[i]);
    return n > 0;
}

// Ends transmissions; queued packets are still sent.
static void end_generation(dq_session *s) {
    dq_queue *q;
    s->ending = true;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
        if (q->conf.dir == DQ_TX) dq_tx_transmit(q, NULL, 0);
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        dqi_responder_stop(s->ifaces[i]);
}

int64_t dqi_stop_wait(const dq_session *s) {
    int64_t t;
    while ((t = atomic_load_explicit(&s->stop_ns, memory_order_acquire)) == DQI_STOP_NOW)
        dqi_yield();
    return t;
}

// All queues stop at one moment. A poller that sees no stop after receiving a packet received it before the
// clock was read here; one that sees it waits until all interfaces have recorded their positions.
static void end_receiving(dq_session *s) {
    pthread_mutex_lock(&s->control); // the kernel's counters, final from here on, have one reader
    atomic_exchange(&s->stop_ns, DQI_STOP_NOW);
    int64_t now = dq_now(s);
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        s->ifaces[i]->ops->stop(s->ifaces[i]);
    atomic_store(&s->stop_ns, now);
    pthread_mutex_unlock(&s->control);
}

// Returns the time of the end of reception, or of the last transmit poll if that is later.
static int64_t last_time(const dq_session *s) {
    int64_t t = dqi_stop_time(s);
    dq_queue *q;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
        if (q->conf.dir == DQ_TX && q->tx.now_ns > t) t = q->tx.now_ns;
    return t;
}

uint64_t dq_session_stop(dq_session *s, int64_t drain_ns) {
    if (s->state != DQI_STARTED && s->state != DQI_STOPPED) return 0;
    int64_t until = dq_now(s) + drain_ns;
    uint64_t waits;
    dq_queue *q;
    if (s->state == DQI_STARTED) {
        if (!s->ending) {
            end_generation(s);
            s->drain_until = until;
        }
        waits = drain_tx(s, until < s->drain_until ? until : s->drain_until);
        if (waits > 0) return waits;
        let_arrive(s);
        end_receiving(s);
        end_workers(s);
        s->state = DQI_STOPPED;
        for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++)
            atomic_store(&q->stopping, 1);
    }
    int64_t arrived = dqi_virtual(s) ? until : dqi_stop_time(s) + DQI_ON_WAY_NS;
    if (until < arrived) until = arrived;
    do
        waits = settle(s, until);
    while (waits == 0 && drain_stages(s));
    s->quiesced_ns = last_time(s);
    return waits;
}

int64_t dq_session_quiesced(const dq_session *s) { return s->quiesced_ns; }

// Drops the packets in queues and engines, counted as stopped. Pollers have ended.
static void drop_rest(dq_session *s) {
    dq_queue *q;
    for (uint32_t k = 0; (q = live_at(s, &k)) != NULL; k++) {
        if (q->conf.dir == DQ_RX) {
            if (q->iface->ops->flush) q->iface->ops->flush(q);
            dqi_rx_drop_rest(q);
        } else {
            dqi_tx_drop_rest(q);
            if (q->iface->ops->drop_rest) q->iface->ops->drop_rest(q);
        }
    }
}

void dq_session_finish(dq_session *s) {
    if (s->state == DQI_STARTED) dq_session_stop(s, 0);
    if (s->state != DQI_STOPPED) return;
    drop_rest(s);
    dqi_stages_finish(s);
    s->state = DQI_FINISHED;
}

// ---- close ------------------------------------------------------------------------------------------------

void dqi_queue_free(dq_queue *q) {
    if (q->poller) dqi_poller_remove(q->poller, q);
    dqi_rx_drop_rest(q);
    if (q->tx.ring.slots) dqi_tx_drop_rest(q);
    dq_template_unref(q->tx.gen);
    q->tx.gen = NULL;
    free(q->tx.stamped.places);
    q->tx.stamped.places = NULL;
    dqi_tx_accuracy_free(q->tx.timing);
    dqi_tx_gpu_free(q);
    q->tx.timing = NULL;
    dqi_flow_counts_free(q->rx.flow_counts);
    q->rx.flow_counts = NULL;
    dqi_peer_counts_free(q->rx.peer_counts);
    q->rx.peer_counts = NULL;
    free(q->rx.sizes);
    q->rx.sizes = NULL;
    dqi_ring_free(&q->tx.ring);
    dqi_pipes_free(q);
}

static void close_engines(dq_session *s) {
    pthread_mutex_lock(&s->engines);
    s->closed = true;
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        if (s->ifaces[i]->engine) s->ifaces[i]->ops->close(s->ifaces[i]);
    pthread_mutex_unlock(&s->engines);
}

uint64_t dq_session_close(dq_session *s) {
    if (!s) return 0;
    dq_session_finish(s);
    end_workers(s);
    if (s->state == DQI_OPEN) drop_rest(s); // never started: packets are dropped before the engines close
    dq_queue *q;
    if (dqi_session_abandoned(s)) { // the abandoned stage may use all but the engines
        for (uint32_t k = 0; (q = queue_at(s, k)) != NULL; k++)
            if (q->poller) dqi_poller_remove(q->poller, q);
        close_engines(s);
        dqi_arena_detach(s);
        return 0;
    }
    for (uint32_t k = 0; (q = queue_at(s, k)) != NULL; k++)
        dqi_queue_free(q);
    close_engines(s);
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++) {
        if (s->stages[i]->ops->free) s->stages[i]->ops->free(s->stages[i]);
        free(s->stages[i]);
    }
    while (atomic_load(&s->n_stage_queues) > 0)
        dqi_stage_queue_free(s->stage_queues[0]);
    for (uint32_t k = 0; (q = queue_at(s, k)) != NULL; k++)
        dqi_burst_pool_free(q->bursts);
    dqi_burst_pool_free(s->core.picks);
    for (uint32_t i = 0; i < s->n_workers; i++) {
        dqi_poller_close(s->workers[i]);
        free(s->workers[i]);
    }
    for (uint32_t i = 0; i < s->n_ifaces; i++) {
        dq_iface *f = s->ifaces[i];
        for (uint32_t k = 0; k < f->n_rx; k++)
            free(f->rx[k]);
        for (uint32_t k = 0; k < f->n_tx; k++)
            free(f->tx[k]);
        dqi_iface_free(f);
    }
    dqi_cuda_close_regions(s);
    uint64_t missing = dqi_arena_close(s);
    dqi_notes_free(&s->core);
    pthread_mutex_destroy(&s->control);
    pthread_mutex_destroy(&s->engines);
    free(s);
    return missing;
}
