// array.c: arrays and streams. Arrays in a GPU's memory are read and written through pinned memory, in
// pieces.
#include "compute/compute.h"
#include "core/cgroup.h"
#include "core/err.h"
#include "core/region.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING (1u << 20) // maximum bytes per copy

// ---- streams ----------------------------------------------------------------------------------------------

int dq_stream_new(const char *what, int32_t gpu, dq_stream **out, dq_diag *diag) {
    dq_stream *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
    atomic_init(&s->refs, 1);
    snprintf(s->what, sizeof s->what, "%s", what);
    int err = gpu == DQ_HOST_GPU || (s->gpu = dqi_gpu_open(gpu, what, diag)) ? DQ_OK : DQ_NOT_SUPPORTED;
    if (err == DQ_OK && s->gpu) err = dqi_cuda_check(dqi_gpu_enter(s->gpu), what, "cuCtxSetCurrent", diag);
    if (err == DQ_OK && s->gpu)
        err = dqi_cuda_check(s->gpu->cu->stream_create(&s->stream, CU_STREAM_NON_BLOCKING), what,
                             "cuStreamCreate", diag);
    if (err == DQ_OK)
        *out = s;
    else
        dq_stream_free(s);
    return err;
}

dq_stream *dqi_stream_hold(dq_stream *s) {
    if (s) atomic_fetch_add(&s->refs, 1);
    return s;
}

void dq_stream_free(dq_stream *s) {
    if (!s || atomic_fetch_sub(&s->refs, 1) != 1) return;
    if (s->stream && dqi_gpu_enter(s->gpu) == CU_SUCCESS) s->gpu->cu->stream_destroy(s->stream);
    free(s);
}

int dq_stream_synchronize(dq_stream *s, dq_diag *diag) {
    if (!s->gpu) return DQ_OK;
    cu_result err = dqi_gpu_enter(s->gpu);
    if (err == CU_SUCCESS) err = s->gpu->cu->stream_synchronize(s->stream);
    dqi_gpu_note(s->gpu, err);
    return dqi_cuda_check(err, s->what, "cuStreamSynchronize", diag);
}

// ---- arrays -----------------------------------------------------------------------------------------------

static int staging(dq_array *a, dq_diag *diag) {
    size_t bytes = a->bytes < STAGING ? a->bytes : STAGING;
    if (a->staging) return DQ_OK;
    int err = dqi_cuda_check(dqi_gpu_enter(a->gpu), a->what, "cuCtxSetCurrent", diag);
    if (err == DQ_OK && !a->stream)
        err = dqi_cuda_check(a->gpu->cu->stream_create(&a->stream, CU_STREAM_NON_BLOCKING), a->what,
                             "cuStreamCreate", diag);
    if (err == DQ_OK) err = dqi_pinned_new(a->gpu, &bytes, &a->staging, a->what, diag);
    a->mapped = bytes;
    return err;
}

static int allocate(dq_array *a, dq_diag *diag) {
    int err = dqi_gpu_memory_new(a->gpu, a->bytes, "", &a->memory, a->what, diag);
    a->device = a->memory.at;
    if (err == DQ_OK) err = staging(a, diag);
    if (err != DQ_OK) return err;
    cu_result is = a->gpu->cu->memset_async(a->device, 0, a->bytes, a->stream);
    if (is == CU_SUCCESS) is = a->gpu->cu->stream_synchronize(a->stream);
    return dqi_cuda_check(is, a->what, "cuMemsetD8Async", diag);
}

int dq_array_new(const char *what, int32_t kind, int32_t gpu, uint64_t bytes, dq_array **out, dq_diag *diag) {
    dq_array *a = calloc(1, sizeof *a);
    if (!a) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
    atomic_init(&a->refs, 1);
    pthread_mutex_init(&a->lock, NULL);
    a->bytes = bytes;
    snprintf(a->what, sizeof a->what, "%s", what);
    int err = DQ_OK;
    if (gpu != DQ_HOST_GPU && kind != DQ_KIND_HOST && !(a->gpu = dqi_gpu_open(gpu, what, diag)))
        err = DQ_NOT_SUPPORTED;
    if (err == DQ_OK && a->gpu && kind == DQ_KIND_DEVICE) {
        err = allocate(a, diag);
    } else if (err == DQ_OK) {
        a->mapped = bytes;
        err = dqi_memory_check(what, bytes, bytes, "a smaller shape", diag);
        if (err == DQ_OK) err = dqi_shared_new(a->gpu, &a->mapped, &a->cpu, what, diag);
        a->device = (uintptr_t)a->cpu;
    }
    if (err == DQ_OK)
        *out = a;
    else
        dq_array_free(a);
    return err;
}

dq_array *dqi_array_hold(dq_array *a) {
    if (a) atomic_fetch_add(&a->refs, 1);
    return a;
}

void dq_array_free(dq_array *a) {
    if (!a || atomic_fetch_sub(&a->refs, 1) != 1) return;
    if (a->stream && dqi_gpu_enter(a->gpu) == CU_SUCCESS) a->gpu->cu->stream_destroy(a->stream);
    dqi_gpu_memory_free(&a->memory);
    if (a->staging)
        dqi_pinned_free(a->gpu, a->staging, a->mapped);
    else
        dqi_shared_free(a->gpu, a->cpu, a->mapped);
    free(a);
}

// Copies one piece of at most STAGING bytes.
static cu_result copy_part(const dq_array *a, uint64_t at, uint8_t *bytes, bool read, uint64_t n) {
    const dqi_cuda_driver *cu = a->gpu->cu;
    if (!read) memcpy(a->staging, bytes, n);
    cu_result err = read ? cu->copy_to_host(a->staging, a->device + at, n, a->stream)
                         : cu->copy_to_device(a->device + at, a->staging, n, a->stream);
    if (err == CU_SUCCESS) err = cu->stream_synchronize(a->stream);
    if (err == CU_SUCCESS && read) memcpy(bytes, a->staging, n);
    return err;
}

static int copy(dq_array *a, uint64_t at, uint8_t *bytes, bool read, uint64_t n, dq_diag *diag) {
    if (at > a->bytes || n > a->bytes - at)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%s: bytes %llu to %llu are not in it", a->what,
                        (unsigned long long)at, (unsigned long long)(at + n));
    if (a->cpu) {
        memcpy(read ? bytes : a->cpu + at, read ? a->cpu + at : bytes, n);
        return DQ_OK;
    }
    pthread_mutex_lock(&a->lock);
    cu_result err = dqi_gpu_enter(a->gpu);
    while (n > 0 && err == CU_SUCCESS) {
        uint64_t part = n < a->mapped ? n : a->mapped;
        err = copy_part(a, at, bytes, read, part);
        at += part, bytes += part, n -= part;
    }
    pthread_mutex_unlock(&a->lock);
    dqi_gpu_note(a->gpu, err);
    return dqi_cuda_check(err, a->what, read ? "cuMemcpyDtoHAsync" : "cuMemcpyHtoDAsync", diag);
}

int dq_array_read(dq_array *a, uint64_t at, void *to, uint64_t n, dq_diag *diag) {
    return copy(a, at, to, true, n, diag);
}

int dq_array_write(dq_array *a, uint64_t at, const void *from, uint64_t n, dq_diag *diag) {
    return copy(a, at, (uint8_t *)(uintptr_t)from, false, n, diag);
}
