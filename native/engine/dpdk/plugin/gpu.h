// gpu.h: payloads that the device puts into a GPU's memory (gpu.c).
#ifndef GPU_H
#define GPU_H

#include "dpdk.h"

// Whether the region lies in a GPU's memory, which the CPU can't read.
static inline bool gpu_has(const dq_region *r) { return !r->cpu && r->gpu; }
// dqi_engine_ops.reaches_gpu.
bool gpu_reaches(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                 dq_diag *why);
// Lets the device reach those of its parts that lie in GPUs' memory; and ends it.
int gpu_lend(const dqi_port *p, dpdk_port *d, dq_diag *diag);
void gpu_take_back(dpdk_port *d);

#endif
