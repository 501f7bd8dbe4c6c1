// gpu.h: the GPUs of this process: one context each, which lives until the process exits.
#ifndef DQI_CUDA_GPU_H
#define DQI_CUDA_GPU_H

#include "core/atomics.h"
#include "cuda/dq_cuda.h"
#include "cuda/driver.h"

#define DQI_MAX_GPUS    16
#define DQI_MAX_MODULES 16

// PTX of a module, and the loaded module.
typedef struct dqi_gpu_module {
    const char *ptx;
    cu_module module;
} dqi_gpu_module;

typedef struct dqi_gpu {
    const dqi_cuda_driver *cu;
    dq_gpu_info info;
    cu_device device;
    cu_context context;
    dqi_gpu_module modules[DQI_MAX_MODULES]; // shipped kernels in use
    _Atomic uint32_t users;                  // number of user kernels and movers
    _Atomic cu_result lost;                  // first unrecoverable error of the context; 0: none
    // resident.c, with its lock
    struct dqi_resident *residents; // persistent kernels in the context
    struct dqi_deferred *deferred;  // objects to free after their end
    int local_bytes;                // of each thread's local memory that the driver keeps
} dqi_gpu;

// Returns the GPU of this number with its context, created at the first call. `what` names the object in
// errors. NULL: the reason is in diag. Any thread.
dqi_gpu *dqi_gpu_open(int32_t number, const char *what, dq_diag *diag);
// Makes the GPU's context current on this thread. Cheap if it is already.
cu_result dqi_gpu_enter(dqi_gpu *g);
// Returns a kernel of a shipped module, zero-terminated PTX. `what` names the object in errors.
int dqi_gpu_kernel(dqi_gpu *g, const char *ptx, const char *name, cu_function *out, const char *what,
                   dq_diag *diag);
// Adjusts and returns the number of users: user kernels, and movers of stages.
void dqi_gpu_count(dqi_gpu *g, int more);
uint32_t dqi_gpu_users(const dqi_gpu *g);
// Records an error returned by a call on g: from the first one on the GPU counts as lost, as CUDA contexts do
// not recover. NOT_READY and OUT_OF_MEMORY are ignored.
void dqi_gpu_note(dqi_gpu *g, cu_result err);
// Waits up to a second until the stream is idle; false: it is not. A GPU that counts as lost may continue
// work that it had begun.
bool dqi_gpu_idle(dqi_gpu *g, cu_stream stream);
// Marks the GPU as lost.
void dqi_gpu_lose(dqi_gpu *g, cu_result err);
// Reports whether the GPU is lost, with a description in buf (len 0: not wanted).
bool dqi_gpu_lost(dqi_gpu *g, char *buf, size_t len);

#endif
