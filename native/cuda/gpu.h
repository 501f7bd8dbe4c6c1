// gpu.h: the GPUs of this process: one context each, which lives as long as the process.
#ifndef DQI_CUDA_GPU_H
#define DQI_CUDA_GPU_H

#include "core/atomics.h"
#include "cuda/driver.h"
#include "cuda/dq_cuda.h"

#define DQI_MAX_GPUS    16
#define DQI_MAX_MODULES 16

// A module's text, and what the driver made of it.
typedef struct dqi_gpu_module {
    const char *ptx;
    cu_module module;
} dqi_gpu_module;

typedef struct dqi_gpu {
    const dqi_cuda_driver *cu;
    dq_gpu_info info;
    cu_device device;
    cu_context context;
    dqi_gpu_module modules[DQI_MAX_MODULES]; // of shipped kernels, those that were needed
    _Atomic uint32_t users;                  // kernels of scripts, and movers
    _Atomic cu_result lost; // the first error from which the context doesn't recover; 0: it works
} dqi_gpu;

// The GPU of this number with its context, made at the first call. `what` names who asks in errors. NULL:
// diag says why. Any thread.
dqi_gpu *dqi_gpu_open(int32_t number, const char *what, dq_diag *diag);
// From now on this thread's calls are for that GPU. Cheap where they are already.
cu_result dqi_gpu_enter(dqi_gpu *g);
// A function of a module, in the GPU's memory already. The driver would put it there at its first launch, and
// wait for all that runs, a persistent kernel too. Drivers before CUDA 12.4 find it there.
cu_result dqi_gpu_function(dqi_gpu *g, cu_module module, const char *name, cu_function *out);
// A kernel of a module that the program ships, PTX with its terminating zero. `what` names who asks.
int dqi_gpu_kernel(dqi_gpu *g, const char *ptx, const char *name, cu_function *out, const char *what,
                   dq_diag *diag);
// What works on it for the program: kernels of scripts that were made, and what the program's stages move
// with.
void dqi_gpu_count(dqi_gpu *g, int more);
uint32_t dqi_gpu_users(const dqi_gpu *g);
// Notes an error that calls on g came back with: the GPU counts as lost from the first one on, as CUDA's
// contexts do. NOT_READY and OUT_OF_MEMORY are none.
void dqi_gpu_note(dqi_gpu *g, cu_result err);
// Whether nothing is under way in the stream; waits for that, for a second at most: a GPU that counts as lost
// may go on with what it had begun.
bool dqi_gpu_idle(dqi_gpu *g, cu_stream stream);
// From now on the GPU counts as lost.
void dqi_gpu_lose(dqi_gpu *g, cu_result err);
// Whether the GPU is lost; its words go to buf (len 0: not wanted).
bool dqi_gpu_lost(dqi_gpu *g, char *buf, size_t len);

#endif
