// resources.c: queues that join and leave an open session, beside the traffic of the others.
//
// Pollers read the lists of queues without a lock. So a queue keeps its place and its memory for the
// session's life: a deletion marks it, waits until the polls that may have seen it alive have ended, and
// takes it from its poller. The next queue of its id continues it, with its counters.
#include "core/burst.h"
#include "core/err.h"
#include "core/region.h"
#include "pipeline/actions.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/poller.h"
#include "pipeline/queue.h"
#include "pipeline/resources/dq_resources.h"
#include "pipeline/session.h"
#include "pipeline/stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool runs(const dq_session *s) { return s->state == DQI_STARTED && !dqi_virtual(s); }

// Writes the names of the engines that open queues while they run.
static const char *able(char *names, size_t size) {
    size_t n = 0;
    names[0] = 0;
    for (const dqi_engine_ops *const *e = dqi_engines; *e && n < size; e++)
        if ((*e)->queue_open)
            n += (size_t)snprintf(names + n, size - n, "%s%s", n > 0 ? ", " : "", (*e)->name);
    return names;
}

static int unable(const dq_iface *i, dq_diag *diag) {
    char names[128];
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "interface %s: engine %s can't change its queues while the session is open; hint: engines "
        "that can: %s",
        i->conf.name, i->ops->name, able(names, sizeof names));
}

// ---- waiting for pollers ----------------------------------------------------------------------------------

static void pass_tasks(dq_iface *i) {
    for (uint32_t d = 0; d < i->n_rx + i->n_tx; d++) {
        dqi_poller *p = (d < i->n_rx ? i->rx[d] : i->tx[d - i->n_rx])->poller;
        if (p && !p->own_thread) dqi_poller_pass(p);
    }
}

// Waits until all polls that have begun have ended: none of them uses what was loaded before the call.
static void pass_polls(dq_session *s) {
    if (!runs(s)) return;
    for (uint32_t k = 0; k < s->n_workers; k++)
        if (s->workers[k]->running) dqi_poller_pass(s->workers[k]);
    for (uint32_t k = 0; k < s->n_ifaces; k++)
        pass_tasks(s->ifaces[k]);
}

// Takes q from its poller, and ends a worker that has nothing left to poll.
static void unpoll(dq_queue *q) {
    dqi_poller *p = q->poller;
    if (!p) return;
    dqi_poller_hold(p);
    dqi_poller_remove(p, q);
    dqi_poller_release(p);
    if (p->own_thread && p->n == 0 && p->n_stages == 0) dqi_worker_stop(p);
}

// ---- joining ----------------------------------------------------------------------------------------------

static int check_regions(const dq_queue_conf *conf, dq_diag *diag) {
    for (uint32_t k = 0; k < conf->n_regions; k++) {
        const dq_region *r = conf->regions[k];
        if (atomic_load(&r->gone))
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: its memory region %u was deleted",
                            conf->name, k + 1);
        if (!r->cpu)
            return dqi_fail(diag, DQ_NOT_SUPPORTED,
                            "queue %s: region %s lies in device memory, which queues of the configuration "
                            "alone can use",
                            conf->name, r->conf.name);
        if (r->across)
            return dqi_fail(
                diag, DQ_NOT_SUPPORTED,
                "queue %s: region %s has the super-buffers of a UDP receive queue; hint: a region of "
                "its own (s:add_region)",
                conf->name, r->conf.name);
    }
    return DQ_OK;
}

static int check(const dq_iface *i, const dq_queue_conf *conf, dq_diag *diag) {
    const dq_session *s = i->session;
    if (s->ending || (s->state != DQI_OPEN && s->state != DQI_STARTED))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: the session is not open, or is ending",
                        conf->name);
    if (!i->ops->queue_open) return unable(i, diag);
    if (conf->id >= DQ_MAX_QUEUES)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: id %u is not a valid id (expected 0 to %d)",
                        conf->name, conf->id, DQ_MAX_QUEUES - 1);
    int err = dqi_queue_check(i, conf, diag);
    if (err != DQ_OK) return err;
    if (conf->batch_size > s->core.picks_cap || conf->n_regions > s->core.picks_segs)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "queue %s: batch_size %u and %u memory regions: at most %u and %u, the largest of the "
            "configuration's queues",
            conf->name, conf->batch_size, conf->n_regions, s->core.picks_cap, s->core.picks_segs);
    return check_regions(conf, diag);
}

