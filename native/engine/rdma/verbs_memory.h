// verbs_memory.h: registration of regions with a device.
#ifndef DQI_VERBS_MEMORY_H
#define DQI_VERBS_MEMORY_H

#include "core/region.h"
#include "engine/rdma/verbs_dl.h"

// Registers a region at base + offset of the arena, wherever its memory is; the caller owns *out. CPU memory
// is pinned; an error names the region, the device and the limit of locked memory. GPU memory is registered
// by DMA-BUF; NOT_SUPPORTED states whether GPU, library or device lacks it. Control thread.
int dqi_verbs_register(vb_pd *pd, const dq_region *g, int access, const char *iface, vb_mr **out,
                       dq_diag *diag);
// Returns true if the device can access these bytes of a GPU (dqi_cuda_trial); otherwise describes the
// obstacle in why. `what` names the object in messages. Control thread.
bool dqi_verbs_reach_gpu(vb_pd *pd, uint8_t *at, uint64_t bytes, const char *what, dq_diag *why);

#endif
