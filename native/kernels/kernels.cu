// kernels.cu: the kernels of the GPU: their bodies are in the headers. FROM names the input of the conversions that a
// module has; without it, it has the moves.
#include "kernels/k_stream.h"
#include "kernels/k_ring.h"

#define KERNEL extern "C" __attribute__((global, launch_bounds(DQK_THREADS, BLOCKS)))
#ifndef BLOCKS
#define BLOCKS 4
#endif

K_FN uint32_t warp_of(void) { return blockIdx.x * (DQK_THREADS / 32) + threadIdx.x / 32; }
K_FN uint32_t warps(void) { return gridDim.x * (DQK_THREADS / 32); }

// The last block writes the ticket.
static __attribute__((device)) inline void finish(uint64_t ticket, uint64_t value, uint64_t done) {
    if (ticket == 0) return;
    __nvvm_bar_sync(0);
    if (threadIdx.x != 0) return;
    uint32_t before;
    asm volatile("atom.global.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(done) : "memory");
    if (before != gridDim.x - 1) return;
    asm volatile("st.relaxed.gpu.global.u32 [%0], 0;" : : "l"(done) : "memory");
    asm volatile("st.release.sys.global.u64 [%0], %1;" : : "l"(ticket), "l"(value) : "memory");
}

#ifdef FROM
#define JOIN(a, from, b)  a##from##b
#define NAMED(a, from, b) JOIN(a, from, b)
#define CONVERSION(input, to, more)                                                                                 \
    KERNEL void NAMED(dqk_, FROM, _##to)(dqk_list l) {                                                              \
        k_list(&l, (k_types){NAMED(K_TYPE_, FROM, ), K_TYPE_##to, l.conversion > DQK_SWAPPED}, warp_of(), warps()); \
        finish(l.ticket, l.value, l.done);                                                                                                 \
    }
K_OUTPUTS(CONVERSION, , )
#else
KERNEL void dqk_moves(dqk_list l) {
    k_list(&l, (k_types){K_TYPE_bytes, K_TYPE_bytes, 0}, warp_of(), warps());
    finish(l.ticket, l.value, l.done);
}

KERNEL void dqk_copy_heads(dqk_heads h) {
    k_heads(&h, warp_of(), warps());
    finish(h.ticket, h.value, h.done);
}


// ---- a ring -------------------------------------------------------------------------------------------------------

static __attribute__((device)) uint64_t acquire_sys(uint64_t at) {
    uint64_t v;
    asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
    return v;
}

static __attribute__((device)) uint64_t acquire_gpu(uint64_t at) {
    uint64_t v;
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(v) : "l"(at) : "memory");
    return v;
}

static __attribute__((device)) void release_gpu(uint64_t at, uint64_t v) {
    asm volatile("st.release.gpu.global.u64 [%0], %1;" : : "l"(at), "l"(v) : "memory");
}

static __attribute__((device)) uint64_t now_ns(void) {
    uint64_t t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t));
    return t;
}

enum { NEXT = 0, PUBLISHED = 8, QUIT = 16, LEAVING = 24 }; // of dqk_ring's state

// True once list i is there; false when none came for a while: the kernel leaves.
static __attribute__((device)) bool lead(const dqk_ring *r, uint64_t i) {
    uint64_t seq = r->slots + (i & (r->n - 1)) * sizeof(dqk_slot) + sizeof(dqk_list), since = now_ns();
    while (acquire_sys(seq) != i + 1) {
        if (now_ns() - since < r->idle_ns) continue;
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(r->left), "l"(r->launch) : "memory");
        asm volatile("fence.sc.sys;" : : : "memory");
        if (acquire_sys(seq) != i + 1) {
            release_gpu(r->state + QUIT, 1);
            return false;
        }
        asm volatile("st.relaxed.sys.global.u64 [%0], %1;" : : "l"(r->left), "l"(r->launch - 1) : "memory");
    }
    release_gpu(r->state + PUBLISHED, i + 1);
    return true;
}

static __attribute__((device)) bool follow(const dqk_ring *r, uint64_t i) {
    while (acquire_gpu(r->state + PUBLISHED) <= i) {
        if (acquire_gpu(r->state + QUIT)) return acquire_gpu(r->state + PUBLISHED) > i;
        asm volatile("nanosleep.u32 50;");
    }
    return true;
}

KERNEL void dqk_serve(dqk_ring r) {
    static __attribute__((shared)) uint32_t go;
    uint64_t i = acquire_gpu(r.state + NEXT);
    for (;; i++) {
        if (threadIdx.x == 0) go = blockIdx.x == 0 ? lead(&r, i) : follow(&r, i);
        __nvvm_bar_sync(0);
        uint32_t on = go;
        __nvvm_bar_sync(0);
        if (!on) break;
        uint64_t at = r.slots + (i & (r.n - 1)) * sizeof(dqk_slot);
        dqk_list l;
        l.moves = *K_AT(const uint64_t, at);
        l.ticket = *K_AT(const uint64_t, at + 8);
        l.value = *K_AT(const uint64_t, at + 16);
        l.done = *K_AT(const uint64_t, at + 24);
        l.n = *K_AT(const uint32_t, at + 32);
        l.parts = *K_AT(const uint32_t, at + 36);
        k_list(&l, (k_types){K_TYPE_bytes, K_TYPE_bytes, 0}, warp_of(), warps());
        finish(l.ticket, l.value, l.done);
    }
    if (threadIdx.x != 0) return;
    uint32_t before;
    asm volatile("atom.global.acq_rel.gpu.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(r.state + LEAVING) : "memory");
    if (before != gridDim.x - 1) return;
    release_gpu(r.state + NEXT, i);
    release_gpu(r.state + PUBLISHED, i);
    release_gpu(r.state + QUIT, 0);
    release_gpu(r.state + LEAVING, 0);
}
#endif
