// pinned.c: host pages accessible to GPUs; and those that another process may map: of one memory file, where
// each page's offset is its address, so that no table is needed and adjacent pages are one mapping.
#include "cuda/pinned.h"
#include "core/err.h"
#include "core/region.h"
#include "cuda/resident.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define ADDRESSES (INT64_C(1) << 48)

static int shared_file = -1;

// Opens the shared file, unless ulimit -f limits files: growing it would kill the process.
static void open_shared(void) {
    struct rlimit most;
    if (getrlimit(RLIMIT_FSIZE, &most) == 0 && most.rlim_cur < (rlim_t)ADDRESSES) return;
    int fd = memfd_create("daqiri-shared", MFD_CLOEXEC);
    if (fd >= 0 && ftruncate(fd, ADDRESSES) == 0)
        shared_file = fd;
    else if (fd >= 0)
        close(fd);
}

int dqi_shared_file(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_shared);
    return shared_file;
}

static int no_pages(const char *what, size_t bytes, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - errno, "%s: %zu MiB of host memory: %s", what, bytes >> 20,
                    strerror(errno));
}

// Maps whole pages at an address chosen by the system: of the file, or private if fd is -1.
static int map(int fd, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag) {
    *bytes = dqi_round_up(*bytes ? *bytes : 1, dqi_page_size());
    void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return no_pages(what, *bytes, diag);
    *out = p;
    if (fd < 0 || mmap(p, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)(uintptr_t)p) !=
                      MAP_FAILED)
        return DQ_OK;
    int err = no_pages(what, *bytes, diag);
    munmap(p, *bytes);
    return err;
}

int dqi_pinned_reach(dqi_gpu *gpu, uint8_t *at, size_t bytes, const char *what, dq_diag *diag) {
    cu_ptr device = 0;
    char who[160];
    snprintf(who, sizeof who, "%.80s: GPU %d: %zu MiB of host memory", what, gpu->info.number, bytes >> 20);
    cu_result err = dqi_gpu_enter(gpu);
    if (err == CU_SUCCESS) err = gpu->cu->host_register(at, bytes, CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, who, "cuMemHostRegister", diag);
    err = gpu->cu->host_address(&device, at, 0);
    if (err == CU_SUCCESS && device == (cu_ptr)(uintptr_t)at) return DQ_OK;
    gpu->cu->host_unregister(at);
    if (err != CU_SUCCESS) return dqi_cuda_check(err, who, "cuMemHostGetDevicePointer", diag);
    return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: it has another address for the GPU than for the CPU", who);
}

int dqi_shared_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag) {
    int err = map(dqi_shared_file(), bytes, out, what, diag);
    if (err != DQ_OK || !gpu) return err;
    err = dqi_pinned_reach(gpu, *out, *bytes, what, diag);
    if (err == DQ_OK) return err;
    dqi_shared_free(NULL, *out, *bytes);
    *out = NULL;
    return err;
}

// Frees the file's pages before unmapping: afterwards the addresses may be reused.
static void free_shared(dqi_gpu *gpu, void *at, size_t bytes) {
    int fd = dqi_shared_file();
    if (gpu) gpu->cu->host_unregister(at);
    if (fd >= 0)
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(uintptr_t)at, (off_t)bytes);
    munmap(at, bytes);
}

void dqi_shared_free(dqi_gpu *gpu, uint8_t *p, size_t bytes) {
    if (p) dqi_gpu_free(gpu, free_shared, p, bytes);
}

int dqi_pinned_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag) {
    int err = map(-1, bytes, out, what, diag);
    if (err != DQ_OK) return err;
    // GPUs and direct writes pin each page.
    if (*bytes >= DQI_HUGE_PAGE) madvise(*out, *bytes, MADV_HUGEPAGE);
    if (!gpu) return DQ_OK;
    err = dqi_pinned_reach(gpu, *out, *bytes, what, diag);
    if (err == DQ_OK) return err;
    munmap(*out, *bytes);
    *out = NULL;
    return err;
}

static void free_pinned(dqi_gpu *gpu, void *at, size_t bytes) {
    if (gpu) gpu->cu->host_unregister(at);
    munmap(at, bytes);
}

void dqi_pinned_free(dqi_gpu *gpu, uint8_t *p, size_t bytes) {
    if (p) dqi_gpu_free(gpu, free_pinned, p, bytes);
}
