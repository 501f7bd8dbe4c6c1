// wire.c: simulated wire of the loop engine: fault injection, rate, delay, delivery into receive rings.
//
// Injected faults derive from a hash of (seed, wire, ordinal of the packet on that wire): a threaded run
// loses the same packets as any other run. Each transmit queue has one wire with a ledger line of its own:
// `in` counts packets offered, duplicates and the extra copies for a hub's receivers; `out` counts packets
// that reached a receive queue.
#include "core/counters.h"
#include "core/dq_burst.h"
#include "core/region.h"
#include "engine/loop/loop.h"
#include "packet/template.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SPLIT_BURSTS 256                     // descriptors for bursts split between queues
#define SPLIT_NEEDED (4 + 3 * DQ_MAX_QUEUES) // limit of one send: parts of three bursts, plus four
#define HOLD_MAX     8                       // packets that reordering delays at a time
#define HOLD_NS      1000000                 // maximum delay of a reordered packet when no packet follows
#define AHEAD_NS     50000                   // the wire accepts packets that it can transmit within this time
#define RETRY_NS     5000

struct loop_wire {
    dq_queue *tx;
    uint64_t key; // hash key of this wire's faults
    uint64_t ordinal;
    dqi_burst_pool *split;
    dqi_flow_rules *rules; // rules used for the last classification
    dqi_counters c;
    uint32_t cap;
    uint32_t *flow, *idx;
    uint16_t *queue;
    int64_t *ts;
    // reordering
    dq_burst *hold;
    uint32_t n_held;
    int64_t hold_since;
    struct {
        uint32_t index, left; // released after `left` more packets
    } held[HOLD_MAX];
    dqi_gauge held_now;
    int64_t last_ts; // of the last packet released; arrival times never decrease, even after reordering
};

static uint32_t largest_batch(const dq_session *s) {
    uint32_t n = 64;
    for (uint32_t i = 0; i < s->n_ifaces; i++) {
        for (uint32_t k = 0; k < s->ifaces[i]->n_rx; k++)
            if (s->ifaces[i]->rx[k]->conf.batch_size > n) n = s->ifaces[i]->rx[k]->conf.batch_size;
        for (uint32_t k = 0; k < s->ifaces[i]->n_tx; k++)
            if (s->ifaces[i]->tx[k]->conf.batch_size > n) n = s->ifaces[i]->tx[k]->conf.batch_size;
    }
    return n;
}

loop_wire *dqi_wire_new(dq_queue *tx) {
    loop_wire *w = calloc(1, sizeof *w);
    if (!w) return NULL;
    w->tx = tx;
    w->cap = largest_batch(tx->session);
    w->key = dqi_mix64(tx->session->core.conf.seed +
                       0x9e3779b97f4a7c15u * (tx->iface->index * DQ_MAX_QUEUES + tx->conf.id + 1));
    w->split = dqi_burst_pool_new(tx->session, SPLIT_BURSTS, w->cap, tx->conf.n_regions);
    w->flow = malloc(w->cap * sizeof *w->flow);
    w->idx = malloc(w->cap * sizeof *w->idx);
    w->queue = malloc(w->cap * sizeof *w->queue);
    w->ts = malloc(w->cap * sizeof *w->ts);
    if (w->split && w->flow && w->idx && w->queue && w->ts) return w;
    dqi_wire_free(w);
    return NULL;
}

void dqi_wire_free(loop_wire *w) {
    if (!w) return;
    dq_burst_unref(w->hold);
    // Bursts of this pool may be in receive rings: loop_close empties those first, and interfaces close in
    // order.
    dqi_burst_pool_free(w->split);
    dqi_flows_let_go(w->rules);
    free(w->flow);
    free(w->idx);
    free(w->queue);
    free(w->ts);
    free(w);
}

// ---- rate and delay ---------------------------------------------------------------------------------------

