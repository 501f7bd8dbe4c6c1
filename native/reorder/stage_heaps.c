// stage_heaps.c: setup of a heaps stage (heaps.h); opening, closing and delivery of heaps, accounts and
// shutdown.
#include "core/burst.h"
#include "core/err.h"
#include "core/peers.h"
#include "core/region.h"
#include "pipeline/session.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/stage_queue.h"
#include "reorder/heaps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define USUAL_WINDOW 4

// ---- opening and closing ----------------------------------------------------------------------------------

static void note_due(dqi_heaps *h) {
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < h->n_open; i++)
        if (h->open[i]->due_ns < first) first = h->open[i]->due_ns;
    atomic_store_explicit(&h->due_ns, first, memory_order_relaxed);
}

void dqi_heap_close(dqi_heaps *h, uint32_t i, uint32_t flag) {
    dqi_heap *b = h->open[i];
    memmove(h->open + i, h->open + i + 1, (--h->n_open - i) * sizeof *h->open);
    bool full = dqi_heap_full(b);
    if (!full) b->agg.flags |= flag;
    h->past[h->next_past] = (dqi_past_heap){b->agg.batch_id, b->agg.last_ns, full};
    h->next_past = (h->next_past + 1) % DQI_HEAPS_PAST;
    if (h->n_past < DQI_HEAPS_PAST) h->n_past++;
    b->closed = true;
    dqi_ring_push(&h->closed, b, 0); // has space for every buffer of the region
    if (b->due_ns != INT64_MAX) note_due(h);
    dqi_queue_kick(h->out);
}

// Returns the index of the open heap that was opened first.
static uint32_t oldest(const dqi_heaps *h) {
    uint32_t found = 0;
    for (uint32_t i = 1; i < h->n_open; i++)
        if (h->open[i]->agg.ordinal < h->open[found]->agg.ordinal) found = i;
    return found;
}

dqi_heap *dqi_heap_open(dqi_heaps *h, uint64_t id, uint32_t size, int64_t ts) {
    dq_region *region = h->conf.region;
    dq_burst *burst = dqi_burst_get(h->out->bursts);
    if (!burst) return NULL;
    if (dqi_burst_fill(burst, &h->conf.region, 1, 1) != DQ_OK) {
        dq_burst_unref(burst);
        return NULL;
    }
    if (h->n_open == h->conf.window) dqi_heap_close(h, 0, DQ_AGGREGATE_PUSHED);
    dqi_heap *b = (dqi_heap *)(h->records + (burst->bufs[0][0] - region->first_id) * h->record_bytes);
    *b = (dqi_heap){.burst = burst, .data = dqi_bytes(burst, 0, 0)};
    b->items = (uint64_t *)(b + 1);
    b->present = b->items + DQ_HEAP_ITEMS;
    b->agg = (dq_aggregate){.batch_id = id,
                            .ordinal = h->ordinal++,
                            .slots = 1,
                            .slot_bytes = size,
                            .cells = size,
                            .cell_bytes = 1,
                            .first_ns = ts,
                            .last_ns = ts,
                            .fill = h->conf.fill,
                            .present = b->present,
                            .items = b->items};
    memset(b->present, 0, ((size_t)size + 63) / 64 * sizeof *b->present);
    dqi_sockaddr *peer = dqi_buf_peer(region, burst->bufs[0][0]);
    if (peer) peer->sa.sa_family = AF_UNSPEC;
    b->opened_ns = dq_now(h->stage->session);
    b->due_ns = h->conf.timeout_ns ? b->opened_ns + h->conf.timeout_ns : INT64_MAX;
    h->open[h->n_open++] = b;
    if (b->due_ns < atomic_load_explicit(&h->due_ns, memory_order_relaxed)) {
        atomic_store_explicit(&h->due_ns, b->due_ns, memory_order_relaxed);
        dqi_queue_kick(h->out); // it may sleep past the new timeout
    }
    return b;
}

