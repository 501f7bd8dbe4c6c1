// assembly.c: the common part of reorder and heaps stages (assembly.h).
#include "reorder/assembly.h"
#include "core/err.h"
#include "core/peers.h"
#include "pipeline/session.h"
#include "reorder/dq_reorder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define USUAL_WINDOW 4

// ---- setup ------------------------------------------------------------------------------------------------

int dqi_assembly_check_name(const dq_session *s, const char *kind, const char *name, dq_diag *diag) {
    if (s->state == DQI_NEW)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s %s: the session is not open yet", kind, name);
    if (strlen(name) > DQ_REORDER_LEN)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s %s: the name is longer than %d bytes", kind, name,
                        DQ_REORDER_LEN);
    return DQ_OK;
}

uint32_t dqi_assembly_window(const dq_region *region) {
    uint32_t half = region->conf.num_bufs / 2;
    return half > USUAL_WINDOW ? USUAL_WINDOW : half > 0 ? half : 1;
}

int dqi_assembly_compile(const dq_number *const *from, dq_prog **const *to, size_t n, dq_diag *diag) {
    int err = DQ_OK;
    for (size_t i = 0; i < n && err == DQ_OK; i++)
        if (from[i]->n > 0) err = dq_prog_new(from[i]->insns, from[i]->n, to[i], diag);
    return err;
}

