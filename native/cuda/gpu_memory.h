// gpu_memory.h: allocations of GPU memory by the driver's virtual memory management, which can be exported to
// another process as a file descriptor, or accessed by a network device.
#ifndef DQI_CUDA_GPU_MEMORY_H
#define DQI_CUDA_GPU_MEMORY_H

#include "cuda/gpu.h"

typedef struct dqi_gpu_memory {
    dqi_gpu *gpu;
    cu_allocation handle;
    cu_ptr at;
    size_t bytes; // 0: none. A multiple of the GPU's granularity, typically 2 MiB
} dqi_gpu_memory;

// Allocates at least that many bytes; contents are uninitialized. NO_SPACE_AVAILABLE: not enough free memory;
// hint, or "", ends the message. Call _free also after an error.
int dqi_gpu_memory_new(dqi_gpu *g, uint64_t bytes, const char *hint, dqi_gpu_memory *out, const char *what,
                       dq_diag *diag);
void dqi_gpu_memory_free(dqi_gpu_memory *m);
// Lets another GPU read and write the allocation at its address, until it is freed. NOT_SUPPORTED: the two
// have no path to each other.
int dqi_gpu_memory_share(const dqi_gpu_memory *m, dqi_gpu *with, const char *what, dq_diag *diag);
// Exports it as a file descriptor, which the caller closes. NOT_SUPPORTED: the GPU cannot export.
int dqi_gpu_memory_export(const dqi_gpu_memory *m, int *fd, const char *what, dq_diag *diag);
// Maps an allocation of that size, rounded up to the GPU's granularity, exported by another process, at an
// address chosen by the driver. The caller keeps fd.
int dqi_gpu_memory_import(dqi_gpu *g, int fd, uint64_t bytes, dqi_gpu_memory *out, const char *what,
                          dq_diag *diag);

#endif
