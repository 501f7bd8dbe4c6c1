// launch_host.c: launches on the host, in the program. The first launch starts the worker; a kernel that
// ended it causes a restart.
#include "compute/launch_host.h"
#include "compute/arguments.h"
#include "core/burst.h"
#include "core/err.h"
#include "cuda/pinned.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_MS  100 // between two checks for a stop request
#define PATIENCE 50  // checks after the session has ended receiving

void dqi_launch_host_init(dqi_launch_host *h) { pthread_mutex_init(&h->lock, NULL); }

static void end_worker(dqi_launch_host *h, dqi_worker_word *word) {
    if (h->is) dqi_worker_end(&h->worker, word);
    h->is = false;
}

void dqi_launch_host_rest(dqi_launch_host *h) {
    pthread_mutex_lock(&h->lock);
    end_worker(h, NULL);
    pthread_mutex_unlock(&h->lock);
}

void dqi_launch_host_free(dqi_launch_host *h) {
    end_worker(h, NULL);
    dqi_shared_free(NULL, h->scratch, h->scratch_bytes);
    pthread_mutex_destroy(&h->lock);
}

// ---- mapped memory ----------------------------------------------------------------------------------------

static void add(dqi_job *j, int *files, dqi_worker_map m, int file) {
    for (uint32_t k = 0; k < j->n_maps; k++)
        if (j->maps[k].at == m.at) return;
    m.file = j->n_maps;
    files[j->n_maps] = file;
    j->maps[j->n_maps++] = m;
}

static void add_burst(dqi_job *j, int *files, const dq_burst *b) {
    const dq_session *s = b->session;
    for (uint32_t k = 0; b->n > 0 && k < b->nseg; k++) {
        const dq_region *r = dqi_off_region(s, b->off[k][0]);
        uint64_t at;
        if (r) add(j, files, dqi_worker_region(s, r, 0), dqi_region_file(r, &at));
    }
}

static void add_all(dqi_launch_host *h, const dq_kernel_arg *args, uint32_t n, const dq_burst *b, dqi_job *j,
                    int *files) {
    int shared = dqi_shared_file();
    if (h->scratch) add(j, files, dqi_worker_shared(h->scratch, h->scratch_bytes, 0), shared);
    for (uint32_t k = 0; k < n; k++) {
        const dq_array *a = args[k].array;
        const dq_burst *of = args[k].b ? args[k].b : b;
        if (args[k].kind == DQ_ARG_ARRAY)
            add(j, files, dqi_worker_shared(a->cpu, a->mapped, 0), shared);
        else if (args[k].kind == DQ_ARG_DATA || args[k].kind == DQ_ARG_BURST)
            add_burst(j, files, of);
    }
}

static int grow_scratch(dqi_launch_host *h, const char *what, uint64_t bytes, dq_diag *diag) {
    if (bytes <= h->scratch_bytes) return DQ_OK;
    dqi_shared_free(NULL, h->scratch, h->scratch_bytes);
    h->scratch = NULL;
    h->scratch_bytes = 2 * bytes; // each growth requires new mappings in the worker
    int err = dqi_shared_new(NULL, &h->scratch_bytes, &h->scratch, what, diag);
    if (err != DQ_OK) h->scratch_bytes = 0;
    return err;
}

// ---- worker -----------------------------------------------------------------------------------------------

static int start(dqi_launch_host *h, const dq_kernel *k, const dq_grid *grid, dq_diag *diag) {
    int file = k->file;
    const dqi_worker_message first = {(void *)(uintptr_t)grid, sizeof *grid, &file, 1};
    if (h->is) return DQ_OK;
    int err = dqi_worker_spawn(k->what, DQI_LAUNCHES_NAME, &first, &h->worker, diag);
    h->is = err == DQ_OK;
    h->job.n_maps = 0;
    return err;
}

static bool same(const dqi_launch_host *h, const dqi_job *j, const int *files) {
    return j->n_maps == h->job.n_maps && memcmp(j->maps, h->job.maps, j->n_maps * sizeof *j->maps) == 0 &&
           memcmp(files, h->files, j->n_maps * sizeof *files) == 0;
}

static bool send_job(dqi_launch_host *h, const dqi_job *j, int *files) {
    dqi_worker_message m = {&h->job, offsetof(dqi_job, maps), files, 0};
    bool before = same(h, j, files);
    uint32_t n = j->n_maps;
    if (!before) {
        m.bytes += n * sizeof *j->maps;
        m.n_files = n;
        memcpy(h->files, files, n * sizeof *files);
    }
    memcpy(&h->job, j, offsetof(dqi_job, maps) + n * sizeof *j->maps);
    if (before) h->job.n_maps = DQI_AS_BEFORE;
    bool sent = dqi_worker_send(&h->worker, &m);
    h->job.n_maps = n;
    return sent;
}

// Waits for the kernel's end. False: its worker must be killed, or has ended.
static bool wait_end(dqi_launch_host *h, const dq_session *s, dqi_worker_word *word, bool *stopped) {
    bool ended = false;
    for (int looks = 0; !ended; looks += s && !dqi_receives(s)) {
        if (dqi_worker_hear(&h->worker, LOOK_MS, word, &ended)) return true;
        *stopped = !ended && (atomic_load(&h->stopped) || looks >= PATIENCE);
        if (*stopped) break;
    }
    return false;
}

static int run_once(dqi_launch_host *h, const dq_kernel *k, const dqi_job *j, int *files, const dq_session *s,
                    dq_diag *diag) {
    dqi_worker_word word = {0};
    bool stopped = false;
    bool replied = send_job(h, j, files) && wait_end(h, s, &word, &stopped);
    int err = replied ? word.is : DQ_GENERIC_FAILURE;
    if (!replied || (err != DQ_OK && err != DQ_GENERIC_FAILURE)) // it rejected the job, and has ended
        end_worker(h, replied ? NULL : &word);
    if (err == DQ_OK) return DQ_OK;
    return dqi_fail(diag, err, "%s: on the host: %s", k->what,
                    stopped ? "it was killed, as it did not end" : word.text);
}

static int run_locked(dqi_launch_host *h, const dq_kernel *k, const dq_grid *grid, const dq_kernel_arg *args,
                      uint32_t n, const dq_burst *b, dq_diag *diag) {
    dqi_job j = {.n_args = n};
    int files[DQI_LAUNCH_MAPS];
    if (dqi_shared_file() < 0)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: its process can't share memory with the program: hint: ulimit -f holds for "
                        "memory too: raise it",
                        k->what);
    int err = grow_scratch(h, k->what, dqi_arguments_bytes(args, n, b), diag);
    if (err != DQ_OK) return err;
    dqi_arguments_fill(args, n, b, h->scratch, j.values);
    add_all(h, args, n, b, &j, files);
    for (int tries = 0; tries < DQI_WORKER_TRIES; tries++) {
        err = start(h, k, grid, diag);
        if (err == DQ_OK) err = run_once(h, k, &j, files, b ? b->session : NULL, diag);
        if (err != DQ_ESYS - EADDRINUSE) break;
    }
    return err;
}

int dqi_launch_host_run(dqi_launch_host *h, const dq_kernel *k, const dq_grid *grid,
                        const dq_kernel_arg *args, uint32_t n, const dq_burst *b, dq_diag *diag) {
    pthread_mutex_lock(&h->lock);
    int err = run_locked(h, k, grid, args, n, b, diag);
    pthread_mutex_unlock(&h->lock);
    return err;
}
