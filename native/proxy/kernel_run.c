// kernel_run.c: a persistent kernel runs beside the proxy: on a GPU launched once, or on the host in a
// worker, a process of its own (worker.h). It ends by itself; an abort ends its waits. A worker that dies, or
// is not heard of, is ended: its rings are broken at once, by the thread that watches it, and the next look
// at the kernel replaces it.
#include "compute/arguments.h"
#include "compute/launch.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/region.h"
#include "core/thread.h"
#include "cuda/pinned.h"
#include "pipeline/op.h"
#include "proxy/worker.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_BLOCKS 64  // a thread each
#define LOOK_MS     100 // between two looks whether the kernel is heard of

// What has become of the worker. DIED: it may be replaced.
enum { RUNS, DIED, ENDED };

struct dqi_gn_run {
    dq_gn *gn;
    dq_kernel *kernel;
    dq_op *op;
    dq_kernel_arg args[DQ_MAX_KERNEL_ARGS]; // arrays are held
    uint32_t n_args;
    dq_launcher *launcher; // on a GPU
    // on the host
    dqi_worker_plan plan;
    uint8_t *scratch;
    dqi_gn_worker worker;
    pthread_t thread; // that watches it
    bool watched;     // there is one
    _Atomic int state;
    _Atomic bool killed; // by the program
    char why[256];       // how it died
};

static uint64_t blocks_of(const dq_grid *g) { return (uint64_t)g->grid[0] * g->grid[1] * g->grid[2]; }
static uint64_t threads_of(const dq_grid *g) { return (uint64_t)g->block[0] * g->block[1] * g->block[2]; }

// ---- checks -----------------------------------------------------------------------------------------------

// Blocks that run at the same time: all of a persistent kernel's have to.
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
    if (g->run) return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: it was started before", g->what);
    if (k->gpu != g->gpu)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: its port is of another GPU", g->what);
    if (n > DQ_MAX_KERNEL_ARGS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: %u arguments, and there may be %d", g->what, n,
                        DQ_MAX_KERNEL_ARGS);
    return dq_gn_check_grid(g->what, k, grid, diag);
}

// ---- the worker's plan ------------------------------------------------------------------------------------

static void add_map(dqi_worker_plan *p, const void *at, uint64_t bytes, uint64_t file, uint64_t offset) {
    for (uint32_t k = 0; k < p->n_maps; k++)
        if (p->maps[k].at == (uintptr_t)at) return; // an array that is two arguments
    p->maps[p->n_maps++] = (dqi_worker_map){(uintptr_t)at, bytes, offset, file};
}

static void add_region(dqi_worker_plan *p, const dq_session *s, const dq_region *r) {
    uint64_t page = r->huge ? DQI_HUGE_PAGE : dqi_page_size();
    add_map(p, s->base + r->offset, dqi_round_up(dqi_region_bytes(r), page),
            r->huge ? DQI_FILE_HUGE : DQI_FILE_SMALL, r->huge ? r->offset - s->huge_at : r->offset);
}

static void add_shared(dqi_worker_plan *p, const uint8_t *at, uint64_t bytes) {
    add_map(p, at, bytes, DQI_FILE_SHARED, (uintptr_t)at);
}

static int no_memory(const dq_gn *g, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", g->what);
}

static int make_plan(dqi_gn_run *r, const dq_grid *grid, dq_diag *diag) {
    dqi_worker_plan *p = &r->plan;
    if (dqi_shared_file() < 0)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: a process of its own can't share memory with it: hint: ulimit -f holds for "
                        "memory too: raise it",
                        r->gn->what);
    uint64_t bytes = dqi_arguments_bytes(r->args, r->n_args, NULL);
    r->scratch = calloc(1, bytes ? bytes : 1);
    if (!r->scratch) return no_memory(r->gn, diag);
    p->grid = *grid;
    p->n_args = r->n_args;
    dqi_arguments_fill(r->args, r->n_args, NULL, r->scratch, p->values);
    add_shared(p, r->gn->block, r->gn->bytes);
    for (uint32_t k = 0; k < r->gn->n_regions; k++)
        if (r->gn->bound[k]) add_region(p, r->gn->session, r->gn->bound[k]);
    for (uint32_t k = 0; k < r->n_args; k++)
        if (r->args[k].kind == DQ_ARG_ARRAY) add_shared(p, r->args[k].array->cpu, r->args[k].array->mapped);
    return DQ_OK;
}

// ---- watching ---------------------------------------------------------------------------------------------

// Waits until the worker has something to say, or is no more. True: it was killed, as its kernel was not
// heard of. Looks are counted, not the time between them: a program that stood still has not listened.
static bool hear(dqi_gn_run *r) {
    struct pollfd p = {.fd = r->worker.socket, .events = POLLIN};
    uint64_t beat = 0, most = r->gn->conf.silence_ns / 1000000, quiet = 0;
    bool silent = false;
    for (int n; (n = poll(&p, 1, LOOK_MS)) <= 0;) {
        if (n < 0) continue; // a signal
        uint64_t now = gn_load(&r->gn->kernel->beat);
        quiet = now == beat ? quiet + LOOK_MS : 0;
        beat = now;
        silent = quiet >= most;
        if (silent || atomic_load(&r->killed)) kill(r->worker.pid, SIGKILL);
    }
    return silent;
}

