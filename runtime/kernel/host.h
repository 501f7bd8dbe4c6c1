// host.h: prepended to kernel sources that run on the host, in C++ and in GNU C. Emulates the supported part
// of CUDA C.
//
// The threads of a block run one after the other. If the source uses barriers (DQ_FIBERS), each has its own
// stack, and a waiting thread switches to the next. Blocks run one after the other too; several CPU threads
// may run the same kernel, so block state is per CPU thread.
#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#define __global__
#define __device__
#define __host__
#define __constant__
#define __shared__      static __thread
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__    __attribute__((noinline))
#define __launch_bounds__(...)
#define __ldg(p)               (*(p))
#define __expf                 expf
#define __logf                 logf
#define __sinf                 sinf
#define __cosf                 cosf
#define rsqrtf(x)              (1.0f / sqrtf(x))
#define rsqrt(x)               (1.0 / sqrt(x))
#define __popc(x)              __builtin_popcount(x)
#define __popcll(x)            __builtin_popcountll(x)
#define __clz(x)               ((x) ? __builtin_clz(x) : 32)
#define __ffs(x)               __builtin_ffs(x)
#define __threadfence()        __atomic_thread_fence(__ATOMIC_SEQ_CST)
#define __threadfence_block()  __threadfence()
#define __threadfence_system() __threadfence()
#define warpSize               32

// ---- vectors ----------------------------------------------------------------------------------------------

#define DQ_VECTORS(type, name)                                                                               \
    typedef struct name##2 {                                                                                 \
        type x, y;                                                                                           \
    }                                                                                                        \
    name##2;                                                                                                 \
    typedef struct name##3 {                                                                                 \
        type x, y, z;                                                                                        \
    }                                                                                                        \
    name##3;                                                                                                 \
    typedef struct name##4 {                                                                                 \
        type x, y, z, w;                                                                                     \
    }                                                                                                        \
    name##4;                                                                                                 \
    static inline name##2 make_##name##2(type x, type y) {                                                   \
        name##2 v = {x, y};                                                                                  \
        return v;                                                                                            \
    }                                                                                                        \
    static inline name##3 make_##name##3(type x, type y, type z) {                                           \
        name##3 v = {x, y, z};                                                                               \
        return v;                                                                                            \
    }                                                                                                        \
    static inline name##4 make_##name##4(type x, type y, type z, type w) {                                   \
        name##4 v = {x, y, z, w};                                                                            \
        return v;                                                                                            \
    }
DQ_VECTORS(signed char, char)
DQ_VECTORS(unsigned char, uchar)
DQ_VECTORS(short, short)
DQ_VECTORS(unsigned short, ushort)
DQ_VECTORS(int, int)
DQ_VECTORS(unsigned int, uint)
DQ_VECTORS(float, float)
DQ_VECTORS(double, double)
typedef uint3 dim3;

// ---- thread coordinates -----------------------------------------------------------------------------------

static __thread struct { uint3 thread, block, grid_dim, block_dim; } dq_at;
#define threadIdx dq_at.thread
#define blockIdx  dq_at.block
#define gridDim   dq_at.grid_dim
#define blockDim  dq_at.block_dim

// ---- atomics and small functions --------------------------------------------------------------------------

#define DQ_ATOMIC(p, v, change)                                                                              \
    __extension__({                                                                                          \
        __typeof__(&*(p)) dq_p = (p);                                                                        \
        __typeof__(*(p)) dq_old, dq_new, dq_v = (v);                                                         \
        __atomic_load(dq_p, &dq_old, __ATOMIC_RELAXED);                                                      \
        do                                                                                                   \
            dq_new = (change);                                                                               \
        while (!__atomic_compare_exchange(dq_p, &dq_old, &dq_new, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));   \
        dq_old;                                                                                              \
    })
