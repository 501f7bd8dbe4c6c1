// reorder_place.c: places the packets of a burst into their batches: evaluates the position numbers as
// columns, then copies the payloads run by run (consecutive packets of one batch). On the source's poller.
#include "core/burst.h"
#include "core/copy_nontemporal.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/queue.h"
#include "program/expr.h"
#include "reorder/reorder.h"

#include <string.h>

#define CHUNK     DQI_PAYLOAD_CHUNK // packets whose numbers are computed at a time
#define LONG_COPY 8192              // bytes; longer copies bypass the caches in memcpy already
#define MOVES     (2 * CHUNK)       // maximum per run: a payload and its cell's fill per packet

// Numbers of a chunk of packets; has: all required ones are present.
typedef struct columns {
    uint64_t number[CHUNK], slot[CHUNK], offset[CHUNK], extra[CHUNK];
    uint8_t has[CHUNK];
    uint64_t source[CHUNK];
    uint8_t named[CHUNK]; // has a source
    dqi_payload_numbers payload;
} columns;

// Source and destination of a packet's payload.
typedef struct item {
    const uint8_t *bytes;   // NULL: dropped
    uint32_t from;          // input bytes,
    uint32_t len, slot, at; // output bytes, and their position
    uint32_t index;         // of the packet in the chunk
} item;

// State of a push.
typedef struct work {
    dqi_reorder *r;
    dqi_node *node;
    dqi_source *source; // NULL: does not wait for other sources
    dqi_mover *mover;   // NULL: this thread copies
    const dq_burst *in;
    uint32_t first, n; // packets of the chunk
    uint32_t n_rest;   // packets that pass: their indices are in the node's scratch
    dqi_key key;       // source of the previous packet, valid if known_id is not 0
    uint32_t known_id;
    bool closed; // a batch was closed: launch this thread's list immediately
    columns cols;
    item items[CHUNK]; // of a run
    uint32_t n_moves;
    dqk_move moves[MOVES];
} work;

// ---- numbers ----------------------------------------------------------------------------------------------

static void column(work *w, const dq_prog *prog, const dqi_packets *in, uint64_t *out) {
    uint8_t ok[CHUNK];
    if (!prog || dqi_prog_eval(prog, dqi_level_best(), in, w->in->payload, out, ok) == in->n) return;
    for (uint32_t i = 0; i < in->n; i++)
        w->cols.has[i] &= ok[i];
}

static void compute(work *w) {
    const dq_burst *b = w->in;
    const dqi_reorder_sources *s = w->r->by_source;
    const dqi_packets in = dqi_packets_at(b, w->first, w->n);
    memset(w->cols.has, 1, w->n);
    dqi_payload_compute(b, &w->r->payload, w->first, &w->cols.payload);
    column(w, w->r->seq ? w->r->seq : w->r->batch, &in, w->cols.number);
    column(w, w->r->slot, &in, w->cols.slot);
    column(w, w->r->offset, &in, w->cols.offset);
    column(w, w->r->extra, &in, w->cols.extra);
    if (s && s->number)
        dqi_prog_eval(s->number, dqi_level_best(), &in, b->payload, w->cols.source, w->cols.named);
}

// ---- single packet ----------------------------------------------------------------------------------------

static bool takes(const dqi_reorder *r, uint32_t flow) {
    for (uint32_t i = 0; i < r->conf.n_flow_ids; i++)
        if (r->flow_ids[i] == flow) return true;
    return r->conf.n_flow_ids == 0;
}

// Locates the payload of packet k; returns false if it has none.
static bool payload_of(const work *w, uint32_t k, item *it) {
    const dqi_payload_rule *rule = &w->r->payload;
    uint32_t from, to;
    if (!dqi_payload_find(w->in, rule, &w->cols.payload, k, w->first, &from, &to)) return false;
    it->bytes = (w->in->device_only ? dqi_device_bytes(w->in, rule->segment, k)
                                    : dqi_bytes(w->in, rule->segment, k)) +
                from;
    it->from = to - from;
    return true;
}