static void *watch(void *arg) {
    dqi_gn_run *r = arg;
    dqi_worker_word word = {0};
    bool silent = hear(r);
    if (dqi_gn_worker_end(&r->worker, &word)) {
        if (word.is == DQ_OK)
            dq_op_ok(r->op, 1, 0);
        else
            dq_op_lost(r->op, 1, word.text);
        atomic_store(&r->state, ENDED);
        return NULL;
    }
    dqi_gn_break(r->gn);
    if (silent)
        snprintf(r->why, sizeof r->why,
                 "its worker was killed: it was not heard of for %.1f s; hint: a kernel that computes for "
                 "long calls gn_beat, or k:start{ timeout = \"60s\" }",
                 (double)r->gn->conf.silence_ns / 1e9);
    else if (atomic_load(&r->killed))
        snprintf(r->why, sizeof r->why,
                 "its worker was killed: it did not end when it was told to; hint: it ends where gn_recv, "
                 "gn_send or gn_wait say GN_ABORTED");
    else
        snprintf(r->why, sizeof r->why, "%s", word.text);
    atomic_store(&r->state, DIED);
    return NULL;
}

static void join(dqi_gn_run *r) {
    if (r->watched) pthread_join(r->thread, NULL);
    r->watched = false;
}

static int start_worker(dqi_gn_run *r, dq_diag *diag) {
    const dq_session *s = r->gn->session;
    const int files[DQI_FILES] = {r->kernel->file, s->fds[0], s->fds[1], dqi_shared_file()};
    int err = dqi_gn_worker_start(r->gn->what, &r->plan, files, &r->worker, diag);
    if (err != DQ_OK) return err;
    atomic_store(&r->state, RUNS);
    err = dqi_thread_start(&r->thread, NULL, watch, r);
    if (err == DQ_OK) {
        r->watched = true;
        return DQ_OK;
    }
    dqi_worker_word word = {0};
    dqi_gn_worker_end(&r->worker, &word);
    return dqi_fail(diag, err, "%s: a thread: %s", r->gn->what, dq_err_name(err));
}

// The worker died: it is replaced, or its rings are closed for good.
static void replace(dqi_gn_run *r) {
    dq_gn *g = r->gn;
    dq_diag diag = {{0}};
    join(r);
    if (g->restarted < g->conf.restarts && !atomic_load(&g->aborted)) {
        dqi_gn_renew(g);
        if (start_worker(r, &diag) == DQ_OK) {
            g->restarted++;
            dqi_note(g->session, "%s was started anew, as %s", g->what, r->why);
            return;
        }
        snprintf(r->why, sizeof r->why, "%.255s", diag.text);
    }
    dq_gn_detach(g);
    dq_op_lost(r->op, 1, r->why);
    atomic_store(&r->state, ENDED);
}

// ---- life -------------------------------------------------------------------------------------------------

void dqi_gn_run_free(dqi_gn_run *r) {
    if (!r) return;
    atomic_store(&r->killed, true);
    join(r);
    if (r->op && atomic_load(&r->state) == DIED) dq_op_lost(r->op, 1, r->why);
    dq_launcher_free(r->launcher);
    for (uint32_t k = 0; k < r->n_args; k++)
        if (r->args[k].kind == DQ_ARG_ARRAY) dq_array_free(r->args[k].array);
    dq_kernel_free(r->kernel);
    free(r->scratch);
    free(r);
}

static int copy_args(dqi_gn_run *r, const dq_kernel_arg *args, uint32_t n, dq_diag *diag) {
    int err = dqi_arguments_check(r->gn->gpu, r->gn->what, args, n, NULL, diag);
    for (uint32_t k = 0; k < n && err == DQ_OK; k++) {
        if (args[k].b || args[k].kind > DQ_ARG_ARRAY)
            return dqi_fail(diag, DQ_INVALID_PARAMETER,
                            "%s: argument %u: a persistent kernel takes numbers, arrays and \"port\"",
                            r->gn->what, k + 1);
        r->args[r->n_args++] = args[k];
        if (args[k].kind == DQ_ARG_ARRAY) dqi_array_hold(args[k].array);
        if (args[k].kind == DQ_ARG_NUMBER && args[k].value == DQ_GN_PORT)
            r->args[k].value = (uintptr_t)r->gn->block;
    }
    return err;
}

static int start(dqi_gn_run *r, const dq_grid *grid, dq_op **op, dq_diag *diag) {
    if (r->gn->gpu) {
        int err = dq_launcher_new(r->gn->what, r->kernel, grid, NULL, &r->launcher, diag);
        return err == DQ_OK ? dq_launch(r->launcher, r->args, r->n_args, op, diag) : err;
    }
    int err = make_plan(r, grid, diag);
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