#define atomicAdd(p, v)  DQ_ATOMIC(p, v, dq_old + dq_v)
#define atomicSub(p, v)  DQ_ATOMIC(p, v, dq_old - dq_v)
#define atomicMin(p, v)  DQ_ATOMIC(p, v, dq_old < dq_v ? dq_old : dq_v)
#define atomicMax(p, v)  DQ_ATOMIC(p, v, dq_old > dq_v ? dq_old : dq_v)
#define atomicAnd(p, v)  DQ_ATOMIC(p, v, dq_old &dq_v)
#define atomicOr(p, v)   DQ_ATOMIC(p, v, dq_old | dq_v)
#define atomicXor(p, v)  DQ_ATOMIC(p, v, dq_old ^ dq_v)
#define atomicExch(p, v) DQ_ATOMIC(p, v, dq_v)
#define atomicCAS(p, is, v)                                                                                  \
    __extension__({                                                                                          \
        __typeof__(*(p)) dq_is = (is), dq_v = (v);                                                           \
        __atomic_compare_exchange(p, &dq_is, &dq_v, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);                  \
        dq_is;                                                                                               \
    })
#define atomicAdd_block(p, v)      atomicAdd(p, v)
#define atomicAdd_system(p, v)     atomicAdd(p, v)
#define atomicSub_block(p, v)      atomicSub(p, v)
#define atomicMin_block(p, v)      atomicMin(p, v)
#define atomicMax_block(p, v)      atomicMax(p, v)
#define atomicExch_block(p, v)     atomicExch(p, v)
#define atomicExch_system(p, v)    atomicExch(p, v)
#define atomicCAS_block(p, is, v)  atomicCAS(p, is, v)
#define atomicCAS_system(p, is, v) atomicCAS(p, is, v)
#define min(a, b)                                                                                            \
    __extension__({                                                                                          \
        __typeof__((a) + (b)) dq_a = (a), dq_b = (b);                                                        \
        dq_a < dq_b ? dq_a : dq_b;                                                                           \
    })
#define max(a, b)                                                                                            \
    __extension__({                                                                                          \
        __typeof__((a) + (b)) dq_a = (a), dq_b = (b);                                                        \
        dq_a > dq_b ? dq_a : dq_b;                                                                           \
    })

// ---- threads with stacks ----------------------------------------------------------------------------------

static void dq_call(void *const *args);

#if DQ_FIBERS
enum { DQ_STACK = 1 << 16, DQ_MOST = 1024 };

typedef struct dq_barrier {
    unsigned members, waiting;
    unsigned long turn;
} dq_barrier;

static __thread struct {
    ucontext_t *at, home;
    uint8_t *stacks, ended[DQ_MOST];
    unsigned n, now, idle; // idle: switches since a thread last made progress
    dq_barrier block, warps[DQ_MOST / 32];
    uint64_t words[DQ_MOST]; // exchanged between a warp's threads
    void *const *args;
    const char *fault;
} dq_b;

static uint3 dq_place(unsigned k) {
    uint3 d = blockDim;
    return make_uint3(k % d.x, k / d.x % d.y, k / d.x / d.y);
}

// Switches to the next thread that has not ended, or to the initial context if there is none or after an
// error.
static void dq_switch(void) {
    unsigned from = dq_b.now, to = from;
    do
        to = (to + 1) % dq_b.n;
    while (dq_b.ended[to] && to != from);
    if (++dq_b.idle > 2 * dq_b.n) dq_b.fault = "its threads wait at different barriers for each other";
    if (dq_b.fault || dq_b.ended[to]) {
        swapcontext(&dq_b.at[from], &dq_b.home);
        return;
    }
    if (to == from) return;
    dq_b.now = to;
    threadIdx = dq_place(to);
    swapcontext(&dq_b.at[from], &dq_b.at[to]);
}

static void dq_open(dq_barrier *b) {
    if (b->waiting < b->members) return;
    b->waiting = 0;
    b->turn++;
    dq_b.idle = 0;
}

static void dq_wait(dq_barrier *b) {
    unsigned long turn = b->turn;
    b->waiting++;
    dq_open(b);
    while (b->turn == turn)
        dq_switch();
}

