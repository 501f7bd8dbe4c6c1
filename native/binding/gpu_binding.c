// gpu_binding.c: regions in GPU memory of an array or of another process.
#include "binding/binding.h"
#include "compute/compute.h"
#include "core/err.h"

#include <stdio.h>
#include <string.h>

#define MOST (UINT64_C(1) << 48) // bytes of an allocation

// Returns an attribute of an address; UINT64_MAX: the driver does not know it.
static uint64_t attribute(const dqi_gpu *g, cu_ptr at, int which) {
    uint64_t value = 0; // attributes have 32 or 64 bits
    return g->cu->pointer_get(&value, which, at) == CU_SUCCESS ? value : UINT64_MAX;
}

// Opens another process's handle. *bytes: the size of its allocation.
static int open_handle(const dq_region *r, dqi_gpu *g, cu_ptr *at, uint64_t *bytes, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    cu_ipc_handle handle;
    memcpy(handle.bytes, b->conf.handle, sizeof handle.bytes);
    char words[200];
    cu_result err = dqi_gpu_enter(g);
    if (err == CU_SUCCESS) err = g->cu->ipc_open(&b->opened, handle, CU_IPC_LAZY_PEER_ACCESS);
    if (err != CU_SUCCESS) {
        b->opened = 0;
        dqi_cuda_words(err, words, sizeof words);
        return dqi_refuse(r, diag, "its handle can't be opened on GPU %d: cuIpcOpenMemHandle: %s",
                          g->info.number, words);
    }
    const int one = 1;
    g->cu->pointer_set(&one, CU_POINTER_SYNC_MEMOPS, b->opened); // copies are complete when devices read them
    *at = b->opened;
    *bytes = attribute(g, *at, CU_POINTER_RANGE_BYTES);
    return *bytes != UINT64_MAX ? DQ_OK
                                : dqi_refuse(r, diag, "the driver does not know the size of its memory");
}

// Imports an allocation that another process has exported as a descriptor.
static int import(const dq_region *r, dqi_gpu *g, cu_ptr *at, uint64_t *bytes, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    dq_diag why = {{0}};
    if (b->conf.bytes == DQ_BINDING_REST || b->conf.bytes > MOST || b->conf.offset > MOST)
        return dqi_refuse(r, diag, "a descriptor of GPU memory needs bytes, the size of its allocation");
    if (dqi_gpu_memory_import(g, b->conf.fd, b->conf.offset + b->conf.bytes, &b->imported, "descriptor",
                              &why) != DQ_OK)
        return dqi_refuse(r, diag, "%s", why.text);
    *at = b->imported.at;
    *bytes = b->imported.bytes;
    return DQ_OK;
}

static int of_array(const dq_region *r, const dqi_gpu *g, cu_ptr *at, uint64_t *bytes, dq_diag *diag) {
    const dq_array *a = dqi_binding_of(r)->conf.array;
    if (a->cpu)
        return dqi_refuse(r, diag, "%s lies in host memory, and the region's buffers lie on a GPU", a->what);
    if (a->gpu != g)
        return dqi_refuse(r, diag, "%s lies on GPU %d, and the region's affinity is GPU %d", a->what,
                          a->gpu->info.number, g->info.number);
    *at = a->memory.at;
    *bytes = a->memory.bytes;
    return DQ_OK;
}

// Checks that the memory lies on this GPU and, where a queue receives into it, is accessible to network
// devices.
static int check_place(const dq_region *r, const dqi_gpu *g, cu_ptr at, dq_diag *diag) {
    uint64_t on = attribute(g, at, CU_POINTER_DEVICE);
    if (on != UINT64_MAX && on != (uint64_t)g->device)
        return dqi_refuse(r, diag, "its memory lies on CUDA device %llu, and the region's affinity is GPU %d",
                          (unsigned long long)on, g->info.number);
    if (r->nic && attribute(g, at, CU_POINTER_GPUDIRECT_RDMA) == 0)
        return dqi_refuse(r, diag,
                          "devices can't access its memory (GPUDirect RDMA): allocate it with "
                          "cuMemAlloc, or with cuMemCreate and gpuDirectRDMACapable");
    return DQ_OK;
}

int dqi_gpu_check(dq_region *r, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    cu_ptr at = 0;
    uint64_t bytes = 0;
    dqi_gpu *g = dqi_gpu_open(r->conf.gpu < 0 ? 0 : r->conf.gpu, r->conf.name, diag);
    if (!g) return DQ_NOT_SUPPORTED;
    b->bound.gpu = g;
    int err = b->conf.source == DQ_BINDING_ARRAY ? of_array(r, g, &at, &bytes, diag)
              : b->conf.source == DQ_BINDING_IPC ? open_handle(r, g, &at, &bytes, diag)
                                                 : import(r, g, &at, &bytes, diag);
    if (err == DQ_OK) err = check_place(r, g, at, diag);
    if (err == DQ_OK) err = dqi_binding_fits(r, bytes, dqi_page_size(), diag);
    if (err != DQ_OK) return err;
    b->bound.fd = -1;
    b->bound.device = (uint8_t *)(uintptr_t)(at + b->conf.offset); // not a CPU address
    b->bound.bytes = b->need;
    return dqi_binding_alone(r, diag);
}

void dqi_gpu_release(dqi_binding *b) {
    if (b->opened && dqi_gpu_enter(b->bound.gpu) == CU_SUCCESS) b->bound.gpu->cu->ipc_close(b->opened);
    dqi_gpu_memory_free(&b->imported);
}
