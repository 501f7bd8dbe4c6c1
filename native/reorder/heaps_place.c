// heaps_place.c: places the packets of a burst into their heaps: evaluates the numbers as columns, then
// copies the pieces run by run (consecutive packets of one heap). On the source's poller.
#include "core/burst.h"
#include "core/copy_nontemporal.h"
#include "pipeline/dq_pipeline.h"
#include "reorder/heaps.h"

#include <string.h>

#define STREAM_BYTES (4 << 20) // heap size above which it does not stay cached until it is read
#define LONG_COPY    8192      // bytes
#define CHUNK        DQI_PAYLOAD_CHUNK
#define PLACED       (-1) // not a dq_reason

typedef struct piece {
    const uint8_t *bytes;
    uint32_t len, at; // at: offset in the heap
} piece;

typedef struct work {
    dqi_heaps *h;
    dqi_node *node;
    const dq_burst *in;
    uint32_t first, n; // packets of the chunk
    uint64_t id[CHUNK], size[CHUNK], offset[CHUNK], items_at[CHUNK], items[CHUNK];
    uint8_t has[CHUNK], has_size[CHUNK], has_items[CHUNK];
    dqi_payload_numbers payload;
    piece pieces[CHUNK];
} work;

static void column(const work *w, const dqi_packets *in, const dq_prog *prog, uint64_t *out, uint8_t *has) {
    uint8_t ok[CHUNK];
    if (!prog || dqi_prog_eval(prog, dqi_level_best(), in, w->in->payload, out, ok) == in->n) return;
    for (uint32_t i = 0; i < in->n; i++)
        has[i] &= ok[i];
}

static void compute(work *w) {
    const dq_burst *b = w->in;
    dqi_heaps *h = w->h;
    const dqi_packets in = dqi_packets_at(b, w->first, w->n);
    memset(w->has, 1, w->n);
    memset(w->has_size, h->size != NULL, w->n);
    memset(w->has_items, h->items != NULL, w->n);
    column(w, &in, h->id, w->id, w->has);
    column(w, &in, h->size, w->size, w->has_size);
    column(w, &in, h->offset, w->offset, w->has);
    column(w, &in, h->items_at, w->items_at, w->has_items);
    column(w, &in, h->items, w->items, w->has_items);
    dqi_payload_compute(b, &h->payload, w->first, &w->payload);
}

// Locates the piece of the i-th packet of the chunk; returns PLACED, or the reason to drop it.
static int examine(const work *w, uint32_t i, piece *p) {
    const dqi_heaps *h = w->h;
    uint32_t from, to;
    if (h->payload.header && !w->payload.has_header[i]) return DQ_DROP_BAD_FORMAT;
    if (!w->has[i] ||
        !dqi_payload_locate(w->in, &h->payload, &w->payload, w->first + i, w->first, &from, &to))
        return DQ_DROP_BAD_PLACE;
    uint64_t most = h->conf.region->conf.buf_size;
    if (w->has_size[i] && w->size[i] > most) return DQ_DROP_TOO_LONG;
    if (w->offset[i] > most) return DQ_DROP_PAST_END;
    *p =
        (piece){dqi_bytes(w->in, h->payload.segment, w->first + i) + from, to - from, (uint32_t)w->offset[i]};
    return PLACED;
}

static void lose(work *w, int why) { dqi_drop(&w->node->c, (dq_reason)why, 1); }

// ---- bitmap of a heap -------------------------------------------------------------------------------------

static uint64_t mask_of(uint32_t from, uint32_t to) { // within one word, to <= 64
    return UINT64_MAX >> (64 - (to - from)) << from;
}

// Returns how many of the bits [from, to) are set.
static uint32_t count_bits(const uint64_t *bits, uint32_t from, uint32_t to) {
    uint32_t n = 0;
    while (from < to) {
        uint32_t low = from % 64, high = to - (from - low) < 64 ? to - (from - low) : 64;
        n += (uint32_t)__builtin_popcountll(bits[from / 64] & mask_of(low, high));
        from += high - low;
    }
    return n;
}