// Returns how many of n packets the wire accepts now and fills their arrival times.
static uint32_t take(loop_wire *w, const dq_burst *b, uint32_t first, uint32_t n, int64_t now, int64_t *ts) {
    const dq_wire_conf *c = &w->tx->session->core.conf.wire;
    if (c->rate_bps == 0) {
        for (uint32_t i = 0; i < n; i++)
            ts[i] = now + c->delay_ns;
        return n;
    }
    loop_iface *li = w->tx->iface->engine;
    double t = (double)(now - w->tx->session->core.start_ns);
    uint32_t k = 0;
    dqi_lock(&li->lock);
    if (li->wire_free_ns < t) li->wire_free_ns = t;
    for (; k < n && li->wire_free_ns <= t + AHEAD_NS; k++) {
        li->wire_free_ns += dqi_packet_len(b, first + k) * 8e9 / (double)c->rate_bps;
        ts[k] = w->tx->session->core.start_ns + (int64_t)li->wire_free_ns + c->delay_ns;
    }
    if (k == 0) w->tx->next_ns = now + (int64_t)(li->wire_free_ns - t - AHEAD_NS) + 1;
    dqi_unlock(&li->lock);
    return k;
}

static int64_t due(const loop_wire *w, int64_t arrival) {
    const dq_wire_conf *c = &w->tx->session->core.conf.wire;
    return c->rate_bps != 0 || c->delay_ns != 0 ? arrival : 0;
}

// ---- delivery ---------------------------------------------------------------------------------------------

static void drop(loop_wire *w, dq_reason why, uint64_t n) { dqi_drop(&w->c, why, n); }

// Pushes b, whose columns are complete, into the ring of rx; consumes the caller's reference.
static void push(loop_wire *w, dq_queue *rx, dq_burst *b) {
    uint32_t n = b->n;
    uint64_t bytes = b->bytes;
    b->due_ns = due(w, b->ts[n - 1]);
    if (dqi_inbox_push(rx, &((loop_rx *)rx->engine)->box, b)) {
        dqi_add(&w->c.out, n);
        dqi_add(&w->c.out_bytes, bytes);
    } else {
        drop(w, DQ_DROP_QUEUE_FULL, n);
        dq_burst_unref(b);
    }
}

// Sends the n_idx packets w->idx (relative to first) of b to one queue: moves them when b is owned
// exclusively, else sends a selection.
static void push_part(loop_wire *w, dq_queue *rx, dq_burst *b, uint32_t first, uint32_t n_idx,
                      const int64_t *ts, bool own) {
    dq_burst *part = NULL;
    if (own) {
        part = dqi_burst_get(w->split);
        for (uint32_t i = 0; part && i < n_idx; i++)
            dqi_burst_move(part, b, first + w->idx[i], 1);
    } else {
        for (uint32_t i = 0; i < n_idx; i++)
            w->idx[i] += first;
        if (dq_burst_pick(b, w->idx, n_idx, &part) != DQ_OK) part = NULL;
        for (uint32_t i = 0; i < n_idx; i++)
            w->idx[i] -= first;
    }
    if (!part) {
        drop(w, DQ_DROP_NO_BURST_BUFFER, n_idx);
        return;
    }
    for (uint32_t i = 0; i < n_idx && !own; i++) {
        part->flow[i] = w->flow[w->idx[i]];
        part->ts[i] = ts[w->idx[i]];
    }
    push(w, rx, part);
}

static void deliver_parts(loop_wire *w, dq_iface *to, dq_burst *b, uint32_t first, uint32_t n,
                          const int64_t *ts, bool own) {
    uint32_t given = 0;
    for (uint32_t k = 0; k < to->n_rx; k++) {
        dq_queue *rx = to->rx[k];
        uint32_t m = 0, most = dqi_queue_gone(rx) ? 0 : n;
        for (uint32_t i = 0; i < most; i++)
            if (w->queue[i] == rx->conf.id) w->idx[m++] = i;
        if (m > 0) push_part(w, rx, b, first, m, ts, own);
        given += m;
    }
    if (given < n) drop(w, DQ_DROP_NO_FLOW, n - given);
}

static bool same_queue(const loop_wire *w, uint32_t n) {
    unsigned other = 0;
    for (uint32_t i = 1; i < n; i++)
        other |= w->queue[i] ^ w->queue[0];
    return !other;
}

