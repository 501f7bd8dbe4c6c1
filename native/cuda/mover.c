// mover.c: lists of moves: filling, launching, completion.
//
// The appending thread owns the open list, the polling thread those in flight; the lock covers the
// transition, and the open list where the poll may launch it because of its age.
#include "cuda/mover.h"
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/pinned.h"
#include "cuda/resident.h"
#include "kernels/kernels.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAP_NS   20000
#define LISTS    8
#define STREAMS  2       // so that a launch can begin before the previous one has ended
#define BURSTS   1024    // bursts per list,
#define LATCHES  64      // and latches, at most
#define DOUBT_NS 2000000 // after this time the driver is queried: the list may never end

typedef enum list_state { FREE, OPEN, FLYING } list_state;

typedef struct list {
    _Atomic list_state state;
    uint32_t slot; // index of its moves and ticket
    uint32_t n, longest, n_bursts, n_latches;
    uint64_t bytes, value;
    bool far;         // sources are in host memory
    int64_t began_ns; // OPEN: time of its first move; FLYING: of the launch. Monotonic
    cu_stream stream;
    dq_burst *bursts[BURSTS];
    _Atomic uint32_t *latches[LATCHES];
} list;

// Memory shared with the GPU, of all lists.
typedef struct shared {
    dqk_move moves[LISTS][DQI_LIST_MOVES];
    _Atomic uint64_t tickets[LISTS][8]; // one cache line each
} shared;

struct dqi_mover {
    dqi_mover_conf conf;
    cu_function kernel;
    cu_stream streams[STREAMS];
    cu_ptr counters; // per list: count of finished blocks
    cu_ptr levels;   // of a packed conversion; 0: none
    dqk_packing packing;
    shared *mem;
    size_t mem_bytes;
    dqi_spin lock;
    list *open;              // NULL: none
    bool claimed;            // a thread is appending to it
    _Atomic uint32_t flying; // lists in flight
    _Atomic int64_t due_ns;  // when the open list must be launched, monotonic; INT64_MAX: it is empty
    uint64_t value;
    int64_t asked_ns;          // time of the last query of the driver
    _Atomic int64_t oldest_ns; // launch time of the oldest list in flight at the last poll; 0: none
    dqi_count launches, moves, bytes;
    list lists[LISTS];
};

// ---- life -------------------------------------------------------------------------------------------------

static int make_shared(dqi_mover *m, const char *what, dq_diag *diag) {
    const dqi_cuda_driver *cu = m->conf.gpu->cu;
    uint8_t *p = NULL;
    m->mem_bytes = sizeof *m->mem;
    int err = dqi_pinned_new(m->conf.gpu, &m->mem_bytes, &p, what, diag);
    m->mem = (shared *)(void *)p;
    if (err != DQ_OK) return err;
    cu_result is = cu->mem_alloc(&m->counters, LISTS * sizeof(uint32_t));
    if (is == CU_SUCCESS) is = cu->memset_async(m->counters, 0, LISTS * sizeof(uint32_t), m->streams[0]);
    if (is == CU_SUCCESS) is = cu->stream_synchronize(m->streams[0]);
    return dqi_cuda_check(is, what, "cuMemAlloc", diag);
}

// Copies the levels of a packed conversion to the GPU.
static cu_result copy_levels(dqi_mover *m, const dqk_unpack *u) {
    const dqi_cuda_driver *cu = m->conf.gpu->cu;
    cu_result is = cu->mem_alloc(&m->levels, sizeof u->levels);
    if (is == CU_SUCCESS) is = cu->copy_to_device(m->levels, u->levels, sizeof u->levels, m->streams[0]);
    if (is == CU_SUCCESS) is = cu->stream_synchronize(m->streams[0]);
    m->packing.levels = m->levels;
    return is;
}

static int make_packing(dqi_mover *m, const char *what, dq_diag *diag) {
    const dqk_unpack *u = m->conf.packed;
    m->conf.packed = NULL;
    if (!u) return DQ_OK;
    m->packing = dqk_unpack_packing(u);
    return u->levelled ? dqi_cuda_check(copy_levels(m, u), what, "cuMemAlloc", diag) : DQ_OK;
}

static int find_kernel(dqi_mover *m, const char *what, dq_diag *diag) {
    uint32_t conversion = m->conf.conversion;
    return dqi_gpu_kernel(m->conf.gpu, dqk_ptx(conversion), dqk_kernel(conversion), &m->kernel, what, diag);
}

static int make(dqi_mover *m, const char *what, dq_diag *diag) {
    dqi_gpu *g = m->conf.gpu;
    int err = dqi_cuda_check(dqi_gpu_enter(g), what, "cuCtxSetCurrent", diag);
    if (err == DQ_OK) err = find_kernel(m, what, diag);
    for (int i = 0; i < STREAMS && err == DQ_OK; i++)
        err = dqi_cuda_check(g->cu->stream_create(&m->streams[i], CU_STREAM_NON_BLOCKING), what,
                             "cuStreamCreate", diag);
    if (err == DQ_OK) err = make_shared(m, what, diag);
    if (err == DQ_OK) err = make_packing(m, what, diag);
    for (uint32_t i = 0; i < LISTS; i++)
        m->lists[i].slot = i;
    return err;
}