// ---- delivery ---------------------------------------------------------------------------------------------

static void fill_gaps(const dqi_heaps *h, dqi_heap *b) {
    for (uint32_t at = 0; at < b->agg.cells; at += 64) {
        uint32_t n = b->agg.cells - at < 64 ? b->agg.cells - at : 64;
        uint64_t all = UINT64_MAX >> (64 - n), gone = ~b->present[at / 64] & all;
        if (gone == all)
            memset(b->data + at, h->conf.fill, n);
        else
            for (; gone != 0; gone &= gone - 1)
                b->data[at + (uint32_t)__builtin_ctzll(gone)] = (uint8_t)h->conf.fill;
    }
}

static void account(dqi_heaps *h, const dqi_heap *b) {
    dqi_handover_account(&h->done, &b->agg, dq_now(h->stage->session) - b->opened_ns);
    dqi_ends_of_heap(&h->ends, &h->done, &b->agg, h->conf.window);
}

static void drop(dqi_heaps *h, dqi_heap *b, dq_reason why) {
    account(h, b);
    dqi_handover_drop(&h->done, b->burst, &b->agg, why);
}

static dq_burst *hand_over(dqi_heaps *h, dqi_heap *b) {
    if (!dqi_heap_full(b) && h->conf.fill != DQ_FILL_KEEP) fill_gaps(h, b);
    account(h, b);
    return dqi_handover_burst(&h->done, b->burst, &b->agg);
}

// Returns the next closed heap without fillers.
static dqi_heap *next_closed(dqi_heaps *h) {
    void *p;
    if (!h->head && dqi_ring_pop(&h->closed, &p, NULL)) h->head = p;
    dqi_heap *b = h->head;
    if (!b || dqi_load_acq32(&b->fillers) > 0) return NULL;
    h->head = NULL;
    return b;
}

static int heaps_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_heaps *h = q->engine;
    for (dqi_heap *heap; (heap = next_closed(h)) != NULL;) {
        if (room == 0) {
            drop(h, heap, DQ_DROP_NO_CONSUMER);
        } else if (h->conf.drop_incomplete && !dqi_heap_full(heap)) {
            drop(h, heap, DQ_DROP_INCOMPLETE);
        } else {
            dq_burst_unref(*b); // empty
            *b = hand_over(h, heap);
            dqi_add(&q->c.in, 1);
            dqi_add(&q->c.in_bytes, (*b)->bytes);
            return 1;
        }
    }
    return 0;
}

// ---- stage ------------------------------------------------------------------------------------------------

static int heaps_poll(dq_stage *st) {
    dqi_heaps *h = st->impl;
    int64_t due = atomic_load_explicit(&h->due_ns, memory_order_relaxed);
    if (due == INT64_MAX || st->session->state >= DQI_STOPPED) return 0;
    int64_t now = dq_now(st->session);
    bool is_due = now >= due;
    if (is_due) {
        dqi_lock(&h->lock);
        for (uint32_t i; h->n_open > 0 && h->open[i = oldest(h)]->due_ns <= now;)
            dqi_heap_close(h, i, DQ_AGGREGATE_TIMEOUT);
        dqi_unlock(&h->lock);
        due = atomic_load_explicit(&h->due_ns, memory_order_relaxed);
    }
    st->next_ns = due;
    return is_due;
}

static int heaps_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const dqi_heaps *h = st->impl;
    if (dqi_stage_is_before(st, q))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "heaps %s: a stage cannot consume its own output",
                        st->name);
    if (h->conf.segment >= q->conf.n_regions)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "heaps %s: queue %s has %u segments: there is no segment %u", st->name, q->conf.name,
                        q->conf.n_regions, h->conf.segment + 1);
    return DQ_OK;
}

static uint64_t heaps_held(const dq_stage *st) {
    const dqi_heaps *h = st->impl;
    return (uint64_t)dqi_gauge_get(&h->done.held);
}