static void set_bits(uint64_t *bits, uint32_t from, uint32_t to) {
    uint32_t first = from / 64, last = (to - 1) / 64;
    if (first == last) {
        bits[first] |= mask_of(from % 64, (to - 1) % 64 + 1);
        return;
    }
    bits[first] |= UINT64_MAX << from % 64;
    memset(bits + first + 1, 0xff, (last - first - 1) * sizeof *bits);
    bits[last] |= UINT64_MAX >> (63 - (to - 1) % 64);
}

// Claims the piece's bytes of the heap; returns PLACED, or the reason to drop it.
static int claim(dqi_heap *b, const piece *p) {
    if (p->len > b->base.agg.cells || p->at > b->base.agg.cells - p->len) return DQ_DROP_PAST_END;
    if (p->len == 0) return PLACED;
    uint32_t to = p->at + p->len;
    uint32_t had = p->at < b->end ? count_bits(b->present, p->at, to) : 0; // usually none is present
    if (had > 0) return had == p->len ? DQ_DROP_DUPLICATE : DQ_DROP_OVERLAP;
    set_bits(b->present, p->at, to);
    if (to > b->end) b->end = to;
    b->base.agg.present_cells += p->len;
    return PLACED;
}

// Stores those items of the i-th packet that the heap does not have yet.
static void keep_items(work *w, dqi_heap *b, uint32_t i) {
    const dq_heaps_conf *c = &w->h->conf;
    if (!w->has_items[i]) return;
    uint32_t from, to;
    dqi_payload_rule whole = {.at_payload = true};
    if (!dqi_payload_locate(w->in, &whole, NULL, w->first + i, w->first, &from, &to)) return;
    uint64_t room = to - from, at = w->items_at[i];
    const uint8_t *p = dqi_bytes(w->in, 0, w->first + i) + from;
    for (uint64_t k = 0; k < w->items[i] && at <= room && room - at >= c->item_bytes;
         k++, at += c->item_bytes) {
        uint64_t v = dqi_bits_get(p, at * 8, c->item_bytes * 8);
        bool skip = b->base.agg.n_items == DQ_HEAP_ITEMS;
        for (uint32_t s = 0; s < c->n_skip && !skip; s++)
            skip = v >> c->value_bits == c->skip[s];
        for (uint32_t s = 0; s < b->base.agg.n_items && !skip; s++)
            skip = v == b->items[s];
        if (!skip) b->items[b->base.agg.n_items++] = v;
    }
}

// ---- runs -------------------------------------------------------------------------------------------------

static const dqi_past_heap *past(const dqi_heaps *h, uint64_t id) {
    const dqi_past_heap *found = NULL;
    for (uint32_t i = 0; i < h->n_past; i++)
        if (h->past[i].id == id && (!found || h->past[i].last_ns > found->last_ns)) found = &h->past[i];
    return found;
}

#define REMEMBERED_NS 100000000 // in packet time: a closed heap's id starts a new heap after this gap

// Returns the open heap of the i-th packet; NULL, with the reason in *why.
static dqi_heap *find(work *w, uint32_t i, int *why) {
    dqi_heaps *h = w->h;
    uint64_t id = w->id[i];
    uint32_t size = w->has_size[i] ? (uint32_t)w->size[i] : h->conf.heap_bytes;
    for (uint32_t k = h->n_open; k-- > 0;) {
        dqi_heap *b = h->open[k];
        if (b->base.agg.batch_id != id) continue;
        *why = DQ_DROP_SIZE_CHANGED;
        if (w->has_size[i] && size != b->base.agg.cells) return NULL;
        memmove(h->open + k, h->open + k + 1, (h->n_open - 1 - k) * sizeof *h->open);
        h->open[h->n_open - 1] = b;
        return b;
    }
    const int64_t ts = w->in->ts[w->first + i];
    const dqi_past_heap *was = past(h, id);
    int64_t remembered = h->conf.timeout_ns > REMEMBERED_NS ? h->conf.timeout_ns : REMEMBERED_NS;
    if (was && (ts == DQ_NO_TIME || was->last_ns == DQ_NO_TIME || ts - was->last_ns < remembered)) {
        *why = was->full ? DQ_DROP_DUPLICATE : DQ_DROP_LATE;
        return NULL;
    }
    *why = DQ_DROP_BAD_PLACE;
    if (!w->has_size[i] && !h->conf.heap_bytes) return NULL;
    *why = DQ_DROP_NO_PACKET_BUFFER;
    dqi_heap *made = dqi_heap_open(h, id, size, ts);
    if (made) dqi_burst_take_clock(made->base.burst, w->in);
    return made;
}

