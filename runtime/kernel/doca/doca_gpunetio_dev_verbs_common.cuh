// doca_gpunetio_dev_verbs_common.cuh: utilities. Access at a sharing's scope is relaxed; EXCLUSIVE is a plain
// access. Fences are full ones. On the host reads and fences let other threads run, as kernels spin on them.
#ifndef DOCA_GPUNETIO_DEV_VERBS_COMMON_CUH
#define DOCA_GPUNETIO_DEV_VERBS_COMMON_CUH

#include "doca_gpunetio_verbs_def.h"

GN_FN uint64_t doca_gpu_dev_verbs_query_globaltimer(void) { return gn_now(); }
GN_FN unsigned int doca_gpu_dev_verbs_get_lane_id(void) { return gn_lane(); }
GN_FN uint64_t doca_gpu_dev_verbs_bswap64(uint64_t x) { return doca_swap64(x); }
GN_FN uint32_t doca_gpu_dev_verbs_bswap32(uint32_t x) { return doca_swap32(x); }
GN_FN uint16_t doca_gpu_dev_verbs_bswap16(uint16_t x) { return (uint16_t)(x >> 8 | x << 8); }

template <doca_gpu_dev_verbs_sync_scope sync_scope> GN_FN void doca_fence(void) {
#if GN_GPU
    if (sync_scope == DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS) asm volatile("fence.acq_rel.sys;" ::: "memory");
    if (sync_scope == DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU) asm volatile("fence.acq_rel.gpu;" ::: "memory");
    if (sync_scope == DOCA_GPUNETIO_VERBS_SYNC_SCOPE_CTA) asm volatile("fence.acq_rel.cta;" ::: "memory");
#else
    __atomic_thread_fence(__ATOMIC_ACQ_REL);
#endif
}
template <doca_gpu_dev_verbs_sync_scope sync_scope> GN_FN void doca_gpu_dev_verbs_fence_acquire(void) {
    doca_step();
    doca_fence<sync_scope>();
}
template <doca_gpu_dev_verbs_sync_scope sync_scope> GN_FN void doca_gpu_dev_verbs_fence_release(void) {
    doca_fence<sync_scope>();
}

// ---- loads, stores, atomics -------------------------------------------------------------------------------

GN_FN void doca_gpu_dev_verbs_store_relaxed_mmio(uint64_t *ptr, uint64_t val) { gn_poke((gn_u64 *)ptr, val); }
GN_FN void doca_gpu_dev_verbs_async_store_release(uint64_t *ptr, uint64_t val) {
    gn_store((gn_u64 *)ptr, val);
}
GN_FN void doca_gpu_dev_verbs_async_store_release(uint32_t *ptr, uint32_t val) {
    gn_fence();
    *(volatile uint32_t *)ptr = val;
}

template <typename T, doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GN_FN T doca_gpu_dev_verbs_atomic_read(T *ptr) {
    doca_step();
#if GN_GPU
    return *(volatile T *)ptr;
#else
    return __atomic_load_n(ptr, __ATOMIC_RELAXED);
#endif
}

#if GN_GPU
// Defined for words of 4 and 8 bytes.
#define DOCA_ATOMIC(op, bits, letter)                                                                        \
    GN_FN uint##bits##_t doca_atomic_##op(uint##bits##_t *p, uint##bits##_t v) {                             \
        uint##bits##_t was;                                                                                  \
        asm volatile("atom.relaxed.gpu." #op ".u" #bits " %0, [%1], %2;"                                     \
                     : "=" letter(was)                                                                       \
                     : "l"(p), letter(v)                                                                     \
                     : "memory");                                                                            \
        return was;                                                                                          \
    }
