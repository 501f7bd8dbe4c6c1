// memory.c: regions in GPUs' memory, and the arena registered with the driver.
//
// A region gets an allocation of its own, by the driver's virtual memory management: that is what can be
// exported as a descriptor, to another process or, by DMA-BUF, to a network device. The arena is registered
// as it is mapped, its small pages and its huge ones apart; registered memory has one address for the CPU and
// for all GPUs, so that base + offset is good for both.
#include "cuda/memory.h"
#include "core/err.h"
#include "core/region.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANGES 2

// A region's memory on its GPU.
typedef struct allocation {
    dqi_gpu *gpu;
    cu_allocation handle;
    cu_ptr at;
    size_t bytes;
    const dqi_cufile *files; // that knows it; NULL: none
} allocation;

struct dqi_cuda_memory {
    dqi_gpu *first; // of the session: it made the registration
    void *ranges[MAX_RANGES];
    uint32_t n_ranges;
    allocation regions[DQI_MAX_REGIONS]; // of region k; bytes 0: none
};

// ---- the arena --------------------------------------------------------------------------------------------

static int reach(dqi_cuda_memory *m, uint8_t *at, uint64_t bytes, const char *what, dq_diag *diag) {
    if (bytes == 0) return DQ_OK;
    const dqi_cuda_driver *cu = m->first->cu;
    cu_ptr device = 0;
    char who[160];
    snprintf(who, sizeof who, "%.80s: GPU %d: %llu MiB of host memory", what, m->first->info.number,
             (unsigned long long)(bytes >> 20));
    cu_result err = cu->host_register(at, bytes, CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, who, "cuMemHostRegister", diag);
    m->ranges[m->n_ranges++] = at;
    err = cu->host_address(&device, at, 0);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, who, "cuMemHostGetDevicePointer", diag);
    return device == (cu_ptr)(uintptr_t)at
               ? DQ_OK
               : dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: it has another address for the GPU than for the CPU",
                          who);
}

dqi_gpu *dqi_cuda_use(dq_session *s, int32_t number, const char *what, dq_diag *diag) {
    if (number < 0) number = s->cuda && s->cuda->first ? s->cuda->first->info.number : 0;
    dqi_gpu *g = dqi_gpu_open(number, what, diag);
    if (!g) return NULL;
    if (!s->cuda && !(s->cuda = calloc(1, sizeof *s->cuda))) {
        dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
        return NULL;
    }
    if (s->cuda->first) return g;
    s->cuda->first = g;
    int err = dqi_cuda_check(dqi_gpu_enter(g), what, "cuCtxSetCurrent", diag);
    if (err == DQ_OK) err = reach(s->cuda, s->base, s->huge_at, what, diag);
    if (err == DQ_OK) err = reach(s->cuda, s->base + s->huge_at, s->arena_bytes - s->huge_at, what, diag);
    return err == DQ_OK ? g : NULL;
}

// ---- regions ----------------------------------------------------------------------------------------------

static cu_allocation_prop prop_of(const dqi_gpu *g) {
    cu_allocation_prop p = {.type = CU_ALLOCATION_PINNED, .location = {CU_LOCATION_DEVICE, g->device}};
    if (g->info.exports) p.handle_types = CU_HANDLE_DESCRIPTOR;
    p.flags.gpudirect_rdma = g->info.gpudirect != 0;
    return p;
}

static int no_room(const dqi_gpu *g, const char *what, uint64_t bytes, dq_diag *diag) {
    size_t free = 0, total = 0;
    g->cu->mem_info(&free, &total);
    return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE,
                    "%s: it takes %llu MiB, and GPU %d (%s) has %zu MiB of %zu free; hint: lower num_bufs or "
                    "buf_size",
                    what, (unsigned long long)(bytes >> 20), g->info.number, g->info.name, free >> 20,
                    total >> 20);
}

