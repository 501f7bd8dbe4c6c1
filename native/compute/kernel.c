// kernel.c: compiled kernels: a module on a GPU, a library on the host, or a kernel of one of NVIDIA's
// libraries.
#include "compute/math.h"
#include "core/err.h"
#include "cuda/resident.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static dq_kernel *new_kernel(const char *what) {
    dq_kernel *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    atomic_init(&k->refs, 1);
    k->file = -1;
    snprintf(k->what, sizeof k->what, "%s", what);
    return k;
}

static int no_memory(const char *what, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
}

static int find(dq_kernel *k, const char *name, dq_diag *diag) {
    const dqi_cuda_driver *cu = k->gpu->cu;
    cu_result err = dqi_gpu_function(k->gpu, k->module, name, &k->fn);
    if (err == CU_ERROR_NOT_FOUND)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: its PTX has no entry %.80s", k->what, name);
    if (err == CU_SUCCESS) err = cu->function_attribute(&k->most_threads, CU_FN_MAX_THREADS, k->fn);
    return dqi_cuda_check(err, k->what, "cuModuleGetFunction", diag);
}

int dq_kernel_from_ptx(const char *what, int32_t gpu, const char *ptx, const char *name, dq_kernel **out,
                       dq_diag *diag) {
    dq_kernel *k = new_kernel(what);
    if (!k) return no_memory(what, diag);
    int err = (k->gpu = dqi_gpu_open(gpu, what, diag)) ? DQ_OK : DQ_NOT_SUPPORTED;
    if (err == DQ_OK && (!(k->ptx = strdup(ptx)) || !(k->entry = strdup(name)))) err = no_memory(what, diag);
    dqi_kernel_count(k, true);
    if (err == DQ_OK) err = dqi_gpu_load(k->gpu, ptx, k->what, &k->module, diag);
    if (err == DQ_OK) err = find(k, name, diag);
    if (err == DQ_OK)
        *out = k;
    else
        dq_kernel_free(k);
    return err;
}

int dq_kernel_from_library(const char *what, const char *path, dq_kernel **out, dq_diag *diag) {
    dq_kernel *k = new_kernel(what);
    if (!k) return no_memory(what, diag);
    k->file = open(path, O_RDONLY | O_CLOEXEC);
    k->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    k->host = k->library ? dlsym(k->library, "daqiri_kernel") : NULL;
    if (k->host) {
        *out = k;
        return DQ_OK;
    }
    int err = dqi_fail(diag, DQ_GENERIC_FAILURE, "%s: what was made of its source can't be loaded: %s", what,
                       dlerror());
    dq_kernel_free(k);
    return err;
}

int dq_kernel_from_math(const char *what, uint32_t number, const uint32_t *shape, dq_stream *stream,
                        dq_kernel **out, dq_diag *diag) {
    if (!stream || !stream->gpu)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: %s runs on GPUs alone", what,
                        dq_math_at(number)->library);
    dq_kernel *k = new_kernel(what);
    if (!k) return no_memory(what, diag);
    k->gpu = stream->gpu;
    dqi_kernel_count(k, true);
    k->stream = dqi_stream_hold(stream);
    k->most_threads = 1;
    int err = dqi_cuda_check(dqi_gpu_enter(k->gpu), what, "cuCtxSetCurrent", diag);
    if (err == DQ_OK) err = dqi_math_new(number, shape, stream->stream, what, &k->math, diag);
    if (err == DQ_OK)
        *out = k;
    else
        dq_kernel_free(k);
    return err;
}

cu_result dqi_kernel_start(dq_kernel *k, const dq_grid *g, cu_stream stream, void **args) {
    if (!k->math)
        return k->gpu->cu->launch(k->fn, g->grid[0], g->grid[1], g->grid[2], g->block[0], g->block[1],
                                  g->block[2], 0, stream, args, NULL);
    return dqi_math_run(k->math, args);
}

const char *dqi_kernel_call(const dq_kernel *k) {
    return k->math ? dqi_math_call(k->math) : "cuLaunchKernel";
}

const char *dq_kernel_types(const dq_kernel *k) { return k->host ? k->host->types : NULL; }

dq_kernel *dqi_kernel_hold(dq_kernel *k) {
    if (k) atomic_fetch_add(&k->refs, 1);
    return k;
}

void dqi_kernel_count(dq_kernel *k, bool on) {
    if (k && k->gpu && atomic_exchange(&k->counted, on) != on) dqi_gpu_count(k->gpu, on ? 1 : -1);
}

static void unload(dqi_gpu *g, void *at, size_t bytes) {
    (void)bytes;
    g->cu->module_unload(at);
}

void dq_kernel_free(dq_kernel *k) {
    if (!k || atomic_fetch_sub(&k->refs, 1) != 1) return;
    if (k->module) dqi_gpu_free(k->gpu, unload, k->module, 0);
    if (k->math && dqi_gpu_enter(k->gpu) == CU_SUCCESS) dqi_math_free(k->math);
    dqi_kernel_count(k, false);
    free(k->ptx);
    free(k->entry);
    dq_stream_free(k->stream);
    if (k->library) dlclose(k->library);
    if (k->file >= 0) close(k->file);
    free(k);
}
