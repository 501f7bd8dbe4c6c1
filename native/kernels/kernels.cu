// kernels.cu: GPU kernels; their bodies are in the headers. FROM is the input type of a module's conversions;
// with PACKED the module has those of packed elements, with SUMS the checksums, with none the moves.
#include "kernels/k_stream.h"
#include "kernels/k_sum.h"

// 4 blocks per multiprocessor.
#define KERNEL extern "C" __attribute__((global, launch_bounds(DQK_THREADS, 4)))

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
#elif defined PACKED
#define CONVERSION(input, to, more)                                                                                 \
    KERNEL void dqk_packed_##to(dqk_list l) {                                                                       \
        k_list(&l, (k_types){K_TYPE_packed, K_TYPE_##to, 0}, warp_of(), warps());                                   \
        finish(l.ticket, l.value, l.done);                                                                          \
    }
K_PACKED_OUTPUTS(CONVERSION, )
#elif defined SUMS
KERNEL void dqk_sums(dqk_list l) {
    k_sums(&l, warp_of(), warps());
    finish(l.ticket, l.value, l.done);
}
#else
KERNEL void dqk_moves(dqk_list l) {
    k_list(&l, (k_types){K_TYPE_bytes, K_TYPE_bytes, 0}, warp_of(), warps());
    finish(l.ticket, l.value, l.done);
}

#endif
