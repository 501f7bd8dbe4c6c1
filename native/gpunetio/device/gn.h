// gn.h: main header for kernels: send, receive, put, get, signals and semaphores, at thread, warp and block
// scope. Low-level interface: gn_tx.h, gn_rx.h, gn_sem.h.
//
// At warp and block scope each thread passes its own operation (gn_fill_nop: none), and a warp reserves its
// tickets together. ticket may be 0. GN_OK means that the operation was posted; gn_wait reports its
// completion.
#ifndef GN_H
#define GN_H

#include "gpunetio/device/gn_ring.h"
#include "gpunetio/device/gn_rx.h"
#include "gpunetio/device/gn_sem.h"
#include "gpunetio/device/gn_side.h"
#include "gpunetio/device/gn_tx.h"

// Reserves tickets for the warp's lanes in mask with ranks from .. from + group - 1, and posts their slots.
// On the host each lane writes its own slot, as a shuffle costs more than a store there.
#ifndef GN_POST_WARP
#define GN_POST_WARP GN_GPU
#endif
GN_FN int gn_submit_group(const gn_tx *q, const gn_slot *s, gn_u32 mask, gn_u32 rank, gn_u32 from,
                          gn_u32 group, gn_u64 limit, gn_u64 *ticket) {
    gn_u64 first = 0, err = GN_OK;
    if (gn_lane() == 0) err = (gn_u64)gn_reserve(q, group, limit, &first);
    err = gn_shuffle(err, 0);
    first = gn_shuffle(first, 0);
    int mine = err == GN_OK && rank - from < group;
    if (mine) *ticket = first + rank - from;
    if (GN_POST_WARP && err == GN_OK) gn_post_warp(q, first, mask, from, group, s);
    if (!GN_POST_WARP && mine) gn_post(q, *ticket, s);
    return (int)err;
}

// Posts a slot. GN_INVALID: the ring does not accept the operation, or invalid scope.
GN_FN int gn_submit(const gn_tx *q, int scope, const gn_slot *s, gn_u64 limit, gn_u64 *ticket) {
    gn_u64 t = 0;
    gn_u32 op = (gn_u32)(s->w[0] >> 56);
    int mine = op != GN_OP_NOP, taken = (q->ops >> op & 1) != 0, err = GN_OK;
    if (!gn_is_scope(scope)) return GN_INVALID;
    if (scope == GN_BY_THREAD) {
        err = !taken ? GN_INVALID : gn_reserve(q, 1, limit, &t);
        if (err == GN_OK) gn_post(q, t, s);
        if (ticket) *ticket = t;
        return err;
    }
    gn_sync(scope);
    gn_u32 mask = gn_ballot(mine && taken), all = gn_ones(mask), size = 1u << q->log2;
    gn_u32 rank = mine && taken ? gn_ones(mask & ((1u << gn_lane()) - 1)) : 32;
    for (gn_u32 from = 0; from < all && err == GN_OK; from += size) {
        gn_u32 group = all - from < size ? all - from : size;
        int e = gn_submit_group(q, s, mask, rank, from, group, limit, &t);
        if (e != GN_OK && rank >= from) err = e; // earlier ones were posted
        if (e != GN_OK) break;
    }
    if (ticket) *ticket = t;
    gn_sync(scope);
    if (mine && !taken) return GN_INVALID;
    return mine || err == GN_ABORTED || err == GN_BROKEN ? err : GN_OK; // all threads report its end
}

// Waits for completion of a ticket. GN_FAILED: as gn_poll.
GN_FN int gn_wait(const gn_tx *q, gn_u64 ticket, gn_u64 limit) {
    gn_timer t = gn_timer_start(&q->s, limit);
    for (;;) {
        int status = gn_poll(q, ticket);
        if (status != GN_AGAIN) return status;
        int err = gn_tx_pause(q, &t, ticket + 1);
        if (err != GN_OK) return err;
    }
}

// Waits for completion of all reserved tickets. GN_FAILED: an operation of the ring has failed at any time.
GN_FN int gn_flush(const gn_tx *q, gn_u64 limit) {
    gn_u64 next = gn_peek(&q->local->reserved);
    if ((gn_load(&q->state->completed) & ~GN_SOME_FAILED) < next) {
        int err = gn_wait(q, next - 1, limit);
        if (err != GN_OK && err != GN_FAILED) return err;
    }
    return gn_peek(&q->state->dropped) ? GN_FAILED : GN_OK;
}