// Finds the deleted queue of this id; *out NULL: there was none.
static int find_place(const dq_iface *i, const dq_queue_conf *conf, dq_queue **out, dq_diag *diag) {
    bool rx = conf->dir == DQ_RX;
    uint32_t n = rx ? i->n_rx : i->n_tx;
    *out = NULL;
    for (uint32_t k = 0; k < n; k++) {
        dq_queue *q = rx ? i->rx[k] : i->tx[k];
        bool same_id = q->conf.id == conf->id, same_name = strcmp(q->conf.name, conf->name) == 0;
        if (dqi_queue_gone(q) && same_id && !same_name)
            return dqi_fail(
                diag, DQ_INVALID_PARAMETER,
                "queue %s: id %u counts packets of the deleted queue %s: hint: its name, or another "
                "id",
                conf->name, conf->id, q->conf.name);
        if (dqi_queue_gone(q) && same_id) *out = q;
        if (!dqi_queue_gone(q) && (same_id || same_name))
            return dqi_fail(diag, DQ_ALREADY_EXISTS, "queue %s: interface %s has queue %s with id %u%s",
                            conf->name, i->conf.name, q->conf.name, q->conf.id,
                            dqi_queue_alive(q) ? "" : ", which is being deleted");
    }
    return *out ? DQ_OK : dqi_queue_place(i, conf, diag);
}

// Frees what a deleted queue had for its old configuration. No thread polls it.
static void strip(dq_queue *q) {
    dqi_burst_pool_free(q->bursts);
    q->bursts = NULL;
    free(q->tx.stamped.places);
    q->tx.stamped.places = NULL;
    dqi_ring_free(&q->tx.ring);
    q->tx.pace = (dqi_pace){0};
    q->next_ns = 0;
}

static void share_regions(const dq_queue_conf *conf, const dq_session *s) {
    for (uint32_t k = 0; k < conf->n_regions; k++)
        dqi_tx_share_region(s, conf->regions[k]);
}

// Has the queue polled.
static int serve(dq_queue *q, dq_diag *diag) {
    dqi_poller *fresh = NULL;
    if (!runs(q->session) || q->conf.direct) return DQ_OK;
    int err = dqi_queue_assign(q, &fresh, diag);
    if (err == DQ_OK && fresh) err = dqi_worker_start(fresh, diag);
    if (err != DQ_OK) unpoll(q);
    return err;
}

// Opens q with conf; its life is still DQI_QUEUE_GONE.
static int open_as(dq_queue *q, dq_iface *i, const dq_queue_conf *conf, dq_diag *diag) {
    pthread_mutex_lock(&i->session->control);
    strip(q);
    dqi_queue_init(q, i, conf);
    int err = dqi_queue_open(q, diag);
    if (err == DQ_OK) err = i->ops->queue_open(q, diag);
    atomic_store(&q->rx.lead, dqi_rx_actions_lead(i));
    pthread_mutex_unlock(&i->session->control);
    return err == DQ_OK ? serve(q, diag) : err;
}

// Frees a new queue whose engine did not open it.
static void discard(dq_queue *q) {
    dqi_queue_free(q);
    dqi_burst_pool_free(q->bursts);
    free(q);
}

int dq_queue_join(dq_iface *i, const dq_queue_conf *conf, dq_queue **out, dq_diag *diag) {
    dq_queue *old, *q;
    int err = check(i, conf, diag);
    if (err == DQ_OK) err = find_place(i, conf, &old, diag);
    if (err != DQ_OK) return err;
    q = old ? old : calloc(1, sizeof *q);
    if (!q) return dqi_fail(diag, DQ_ESYS - ENOMEM, "queue %s: no memory", conf->name);
    atomic_store(&q->life, DQI_QUEUE_GONE);
    share_regions(conf, i->session);
    err = open_as(q, i, conf, diag);
    if (err != DQ_OK && !old && !q->engine) {
        discard(q);
        return err;
    }
    pthread_mutex_lock(&i->session->control);
    if (!old) dqi_queue_list(q);
    if (err == DQ_OK) atomic_store(&q->life, DQI_QUEUE_ALIVE);
    pthread_mutex_unlock(&i->session->control);
    if (err == DQ_OK) *out = q;
    return err;
}

// ---- leaving ----------------------------------------------------------------------------------------------

// Returns a stage that the queue's poller has to poll; NULL: none.
static const dq_stage *polled_with(const dq_queue *q) {
    const dq_session *s = q->session;
    for (uint32_t k = 0; k < atomic_load(&s->n_stages); k++) {
        const dq_stage *st = s->stages[k];
        if (st->source != q) continue;
        if (st->ops->poll) return st;
        for (uint32_t j = 0; j < atomic_load(&s->n_stage_queues); j++)
            if (s->stage_queues[j]->owner == st) return st;
    }
    return NULL;
}

static int in_use(const dq_queue *q, dq_diag *diag) {
    const dq_stage *st = polled_with(q);
    if (st)
        return dqi_fail(diag, DQ_RESOURCE_IN_USE,
                        "queue %s: its thread polls stage %s, whose first source it was", q->conf.name,
                        st->name);
    if (q->rx.n_pipes > 0 || q->rx.claim)
        return dqi_fail(diag, DQ_RESOURCE_IN_USE, "queue %s: a pipe reads it", q->conf.name);
    return DQ_OK;
}

