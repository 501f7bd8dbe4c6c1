// stage_reorder.c: setup of a reorder stage (reorder.h): its rule, records and queue; accounts and shutdown.
#include "core/err.h"
#include "core/region.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/session.h"
#include "pipeline/stage_queue.h"
#include "reorder/reorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define STREAM_BYTES     (4 << 20) // batch size above which it does not stay cached until it is read
#define FAR_WINDOWS      16        // a larger distance means another stream
#define LEAST_AGREE      8         // packets that must agree to move the window: those of a batch,
#define MOST_AGREE       256       // within these limits
#define LATE_AGREE       256       // consecutive late packets, or a full window of them, that prove a restart
#define LEAST_SILENCE_NS 10000000  // minimum: a shorter timeout_us does not describe the sender
#define USUAL_SILENCE_NS 100000000 // without a timeout

static int fault(dq_diag *diag, const char *name, const char *text) {
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "reorder %s: %s", name, text);
}

// ---- data types -------------------------------------------------------------------------------------------

// Converts a size from input bytes to output bytes.
static int grow(const char *name, const char *key, const dqi_convert *c, uint32_t *bytes, dq_diag *diag) {
    uint32_t in = *bytes;
    if (dqi_convert_size(c, in, bytes)) return DQ_OK;
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "reorder %s: %s %u is not a whole number of elements of %s, which need %u bytes, or too "
                    "large when each "
                    "has %u",
                    name, key, in, c->input, c->bytes, c->out_bytes);
}

static int convert_sizes(const char *name, dq_reorder_conf *c, dqi_convert *out, dq_diag *diag) {
    char what[DQ_REORDER_LEN + 16];
    snprintf(what, sizeof what, "reorder %.*s", DQ_REORDER_LEN, name);
    int err = dqi_convert_find(&c->types, out, what, diag);
    if (err == DQ_OK) err = grow(name, "slot_bytes", out, &c->slot_bytes, diag);
    if (err == DQ_OK) err = grow(name, "packet_bytes", out, &c->packet_bytes, diag);
    return err;
}

// ---- checks -----------------------------------------------------------------------------------------------

static int check_region(const char *name, const dq_reorder_conf *c, dq_diag *diag) {
    const dq_region *r = c->region;
    uint64_t least = (uint64_t)c->slots * (c->slot_bytes ? c->slot_bytes : 1);
    if (least > r->conf.buf_size)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "reorder %s: %u slots of %u bytes don't fit the buffers of region %s: buf_size must "
                        "be at least %llu",
                        name, c->slots, c->slot_bytes ? c->slot_bytes : 1, r->conf.name,
                        (unsigned long long)least);
    if (c->window > r->conf.num_bufs)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "reorder %s: a window of %u needs more than the %u buffers of region %s", name,
                        c->window, r->conf.num_bufs, r->conf.name);
    return DQ_OK;
}

static int check_rule(const char *name, const dq_reorder_conf *c, dq_diag *diag) {
    if (!c->region || c->slots == 0) return fault(diag, name, "it needs a memory region and slots");
    if ((c->seq.n > 0) == (c->batch.n > 0) || (c->batch.n > 0) != (c->slot.n > 0))
        return fault(diag, name, "it needs a sequence number, or both batch and slot");
    if (c->seq.n > 0 && (c->seq_bits == 0 || c->seq_bits > 64))
        return fault(diag, name, "a sequence number has 1 to 64 bits");
    if (c->offset.n > 0 && (c->slot_bytes == 0 || c->packet_bytes == 0 || c->packet_bytes > c->slot_bytes))
        return fault(diag, name,
                     "with an offset slot_bytes and packet_bytes are needed, the latter not more");
    if (c->offset.n == 0 && c->packet_bytes != 0)
        return fault(diag, name, "packet_bytes goes with an offset; without one a packet fills a slot");
    if (c->segment >= DQ_MAX_SEGS || (c->at_payload && c->segment != 0))
        return fault(diag, name, "the payload of a header is in the first segment");
    if (c->fill < DQ_FILL_KEEP || c->fill > 255)
        return fault(diag, name, "fill is a byte, 0 to 255, or keep");
    if (c->wait && c->timeout_ns == 0)
        return fault(diag, name, "a queue can't wait for others without a limit: give a timeout");
    return check_region(name, c, diag);
}

// Returns the number of batches distinguished by the numbers; UINT64_MAX: at least that many.
static uint64_t batches_of(const dq_reorder_conf *c) {
    if (c->seq.n == 0) return c->wrap ? c->wrap : UINT64_MAX;
    uint64_t mask = UINT64_MAX >> (64 - c->seq_bits);
    if (c->slots == 1) return mask == UINT64_MAX ? mask : mask + 1;
    return mask < c->slots - 1 ? 0 : (mask - (c->slots - 1)) / c->slots + 1;
}