DOCA_ATOMIC(add, 32, "r")
DOCA_ATOMIC(add, 64, "l")
DOCA_ATOMIC(max, 32, "r")
DOCA_ATOMIC(max, 64, "l")
#undef DOCA_ATOMIC
template <typename T> GN_FN T doca_atomic(T *ptr, T val, int max) {
    if (sizeof(T) == 4) {
        uint32_t *p = (uint32_t *)ptr;
        return (T)(max ? doca_atomic_max(p, (uint32_t)val) : doca_atomic_add(p, (uint32_t)val));
    }
    uint64_t *p = (uint64_t *)ptr;
    return (T)(max ? doca_atomic_max(p, (uint64_t)val) : doca_atomic_add(p, (uint64_t)val));
}
#else
template <typename T> GN_FN T doca_atomic(T *ptr, T val, int max) {
    T was = __atomic_load_n(ptr, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(ptr, &was, max ? (was > val ? was : val) : was + val, 0,
                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
    }
    return was;
}
#endif

// Both return the previous value.
template <typename T, doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GN_FN T doca_gpu_dev_verbs_atomic_add(T *ptr, T val) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words of 4 or 8 bytes");
    if (resource_sharing_mode != DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
        return doca_atomic(ptr, val, 0);
    T was = *ptr;
    *ptr = was + val;
    return was;
}
template <typename T, doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode,
          bool need_fence_acquire = false>
GN_FN T doca_gpu_dev_verbs_atomic_max(T *ptr, T val) {
    static_assert(sizeof(T) == 4 || sizeof(T) == 8, "words of 4 or 8 bytes");
    T was = *ptr;
    if (resource_sharing_mode != DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE)
        was = doca_atomic(ptr, val, 1);
    else if (was < val)
        *ptr = val;
    if (need_fence_acquire) doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU>();
    return was;
}

template <doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GN_FN uint64_t doca_gpu_dev_verbs_load_relaxed(uint64_t *ptr) {
    doca_step();
    return gn_peek((gn_u64 *)ptr);
}
GN_FN uint8_t doca_gpu_dev_verbs_load_relaxed_sys_global(uint8_t *ptr) {
    return DOCA_GPUNETIO_VOLATILE(*ptr);
}
GN_FN uint32_t doca_gpu_dev_verbs_load_relaxed_sys_global(uint32_t *ptr) {
    return DOCA_GPUNETIO_VOLATILE(*ptr);
}
GN_FN uint64_t doca_gpu_dev_verbs_load_relaxed_sys_global(uint64_t *ptr) {
    doca_step();
    return gn_peek((gn_u64 *)ptr);
}

template <doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GN_FN void doca_gpu_dev_verbs_lock(int *lock) {
    int was = resource_sharing_mode != DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE;
#if GN_GPU
    while (was)
        asm volatile("atom.acquire.gpu.exch.b32 %0, [%1], 1;" : "=r"(was) : "l"(lock) : "memory");
#else
    while (was && __atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE))
        doca_step();
#endif
}
template <doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GN_FN void doca_gpu_dev_verbs_unlock(int *lock) {
    if (resource_sharing_mode == DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE) return;
#if GN_GPU
    asm volatile("st.release.gpu.b32 [%0], 0;" ::"l"(lock) : "memory");
#else
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
#endif
}

// ---- bytes ------------------------------------------------------------------------------------------------

GN_FN bool doca_gpu_dev_verbs_isaligned(void *ptr, size_t alignment) {
    return (uintptr_t)ptr % alignment == 0;
}
GN_FN void doca_gpu_dev_verbs_memcpy_data(void *dst, void *src, size_t bytes) {
    for (size_t k = 0; k < bytes; k++)
        ((uint8_t *)dst)[k] = ((uint8_t *)src)[k];
}
GN_FN void doca_gpu_dev_verbs_memcpy_aligned_data(void *dst, void *src, size_t bytes) {
    doca_gpu_dev_verbs_memcpy_data(dst, src, bytes);
}
template <typename T> GN_FN void doca_gpu_dev_verbs_memcpy_inl_aligned_data(T *dst, T *src, size_t bytes) {
    for (size_t k = 0; k < bytes / sizeof(T); k++)
        dst[k] = src[k];
}
GN_FN uint64_t doca_gpu_dev_verbs_div_ceil_aligned_pow2(uint64_t x, unsigned int denominator_shift) {
    return (x >> denominator_shift) + ((x & ((1ull << denominator_shift) - 1)) != 0);
}
GN_FN uint32_t doca_gpu_dev_verbs_div_ceil_aligned_pow2_32bits(uint64_t x, int denominator_shift) {
    return (uint32_t)doca_gpu_dev_verbs_div_ceil_aligned_pow2(x, (unsigned int)denominator_shift);
}

#endif
