// verbs_memory.h: a region's registration with a device.
#ifndef DQI_VERBS_MEMORY_H
#define DQI_VERBS_MEMORY_H

#include "core/region.h"
#include "engine/rdma/verbs_dl.h"

// Registers a region: *out is the caller's, and its addresses are base + offset of the arena, wherever the
// region lies. The CPU's memory is pinned; what can't be names the region, the device and the limit of locked
// memory. A GPU's goes by DMA-BUF: NOT_SUPPORTED says whether GPU, library or device lacks it. Control
// thread.
int dqi_verbs_register(vb_pd *pd, const dq_region *g, int access, const char *iface, vb_mr **out,
                       dq_diag *diag);
// Whether the device reaches these bytes of a GPU (dqi_cuda_trial); false: why says what is in the way.
// `what` names who asks. Control thread.
bool dqi_verbs_reach_gpu(vb_pd *pd, uint8_t *at, uint64_t bytes, const char *what, dq_diag *why);

#endif