// Checks that the numbers of a stage with a ring count the buffers of its region.
static int check_ring(const char *name, const dq_reorder_conf *c, dq_diag *diag) {
    if (!c->ring || batches_of(c) == c->region->conf.num_bufs) return DQ_OK;
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "reorder %s: the numbers must count the %u buffers of region %s, not %llu batches", name,
                    c->region->conf.num_bufs, c->region->conf.name, (unsigned long long)batches_of(c));
}

// One batch may be open, one late, and one lost as a whole: with fewer than DQ_LEAST_BATCHES the numbers
// could not distinguish these.
static int choose_window(const char *name, dq_reorder_conf *c, dq_diag *diag) {
    uint64_t batches = batches_of(c), most = batches / 2 < DQ_MAX_WINDOW ? batches / 2 : DQ_MAX_WINDOW;
    if (batches < DQ_LEAST_BATCHES)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "reorder %s: the numbers must tell at least %d batches apart, not %llu: use a wider field "
            "or fewer packets a batch",
            name, DQ_LEAST_BATCHES, (unsigned long long)batches);
    if (c->window > most)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "reorder %s: a window of %u batches is more than %llu: half of what the numbers tell "
                        "apart, at most %d",
                        name, c->window, (unsigned long long)most, DQ_MAX_WINDOW);
    if (c->window > 0) return DQ_OK;
    c->window = dqi_assembly_window(c->region);
    if (c->window > most) c->window = (uint32_t)most;
    return DQ_OK;
}

// ---- components -------------------------------------------------------------------------------------------

static int make_rule(dqi_reorder *r, const dq_reorder_conf *c, dq_diag *diag) {
    const dq_number *from[] = {&c->seq, &c->batch, &c->slot, &c->offset, &c->extra};
    dq_prog **to[] = {&r->seq, &r->batch, &r->slot, &r->offset, &r->extra};
    int err = dqi_assembly_compile(from, to, sizeof to / sizeof *to, diag);
    if (err != DQ_OK) return err;
    r->payload = (dqi_payload_rule){
        .segment = c->segment, .offset = c->payload_offset, .at_payload = c->at_payload != 0};
    err = dqi_payload_rule_init(&r->payload, &c->header, &c->length, diag);
    if (err != DQ_OK) return err;
    r->flow_ids = malloc((c->n_flow_ids + 1) * sizeof *r->flow_ids);
    if (!r->flow_ids) return DQ_ESYS - ENOMEM;
    if (c->n_flow_ids > 0) memcpy(r->flow_ids, c->flow_ids, c->n_flow_ids * sizeof *r->flow_ids);
    if (r->seq) r->mask = UINT64_MAX >> (64 - c->seq_bits);
    r->most = c->slot_bytes ? c->slot_bytes : c->region->conf.buf_size / c->slots;
    r->cells_each = c->offset.n ? (c->slot_bytes + c->packet_bytes - 1) / c->packet_bytes : 1;
    uint64_t all = (uint64_t)c->slots * c->window;
    r->stream = !r->base.gpu && !dqi_converts(&r->convert) && (uint64_t)c->slots * r->most >= STREAM_BYTES;
    r->back = batches_of(c) == UINT64_MAX ? INT64_MAX : batches_of(c) / 2 - 1;
    r->far = (int64_t)FAR_WINDOWS * c->window;
    r->agree = c->slots < LEAST_AGREE ? LEAST_AGREE : c->slots > MOST_AGREE ? MOST_AGREE : c->slots;
    r->late_agree = all < LATE_AGREE ? LATE_AGREE : all > UINT32_MAX ? UINT32_MAX : (uint32_t)all;
    r->silence_ns = c->timeout_ns == 0                 ? USUAL_SILENCE_NS
                    : c->timeout_ns < LEAST_SILENCE_NS ? LEAST_SILENCE_NS
                                                       : c->timeout_ns;
    return DQ_OK;
}

static int make_sources(dqi_reorder *r, const char *name, dq_diag *diag) {
    const dq_reorder_conf *c = &r->conf;
    const dq_number *from = &c->source;
    dq_prog *number = NULL, **to = &number;
    int err = dqi_assembly_compile(&from, &to, 1, diag);
    if (err != DQ_OK || (!number && !c->source_peer)) return err;
    r->by_source = dqi_reorder_sources_new(number, c->slots * r->cells_each);
    if (r->by_source) return DQ_OK;
    dq_prog_free(number);
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "reorder %s: no memory for its records", name);
}

