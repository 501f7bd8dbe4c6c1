// fake_handles.c: handles of memory for other processes and devices, and what is known of an address.
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int cuMemExportToShareableHandle(void *out, uint64_t handle, int type, unsigned long long flags) {
    (void)flags;
    int *fd;
    fake_place(handle, &fd);
    if (type != CU_HANDLE_DESCRIPTOR) return INVALID;
    *(int *)out = dup(*fd);
    return OK_OR_BROKEN(CU_SUCCESS);
}

// What stands for a DMA-BUF: the file behind the memory, from its beginning.
int cuMemGetHandleForAddressRange(void *out, cu_ptr at, size_t bytes, int type, unsigned long long flags) {
    const fake_memory m = fake_memory_at(at);
    bool may = m.dmabuf && type == CU_RANGE_DMA_BUF && flags == 0 && m.at == at && bytes > 0 &&
               bytes % 4096 == 0 && bytes <= m.bytes;
    if (may) *(int *)out = dup(m.fd);
    return OK_OR_BROKEN(may ? CU_SUCCESS : INVALID);
}

// A handle names the process, its descriptor, and the GPU.
typedef struct ipc {
    int pid, fd, gpu;
} ipc;

int cuIpcGetMemHandle(cu_ipc_handle *out, cu_ptr at) {
    const fake_memory m = fake_memory_at(at);
    const ipc x = {getpid(), m.fd, m.gpu};
    *out = (cu_ipc_handle){{0}};
    memcpy(out->bytes, &x, sizeof x);
    return OK_OR_BROKEN(m.bytes > 0 ? CU_SUCCESS : INVALID);
}

int cuIpcOpenMemHandle_v2(cu_ptr *at, cu_ipc_handle handle, unsigned flags) {
    ipc x;
    char path[64];
    struct stat file;
    memcpy(&x, handle.bytes, sizeof x);
    snprintf(path, sizeof path, "/proc/%d/fd/%d", x.pid, x.fd);
    int *own, fd = x.pid > 0 && flags == CU_IPC_LAZY_PEER_ACCESS ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd < 0 || fstat(fd, &file) != 0) return INVALID;
    uint64_t imported = 0;
    int err = cuMemImportFromShareableHandle(&imported, (void *)(uintptr_t)fd, CU_HANDLE_DESCRIPTOR);
    close(fd);
    if (err != CU_SUCCESS) return err;
    *fake_place(imported, &own) = x.gpu;
    cuMemAddressReserve(at, (size_t)file.st_size, 0, 0, 0);
    err = cuMemMap(*at, (size_t)file.st_size, 0, imported, 0);
    const cu_access_desc access = {.location = {CU_LOCATION_DEVICE, x.gpu}, .flags = CU_ACCESS_READ_WRITE};
    return err == CU_SUCCESS ? cuMemSetAccess(*at, (size_t)file.st_size, &access, 1) : err;
}

int cuIpcCloseMemHandle(cu_ptr at) { return cuMemFree_v2(at); }

// Knows the memory of GPUs only.
int cuPointerGetAttribute(void *out, int attribute, cu_ptr at) {
    const fake_memory m = fake_memory_at(at);
    if (m.bytes == 0) return INVALID;
    if (attribute == CU_POINTER_RANGE_BYTES)
        *(size_t *)out = m.bytes;
    else if (attribute == CU_POINTER_DEVICE)
        *(int *)out = m.gpu;
    else if (attribute == CU_POINTER_GPUDIRECT_RDMA)
        *(int *)out = m.gpudirect;
    else
        return INVALID;
    return OK_OR_BROKEN(CU_SUCCESS);
}

int cuPointerSetAttribute(const void *value, int attribute, cu_ptr at) {
    bool may = *(const int *)value == 1 && attribute == CU_POINTER_SYNC_MEMOPS && fake_reach(at, 1);
    return may ? CU_SUCCESS : INVALID;
}
