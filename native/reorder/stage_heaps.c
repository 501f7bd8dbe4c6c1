// stage_heaps.c: setup of a heaps stage (heaps.h); opening and closing of heaps.
#include "core/burst.h"
#include "core/err.h"
#include "core/region.h"
#include "reorder/heaps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// ---- opening and closing ----------------------------------------------------------------------------------

static void note_due(dqi_heaps *h) {
    int64_t first = INT64_MAX;
    for (uint32_t i = 0; i < h->n_open; i++)
        if (h->open[i]->base.due_ns < first) first = h->open[i]->base.due_ns;
    atomic_store_explicit(&h->base.due_ns, first, memory_order_relaxed);
}

void dqi_heap_close(dqi_heaps *h, uint32_t i, uint32_t flag) {
    dqi_heap *b = h->open[i];
    memmove(h->open + i, h->open + i + 1, (--h->n_open - i) * sizeof *h->open);
    bool full = dqi_heap_full(b);
    if (!full) b->base.agg.flags |= flag;
    h->past[h->next_past] = (dqi_past_heap){b->base.agg.batch_id, b->base.agg.last_ns, full};
    h->next_past = (h->next_past + 1) % DQI_HEAPS_PAST;
    if (h->n_past < DQI_HEAPS_PAST) h->n_past++;
    b->closed = true;
    if (b->base.due_ns != INT64_MAX) note_due(h);
    dqi_assembly_close(&h->base, &b->base);
}

// Returns the index of the open heap that was opened first.
static uint32_t oldest(const dqi_heaps *h) {
    uint32_t found = 0;
    for (uint32_t i = 1; i < h->n_open; i++)
        if (h->open[i]->base.agg.ordinal < h->open[found]->base.agg.ordinal) found = i;
    return found;
}

