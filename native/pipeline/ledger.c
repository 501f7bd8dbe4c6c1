// ledger.c: the lines of a session's ledger. Counters are read while their writers run: each is monotone, and
// the sums are exact once packets stop moving.
#include "core/histogram.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/tx_accuracy.h"

#include <stdio.h>
#include <string.h>

static void queue_line(dq_queue *q, dq_line *l) {
    memset(l, 0, sizeof *l);
    snprintf(l->name, sizeof l->name, "%s", q->iface->conf.name);
    snprintf(l->queue, sizeof l->queue, "%s", q->conf.name);
    l->kind = q->conf.dir == DQ_RX ? DQ_LINE_RX : DQ_LINE_TX;
    l->queue_id = q->conf.id;
    dqi_line_add(l, &q->c);
    l->held = dqi_queue_held(q);
    l->pace_bps = atomic_load_explicit(&q->tx.pace.bps, memory_order_relaxed);
    l->pace_speed = atomic_load_explicit(&q->tx.pace.speed, memory_order_relaxed);
    l->pace_pps = atomic_load_explicit(&q->tx.pace.pps, memory_order_relaxed);
    if (!q->owner) return;
    l->kind = DQ_LINE_STAGE; // output of a stage: named after it, "blocks.aggregates"
    l->queue[0] = 0;
}

static void add_pipe(const dq_pipe *p, const dq_stage *st, dq_line *l) {
    for (uint32_t m = 0; p && m < p->n; m++)
        if (p->nodes[m].stage == st) dqi_line_add(l, &p->nodes[m].c);
}

static void add_pipes(const dq_queue *q, const dq_stage *st, dq_line *l) {
    add_pipe(q->rx.claim, st, l);
    for (uint32_t p = 0; p < q->rx.n_pipes; p++)
        add_pipe(q->rx.pipes[p], st, l);
}

// Adds the counters of this stage's nodes in all pipes.
static void add_nodes(const dq_session *s, const dq_stage *st, dq_line *l) {
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        for (uint32_t k = 0; k < s->ifaces[i]->n_rx; k++)
            add_pipes(s->ifaces[i]->rx[k], st, l);
    for (uint32_t i = 0; i < atomic_load(&s->n_stage_queues); i++)
        add_pipes(s->stage_queues[i], st, l);
}

static void stage_line(const dq_session *s, const dq_stage *st, dq_line *l) {
    memset(l, 0, sizeof *l);
    snprintf(l->name, sizeof l->name, "%s", st->name);
    l->kind = st->ops->line_kind;
    dqi_line_add(l, &st->past);
    add_nodes(s, st, l);
    if (st->ops->line) st->ops->line(st, l);
    if (st->ops->held) l->held = st->ops->held(st);
    if (!st->abandoned) return;
    l->dropped[DQ_DROP_STOPPED] += l->held;
    l->held = 0;
}

typedef struct sink {
    dq_line *lines;
    uint32_t n, max;
    dq_line spare; // receives lines beyond max
} sink;

static dq_line *next_line(sink *k) { return k->n++ < k->max ? &k->lines[k->n - 1] : &k->spare; }

static void iface_lines(dq_iface *i, sink *k) {
    if (i->ops->refresh && i->engine) i->ops->refresh(i);
    for (uint32_t q = 0; q < i->n_rx; q++)
        queue_line(i->rx[q], next_line(k));
    for (uint32_t q = 0; q < i->n_tx; q++)
        queue_line(i->tx[q], next_line(k));
    if (!i->ops->lines || !i->engine) return;
    dq_line more[DQ_MAX_QUEUES];
    int n = i->ops->lines(i, more, DQ_MAX_QUEUES);
    for (int m = 0; m < n; m++)
        *next_line(k) = more[m];
}

uint32_t dq_ledger(const dq_session *cs, dq_line *lines, uint32_t max) {
    dq_session *s = (dq_session *)(uintptr_t)cs;
    sink k = {.lines = lines, .max = max};
    pthread_mutex_lock(&s->control);
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        iface_lines(s->ifaces[i], &k);
    for (uint32_t i = 0; i < atomic_load(&s->n_stage_queues); i++)
        queue_line(s->stage_queues[i], next_line(&k));
    uint32_t n = atomic_load(&s->n_stages);
    for (uint32_t i = 0; i < n; i++)
        stage_line(s, s->stages[i], next_line(&k));
    pthread_mutex_unlock(&s->control);
    return k.n;
}

uint32_t dq_source_counts(const dq_session *cs, dq_source_count *out, uint32_t max) {
    dq_session *s = (dq_session *)(uintptr_t)cs;
    uint32_t n = 0;
    pthread_mutex_lock(&s->control);
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++) {
        const dq_stage *st = s->stages[i];
        uint32_t room = n < max ? max - n : 0;
        if (st->ops->sources) n += st->ops->sources(st, room > 0 ? out + n : NULL, room);
    }
    pthread_mutex_unlock(&s->control);
    return n;
}

