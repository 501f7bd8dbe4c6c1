// stage_copy.c: copies bursts into buffers of another region: to or from a GPU's memory, or within the
// host's.
//
// Copies are delivered in order through a queue of the stage once complete; the input burst is referenced
// until then. If a GPU is involved, packets become moves on a list (cuda/mover.h); otherwise the source's
// poller copies. The ring of copies in progress has one entry per buffer of the region.
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/peers.h"
#include "cuda/memory.h"
#include "cuda/mover.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/session.h"
#include "pipeline/stage_queue.h"
#include "program/payload.h"
#include "reorder/convert.h"
#include "reorder/dq_reorder.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MOVES 64 // minimum number of moves appended at a time

// A copy in progress; lists: unfinished lists with its moves.
typedef struct passage {
    dq_burst *out;
    _Atomic uint32_t lists;
} passage;

// Copy of an aggregate's record, one per buffer; words has cap entries.
typedef struct record {
    dq_aggregate agg;
    uint64_t *words;
    uint64_t cap;
} record;

typedef struct copier {
    dq_stage *stage;
    dq_queue *out;
    dq_copy_conf conf;
    dqi_convert convert;
    dqi_payload_rule place;
    dqi_gpu *gpu;     // NULL: pollers copy
    dqi_mover *mover; // its lists are filled under the lock
    dqi_spin lock;    // protects the ring's tail and the mover's open list: several pollers may push
    passage *ring;
    uint32_t mask;
    uint32_t head; // next one to deliver, by out's poller
    _Atomic uint32_t tail;
    record *records;
    dqi_counters c; // of delivered packets, by out's poller
    dqi_gauge held;
} copier;

// ---- single packet ----------------------------------------------------------------------------------------

// Splits packet i into the bytes before its payload and the payload, which is converted. Returns false if it
// has none.
enum { ADMITTED = -1 };

static bool split(const copier *c, const dq_burst *in, uint32_t i, uint32_t *head, uint32_t *payload,
                  uint32_t *len) {
    *head = dqi_packet_len(in, i);
    *payload = *len = 0;
    if (!dqi_converts(&c->convert)) return true;
    uint32_t from, to;
    if (!dqi_payload_find(in, &c->place, NULL, i, i, &from, &to)) return false;
    *head = from;
    *payload = to - from;
    return dqi_convert_size(&c->convert, *payload, len);
}

// Sets the next packet of out to the copy of packet i; returns ADMITTED, or the drop reason.
static int admit(const copier *c, const dq_burst *in, uint32_t i, dq_burst *out) {
    uint32_t head, payload, len, k = out->n;
    if (!split(c, in, i, &head, &payload, &len)) return DQ_DROP_BAD_PAYLOAD;
    if ((uint64_t)head + len > c->conf.region->conf.buf_size) return DQ_DROP_TOO_LONG;
    out->off[0][k] = dqi_buf_off(c->conf.region, out->bufs[0][k]);
    out->len[0][k] = head + len;
    out->flow[k] = in->flow[i];
    out->ts[k] = in->ts[i];
    if (in->origins) dqi_burst_set_origin(out, k, &in->origin[i]);
    dqi_burst_copy_imms(out, k, in, i, 1);
    out->bytes += head + len;
    if (in->payload) dqi_burst_copy_peer(out, k, in, i);
    out->n++;
    return ADMITTED;
}

// Builds the moves of packet i to `to`; returns their number, at most one per segment and one for the
// payload.
static uint32_t moves_of(const copier *c, const dq_burst *in, uint32_t i, uint64_t to, dqk_move *m) {
    uint32_t head, payload, len, n = 0;
    split(c, in, i, &head, &payload, &len);
    const uint32_t begin = head;
    for (uint32_t s = 0; s < in->nseg && head > 0; s++) {
        uint32_t part = in->len[s][i] < head ? in->len[s][i] : head;
        if (part > 0) m[n++] = (dqk_move){(uintptr_t)dqi_device_bytes(in, s, i), to, part, DQK_COPY};
        head -= part;
        to += part;
    }
    if (payload > 0)
        m[n++] = (dqk_move){(uintptr_t)dqi_device_bytes(in, 0, i) + begin, to, payload, DQK_CONVERT};
    return n;
}

