// launch.c: kernel launches and their completion.
//
// On a GPU, each launch is followed in its stream by a write of its ticket to pinned memory, ordered after
// all writes of the kernel. So a stage's poller or a waiting task detects completion by one load, without a
// thread or a driver call, for kernels that know nothing of tickets. On the host the kernel has ended when
// the call returns (launch_host.c). Launches of one launcher complete in order.
#include "compute/launch.h"
#include "compute/arguments.h"
#include "compute/launch_host.h"
#include "compute/math.h"
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/memory.h"
#include "cuda/mover.h"
#include "pipeline/op.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SLOTS    64
#define SCRATCH  4096               // scratch bytes of a launch without additional memory
#define DOUBT_NS INT64_C(100000000) // after this time the driver is asked whether the kernel failed

// References of a launch until its completion.
typedef struct holds {
    dq_op *op;
    dq_burst *bursts[DQ_MAX_KERNEL_ARGS];
    dq_array *arrays[DQ_MAX_KERNEL_ARGS];
    uint32_t n_bursts, n_arrays;
} holds;

typedef struct slot {
    holds held;
    int64_t began_ns;
    uint8_t *more; // additional scratch memory, if SCRATCH is too small
    size_t more_bytes;
} slot;

// Memory shared by host and GPU.
typedef struct shared {
    _Atomic uint64_t tickets[SLOTS][8];
    uint8_t scratch[SLOTS][SCRATCH];
} shared;

struct dq_launcher {
    dq_kernel *kernel;
    dqi_gpu *gpu;
    dq_grid grid;
    dq_stream *stream;
    shared *mem;
    size_t mem_bytes;
    dqi_spin lock; // protects the following fields
    slot slots[SLOTS];
    _Atomic uint64_t head, tail; // launches completed, and started
    int64_t asked_ns;
    dqi_histogram *ran; // NULL: not recorded
    char failure[256];
    dqi_launch_host host; // for launches on the host
};

// ---- lifecycle --------------------------------------------------------------------------------------------

static int check_grid(const dq_kernel *k, const dq_grid *g, dq_diag *diag) {
    uint64_t threads = (uint64_t)g->block[0] * g->block[1] * g->block[2];
    int most = k->gpu ? k->most_threads : 1024;
    if (threads == 0 || (uint64_t)g->grid[0] * g->grid[1] * g->grid[2] == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: grid and block are at least 1", k->what);
    if (threads > (uint64_t)most)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: a block of %llu threads, and it takes %d at most",
                        k->what, (unsigned long long)threads, most);
    return DQ_OK;
}

static int make_shared(dq_launcher *l, const char *what, dq_diag *diag) {
    if (!l->gpu->info.writes)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "%s: streams of GPU %d (%s) cannot write 64 bits to memory, which reports the end of a kernel",
            what, l->gpu->info.number, l->gpu->info.name);
    l->mem_bytes = sizeof *l->mem;
    uint8_t *p = NULL;
    int err = dqi_pinned_new(l->gpu, &l->mem_bytes, &p, what, diag);
    l->mem = (shared *)(void *)p;
    return err;
}

int dq_launcher_new(const char *what, dq_kernel *k, const dq_grid *grid, dq_stream *stream, dq_launcher **out,
                    dq_diag *diag) {
    int err = check_grid(k, grid, diag);
    if (err == DQ_OK && stream && stream->gpu != k->gpu)
        err = dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: the stream is of another GPU, or of the host", what);
    if (err == DQ_OK && k->stream && stream != k->stream)
        err = dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: it runs in the stream that it was made with", what);
    if (err != DQ_OK) return err;
    dq_launcher *l = calloc(1, sizeof *l);
    if (!l) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
    l->kernel = dqi_kernel_hold(k);
    l->gpu = k->gpu;
    l->grid = *grid;
    dqi_launch_host_init(&l->host);
    l->stream = dqi_stream_hold(stream);
    if (!stream) err = dq_stream_new(what, l->gpu ? l->gpu->info.number : DQ_HOST_GPU, &l->stream, diag);
    if (err == DQ_OK && l->gpu) err = make_shared(l, what, diag);
    if (err == DQ_OK)
        *out = l;
    else
        dq_launcher_free(l);
    return err;
}