// Claims the bytes of consecutive packets of b from the i-th on, as *n pieces; returns the first other
// packet.
static uint32_t gather(work *w, dqi_heap *b, uint32_t i, uint32_t *n) {
    uint64_t id = w->id[i];
    for (; i < w->n && w->id[i] == id && w->has[i]; i++) {
        piece *p = &w->pieces[*n];
        int what = examine(w, i, p);
        if (what == PLACED && w->has_size[i] && w->size[i] != b->base.agg.cells) what = DQ_DROP_SIZE_CHANGED;
        if (what == PLACED) what = claim(b, p);
        if (what != PLACED) {
            lose(w, what);
            continue;
        }
        keep_items(w, b, i);
        b->base.agg.packets++;
        b->base.agg.last_ns = w->in->ts[w->first + i];
        ++*n;
    }
    return i;
}

// Copies the pieces; those of large heaps bypass the caches, as does memcpy for long copies.
static void copy(dqi_heap *b, uint32_t n, const piece *pieces) {
    bool stream = b->base.agg.cells >= STREAM_BYTES, fence = false;
    for (const piece *p = pieces; p < pieces + n; p++) {
        if (p->len == 0) continue;
        fence |= stream && p->len < LONG_COPY;
        if (stream && p->len < LONG_COPY)
            dqi_copy_nontemporal(b->base.data + p->at, p->bytes, p->len);
        else
            memcpy(b->base.data + p->at, p->bytes, p->len);
    }
    if (fence) dqi_nontemporal_fence();
}

// Ends a filler of b. Under the lock, so that b can't be reused before its flag is read.
static void leave(dqi_heaps *h, dqi_heap *b) {
    dqi_lock(&h->lock);
    bool last = atomic_fetch_sub_explicit(&b->base.fillers, 1, memory_order_acq_rel) == 1 && b->closed;
    dqi_unlock(&h->lock);
    if (last) dqi_queue_kick(h->base.out);
}

// Places the run of packets starting with the i-th; returns the first packet after it, or i if it has to
// wait.
static uint32_t run(work *w, uint32_t i) {
    dqi_heaps *h = w->h;
    uint32_t n = 0, next;
    int why;
    dqi_lock(&h->lock);
    dqi_heap *b = find(w, i, &why);
    if (!b) {
        dqi_unlock(&h->lock);
        if (why == DQ_DROP_NO_PACKET_BUFFER && dqi_assembly_waits(&h->base)) return i;
        lose(w, why);
        return i + 1;
    }
    next = gather(w, b, i, &n);
    atomic_fetch_add_explicit(&b->base.fillers, 1, memory_order_relaxed);
    dqi_gauge_add(&h->base.done.held, n);
    if (dqi_heap_full(b))
        for (uint32_t k = 0; k < h->n_open; k++)
            if (h->open[k] == b) dqi_heap_close(h, k, 0);
    dqi_unlock(&h->lock);
    copy(b, n, w->pieces);
    leave(h, b);
    return next;
}

static uint32_t place_chunk(work *w) {
    compute(w);
    for (uint32_t i = 0, next; i < w->n; i = next) {
        piece p;
        int what = examine(w, i, &p);
        next = i + 1;
        if (what != PLACED)
            lose(w, what);
        else if ((next = run(w, i)) == i)
            return i;
    }
    return w->n;
}

int dqi_heaps_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    work w;
    uint32_t had = node->turn;
    w.h = st->impl;
    w.node = node;
    w.in = in;
    node->turn = 0;
    *out = NULL;
    for (w.first = had; w.first < in->n; w.first += w.n) {
        w.n = in->n - w.first < CHUNK ? in->n - w.first : CHUNK;
        uint32_t done = place_chunk(&w);
        if (done == w.n) continue;
        node->turn = w.first + done;
        dqi_assembly_count_through(node, in, had, node->turn);
        return DQ_NOT_READY;
    }
    if (had > 0) dqi_assembly_count_through(node, in, had, 0);
    dq_burst_unref(in);
    return DQ_OK;
}
