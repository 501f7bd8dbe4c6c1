// pinned.c: pages of the host that GPUs reach.
#include "cuda/pinned.h"
#include "core/err.h"
#include "core/region.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int dqi_pinned_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag) {
    *bytes = dqi_round_up(*bytes ? *bytes : 1, dqi_page_size());
    void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return dqi_fail(diag, DQ_ESYS - errno, "%s: %zu MiB of host memory: %s", what, *bytes >> 20,
                        strerror(errno));
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
