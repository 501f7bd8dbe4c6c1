// gn_side.h: the threads of a kernel: lanes of a warp, blocks, time; and waits, all of which end.
//
// On a GPU these are PTX. On the host whoever includes gn.h says what plays a warp, as macros: GN_LANE()
// 0 to 31, GN_THREAD(): of the block, GN_WARP_SYNC(), GN_SHUFFLE(v, lane): 64 bits of that lane,
// GN_BALLOT(b): bit k: b of lane k, GN_BLOCK_SYNC(), GN_NOW(): ns that only grow, GN_PAUSE(). Without them
// each thread is a warp and a block of its own where GN_LANES is 1, for kernels whose calls are at thread
// scope.
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
GN_FN gn_u32 gn_thread(void) { // of the block
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

// Who calls: each thread for itself; the 32 threads of a warp, all of them; the threads of a block, all of
// them and a multiple of 32. At warp and block scope what any of its threads wrote before comes before what
// is sent by it.
enum gn_scope { GN_BY_THREAD, GN_BY_WARP, GN_BY_BLOCK };

// What calls say.
enum gn_result {
    GN_OK,
    GN_AGAIN,      // there is nothing now, and the call doesn't wait
    GN_TIMEOUT,    // the limit is over
    GN_ABORTED,    // the context was aborted: the kernel is to end
    GN_BROKEN,     // the ring takes nothing any more: the kernel is to open it anew, or to end
    GN_FAILED,     // the operation was refused or failed; an item's consumer failed
    GN_ENDED,      // the semaphore's producer has no more
    GN_INVALID,    // no such ring, more slots than it has, an operation that it doesn't take
    GN_ABI_DIFFERS // the context was made by another version of this header
};

#define GN_LIMIT (~0ull) // the context's own limit; other limits are ns, 0: not to wait

GN_FN int gn_is_scope(int scope) { return scope >= GN_BY_THREAD && scope <= GN_BY_BLOCK; }

GN_FN void gn_sync(int scope) {
    if (scope == GN_BY_WARP) gn_warp_sync();
    if (scope == GN_BY_BLOCK) gn_block_sync();
}

// What every handle knows of its context.
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

// Tells the proxy that the kernel lives. Waits do; a kernel that computes for long does it itself.
GN_FN void gn_beat(const gn_side *s) { gn_poke(&s->kernel->beat, gn_now()); }

// Whether a wait goes on, GN_OK, or how it ends. epoch: the ring's word and what it was at the start. To read
// the proxy's words takes a GPU as long as to read what is waited for: it does so at every 16th try, and the
// last.
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

// Takes a context up, each thread for itself. GN_ABI_DIFFERS: nothing else of it is to be used; the proxy
// sees by which version the kernel was compiled.
GN_FN int gn_open(gn_side *s, void *context) {
    const gn_context *p = (const gn_context *)context;
    s->context = (gn_u8 *)context;
    s->proxy = 0;
    s->limit = 0;
    s->kernel = (gn_kernel_words *)gn_at(context, p->kernel);
    if (p->kernel == 0) return GN_ABI_DIFFERS; // no context at all
    gn_poke(&s->kernel->abi, GN_ABI);
    if (gn_peek(&p->abi) != GN_ABI) return GN_ABI_DIFFERS;
    s->proxy = (const gn_proxy_words *)gn_at(context, p->proxy);
    s->limit = p->limit_ns;
    gn_beat(s);
    return GN_OK;
}

// Where the kernel has a place; 0: nowhere.
GN_FN void *gn_pointer(const gn_side *s, gn_u64 place) {
    const gn_context *p = (const gn_context *)s->context;
    if (gn_place_region(place) >= p->n_regions) return 0;
    const gn_region *r = (const gn_region *)gn_at(s->context, p->regions) + gn_place_region(place);
    return r->base ? (void *)((gn_u8 *)(unsigned long)(r->base + gn_place_offset(place))) : 0;
}

#endif
