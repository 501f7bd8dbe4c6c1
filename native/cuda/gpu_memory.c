// gpu_memory.c: allocations of GPU memory that other processes and devices may be given.
#include "cuda/gpu_memory.h"
#include "core/err.h"
#include "core/region.h"

static cu_allocation_prop prop_of(const dqi_gpu *g) {
    cu_allocation_prop p = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, g->device}};
    if (g->info.exports) p.handle_types = CU_HANDLE_DESCRIPTOR;
    p.flags.gpudirect_rdma = g->info.gpudirect != 0;
    return p;
}

static int no_room(const dqi_gpu *g, const char *what, uint64_t bytes, const char *hint, dq_diag *diag) {
    size_t free = 0, total = 0;
    g->cu->mem_info(&free, &total);
    return dqi_fail(
        diag, DQ_NO_SPACE_AVAILABLE, "%s: it takes %llu MiB, and GPU %d (%s) has %zu MiB of %zu free%s", what,
        (unsigned long long)(bytes >> 20), g->info.number, g->info.name, free >> 20, total >> 20, hint);
}

// Maps the allocation to an address.
static int map(dqi_gpu_memory *m, const char *what, dq_diag *diag) {
    const dqi_cuda_driver *cu = m->gpu->cu;
    cu_access_desc access = {.location = prop_of(m->gpu).location, .flags = CU_ACCESS_READ_WRITE};
    cu_ptr at = 0;
    cu_result err = cu->mem_reserve(&at, m->bytes, 0, 0, 0);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, what, "cuMemAddressReserve", diag);
    err = cu->mem_map(at, m->bytes, 0, m->handle, 0);
    if (err != CU_SUCCESS) {
        cu->mem_unreserve(at, m->bytes);
        return dqi_cuda_check(err, what, "cuMemMap", diag);
    }
    m->at = at;
    return dqi_cuda_check(cu->mem_access(at, m->bytes, &access, 1), what, "cuMemSetAccess", diag);
}

int dqi_gpu_memory_new(dqi_gpu *g, uint64_t bytes, const char *hint, dqi_gpu_memory *out, const char *what,
                       dq_diag *diag) {
    cu_allocation_prop prop = prop_of(g);
    size_t step = 0;
    *out = (dqi_gpu_memory){.gpu = g};
    cu_result err = dqi_gpu_enter(g);
    if (err == CU_SUCCESS) err = g->cu->mem_granularity(&step, &prop, CU_GRANULARITY_LEAST);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, what, "cuMemGetAllocationGranularity", diag);
    bytes = dqi_round_up(bytes ? bytes : 1, step);
    err = g->cu->mem_create(&out->handle, bytes, &prop, 0);
    if (err == CU_ERROR_OUT_OF_MEMORY) return no_room(g, what, bytes, hint, diag);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, what, "cuMemCreate", diag);
    out->bytes = bytes;
    return map(out, what, diag);
}

int dqi_gpu_memory_import(dqi_gpu *g, int fd, uint64_t bytes, dqi_gpu_memory *out, const char *what,
                          dq_diag *diag) {
    cu_allocation_prop prop = prop_of(g);
    size_t step = 1;
    *out = (dqi_gpu_memory){.gpu = g};
    cu_result err = dqi_gpu_enter(g);
    if (err == CU_SUCCESS) err = g->cu->mem_granularity(&step, &prop, CU_GRANULARITY_LEAST);
    bytes = dqi_round_up(bytes, step);
    if (err == CU_SUCCESS) err = g->cu->mem_import(&out->handle, (void *)(uintptr_t)fd, CU_HANDLE_DESCRIPTOR);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, what, "cuMemImportFromShareableHandle", diag);
    out->bytes = bytes;
    return map(out, what, diag);
}

int dqi_gpu_memory_share(const dqi_gpu_memory *m, dqi_gpu *with, const char *what, dq_diag *diag) {
    cu_access_desc access = {.location = prop_of(with).location, .flags = CU_ACCESS_READ_WRITE};
    int can = 0;
    cu_result err = dqi_gpu_enter(with);
    if (err == CU_SUCCESS) err = with->cu->device_reaches(&can, with->device, m->gpu->device);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, what, "cuDeviceCanAccessPeer", diag);
    if (!can)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: GPU %d cannot access the memory of GPU %d", what,
                        with->info.number, m->gpu->info.number);
    return dqi_cuda_check(with->cu->mem_access(m->at, m->bytes, &access, 1), what, "cuMemSetAccess", diag);
}

int dqi_gpu_memory_export(const dqi_gpu_memory *m, int *fd, const char *what, dq_diag *diag) {
    if (!m || !m->gpu->info.exports)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: it has no memory of a GPU that can be exported", what);
    dqi_gpu_enter(m->gpu);
    return dqi_cuda_check(m->gpu->cu->mem_export(fd, m->handle, CU_HANDLE_DESCRIPTOR, 0), what,
                          "cuMemExportToShareableHandle", diag);
}

void dqi_gpu_memory_free(dqi_gpu_memory *m) {
    if (m->bytes == 0) return;
    const dqi_cuda_driver *cu = m->gpu->cu;
    dqi_gpu_enter(m->gpu);
    if (m->at) {
        cu->mem_unmap(m->at, m->bytes);
        cu->mem_unreserve(m->at, m->bytes);
    }
    cu->mem_release(m->handle);
    *m = (dqi_gpu_memory){0};
}