void dq_launcher_free(dq_launcher *l) {
    if (!l || atomic_load(&l->head) != atomic_load(&l->tail)) return; // pending launches may use all of it
    if (l->gpu && l->stream && !dqi_gpu_idle(l->gpu, l->stream->stream)) return;
    for (uint32_t k = 0; k < SLOTS; k++)
        dqi_pinned_free(l->gpu, l->slots[k].more, l->slots[k].more_bytes);
    dqi_pinned_free(l->gpu, (uint8_t *)(void *)l->mem, l->mem_bytes);
    dqi_launch_host_free(&l->host);
    dq_stream_free(l->stream);
    dq_kernel_free(l->kernel);
    free(l);
}

// ---- references of a launch -------------------------------------------------------------------------------

static void hold(holds *h, const dq_kernel_arg *args, uint32_t n, dq_op *op) {
    *h = (holds){.op = op};
    for (uint32_t k = 0; k < n; k++) {
        if (args[k].kind == DQ_ARG_ARRAY) h->arrays[h->n_arrays++] = dqi_array_hold(args[k].array);
        if (args[k].b) {
            dqi_burst_hold(args[k].b);
            h->bursts[h->n_bursts++] = args[k].b;
        }
    }
}

static void let_go(holds *h, const char *failed) {
    for (uint32_t k = 0; k < h->n_bursts; k++)
        dq_burst_unref(h->bursts[k]);
    for (uint32_t k = 0; k < h->n_arrays; k++)
        dq_array_free(h->arrays[k]);
    if (failed)
        dq_op_lost(h->op, 1, failed);
    else
        dq_op_ok(h->op, 1, 0);
}

static void note_failure(dq_launcher *l, const char *words) {
    dqi_lock(&l->lock);
    if (!l->failure[0]) snprintf(l->failure, sizeof l->failure, "%s", words);
    dqi_unlock(&l->lock);
}

// ---- on a GPU ---------------------------------------------------------------------------------------------

// Returns scratch memory for a launch, or NULL with the reason in diag.
static uint8_t *scratch_of(dq_launcher *l, uint32_t k, uint64_t bytes, dq_diag *diag) {
    slot *s = &l->slots[k];
    if (bytes <= SCRATCH) return l->mem->scratch[k];
    if (bytes <= s->more_bytes) return s->more;
    dqi_pinned_free(l->gpu, s->more, s->more_bytes);
    s->more = NULL;
    s->more_bytes = bytes;
    if (dqi_pinned_new(l->gpu, &s->more_bytes, &s->more, l->kernel->what, diag) != DQ_OK) s->more_bytes = 0;
    return s->more;
}

static cu_result start(dq_launcher *l, uint64_t number, uint64_t *values, uint32_t n) {
    const dqi_cuda_driver *cu = l->gpu->cu;
    void *args[DQ_MAX_KERNEL_ARGS + 1];
    for (uint32_t k = 0; k < n; k++)
        args[k] = &values[k];
    cu_result err = dqi_kernel_start(l->kernel, &l->grid, l->stream->stream, args);
    if (err != CU_SUCCESS) return err;
    err = cu->write_value(l->stream->stream, (uintptr_t)l->mem->tickets[number % SLOTS], number + 1, 0);
    if (err != CU_SUCCESS) dqi_gpu_lose(l->gpu, err); // the kernel's end would not be detected
    return CU_SUCCESS;
}

static int launch_failed(dq_launcher *l, cu_result err, dq_diag *diag) {
    char words[200];
    dqi_gpu_note(l->gpu, err);
    dqi_cuda_words(err, words, sizeof words);
    return dqi_fail(diag, DQ_GENERIC_FAILURE, "%s: GPU %d (%s): %s: %s", l->kernel->what, l->gpu->info.number,
                    l->gpu->info.name, dqi_kernel_call(l->kernel), words);
}