static void copy_now(const copier *c, const dqk_move *m, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        uint8_t *to = (uint8_t *)(uintptr_t)m[k].dst;
        const uint8_t *from = (const uint8_t *)(uintptr_t)m[k].src;
        if (m[k].what == DQK_CONVERT)
            dqi_convert_bytes(&c->convert, to, from, m[k].len);
        else
            memcpy(to, from, m[k].len);
    }
}

// ---- aggregates -------------------------------------------------------------------------------------------

// Copies the aggregate's metadata. Returns false without memory.
static bool copy_aggregate(copier *c, const dq_burst *in, dq_burst *out) {
    const dq_aggregate *a = in->aggregate;
    if (!a) return true;
    record *r = &c->records[out->bufs[0][0] - c->conf.region->first_id];
    uint64_t bitmap = (a->cells + 63) / 64, extra = a->extra ? a->slots : 0;
    if (r->cap < bitmap + extra) {
        uint64_t *more = realloc(r->words, (bitmap + extra) * sizeof *more);
        if (!more) return false;
        r->words = more;
        r->cap = bitmap + extra;
    }
    memcpy(r->words, a->present, bitmap * sizeof *r->words);
    if (extra > 0) memcpy(r->words + bitmap, a->extra, extra * sizeof *r->words);
    r->agg = *a;
    r->agg.on_gpu = 0;
    r->agg.present = r->words;
    r->agg.extra = extra > 0 ? r->words + bitmap : NULL;
    out->aggregate = &r->agg;
    return true;
}

// ---- bursts -----------------------------------------------------------------------------------------------

// Allocates an empty burst with buffers for *n packets, up to in->n. NULL: no burst.
static dq_burst *begin(const copier *c, const dq_burst *in, uint32_t *n) {
    dq_burst *out = dqi_burst_get(in->session->core.picks);
    if (!out) return NULL;
    out->nseg = 1;
    out->conn = in->conn;
    out->flags = in->flags & ~DQ_BURST_SHARED;
    dqi_burst_take_clock(out, in);
    out->queue = c->out;
    out->payload = in->payload;
    *n = dqi_burst_take(out, (dq_region *const[]){c->conf.region}, in->n);
    return out;
}

// Copies, or appends to the open list, which references in until it completes.
static void hand_on(copier *c, passage *p, const dqk_move *m, uint32_t n, dq_burst *in) {
    if (c->mover)
        dqi_mover_add(c->mover, m, n, !(in->device_only & 1), in, &p->lists);
    else
        copy_now(c, m, n);
}

// Fills out, which has buffers for `room` packets, with copies of in's packets.
static void fill(copier *c, passage *p, dqi_node *node, dq_burst *in, dq_burst *out, uint32_t room) {
    dqk_move moves[MOVES + DQ_MAX_SEGS + 1];
    uint32_t n = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        int why = out->n < room ? admit(c, in, i, out) : DQ_DROP_NO_PACKET_BUFFER;
        if (why != ADMITTED) {
            dqi_drop(&node->c, (dq_reason)why, 1);
            continue;
        }
        n += moves_of(c, in, i, (uintptr_t)dqi_device_bytes(out, 0, out->n - 1), moves + n);
        if (n < MOVES) continue;
        hand_on(c, p, moves, n, in);
        n = 0;
    }
    hand_on(c, p, moves, n, in);
}

