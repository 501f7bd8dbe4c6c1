// gn_base.h: basic types, and loads and stores of words shared by kernel and host.
//
// Without includes, for clang, NVRTC and nvcc (GPU), gcc and clang (host). Shared words are accessed only by
// these functions: PTX with system scope on a GPU (PTX ISA 7.5, memory consistency model), compiler atomics
// on the host.
#ifndef GN_BASE_H
#define GN_BASE_H

typedef unsigned char gn_u8;
typedef unsigned int gn_u32;
typedef unsigned long long gn_u64;

#if defined(__CUDACC__) || defined(__CUDACC_RTC__) || defined(__CUDA__)
#define GN_GPU 1
#else
#define GN_GPU 0
#endif

// GN_SHARED: a variable shared by the threads of a block.
#if defined(__CUDACC_RTC__) || defined(__NVCC__)
#define GN_FN     static __device__ __forceinline__
#define GN_SHARED __shared__
#elif GN_GPU
#define GN_FN     static inline __attribute__((device, always_inline))
#define GN_SHARED static __attribute__((shared))
#else
#define GN_FN     static inline __attribute__((always_inline, unused))
#define GN_SHARED static __thread
#endif

// For loops whose arrays are held in registers.
#if GN_GPU
#define GN_UNROLL _Pragma("unroll")
#else
#define GN_UNROLL
#endif

// A test that single-steps this code provides its own words (tests/native/gpunetio/device/gn_sem_test.c).
#ifndef GN_OWN_WORDS

// Memory orders. A test build may weaken one, and must then fail (TestGnOrder).
#ifndef GN_RELEASE
#define GN_RELEASE __ATOMIC_RELEASE
#endif
#ifndef GN_ACQUIRE
#define GN_ACQUIRE __ATOMIC_ACQUIRE
#endif

// gn_load: load-acquire. gn_peek: relaxed load.
GN_FN gn_u64 gn_load(const gn_u64 *p) {
#if GN_GPU
    gn_u64 v;
    asm volatile("ld.acquire.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
#else
    return __atomic_load_n(p, GN_ACQUIRE);
#endif
}

GN_FN gn_u64 gn_peek(const gn_u64 *p) {
#if GN_GPU
    gn_u64 v;
    asm volatile("ld.relaxed.sys.u64 %0, [%1];" : "=l"(v) : "l"(p) : "memory");
    return v;
#else
    return __atomic_load_n(p, __ATOMIC_RELAXED);
#endif
}

// gn_store: store-release. gn_poke: relaxed store.
GN_FN void gn_store(gn_u64 *p, gn_u64 v) {
#if GN_GPU
    asm volatile("st.release.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#else
    __atomic_store_n(p, v, GN_RELEASE);
#endif
}

GN_FN void gn_poke(gn_u64 *p, gn_u64 v) {
#if GN_GPU
    asm volatile("st.relaxed.sys.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#else
    __atomic_store_n(p, v, __ATOMIC_RELAXED);
#endif
}

// One fence for all following stores: on a GPU gn_fence, then gn_store_fenced for each; on the host each is a
// store-release, which is free there and understood by the thread sanitizer.
GN_FN void gn_fence(void) {
#if GN_GPU
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#endif
}

GN_FN void gn_store_fenced(gn_u64 *p, gn_u64 v) {
#if GN_GPU
    gn_poke(p, v);
#else
    gn_store(p, v);
#endif
}

// Loads words that were stored with release after the same bytes: gn_load_beside for all but one, then
// gn_load for that one. On a GPU the loads are independent, and no fence is needed, which would wait for all
// pending bus traffic: 10 to 30 us under load.
GN_FN gn_u64 gn_load_beside(const gn_u64 *p) {
#if GN_GPU
    return gn_peek(p);
#else
    return gn_load(p);
#endif
}

// Like gn_store, for words read only by the kernel's own threads: on a GPU it does not wait for anything
// beyond its memory.
GN_FN void gn_store_near(gn_u64 *p, gn_u64 v) {
#if GN_GPU
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#else
    gn_store(p, v);
#endif
}

// Compare-and-swap of words written by several threads of one side; returns whether the word was `is` and is
// now v. gn_swap_shown: with release order, visible to both sides.
GN_FN int gn_swap(gn_u64 *p, gn_u64 is, gn_u64 v) {
#if GN_GPU
    gn_u64 was;
    asm volatile("atom.relaxed.gpu.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(was)
                 : "l"(p), "l"(is), "l"(v)
                 : "memory");
    return was == is;
#else
    return __atomic_compare_exchange_n(p, &is, v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
#endif
}

GN_FN int gn_swap_shown(gn_u64 *p, gn_u64 is, gn_u64 v) {
#if GN_GPU
    gn_u64 was;
    asm volatile("atom.release.sys.cas.b64 %0, [%1], %2, %3;"
                 : "=l"(was)
                 : "l"(p), "l"(is), "l"(v)
                 : "memory");
    return was == is;
#else
    return __atomic_compare_exchange_n(p, &is, v, 0, GN_RELEASE, __ATOMIC_RELAXED);
#endif
}

#endif

#endif