// ---- single packets and operations ------------------------------------------------------------------------

GN_FN int gn_send(const gn_tx *q, int scope, gn_u64 from, gn_u32 bytes, gn_u64 time, gn_u32 conn,
                  gn_u64 limit, gn_u64 *ticket) {
    gn_slot s = gn_fill_send(from, bytes, time, conn);
    return gn_submit(q, scope, &s, limit, ticket);
}

// A packet with an immediate value, which gn_packet has at the receiver.
GN_FN int gn_send_imm(const gn_tx *q, int scope, gn_u64 from, gn_u32 bytes, gn_u32 imm, gn_u32 conn,
                      gn_u64 limit, gn_u64 *ticket) {
    gn_slot s = gn_fill_send(from, bytes, 0, conn);
    gn_fill_imm(&s, imm);
    return gn_submit(q, scope, &s, limit, ticket);
}

GN_FN int gn_put(const gn_tx *q, int scope, gn_u64 to, gn_u64 from, gn_u32 bytes, gn_u64 limit,
                 gn_u64 *ticket) {
    gn_slot s = gn_fill_move(GN_OP_PUT, from, to, bytes);
    return gn_submit(q, scope, &s, limit, ticket);
}

// A put whose immediate value the peer's next receive gets, with a packet without bytes, after the bytes.
GN_FN int gn_put_imm(const gn_tx *q, int scope, gn_u64 to, gn_u64 from, gn_u32 bytes, gn_u32 imm,
                     gn_u64 limit, gn_u64 *ticket) {
    gn_slot s = gn_fill_move(GN_OP_PUT, from, to, bytes);
    gn_fill_imm(&s, imm);
    return gn_submit(q, scope, &s, limit, ticket);
}

GN_FN int gn_put_inline(const gn_tx *q, int scope, gn_u64 to, gn_u64 value, gn_u32 bytes, gn_u64 limit,
                        gn_u64 *ticket) {
    if (bytes == 0 || bytes > 8) return GN_INVALID;
    gn_slot s = gn_fill_inline(to, value, bytes);
    return gn_submit(q, scope, &s, limit, ticket);
}

GN_FN int gn_put_signal(const gn_tx *q, int scope, gn_u64 to, gn_u64 from, gn_u32 bytes, gn_u64 at,
                        gn_u64 value, gn_u64 limit, gn_u64 *ticket) {
    gn_slot s = gn_fill_move(GN_OP_PUT, from, to, bytes);
    gn_fill_signal(&s, at, value);
    return gn_submit(q, scope, &s, limit, ticket);
}

GN_FN int gn_get(const gn_tx *q, int scope, gn_u64 to, gn_u64 from, gn_u32 bytes, gn_u64 limit,
                 gn_u64 *ticket) {
    gn_slot s = gn_fill_move(GN_OP_GET, to, from, bytes);
    return gn_submit(q, scope, &s, limit, ticket);
}

GN_FN int gn_signal(const gn_tx *q, int scope, gn_u64 at, gn_u64 value, gn_u64 limit, gn_u64 *ticket) {
    gn_slot s = gn_fill_add(at, value);
    return gn_submit(q, scope, &s, limit, ticket);
}

// Copies between the context's own regions.
GN_FN int gn_copy(const gn_tx *q, int scope, gn_u64 to, gn_u64 from, gn_u32 bytes, gn_u64 limit,
                  gn_u64 *ticket) {
    gn_slot s = gn_fill_move(GN_OP_COPY, from, to, bytes);
    return gn_submit(q, scope, &s, limit, ticket);
}

// Appends bytes to a file: the threads of writer number `writer` of k:start's writers add them in the order
// of tickets. Completion (gn_wait) means that the system has the bytes and the memory may be reused.
// GN_FAILED: no such writer, or a write error such as a full disk.
GN_FN int gn_file(const gn_tx *q, int scope, gn_u32 writer, gn_u64 from, gn_u32 bytes, gn_u64 limit,
                  gn_u64 *ticket) {
    gn_slot s = gn_fill_move(GN_OP_FILE, from, writer, bytes);
    return gn_submit(q, scope, &s, limit, ticket);
}

