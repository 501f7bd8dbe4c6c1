// resident.c: persistent kernels in the program's own context, and driver calls that would wait for their
// end.
#include "cuda/resident.h"
#include "core/err.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct dqi_deferred {
    struct dqi_deferred *next;
    dqi_gpu_free_fn *fn;
    void *at;
    size_t bytes;
} deferred;

// Held during calls that a launch must not overtake.
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

// Returns a persistent kernel that runs, or is about to; NULL: none does.
static const dqi_resident *running(dqi_gpu *g) {
    for (const dqi_resident *r = g->residents; r; r = r->next)
        if (!r->launched || g->cu->stream_query(r->stream) == CU_ERROR_NOT_READY) return r;
    return NULL;
}

// Frees what was deferred, once no persistent kernel runs.
static void free_deferred(dqi_gpu *g) {
    while (g->deferred && !running(g) && dqi_gpu_enter(g) == CU_SUCCESS) {
        deferred *d = g->deferred;
        g->deferred = d->next;
        d->fn(g, d->at, d->bytes);
        free(d);
    }
}

// ---- kernels ----------------------------------------------------------------------------------------------

void dqi_resident_begin(dqi_gpu *g, dqi_resident *r) {
    pthread_mutex_lock(&lock);
    r->next = g->residents;
    r->launched = false;
    g->residents = r;
    pthread_mutex_unlock(&lock);
}

void dqi_resident_launched(dqi_resident *r) {
    pthread_mutex_lock(&lock);
    r->launched = true;
    pthread_mutex_unlock(&lock);
}

bool dqi_resident_end(dqi_gpu *g, dqi_resident *r) {
    if (!dqi_gpu_idle(g, r->stream)) return false;
    pthread_mutex_lock(&lock);
    dqi_resident **at = &g->residents;
    while (*at && *at != r)
        at = &(*at)->next;
    if (*at) *at = r->next;
    free_deferred(g);
    pthread_mutex_unlock(&lock);
    return true;
}

// ---- loading ----------------------------------------------------------------------------------------------

// Called with the lock.
static int load(dqi_gpu *g, const char *ptx, const char *what, cu_module *out, dq_diag *diag) {
    char log[256] = "", who[400];
    int options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
    void *values[] = {log, (void *)(uintptr_t)sizeof log};
    const dqi_resident *r = running(g);
    if (r)
        return dqi_fail(diag, DQ_RESOURCE_IN_USE,
                        "%s: it can't be loaded while %s runs in the program's process on GPU %d, as the "
                        "driver waits for the end of that kernel; hint: create it before that one is started",
                        what, r->what, g->info.number);
    cu_result err = dqi_gpu_enter(g);
    if (err == CU_SUCCESS) err = g->cu->module_load(out, ptx, 2, options, values);
    snprintf(who, sizeof who, "%.100s: GPU %d%s%.256s", what, g->info.number, *log ? ": " : "", log);
    if (err == CU_ERROR_UNSUPPORTED_PTX)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "%s: its PTX is newer than the driver, which is of CUDA %d.%d; hint: name an older NVRTC in "
            "DAQIRI_NVRTC, or install a newer driver",
            who, g->cu->driver_version / 1000, g->cu->driver_version % 1000 / 10);
    return dqi_cuda_check(err, who, "cuModuleLoadDataEx", diag);
}

int dqi_gpu_load(dqi_gpu *g, const char *ptx, const char *what, cu_module *out, dq_diag *diag) {
    pthread_mutex_lock(&lock);
    free_deferred(g);
    int err = load(g, ptx, what, out, diag);
    pthread_mutex_unlock(&lock);
    return err;
}

static cu_result find_loaded(dqi_gpu *g, cu_module module, const char *name, cu_function *out) {
    cu_result (*load_now)(cu_function) = (cu_result(*)(cu_function))dqi_cuda_symbol("cuFuncLoad");
    cu_result err = g->cu->module_function(out, module, name);
    return err == CU_SUCCESS && load_now ? load_now(*out) : err;
}

// A kernel with an array of %d bytes in local memory. The driver keeps as much for all threads once it has
// run.
#define RESERVE                                                                                              \
    ".version 7.5\n.target sm_80\n.address_size 64\n.visible .entry daqiri_reserve()\n{\n"                   \
    ".local .align 8 .b8 a[%d];\n.reg .b64 %%at, %%base;\n.reg .b32 %%n;\nmov.u32 %%n, %%tid.x;\n"           \
    "cvt.u64.u32 %%at, %%n;\nmov.u64 %%base, a;\nadd.u64 %%at, %%at, %%base;\n"                              \
    "cvta.local.u64 %%at, %%at;\nst.volatile.u8 [%%at], %%n;\nret;\n}\n"

// Loads that kernel and runs one thread. Called with the lock.
static cu_result run_reserve(dqi_gpu *g, const char *ptx) {
    cu_module module;
    cu_function fn;
    cu_stream stream;
    cu_result err = g->cu->module_load(&module, ptx, 0, NULL, NULL);
    if (err != CU_SUCCESS) return err;
    err = g->cu->stream_create(&stream, CU_STREAM_NON_BLOCKING);
    if (err == CU_SUCCESS) {
        err = find_loaded(g, module, "daqiri_reserve", &fn);
        if (err == CU_SUCCESS) err = g->cu->launch(fn, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
        if (err == CU_SUCCESS) err = g->cu->stream_synchronize(stream);
        g->cu->stream_destroy(stream);
    }
    g->cu->module_unload(module);
    return err;
}

static cu_result reserve_local(dqi_gpu *g, int bytes) {
    char ptx[600];
    cu_result err = CU_SUCCESS;
    snprintf(ptx, sizeof ptx, RESERVE, bytes);
    pthread_mutex_lock(&lock);
    if (bytes > g->local_bytes && !running(g)) {
        err = run_reserve(g, ptx);
        if (err == CU_SUCCESS) g->local_bytes = bytes;
    }
    pthread_mutex_unlock(&lock);
    return err;
}

cu_result dqi_gpu_function(dqi_gpu *g, cu_module module, const char *name, cu_function *out) {
    int bytes = 0;
    cu_result err = find_loaded(g, module, name, out);
    if (err == CU_SUCCESS) err = g->cu->function_attribute(&bytes, CU_FN_LOCAL_BYTES, *out);
    return err == CU_SUCCESS ? reserve_local(g, bytes) : err;
}

// ---- freeing ----------------------------------------------------------------------------------------------

void dqi_gpu_free(dqi_gpu *g, dqi_gpu_free_fn *fn, void *at, size_t bytes) {
    if (!g) {
        fn(NULL, at, bytes);
        return;
    }
    pthread_mutex_lock(&lock);
    free_deferred(g);
    deferred *d = running(g) ? malloc(sizeof *d) : NULL;
    if (d) {
        *d = (deferred){.next = g->deferred, .fn = fn, .at = at, .bytes = bytes};
        g->deferred = d;
    } else if (dqi_gpu_enter(g) == CU_SUCCESS) {
        fn(g, at, bytes);
    }
    pthread_mutex_unlock(&lock);
}

static void free_memory(dqi_gpu *g, void *at, size_t bytes) {
    (void)bytes;
    g->cu->mem_free((cu_ptr)(uintptr_t)at);
}

void dqi_gpu_free_memory(dqi_gpu *g, cu_ptr at) {
    if (at) dqi_gpu_free(g, free_memory, (void *)(uintptr_t)at, 0);
}
