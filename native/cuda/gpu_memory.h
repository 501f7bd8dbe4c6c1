// gpu_memory.h: pieces of a GPU's memory, each an allocation of its own by the driver's virtual memory
// management: what can be handed to another process as a descriptor, or lent to a network device.
#ifndef DQI_CUDA_GPU_MEMORY_H
#define DQI_CUDA_GPU_MEMORY_H

#include "cuda/gpu.h"

typedef struct dqi_gpu_memory {
    dqi_gpu *gpu;
    cu_allocation handle;
    cu_ptr at;
    size_t bytes; // 0: none. Whole pages of the GPU's, 2 MiB each, say
} dqi_gpu_memory;

// At least so many bytes; nobody may count on zeros. NO_SPACE_AVAILABLE: the GPU has not so much; hint, or
// "", ends the text. After an error, too, out is given to _free.
int dqi_gpu_memory_new(dqi_gpu *g, uint64_t bytes, const char *hint, dqi_gpu_memory *out, const char *what,
                       dq_diag *diag);
void dqi_gpu_memory_free(dqi_gpu_memory *m);
// A descriptor of it for another process, which the caller closes. NOT_SUPPORTED: its GPU makes none.
int dqi_gpu_memory_export(const dqi_gpu_memory *m, int *fd, const char *what, dq_diag *diag);
// What another process has exported, of so many bytes; it lies wherever the driver has room. fd stays the
// caller's.
int dqi_gpu_memory_import(dqi_gpu *g, int fd, uint64_t bytes, dqi_gpu_memory *out, const char *what,
                          dq_diag *diag);

#endif
