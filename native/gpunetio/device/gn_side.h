// gn_side.h: thread primitives of a kernel: warp lanes, blocks, time; and waits, which always end.
//
// On a GPU these are PTX. On the host the includer defines what acts as a warp, by macros: GN_LANE(): 0 to
// 31, GN_THREAD(): index in the block, GN_WARP_SYNC(), GN_SHUFFLE(v, lane): 64 bits of that lane,
// GN_BALLOT(b): bit k: b of lane k, GN_BLOCK_SYNC(), GN_NOW(): monotonic ns, GN_PAUSE(). If GN_LANES is 1
// instead, each thread is a warp and a block of its own, for kernels with calls at thread scope only.
#ifndef GN_SIDE_H
#define GN_SIDE_H

#include "gpunetio/device/gn_ring.h"

#if GN_GPU

#define GN_LANES 32
GN_FN gn_u32 gn_lane(void) {
    gn_u32 v;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(v));
    return v;
}
GN_FN gn_u32 gn_thread(void) { // in the block
    gn_u32 x, y, z, nx, ny;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(x));
    asm volatile("mov.u32 %0, %%tid.y;" : "=r"(y));
    asm volatile("mov.u32 %0, %%tid.z;" : "=r"(z));
    asm volatile("mov.u32 %0, %%ntid.x;" : "=r"(nx));
    asm volatile("mov.u32 %0, %%ntid.y;" : "=r"(ny));
    return x + nx * (y + ny * z);
}
GN_FN void gn_warp_sync(void) { asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"); }
GN_FN void gn_block_sync(void) { asm volatile("barrier.sync 0;" ::: "memory"); }
GN_FN gn_u64 gn_shuffle(gn_u64 v, gn_u32 lane) {
    gn_u32 low, high;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;" : "=r"(low) : "r"((gn_u32)v), "r"(lane));
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, 0xffffffff;"
                 : "=r"(high)
                 : "r"((gn_u32)(v >> 32)), "r"(lane));
    return (gn_u64)high << 32 | low;
}
GN_FN gn_u32 gn_ballot(int b) {
    gn_u32 mask;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.sync.ballot.b32 %0, p, 0xffffffff; }"
                 : "=r"(mask)
                 : "r"(b));
    return mask;
}
GN_FN gn_u64 gn_now(void) {
    gn_u64 v;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(v));
    return v;
}
GN_FN void gn_pause(void) { asm volatile("nanosleep.u32 20;"); }
GN_FN gn_u32 gn_ones(gn_u32 mask) {
    gn_u32 n;
    asm("popc.b32 %0, %1;" : "=r"(n) : "r"(mask));
    return n;
}

#else

#ifndef GN_LANES
#define GN_LANES 32
#endif
#if GN_LANES == 1
#define GN_LANE()           0u
#define GN_THREAD()         0u
#define GN_WARP_SYNC()      ((void)0)
#define GN_BLOCK_SYNC()     ((void)0)
#define GN_SHUFFLE(v, lane) ((void)(lane), (v))
#define GN_BALLOT(b)        ((gn_u32)((b) != 0))
#endif
GN_FN gn_u32 gn_lane(void) { return GN_LANE(); }
GN_FN gn_u32 gn_thread(void) { return GN_THREAD(); }
GN_FN void gn_warp_sync(void) { GN_WARP_SYNC(); }
GN_FN void gn_block_sync(void) { GN_BLOCK_SYNC(); }
GN_FN gn_u64 gn_shuffle(gn_u64 v, gn_u32 lane) { return GN_SHUFFLE(v, lane); }
GN_FN gn_u32 gn_ballot(int b) { return GN_BALLOT(b); }
GN_FN gn_u64 gn_now(void) { return GN_NOW(); }
GN_FN void gn_pause(void) { GN_PAUSE(); }
GN_FN gn_u32 gn_ones(gn_u32 mask) { return (gn_u32)__builtin_popcount(mask); }

#endif

// Calling scope: a single thread; all 32 threads of a warp; all threads of a block, a multiple of 32. At warp
// and block scope, preceding writes of any participating thread are ordered before the operation.
enum gn_scope { GN_BY_THREAD, GN_BY_WARP, GN_BY_BLOCK };

