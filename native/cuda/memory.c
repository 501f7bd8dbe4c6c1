// memory.c: regions in GPU memory, and the registration of the arena with the driver.
//
// Each region has its own allocation (gpu_memory.h). The arena is registered as mapped, its small and huge
// pages separately; registered memory has one address for the CPU and all GPUs, so that base + offset is
// valid for both.
#include "cuda/memory.h"
#include "core/dq_burst.h"
#include "core/err.h"
#include "core/region.h"
#include "cuda/pinned.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RANGES 2

// A region's memory on its GPU.
typedef struct allocation {
    dqi_gpu_memory memory;
    const dqi_cufile *files; // cuFile, if it has registered the memory; NULL
    bool bound;              // memory of the application
} allocation;

struct dqi_cuda_memory {
    dqi_gpu *first; // first GPU of the session, which made the registration
    void *ranges[MAX_RANGES];
    uint32_t n_ranges;
    allocation regions[DQI_MAX_REGIONS]; // entry k: of region k
    size_t heads[DQI_MAX_REGIONS];       // bytes of its heads; 0: none
};

// ---- the arena --------------------------------------------------------------------------------------------

static int reach(dqi_cuda_memory *m, uint8_t *at, uint64_t bytes, const char *what, dq_diag *diag) {
    if (bytes == 0) return DQ_OK;
    int err = dqi_pinned_reach(m->first, at, bytes, what, diag);
    if (err == DQ_OK) m->ranges[m->n_ranges++] = at;
    return err;
}

dqi_gpu *dqi_cuda_use(dq_session *s, int32_t number, const char *what, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    if (number < 0) number = core->cuda && core->cuda->first ? core->cuda->first->info.number : 0;
    dqi_gpu *g = dqi_gpu_open(number, what, diag);
    if (!g) return NULL;
    if (!core->cuda && !(core->cuda = calloc(1, sizeof *core->cuda))) {
        dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
        return NULL;
    }
    if (core->cuda->first) return g;
    core->cuda->first = g;
    int err = dqi_cuda_check(dqi_gpu_enter(g), what, "cuCtxSetCurrent", diag);
    if (err == DQ_OK) err = reach(core->cuda, core->base, core->huge_at, what, diag);
    if (err == DQ_OK)
        err = reach(core->cuda, core->base + core->huge_at, core->arena_bytes - core->huge_at, what, diag);
    return err == DQ_OK ? g : NULL;
}

// ---- regions ----------------------------------------------------------------------------------------------

static int allocate(dqi_gpu *g, uint64_t bytes, dqi_gpu_memory *m, const char *what, dq_diag *diag) {
    return dqi_gpu_memory_new(g, bytes, "; hint: lower num_bufs or buf_size", m, what, diag);
}

static void release_memory(allocation *a) {
    if (a->files && dqi_gpu_enter(a->memory.gpu) == CU_SUCCESS)
        a->files->memory_deregister((void *)(uintptr_t)a->memory.at);
    if (!a->bound) dqi_gpu_memory_free(&a->memory);
    *a = (allocation){0};
}

bool dqi_cuda_try(int32_t number, const char *what, dqi_cuda_trial *trial, void *arg, dq_diag *diag) {
    dqi_gpu *g = dqi_gpu_open(number < 0 ? 0 : number, what, diag);
    if (!g) return false;
    if (!g->info.gpudirect) {
        dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: GPU %d (%s) lends its memory to no device (GPUDirect RDMA)",
                 what, g->info.number, g->info.name);
        return false;
    }
    dqi_gpu_memory m = {0};
    bool ok =
        allocate(g, 1, &m, what, diag) == DQ_OK && trial(arg, (uint8_t *)(uintptr_t)m.at, m.bytes, diag);
    dqi_gpu_memory_free(&m);
    return ok;
}

void dqi_cuda_share_regions(dq_session *s) {
    dqi_core *core = dqi_core_of(s);
    for (uint32_t k = 0; k < core->n_regions; k++) {
        dq_region *r = core->regions[k];
        if (r->conf.kind != DQ_KIND_DEVICE || r->cpu) continue;
        dq_diag later = {{0}}; // discarded: dqi_cuda_open_regions reports it
        const dqi_gpu *g = dqi_gpu_open(r->conf.gpu < 0 ? 0 : r->conf.gpu, r->conf.name, &later);
        if (!g || !g->info.integrated) continue;
        r->cpu = true;
        dqi_note(
            s,
            "memory region %s: device: GPU %d (%s) shares the host's memory: its buffers lie there, pinned",
            r->conf.name, g->info.number, g->info.name);
    }
}