static int make_records(dqi_reorder *r, const char *name, dq_diag *diag) {
    size_t cells = (size_t)r->conf.slots * r->cells_each, extras = r->extra ? r->conf.slots : 0;
    size_t ids = r->by_source ? cells : 0;
    size_t bytes =
        sizeof(dqi_batch) + ((cells + 63) / 64 + extras) * sizeof(uint64_t) + ids * sizeof(uint16_t);
    r->open_mask = 1;
    while (r->open_mask + 1 < r->conf.window)
        r->open_mask = 2 * r->open_mask + 1;
    r->open = calloc(2 * (r->open_mask + 1), sizeof *r->open);
    if (!r->open) return dqi_fail(diag, DQ_ESYS - ENOMEM, "reorder %s: no memory for its records", name);
    r->trial.open = r->open + r->open_mask + 1;
    if (r->conf.ring && !(r->armed = calloc(r->conf.region->conf.num_bufs, sizeof *r->armed)))
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "reorder %s: no memory for its records", name);
    return dqi_assembly_open(&r->base, name, r->conf.region, bytes, diag);
}

static void reorder_free(dqi_reorder *r) {
    dq_prog *progs[] = {r->seq, r->batch, r->slot, r->offset, r->extra};
    for (int i = 0; i < 5; i++)
        dq_prog_free(progs[i]);
    dqi_reorder_gpu_free(r);
    dqi_payload_rule_free(&r->payload);
    dqi_reorder_sources_free(r->by_source);
    dqi_assembly_free(&r->base);
    free(r->open);
    free(r->armed);
    free(r->flow_ids);
    free(r);
}

// ---- stage ------------------------------------------------------------------------------------------------

static int reorder_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const dqi_reorder *r = st->impl;
    int err = dqi_assembly_check(st, q, diag);
    if (err != DQ_OK) return err;
    const dq_prog *progs[] = {r->seq, r->batch, r->slot, r->offset, r->extra};
    uint32_t most = 0;
    for (int i = 0; i < 5; i++)
        if (dqi_prog_needs(progs[i]) > most) most = dqi_prog_needs(progs[i]);
    return dqi_stage_reads(st, q, most, diag);
}

static int reorder_join(dq_stage *st, dq_queue *q, dq_diag *diag) {
    dqi_reorder *r = st->impl;
    uint32_t n = atomic_load(&r->n_sources), known = 0;
    while (known < n && r->sources[known].queue != q)
        known++;
    if (known == DQI_MAX_SOURCES)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "reorder %s: more than %d queues", st->name,
                        DQI_MAX_SOURCES);
    if (known < n) return DQ_OK;
    r->sources[n].queue = q;
    int err = r->base.gpu ? dqi_reorder_gpu_join(r, &r->sources[n], diag) : DQ_OK;
    if (err == DQ_OK) atomic_store(&r->n_sources, n + 1);
    return err;
}

static void reorder_line(const dq_stage *st, dq_line *line) {
    const dqi_reorder *r = st->impl;
    dqi_assembly_line(st, line);
    dqi_line_add(line, &r->side);
    line->extra[DQ_EXTRA_OUTLIERS] = line->dropped[DQ_DROP_OUTLIER];
}

static bool reorder_histogram(const dq_stage *st, uint32_t k, dq_histogram *out) {
    const dqi_reorder *r = st->impl;
    if (k != 1 || !dqi_reorder_gpu_timed(r)) return dqi_assembly_histogram(st, k, out);
    out->kind = DQ_HISTOGRAM_RUN_TIME;
    dqi_histogram_read(&r->ran, out);
    return true;
}

static int reorder_poll(dq_stage *st) {
    dqi_reorder *r = st->impl;
    int work = r->base.gpu ? dqi_reorder_gpu_poll(r) : 0;
    return work + dqi_assembly_poll(st);
}

static void expire(dqi_assembly *a, int64_t now) {
    dqi_reorder *r = (dqi_reorder *)a;
    dqi_lock(&r->lock);
    dqi_window_expire(r, now);
    dqi_unlock(&r->lock);
}

static uint64_t close_all(dqi_assembly *a) {
    dqi_reorder *r = (dqi_reorder *)a;
    dqi_lock(&r->lock);
    dqi_trial_reject(r);
    uint64_t n = dqi_window_close(r, DQ_AGGREGATE_STOPPED);
    dqi_unlock(&r->lock);
    return n;
}

static bool pending(dqi_assembly *a, dqi_assembled *b) {
    return a->gpu && dqi_reorder_gpu_gaps((dqi_reorder *)a, (dqi_batch *)b);
}