// Result of a call.
enum gn_result {
    GN_OK,
    GN_AGAIN,      // not available now, without waiting
    GN_TIMEOUT,    // the limit has passed
    GN_ABORTED,    // the context was aborted: the kernel must end
    GN_BROKEN,     // the ring accepts no more: the kernel must reopen it, or end
    GN_FAILED,     // the operation was rejected or failed; an item's consumer failed
    GN_ENDED,      // the semaphore's producer has ended
    GN_INVALID,    // no such ring, more slots than it has, an operation it does not accept
    GN_ABI_DIFFERS // the context was created by another version of this header
};

#define GN_LIMIT (~0ull) // the context's default; other limits are ns, 0: do not wait

GN_FN int gn_is_scope(int scope) { return scope >= GN_BY_THREAD && scope <= GN_BY_BLOCK; }

GN_FN void gn_sync(int scope) {
    if (scope == GN_BY_WARP) gn_warp_sync();
    if (scope == GN_BY_BLOCK) gn_block_sync();
}

// Context data in every handle.
typedef struct gn_side {
    gn_u8 *context;
    const gn_proxy_words *proxy;
    gn_kernel_words *kernel;
    gn_u64 limit;
} gn_side;

typedef struct gn_timer {
    gn_u64 end, tries;
} gn_timer;

GN_FN gn_timer gn_timer_start(const gn_side *s, gn_u64 limit) {
    gn_timer t = {0, 0};
    if (limit == GN_LIMIT) limit = s->limit;
    gn_u64 now = limit ? gn_now() : 0;
    t.end = limit && now + limit < now ? ~0ull : now + limit;
    return t;
}

// Signals to the proxy that the kernel is alive. Waits do this; a kernel with long computations calls it
// itself.
GN_FN void gn_beat(const gn_side *s) { gn_poke(&s->kernel->beat, gn_now()); }

// Decides whether a wait continues (GN_OK) or how it ends. epoch: the ring's word and its value at the start.
// On a GPU, reading the proxy's words takes as long as reading the awaited word, so they are read only on
// every 16th try and the last.
#define GN_ASK 16
GN_FN int gn_go_on(const gn_side *s, gn_timer *t, const gn_u64 *epoch, gn_u64 was) {
    gn_u64 now = t->end ? gn_now() : 0;
    if (now >= t->end || t->tries % GN_ASK == GN_ASK - 1) {
        if (gn_peek(&s->proxy->abort)) return GN_ABORTED;
        if (epoch && gn_peek(epoch) != was) return GN_BROKEN;
    }
    if (t->end == 0) return GN_AGAIN;
    if (now >= t->end) return GN_TIMEOUT;
    if (t->tries++ % 64 == 0) gn_poke(&s->kernel->beat, now);
    gn_pause();
    return GN_OK;
}

// Opens a context, in each thread. GN_ABI_DIFFERS: it must not be used any further; the proxy can read the
// version the kernel was compiled with.
GN_FN int gn_open(gn_side *s, void *context) {
    const gn_context *p = (const gn_context *)context;
    s->context = (gn_u8 *)context;
    s->proxy = 0;
    s->limit = 0;
    s->kernel = (gn_kernel_words *)gn_at(context, p->kernel);
    if (p->kernel == 0) return GN_ABI_DIFFERS; // not a context
    gn_poke(&s->kernel->abi, GN_ABI);
    if (gn_peek(&p->abi) != GN_ABI) return GN_ABI_DIFFERS;
    s->proxy = (const gn_proxy_words *)gn_at(context, p->proxy);
    s->limit = p->limit_ns;
    gn_beat(s);
    return GN_OK;
}

// Returns the kernel's address of a place; 0: not accessible.
GN_FN void *gn_pointer(const gn_side *s, gn_u64 place) {
    const gn_context *p = (const gn_context *)s->context;
    if (gn_place_region(place) >= p->n_regions) return 0;
    const gn_region *r = (const gn_region *)gn_at(s->context, p->regions) + gn_place_region(place);
    return r->base ? (void *)((gn_u8 *)(unsigned long)(r->base + gn_place_offset(place))) : 0;
}

#endif
