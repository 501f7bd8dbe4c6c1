// gn_base.h: what gn's headers stand on: words, loads and stores that kernel and host see of each other.
//
// Without includes, for clang, NVRTC, nvcc (a GPU) and gcc, clang (the host). A word that both sides see is
// read and written by these alone. On a GPU they are PTX with the scope of the whole system (PTX ISA 7.5,
// memory consistency model); on the host the compiler's atomics.
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

// GN_SHARED: a variable that the threads of a block share.
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

// Of a loop whose arrays are registers.
#if GN_GPU
#define GN_UNROLL _Pragma("unroll")
#else
#define GN_UNROLL
#endif

// A test that steps through this code has words of its own (tests/native/gpunetio/device/gn_sem_test.c).
#ifndef GN_OWN_WORDS

// Orders of memory. A build of a test may weaken one, and has to fail (TestGnOrder).
#ifndef GN_RELEASE
#define GN_RELEASE __ATOMIC_RELEASE
#endif
#ifndef GN_ACQUIRE
#define GN_ACQUIRE __ATOMIC_ACQUIRE
#endif

// gn_load: what it sees was stored before all that is loaded after it. gn_peek: without that order.
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

// gn_store: all that was stored before it can be seen by whoever loads it. gn_poke: without that order.
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

// One fence for the stores behind it: on a GPU gn_fence, then gn_store_fenced for each; on the host each is a
// release of its own, which costs nothing there and is what the thread sanitizer understands.
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

// Of words that were stored behind the same bytes: gn_load_beside of all but one, then gn_load of that one.
// On a GPU they don't wait for each other, and there is no fence, which waits for all that is under way on
// the bus: 10 to 30 us where it is busy.
GN_FN gn_u64 gn_load_beside(const gn_u64 *p) {
#if GN_GPU
    return gn_peek(p);
#else
    return gn_load(p);
#endif
}

// gn_store, for words that the kernel's own threads alone read: on a GPU nothing beyond its memory is waited
// for.
GN_FN void gn_store_near(gn_u64 *p, gn_u64 v) {
#if GN_GPU
    asm volatile("st.release.gpu.u64 [%0], %1;" ::"l"(p), "l"(v) : "memory");
#else
    gn_store(p, v);
#endif
}

// For words that several threads of one side write. Whether the word was `is`, and is v now. gn_swap_shown:
// what was written before is seen before, by both sides.
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