int dqi_mover_new(const dqi_mover_conf *conf, const char *what, dqi_mover **out, dq_diag *diag) {
    dqi_mover *m = calloc(1, sizeof *m);
    if (!m) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory for its lists", what);
    m->conf = *conf;
    dqi_gpu_count(m->conf.gpu, 1);
    atomic_init(&m->due_ns, INT64_MAX);
    int err = make(m, what, diag);
    if (err == DQ_OK)
        *out = m;
    else
        dqi_mover_free(m);
    return err;
}

static void let_go(list *l) {
    for (uint32_t i = 0; i < l->n_bursts; i++)
        dq_burst_unref(l->bursts[i]);
    for (uint32_t i = 0; i < l->n_latches; i++)
        atomic_fetch_sub_explicit(l->latches[i], 1, memory_order_acq_rel);
    l->n = l->longest = l->n_bursts = l->n_latches = 0;
    l->bytes = 0;
}

void dqi_mover_free(dqi_mover *m) {
    if (!m) return;
    const dqi_cuda_driver *cu = m->conf.gpu->cu;
    dqi_gpu_count(m->conf.gpu, -1);
    for (uint32_t i = 0; i < LISTS; i++)
        let_go(&m->lists[i]);
    for (int i = 0; i < STREAMS; i++)
        if (m->streams[i] && !dqi_gpu_idle(m->conf.gpu, m->streams[i])) return; // leaks its memory
    dqi_gpu_enter(m->conf.gpu);
    dqi_gpu_free_memory(m->conf.gpu, m->counters);
    dqi_gpu_free_memory(m->conf.gpu, m->levels);
    for (int i = 0; i < STREAMS; i++)
        if (m->streams[i]) cu->stream_destroy(m->streams[i]);
    dqi_pinned_free(m->conf.gpu, (uint8_t *)(void *)m->mem, m->mem_bytes);
    free(m);
}

// ---- launching --------------------------------------------------------------------------------------------

bool dqi_mover_lost(const dqi_mover *m) { return dqi_gpu_lost(m->conf.gpu, NULL, 0); }

static cu_result start(dqi_mover *m, list *l) {
    dqk_list arg = {
        .moves = (uintptr_t)m->mem->moves[l->slot],
        .ticket = (uintptr_t)&m->mem->tickets[l->slot],
        .value = l->value,
        .done = m->counters + l->slot * sizeof(uint32_t),
        .n = l->n,
        .parts = dqk_list_parts(l->longest, m->conf.conversion),
        .conversion = m->conf.conversion,
        .far = l->far,
        .packing = m->packing,
    };
    uint32_t blocks = dqk_blocks(&arg, (uint32_t)m->conf.gpu->info.multiprocessors);
    cu_result err = dqi_gpu_enter(m->conf.gpu);
    if (err != CU_SUCCESS) return err;
    return m->conf.gpu->cu->launch(m->kernel, blocks, 1, 1, DQK_THREADS, 1, 1, 0, l->stream, (void *[]){&arg},
                                   NULL);
}

// Launches the open list. Called with the lock. A failed launch loses the GPU; the next poll ends the list.
static void launch(dqi_mover *m) {
    list *l = m->open;
    m->open = NULL;
    atomic_fetch_add_explicit(&m->flying, 1, memory_order_relaxed);
    atomic_store_explicit(&m->due_ns, INT64_MAX, memory_order_release); // after flying, for dqi_mover_next
    l->value = ++m->value;
    l->stream = m->streams[l->value % STREAMS];
    l->began_ns = dqi_mono_ns();
    dqi_add(&m->launches, 1);
    dqi_add(&m->moves, l->n);
    dqi_add(&m->bytes, l->bytes);
    cu_result err = start(m, l);
    if (err != CU_SUCCESS) dqi_gpu_lose(m->conf.gpu, err);
    atomic_store_explicit(&l->state, FLYING, memory_order_release);
}

// ---- appending --------------------------------------------------------------------------------------------

static list *free_list(dqi_mover *m) {
    for (uint32_t i = 0; i < LISTS; i++) {
        list *l = &m->lists[i];
        if (atomic_load_explicit(&l->state, memory_order_acquire) != FREE) continue;
        atomic_store_explicit(&l->state, OPEN, memory_order_relaxed);
        return l;
    }
    return NULL;
}

static bool has_room(const list *l, uint32_t n) {
    return l->n + n <= DQI_LIST_MOVES && l->n_bursts < BURSTS && l->n_latches < LATCHES;
}

bool dqi_mover_room(dqi_mover *m, uint32_t n) {
    if (dqi_mover_lost(m)) return false;
    dqi_lock(&m->lock);
    if (m->open && !has_room(m->open, n)) launch(m);
    if (!m->open) m->open = free_list(m);
    bool is = m->claimed = m->open != NULL;
    dqi_unlock(&m->lock);
    return is;
}

