// kernel_run.c: execution of a persistent kernel concurrently with the proxy: in a worker process (worker.h),
// or, on a GPU with other work of the program, as a single launch. It ends by itself; an abort ends its
// waits. A worker that dies or shows no sign of life is killed: the thread that watches it breaks its rings
// immediately, and the next check of the kernel replaces it.
#include "compute/arguments.h"
#include "compute/launch.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/thread.h"
#include "cuda/resident.h"
#include "gpunetio/host/worker.h"
#include "pipeline/op.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_BLOCKS 64  // a thread each
#define LOOK_MS     100 // between two checks for a sign of life

// State of the worker. DIED: may be replaced.
enum { RUNS, DIED, ENDED };

struct dqi_gn_run {
    dq_gn *gn;
    dq_kernel *kernel;
    dq_op *op;
    dq_kernel_arg args[DQ_MAX_KERNEL_ARGS]; // arrays are referenced
    uint32_t n_args;
    bool rests; // has ended, and counts as no user of the GPU
    // for a kernel in the program's process
    dq_launcher *launcher;
    dqi_resident resident; // with `launcher`
    // for a kernel in its own process
    dqi_worker_kit kit;
    dqi_worker worker;
    pthread_t thread; // watches the worker
    bool watched;     // the thread exists
    _Atomic int state;
    _Atomic bool killed; // by the program
    char why[256];       // how it died
};

static uint64_t blocks_of(const dq_grid *g) { return (uint64_t)g->grid[0] * g->grid[1] * g->grid[2]; }
static uint64_t threads_of(const dq_grid *g) { return (uint64_t)g->block[0] * g->block[1] * g->block[2]; }

// ---- checks -----------------------------------------------------------------------------------------------

// Returns how many blocks can run concurrently: a persistent kernel requires this of all its blocks.
static int most_blocks(const dq_kernel *k, const dq_grid *g, uint64_t *most, dq_diag *diag) {
    int each = 0;
    *most = HOST_BLOCKS;
    if (!k->gpu) return DQ_OK;
    cu_result err = dqi_gpu_enter(k->gpu);
    if (err == CU_SUCCESS) err = k->gpu->cu->occupancy(&each, k->fn, (int)threads_of(g), 0);
    *most = (uint64_t)each * k->gpu->info.multiprocessors;
    return dqi_cuda_check(err, k->what, "cuOccupancyMaxActiveBlocksPerMultiprocessor", diag);
}

int dq_gn_check_grid(const char *what, const dq_kernel *k, const dq_grid *grid, dq_diag *diag) {
    uint64_t most, blocks = blocks_of(grid), threads = threads_of(grid);
    if (blocks == 0 || threads == 0 || threads > 1024)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "%s: a grid of at least a block, and blocks of 1 to 1024 threads", what);
    int err = most_blocks(k, grid, &most, diag);
    if (err != DQ_OK || blocks <= most) return err;
    return dqi_fail(
        diag, DQ_INVALID_PARAMETER,
        "%s: %llu blocks of %llu threads, and %s runs %llu of them at once: a block that waits for its "
        "turn never gets it, as the others don't end",
        what, (unsigned long long)blocks, (unsigned long long)threads, k->gpu ? "the GPU" : "the host",
        (unsigned long long)most);
}

static int check(const dq_gn *g, const dq_kernel *k, const dq_grid *grid, uint32_t n, dq_diag *diag) {
    if (g->run) return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: already started", g->what);
    if (k->gpu != g->gpu)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: its context is of another GPU", g->what);
    if (n > DQ_MAX_KERNEL_ARGS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: %u arguments, and there may be %d", g->what, n,
                        DQ_MAX_KERNEL_ARGS);
    return dq_gn_check_grid(g->what, k, grid, diag);
}

static int no_memory(const dq_gn *g, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", g->what);
}

// ---- watching ---------------------------------------------------------------------------------------------

