// gn_tx.h: transmit rings in kernels, low level: reserve, fill, commit, publish, poll.
//
// Strong mode: gn_reserve assigns tickets to any number of threads concurrently (a shared send queue). Weak
// mode: the caller chooses consecutive tickets, and gn_room waits until their slots are free. A reserved
// ticket must be published within GN_HOLE_NS, if necessary as a nop.
#ifndef GN_TX_H
#define GN_TX_H

#include "gpunetio/device/gn_side.h"

typedef struct gn_tx {
    gn_side s;
    gn_slot *slots;
    const gn_tx_state *state;
    gn_tx_posted *posted;
    gn_tx_local *local;
    gn_u64 epoch;
    gn_u32 log2, ops;
} gn_tx;

GN_FN int gn_tx_open_row(gn_tx *q, const gn_side *s, const gn_tx_row *r) {
    q->s = *s;
    q->slots = (gn_slot *)gn_at(s->context, r->slots);
    q->state = (const gn_tx_state *)gn_at(s->context, r->state);
    q->posted = (gn_tx_posted *)gn_at(s->context, r->posted);
    q->local = (gn_tx_local *)gn_at(s->context, r->local);
    q->epoch = r->epoch;
    q->log2 = r->log2;
    q->ops = r->ops;
    return gn_peek(&q->state->epoch) == q->epoch ? GN_OK : GN_BROKEN;
}

// Opens a handle, one per thread. GN_INVALID: the context has no such ring, or its entries are mlx5's.
GN_FN int gn_tx_open(gn_tx *q, const gn_side *s, gn_u32 ring) {
    const gn_tx none = {{0, 0, 0, 0}, 0, 0, 0, 0, 0, 0, 0};
    *q = none;
    const gn_context *p = (const gn_context *)s->context;
    if (ring >= p->n_tx) return GN_INVALID;
    const gn_tx_row *r = (const gn_tx_row *)gn_at(p, p->tx) + ring;
    return r->cq ? GN_INVALID : gn_tx_open_row(q, s, r);
}

// One step of a wait for tickets below `below` to be accepted or completed.
GN_FN int gn_tx_pause(const gn_tx *q, gn_timer *t, gn_u64 below) {
    if (t->tries % GN_ASK == GN_ASK - 1) gn_poke(&q->posted->waits, below);
    return gn_go_on(&q->s, t, &q->state->epoch, q->epoch);
}

// Returns GN_OK if tickets below `least` are accepted, otherwise GN_AGAIN. Uses the last value read by any
// thread, in local memory; the proxy's word, and the abort flag, are read only if that is insufficient.
GN_FN int gn_accepted(const gn_tx *q, gn_u64 least) {
    if ((long long)(gn_load(&q->local->seen) - least) >= 0) return GN_OK;
    gn_u64 accepted = gn_load(&q->state->accepted);
    gn_store_near(&q->local->seen, accepted);
    if ((long long)(accepted - least) < 0) return GN_AGAIN;
    return gn_peek(&q->s.proxy->abort) ? GN_ABORTED : GN_OK;
}

// Waits until the slots of tickets first .. first + n - 1 are free.
GN_FN int gn_room(const gn_tx *q, gn_u64 first, gn_u32 n, gn_u64 limit) {
    if (n > 1u << q->log2) return GN_INVALID;
    gn_timer t = gn_timer_start(&q->s, limit);
    gn_u64 least = first + n - (1ull << q->log2); // wraps only below the first lap
    for (;;) {
        int err = gn_accepted(q, least);
        if (err != GN_AGAIN) return err;
        err = gn_tx_pause(q, &t, least);
        if (err != GN_OK) return err;
    }
}

// Reserves n consecutive tickets with free slots. A failing call reserves none.
GN_FN int gn_reserve(const gn_tx *q, gn_u32 n, gn_u64 limit, gn_u64 *first) {
    *first = 0;
    if (n == 0 || n > 1u << q->log2) return GN_INVALID;
    gn_timer t = gn_timer_start(&q->s, limit);
    for (;;) {
        gn_u64 next = gn_peek(&q->local->reserved);
        gn_u64 least = next + n - (1ull << q->log2);
        int err = gn_accepted(q, least), full = err == GN_AGAIN;
        if (full) err = gn_tx_pause(q, &t, least);
        if (err != GN_OK) return err;
        if (!full && gn_swap(&q->local->reserved, next, next + n)) {
            *first = next;
            return GN_OK;
        }
    }
}

