#include "engine/rdma/verbs_memory.h"
#include "core/err.h"
#include "cuda/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

// Registers fd and closes it. `who` prefixes error messages.
static int take_dmabuf(vb_pd *pd, int fd, uint64_t bytes, uint64_t iova, int access, const char *who,
                       vb_mr **out, dq_diag *diag) {
    const char *device = pd->context->device->name;
    errno = 0;
    *out = vb.reg_dmabuf_mr ? vb.reg_dmabuf_mr(pd, 0, bytes, iova, fd, access) : NULL;
    int err = errno;
    close(fd); // the registration holds a reference
    if (*out) return DQ_OK;
    if (!vb.reg_dmabuf_mr)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: libibverbs has no ibv_reg_dmabuf_mr; hint: rdma-core 34 or later", who);
    return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: device %s cannot register DMA-BUF memory: %s", who, device,
                    strerror(err));
}

static int register_gpu(vb_pd *pd, const dq_region *g, int access, const char *iface, vb_mr **out,
                        dq_diag *diag) {
    char who[2 * DQ_NAME_LEN + 32];
    int fd = -1;
    uint64_t bytes = 0;
    *out = NULL;
    int err = dqi_cuda_region_dmabuf(g, &fd, &bytes, diag);
    if (err != DQ_OK) return err;
    snprintf(who, sizeof who, "interface %s: memory region %s", iface, g->conf.name);
    return take_dmabuf(pd, fd, bytes, (uintptr_t)(g->base + g->offset), access, who, out, diag);
}

bool dqi_verbs_reach_gpu(vb_pd *pd, uint8_t *at, uint64_t bytes, const char *what, dq_diag *why) {
    vb_mr *mr = NULL;
    int fd = -1, err = dqi_cuda_dmabuf(at, bytes, what, &fd, why);
    if (err == DQ_OK) err = take_dmabuf(pd, fd, bytes, (uintptr_t)at, VB_ACCESS_LOCAL_WRITE, what, &mr, why);
    if (mr) vb.dereg_mr(mr);
    return err == DQ_OK;
}

int dqi_verbs_register(vb_pd *pd, const dq_region *g, int access, const char *iface, vb_mr **out,
                       dq_diag *diag) {
    struct rlimit l = {0};
    unsigned long long mib = dqi_region_bytes(g) >> 20;
    const char *device = pd->context->device->name;
    if (!g->cpu) return register_gpu(pd, g, access, iface, out, diag);
    *out = vb.reg_mr(pd, g->base + g->offset, dqi_region_bytes(g), access);
    if (*out) return DQ_OK;
    int err = errno;
    getrlimit(RLIMIT_MEMLOCK, &l);
    if ((err == ENOMEM || err == EPERM) && l.rlim_cur != RLIM_INFINITY)
        return dqi_fail(diag, DQ_ESYS - err,
                        "interface %s: region %s: cannot pin its %llu MiB for device %s: the limit is %llu "
                        "KiB; hint: ulimit -l unlimited",
                        iface, g->conf.name, mib, device, (unsigned long long)l.rlim_cur >> 10);
    return dqi_fail(diag, DQ_ESYS - err,
                    "interface %s: region %s: device %s cannot register its %llu MiB: %s", iface,
                    g->conf.name, device, mib, strerror(err));
}