// Computes the i-th packet's offset in its slot; returns false if it is invalid.
static bool offset_of(const work *w, uint32_t i, uint32_t *at) {
    const dqi_reorder *r = w->r;
    *at = 0;
    if (!r->offset) return true;
    return dqi_convert_size(&r->convert, w->cols.offset[i], at) && *at < r->conf.slot_bytes &&
           *at % r->conf.packet_bytes == 0;
}

// Evaluates the i-th packet of the chunk except its batch; returns DQI_PLACED, or the reason to drop it.
static int examine(const work *w, uint32_t i, item *it) {
    const dqi_reorder *r = w->r;
    if (!w->cols.has[i] || !payload_of(w, w->first + i, it)) return DQ_DROP_BAD_PLACE;
    if (r->slot && w->cols.slot[i] >= r->conf.slots) return DQ_DROP_BAD_PLACE;
    if (r->batch && r->conf.wrap && w->cols.number[i] >= r->conf.wrap) return DQ_DROP_BAD_PLACE;
    if (r->armed && r->seq && w->cols.number[i] > r->mask) return DQ_DROP_BAD_PLACE;
    it->slot = r->slot ? (uint32_t)w->cols.slot[i] : 0;
    if (!offset_of(w, i, &it->at)) return DQ_DROP_BAD_PLACE;
    if (!dqi_convert_size(&r->convert, it->from, &it->len)) return DQ_DROP_BAD_PAYLOAD;
    return it->len > r->most - it->at ? DQ_DROP_TOO_LONG : DQI_PLACED;
}

// Returns the id of the i-th packet's source.
static uint32_t source_id(work *w, uint32_t i) {
    dqi_reorder_sources *s = w->r->by_source;
    dqi_key key = {.a = w->cols.source[i]};
    if (s->number ? !w->cols.named[i] : !w->in->payload || !dqi_key_of_peer(w->in, w->first + i, &key))
        return DQI_KEY_NONE;
    if (w->known_id == 0 || !dqi_key_same(key, w->key)) {
        w->key = key;
        w->known_id = dqi_key_id(&s->keys, key);
    }
    return w->known_id;
}

// Returns the bytes available for a payload at its position.
static uint32_t room_of(const dq_aggregate *a, const item *it) {
    uint32_t room = a->slot_bytes - it->at;
    return room > a->cell_bytes ? a->cell_bytes : room;
}

static uint64_t cell_of(const dqi_reorder *r, const dq_aggregate *a, const item *it) {
    return (uint64_t)it->slot * r->cells_each + (it->at ? it->at / a->cell_bytes : 0);
}

// Copies or converts the payload to its position, followed by `rest` fill bytes.
static void copy(const dqi_reorder *r, uint8_t *to, const item *it, uint32_t rest) {
    if (r->stream && it->from < LONG_COPY)
        dqi_copy_nontemporal(to, it->bytes, it->from);
    else
        dqi_convert_bytes(&r->convert, to, it->bytes, it->from);
    if (rest > 0) memset(to + it->len, r->conf.fill, rest);
}

// Appends the same as moves for the GPU.
static void append(work *w, uint8_t *to, const item *it, uint32_t rest) {
    w->moves[w->n_moves++] = (dqk_move){(uintptr_t)it->bytes, (uintptr_t)to, it->from,
                                        dqi_converts(&w->r->convert) ? DQK_CONVERT : DQK_COPY};
    if (rest > 0)
        w->moves[w->n_moves++] =
            (dqk_move){(uint8_t)w->r->conf.fill, (uintptr_t)to + it->len, rest, DQK_FILL};
}

static void place(work *w, dqi_batch *b, const item *it) {
    const dqi_reorder *r = w->r;
    uint32_t rest = r->conf.fill != DQ_FILL_KEEP ? room_of(&b->base.agg, it) - it->len : 0;
    uint8_t *to = b->base.data + (uint64_t)it->slot * b->base.agg.slot_bytes + it->at;
    if (w->mover)
        append(w, to, it, rest);
    else
        copy(r, to, it, rest);
    if (b->extra) atomic_store_explicit(&b->extra[it->slot], w->cols.extra[it->index], memory_order_relaxed);
    if (b->ids)
        atomic_store_explicit(&b->ids[cell_of(r, &b->base.agg, it)], (uint16_t)source_id(w, it->index),
                              memory_order_relaxed);
}