// Delivers packets [first, first + n) of b to one interface; returns true if b's reference was consumed. ts
// holds the arrival times; it points into b's own column if b is owned exclusively.
static bool deliver(loop_wire *w, dq_iface *to, dq_burst *b, uint32_t first, uint32_t n, const int64_t *ts,
                    bool own) {
    loop_iface *li = to->engine;
    if (!li || to->n_rx == 0 || dqi_flows_drops(&li->flows)) {
        drop(w, li && to->n_rx > 0 ? DQ_DROP_DROP_ALL : DQ_DROP_NO_PEER, n);
        return false;
    }
    dqi_flows_classify(&li->flows, to, &w->rules, dqi_burst_base(b), b->off[0] + first, b->len[0] + first, n,
                       own ? b->flow + first : w->flow, w->queue);
    dq_queue *rx = dqi_rx_queue(to, w->queue[0]);
    if (!own || first != 0 || n != b->n || !rx || !same_queue(w, n)) {
        deliver_parts(w, to, b, first, n, ts, own);
        return false;
    }
    push(w, rx, b);
    return true;
}

// Returns true when b can be handed over by reference: there is one receiver and no other reference.
static bool is_own(const loop_wire *w, const dq_burst *b) {
    const loop_iface *li = w->tx->iface->engine;
    return li->n_peers == 1 && dqi_burst_detachable(b);
}

// Delivers to every receiver; returns true if b's reference was consumed.
static bool deliver_all(loop_wire *w, dq_burst *b, uint32_t first, uint32_t n, const int64_t *ts) {
    const loop_iface *li = w->tx->iface->engine;
    if (li->n_peers == 1) return deliver(w, li->peers[0], b, first, n, ts, is_own(w, b));
    dqi_add(&w->c.in, (uint64_t)n * (li->n_peers - 1));
    dqi_add(&w->c.in_bytes, dqi_burst_sum(b, first, n) * (li->n_peers - 1));
    for (uint32_t p = 0; p < li->n_peers; p++)
        deliver(w, li->peers[p], b, first, n, ts, false);
    return false;
}

// ---- fault injection --------------------------------------------------------------------------------------

static bool faulty(const dq_wire_conf *c) {
    return c->loss > 0 || c->dup > 0 || c->reorder > 0 || c->corrupt > 0;
}

enum fault { LOSS, DUP, REORDER, CORRUPT, PLACE };

static uint64_t fault_hash(const loop_wire *w, enum fault f) {
    return dqi_mix64(w->key + 0x9e3779b97f4a7c15u * (w->ordinal * 8 + (uint64_t)f + 1));
}

static bool strikes(const loop_wire *w, enum fault f, double p) {
    return p > 0 && (double)(fault_hash(w, f) >> 11) * 0x1p-53 < p;
}

// Copies packets [first, first + n) of b, which has other references, into buffers of the sender's regions.
// Pushed headers are copied into the headroom.
static bool copy_range(loop_wire *w, dq_burst *own, const dq_burst *b, uint32_t first, uint32_t n) {
    if (dqi_burst_fill(own, w->tx->conf.regions, w->tx->conf.n_regions, n) != DQ_OK) return false;
    for (uint32_t s = 0; s < own->nseg; s++)
        for (uint32_t i = 0; i < n; i++) {
            uint32_t size = w->tx->conf.regions[s]->conf.buf_size, len = b->len[s][first + i];
            uint32_t front = len <= size ? 0 : len - size < DQ_HEADROOM ? len - size : DQ_HEADROOM;
            own->off[s][i] -= front;
            own->grown |= front > 0;
            own->len[s][i] = len < size + front ? len : size + front;
            memcpy(dqi_device_bytes(own, s, i), dqi_device_bytes(b, s, first + i), own->len[s][i]);
        }
    own->bytes = dqi_burst_sum(own, 0, n);
    dqi_burst_copy_imms(own, 0, b, first, n);
    return true;
}