// Starts the copy of in. Under the lock, with space for its moves.
static void send_off(copier *c, dqi_node *node, dq_burst *in, dq_burst *out, uint32_t room) {
    uint32_t tail = atomic_load_explicit(&c->tail, memory_order_relaxed);
    passage *p = &c->ring[tail & c->mask];
    p->out = out;
    atomic_store_explicit(&p->lists, 0, memory_order_relaxed);
    fill(c, p, node, in, out, room);
    if (out->n > 0 && !copy_aggregate(c, in, out)) out->flags &= ~DQ_BURST_REORDERED;
    dqi_bufs_free(out->session, out->bufs[0] + out->n, room - out->n);
    out->n_bufs = out->n;
    if (out->n == 0) {
        dq_burst_unref(out);
        return;
    }
    dqi_gauge_add(&c->held, out->n);
    atomic_store_explicit(&c->tail, tail + 1, memory_order_release);
    if (c->mover) dqi_mover_push(c->mover, false);
}

static uint32_t moves_of_burst(const dq_burst *b) { return b->n * (b->nseg + 1); }

static int copy_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    copier *c = st->impl;
    uint32_t room = 0;
    *out = NULL;
    dqi_lock(&c->lock);
    bool lists = !c->mover || dqi_mover_room(c->mover, moves_of_burst(in));
    bool lost = !lists && dqi_mover_lost(c->mover);
    dq_burst *b = lists ? begin(c, in, &room) : NULL;
    bool wait = (!lists && !lost) || (lists && room < in->n && c->conf.policy == DQ_POLICY_WAIT);
    if (c->mover && (!b || wait || room == 0)) dqi_mover_push(c->mover, false);
    if (b && (wait || room == 0)) {
        dqi_bufs_free(b->session, b->bufs[0], room);
        dq_burst_unref(b);
    } else if (b) {
        send_off(c, node, in, b, room);
    }
    dqi_unlock(&c->lock);
    if (wait) return DQ_NOT_READY;
    if (!b || room == 0)
        dqi_drop(&node->c,
                 lost ? DQ_DROP_DEVICE_LOST
                 : b  ? DQ_DROP_NO_PACKET_BUFFER
                      : DQ_DROP_NO_BURST_BUFFER,
                 in->n);
    dq_burst_unref(in);
    dqi_queue_kick(c->out);
    return DQ_OK;
}

// ---- output -----------------------------------------------------------------------------------------------

// Returns the next complete copy, or NULL.
static dq_burst *next_out(copier *c) {
    if (c->head == atomic_load_explicit(&c->tail, memory_order_acquire)) return NULL;
    passage *p = &c->ring[c->head & c->mask];
    if (dqi_load_acq32(&p->lists) > 0) return NULL;
    c->head++;
    dqi_gauge_add(&c->held, -(int64_t)p->out->n);
    return p->out;
}

static void drop_out(copier *c, dq_burst *b, dq_reason why) {
    dqi_drop(&c->c, why, b->n);
    dq_burst_unref(b);
}

static int copy_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    copier *c = q->engine;
    for (dq_burst *out; (out = next_out(c)) != NULL;) {
        bool lost = c->gpu && dqi_gpu_lost(c->gpu, NULL, 0);
        if (room == 0 || lost) {
            drop_out(c, out, lost ? DQ_DROP_DEVICE_LOST : DQ_DROP_NO_CONSUMER);
            continue;
        }
        dqi_add(&c->c.out, out->n);
        dqi_add(&c->c.out_bytes, out->bytes);
        dqi_add(&q->c.in, out->n);
        dqi_add(&q->c.in_bytes, out->bytes);
        dq_burst_unref(*b); // empty
        *b = out;
        return (int)out->n;
    }
    return 0;
}

static int copy_poll(dq_stage *st) {
    copier *c = st->impl;
    if (!c->mover) return 0;
    int work = dqi_mover_poll(c->mover, dqi_mono_ns());
    return dqi_stage_await(st, c->gpu, work, dqi_mover_next(c->mover));
}

// ---- stage ------------------------------------------------------------------------------------------------

