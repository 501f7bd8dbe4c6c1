// dq_cuda.h: GPUs: which there are, and what they can do.
#ifndef DQ_CUDA_H
#define DQ_CUDA_H

#include "core/dq_core.h"

typedef struct dq_gpu_info {
    int32_t number;       // as configurations name it (affinity of kind device)
    char name[64];        // the vendor's
    char bus[24];         // PCI address: "0000:8a:00.0"
    int32_t major, minor; // compute capability
    int32_t multiprocessors;
    uint64_t bytes;     // of memory
    int32_t numa_node;  // nearest to it; -1: unknown
    int32_t integrated; // 1: it shares the host's memory
    int32_t exports;    // 1: its memory can be handed to another process as a descriptor
    int32_t gpudirect;  // 1: network devices can reach its memory (GPUDirect RDMA)
    int32_t dma_buf;    // 1: and by DMA-BUF
} dq_gpu_info;

// The driver's version, 12040 for 12.4, and how many GPUs it knows. NOT_SUPPORTED: there is no driver, or no
// GPU; diag says why. Opens the driver, but makes no context. Any thread.
int dq_gpu_count(int32_t *driver_version, uint32_t *n, dq_diag *diag);
// What the GPU of this number is.
int dq_gpu_read(int32_t number, dq_gpu_info *out, dq_diag *diag);

#endif