// Returns the packets as a burst owned by the wire alone; NULL if no descriptor or buffer is free.
static dq_burst *make_own(loop_wire *w, dq_burst *b, uint32_t first, uint32_t n) {
    dq_burst *own = dqi_burst_get(w->split);
    if (!own) return NULL;
    if (dqi_burst_detachable(b)) {
        dqi_burst_move(own, b, first, n);
        return own;
    }
    if (copy_range(w, own, b, first, n)) return own;
    dq_burst_unref(own);
    return NULL;
}

static void flip_bit(loop_wire *w, dq_burst *b, uint32_t i) {
    if (b->len[0][i] == 0) return;
    uint64_t bit = fault_hash(w, PLACE) % ((uint64_t)b->len[0][i] * 8);
    b->session->core.base[b->off[0][i] + bit / 8] ^= (uint8_t)(1u << bit % 8);
    dqi_add(&w->c.extra[DQ_EXTRA_CORRUPTED], 1);
}

static void emit(loop_wire *w, dq_burst **out, dq_burst *from, uint32_t i) {
    if (!*out) *out = dqi_burst_get(w->split);
    dqi_burst_move(*out, from, i, 1);
    int64_t *ts = &(*out)->ts[(*out)->n - 1];
    if (*ts < w->last_ts) *ts = w->last_ts;
    w->last_ts = *ts;
    if ((*out)->n < (*out)->cap) return;
    if (!deliver_all(w, *out, 0, (*out)->n, (*out)->ts)) dq_burst_unref(*out);
    *out = NULL;
}

// Sends the delayed packets whose count has expired, or every one if all is set.
static void release_held(loop_wire *w, dq_burst **out, bool all) {
    uint32_t kept = 0;
    for (uint32_t k = 0; k < w->n_held; k++) {
        if (!all && --w->held[k].left > 0) {
            w->held[kept++] = w->held[k];
            continue;
        }
        emit(w, out, w->hold, w->held[k].index);
    }
    dqi_gauge_add(&w->held_now, (int64_t)kept - w->n_held);
    w->n_held = kept;
    if (kept > 0 || !w->hold) return;
    dq_burst_unref(w->hold);
    w->hold = NULL;
}

static bool hold_back(loop_wire *w, dq_burst *from, uint32_t i, int64_t now) {
    if (w->n_held == HOLD_MAX) return false;
    if (!w->hold && !(w->hold = dqi_burst_get(w->split))) return false;
    if (w->hold->n == w->hold->cap) return false;
    if (w->n_held == 0) w->hold_since = now;
    w->held[w->n_held].index = w->hold->n;
    w->held[w->n_held++].left = 1 + (uint32_t)(fault_hash(w, PLACE) >> 32) % HOLD_MAX;
    dqi_burst_move(w->hold, from, i, 1);
    dqi_gauge_add(&w->held_now, 1);
    dqi_add(&w->c.extra[DQ_EXTRA_REORDERED], 1);
    return true;
}

static void duplicate(loop_wire *w, dq_burst **out, const dq_burst *from, uint32_t i) {
    dq_burst *twin = dqi_burst_get(w->split);
    if (!twin) return;
    if (copy_range(w, twin, from, i, 1)) {
        twin->ts[0] = from->ts[i];
        dqi_add(&w->c.in, 1);
        dqi_add(&w->c.in_bytes, twin->bytes);
        dqi_add(&w->c.extra[DQ_EXTRA_DUPLICATED], 1);
        emit(w, out, twin, 0);
    }
    dq_burst_unref(twin);
}

static void send_faulty(loop_wire *w, dq_burst *own, int64_t now) {
    const dq_wire_conf *c = &w->tx->session->core.conf.wire;
    dq_burst *out = NULL;
    for (uint32_t i = 0; i < own->n; i++, w->ordinal++) {
        if (strikes(w, LOSS, c->loss)) {
            drop(w, DQ_DROP_WIRE_LOSS, 1);
            continue;
        }
        if (strikes(w, CORRUPT, c->corrupt)) flip_bit(w, own, i);
        if (strikes(w, REORDER, c->reorder) && hold_back(w, own, i, now)) continue;
        if (strikes(w, DUP, c->dup)) duplicate(w, &out, own, i);
        emit(w, &out, own, i);
        if (w->n_held > 0) release_held(w, &out, false);
    }
    if (out && !deliver_all(w, out, 0, out->n, out->ts)) dq_burst_unref(out);
    dq_burst_unref(own);
}

