// gn_rx.h: receive rings in kernels: take, read and release descriptors.
//
// A thread that takes a descriptor owns the packet until it releases it. Any number of threads and warps may
// take from one ring concurrently (cooperative receive), and release in any order.
#ifndef GN_RX_H
#define GN_RX_H

#include "gpunetio/device/gn_side.h"

typedef struct gn_rx {
    gn_side s;
    const gn_rx_slot *slots;
    const gn_rx_state *state;
    gn_u64 *released;
    gn_rx_local *local;
    gn_u64 epoch;
    gn_u32 log2, relayed; // relayed: a warp relays `filled`, so that others need not poll the slots
    gn_u32 single;        // each packet has one descriptor
} gn_rx;

typedef struct gn_packet {                   // a segment of a packet
    gn_u64 place, time;                      // time: ns since the session's start
    gn_u32 bytes, flow, conn, segment, more; // more: the next ticket is the packet's next segment
    gn_u32 imm, imm_of;                      // immediate value; gn_imm_of: with it flow is 0
} gn_packet;

GN_FN int gn_rx_open_row(gn_rx *q, const gn_side *s, const gn_rx_row *r) {
    q->s = *s;
    q->slots = (const gn_rx_slot *)gn_at(s->context, r->slots);
    q->state = (const gn_rx_state *)gn_at(s->context, r->state);
    q->released = (gn_u64 *)gn_at(s->context, r->released);
    q->local = (gn_rx_local *)gn_at(s->context, r->local);
    q->epoch = r->epoch;
    q->log2 = r->log2;
    q->relayed = r->state != r->source;
    q->single = (gn_u32)r->single;
    return gn_peek(&q->state->epoch) == q->epoch ? GN_OK : GN_BROKEN;
}

GN_FN int gn_rx_open(gn_rx *q, const gn_side *s, gn_u32 ring) {
    const gn_rx none = {{0, 0, 0, 0}, 0, 0, 0, 0, 0, 0, 0, 0};
    *q = none;
    const gn_context *p = (const gn_context *)s->context;
    if (ring >= p->n_rx) return GN_INVALID;
    return gn_rx_open_row(q, s, (const gn_rx_row *)gn_at(p, p->rx) + ring);
}

// Reads the descriptor of a ticket. GN_AGAIN: not available.
GN_FN int gn_rx_read(const gn_rx *q, gn_u64 ticket, gn_packet *p) {
    gn_u64 w[GN_RX_WORDS];
    if (!gn_read(q->slots[gn_index(ticket, q->log2)].w, GN_RX_WORDS, gn_lap(ticket, q->log2), w))
        return GN_AGAIN;
    p->place = w[0];
    p->bytes = (gn_u32)(w[1] >> 32);
    p->time = w[2];
    p->conn = (gn_u32)w[3];
    p->segment = (gn_u32)(w[3] >> 56) & 15;
    p->more = (gn_u32)(w[3] >> 62);
    p->imm_of = (gn_u32)(w[3] >> 60) & 3;
    p->imm = p->imm_of ? (gn_u32)w[1] : 0;
    p->flow = p->imm_of ? 0 : (gn_u32)w[1];
    return GN_OK;
}

// Reads the descriptors of a warp's tickets together: lane k of the warp gets that of first + k in *p, and
// gn_shuffle distributes its words. n at most 32; other lanes get 0 bytes.
GN_FN void gn_rx_read_warp(const gn_rx *q, gn_u64 first, gn_u32 n, gn_packet *p) {
    const gn_packet none = {0, 0, 0, 0, 0, 0, 0, 0, 0};
    if (gn_lane() >= n || gn_rx_read(q, first + gn_lane(), p) != GN_OK) *p = none;
    gn_warp_sync(); // orders the data of one lane's load for all lanes
}

// Sets bit k of *there if descriptor next + k is available, and of *last if it is its packet's last. A thread
// reads descriptors up to the first missing one; in a warp each lane reads one.
GN_FN void gn_rx_look(const gn_rx *q, gn_u64 next, gn_u32 most, int warp, gn_u32 *there, gn_u32 *last) {
    gn_packet p;
    p.more = 0;
    if (warp) {
        int mine = gn_lane() < most && gn_rx_read(q, next + gn_lane(), &p) == GN_OK;
        *there = gn_ballot(mine);
        *last = gn_ballot(mine && !p.more);
        return;
    }
    *there = *last = 0;
    for (gn_u32 k = 0; k < most && gn_rx_read(q, next + k, &p) == GN_OK; k++) {
        *there |= 1u << k;
        *last |= (gn_u32)!p.more << k;
    }
}

// Returns how many leading descriptors are available, in whole packets.
GN_FN gn_u32 gn_rx_whole(gn_u32 there, gn_u32 last) {
    gn_u32 run = there & ~(there + 1); // ones below the first gap
    last &= run;
    gn_u32 n = 0;
    while (last >> n) // a shift by 32 is undefined
        if (++n == 32) break;
    return n;
}

