// rx_ring.c: receive proxy: a stage in a pipe of the queue. It writes a descriptor per segment of each packet
// and references the burst until the kernel has released all of them, which its poll checks.
#include "core/clock.h"
#include "core/err.h"
#include "gpunetio/host/context.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/engine.h"
#include "pipeline/stage_queue.h"

#include <errno.h>
#include <stdlib.h>

static uint64_t slots_of(const dqi_gn_rx *r) { return UINT64_C(1) << r->log2; }

// ---- releasing --------------------------------------------------------------------------------------------

// Counts the burst's first `had` packets as received, and the rest as not taken.
static void end(dqi_gn_rx *r, dqi_gn_flight *f, uint32_t had) {
    uint32_t n = (uint32_t)f->packets;
    dqi_add(&r->c.out, had);
    dqi_add(&r->c.out_bytes, had == n ? f->bytes : dqi_burst_sum(f->b, 0, had));
    if (had < n) dqi_drop(&r->c, DQ_DROP_STOPPED, n - had);
    dqi_gauge_add(&r->held, -(int64_t)n);
    dq_burst_unref(f->b);
    r->first_held++;
}

// Releases bursts whose descriptors are all released.
static int let_go(dqi_gn_rx *r) {
    uint64_t filled = atomic_load_explicit(&r->filled, memory_order_relaxed), was = r->first_held;
    while (r->head != filled && gn_load(&r->released[gn_index(r->head, r->log2)]) == r->head + 1)
        r->head++;
    while (r->first_held != r->n_held) {
        dqi_gn_flight *f = &r->held_bursts[r->first_held & (slots_of(r) - 1)];
        if (f->end > r->head) break;
        end(r, f, (uint32_t)f->packets);
    }
    return (int)(r->first_held - was);
}

// ---- receiving --------------------------------------------------------------------------------------------

// Returns the row of the region with this arena offset, usually that of the previous packet; the loop engine
// passes senders' buffers.
static uint32_t row_of(dqi_gn_rx *r, uint32_t s, uint64_t off) {
    if (!dqi_region_has(r->gn->bound[r->region[s]], off)) {
        uint32_t row = dqi_gn_row(r->gn, dqi_off_region(r->gn->session, off));
        if (row == UINT32_MAX) return row;
        r->region[s] = row;
    }
    return r->region[s];
}

// Converts a receive time to ns since the session's start.
static gn_u64 time_of(const dqi_gn_rx *r, int64_t ts) {
    int64_t start = dq_start_ns(r->gn->session);
    return ts > start ? (gn_u64)(ts - start) : 0;
}

_Static_assert((int)GN_IMM_SEND == DQI_IMM_SEND && (int)GN_IMM_PUT == DQI_IMM_WRITE, "as in descriptors");

// Writes the descriptors of a packet; one the kernel can't access has 0 bytes.
static void write_packet(dqi_gn_rx *r, const dq_burst *b, uint32_t i, uint64_t *ticket) {
    const dqi_imm imm = dqi_burst_imm(b, i);
    for (uint32_t s = 0; s < b->nseg; s++, (*ticket)++) {
        uint32_t row = row_of(r, s, b->off[s][i]);
        bool there = row != UINT32_MAX;
        const gn_u64 words[GN_RX_WORDS] = {
            there ? gn_place(row, b->off[s][i] - r->gn->bound[row]->offset) : 0,
            (gn_u64)(there ? b->len[s][i] & INT32_MAX : 0) << 32 | (imm.of ? imm.value : b->flow[i]),
            time_of(r, b->ts[i]),
            gn_rx_word(b->conn, s, s + 1 < b->nseg) | gn_rx_imm(imm.of),
        };
        gn_write(r->slots[gn_index(*ticket, r->log2)].w, GN_RX_WORDS, gn_lap(*ticket, r->log2), words);
    }
}

// Returns how many packets from `first` on fit into the ring.
static uint32_t room(const dqi_gn_rx *r, const dq_burst *b, uint32_t first) {
    uint64_t used = atomic_load_explicit(&r->filled, memory_order_relaxed) - r->head;
    uint64_t n = (slots_of(r) - used) / b->nseg;
    if (r->n_held - r->first_held == slots_of(r)) return 0;
    return n < b->n - first ? (uint32_t)n : b->n - first;
}

static void write_packets(dqi_gn_rx *r, const dq_burst *b, uint32_t first, uint32_t n) {
    uint64_t ticket = atomic_load_explicit(&r->filled, memory_order_relaxed);
    for (uint32_t i = first; i < first + n; i++)
        write_packet(r, b, i, &ticket);
    atomic_store_explicit(&r->filled, ticket, memory_order_relaxed);
    gn_store(&r->state->filled, ticket);
}

// Moves the burst's packets to the end of the one held last, and frees it; returns false if they do not fit.
// A kernel may keep packets for long, and as many bursts as the queue has may hold few of them each.
static bool join(dqi_gn_rx *r, dq_burst *b) {
    if (r->first_held == r->n_held) return false;
    dqi_gn_flight *f = &r->held_bursts[(r->n_held - 1) & (slots_of(r) - 1)];
    dq_burst *last = f->b;
    if (!dqi_burst_detachable(b) || !dqi_burst_detachable(last) || f->packets != last->n ||
        b->nseg != last->nseg || b->n > last->cap - last->n)
        return false;
    f->packets += b->n;
    f->bytes += b->bytes;
    f->end = atomic_load_explicit(&r->filled, memory_order_relaxed);
    dqi_gauge_add(&r->held, b->n);
    dqi_burst_move(last, b, 0, b->n);
    dq_burst_unref(b);
    return true;
}