static void give_back(allocation *a) {
    if (a->bytes == 0) return;
    const dqi_cuda_driver *cu = a->gpu->cu;
    dqi_gpu_enter(a->gpu);
    if (a->files) a->files->memory_deregister((void *)(uintptr_t)a->at);
    if (a->at) {
        cu->mem_unmap(a->at, a->bytes);
        cu->mem_unreserve(a->at, a->bytes);
    }
    if (a->handle) cu->mem_release(a->handle);
    *a = (allocation){0};
}

static int allocate(dqi_gpu *g, uint64_t bytes, allocation *a, const char *what, dq_diag *diag) {
    const dqi_cuda_driver *cu = g->cu;
    cu_allocation_prop prop = prop_of(g);
    cu_access_desc access = {.location = prop.location, .flags = CU_ACCESS_READ_WRITE};
    size_t step = 0;
    cu_result err = dqi_gpu_enter(g);
    if (err == CU_SUCCESS) err = cu->mem_granularity(&step, &prop, CU_GRANULARITY_LEAST);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, what, "cuMemGetAllocationGranularity", diag);
    *a = (allocation){.gpu = g, .bytes = (bytes + step - 1) / step * step};
    err = cu->mem_create(&a->handle, a->bytes, &prop, 0);
    if (err == CU_ERROR_OUT_OF_MEMORY) return no_room(g, what, a->bytes, diag);
    if (err == CU_SUCCESS) err = cu->mem_reserve(&a->at, a->bytes, 0, 0, 0);
    if (err == CU_SUCCESS) err = cu->mem_map(a->at, a->bytes, 0, a->handle, 0);
    if (err == CU_SUCCESS) err = cu->mem_access(a->at, a->bytes, &access, 1);
    return dqi_cuda_check(err, what, "cuMemCreate", diag);
}

bool dqi_cuda_try(int32_t number, const char *what, dqi_cuda_trial *trial, void *arg, dq_diag *diag) {
    dqi_gpu *g = dqi_gpu_open(number < 0 ? 0 : number, what, diag);
    if (!g) return false;
    if (!g->info.gpudirect) {
        dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: GPU %d (%s) lends its memory to no device (GPUDirect RDMA)",
                 what, g->info.number, g->info.name);
        return false;
    }
    allocation a = {0};
    bool ok =
        allocate(g, 1, &a, what, diag) == DQ_OK && trial(arg, (uint8_t *)(uintptr_t)a.at, a.bytes, diag);
    give_back(&a);
    return ok;
}

void dqi_cuda_share_regions(dq_session *s) {
    for (uint32_t k = 0; k < s->n_regions; k++) {
        dq_region *r = s->regions[k];
        if (r->conf.kind != DQ_KIND_DEVICE || r->cpu) continue;
        dq_diag later = {{0}}; // dqi_cuda_open_regions says it
        const dqi_gpu *g = dqi_gpu_open(r->conf.gpu < 0 ? 0 : r->conf.gpu, r->conf.name, &later);
        if (!g || !g->info.integrated) continue;
        r->cpu = true;
        dqi_note(
            s,
            "memory region %s: device: GPU %d (%s) shares the host's memory: its buffers lie there, pinned",
            r->conf.name, g->info.number, g->info.name);
    }
}

static int open_region(dq_session *s, uint32_t k, dq_diag *diag) {
    dq_region *r = s->regions[k];
    char what[DQ_NAME_LEN + 32];
    snprintf(what, sizeof what, "memory region %s", r->conf.name);
    dqi_gpu *g = dqi_cuda_use(s, r->conf.kind == DQ_KIND_DEVICE ? r->conf.gpu : -1, what, diag);
    if (!g) return DQ_NOT_SUPPORTED;
    if (r->conf.kind == DQ_KIND_DEVICE && g->info.integrated) r->gpu = g;
    if (r->cpu) return DQ_OK;
    int err = allocate(g, dqi_region_bytes(r), &s->cuda->regions[k], what, diag);
    r->gpu = g;
    r->device = (uint8_t *)(uintptr_t)s->cuda->regions[k].at; // no address of the CPU's: kernels' alone
    if (err == DQ_OK)
        dqi_note(s, "memory region %s: %llu MiB of GPU %d (%s)", r->conf.name,
                 (unsigned long long)(s->cuda->regions[k].bytes >> 20), g->info.number, g->info.name);
    return err;
}