uint32_t dq_tx_accuracies(const dq_session *s, dq_tx_accuracy *out, uint32_t max) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        for (uint32_t k = 0; k < s->ifaces[i]->n_tx; k++) {
            dq_queue *q = s->ifaces[i]->tx[k];
            if (!dqi_tx_accuracy_any(q) || n++ >= max) continue;
            dq_tx_accuracy *t = &out[n - 1];
            dqi_tx_accuracy_read(q, t);
            snprintf(t->name, sizeof t->name, "%s", q->iface->conf.name);
            snprintf(t->queue, sizeof t->queue, "%s", q->conf.name);
            t->queue_id = q->conf.id;
        }
    return n;
}

static uint32_t queue_faults(dq_queue *q, dq_queue_error *out, uint32_t n, uint32_t max) {
    for (int k = 0; k < DQI_QUEUE_ERRORS; k++) {
        int err = atomic_load_explicit(&q->errors[k].err, memory_order_acquire);
        if (err == 0) break;
        if (n++ >= max) continue;
        dq_queue_error *f = &out[n - 1];
        *f = (dq_queue_error){
            .dir = q->conf.dir, .queue_id = q->conf.id, .err = err, .n = dqi_get(&q->errors[k].n)};
        snprintf(f->name, sizeof f->name, "%s", q->iface->conf.name);
        snprintf(f->queue, sizeof f->queue, "%s", q->conf.name);
    }
    return n;
}

uint32_t dq_queue_errors(const dq_session *s, dq_queue_error *out, uint32_t max) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_ifaces; i++) {
        const dq_iface *f = s->ifaces[i];
        for (uint32_t k = 0; k < f->n_rx + f->n_tx; k++)
            n = queue_faults(k < f->n_rx ? f->rx[k] : f->tx[k - f->n_rx], out, n, max);
    }
    return n;
}

// Output of histograms; n: total, including those that do not fit.
typedef struct shelf {
    dq_histogram *out;
    uint32_t n, max;
} shelf;

// Returns the next histogram, initialized; NULL: no space.
static dq_histogram *next_histogram(shelf *k, const char *name, dq_histogram_kind kind, uint32_t queue_id) {
    if (k->n++ >= k->max) return NULL;
    dq_histogram *h = &k->out[k->n - 1];
    *h = (dq_histogram){.kind = kind, .queue_id = queue_id};
    snprintf(h->name, sizeof h->name, "%s", name);
    return h;
}

static void queue_histogram(shelf *k, const dq_queue *q, dq_histogram_kind kind, const dqi_histogram *from) {
    dq_histogram *h = next_histogram(k, q->iface->conf.name, kind, q->conf.id);
    if (!h) return;
    if (kind == DQ_HISTOGRAM_BURST_SIZE) h->first = 1, h->most = q->conf.batch_size;
    dqi_histogram_read(from, h);
}

static void iface_histograms(shelf *k, const dq_iface *f) {
    for (uint32_t i = 0; i < f->n_rx; i++)
        if (f->rx[i]->rx.sizes) queue_histogram(k, f->rx[i], DQ_HISTOGRAM_BURST_SIZE, f->rx[i]->rx.sizes);
    for (uint32_t i = 0; i < f->n_tx; i++) {
        if (!dqi_tx_accuracy_any(f->tx[i])) continue;
        queue_histogram(k, f->tx[i], DQ_HISTOGRAM_GAP_ERROR, &f->tx[i]->tx.timing->gap_error);
        queue_histogram(k, f->tx[i], DQ_HISTOGRAM_TIME_ERROR, &f->tx[i]->tx.timing->time_error);
    }
}

static void stage_histograms(shelf *k, const dq_stage *st) {
    for (uint32_t i = 0;; i++) {
        dq_histogram one = {.queue_id = 0};
        if (!st->ops->histogram(st, i, &one)) return;
        dq_histogram *h = next_histogram(k, st->name, one.kind, 0);
        if (!h) continue;
        memcpy(one.name, h->name, sizeof one.name);
        *h = one;
    }
}

uint32_t dq_histograms(const dq_session *cs, dq_histogram *out, uint32_t max) {
    dq_session *s = (dq_session *)(uintptr_t)cs;
    shelf k = {.out = out, .max = max};
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        iface_histograms(&k, s->ifaces[i]);
    pthread_mutex_lock(&s->control);
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++)
        if (s->stages[i]->ops->histogram) stage_histograms(&k, s->stages[i]);
    pthread_mutex_unlock(&s->control);
    return k.n;
}