// Waits until the worker answers, ends, or is killed. Returns true if it was killed for lack of a sign of
// life. Counts checks, not time: while the program is stopped it does not check.
static bool hear(dqi_gn_run *r) {
    struct pollfd p = {.fd = r->worker.socket, .events = POLLIN};
    uint64_t beat = 0, most = r->gn->conf.silence_ns / 1000000, quiet = 0;
    bool silent = false, killed = false;
    for (int n; !killed && (n = poll(&p, 1, LOOK_MS)) <= 0;) {
        if (n < 0) continue; // a signal
        uint64_t now = gn_load(&r->gn->kernel->beat);
        quiet = now == beat ? quiet + LOOK_MS : 0;
        beat = now;
        silent = quiet >= most;
        killed = silent || atomic_load(&r->killed);
    }
    if (killed) kill(r->worker.pid, SIGKILL);
    return silent;
}

static void say_why(dqi_gn_run *r, bool silent, const char *text) {
    if (silent)
        snprintf(r->why, sizeof r->why,
                 "its worker was killed: it did not respond for %.1f s; hint: a kernel that computes for "
                 "long calls gn_beat, or k:start{ timeout = \"60s\" }",
                 (double)r->gn->conf.silence_ns / 1e9);
    else if (atomic_load(&r->killed))
        snprintf(r->why, sizeof r->why,
                 "its worker was killed: it did not end on request; hint: end it where gn_recv, gn_send or "
                 "gn_wait return GN_ABORTED");
    else
        snprintf(r->why, sizeof r->why, "%s", text);
}

// Breaks the rings before waiting for the process: one with a GPU takes some time to end.
static void *watch(void *arg) {
    dqi_gn_run *r = arg;
    dqi_worker_word word = {0};
    bool silent = hear(r);
    bool ended, replied = dqi_worker_hear(&r->worker, 0, &word, &ended);
    bool died = !replied || (r->gn->gpu && word.is != DQ_OK); // a GPU context is unusable after an error
    if (died) dqi_gn_break(r->gn);
    dqi_worker_end(&r->worker, replied ? NULL : &word);
    if (died) say_why(r, silent, word.text);
    if (!died && word.is == DQ_OK) dq_op_ok(r->op, 1, 0);
    if (!died && word.is != DQ_OK) dq_op_lost(r->op, 1, word.text);
    atomic_store(&r->state, died ? DIED : ENDED);
    return NULL;
}

static void join(dqi_gn_run *r) {
    if (r->watched) pthread_join(r->thread, NULL);
    r->watched = false;
}

static int start_worker(dqi_gn_run *r, dq_diag *diag) {
    int err = dqi_gn_worker_start(r->gn->what, &r->kit, &r->worker, diag);
    if (err != DQ_OK) return err;
    atomic_store(&r->state, RUNS);
    err = dqi_thread_start(&r->thread, NULL, watch, r);
    if (err == DQ_OK) {
        r->watched = true;
        return DQ_OK;
    }
    dqi_worker_end(&r->worker, NULL);
    return dqi_fail(diag, err, "%s: a thread: %s", r->gn->what, dq_err_name(err));
}

// Replaces a dead worker, or detaches its rings.
static void replace(dqi_gn_run *r) {
    dq_gn *g = r->gn;
    dq_diag diag = {{0}};
    join(r);
    if (g->restarted < g->conf.restarts && !atomic_load(&g->aborted)) {
        dqi_gn_renew(g);
        if (start_worker(r, &diag) == DQ_OK) {
            g->restarted++;
            dqi_note(g->session, "%s was restarted: %s", g->what, r->why);
            return;
        }
        snprintf(r->why, sizeof r->why, "%.255s", diag.text);
    }
    dq_gn_detach(g);
    dq_op_lost(r->op, 1, r->why);
    atomic_store(&r->state, ENDED);
}

// ---- lifecycle --------------------------------------------------------------------------------------------

bool dqi_gn_run_rest(dqi_gn_run *r) {
    if (r->rests) return true; // the kernel may have been started again
    if (r->launcher && !dqi_resident_end(r->gn->gpu, &r->resident)) return false;
    dqi_kernel_count(r->kernel, false);
    r->rests = true;
    return true;
}