// References the burst until its first n packets are released.
static void keep(dqi_gn_rx *r, dq_burst *b, uint32_t n) {
    if (n == 0) {
        dq_burst_unref(b);
        return;
    }
    if (n == b->n && join(r, b)) return;
    dqi_gauge_add(&r->held, n);
    r->held_bursts[r->n_held++ & (slots_of(r) - 1)] =
        (dqi_gn_flight){.b = b,
                        .end = atomic_load_explicit(&r->filled, memory_order_relaxed),
                        .bytes = dqi_burst_sum(b, 0, n),
                        .packets = n};
}

static void drop(dqi_gn_rx *r, dqi_node *node, uint32_t n, bool gone) {
    if (n == 0) return;
    dqi_drop(&node->c, gone ? DQ_DROP_NO_CONSUMER : DQ_DROP_BEHIND, n);
    r->dropped += n;
    gn_store(&r->state->dropped, r->dropped);
}

static int rx_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    dqi_gn_rx *r = st->impl;
    bool gone = atomic_load_explicit(&r->detached, memory_order_relaxed);
    *out = NULL;
    let_go(r);
    uint32_t n = gone ? 0 : room(r, in, node->turn);
    if (n > 0) write_packets(r, in, node->turn, n);
    r->look.worked_ns = 0; // poll continuously again
    st->next_ns = 0;
    node->turn += n;
    if (node->turn < in->n && r->policy == DQ_POLICY_WAIT && !gone) return DQ_NOT_READY;
    uint32_t written = node->turn;
    node->turn = 0;
    drop(r, node, in->n - written, gone);
    keep(r, in, written);
    return DQ_OK;
}

// ---- stage ------------------------------------------------------------------------------------------------

static int rx_poll(dq_stage *st) {
    dqi_gn_rx *r = st->impl;
    if (atomic_load_explicit(&r->detached, memory_order_relaxed)) return 0;
    int work = let_go(r);
    dqi_gn_look_again(&r->look, st, work);
    if (r->first_held == r->n_held) st->next_ns = INT64_MAX; // nothing to release
    return work;
}

static int rx_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const dqi_gn_rx *r = st->impl;
    if (q == r->queue) return DQ_OK;
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: its receive ring is of queue %s, not of queue %s",
                    r->gn->what, r->queue->conf.name, q->conf.name);
}

static uint64_t rx_held(const dq_stage *st) {
    return (uint64_t)dqi_gauge_get(&((const dqi_gn_rx *)st->impl)->held);
}

static void rx_line(const dq_stage *st, dq_line *line) {
    dqi_line_add(line, &((const dqi_gn_rx *)st->impl)->c);
}

// Returns how many packets of a held burst are below this ticket.
static uint32_t packets_below(const dqi_gn_flight *f, uint64_t ticket) {
    uint64_t first = f->end - f->packets * f->b->nseg;
    if (ticket >= f->end) return (uint32_t)f->packets;
    return ticket <= first ? 0 : (uint32_t)((ticket - first) / f->b->nseg);
}

// Returns the end of the tickets taken by an ended kernel, released or not; unknown for one that died.
static uint64_t had_below(const dqi_gn_rx *r) {
    uint64_t taken = gn_load(&r->local->taken), filled = atomic_load(&r->filled);
    bool known = !atomic_load(&r->gn->died) && taken - r->head <= filled - r->head;
    return known ? taken : r->head;
}

void dqi_gn_rx_detach(dqi_gn_rx *r) {
    if (!r->stage || atomic_exchange(&r->detached, true)) return;
    let_go(r);
    uint64_t had = had_below(r);
    while (r->first_held != r->n_held) {
        dqi_gn_flight *f = &r->held_bursts[r->first_held & (slots_of(r) - 1)];
        end(r, f, packets_below(f, had));
    }
}

static void rx_finish(dq_stage *st) { dqi_gn_rx_detach(st->impl); }

static void rx_free(dq_stage *st) {
    dqi_gn_rx *r = st->impl;
    free(r->held_bursts);
    dqi_gn_unref(r->gn);
}

static const dqi_stage_ops rx_ops = {
    .line_kind = DQ_LINE_STAGE,
    .consumer = true,
    .check = rx_check,
    .push = rx_push,
    .held = rx_held,
    .line = rx_line,
    .poll = rx_poll,
    .finish = rx_finish,
    .free = rx_free,
};

int dqi_gn_rx_open(dqi_gn_rx *r, dq_session *s, const char *name, dq_diag *diag) {
    r->held_bursts = calloc(slots_of(r), sizeof *r->held_bursts);
    if (!r->held_bursts) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", r->gn->what);
    dq_stage *st;
    int err = dqi_stage_add(s, name, &rx_ops, r, &st, diag);
    if (err != DQ_OK) {
        free(r->held_bursts);
        return err;
    }
    r->stage = st;
    st->waits = r->policy == DQ_POLICY_WAIT;
    atomic_fetch_add(&r->gn->refs, 1);
    return DQ_OK;
}