static void dq_leave(dq_barrier *b) {
    b->members--;
    if (b->members > 0) dq_open(b);
}

static void dq_thread(void) {
    dq_call(dq_b.args);
    dq_b.ended[dq_b.now] = 1;
    dq_b.idle = 0;
    dq_leave(&dq_b.block);
    dq_leave(&dq_b.warps[dq_b.now / 32]);
    dq_switch();
}

static uint64_t dq_show(uint64_t word, unsigned lane) {
    unsigned me = dq_b.now, from = me / 32 * 32 + lane;
    dq_barrier *warp = &dq_b.warps[me / 32];
    dq_b.words[me] = word;
    dq_wait(warp);
    if (lane < 32 && from < dq_b.n) word = dq_b.words[from];
    dq_wait(warp);
    return word;
}

#define __syncthreads() dq_wait(&dq_b.block)
#define __syncwarp(...) dq_wait(&dq_b.warps[dq_b.now / 32])
#define DQ_SHUFFLE(v, lane)                                                                                  \
    __extension__({                                                                                          \
        __typeof__((v) + 0) dq_v = (v);                                                                      \
        uint64_t dq_w = 0;                                                                                   \
        memcpy(&dq_w, &dq_v, sizeof dq_v);                                                                   \
        dq_w = dq_show(dq_w, lane);                                                                          \
        memcpy(&dq_v, &dq_w, sizeof dq_v);                                                                   \
        dq_v;                                                                                                \
    })
#define __shfl_sync(mask, v, lane)   DQ_SHUFFLE(v, (unsigned)(lane) % 32)
#define __shfl_down_sync(mask, v, n) DQ_SHUFFLE(v, dq_b.now % 32 + (n))
#define __shfl_up_sync(mask, v, n)   DQ_SHUFFLE(v, dq_b.now % 32 - (n))
#define __shfl_xor_sync(mask, v, n)  DQ_SHUFFLE(v, (dq_b.now % 32) ^ (n))

static const char *dq_block(void *const *args) {
    unsigned n = blockDim.x * blockDim.y * blockDim.z;
    memset(dq_b.ended, 0, n);
    memset(dq_b.warps, 0, sizeof dq_b.warps);
    memset(&dq_b.block, 0, sizeof dq_b.block);
    dq_b.n = dq_b.block.members = n;
    dq_b.args = args;
    dq_b.now = dq_b.idle = 0;
    dq_b.fault = NULL;
    for (unsigned k = 0; k < n; k++) {
        dq_b.warps[k / 32].members++;
        getcontext(&dq_b.at[k]);
        dq_b.at[k].uc_stack.ss_sp = dq_b.stacks + (size_t)k * DQ_STACK;
        dq_b.at[k].uc_stack.ss_size = DQ_STACK;
        makecontext(&dq_b.at[k], dq_thread, 0);
    }
    threadIdx = dq_place(0);
    swapcontext(&dq_b.home, &dq_b.at[0]);
    return dq_b.fault;
}

static const char *dq_prepare(unsigned n) {
    dq_b.at = (ucontext_t *)malloc(n * sizeof(ucontext_t));
    dq_b.stacks = (uint8_t *)malloc((size_t)n * DQ_STACK);
    return !dq_b.stacks || !dq_b.at ? "no memory for its threads' stacks" : NULL;
}

static void dq_tidy(void) {
    free(dq_b.stacks);
    free(dq_b.at);
}
#else
static const char *dq_block(void *const *args) {
    uint3 d = blockDim;
    for (threadIdx.z = 0; threadIdx.z < d.z; threadIdx.z++)
        for (threadIdx.y = 0; threadIdx.y < d.y; threadIdx.y++)
            for (threadIdx.x = 0; threadIdx.x < d.x; threadIdx.x++)
                dq_call(args);
    return NULL;
}

static const char *dq_prepare(unsigned n) {
    (void)n;
    return NULL;
}
static void dq_tidy(void) {}
#endif