int dqi_cuda_open_regions(dq_session *s, dq_diag *diag) {
    int err = DQ_OK;
    // Those in GPUs' memory first: the session's first GPU is one that it names.
    for (int device = 1; device >= 0; device--)
        for (uint32_t k = 0; k < s->n_regions && err == DQ_OK; k++)
            if (s->regions[k]->conf.kind == (device ? DQ_KIND_DEVICE : DQ_KIND_HOST_PINNED))
                err = open_region(s, k, diag);
    return err;
}

void dqi_cuda_close_regions(dq_session *s) {
    dqi_cuda_memory *m = s->cuda;
    if (!m) return;
    for (uint32_t k = 0; k < s->n_regions; k++)
        give_back(&m->regions[k]);
    for (uint32_t k = 0; k < m->n_ranges; k++)
        if (dqi_gpu_enter(m->first) == CU_SUCCESS) m->first->cu->host_unregister(m->ranges[k]);
    free(m);
    s->cuda = NULL;
}

// What the region has on its GPU; NULL: nothing.
static allocation *allocation_of(const dq_region *r) {
    const dq_session *s = r->session;
    for (uint32_t k = 0; s->cuda && k < s->n_regions; k++)
        if (s->regions[k] == r && s->cuda->regions[k].bytes > 0) return &s->cuda->regions[k];
    return NULL;
}

bool dqi_cuda_file_memory(const dq_region *r, const dqi_cufile *lib, char *why, size_t len) {
    allocation *a = allocation_of(r);
    if (!a || a->files) return a != NULL;
    dqi_gpu_enter(a->gpu);
    int err = lib->memory_register((void *)(uintptr_t)a->at, a->bytes, 0).err;
    if (err == CU_FILE_SUCCESS) a->files = lib;
    if (err != CU_FILE_SUCCESS) dqi_cufile_words("cuFileBufRegister", err, why, len);
    return err == CU_FILE_SUCCESS;
}

int dqi_cuda_export(const dq_region *r, int *fd, dq_diag *diag) {
    const allocation *a = allocation_of(r);
    if (!a || !a->gpu->info.exports)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "memory region %s: it has no memory of a GPU that can be exported", r->conf.name);
    char what[DQ_NAME_LEN + 32];
    snprintf(what, sizeof what, "memory region %s", r->conf.name);
    dqi_gpu_enter(a->gpu);
    return dqi_cuda_check(a->gpu->cu->mem_export(fd, a->handle, CU_HANDLE_DESCRIPTOR, 0), what,
                          "cuMemExportToShareableHandle", diag);
}

int dqi_cuda_dmabuf(uint8_t *at, uint64_t bytes, const char *what, int *fd, dq_diag *diag) {
    typedef cu_result range_handle(void *out, cu_ptr at, size_t bytes, int type, unsigned long long flags);
    static const char symbol[] = "cuMemGetHandleForAddressRange"; // since CUDA 11.7
    range_handle *get;
    void *found = dqi_cuda_symbol(symbol);
    memcpy(&get, &found, sizeof get); // ISO C has no cast for it
    if (!get)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: the GPU's driver makes no DMA-BUF; hint: a newer driver",
                        what);
    return dqi_cuda_check(get(fd, (cu_ptr)(uintptr_t)at, bytes, CU_RANGE_DMA_BUF, 0), what, symbol, diag);
}

int dqi_cuda_region_dmabuf(const dq_region *r, int *fd, uint64_t *bytes, dq_diag *diag) {
    const allocation *a = allocation_of(r);
    char what[DQ_NAME_LEN + 32];
    snprintf(what, sizeof what, "memory region %s", r->conf.name);
    if (!a || !a->gpu->info.dma_buf)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: it lies on no GPU that lends its memory to devices (DMA-BUF)", what);
    *bytes = a->bytes;
    dqi_gpu_enter(a->gpu);
    return dqi_cuda_dmabuf(r->device, a->bytes, what, fd, diag);
}