// Unused records cost no memory.
int dqi_assembly_open(dqi_assembly *a, const char *name, const dq_region *region, size_t record_bytes,
                      dq_diag *diag) {
    atomic_init(&a->due_ns, INT64_MAX);
    a->record_bytes = (record_bytes + 63) / 64 * 64;
    a->records_bytes = a->record_bytes * region->conf.num_bufs;
    void *p = mmap(NULL, a->records_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int err = p == MAP_FAILED ? DQ_ESYS - errno : DQ_OK;
    if (err == DQ_OK) a->records = p;
    if (err == DQ_OK && !dqi_ring_init(&a->closed, region->conf.num_bufs)) err = DQ_ESYS - ENOMEM;
    if (err == DQ_OK) return DQ_OK;
    return dqi_fail(diag, err, "%s %s: no memory for its records", a->ops->kind, name);
}

static int assembly_rx(dq_queue *q, dq_burst **b, uint32_t room);

static int make_queue(dqi_assembly *a, const char *name, dq_region *region, dq_diag *diag) {
    char line[DQ_NAME_LEN];
    snprintf(line, sizeof line, "%.*s.aggregates", DQ_REORDER_LEN, name);
    dqi_stage_queue_conf conf = {
        .line = line,
        .queue = {.core = -1, .batch_size = 1, .n_regions = 1, .regions = {region}},
        .n_bursts = region->conf.num_bufs + 2, // the queue keeps an empty one
        .payload = true,
        .rx = assembly_rx,
        .wanted = a->ops->wanted,
        .impl = a,
    };
    snprintf(conf.queue.name, sizeof conf.queue.name, "%s", name);
    return dqi_stage_queue_new(region->session, &conf, &a->out, diag);
}

int dqi_assembly_add(dqi_assembly *a, const char *name, dq_region *region, dq_diag *diag) {
    int err = make_queue(a, name, region, diag);
    if (err != DQ_OK) return err;
    err = dqi_stage_add(region->session, name, &a->ops->stage, a, &a->stage, diag);
    if (err != DQ_OK) {
        dqi_stage_queue_free(a->out);
        return err;
    }
    dqi_stage_queue_own(a->stage, a->out);
    a->stage->region = region;
    a->stage->touches = DQI_TOUCHES_HEADS | (a->gpu ? 0 : 1u << a->segment);
    a->stage->waits = a->wait;
    return DQ_OK;
}

void dqi_assembly_free(dqi_assembly *a) {
    if (a->records) munmap(a->records, a->records_bytes);
    dqi_ring_free(&a->closed);
}

// ---- sources' pollers -------------------------------------------------------------------------------------

dqi_assembled *dqi_assembly_take(dqi_assembly *a) {
    dq_region *const *region = a->out->conf.regions;
    dq_burst *burst = dqi_burst_get(a->out->bursts);
    if (!burst) return NULL;
    if (dqi_burst_fill(burst, region, 1, 1) != DQ_OK) {
        dq_burst_unref(burst);
        return NULL;
    }
    uint32_t id = burst->bufs[0][0];
    dqi_assembled *b = (dqi_assembled *)(a->records + (id - region[0]->first_id) * a->record_bytes);
    dqi_sockaddr *peer = dqi_buf_peer(region[0], id);
    if (peer) peer->sa.sa_family = AF_UNSPEC;
    b->burst = burst;
    atomic_store_explicit(&b->fillers, 0, memory_order_relaxed);
    dqi_assembly_begin(a, b);
    return b;
}

void dqi_assembly_begin(const dqi_assembly *a, dqi_assembled *b) {
    b->opened_ns = dq_now(a->stage->session);
    b->due_ns = a->timeout_ns ? b->opened_ns + a->timeout_ns : INT64_MAX;
}

void dqi_assembly_note_due(dqi_assembly *a, const dqi_assembled *b) {
    if (b->due_ns >= atomic_load_explicit(&a->due_ns, memory_order_relaxed)) return;
    atomic_store_explicit(&a->due_ns, b->due_ns, memory_order_relaxed);
    dqi_queue_kick(a->out); // it may sleep past the new timeout
}

void dqi_assembly_close(dqi_assembly *a, dqi_assembled *b) {
    dqi_ring_push(&a->closed, b, 0); // has space for every buffer of the region
    dqi_queue_kick(a->out);
}

bool dqi_assembly_waits(const dqi_assembly *a) {
    if (a->wait) return true;
    return dqi_ring_level(&a->closed) > 0 && !atomic_load_explicit(&a->out->rx.stalled, memory_order_relaxed);
}

void dqi_assembly_count_through(dqi_node *node, const dq_burst *b, uint32_t from, uint32_t to) {
    uint64_t bytes = from < to ? dqi_burst_sum(b, from, to - from) : 0 - dqi_burst_sum(b, to, from - to);
    dqi_add(&node->c.in, (uint64_t)to - from);
    dqi_add(&node->c.in_bytes, bytes);
}

// ---- poller of the stage's queue --------------------------------------------------------------------------

// Returns the next closed aggregate without fillers, which stays the head.
static dqi_assembled *next_closed(dqi_assembly *a) {
    for (void *p;; a->head = NULL) {
        if (!a->head && dqi_ring_pop(&a->closed, &p, NULL)) a->head = p;
        if (!a->head || dqi_load_acq32(&a->head->fillers) > 0) return NULL;
        if (!a->ops->discard || !a->ops->discard(a, a->head)) return a->head;
    }
}

// Accounts b, complete or not.
static void account(dqi_assembly *a, const dqi_assembled *b) {
    dqi_count *x = a->done.c.extra;
    dqi_add(&x[dqi_aggregate_full(&b->agg) ? DQ_EXTRA_BATCHES : DQ_EXTRA_PARTIAL], 1);
    if (b->agg.flags & DQ_AGGREGATE_TIMEOUT) dqi_add(&x[DQ_EXTRA_TIMEOUTS], 1);
    if (b->agg.flags & DQ_AGGREGATE_PUSHED) dqi_add(&x[DQ_EXTRA_PUSHED], 1);
    dqi_add(&x[DQ_EXTRA_EXPECTED], b->agg.present_cells);
    dqi_histogram_note(&a->done.took, (uint64_t)(dq_now(a->stage->session) - b->opened_ns));
    dqi_gauge_add(&a->done.held, -(int64_t)b->agg.packets);
    a->ops->account(a, b);
}

void dqi_assembly_drop(dqi_assembly *a, dqi_assembled *b, dq_reason why) {
    account(a, b);
    dqi_drop(&a->done.c, why, b->agg.packets);
    dq_burst_unref(b->burst);
}

void dqi_assembly_drop_closed(dqi_assembly *a, dq_reason why) {
    for (dqi_assembled *b; (b = next_closed(a)) != NULL; a->head = NULL)
        dqi_assembly_drop(a, b, why);
}

// Returns b as a burst of one packet.
static dq_burst *hand_over(dqi_assembly *a, dqi_assembled *b) {
    if (!a->gpu && !dqi_aggregate_full(&b->agg) && a->fill != DQ_FILL_KEEP) a->ops->fill_gaps(a, b);
    account(a, b);
    dq_burst *out = b->burst;
    out->flags = DQ_BURST_REORDERED | a->burst_flags |
                 (b->agg.flags & DQ_AGGREGATE_TIMEOUT ? DQ_BURST_REORDER_TIMEOUT : 0);
    out->len[0][0] = b->agg.slots * b->agg.slot_bytes;
    out->bytes = out->len[0][0];
    out->ts[0] = b->agg.first_ns;
    out->flow[0] = 0;
    out->aggregate = &b->agg;
    dqi_add(&a->done.c.out, b->agg.packets);
    dqi_add(&a->done.c.out_bytes, out->bytes);
    return out;
}

// As an engine's rx (dqi_engine_ops).
static int assembly_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_assembly *a = q->engine;
    for (dqi_assembled *next; (next = next_closed(a)) != NULL;) {
        if (a->ops->pending && a->ops->pending(a, next)) return 0;
        a->head = NULL;
        if (room == 0) {
            dqi_assembly_drop(a, next, DQ_DROP_NO_CONSUMER);
        } else if (a->gpu && dqi_gpu_lost(a->gpu, NULL, 0)) {
            dqi_assembly_drop(a, next, DQ_DROP_DEVICE_LOST);
        } else if (a->drop_incomplete && !dqi_aggregate_full(&next->agg)) {
            dqi_assembly_drop(a, next, DQ_DROP_INCOMPLETE);
        } else {
            dq_burst_unref(*b); // empty
            *b = hand_over(a, next);
            dqi_add(&q->c.in, 1);
            dqi_add(&q->c.in_bytes, (*b)->bytes);
            return 1;
        }
    }
    return 0;
}