// ---- runs -------------------------------------------------------------------------------------------------

static void pass(work *w, uint32_t i) { w->node->scratch[w->n_rest++] = w->first + i; }

static void lose(work *w, uint32_t i, int why) {
    dqi_drop(&w->node->c, (dq_reason)why, 1);
    if (w->r->by_source) dqi_reorder_sources_lost(w->r->by_source, source_id(w, i), (dq_reason)why);
}

// Collects consecutive packets of b from the i-th on as *n items; returns the first other packet.
static uint32_t gather(work *w, const dqi_batch *b, uint32_t i, uint32_t *n, uint32_t *longest) {
    const dqi_reorder *r = w->r;
    for (; i < w->n; i++) {
        item *it = &w->items[*n];
        if (!takes(r, w->in->flow[w->first + i])) {
            pass(w, i);
            continue;
        }
        int what = examine(w, i, it);
        if (what == DQI_PLACED) {
            if (!dqi_block_has(r, b, w->cols.number[i])) break;
            if (r->seq) it->slot = (uint32_t)((w->cols.number[i] - b->first) & r->mask);
            if (it->len > *longest) *longest = it->len;
            if (it->len > room_of(&b->base.agg, it)) what = DQ_DROP_TOO_LONG;
        }
        it->index = i;
        if (what == DQI_PLACED)
            ++*n;
        else
            lose(w, i, what);
    }
    return i;
}

// Claims the cells of n items; already claimed ones are duplicates. Sets a word of the bitmap at a time,
// before anything is copied: an atomic operation waits for all preceding stores.
static void claim(work *w, dqi_batch *b, uint32_t n) {
    for (uint32_t k = 0, end; k < n; k = end) {
        uint64_t word = cell_of(w->r, &b->base.agg, &w->items[k]) / 64, mask = 0;
        for (end = k; end < n; end++) {
            uint64_t cell = cell_of(w->r, &b->base.agg, &w->items[end]), bit = UINT64_C(1) << cell % 64;
            if (cell / 64 != word || mask & bit) break;
            mask |= bit;
        }
        uint64_t twice = atomic_fetch_or_explicit(&b->present[word], mask, memory_order_relaxed) & mask;
        for (uint32_t j = k; twice && j < end; j++) {
            if (!(twice >> cell_of(w->r, &b->base.agg, &w->items[j]) % 64 & 1)) continue;
            w->items[j].bytes = NULL;
            lose(w, w->items[j].index, DQ_DROP_DUPLICATE);
        }
    }
}

// Fills b with consecutive packets of b from the i-th on; returns the first other packet.
static uint32_t fill(work *w, dqi_batch *b, uint32_t i, uint32_t *placed, int64_t *ts, uint32_t *longest) {
    uint32_t n = 0;
    i = gather(w, b, i, &n, longest);
    claim(w, b, n);
    for (uint32_t k = 0; k < n; k++) {
        const item *it = &w->items[k];
        if (!it->bytes) continue;
        place(w, b, it);
        ++*placed;
        *ts = w->in->ts[w->first + it->index];
    }
    if (w->r->stream) dqi_nontemporal_fence();
    if (w->mover) {
        const bool far = !(w->in->device_only >> w->r->payload.segment & 1);
        dqi_mover_add(w->mover, w->moves, w->n_moves, far, (dq_burst *)(uintptr_t)w->in, &b->base.fillers);
        w->n_moves = 0;
    }
    return i;
}