static void heaps_line(const dq_stage *st, dq_line *line) {
    const dqi_heaps *h = st->impl;
    dqi_line_add(line, &h->done.c);
    line->extra[DQ_EXTRA_LATE] = line->dropped[DQ_DROP_LATE]; // for thresholds: heaps.late
}

static bool heaps_histogram(const dq_stage *st, uint32_t k, dq_histogram *out) {
    const dqi_heaps *h = st->impl;
    if (k > 0) return false;
    out->kind = DQ_HISTOGRAM_COMPLETION_TIME;
    dqi_histogram_read(&h->done.took, out);
    return true;
}

static uint64_t heaps_drain(dq_stage *st) {
    dqi_heaps *h = st->impl;
    uint64_t n = 0;
    dqi_lock(&h->lock);
    for (; h->n_open > 0; n++)
        dqi_heap_close(h, oldest(h), DQ_AGGREGATE_STOPPED);
    dqi_unlock(&h->lock);
    return n;
}

static void heaps_finish(dq_stage *st) {
    dqi_heaps *h = st->impl;
    heaps_drain(st);
    for (dqi_heap *b; (b = next_closed(h)) != NULL;)
        drop(h, b, DQ_DROP_STOPPED);
    dqi_ends_close(&h->ends, &h->done);
}

static void heaps_free(dqi_heaps *h) {
    dq_prog *progs[] = {h->id, h->size, h->offset, h->items_at, h->items};
    for (size_t i = 0; i < sizeof progs / sizeof *progs; i++)
        dq_prog_free(progs[i]);
    dqi_payload_rule_free(&h->payload);
    if (h->records) munmap(h->records, h->records_bytes);
    dqi_ring_free(&h->closed);
    free(h);
}

static void stage_free(dq_stage *st) { heaps_free(st->impl); }

static const dqi_stage_ops heaps_ops = {
    .line_kind = DQ_LINE_STAGE,
    .check = heaps_check,
    .push = dqi_heaps_push,
    .held = heaps_held,
    .line = heaps_line,
    .histogram = heaps_histogram,
    .poll = heaps_poll,
    .drain = heaps_drain,
    .finish = heaps_finish,
    .free = stage_free,
};

// ---- setup ------------------------------------------------------------------------------------------------

static int check(dq_session *s, const char *name, dq_heaps_conf *c, dq_diag *diag) {
    char what[DQ_REORDER_LEN + 16];
    if (s->state == DQI_NEW)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "heaps %s: the session is not open yet", name);
    if (strlen(name) > DQ_REORDER_LEN)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "heaps %s: the name is longer than %d bytes", name,
                        DQ_REORDER_LEN);
    snprintf(what, sizeof what, "heaps %s", name);
    if (!c->region || c->id.n == 0 || c->offset.n == 0 || (c->size.n == 0) == (c->heap_bytes == 0))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "%s: it needs a memory region, id, offset, and either size or heap_bytes", what);
    if (c->region->gpu)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: region %s is a GPU's memory, and heaps are put together in the host's: hint: a "
                        "copy stage behind it",
                        what, c->region->conf.name);
    if (c->heap_bytes > c->region->conf.buf_size)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "%s: a heap of %u bytes does not fit the buffers of region %s, of %u", what,
                        c->heap_bytes, c->region->conf.name, c->region->conf.buf_size);
    if (c->window > DQ_MAX_WINDOW || c->window >= c->region->conf.num_bufs || c->n_skip > DQ_HEAP_SKIP_KEYS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "%s: a window of %u needs more buffers than that, and region %s has %u", what,
                        c->window, c->region->conf.name, c->region->conf.num_bufs);
    if (c->items.n && (c->item_bytes < 1 || c->item_bytes > 8 || c->value_bits >= 8 * c->item_bytes))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: items have 1 to 8 bytes", what);
    if (c->fill < DQ_FILL_KEEP || c->fill > 255)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: fill %d is not a byte", what, c->fill);
    uint32_t half = c->region->conf.num_bufs / 2;
    if (c->window == 0) c->window = half > USUAL_WINDOW ? USUAL_WINDOW : half > 0 ? half : 1;
    return dqi_stage_may_take(s, what, c->region, c->policy == DQ_POLICY_WAIT, diag);
}