static int use_gpu(copier *c, int32_t number, const char *name, dq_diag *diag) {
    char what[DQ_NAME_LEN + 16];
    snprintf(what, sizeof what, "copy %.*s", DQ_REORDER_LEN, name);
    int err = dqi_convert_by_gpu(&c->convert, what, diag);
    if (err != DQ_OK) return err;
    c->gpu = dqi_cuda_use(c->conf.region->session, number, what, diag);
    if (!c->gpu) return DQ_NOT_SUPPORTED;
    const dqi_mover_conf conf = {.gpu = c->gpu,
                                 .conversion = c->convert.conversion,
                                 .packed = dqi_convert_packed(&c->convert),
                                 .bytes = DQI_LIST_BYTES,
                                 .delay_ns = DQI_LIST_NS};
    return dqi_mover_new(&conf, what, &c->mover, diag);
}

// Lets the stage's GPU read a region of another GPU at its address, over NVLink or PCIe.
static int share(const copier *c, const dq_region *r, const char *name, dq_diag *diag) {
    char what[DQ_NAME_LEN + 16];
    dq_diag why = {0};
    snprintf(what, sizeof what, "copy %.*s", DQ_REORDER_LEN, name);
    int err = dqi_gpu_memory_share(dqi_cuda_memory_of(r), c->gpu, what, &why);
    if (err == DQ_OK) return DQ_OK;
    return dqi_fail(
        diag, err,
        "%s, where region %s lies: hint: two copies, with a region of kind host_pinned between them",
        why.text, r->conf.name);
}

// Checks that the CPU, or the stage's GPU, can read the region.
static int check_region(const copier *c, const dq_region *r, dq_diag *diag) {
    if (r->cpu) return DQ_OK;
    if (!r->gpu)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "copy %s: neither the CPU nor a GPU can read region %s",
                        c->stage->name, r->conf.name);
    return !c->gpu || c->gpu == r->gpu ? DQ_OK : share(c, r, c->stage->name, diag);
}

static int copy_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const copier *c = st->impl;
    if (dqi_stage_is_before(st, q))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "copy %s: a stage cannot consume its own output",
                        st->name);
    if (q->conf.batch_size * (q->conf.n_regions + 1) > DQI_LIST_MOVES)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "copy %s: bursts of queue %s may have %u packets, and it takes %u at most", st->name,
                        q->conf.name, q->conf.batch_size, DQI_LIST_MOVES / (q->conf.n_regions + 1));
    if (dqi_converts(&c->convert) && (!q->iface->ops->payload || q->conf.n_regions > 1))
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "copy %s: with data_types it takes payloads in one segment, and queue %s holds %s: hint: "
            "s:convert, or s:reorder with data_types",
            st->name, q->conf.name, q->iface->ops->payload ? "parts of them" : "frames");
    int err = DQ_OK;
    for (uint32_t k = 0; k < q->conf.n_regions && err == DQ_OK; k++)
        err = check_region(c, q->conf.regions[k], diag);
    return err;
}

// If the queue has GPU memory, that GPU does all further work of the stage, also in memory of other GPUs.
static int copy_join(dq_stage *st, dq_queue *q, dq_diag *diag) {
    copier *c = st->impl;
    int err = DQ_OK;
    for (uint32_t k = 0; k < q->conf.n_regions && !c->gpu && err == DQ_OK; k++)
        if (q->conf.regions[k]->gpu) err = use_gpu(c, q->conf.regions[k]->conf.gpu, st->name, diag);
    for (uint32_t k = 0; k < q->conf.n_regions && err == DQ_OK; k++)
        err = check_region(c, q->conf.regions[k], diag);
    return err;
}

static uint64_t copy_held(const dq_stage *st) {
    return (uint64_t)dqi_gauge_get(&((const copier *)st->impl)->held);
}

static void copy_line(const dq_stage *st, dq_line *line) {
    dqi_line_add(line, &((const copier *)st->impl)->c);
}

static void copy_finish(dq_stage *st) {
    copier *c = st->impl;
    while (c->mover && dqi_mover_next(c->mover) != INT64_MAX) {
        dqi_mover_push(c->mover, true);
        if (dqi_mover_poll(c->mover, dqi_mono_ns()) == 0) dqi_mover_nap();
    }
    for (dq_burst *b; (b = next_out(c)) != NULL;)
        drop_out(c, b, DQ_DROP_STOPPED);
}