// Places the run of packets starting with the i-th, whose payload has len bytes; returns the first packet
// after it, or i if it has to wait, for other sources or for a buffer.
static uint32_t run(work *w, uint32_t i, uint32_t len) {
    dqi_reorder *r = w->r;
    uint64_t number = w->cols.number[i];
    dq_reason why = DQ_DROP_LATE;
    if (w->mover && !dqi_mover_room(w->mover, MOVES + dqi_reorder_gpu_marks(r))) {
        if (!dqi_mover_lost(w->mover)) return i;
        lose(w, i, DQ_DROP_DEVICE_LOST);
        return i + 1;
    }
    dqi_lock(&r->lock);
    const uint64_t low = r->low;
    if (w->source && dqi_window_ahead(r, number, w->source)) {
        dqi_unlock(&r->lock);
        return i;
    }
    dqi_batch *b = dqi_window_find(r, number, len, w->in->ts[w->first + i], &why);
    if (b) dqi_burst_take_clock(b->base.burst, w->in);
    dqi_unlock(&r->lock);
    if (!b) {
        if (why == DQ_DROP_NO_PACKET_BUFFER && dqi_assembly_waits(&r->base)) return i;
        lose(w, i, why);
        return i + 1;
    }
    uint32_t placed = 0, longest = len;
    int64_t ts = 0;
    i = fill(w, b, i, &placed, &ts, &longest);
    dqi_lock(&r->lock);
    if (w->mover && b->base.agg.present_cells + placed == b->base.agg.cells)
        dqi_reorder_gpu_mark(r, b, w->mover);
    dqi_window_leave(r, b, placed, ts, longest);
    w->closed |= r->low != low;
    dqi_unlock(&r->lock);
    return i;
}

// Places the packets of the chunk; returns how many are done.
static uint32_t place_chunk(work *w) {
    compute(w);
    for (uint32_t i = 0, next; i < w->n; i = next) {
        item it;
        next = i + 1;
        if (!takes(w->r, w->in->flow[w->first + i])) {
            pass(w, i);
            continue;
        }
        int what = examine(w, i, &it);
        if (what != DQI_PLACED)
            lose(w, i, what);
        else if ((next = run(w, i, it.len)) == i)
            return i;
    }
    return w->n;
}

// Passes on the packets that the stage did not take.
static void go_on(work *w, dq_burst *in, dq_burst **out) {
    dqi_counters *c = &w->node->c;
    if (w->n_rest == in->n)
        *out = in;
    else if (w->n_rest > 0 && dq_burst_pick(in, w->node->scratch, w->n_rest, out) != DQ_OK)
        dqi_drop(c, DQ_DROP_NO_BURST_BUFFER, w->n_rest);
    if (*out) {
        dqi_add(&c->out, w->n_rest);
        dqi_add(&c->out_bytes, (*out)->bytes);
    }
    if (*out != in) dq_burst_unref(in);
}

static dqi_source *source_of(dqi_reorder *r, const dq_burst *in) {
    for (uint32_t i = 0; i < atomic_load_explicit(&r->n_sources, memory_order_relaxed); i++)
        if (r->sources[i].queue == in->queue) return &r->sources[i];
    return NULL;
}

// Whether the input's queue has to wait for other sources.
static bool waits(const dqi_reorder *r, const dq_burst *in) {
    return r->conf.wait && !atomic_load_explicit(&in->queue->stopping, memory_order_relaxed);
}

int dqi_reorder_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    dqi_reorder *r = st->impl;
    work w;
    uint32_t had = node->turn;
    w.r = r;
    w.node = node;
    dqi_source *source = r->conf.wait || r->base.gpu ? source_of(r, in) : NULL;
    w.source = waits(r, in) ? source : NULL;
    w.mover = source ? source->mover : NULL;
    w.n_moves = 0;
    w.in = in;
    w.first = had;
    w.n_rest = node->rest;
    w.known_id = 0;
    w.closed = false;
    node->turn = node->rest = 0;
    for (uint32_t done; w.first < in->n; w.first += w.n) {
        w.n = in->n - w.first < CHUNK ? in->n - w.first : CHUNK;
        if ((done = place_chunk(&w)) == w.n) continue;
        if (w.mover) dqi_mover_push(w.mover, w.closed);
        node->turn = w.first + done;
        node->rest = w.n_rest;
        dqi_assembly_count_through(node, in, had, node->turn);
        return DQ_NOT_READY;
    }
    if (had > 0) dqi_assembly_count_through(node, in, had, 0);
    if (w.mover) dqi_mover_push(w.mover, w.closed);
    go_on(&w, in, out);
    return DQ_OK;
}