static int make_rule(dqi_heaps *h, const dq_heaps_conf *c, dq_diag *diag) {
    const dq_number *from[] = {&c->id, &c->size, &c->offset, &c->items_at, &c->items};
    dq_prog **to[] = {&h->id, &h->size, &h->offset, &h->items_at, &h->items};
    for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
        int err = from[i]->n > 0 ? dq_prog_new(from[i]->insns, from[i]->n, to[i], diag) : DQ_OK;
        if (err != DQ_OK) return err;
    }
    h->payload = (dqi_payload_rule){
        .segment = c->segment, .offset = c->payload_offset, .at_payload = c->at_payload != 0};
    return dqi_payload_rule_init(&h->payload, &c->header, &c->length, diag);
}

// Maps a record per buffer; unused ones cost no memory.
static int make_records(dqi_heaps *h) {
    const dq_region *region = h->conf.region;
    size_t words = DQ_HEAP_ITEMS + ((size_t)region->conf.buf_size + 63) / 64;
    h->record_bytes = (sizeof(dqi_heap) + words * sizeof(uint64_t) + 63) / 64 * 64;
    h->records_bytes = h->record_bytes * region->conf.num_bufs;
    void *p = mmap(NULL, h->records_bytes, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return DQ_ESYS - errno;
    h->records = p;
    return dqi_ring_init(&h->closed, region->conf.num_bufs) ? DQ_OK : DQ_ESYS - ENOMEM;
}

static int make_queue(dqi_heaps *h, const char *name, dq_diag *diag) {
    char line[DQ_NAME_LEN];
    snprintf(line, sizeof line, "%.*s.aggregates", DQ_REORDER_LEN, name);
    dqi_stage_queue_conf conf = {
        .line = line,
        .queue = {.core = -1, .batch_size = 1, .n_regions = 1, .regions = {h->conf.region}},
        .n_bursts = h->conf.region->conf.num_bufs + 2, // the queue keeps an empty one
        .payload = true,
        .rx = heaps_rx,
        .impl = h,
    };
    snprintf(conf.queue.name, sizeof conf.queue.name, "%s", name);
    return dqi_stage_queue_new(h->conf.region->session, &conf, &h->out, diag);
}

int dq_stage_heaps(dq_session *s, const char *name, const dq_heaps_conf *conf, dq_stage **out,
                   dq_queue **heaps, dq_diag *diag) {
    dq_heaps_conf c = *conf;
    int err = check(s, name, &c, diag);
    if (err != DQ_OK) return err;
    dqi_heaps *h = calloc(1, sizeof *h);
    if (!h) return dqi_fail(diag, DQ_ESYS - ENOMEM, "heaps %s: no memory", name);
    h->conf = c;
    atomic_init(&h->due_ns, INT64_MAX);
    if ((err = make_rule(h, &c, diag)) != DQ_OK) goto fail;
    if ((err = make_records(h)) != DQ_OK) {
        dqi_fail(diag, err, "heaps %s: no memory for its records", name);
        goto fail;
    }
    if ((err = make_queue(h, name, diag)) != DQ_OK) goto fail;
    if ((err = dqi_stage_add(s, name, &heaps_ops, h, &h->stage, diag)) != DQ_OK) goto fail_queue;
    dqi_stage_queue_own(h->stage, h->out);
    h->stage->region = c.region;
    h->stage->touches = DQI_TOUCHES_HEADS | 1u << c.segment;
    h->stage->waits = c.policy == DQ_POLICY_WAIT;
    *out = h->stage;
    *heaps = h->out;
    return DQ_OK;
fail_queue:
    dqi_stage_queue_free(h->out);
fail:
    heaps_free(h);
    return err;
}
