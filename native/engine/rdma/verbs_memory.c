#include "engine/rdma/verbs_memory.h"
#include "core/err.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>

int dqi_verbs_register(vb_pd *pd, const dq_region *g, int access, const char *iface, vb_mr **out,
                       dq_diag *diag) {
    struct rlimit l = {0};
    unsigned long long mib = dqi_region_bytes(g) >> 20;
    const char *device = pd->context->device->name;
    *out = vb.reg_mr(pd, g->base + g->offset, dqi_region_bytes(g), access);
    if (*out) return DQ_OK;
    int err = errno;
    getrlimit(RLIMIT_MEMLOCK, &l);
    if ((err == ENOMEM || err == EPERM) && l.rlim_cur != RLIM_INFINITY)
        return dqi_fail(
            diag, DQ_ESYS - err,
            "interface %s: region %s: its %llu MiB can't be pinned for device %s: the limit is %llu "
            "KiB; hint: ulimit -l unlimited",
            iface, g->conf.name, mib, device, (unsigned long long)l.rlim_cur >> 10);
    return dqi_fail(diag, DQ_ESYS - err, "interface %s: region %s: device %s can't register its %llu MiB: %s",
                    iface, g->conf.name, device, mib, strerror(err));
}
