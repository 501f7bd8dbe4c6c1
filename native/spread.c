// spread.c: see spread.h.
#include "spread.h"
#include "iface.h"
#include "queue.h"
#include "session.h"

#include <stdio.h>
#include <string.h>

#define PARTS 16 // of an octave; the first octaves have buckets of 1
#define SHIFT 4  // log2 of it

uint32_t dqi_spread_bucket(uint64_t v) {
    if (v < PARTS) return (uint32_t)v;
    uint32_t top = 63 - (uint32_t)__builtin_clzll(v);
    uint32_t k = (top - SHIFT + 1) * PARTS + ((uint32_t)(v >> (top - SHIFT)) & (PARTS - 1));
    return k < DQ_SPREAD_BUCKETS ? k : DQ_SPREAD_BUCKETS - 1;
}

uint64_t dq_spread_most(uint32_t k) {
    if (k < PARTS) return k;
    uint32_t wide = k / PARTS - 1;
    return (((uint64_t)PARTS + k % PARTS + 1) << wide) - 1;
}

void dqi_spread_read(const dqi_spread *s, dq_spread *out) {
    out->sum += dqi_get(&s->sum);
    for (uint32_t k = 0; k < DQ_SPREAD_BUCKETS; k++)
        out->n[k] += dqi_get(&s->n[k]);
}

static void name_it(dq_spread *out, const char *name, int kind, uint32_t queue_id) {
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", name);
    out->kind = kind;
    out->queue_id = queue_id;
}

uint32_t dq_spreads(const dq_session *cs, dq_spread *out, uint32_t max) {
    dq_session *s = (dq_session *)(uintptr_t)cs;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        for (uint32_t k = 0; k < s->ifaces[i]->n_rx; k++) {
            const dq_queue *q = s->ifaces[i]->rx[k];
            if (!q->sizes || n++ >= max) continue;
            name_it(&out[n - 1], q->iface->conf.name, DQ_SPREAD_BURST_SIZE, q->conf.id);
            dqi_spread_read(q->sizes, &out[n - 1]);
        }
    pthread_mutex_lock(&s->control);
    for (uint32_t i = 0; i < atomic_load(&s->n_stages); i++) {
        const dq_stage *st = s->stages[i];
        if (!st->ops->spread || n++ >= max) continue;
        name_it(&out[n - 1], st->name, 0, 0);
        st->ops->spread(st, &out[n - 1]);
    }
    pthread_mutex_unlock(&s->control);
    return n;
}