// ---- engine operations ------------------------------------------------------------------------------------

int dqi_wire_send(dq_queue *tx, dq_burst *b, uint32_t first, uint32_t n) {
    loop_wire *w = tx->engine;
    int64_t now = tx->tx.now_ns;
    if (n > w->cap) n = w->cap;
    dq_burst *own = NULL;
    const bool fault = faulty(&tx->session->core.conf.wire);
    int64_t *ts = !fault && is_own(w, b) ? b->ts + first : w->ts;
    if (dqi_burst_pool_level(w->split) < SPLIT_NEEDED || (n = take(w, b, first, n, now, ts)) == 0) {
        if (tx->next_ns == INT64_MAX) tx->next_ns = now + RETRY_NS;
        return 0;
    }
    uint64_t bytes = n == b->n ? b->bytes : dqi_burst_sum(b, first, n);
    bool last = first + n == b->n, gone = false;
    if (fault && !(own = make_own(w, b, first, n))) {
        tx->next_ns = now + RETRY_NS;
        return 0;
    }
    dqi_add(&w->c.in, n);
    dqi_add(&w->c.in_bytes, bytes);
    dqi_add(&tx->c.out, n);
    dqi_add(&tx->c.out_bytes, bytes);
    if (fault) {
        memcpy(own->ts, ts, n * sizeof *own->ts);
        send_faulty(w, own, now);
    } else {
        gone = deliver_all(w, b, first, n, ts);
    }
    if (last && !gone) dq_burst_unref(b);
    return (int)n;
}

// Releases reordered packets after HOLD_NS even when no later packet overtakes them.
int dqi_wire_reap(dq_queue *tx) {
    loop_wire *w = tx->engine;
    if (w->n_held == 0) return 0;
    int64_t until = w->hold_since + HOLD_NS;
    if (dq_now(tx->session) < until && dqi_burst_pool_level(w->split) >= SPLIT_NEEDED) {
        tx->next_ns = until;
        return 0;
    }
    dq_burst *out = NULL;
    int64_t arrival = dq_now(tx->session) + tx->session->core.conf.wire.delay_ns;
    if (w->last_ts < arrival) w->last_ts = arrival;
    release_held(w, &out, true);
    if (out && !deliver_all(w, out, 0, out->n, out->ts)) dq_burst_unref(out);
    return 1;
}

void dqi_wire_drop_rest(dq_queue *tx) {
    loop_wire *w = tx->engine;
    if (!w->hold) return;
    drop(w, DQ_DROP_STOPPED, w->n_held);
    dqi_gauge_add(&w->held_now, -(int64_t)w->n_held);
    w->n_held = 0;
    dq_burst_unref(w->hold);
    w->hold = NULL;
}

bool dqi_wire_empty(const loop_wire *w) {
    return dqi_gauge_get(&w->held_now) == 0 && dqi_burst_pool_whole(w->split);
}

int dqi_wire_reopen(loop_wire *w) {
    dqi_burst_pool *split = dqi_burst_pool_new(w->tx->session, SPLIT_BURSTS, w->cap, w->tx->conf.n_regions);
    if (!split) return -ENOMEM;
    dqi_burst_pool_free(w->split);
    w->split = split;
    return 0;
}

int dqi_wire_lines(dq_iface *i, dq_line *l, int max) {
    int n = 0;
    for (uint32_t k = 0; k < i->n_tx && n < max; k++) {
        loop_wire *w = i->tx[k]->engine;
        if (!w) continue;
        dq_line *d = &l[n++];
        *d = (dq_line){.kind = DQ_LINE_WIRE, .queue_id = i->tx[k]->conf.id};
        snprintf(d->name, sizeof d->name, "%s", i->conf.name);
        snprintf(d->queue, sizeof d->queue, "%s", i->tx[k]->conf.name);
        dqi_line_add(d, &w->c);
        d->held = (uint64_t)dqi_gauge_get(&w->held_now);
    }
    return n;
}
