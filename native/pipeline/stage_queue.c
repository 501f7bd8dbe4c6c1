// stage_queue.c: queues owned by stages, each with an interface that has only the stage's output.
#include "pipeline/stage_queue.h"
#include "core/burst.h"
#include "core/err.h"
#include "pipeline/iface.h"
#include "pipeline/poller.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct stage_queue {
    dq_queue queue;
    dq_iface iface; // not in the session's list: name and operations of the queue
    dqi_engine_ops ops;
} stage_queue;

static bool enlist(dq_session *s, dq_queue *q) {
    pthread_mutex_lock(&s->control);
    uint32_t n = atomic_load(&s->n_stage_queues);
    bool room = n < DQI_MAX_STAGE_QUEUES;
    if (room) {
        q->iface->index = DQI_MAX_IFACES + n;
        s->stage_queues[n] = q;
        atomic_store(&s->n_stage_queues, n + 1);
    }
    pthread_mutex_unlock(&s->control);
    return room;
}

int dqi_stage_queue_new(dq_session *s, const dqi_stage_queue_conf *conf, dq_queue **out, dq_diag *diag) {
    stage_queue *sq = calloc(1, sizeof *sq);
    dqi_burst_pool *bursts =
        dqi_burst_pool_new(s, conf->n_bursts, conf->queue.batch_size, conf->queue.n_regions);
    if (!sq || !bursts) {
        free(sq);
        dqi_burst_pool_free(bursts);
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "stage %s: no memory for %u bursts", conf->queue.name,
                        conf->n_bursts);
    }
    sq->ops = (dqi_engine_ops){.name = "stage",
                               .payload = conf->payload,
                               .waits = true,
                               .virtual_clock = true,
                               .wanted = conf->wanted,
                               .rx = conf->rx};
    sq->iface.session = s;
    sq->iface.ops = &sq->ops;
    sq->iface.n_rx = 1;
    sq->iface.rx[0] = &sq->queue;
    snprintf(sq->iface.conf.name, sizeof sq->iface.conf.name, "%s", conf->line);
    dq_queue *q = &sq->queue;
    q->conf = conf->queue;
    q->session = s;
    q->iface = &sq->iface;
    q->engine = conf->impl;
    q->bursts = bursts;
    q->rx.immediate = true;
    q->device_only = (uint8_t)dqi_device_only(q->conf.regions, q->conf.n_regions);
    q->rx.stamping = dqi_virtual(s) ? DQ_STAMPS_VIRTUAL : DQ_STAMPS_SOFTWARE;
    q->next_ns = INT64_MAX;
    *out = q;
    if (enlist(s, q)) return DQ_OK;
    dqi_burst_pool_free(bursts);
    free(sq);
    return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "stage %s: more than %d queues of stages", conf->queue.name,
                    DQI_MAX_STAGE_QUEUES);
}

void dqi_stage_queue_free(dq_queue *q) {
    dq_session *s = q->session;
    pthread_mutex_lock(&s->control);
    uint32_t n = atomic_load(&s->n_stage_queues);
    for (uint32_t i = 0; i < n; i++) {
        if (s->stage_queues[i] != q) continue;
        memmove(&s->stage_queues[i], &s->stage_queues[i + 1], (n - i - 1) * sizeof(dq_queue *));
        atomic_store(&s->n_stage_queues, n - 1);
        break;
    }
    pthread_mutex_unlock(&s->control);
    dqi_burst_pool_free(q->bursts);
    free(q);
}

void dq_stage_queue_holds(dq_queue *q, bool payloads) { ((stage_queue *)q)->ops.payload = payloads; }

void dqi_stage_queue_own(dq_stage *st, dq_queue *q) { q->owner = st; }

int dqi_stage_feed(dq_stage *st, dq_queue *q, dq_diag *diag) {
    if (st->source) return DQ_OK;
    st->source = q;
    const dq_session *s = st->session;
    for (uint32_t i = 0; i < atomic_load(&s->n_stage_queues); i++)
        if (s->stage_queues[i]->owner == st) s->stage_queues[i]->conf.direct = q->conf.direct;
    int err = q->poller ? dqi_poller_add_stage(q->poller, st) : DQ_OK;
    return err == DQ_OK ? DQ_OK : dqi_fail(diag, err, "stage %s: no memory", st->name);
}

bool dqi_stage_is_before(const dq_stage *st, const dq_queue *q) {
    while (q && q->owner && q->owner != st)
        q = q->owner->source;
    return q && q->owner;
}