// ---- operations of the stage ------------------------------------------------------------------------------

int dqi_assembly_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const dqi_assembly *a = st->impl;
    if (dqi_stage_is_before(st, q))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s %s: a stage cannot consume its own output",
                        a->ops->kind, st->name);
    if (a->segment >= q->conf.n_regions)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s %s: queue %s has %u segments: there is no segment %u",
                        a->ops->kind, st->name, q->conf.name, q->conf.n_regions, a->segment + 1);
    return DQ_OK;
}

int dqi_assembly_poll(dq_stage *st) {
    dqi_assembly *a = st->impl;
    int64_t due = atomic_load_explicit(&a->due_ns, memory_order_relaxed);
    if (due == INT64_MAX || st->session->state >= DQI_STOPPED) return 0;
    int64_t now = dq_now(st->session);
    bool is_due = now >= due;
    if (is_due) {
        a->ops->expire(a, now);
        due = atomic_load_explicit(&a->due_ns, memory_order_relaxed);
    }
    if (due < st->next_ns) st->next_ns = due;
    return is_due;
}

uint64_t dqi_assembly_held(const dq_stage *st) {
    const dqi_assembly *a = st->impl;
    return (uint64_t)dqi_gauge_get(&a->done.held);
}

void dqi_assembly_line(const dq_stage *st, dq_line *line) {
    const dqi_assembly *a = st->impl;
    dqi_line_add(line, &a->done.c);
    line->extra[DQ_EXTRA_LATE] = line->dropped[DQ_DROP_LATE]; // for thresholds: blocks.late, heaps.late
}

bool dqi_assembly_histogram(const dq_stage *st, uint32_t k, dq_histogram *out) {
    const dqi_assembly *a = st->impl;
    if (k > 0) return false;
    out->kind = DQ_HISTOGRAM_COMPLETION_TIME;
    dqi_histogram_read(&a->done.took, out);
    return true;
}

uint64_t dqi_assembly_drain(dq_stage *st) {
    dqi_assembly *a = st->impl;
    return a->ops->close(a);
}