// Returns how many descriptors from `next` on are available, at most `most`: by the count that a thread read
// last, in local memory, and by the proxy's if that has none. Returns 0 once the context was aborted, so that
// kernels slower than their queue notice it.
GN_FN gn_u32 gn_rx_filled(const gn_rx *q, gn_u64 next, gn_u32 most) {
    gn_u64 filled = gn_load(&q->local->seen);
    if ((long long)(filled - next) <= 0) {
        filled = gn_load(&q->state->filled);
        if (gn_peek(&q->s.proxy->abort)) return 0; // `seen` is not advanced any more
        gn_store_near(&q->local->seen, filled);
    }
    if ((long long)(filled - next) <= 0) return 0;
    return filled - next < most ? (gn_u32)(filled - next) : most;
}

// Tries to take descriptors if packets have one descriptor each: by count, and read afterwards.
GN_FN void gn_rx_try_single(const gn_rx *q, gn_u32 most, int warp, gn_u64 *first, gn_u32 *n) {
    gn_u64 next = 0, got = 0;
    if (!warp || gn_lane() == 0) {
        next = gn_peek(&q->local->taken);
        got = gn_rx_filled(q, next, most);
        if (got && !gn_swap(&q->local->taken, next, next + got)) got = 0;
    }
    if (warp) next = gn_shuffle(next, 0);
    *first = next;
    *n = (gn_u32)(warp ? gn_shuffle(got, 0) : got);
}

// Tries to take *n descriptors from *first on; 0: none now.
GN_FN void gn_rx_try(const gn_rx *q, gn_u32 most, int warp, gn_u64 *first, gn_u32 *n) {
    gn_u32 there, last;
    gn_u64 next = gn_peek(&q->local->taken);
    if (warp) next = gn_shuffle(next, 0);
    int some = !gn_peek(&q->s.proxy->abort) && (!q->relayed || gn_load(&q->state->filled) > next);
    if (warp) some = (int)gn_shuffle((gn_u64)some, 0);
    *n = 0;
    if (!some) return;
    gn_rx_look(q, next, most, warp, &there, &last);
    gn_u32 whole = gn_rx_whole(there, last);
    gn_u64 got = 0;
    if (whole && (!warp || gn_lane() == 0)) got = (gn_u64)gn_swap(&q->local->taken, next, next + whole);
    if (warp) got = gn_shuffle(got, 0);
    *first = next;
    *n = got ? whole : 0;
}

GN_FN int gn_rx_wait(const gn_rx *q, gn_u32 most, int warp, gn_u64 limit, gn_u64 *first, gn_u32 *n) {
    gn_timer t = gn_timer_start(&q->s, limit);
    for (;;) {
        if (q->single)
            gn_rx_try_single(q, most, warp, first, n);
        else
            gn_rx_try(q, most, warp, first, n);
        gn_u64 err = GN_OK; // lane 0 decides for the warp
        if (*n == 0 && (!warp || gn_lane() == 0))
            err = (gn_u64)gn_go_on(&q->s, &t, &q->state->epoch, q->epoch);
        if (*n == 0 && warp) err = gn_shuffle(err, 0);
        if (*n || err != GN_OK) return (int)err;
    }
}

// Takes at most `most` descriptors, 32 at once, of whole packets; waits for the first. A warp or a block
// takes them together: all threads get the same result and may read any of *first to *first + *n - 1. *n is 0
// unless GN_OK is returned. share: three words shared by the threads of a block (__shared__); otherwise 0.
// GN_INVALID: invalid scope.
GN_FN int gn_recv(const gn_rx *q, int scope, gn_u32 most, gn_u64 limit, gn_u64 *first, gn_u32 *n,
                  gn_u64 *share) {
    int err = GN_OK;
    if (most > 32) most = 32;
    if (most > 1u << q->log2) most = 1u << q->log2;
    *first = *n = 0;
    if (!gn_is_scope(scope)) return GN_INVALID;
    if (scope == GN_BY_THREAD || gn_thread() < 32 || scope == GN_BY_WARP)
        err = gn_rx_wait(q, most, scope != GN_BY_THREAD, limit, first, n);
    if (scope != GN_BY_BLOCK) return err;
    if (gn_thread() == 0) {
        share[0] = *first;
        share[1] = *n;
        share[2] = (gn_u64)err;
    }
    gn_block_sync();
    *first = share[0];
    *n = (gn_u32)share[1];
    err = (int)share[2];
    gn_block_sync();
    return err;
}

// Releases the packets of n tickets after all reads; at warp and block scope by all threads together.
// GN_INVALID: invalid scope.
GN_FN int gn_release(const gn_rx *q, int scope, gn_u64 first, gn_u32 n) {
    if (!gn_is_scope(scope)) return GN_INVALID;
    gn_sync(scope);
    gn_fence();
    if (scope == GN_BY_BLOCK && gn_thread() >= 32) return GN_OK;
    gn_u32 step = scope == GN_BY_THREAD ? 1 : 32;
    for (gn_u32 k = scope == GN_BY_THREAD ? 0 : gn_lane(); k < n; k += step)
        gn_store_fenced(&q->released[gn_index(first + k, q->log2)], first + k + 1);
    return GN_OK;
}

#endif