// Weak mode: get the next ticket, and set it after using some.
GN_FN gn_u64 gn_next(const gn_tx *q) { return gn_peek(&q->local->reserved); }
GN_FN void gn_set_next(const gn_tx *q, gn_u64 next) { gn_poke(&q->local->reserved, next); }

// ---- filling slots in registers ---------------------------------------------------------------------------

GN_FN gn_slot gn_fill(gn_u32 op, gn_u32 flags, gn_u32 bytes) {
    gn_slot s = {{(gn_u64)op << 56 | (gn_u64)flags << 48 | bytes, 0, 0, 0, 0, 0, 0, 0}};
    return s;
}

// A nop is the operation of a thread with nothing to post in a warp's call.
GN_FN gn_slot gn_fill_nop(void) { return gn_fill(GN_OP_NOP, 0, 0); }

// time: ns since the session's start, 0: immediately. conn: 0: the queue's peer.
GN_FN gn_slot gn_fill_send(gn_u64 from, gn_u32 bytes, gn_u64 time, gn_u32 conn) {
    gn_slot s = gn_fill(GN_OP_SEND, 0, bytes);
    s.w[1] = from;
    s.w[2] = time;
    s.w[3] = conn;
    return s;
}

// Adds a second local segment to a put or get.
GN_FN void gn_fill_second(gn_slot *s, gn_u64 local, gn_u32 bytes) {
    s->w[0] |= (gn_u64)GN_SPLIT << 48;
    s->w[2] = bytes;
    s->w[6] = local;
}

// Adds a second segment to a slot of gn_fill_send.
GN_FN void gn_fill_split(gn_slot *s, gn_u64 from, gn_u32 bytes) {
    s->w[0] |= (gn_u64)GN_SPLIT << 48;
    s->w[5] = bytes;
    s->w[6] = from;
}

// Adds an immediate value to a send, or to a put without a signal and with at most GN_INLINE_IMM inline
// bytes. Either may then have 0 bytes.
GN_FN void gn_fill_imm(gn_slot *s, gn_u32 value) {
    s->w[0] |= (gn_u64)GN_IMM << 48;
    s->w[4] = value;
}

GN_FN gn_slot gn_fill_move(gn_u32 op, gn_u64 local, gn_u64 other, gn_u32 bytes) { // put, get, copy, file
    gn_slot s = gn_fill(op, 0, bytes);
    s.w[1] = local;
    s.w[3] = other;
    return s;
}

// Uses the low bytes of value, 1 to 8.
GN_FN gn_slot gn_fill_inline(gn_u64 to, gn_u64 value, gn_u32 bytes) {
    gn_slot s = gn_fill(GN_OP_PUT, GN_INLINE, bytes);
    if (bytes < 8) value &= (1ull << bytes * 8) - 1;
    s.w[1] = value & ((1ull << 56) - 1);
    s.w[2] = value >> 56;
    s.w[3] = to;
    return s;
}

GN_FN void gn_fill_operand(gn_slot *s, gn_u64 at, gn_u64 value) {
    s->w[0] |= (gn_u64)(value >> 63 ? GN_TOP : 0) << 48;
    s->w[4] = at;
    s->w[5] = value & ~GN_LAP;
}

// Adds a signal after the bytes of a put.
GN_FN void gn_fill_signal(gn_slot *s, gn_u64 at, gn_u64 value) {
    s->w[0] |= (gn_u64)GN_SIGNAL << 48;
    gn_fill_operand(s, at, value);
}

GN_FN gn_slot gn_fill_add(gn_u64 at, gn_u64 value) {
    gn_slot s = gn_fill(GN_OP_ADD, 0, 0);
    gn_fill_operand(&s, at, value);
    return s;
}

GN_FN gn_slot gn_fill_fetch_add(gn_u64 at, gn_u64 value, gn_u64 result) {
    gn_slot s = gn_fill_add(at, value);
    s.w[0] |= (gn_u64)GN_RESULT << 48;
    s.w[6] = result;
    return s;
}

// Replaces the 64 bits at a remote place by value if they are `compare`; result: place for the previous
// value, 0: none is kept.
GN_FN gn_slot gn_fill_cas(gn_u64 at, gn_u64 compare, gn_u64 value, const gn_u64 *result) {
    gn_u32 flags = (compare >> 63 ? GN_COMPARED : 0) | (result ? GN_RESULT : 0);
    gn_slot s = gn_fill(GN_OP_CAS, flags, 0);
    gn_fill_operand(&s, at, value);
    s.w[1] = compare & ~GN_LAP;
    if (result) s.w[6] = *result;
    return s;
}