static const char *dq_run(void *const *args, const unsigned *grid, const unsigned *block) {
    unsigned n = block[0] * block[1] * block[2];
    uint3 g = make_uint3(grid[0], grid[1], grid[2]);
    gridDim = g;
    blockDim = make_uint3(block[0], block[1], block[2]);
    const char *fault = dq_prepare(n);
    for (blockIdx.z = 0; blockIdx.z < g.z && !fault; blockIdx.z++)
        for (blockIdx.y = 0; blockIdx.y < g.y && !fault; blockIdx.y++)
            for (blockIdx.x = 0; blockIdx.x < g.x && !fault; blockIdx.x++)
                fault = dq_block(args);
    dq_tidy();
    return fault;
}

// ---- functions that gn.h requires of the host (native/gpunetio/device/gn_side.h) --------------------------

#if DQ_RINGS
// Lets other threads of the block, and of the CPU, run while a thread waits for the proxy.
static void dq_pause(void) {
    dq_b.idle = 0;
    sched_yield();
    dq_switch();
}

static uint64_t dq_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

// Returns a mask in which bit k is b of the warp's thread k.
static unsigned dq_ballot(int b) {
    unsigned mask = 0, first = dq_b.now / 32 * 32;
    dq_barrier *warp = &dq_b.warps[dq_b.now / 32];
    dq_b.words[dq_b.now] = b != 0;
    dq_wait(warp);
    for (unsigned k = 0; k < 32 && first + k < dq_b.n; k++)
        mask |= (unsigned)(dq_b.words[first + k] != 0 && !dq_b.ended[first + k]) << k;
    dq_wait(warp);
    return mask;
}

#define GN_LANE()           (dq_b.now % 32)
#define GN_THREAD()         (dq_b.now)
#define GN_WARP_SYNC()      __syncwarp()
#define GN_BLOCK_SYNC()     __syncthreads()
#define GN_SHUFFLE(v, lane) dq_show(v, (lane) % 32)
#define GN_BALLOT(b)        dq_ballot(b)
#define GN_NOW()            dq_now()
#define GN_PAUSE()          dq_pause()
#endif

// Runs a single block by its number: the blocks of a persistent kernel run concurrently, each on a CPU
// thread.
static const char *dq_run_block(void *const *args, const unsigned *grid, const unsigned *block,
                                unsigned number) {
    unsigned n = block[0] * block[1] * block[2];
    gridDim = make_uint3(grid[0], grid[1], grid[2]);
    blockDim = make_uint3(block[0], block[1], block[2]);
    blockIdx = make_uint3(number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]);
    const char *fault = dq_prepare(n);
    if (!fault) fault = dq_block(args);
    dq_tidy();
    return fault;
}

// ---- interface to the engine (native/compute/compute.h) ---------------------------------------------------

// Class and size of an argument: p for a pointer, i for an integer, f for a floating-point number, r for
// anything else; the size is a digit, at most 9 bytes.
#define DQ_CLASS(x)                                                                                          \
    (__builtin_classify_type(x) == 5   ? 'p'                                                                 \
     : __builtin_classify_type(x) == 8 ? 'f'                                                                 \
     : __builtin_classify_type(x) > 8  ? 'r'                                                                 \
                                       : 'i')

#define DQ_BYTES(x) ((char)('0' + (sizeof(x) < 10 ? sizeof(x) : 9)))

// Two characters per argument, defined after the source; constants, because no code runs when the library is
// loaded.
#ifdef __cplusplus
extern "C"
#else
extern
#endif
    const char dq_types[] __attribute__((visibility("hidden")));

struct dq_host_kernel {
    const char *types;
    const char *(*run)(void *const *args, const unsigned *grid, const unsigned *block);
    const char *(*run_block)(void *const *args, const unsigned *grid, const unsigned *block, unsigned number);
};
#ifdef __cplusplus
extern "C" struct dq_host_kernel daqiri_kernel;
#endif
struct dq_host_kernel daqiri_kernel = {dq_types, dq_run, dq_run_block};