dqi_heap *dqi_heap_open(dqi_heaps *h, uint64_t id, uint32_t size, int64_t ts) {
    dqi_heap *b = (dqi_heap *)dqi_assembly_take(&h->base);
    if (!b) return NULL;
    if (h->n_open == h->conf.window) dqi_heap_close(h, 0, DQ_AGGREGATE_PUSHED);
    b->items = (uint64_t *)(b + 1);
    b->present = b->items + DQ_HEAP_ITEMS;
    b->end = 0;
    b->closed = false;
    b->base.data = dqi_bytes(b->base.burst, 0, 0);
    b->base.agg = (dq_aggregate){.batch_id = id,
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
    h->open[h->n_open++] = b;
    dqi_assembly_note_due(&h->base, &b->base);
    return b;
}

// ---- closed heaps -----------------------------------------------------------------------------------------

static void fill_gaps(dqi_assembly *a, dqi_assembled *b) {
    const uint64_t *present = ((const dqi_heap *)b)->present;
    for (uint32_t at = 0; at < b->agg.cells; at += 64) {
        uint32_t n = b->agg.cells - at < 64 ? b->agg.cells - at : 64;
        uint64_t all = UINT64_MAX >> (64 - n), gone = ~present[at / 64] & all;
        if (gone == all)
            memset(b->data + at, a->fill, n);
        else
            for (; gone != 0; gone &= gone - 1)
                b->data[at + (uint32_t)__builtin_ctzll(gone)] = (uint8_t)a->fill;
    }
}

static void account(dqi_assembly *a, const dqi_assembled *b) {
    dqi_ends_of_heap(&a->ends, &a->done, &b->agg, ((const dqi_heaps *)a)->conf.window);
}

// ---- stage ------------------------------------------------------------------------------------------------

static void expire(dqi_assembly *a, int64_t now) {
    dqi_heaps *h = (dqi_heaps *)a;
    dqi_lock(&h->lock);
    for (uint32_t i; h->n_open > 0 && h->open[i = oldest(h)]->base.due_ns <= now;)
        dqi_heap_close(h, i, DQ_AGGREGATE_TIMEOUT);
    dqi_unlock(&h->lock);
}

static uint64_t close_all(dqi_assembly *a) {
    dqi_heaps *h = (dqi_heaps *)a;
    uint64_t n = 0;
    dqi_lock(&h->lock);
    for (; h->n_open > 0; n++)
        dqi_heap_close(h, oldest(h), DQ_AGGREGATE_STOPPED);
    dqi_unlock(&h->lock);
    return n;
}

static void heaps_finish(dq_stage *st) {
    dqi_assembly *a = st->impl;
    close_all(a);
    dqi_assembly_drop_closed(a, DQ_DROP_STOPPED);
    dqi_ends_close(&a->ends, &a->done);
}

static void heaps_free(dqi_heaps *h) {
    dq_prog *progs[] = {h->id, h->size, h->offset, h->items_at, h->items};
    for (size_t i = 0; i < sizeof progs / sizeof *progs; i++)
        dq_prog_free(progs[i]);
    dqi_payload_rule_free(&h->payload);
    dqi_assembly_free(&h->base);
    free(h);
}

static void stage_free(dq_stage *st) { heaps_free(st->impl); }

static const dqi_assembly_ops heaps_ops = {
    .kind = "heaps",
    .expire = expire,
    .close = close_all,
    .fill_gaps = fill_gaps,
    .account = account,
    .stage = {.line_kind = DQ_LINE_STAGE,
              .check = dqi_assembly_check,
              .push = dqi_heaps_push,
              .held = dqi_assembly_held,
              .line = dqi_assembly_line,
              .histogram = dqi_assembly_histogram,
              .poll = dqi_assembly_poll,
              .drain = dqi_assembly_drain,
              .finish = heaps_finish,
              .free = stage_free},
};

// ---- setup ------------------------------------------------------------------------------------------------

static int check(dq_session *s, const char *name, dq_heaps_conf *c, dq_diag *diag) {
    char what[DQ_REORDER_LEN + 16];
    int err = dqi_assembly_check_name(s, "heaps", name, diag);
    if (err != DQ_OK) return err;
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
    if (c->window == 0) c->window = dqi_assembly_window(c->region);
    return dqi_stage_may_take(s, what, c->region, c->policy == DQ_POLICY_WAIT, diag);
}

static int make_rule(dqi_heaps *h, const dq_heaps_conf *c, dq_diag *diag) {
    const dq_number *from[] = {&c->id, &c->size, &c->offset, &c->items_at, &c->items};
    dq_prog **to[] = {&h->id, &h->size, &h->offset, &h->items_at, &h->items};
    int err = dqi_assembly_compile(from, to, sizeof to / sizeof *to, diag);
    if (err != DQ_OK) return err;
    h->payload = (dqi_payload_rule){
        .segment = c->segment, .offset = c->payload_offset, .at_payload = c->at_payload != 0};
    return dqi_payload_rule_init(&h->payload, &c->header, &c->length, diag);
}

int dq_stage_heaps(dq_session *s, const char *name, const dq_heaps_conf *conf, dq_stage **out,
                   dq_queue **heaps, dq_diag *diag) {
    dq_heaps_conf c = *conf;
    int err = check(s, name, &c, diag);
    if (err != DQ_OK) return err;
    dqi_heaps *h = calloc(1, sizeof *h);
    if (!h) return dqi_fail(diag, DQ_ESYS - ENOMEM, "heaps %s: no memory", name);
    h->conf = c;
    h->base = (dqi_assembly){.ops = &heaps_ops,
                             .timeout_ns = c.timeout_ns,
                             .fill = c.fill,
                             .segment = c.segment,
                             .drop_incomplete = c.drop_incomplete != 0,
                             .wait = c.policy == DQ_POLICY_WAIT};
    size_t words = DQ_HEAP_ITEMS + ((size_t)c.region->conf.buf_size + 63) / 64;
    size_t bytes = sizeof(dqi_heap) + words * sizeof(uint64_t);
    if ((err = make_rule(h, &c, diag)) != DQ_OK ||
        (err = dqi_assembly_open(&h->base, name, c.region, bytes, diag)) != DQ_OK ||
        (err = dqi_assembly_add(&h->base, name, c.region, diag)) != DQ_OK) {
        heaps_free(h);
        return err;
    }
    *out = h->base.stage;
    *heaps = h->base.out;
    return DQ_OK;
}
