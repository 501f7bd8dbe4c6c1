// k_lanes.h: a warp in plain C. A kernel's body is written for a whole warp: per-lane values are arrays of
// K_LANES, and K_EACH iterates over them. On a GPU K_LANES is 1: each thread is a lane, loops disappear and
// arrays become registers. On the host it is 32, and one thread executes a warp step by step.
#ifndef K_LANES_H
#define K_LANES_H

#include <stdbool.h>
#include <stdint.h>

#ifdef __CUDA__
#include <__clang_cuda_builtin_vars.h>
#define K_FN          static inline __attribute__((device, always_inline))
#define K_UNROLL      _Pragma("unroll")
#define K_LANES       1
#define K_AT(type, p) ((__attribute__((address_space(1))) type *)(p)) // global memory
#else
#define K_FN static inline __attribute__((always_inline))
#define K_UNROLL
#define K_LANES       32
#define K_AT(type, p) ((type *)(uintptr_t)(p))
#endif

#define K_EACH(k) for (uint32_t k = 0; k < K_LANES; k++)

// Up to 16 bytes, the first one lowest.
typedef struct k_word {
    uint32_t w[4];
} k_word;

// Returns the warp lane of array index k.
K_FN uint32_t k_lane(uint32_t k) {
#ifdef __CUDA__
    return k + threadIdx.x % 32;
#else
    return k;
#endif
}

// Returns the value of lane `from`, for index k. All lanes of the warp must call it.
K_FN uint32_t k_shuffle_one(const uint32_t *all, uint32_t k, uint32_t from) {
#ifdef __CUDA__
    return (uint32_t)__nvvm_shfl_sync_idx_i32(~0u, (int)all[k], (int)from, 31);
#else
    (void)k;
    return all[from];
#endif
}

// Returns the first `bytes` of the value of lane `from`, for index k.
K_FN k_word k_shuffle(const k_word *all, uint32_t k, uint32_t from, uint32_t bytes) {
#ifdef __CUDA__
    k_word v = {{0, 0, 0, 0}};
    K_UNROLL
    for (uint32_t i = 0; i < bytes / 4; i++)
        v.w[i] = k_shuffle_one(&all[k].w[i], 0, from);
    return v;
#else
    (void)k, (void)bytes;
    return all[from];
#endif
}

// Byte i of the result is the byte of low (0 to 3) and high (4 to 7) selected by the i-th nibble of pick.
K_FN uint32_t k_permute(uint32_t low, uint32_t high, uint32_t pick) {
#ifdef __CUDA__
    return (uint32_t)__nvvm_prmt((int)low, (int)high, (int)pick);
#else
    uint64_t both = (uint64_t)high << 32 | low;
    uint32_t out = 0;
    K_UNROLL
    for (uint32_t i = 0; i < 4; i++)
        out |= (uint32_t)(both >> (pick >> 4 * i & 7) * 8 & 255) << 8 * i;
    return out;
#endif
}

// Loads `bytes` (4, 8 or 16) from an address aligned to them.
K_FN k_word k_load(uint64_t at, uint32_t bytes) {
    k_word v = {{0, 0, 0, 0}};
#ifdef __CUDA__
    if (bytes == 16)
        asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(v.w[0]), "=r"(v.w[1]), "=r"(v.w[2]), "=r"(v.w[3])
                     : "l"(at));
    else if (bytes == 8)
        asm volatile("ld.global.v2.u32 {%0, %1}, [%2];" : "=r"(v.w[0]), "=r"(v.w[1]) : "l"(at));
    else
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(v.w[0]) : "l"(at));
#else
    __builtin_memcpy(&v, (const void *)(uintptr_t)at, bytes);
#endif
    return v;
}

K_FN k_word k_load_if(bool there, uint64_t at, uint32_t bytes) {
    k_word none = {{0, 0, 0, 0}};
    return there ? k_load(at, bytes) : none;
}

K_FN void k_store(uint64_t at, k_word v, uint32_t bytes) {
#ifdef __CUDA__
    if (bytes == 16)
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};"
                     :
                     : "l"(at), "r"(v.w[0]), "r"(v.w[1]), "r"(v.w[2]), "r"(v.w[3])
                     : "memory");
    else if (bytes == 8)
        asm volatile("st.global.v2.u32 [%0], {%1, %2};" : : "l"(at), "r"(v.w[0]), "r"(v.w[1]) : "memory");
    else
        asm volatile("st.global.u32 [%0], %1;" : : "l"(at), "r"(v.w[0]) : "memory");
#else
    __builtin_memcpy((void *)(uintptr_t)at, &v, bytes);
#endif
}

K_FN uint32_t k_load_byte(uint64_t at) { return *K_AT(const uint8_t, at); }
K_FN void k_store_byte(uint64_t at, uint32_t v) { *K_AT(uint8_t, at) = (uint8_t)v; }

#endif
