// reorder_out.c: delivers closed batches through the stage's own queue as bursts of one packet, and checks
// timeouts, which expire without packets. One thread fills gaps and updates the accounts here, outside the
// lock.
#include "core/burst.h"
#include "pipeline/session.h"
#include "pipeline/queue.h"
#include "reorder/reorder.h"

#include <string.h>

static bool bit_of(const dqi_batch *b, uint64_t cell) {
    return atomic_load_explicit(&b->present[cell / 64], memory_order_relaxed) >> cell % 64 & 1;
}

uint64_t dqi_batch_gap(const dqi_reorder *r, const dqi_batch *b, uint64_t *cell, uint64_t *bytes) {
    const dq_aggregate *a = &b->agg;
    uint64_t at = 0;
    for (*bytes = 0; *cell < a->cells; ++*cell) {
        uint64_t k = *cell % r->cells_each, from = k * a->cell_bytes, room = a->slot_bytes - from;
        if (bit_of(b, *cell)) {
            if (*bytes > 0) break;
            continue;
        }
        if (*bytes == 0) at = *cell / r->cells_each * a->slot_bytes + from;
        *bytes += room < a->cell_bytes ? room : a->cell_bytes;
    }
    return at;
}

static void fill_gaps(const dqi_reorder *r, dqi_batch *b) {
    for (uint64_t cell = 0, bytes, at = dqi_batch_gap(r, b, &cell, &bytes); bytes > 0;
         at = dqi_batch_gap(r, b, &cell, &bytes))
        memset(b->data + at, r->conf.fill, bytes);
}

static void account(dqi_reorder *r, const dqi_batch *b) {
    dqi_handover_account(&r->done, &b->agg, dq_now(r->stage->session) - b->opened_ns);
    if (r->by_source)
        dqi_reorder_sources_account(r, b);
    else if (r->seq)
        dqi_ends_of_sequence(&r->ends, &r->done, &b->agg, b->epoch);
    else
        dqi_ends_of_batch(&r->ends, &r->done, &b->agg, b->epoch, r->conf.window);
}

void dqi_reorder_drop(dqi_reorder *r, dqi_batch *b, dq_reason why) {
    account(r, b);
    dqi_handover_drop(&r->done, b->burst, &b->agg, why);
}

// Drops a batch of a rejected trial.
static void drop_rejected(dqi_reorder *r, dqi_batch *b) {
    const dq_reason why = b->otherwise;
    for (uint32_t cell = 0; r->by_source && cell < b->agg.cells; cell++)
        if (bit_of(b, cell))
            dqi_reorder_sources_lost(r->by_source, atomic_load_explicit(&b->ids[cell], memory_order_relaxed),
                                     why);
    dqi_gauge_add(&r->done.held, -(int64_t)b->agg.packets);
    dqi_handover_drop(&r->done, b->burst, &b->agg, why);
}

// Returns the aggregate as a burst.
static dq_burst *finish(dqi_reorder *r, dqi_batch *b) {
    if (!r->gpu && !dqi_block_full(b) && r->conf.fill != DQ_FILL_KEEP) fill_gaps(r, b);
    account(r, b);
    return dqi_handover_burst(&r->done, b->burst, &b->agg);
}

// Returns the next closed batch without fillers, which stays the head; drops rejected ones.
static dqi_batch *next_closed(dqi_reorder *r) {
    for (void *p;; r->head = NULL) {
        if (!r->head && dqi_ring_pop(&r->closed, &p, NULL)) r->head = p;
        if (!r->head || dqi_load_acq32(&r->head->fillers) > 0) return NULL;
        if (!r->head->rejected) return r->head;
        drop_rejected(r, r->head);
    }
}

void dqi_reorder_drop_closed(dqi_reorder *r, dq_reason why) {
    for (dqi_batch *b; (b = next_closed(r)) != NULL; r->head = NULL)
        dqi_reorder_drop(r, b, why);
}

int dqi_reorder_poll(dq_stage *st) {
    dqi_reorder *r = st->impl;
    int work = r->gpu ? dqi_reorder_gpu_poll(r, &st->next_ns) : 0;
    int64_t due = atomic_load_explicit(&r->due_ns, memory_order_relaxed);
    if (due == INT64_MAX || st->session->state >= DQI_STOPPED) return work;
    int64_t now = dq_now(st->session);
    bool is_due = now >= due;
    if (is_due) {
        dqi_lock(&r->lock);
        dqi_window_expire(r, now);
        dqi_unlock(&r->lock);
        due = atomic_load_explicit(&r->due_ns, memory_order_relaxed);
    }
    if (due < st->next_ns) st->next_ns = due;
    return work + is_due;
}

int dqi_reorder_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_reorder *r = q->engine;
    for (dqi_batch *batch; (batch = next_closed(r)) != NULL;) {
        if (r->gpu && dqi_reorder_gpu_gaps(r, batch)) return 0;
        r->head = NULL;
        if (room == 0) {
            dqi_reorder_drop(r, batch, DQ_DROP_NO_CONSUMER);
        } else if (r->gpu && dqi_gpu_lost(r->gpu, NULL, 0)) {
            dqi_reorder_drop(r, batch, DQ_DROP_DEVICE_LOST);
        } else if (r->conf.drop_incomplete && !dqi_block_full(batch)) {
            dqi_reorder_drop(r, batch, DQ_DROP_INCOMPLETE);
        } else {
            dq_burst_unref(*b); // empty
            *b = finish(r, batch);
            dqi_add(&q->c.in, 1);
            dqi_add(&q->c.in_bytes, (*b)->bytes);
            return 1;
        }
    }
    return 0;
}

// The stage's queue has a consumer: the queues claimed by the stage are read from now on.
void dqi_reorder_wanted(dq_queue *out) {
    dqi_reorder *r = out->engine;
    for (uint32_t i = 0; i < atomic_load(&r->n_sources); i++) {
        dq_queue *q = r->sources[i].queue;
        if (!q->claim) continue;
        atomic_store(&q->consumed, true);
        dqi_queue_kick(q);
    }
}
