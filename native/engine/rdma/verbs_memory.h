// verbs_memory.h: a region's registration with a device.
#ifndef DQI_VERBS_MEMORY_H
#define DQI_VERBS_MEMORY_H

#include "core/region.h"
#include "engine/rdma/verbs_dl.h"

// Registers a region, which pins it: *out is the caller's. What can't be names the region, the device and the
// limit of locked memory. Control thread.
int dqi_verbs_register(vb_pd *pd, const dq_region *g, int access, const char *iface, vb_mr **out,
                       dq_diag *diag);

#endif