static void copier_free(copier *c) {
    dqi_mover_free(c->mover);
    for (uint32_t k = 0; c->records && k < c->conf.region->conf.num_bufs; k++)
        free(c->records[k].words);
    free(c->records);
    free(c->ring);
    free(c);
}

static void copy_free(dq_stage *st) { copier_free(st->impl); }

static const dqi_stage_ops copy_ops = {
    .line_kind = DQ_LINE_STAGE,
    .check = copy_check,
    .join = copy_join,
    .push = copy_push,
    .held = copy_held,
    .line = copy_line,
    .poll = copy_poll,
    .finish = copy_finish,
    .blocks = true, // on a GPU's pending work
    .free = copy_free,
};

static int prepare(copier *c, dq_session *s, const char *name, dq_diag *diag) {
    char what[DQ_REORDER_LEN + 16];
    const dq_region *r = c->conf.region;
    if (!r || s->state == DQI_NEW || strlen(name) > DQ_REORDER_LEN)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "copy %.64s: it needs a memory region, a name of at most %d bytes, and a session that is open",
            name, DQ_REORDER_LEN);
    snprintf(what, sizeof what, "copy %s", name);
    int err = dqi_convert_find(&c->conf.types, &c->convert, what, diag);
    if (err == DQ_OK) err = dqi_stage_may_take(s, what, r, c->conf.policy == DQ_POLICY_WAIT, diag);
    if (err == DQ_OK) err = dqi_region_keep_peers(c->conf.region, diag);
    if (err != DQ_OK) return err;
    c->mask = 1;
    while (c->mask < r->conf.num_bufs)
        c->mask = 2 * c->mask + 1;
    c->ring = calloc(c->mask + 1, sizeof *c->ring);
    c->records = calloc(r->conf.num_bufs, sizeof *c->records);
    return c->ring && c->records ? DQ_OK : dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
}

static int make_queue(copier *c, dq_session *s, const char *name, dq_diag *diag) {
    char line[DQ_NAME_LEN];
    snprintf(line, sizeof line, "%s.copies", name);
    dqi_stage_queue_conf conf = {
        .line = line,
        .queue = {.core = -1, .batch_size = s->core.picks_cap, .n_regions = 1, .regions = {c->conf.region}},
        .n_bursts = 2, // empty ones: copies use selections
        .payload = true,
        .rx = copy_rx,
        .impl = c,
    };
    snprintf(conf.queue.name, sizeof conf.queue.name, "%s", name);
    return dqi_stage_queue_new(s, &conf, &c->out, diag);
}

int dq_stage_copy(dq_session *s, const char *name, const dq_copy_conf *conf, dq_stage **out,
                  dq_queue **copies, dq_diag *diag) {
    copier *c = calloc(1, sizeof *c);
    if (!c) return dqi_fail(diag, DQ_ESYS - ENOMEM, "copy %s: no memory", name);
    c->conf = *conf;
    c->place = (dqi_payload_rule){.offset = conf->payload_offset, .at_payload = conf->at_payload != 0};
    int err = prepare(c, s, name, diag);
    if (err == DQ_OK && conf->region->gpu) err = use_gpu(c, conf->region->conf.gpu, name, diag);
    if (err == DQ_OK) err = make_queue(c, s, name, diag);
    if (err != DQ_OK) goto fail;
    if ((err = dqi_stage_add(s, name, &copy_ops, c, &c->stage, diag)) != DQ_OK) goto fail_queue;
    dqi_stage_queue_own(c->stage, c->out);
    c->stage->region = conf->region;
    c->stage->waits = conf->policy == DQ_POLICY_WAIT;
    *out = c->stage;
    *copies = c->out;
    return DQ_OK;
fail_queue:
    dqi_stage_queue_free(c->out);
fail:
    copier_free(c);
    return err;
}