// Called with the lock held.
static int launch_there(dq_launcher *l, const dq_kernel_arg *args, uint32_t n, dq_burst *b, dq_op *op,
                        dq_diag *diag) {
    uint64_t number = atomic_load_explicit(&l->tail, memory_order_relaxed), values[DQ_MAX_KERNEL_ARGS];
    uint32_t k = (uint32_t)(number % SLOTS);
    if (number - atomic_load_explicit(&l->head, memory_order_acquire) >= SLOTS)
        return dqi_fail(diag, DQ_NOT_READY, "%s: %d launches are under way", l->kernel->what, SLOTS);
    uint8_t *scratch = scratch_of(l, k, dqi_arguments_bytes(args, n, b), diag);
    if (!scratch) return DQ_NO_SPACE_AVAILABLE;
    dqi_arguments_fill(args, n, b, scratch, values);
    l->slots[k].began_ns = dqi_mono_ns();
    cu_result err = dqi_gpu_enter(l->gpu);
    if (err == CU_SUCCESS) err = start(l, number, values, n);
    if (err != CU_SUCCESS) return launch_failed(l, err, diag);
    hold(&l->slots[k].held, args, n, op);
    atomic_store_explicit(&l->tail, number + 1, memory_order_release);
    return DQ_OK;
}

// Makes the burst's session accessible to the GPU, from the first launch on.
static int reach(const dq_launcher *l, const dq_burst *b, dq_diag *diag) {
    dq_session *s = b->session;
    pthread_mutex_lock(&s->control);
    bool is = dqi_cuda_use(s, l->gpu->info.number, l->kernel->what, diag) != NULL;
    pthread_mutex_unlock(&s->control);
    return is ? DQ_OK : DQ_NOT_SUPPORTED;
}

// ---- on the host ------------------------------------------------------------------------------------------

static int run_here(dq_launcher *l, const dq_kernel_arg *args, uint32_t n, dq_burst *b, dq_op *op,
                    dq_diag *diag) {
    int err = dqi_launch_host_run(&l->host, l->kernel, &l->grid, args, n, b, diag);
    if (err != DQ_OK) return err;
    atomic_fetch_add(&l->head, 1);
    atomic_fetch_add(&l->tail, 1);
    dq_op_ok(op, 1, 0);
    return DQ_OK;
}

void dq_launcher_stop(dq_launcher *l, bool stop) { atomic_store(&l->host.stopped, stop); }

void dq_launcher_rest(dq_launcher *l) {
    if (!l->gpu) dqi_launch_host_rest(&l->host);
}

// ---- launching --------------------------------------------------------------------------------------------

int dqi_launch(dq_launcher *l, const dq_kernel_arg *args, uint32_t n, dq_burst *b, dq_op *op, dq_diag *diag) {
    char words[256];
    int err = dqi_arguments_check(l->gpu, l->kernel->what, args, n, b, diag);
    if (err == DQ_OK && l->kernel->math)
        err = dqi_math_check(l->kernel->math, l->kernel->what, args, n, b, diag);
    if (err != DQ_OK) return err;
    if (!l->gpu) return run_here(l, args, n, b, op, diag);
    if (dqi_gpu_lost(l->gpu, words, sizeof words))
        return dqi_fail(diag, DQ_GENERIC_FAILURE, "%s: %s", l->kernel->what, words);
    dqi_lock(&l->lock);
    err = launch_there(l, args, n, b, op, diag);
    dqi_unlock(&l->lock);
    return err;
}

int dq_launch(dq_launcher *l, const dq_kernel_arg *args, uint32_t n, dq_op **out, dq_diag *diag) {
    dq_op *op = NULL;
    int err = DQ_OK;
    for (uint32_t k = 0; k < n && l->gpu && err == DQ_OK; k++)
        if (args[k].b) err = reach(l, args[k].b, diag);
    if (err == DQ_OK && out && !(op = dqi_op_new(1, NULL, 0)))
        err = dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", l->kernel->what);
    if (err == DQ_OK) err = dqi_launch(l, args, n, NULL, op, diag);
    if (err == DQ_OK && out) {
        *out = op;
    } else if (op) {
        dq_op_lost(op, 1, "it was not launched");
        dq_op_free(op);
    }
    return err;
}

// ---- completion -------------------------------------------------------------------------------------------