// Adds, waits, and returns the previous value; result: 8 bytes of a region owned by the caller, aligned to 8.
// Each thread on its own.
GN_FN int gn_fetch_add(const gn_tx *q, gn_u64 at, gn_u64 value, gn_u64 result, gn_u64 limit, gn_u64 *was) {
    const gn_u64 *p = (const gn_u64 *)gn_pointer(&q->s, result);
    gn_slot s = gn_fill_fetch_add(at, value, result);
    gn_u64 ticket;
    int err = p ? gn_submit(q, GN_BY_THREAD, &s, limit, &ticket) : GN_INVALID;
    if (err == GN_OK) err = gn_wait(q, ticket, limit);
    if (err == GN_OK) *was = gn_peek(p);
    return err;
}

// Compares and swaps, waits, and returns the previous value; as gn_fetch_add.
GN_FN int gn_compare_swap(const gn_tx *q, gn_u64 at, gn_u64 compare, gn_u64 value, gn_u64 result,
                          gn_u64 limit, gn_u64 *was) {
    const gn_u64 *p = (const gn_u64 *)gn_pointer(&q->s, result);
    gn_slot s = gn_fill_cas(at, compare, value, &result);
    gn_u64 ticket;
    int err = p ? gn_submit(q, GN_BY_THREAD, &s, limit, &ticket) : GN_INVALID;
    if (err == GN_OK) err = gn_wait(q, ticket, limit);
    if (err == GN_OK) *was = gn_peek(p);
    return err;
}

// Waits until a 64-bit signal in a region, to which a peer adds, is at least `value`.
GN_FN int gn_wait_signal(const gn_side *s, gn_u64 at, gn_u64 value, gn_u64 limit) {
    const gn_u64 *p = (const gn_u64 *)gn_pointer(s, at);
    gn_timer t = gn_timer_start(s, limit);
    if (!p || (gn_u64)p % 8) return GN_INVALID;
    for (;;) {
        if (gn_load(p) >= value) return GN_OK;
        int err = gn_go_on(s, &t, 0, 0);
        if (err != GN_OK) return err;
    }
}

// ---- relay: one warp reads the proxy's words for all others -----------------------------------------------

GN_FN void gn_relay_tx(const gn_side *s, const gn_tx_row *r) {
    const gn_tx_state *from = (const gn_tx_state *)gn_at(s->context, r->source);
    gn_tx_state *to = (gn_tx_state *)gn_at(s->context, r->state);
    gn_u64 accepted = gn_load(&from->accepted), completed = gn_load(&from->completed);
    gn_poke(&to->dropped, gn_peek(&from->dropped));
    gn_poke(&to->error, gn_peek(&from->error));
    gn_poke(&to->failed, gn_peek(&from->failed));
    gn_poke(&to->epoch, gn_peek(&from->epoch));
    gn_store(&to->accepted, accepted);
    gn_store(&to->completed, completed);
}

// Runs one round of the relay, by a single warp: copies the proxy's words of all rings with relocated state
// (row.state != row.source). To be called repeatedly until it returns GN_ABORTED.
GN_FN int gn_relay(const gn_side *s) {
    const gn_context *p = (const gn_context *)s->context;
    const gn_tx_row *tx = (const gn_tx_row *)gn_at(p, p->tx);
    const gn_rx_row *rx = (const gn_rx_row *)gn_at(p, p->rx);
    for (gn_u32 k = gn_lane(); k < p->n_tx; k += 32)
        if (tx[k].state != tx[k].source) gn_relay_tx(s, &tx[k]);
    for (gn_u32 k = gn_lane(); k < p->n_rx; k += 32) {
        const gn_rx_state *from = (const gn_rx_state *)gn_at(p, rx[k].source);
        gn_rx_state *to = (gn_rx_state *)gn_at(p, rx[k].state);
        if (from == to) continue;
        gn_u64 filled = gn_load(&from->filled);
        gn_poke(&to->dropped, gn_peek(&from->dropped));
        gn_poke(&to->epoch, gn_peek(&from->epoch));
        gn_store(&to->filled, filled);
    }
    if (gn_lane() == 0 && p->proxy != p->proxy_source) {
        const gn_proxy_words *from = (const gn_proxy_words *)gn_at(p, p->proxy_source);
        gn_proxy_words *to = (gn_proxy_words *)gn_at(p, p->proxy);
        gn_poke(&to->beat, gn_peek(&from->beat));
        gn_poke(&to->abort, gn_peek(&from->abort));
    }
    gn_beat(s);
    gn_warp_sync();
    return gn_peek(&s->proxy->abort) ? GN_ABORTED : GN_OK;
}

#endif
