// pinned.c: pages of the host that GPUs reach; and those that another process may map: of one file in memory,
// where each lies at the offset that is its address, so that no list says what is where, and neighbours are
// one mapping.
#include "cuda/pinned.h"
#include "core/err.h"
#include "core/region.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#define ADDRESSES (INT64_C(1) << 48)

static int shared_file = -1;

// Where ulimit -f limits files there is none: growing it would end the process.
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

int dqi_shared_new(size_t *bytes, uint8_t **out, const char *what, dq_diag *diag) {
    int fd = dqi_shared_file(), err = dqi_pinned_new(NULL, bytes, out, what, diag);
    if (err != DQ_OK || fd < 0) return err;
    if (mmap(*out, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)(uintptr_t)*out) !=
        MAP_FAILED)
        return DQ_OK;
    err = no_pages(what, *bytes, diag);
    munmap(*out, *bytes);
    return err;
}

// The file lets go of the pages first: afterwards the addresses may be somebody else's.
void dqi_shared_free(uint8_t *p, size_t bytes) {
    int fd = dqi_shared_file();
    if (p && fd >= 0)
        fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)(uintptr_t)p, (off_t)bytes);
    dqi_pinned_free(NULL, p, bytes);
}

int dqi_pinned_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag) {
    *bytes = dqi_round_up(*bytes ? *bytes : 1, dqi_page_size());
    void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED) return no_pages(what, *bytes, diag);
    // A GPU, and a direct write, pin each page.
    if (*bytes >= DQI_HUGE_PAGE) madvise(p, *bytes, MADV_HUGEPAGE);
    cu_result err = gpu ? dqi_gpu_enter(gpu) : CU_SUCCESS;
    if (gpu && err == CU_SUCCESS)
        err = gpu->cu->host_register(p, *bytes, CU_REGISTER_PORTABLE | CU_REGISTER_MAPPED);
    if (err == CU_SUCCESS) {
        *out = p;
        return DQ_OK;
    }
    munmap(p, *bytes);
    return dqi_cuda_check(err, what, "cuMemHostRegister", diag);
}

void dqi_pinned_free(dqi_gpu *gpu, uint8_t *p, size_t bytes) {
    if (!p) return;
    if (gpu && dqi_gpu_enter(gpu) == CU_SUCCESS) gpu->cu->host_unregister(p);
    munmap(p, bytes);
}
