// doca_base.cuh: what the headers with DOCA's names share: objects, places, waits. Not part of DOCA.
//
// An object that a kernel gets by pointer is a gn_object (gpunetio/device/gn_ring.h); the structures with
// DOCA's names have its layout. An index of DOCA counts from 0 at the kernel's start; a ticket is the ring's
// first one and this index. Memory keys are numbers of regions, in either byte order, or DOCA_ANY_KEY: the
// region is then found by the address.
#ifndef DOCA_BASE_CUH
#define DOCA_BASE_CUH

#ifndef __cplusplus
#error "the headers with DOCA's names have templates: a kernel in C includes gn.h"
#endif

#include <stddef.h>
#include <stdint.h>

#include "doca_error.h"
#include "gpunetio/device/gn.h"

#define DOCA_ANY_KEY 0xffffffffu

// For functions that are longer than their call: on the host they are compiled once.
#if GN_GPU
#define DOCA_FN GN_FN
#else
#define DOCA_FN static __attribute__((noinline, unused))
#endif

// A function that needs a NIC's registers or a descriptor of its own format: a call does not compile.
#define DOCA_IMPOSSIBLE(type, name, why)                                                                     \
    template <bool possible = false, typename... Args> GN_FN type name(Args...) {                            \
        static_assert(possible, #name ": " why);                                                             \
        return type();                                                                                       \
    }

template <typename T> GN_FN volatile T &doca_volatile(T &x) { return *(volatile T *)&x; }

// On the host a kernel that spins on memory lets other threads run, and shows that it is alive.
#if GN_GPU
#define DOCA_GPUNETIO_VOLATILE(x) doca_volatile(x)
GN_FN void doca_step(void) {}
GN_FN void doca_remember(const gn_side *) {}
#else
static __thread gn_kernel_words *doca_alive;
static __thread gn_u32 doca_steps;
static inline __attribute__((unused)) void doca_step(void) {
    if (doca_alive && ++doca_steps % 64 == 0) gn_poke(&doca_alive->beat, gn_now());
    gn_pause();
}
GN_FN void doca_remember(const gn_side *s) { doca_alive = s->kernel; }
#define DOCA_GPUNETIO_VOLATILE(x) (doca_step(), doca_volatile(x))
#endif

// ---- words shared by the threads of a kernel --------------------------------------------------------------

GN_FN gn_u64 doca_fetch_add(gn_u64 *p, gn_u64 n) {
#if GN_GPU
    gn_u64 was;
    asm volatile("atom.relaxed.gpu.add.u64 %0, [%1], %2;" : "=l"(was) : "l"(p), "l"(n) : "memory");
    return was;
#else
    return __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
#endif
}

GN_FN void doca_add(gn_u64 *p, gn_u64 n) {
#if GN_GPU
    asm volatile("red.relaxed.gpu.add.u64 [%0], %1;" ::"l"(p), "l"(n) : "memory");
#else
    __atomic_fetch_add(p, n, __ATOMIC_RELAXED);
#endif
}

GN_FN void doca_raise(gn_u64 *p, gn_u64 least) {
#if GN_GPU
    asm volatile("red.relaxed.gpu.max.u64 [%0], %1;" ::"l"(p), "l"(least) : "memory");
#else
    for (gn_u64 is = gn_peek(p); is < least && !gn_swap(p, is, least); is = gn_peek(p)) {
    }
#endif
}

GN_FN uint32_t doca_swap32(uint32_t x) { return x >> 24 | (x >> 8 & 0xff00) | (x & 0xff00) << 8 | x << 24; }
GN_FN uint64_t doca_swap64(uint64_t x) {
    return (uint64_t)doca_swap32((uint32_t)x) << 32 | doca_swap32((uint32_t)(x >> 32));
}

// ---- objects ----------------------------------------------------------------------------------------------

typedef struct doca_tx {
    gn_tx q;
    gn_u64 first; // ticket of index 0
    gn_u64 *cq;   // entries in mlx5's format (doca_mlx5.cuh): their completion entries; 0: slots
    gn_u64 *record;
    gn_u32 number;
} doca_tx;

typedef struct doca_rx {
    gn_rx q;
    gn_u64 first;
} doca_rx;

GN_FN gn_side doca_side(const void *part) {
    gn_side s;
    gn_open(&s, (gn_u8 *)part - ((const gn_part *)part)->back);
    doca_remember(&s);
    return s;
}

DOCA_FN doca_tx doca_open_tx(const void *part) {
    doca_tx t;
    gn_side s = doca_side(part);
    const gn_tx_row *row = (const gn_tx_row *)gn_at(s.context, ((const gn_part *)part)->row);
    gn_tx_open_row(&t.q, &s, row);
    t.first = row->first;
    t.cq = row->cq ? (gn_u64 *)gn_at(s.context, row->cq) : 0;
    t.record = (gn_u64 *)gn_at(s.context, row->record);
    t.number = row->queue + 1;
    return t;
}

DOCA_FN doca_rx doca_open_rx(const void *part) {
    doca_rx r;
    gn_side s = doca_side(part);
    const gn_rx_row *row = (const gn_rx_row *)gn_at(s.context, ((const gn_part *)part)->row);
    gn_rx_open_row(&r.q, &s, row);
    r.first = row->first;
    return r;
}

GN_FN gn_u64 *doca_table(const void *part, gn_u64 index, gn_u32 words) {
    const gn_part *p = (const gn_part *)part;
    return (gn_u64 *)gn_at((const gn_u8 *)part - p->back, p->table) + (index & p->mask) * words;
}

GN_FN doca_error_t doca_error_of(int result) {
    switch (result) {
    case GN_OK:
        return DOCA_SUCCESS;
    case GN_AGAIN:
        return DOCA_ERROR_AGAIN;
    case GN_TIMEOUT:
        return DOCA_ERROR_TIME_OUT;
    case GN_FAILED:
        return DOCA_ERROR_IO_FAILED;
    case GN_INVALID:
        return DOCA_ERROR_INVALID_VALUE;
    }
    return DOCA_ERROR_BAD_STATE;
}

// ---- places -----------------------------------------------------------------------------------------------

// Returns the number of the region that has this address; n_regions: none.
DOCA_FN gn_u32 doca_region_at(const gn_side *s, gn_u64 address, gn_u32 remote) {
    const gn_context *p = (const gn_context *)s->context;
    const gn_region *r = (const gn_region *)gn_at(p, p->regions);
    gn_u32 k = 0;
    while (k < p->n_regions && ((r[k].rights & GN_REMOTE) != remote || address - r[k].base >= r[k].bytes))
        k++;
    return k;
}

// Converts an address and a key to a place; remote: GN_REMOTE for a peer's memory, else 0. With a region's
// key an address outside it may also be an offset in it, as of regions that begin at 0.
DOCA_FN gn_u64 doca_place(const gn_side *s, gn_u64 address, gn_u32 key, gn_u32 remote) {
    const gn_context *p = (const gn_context *)s->context;
    gn_u32 k = key < p->n_regions ? key : doca_swap32(key);
    if (key == DOCA_ANY_KEY) k = doca_region_at(s, address, remote);
    if (k >= p->n_regions) return gn_place(GN_REGIONS - 1, 0);
    const gn_region *r = (const gn_region *)gn_at(p, p->regions) + k;
    gn_u64 offset = address - r->base;
    return gn_place(k, offset >= r->bytes && address < r->bytes ? address : offset);
}

// ---- posting ----------------------------------------------------------------------------------------------

// Returns the ticket of an index of which the caller keeps 16 bits: the one currently valid in the ring.
GN_FN gn_u64 doca_ticket(const doca_tx *t, gn_u64 index) {
    gn_u64 accepted = gn_load(&t->q.state->accepted) - t->first;
    return t->first + accepted + ((index - accepted) & 0xffff);
}

#include "doca_mlx5.cuh"

// Writes a slot for a reserved index, or for one chosen by the caller (weak mode), whose slot it waits for.
DOCA_FN int doca_prepare(const void *part, gn_u64 index, const gn_slot *slot) {
    doca_tx t = doca_open_tx(part);
    gn_u64 ticket = doca_ticket(&t, index);
    int err = ticket < gn_next(&t.q) ? GN_OK : gn_room(&t.q, ticket, 1, GN_LIMIT);
    if (err == GN_OK && t.cq)
        doca_write_entry(&t, ticket, slot);
    else if (err == GN_OK)
        gn_commit(&t.q, ticket, slot);
    return err;
}

// Reserves n indices, waiting for space. ~0: there was none within the context's limit.
DOCA_FN gn_u64 doca_reserve(const void *part, uint64_t *reserved, gn_u32 n) {
    doca_tx t = doca_open_tx(part);
    gn_u64 first;
    if (gn_reserve(&t.q, n, GN_LIMIT, &first) != GN_OK) return ~0ull;
    doca_add((gn_u64 *)reserved, n);
    return first - t.first;
}

DOCA_FN void doca_ready(const void *part, uint64_t *ready, gn_u64 from, gn_u64 to) {
    doca_tx t = doca_open_tx(part);
    if (t.cq) return doca_ready_entries(&t, ready, from, to);
    gn_publish(&t.q, doca_ticket(&t, from), (gn_u32)((to - from) & 0xffff) + 1);
    doca_raise((gn_u64 *)ready, to + 1);
}

// Publishes prepared slots with indices of the caller, below `end`; reserved ones are already published.
DOCA_FN void doca_submit(const void *part, uint64_t *reserved, uint64_t *producer, gn_u64 end) {
    doca_tx t = doca_open_tx(part);
    gn_u64 next = gn_next(&t.q), n = t.first + end - next;
    if ((long long)n > 0 && n <= 1ull << t.q.log2) {
        gn_set_next(&t.q, next + n);
        if (!t.cq) gn_publish(&t.q, next, (gn_u32)n);
        doca_add((gn_u64 *)reserved, n);
    }
    doca_raise((gn_u64 *)producer, end);
    if (t.cq) doca_ring(&t, end);
}

// Posts n slots of one thread, with consecutive indices; *index: that of the last.
DOCA_FN int doca_post_thread(const doca_tx *t, const gn_slot *slots, gn_u32 n, gn_u64 *index) {
    gn_u64 first;
    int err = gn_reserve(&t->q, n, GN_LIMIT, &first);
    if (err != GN_OK) return err;
    for (gn_u32 k = 0; k < n; k++)
        gn_post(&t->q, first + k, &slots[k]);
    *index = first + n - 1 - t->first;
    return GN_OK;
}

// Posts n slots of each thread of a warp, which reserves them together if the ring has so many.
DOCA_FN int doca_post_warp(const doca_tx *t, const gn_slot *slots, gn_u32 n, gn_u64 *index) {
    gn_warp_sync();
    gn_u32 lanes = gn_ones(gn_ballot(1)), all = lanes * n;
    if (all > 1u << t->q.log2) return doca_post_thread(t, slots, n, index);
    gn_u64 first = 0, err = GN_OK;
    if (gn_lane() == 0) err = (gn_u64)gn_reserve(&t->q, all, GN_LIMIT, &first);
    err = gn_shuffle(err, 0);
    first = gn_shuffle(first, 0);
    if (err != GN_OK) return (int)err;
    if (GN_POST_WARP && n == 1 && lanes == 32) {
        gn_post_warp(&t->q, first, 0xffffffffu, 0, 32, slots);
    } else {
        for (gn_u32 k = 0; k < n; k++)
            gn_post(&t->q, first + gn_lane() * n + k, &slots[k]);
    }
    *index = first + gn_lane() * n + n - 1 - t->first;
    return GN_OK;
}

DOCA_FN int doca_post(const void *part, uint64_t *reserved, int scope, const gn_slot *slots, gn_u32 n,
                      gn_u64 *index) {
    doca_tx t = doca_open_tx(part);
    gn_sync(scope);
    *index = 0;
    int err = t.cq                    ? doca_post_entries(&t, (gn_part *)part, slots, n, index)
              : scope == GN_BY_THREAD ? doca_post_thread(&t, slots, n, index)
                                      : doca_post_warp(&t, slots, n, index);
    if (err == GN_OK) doca_add((gn_u64 *)reserved, n);
    gn_sync(scope);
    return err;
}

// ---- completion -------------------------------------------------------------------------------------------

// GN_FAILED: it, or one before it, failed: as for a queue pair in error state.
GN_FN int doca_poll(const doca_tx *t, gn_u64 index) {
    gn_u64 ticket = t->first + index, completed = gn_load(&t->q.state->completed);
    if ((completed & ~GN_SOME_FAILED) <= ticket) return GN_AGAIN;
    if (!(completed & GN_SOME_FAILED)) return GN_OK;
    gn_u64 failed = gn_peek(&t->q.state->failed);
    return failed && ticket + 1 >= failed ? GN_FAILED : GN_OK;
}

// The same for a completion queue, whose entries in mlx5's format have indices of their own.
GN_FN int doca_poll_cq(const doca_tx *t, gn_u64 index) {
    return t->cq ? doca_poll_entry(t, index) : doca_poll(t, index);
}

DOCA_FN int doca_wait_cq(const doca_tx *t, gn_u64 index, bool entry) {
    gn_timer timer = gn_timer_start(&t->q.s, GN_LIMIT);
    for (;;) {
        int status = entry ? doca_poll_cq(t, index) : doca_poll(t, index);
        if (status != GN_AGAIN) return status;
        int err = gn_tx_pause(&t->q, &timer, t->first + index + 1);
        if (err != GN_OK) return err;
    }
}

DOCA_FN int doca_wait(const doca_tx *t, gn_u64 index) { return doca_wait_cq(t, index, false); }

// Waits for everything reserved.
DOCA_FN int doca_wait_all(const doca_tx *t) {
    gn_u64 next = gn_next(&t->q) - t->first;
    return next ? doca_wait(t, next - 1) : GN_OK;
}

#endif