static void hold(list *l, dq_burst *b, _Atomic uint32_t *latch) {
    if (b && (l->n_bursts == 0 || l->bursts[l->n_bursts - 1] != b)) {
        dqi_burst_hold(b);
        l->bursts[l->n_bursts++] = b;
    }
    if (latch && (l->n_latches == 0 || l->latches[l->n_latches - 1] != latch)) {
        atomic_fetch_add_explicit(latch, 1, memory_order_relaxed);
        l->latches[l->n_latches++] = latch;
    }
}

void dqi_mover_add(dqi_mover *m, const dqk_move *moves, uint32_t n, bool far, dq_burst *b,
                   _Atomic uint32_t *latch) {
    if (n == 0) return;
    dqi_lock(&m->lock);
    list *l = m->open;
    if (l->n == 0) {
        l->began_ns = dqi_mono_ns();
        atomic_store_explicit(&m->due_ns, l->began_ns + m->conf.delay_ns, memory_order_relaxed);
    }
    memcpy(&m->mem->moves[l->slot][l->n], moves, n * sizeof *moves);
    l->n += n;
    l->far = far;
    for (uint32_t i = 0; i < n; i++) {
        if (moves[i].len > l->longest) l->longest = moves[i].len;
        l->bytes += moves[i].len;
    }
    hold(l, b, latch);
    dqi_unlock(&m->lock);
}

void dqi_mover_push(dqi_mover *m, bool now) {
    dqi_lock(&m->lock);
    const list *l = m->open;
    m->claimed = false;
    if (l && l->n > 0 && (now || l->bytes >= m->conf.bytes)) launch(m);
    dqi_unlock(&m->lock);
}

// ---- ends -------------------------------------------------------------------------------------------------

static void push_old(dqi_mover *m, int64_t now) {
    if (!dqi_try_lock(&m->lock)) return; // the holder launches it
    const list *l = m->open;
    if (l && l->n > 0 && !m->claimed && now - l->began_ns >= m->conf.delay_ns) launch(m);
    dqi_unlock(&m->lock);
}

// Queries the driver: a kernel that trapped writes no ticket.
static void ask_driver(dqi_mover *m, const list *l, int64_t now) {
    if (now - l->began_ns < DOUBT_NS || now - m->asked_ns < DOUBT_NS) return;
    m->asked_ns = now;
    cu_result err = dqi_gpu_enter(m->conf.gpu);
    if (err == CU_SUCCESS) err = m->conf.gpu->cu->stream_query(l->stream);
    dqi_gpu_note(m->conf.gpu, err);
}

static bool has_ended(const dqi_mover *m, const list *l) {
    return atomic_load_explicit(&m->mem->tickets[l->slot][0], memory_order_acquire) == l->value;
}

int dqi_mover_poll(dqi_mover *m, int64_t mono_ns) {
    if (mono_ns >= atomic_load_explicit(&m->due_ns, memory_order_relaxed)) push_old(m, mono_ns);
    if (atomic_load_explicit(&m->flying, memory_order_relaxed) == 0) return 0;
    bool lost = dqi_mover_lost(m);
    int work = 0;
    int64_t oldest = 0;
    for (uint32_t i = 0; i < LISTS; i++) {
        list *l = &m->lists[i];
        list_state state = atomic_load_explicit(&l->state, memory_order_acquire);
        if (state == FLYING && !lost && !has_ended(m, l)) {
            ask_driver(m, l, mono_ns);
            if (oldest == 0 || l->began_ns < oldest) oldest = l->began_ns;
            continue;
        }
        if (state != FLYING) continue;
        if (m->conf.ran && !lost) dqi_histogram_note(m->conf.ran, (uint64_t)(dqi_mono_ns() - l->began_ns));
        let_go(l);
        atomic_fetch_sub_explicit(&m->flying, 1, memory_order_relaxed);
        atomic_store_explicit(&l->state, FREE, memory_order_release);
        work++;
    }
    atomic_store_explicit(&m->oldest_ns, oldest, memory_order_relaxed);
    return work;
}

void dqi_mover_nap(void) { nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL); }

int64_t dqi_mover_next(const dqi_mover *m) {
    int64_t due = atomic_load_explicit(&m->due_ns, memory_order_acquire);
    if (atomic_load_explicit(&m->flying, memory_order_relaxed) > 0) {
        int64_t oldest = atomic_load_explicit(&m->oldest_ns, memory_order_relaxed);
        return dqi_look_ns(oldest > 0 ? dqi_mono_ns() - oldest : 0);
    }
    if (due == INT64_MAX) return INT64_MAX;
    int64_t left = due - dqi_mono_ns();
    return left > 0 ? left : 0;
}

void dqi_mover_read(const dqi_mover *m, dqi_mover_counts *out) {
    out->launches = dqi_get(&m->launches);
    out->moves = dqi_get(&m->moves);
    out->bytes = dqi_get(&m->bytes);
}
