// kernel_run.c: a persistent kernel runs beside the proxy: on a GPU launched once, or on the host, a thread
// for each block. It ends by itself; an abort ends its waits.
#include "compute/arguments.h"
#include "compute/compute.h"
#include "compute/launch.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/thread.h"
#include "pipeline/op.h"
#include "proxy/port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HOST_BLOCKS 64 // a thread each

typedef struct block_thread {
    dqi_gn_run *run;
    pthread_t thread;
    uint32_t number;
} block_thread;

struct dqi_gn_run {
    dq_gn *gn;
    dq_kernel *kernel;
    dq_grid grid;
    dq_op *op;
    dq_kernel_arg args[DQ_MAX_KERNEL_ARGS]; // arrays are held
    uint32_t n_args;
    dq_launcher *launcher; // on a GPU
    // on the host
    uint64_t values[DQ_MAX_KERNEL_ARGS];
    void *at[DQ_MAX_KERNEL_ARGS + 1];
    uint8_t *scratch;
    block_thread *threads;
    uint32_t n_threads;
    _Atomic uint32_t left; // blocks that run
    _Atomic(const char *) fault;
    bool joined;
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

// ---- on the host ------------------------------------------------------------------------------------------

static void *run_block(void *arg) {
    block_thread *b = arg;
    dqi_gn_run *r = b->run;
    char name[16];
    snprintf(name, sizeof name, "%u", b->number);
    dqi_thread_name("block", name);
    const char *why =
        r->kernel->host->run_block((void *const *)r->at, r->grid.grid, r->grid.block, b->number);
    if (why) atomic_store(&r->fault, why);
    if (atomic_fetch_sub(&r->left, 1) != 1) return NULL;
    if ((why = atomic_load(&r->fault)) != NULL)
        dq_op_lost(r->op, 1, why);
    else
        dq_op_ok(r->op, 1, 0);
    return NULL;
}

static int no_memory(const dq_gn *g, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", g->what);
}

static int start_here(dqi_gn_run *r, dq_diag *diag) {
    uint64_t bytes = dqi_arguments_bytes(r->args, r->n_args, NULL);
    uint32_t n = (uint32_t)blocks_of(&r->grid);
    r->scratch = calloc(1, bytes ? bytes : 1);
    r->threads = calloc(n, sizeof *r->threads);
    if (!r->scratch || !r->threads) return no_memory(r->gn, diag);
    dqi_arguments_fill(r->args, r->n_args, NULL, r->scratch, r->values);
    for (uint32_t k = 0; k < r->n_args; k++)
        r->at[k] = &r->values[k];
    atomic_store(&r->left, n);
    for (uint32_t k = 0; k < n; k++) {
        r->threads[k] = (block_thread){.run = r, .number = k};
        int err = dqi_thread_start(&r->threads[k].thread, NULL, run_block, &r->threads[k]);
        if (err != DQ_OK) { // those that run end soon, and the caller waits for them
            dq_gn_abort(r->gn);
            atomic_fetch_sub(&r->left, n - k);
            return dqi_fail(diag, err, "%s: a thread for block %u: %s", r->gn->what, k, dq_err_name(err));
        }
        r->n_threads++;
    }
    return DQ_OK;
}

static void join(dqi_gn_run *r) {
    for (uint32_t k = 0; !r->joined && k < r->n_threads; k++)
        pthread_join(r->threads[k].thread, NULL);
    r->joined = true;
}

// ---- life -------------------------------------------------------------------------------------------------

void dqi_gn_run_free(dqi_gn_run *r) {
    if (!r) return;
    join(r);
    dq_launcher_free(r->launcher);
    for (uint32_t k = 0; k < r->n_args; k++)
        if (r->args[k].kind == DQ_ARG_ARRAY) dq_array_free(r->args[k].array);
    dq_kernel_free(r->kernel);
    free(r->threads);
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

static int start(dqi_gn_run *r, const dq_kernel_arg *args, uint32_t n, dq_op **op, dq_diag *diag) {
    int err = copy_args(r, args, n, diag);
    if (err == DQ_OK && r->gn->gpu) {
        err = dq_launcher_new(r->gn->what, r->kernel, &r->grid, NULL, &r->launcher, diag);
        return err == DQ_OK ? dq_launch(r->launcher, r->args, r->n_args, op, diag) : err;
    }
    if (err == DQ_OK && !(r->op = dqi_op_new(1, NULL, 0))) err = no_memory(r->gn, diag);
    if (err != DQ_OK) return err;
    err = start_here(r, diag);
    if (err == DQ_OK) {
        *op = r->op;
        return DQ_OK;
    }
    while (atomic_load(&r->left) > 0)
        dqi_yield();
    if (r->n_threads == 0) dq_op_lost(r->op, 1, "it was not started");
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
    r->grid = *grid;
    err = start(r, args, n, op, diag);
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
    return atomic_load(&r->left) == 0;
}