// Returns the buffers that wait for packets.
static void disarm(dqi_reorder *r) {
    for (uint32_t k = 0; r->armed && k < r->conf.region->conf.num_bufs; k++) {
        if (r->armed[k]) dq_burst_unref(r->armed[k]->burst);
        r->armed[k] = NULL;
    }
}

static void reorder_finish(dq_stage *st) {
    dqi_reorder *r = st->impl;
    close_all(&r->base);
    disarm(r);
    if (r->base.gpu) dqi_reorder_gpu_finish(r);
    dqi_assembly_drop_closed(&r->base, DQ_DROP_STOPPED);
    if (r->by_source)
        dqi_reorder_sources_close(r);
    else
        dqi_ends_close(&r->base.ends, &r->base.done);
}

// The stage's queue has a consumer: the queues claimed by the stage are read from now on.
static void wanted(dq_queue *out) {
    dqi_reorder *r = out->engine;
    for (uint32_t i = 0; i < atomic_load(&r->n_sources); i++) {
        dq_queue *q = r->sources[i].queue;
        if (!q->rx.claim) continue;
        atomic_store(&q->rx.consumed, true);
        dqi_queue_kick(q);
    }
}

static void stage_free(dq_stage *st) { reorder_free(st->impl); }

static const dqi_assembly_ops reorder_ops = {
    .kind = "reorder",
    .wanted = wanted,
    .expire = expire,
    .close = close_all,
    .discard = dqi_reorder_discard,
    .pending = pending,
    .fill_gaps = dqi_reorder_fill_gaps,
    .account = dqi_reorder_account,
    .stage = {.line_kind = DQ_LINE_STAGE,
              .check = reorder_check,
              .join = reorder_join,
              .push = dqi_reorder_push,
              .held = dqi_assembly_held,
              .line = reorder_line,
              .histogram = reorder_histogram,
              .sources = dqi_reorder_sources_read,
              .poll = reorder_poll,
              .drain = dqi_assembly_drain,
              .finish = reorder_finish,
              .blocks = true, // on a GPU's pending work
              .free = stage_free},
};

const dqi_reorder *dqi_reorder_of(const dq_queue *q) {
    return q->owner && q->owner->ops == &reorder_ops.stage ? q->owner->impl : NULL;
}

static int check(dq_session *s, const char *name, const dq_reorder_conf *c, dq_diag *diag) {
    int err = dqi_assembly_check_name(s, "reorder", name, diag);
    if (err == DQ_OK) err = check_rule(name, c, diag);
    if (err == DQ_OK) err = check_ring(name, c, diag);
    if (err != DQ_OK) return err;
    char what[DQ_REORDER_LEN + 16];
    snprintf(what, sizeof what, "reorder %s", name);
    return dqi_stage_may_take(s, what, c->region, c->ring || c->policy == DQ_POLICY_WAIT, diag);
}

int dq_stage_reorder(dq_session *s, const char *name, const dq_reorder_conf *conf, dq_stage **out,
                     dq_queue **aggregates, dq_diag *diag) {
    dq_reorder_conf grown = *conf;
    dqi_convert convert;
    int err = convert_sizes(name, &grown, &convert, diag);
    if (err != DQ_OK || (err = check(s, name, &grown, diag)) != DQ_OK) return err;
    dqi_reorder *r = calloc(1, sizeof *r);
    if (!r) return dqi_fail(diag, DQ_ESYS - ENOMEM, "reorder %s: no memory", name);
    r->conf = grown;
    r->convert = convert;
    r->base = (dqi_assembly){.ops = &reorder_ops,
                             .timeout_ns = grown.timeout_ns,
                             .fill = grown.fill,
                             .segment = grown.segment,
                             .drop_incomplete = grown.drop_incomplete != 0,
                             .wait = grown.policy == DQ_POLICY_WAIT,
                             .burst_flags = grown.ring ? DQ_BURST_DIRECT_PLACED : 0};
    if ((err = choose_window(name, &r->conf, diag)) != DQ_OK ||
        (err = make_rule(r, &r->conf, diag)) != DQ_OK || (err = make_sources(r, name, diag)) != DQ_OK ||
        (err = make_records(r, name, diag)) != DQ_OK ||
        (err = dqi_reorder_gpu_open(r, name, diag)) != DQ_OK ||
        (err = dqi_assembly_add(&r->base, name, r->conf.region, diag)) != DQ_OK) {
        reorder_free(r);
        return err;
    }
    *out = r->base.stage;
    *aggregates = r->base.out;
    return DQ_OK;
}