// Lets the next queue that feeds them be the source of the stages that q has fed.
static void release_stages(const dq_queue *q) {
    const dq_session *s = q->session;
    for (uint32_t k = 0; k < atomic_load(&s->n_stages); k++)
        if (s->stages[k]->source == q) s->stages[k]->source = NULL;
}

int dq_queue_deletable(const dq_queue *q, dq_diag *diag) {
    const dqi_engine_ops *ops = q->iface->ops;
    if (!dqi_queue_alive(q))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: it was deleted before", q->conf.name);
    if (!ops->queue_open) return unable(q->iface, diag);
    return ops->queue_deletable ? ops->queue_deletable(q, diag) : DQ_OK;
}

int dq_queue_delete(dq_queue *q, dq_diag *diag) {
    int err = dq_queue_deletable(q, diag);
    if (err == DQ_OK) err = in_use(q, diag);
    if (err != DQ_OK) return err;
    release_stages(q);
    atomic_store(&q->life, DQI_QUEUE_DRAINING);
    if (q->conf.dir == DQ_TX) {
        dq_tx_transmit(q, NULL, 0);
        return DQ_OK;
    }
    pass_polls(q->session);
    dq_rx_flush(q);
    unpoll(q);
    dq_rx_flush(q); // what the last poll has received
    return DQ_OK;
}

// Whether nothing of the queue is in use.
static bool is_unused(dq_queue *q) {
    const dqi_engine_ops *ops = q->iface->ops;
    if (q->conf.dir == DQ_RX && dqi_queue_held(q) > 0) dq_rx_flush(q);
    bool empty = !ops->queue_empty || ops->queue_empty(q);
    return empty && dqi_queue_held(q) == 0 && (!q->bursts || dqi_burst_pool_whole(q->bursts));
}

bool dq_queue_leave(dq_queue *q) {
    if (dqi_queue_gone(q)) return true;
    if (dqi_queue_alive(q) || !is_unused(q)) return false;
    pass_polls(q->session);
    unpoll(q);
    if (!is_unused(q)) { // a sender was faster: its packets leave until the next call
        dq_diag later;
        if (q->conf.dir == DQ_TX) serve(q, &later);
        return false;
    }
    pthread_mutex_lock(&q->session->control);
    if (q->iface->ops->queue_close) q->iface->ops->queue_close(q);
    atomic_store(&q->life, DQI_QUEUE_GONE);
    pthread_mutex_unlock(&q->session->control);
    return true;
}

// ---- regions ----------------------------------------------------------------------------------------------

// Asks all interfaces whether r can be deleted, or a region be added (r NULL).
static int may_change(const dq_session *s, const dq_region *r, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t k = 0; k < s->n_ifaces && err == DQ_OK; k++) {
        const dqi_region_ops *ops = s->ifaces[k]->ops->regions;
        if (ops) err = ops->change(s->ifaces[k], r, diag);
    }
    return err;
}

// Ends the registrations of r with the first n interfaces.
static void unregister(dq_session *s, const dq_region *r, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        const dqi_region_ops *ops = s->ifaces[k]->ops->regions;
        if (ops && ops->leave) ops->leave(s->ifaces[k], r);
    }
}

int dq_session_region_join(dq_session *s, const dq_region_conf *conf, dqi_bound *bound, dq_region **out,
                           dq_diag *diag) {
    dq_region *r = NULL;
    uint32_t k = 0;
    int err = may_change(s, NULL, diag);
    if (err != DQ_OK && bound) bound->release(bound);
    if (err == DQ_OK) err = dq_region_join(s, conf, bound, &r, diag);
    if (err != DQ_OK) return err;
    for (; k < s->n_ifaces && err == DQ_OK; k++) {
        const dqi_region_ops *ops = s->ifaces[k]->ops->regions;
        if (ops && ops->join) err = ops->join(s->ifaces[k], r, diag);
    }
    if (err == DQ_OK) {
        *out = r;
    } else {
        unregister(s, r, k);
        dq_region_leave(r);
    }
    return err;
}

int dq_region_unused(const dq_session *s, const dq_region *r, dq_diag *diag) {
    const char *queue;
    if (dqi_region_uses(s, r, &queue) > 0)
        return dqi_fail(diag, DQ_RESOURCE_IN_USE, "region %s: queue %s uses it; hint: delete the queue first",
                        r->conf.name, queue);
    if (r->conf.kind != DQ_KIND_HOST && r->conf.kind != DQ_KIND_HUGE)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "region %s: memory of kind %s is freed with the session only",
                        r->conf.name, dq_kind_name(r->conf.kind));
    return may_change(s, r, diag);
}

bool dq_session_region_leave(dq_session *s, dq_region *r) {
    if (atomic_load(&r->gone)) return true;
    if (dqi_region_out(r) > 0) return false;
    unregister(s, r, s->n_ifaces);
    return dq_region_leave(r);
}
