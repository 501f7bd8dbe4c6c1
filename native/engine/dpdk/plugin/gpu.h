// gpu.h: packets that the device stores in GPU memory (gpu.c).
#ifndef GPU_H
#define GPU_H

#include "dpdk.h"

// Returns true if the region is in GPU memory that the CPU cannot read.
static inline bool gpu_has(const dq_region *r) { return !r->cpu && r->gpu; }
// See dqi_engine_ops.reaches_gpu.
bool gpu_reaches(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                 dq_diag *why);
// Map the parts in GPU memory for the device, and unmap them.
int gpu_lend(const dqi_port *p, dpdk_port *d, dq_diag *diag);
void gpu_take_back(dpdk_port *d);

#endif