// Detects a kernel that trapped, which writes no ticket, by a driver call. Under the lock.
static void ask_driver(dq_launcher *l, const slot *s) {
    int64_t now = dqi_mono_ns();
    if (now - s->began_ns < DOUBT_NS || now - l->asked_ns < DOUBT_NS) return;
    l->asked_ns = now;
    cu_result err = dqi_gpu_enter(l->gpu);
    if (err == CU_SUCCESS) err = l->gpu->cu->stream_query(l->stream->stream);
    dqi_gpu_note(l->gpu, err);
}

// Takes the references of the oldest launch if it has completed or its GPU is lost; false: none.
static bool take_ended(dq_launcher *l, holds *out, bool *lost) {
    dqi_lock(&l->lock);
    uint64_t number = atomic_load_explicit(&l->head, memory_order_relaxed);
    slot *s = &l->slots[number % SLOTS];
    bool is = number != atomic_load_explicit(&l->tail, memory_order_relaxed);
    if (is) {
        bool ended =
            atomic_load_explicit(&l->mem->tickets[number % SLOTS][0], memory_order_acquire) == number + 1;
        if (!ended) ask_driver(l, s);
        *lost = !ended && dqi_launcher_lost(l);
        is = ended || *lost;
    }
    if (is) {
        *out = s->held;
        if (l->ran && !*lost) dqi_histogram_note(l->ran, (uint64_t)(dqi_mono_ns() - s->began_ns));
        atomic_store_explicit(&l->head, number + 1, memory_order_release);
    }
    dqi_unlock(&l->lock);
    return is;
}

uint32_t dq_launcher_look(dq_launcher *l, uint32_t *ended) {
    holds held;
    bool lost;
    *ended = 0;
    while (atomic_load_explicit(&l->head, memory_order_relaxed) !=
               atomic_load_explicit(&l->tail, memory_order_relaxed) &&
           take_ended(l, &held, &lost)) {
        char words[256];
        if (lost) {
            dqi_gpu_lost(l->gpu, words, sizeof words);
            note_failure(l, words);
        }
        let_go(&held, lost ? words : NULL);
        (*ended)++;
    }
    return (uint32_t)(atomic_load(&l->tail) - atomic_load(&l->head));
}

uint32_t dq_launcher_holds(dq_launcher *l, const dq_session *s) {
    uint32_t n = 0;
    dqi_lock(&l->lock);
    for (uint64_t k = atomic_load(&l->head); k != atomic_load(&l->tail); k++) {
        const holds *h = &l->slots[k % SLOTS].held;
        bool is = false;
        for (uint32_t i = 0; i < h->n_bursts; i++)
            is = is || h->bursts[i]->session == s;
        n += is;
    }
    dqi_unlock(&l->lock);
    return n;
}

void dq_launcher_failure(const dq_launcher *l, char *buf, size_t len) {
    dqi_spin *lock = (dqi_spin *)(uintptr_t)&l->lock;
    dqi_lock(lock);
    snprintf(buf, len, "%s", l->failure);
    dqi_unlock(lock);
}

uint64_t dqi_launcher_ended(dq_launcher *l) { return atomic_load_explicit(&l->head, memory_order_acquire); }

int64_t dqi_launcher_next(const dq_launcher *l) {
    uint64_t head = atomic_load_explicit(&l->head, memory_order_relaxed);
    if (head == atomic_load_explicit(&l->tail, memory_order_acquire)) return INT64_MAX;
    return dqi_look_ns(dqi_mono_ns() - l->slots[head % SLOTS].began_ns);
}

bool dqi_launcher_room(dq_launcher *l) {
    return !l->gpu || atomic_load_explicit(&l->tail, memory_order_relaxed) -
                              atomic_load_explicit(&l->head, memory_order_relaxed) <
                          SLOTS;
}

bool dqi_launcher_lost(const dq_launcher *l) { return l->gpu && dqi_gpu_lost(l->gpu, NULL, 0); }

dqi_gpu *dqi_launcher_gpu(const dq_launcher *l) { return l->gpu; }

void dqi_launcher_time(dq_launcher *l, dqi_histogram *ran) { l->ran = ran; }