// Takes the memory of the application that the region is bound to.
static int take(const dqi_bound *b, allocation *to) {
    *to =
        (allocation){.memory = {.gpu = b->gpu, .at = (uintptr_t)b->device, .bytes = b->bytes}, .bound = true};
    return DQ_OK;
}

static int open_region(dq_session *s, uint32_t k, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    dq_region *r = core->regions[k];
    char what[DQ_NAME_LEN + 32];
    snprintf(what, sizeof what, "memory region %s", r->conf.name);
    dqi_gpu *g = dqi_cuda_use(s, r->conf.kind == DQ_KIND_DEVICE ? r->conf.gpu : -1, what, diag);
    if (!g) return DQ_NOT_SUPPORTED;
    if (r->conf.kind == DQ_KIND_DEVICE && g->info.integrated) r->gpu = g;
    if (r->cpu) return DQ_OK;
    allocation *a = &core->cuda->regions[k];
    int err = r->bound ? take(r->bound, a) : allocate(g, dqi_region_bytes(r), &a->memory, what, diag);
    r->gpu = g;
    r->device = (uint8_t *)(uintptr_t)a->memory.at; // not a CPU address
    if (err == DQ_OK && r->whole) {
        core->cuda->heads[k] = (size_t)r->conf.num_bufs * DQ_HEAD;
        err = dqi_pinned_new(g, &core->cuda->heads[k], &r->heads, what, diag);
    }
    if (err == DQ_OK)
        dqi_note(s, "memory region %s: %llu MiB of GPU %d (%s)%s", r->conf.name,
                 (unsigned long long)(a->memory.bytes >> 20), g->info.number, g->info.name,
                 r->bound ? ": memory of the application" : "");
    return err;
}

static void close_region(dqi_cuda_memory *m, dq_region *r, uint32_t k) {
    if (r->heads) dqi_pinned_free(m->regions[k].memory.gpu, r->heads, m->heads[k]);
    r->heads = NULL;
    release_memory(&m->regions[k]);
}

int dqi_cuda_open_regions(dq_session *s, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    int err = DQ_OK;
    // Regions in GPU memory first: the session's first GPU must be one that it names.
    for (int device = 1; device >= 0; device--)
        for (uint32_t k = 0; k < core->n_regions && err == DQ_OK; k++)
            if (core->regions[k]->conf.kind == (device ? DQ_KIND_DEVICE : DQ_KIND_HOST_PINNED))
                err = open_region(s, k, diag);
    return err;
}

void dqi_cuda_close_regions(dq_session *s) {
    dqi_core *core = dqi_core_of(s);
    dqi_cuda_memory *m = core->cuda;
    if (!m) return;
    for (uint32_t k = 0; k < core->n_regions; k++)
        close_region(m, core->regions[k], k);
    for (uint32_t k = 0; k < m->n_ranges; k++)
        if (dqi_gpu_enter(m->first) == CU_SUCCESS) m->first->cu->host_unregister(m->ranges[k]);
    free(m);
    core->cuda = NULL;
}

// Returns the region's GPU allocation, or NULL.
static allocation *allocation_of(const dq_region *r) {
    const dqi_core *core = dqi_core_of(r->session);
    for (uint32_t k = 0; core->cuda && k < core->n_regions; k++)
        if (core->regions[k] == r && core->cuda->regions[k].memory.bytes > 0) return &core->cuda->regions[k];
    return NULL;
}

bool dqi_cuda_file_memory(const dq_region *r, const dqi_cufile *lib, char *why, size_t len) {
    allocation *a = allocation_of(r);
    if (!a || a->files) return a != NULL;
    dqi_gpu_enter(a->memory.gpu);
    int err = lib->memory_register((void *)(uintptr_t)a->memory.at, a->memory.bytes, 0).err;
    if (err == CU_FILE_SUCCESS) a->files = lib;
    if (err != CU_FILE_SUCCESS) dqi_cufile_words("cuFileBufRegister", err, why, len);
    return err == CU_FILE_SUCCESS;
}

const dqi_gpu_memory *dqi_cuda_memory_of(const dq_region *r) {
    const allocation *a = allocation_of(r);
    return a ? &a->memory : NULL;
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
    if (!a || !a->memory.gpu->info.dma_buf)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: it lies on no GPU that lends its memory to devices (DMA-BUF)", what);
    *bytes = a->memory.bytes;
    dqi_gpu_enter(a->memory.gpu);
    return dqi_cuda_dmabuf(r->device, a->memory.bytes, what, fd, diag);
}