// Waits until a ticket of transmit ring `ring` of the context has completed: later slots begin after that. It
// fails if the ticket, or one before it, failed, or did not complete within the context's limit; then the
// ring's next operation fails, too.
GN_FN gn_slot gn_fill_wait(gn_u32 ring, gn_u64 ticket) { return gn_fill_move(GN_OP_WAIT, ticket, ring, 0); }

// ---- writing slots ----------------------------------------------------------------------------------------

// Writes a slot except its ticket: the proxy does not accept it yet.
GN_FN void gn_commit(const gn_tx *q, gn_u64 ticket, const gn_slot *s) {
    gn_slot *slot = &q->slots[gn_index(ticket, q->log2)];
    gn_u64 lap = gn_lap(ticket, q->log2);
    for (gn_u32 k = 0; k < GN_TX_WORDS - 1; k++)
        gn_poke(&slot->w[k], lap | (s->w[k] & ~GN_LAP));
}

// Writes the tickets of n committed slots, with one fence for all.
GN_FN void gn_publish(const gn_tx *q, gn_u64 first, gn_u32 n) {
    gn_fence();
    for (gn_u64 t = first; t < first + n; t++)
        gn_store_fenced(&q->slots[gn_index(t, q->log2)].w[GN_TX_WORDS - 1],
                        gn_lap(t, q->log2) | (t & ~GN_LAP));
}

// Commits and publishes one slot.
GN_FN void gn_post(const gn_tx *q, gn_u64 ticket, const gn_slot *s) {
    gn_slot with = *s;
    with.w[GN_TX_WORDS - 1] = ticket & ~GN_LAP;
    gn_write(q->slots[gn_index(ticket, q->log2)].w, GN_TX_WORDS, gn_lap(ticket, q->log2), with.w);
}

// Writes a warp's slots: the lanes of the bitmap `lanes` have consecutive tickets, of which the n with ranks
// from `from` on are written, with tickets from `first` on. Eight lanes write the eight words of a slot at
// once: over PCIe this is one write instead of eight.
GN_FN void gn_post_warp(const gn_tx *q, gn_u64 first, gn_u32 lanes, gn_u32 from, gn_u32 n, const gn_slot *s) {
    gn_u64 w[GN_TX_WORDS]; // this lane's slot; then word `lane % 8` of the slots of its eight lanes
    gn_u32 lane = gn_lane(), word = lane % 8;
    GN_UNROLL
    for (gn_u32 k = 0; k < GN_TX_WORDS; k++)
        w[k] = s->w[k];
    GN_UNROLL
    for (gn_u32 d = 1; d < GN_TX_WORDS; d *= 2) {
        GN_UNROLL
        for (gn_u32 k = 0; k < GN_TX_WORDS; k++) {
            if (k & d) continue;
            gn_u64 v = gn_shuffle(word & d ? w[k] : w[k | d], lane ^ d);
            w[k] = word & d ? v : w[k];
            w[k | d] = word & d ? w[k | d] : v;
        }
    }
    gn_fence();
    GN_UNROLL
    for (gn_u32 k = 0; k < GN_TX_WORDS; k++) {
        gn_u32 of = (lane & 24) | k, rank = gn_ones(lanes & ((1u << of) - 1)) - from;
        if (!(lanes >> of & 1) || rank >= n) continue;
        gn_u64 t = first + rank, v = word == GN_TX_WORDS - 1 ? t : w[k];
        gn_store_fenced(&q->slots[gn_index(t, q->log2)].w[word], gn_lap(t, q->log2) | (v & ~GN_LAP));
    }
}

// Polls a ticket. GN_AGAIN: not completed. GN_FAILED: it is the most recent failed one; earlier failures only
// show in state->dropped.
GN_FN int gn_poll(const gn_tx *q, gn_u64 ticket) {
    gn_u64 completed = gn_load(&q->state->completed);
    if ((completed & ~GN_SOME_FAILED) <= ticket) return GN_AGAIN;
    if (!(completed & GN_SOME_FAILED)) return GN_OK;
    gn_u64 error = gn_peek(&q->state->error);
    return error && ((error ^ ticket) & ((1ull << 56) - 1)) == 0 ? GN_FAILED : GN_OK;
}

#endif