void dqi_gn_run_free(dqi_gn_run *r) {
    if (!r || !dqi_gn_run_rest(r)) return;
    atomic_store(&r->killed, true);
    join(r);
    if (r->op && atomic_load(&r->state) == DIED) dq_op_lost(r->op, 1, r->why);
    dq_launcher_free(r->launcher);
    for (uint32_t k = 0; k < r->n_args; k++)
        if (r->args[k].kind == DQ_ARG_ARRAY) dq_array_free(r->args[k].array);
    dq_kernel_free(r->kernel);
    dqi_worker_unpack(&r->kit);
    free(r);
}

static int copy_args(dqi_gn_run *r, const dq_kernel_arg *args, uint32_t n, dq_diag *diag) {
    int err = dqi_arguments_check(r->gn->gpu, r->gn->what, args, n, NULL, diag);
    for (uint32_t k = 0; k < n && err == DQ_OK; k++) {
        if (args[k].b || args[k].kind > DQ_ARG_ARRAY)
            return dqi_fail(diag, DQ_INVALID_PARAMETER,
                            "%s: argument %u: a persistent kernel takes numbers, arrays and \"context\"",
                            r->gn->what, k + 1);
        r->args[r->n_args++] = args[k];
        if (args[k].kind == DQ_ARG_ARRAY) dqi_array_hold(args[k].array);
        if (args[k].kind == DQ_ARG_NUMBER && args[k].value == DQ_GN_PORT)
            r->args[k].value = (uintptr_t)r->gn->block;
    }
    return err;
}

// Launches the kernel on its GPU in the program's process.
static int launch(dqi_gn_run *r, const dq_grid *grid, dq_op **op, dq_diag *diag) {
    dqi_gpu *g = r->gn->gpu;
    dq_stream *stream;
    int err = dq_stream_new(r->gn->what, g->info.number, &stream, diag);
    if (err != DQ_OK) return err;
    err = dq_launcher_new(r->gn->what, r->kernel, grid, stream, &r->launcher, diag);
    if (err == DQ_OK) {
        r->resident.stream = stream->stream;
        snprintf(r->resident.what, sizeof r->resident.what, "%s", r->gn->what);
        dqi_resident_begin(g, &r->resident);
        err = dq_launch(r->launcher, r->args, r->n_args, op, diag);
        dqi_resident_launched(&r->resident);
    }
    dq_stream_free(stream);
    return err;
}

static int start(dqi_gn_run *r, const dq_grid *grid, dq_op **op, dq_diag *diag) {
    if (!r->gn->apart) return launch(r, grid, op, diag);
    int err = dqi_worker_pack(r->gn, r->kernel, grid, r->args, r->n_args, &r->kit, diag);
    if (err != DQ_OK) return err;
    if (!(r->op = dqi_op_new(1, NULL, 0))) return no_memory(r->gn, diag);
    err = start_worker(r, diag);
    if (err == DQ_OK) {
        *op = r->op;
        return DQ_OK;
    }
    dq_op_lost(r->op, 1, diag->text);
    dq_op_free(r->op);
    return err;
}

int dq_gn_start(dq_gn *g, dq_kernel *k, const dq_grid *grid, const dq_kernel_arg *args, uint32_t n,
                dq_op **op, dq_diag *diag) {
    int err = check(g, k, grid, n, diag);
    if (err != DQ_OK) return err;
    dqi_gn_run *r = calloc(1, sizeof *r);
    if (!r) return no_memory(g, diag);
    r->gn = g;
    r->kernel = dqi_kernel_hold(k);
    err = copy_args(r, args, n, diag);
    if (err == DQ_OK) err = start(r, grid, op, diag);
    if (err == DQ_OK)
        g->run = r;
    else
        dqi_gn_run_free(r);
    return err;
}

bool dq_gn_ended(dq_gn *g) {
    dqi_gn_run *r = g->run;
    uint32_t ended;
    if (!r) return true;
    if (r->launcher) return dq_launcher_look(r->launcher, &ended) == 0;
    pthread_mutex_lock(&g->lock);
    if (atomic_load(&r->state) == DIED) replace(r);
    bool is = atomic_load(&r->state) == ENDED;
    pthread_mutex_unlock(&g->lock);
    return is;
}

bool dq_gn_kill(dq_gn *g) {
    if (!g->run || g->run->launcher) return false;
    dq_gn_abort(g);
    atomic_store(&g->run->killed, true);
    return true;
}
