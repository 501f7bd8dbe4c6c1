// compute.h: types shared by the files of this folder.
#ifndef DQI_COMPUTE_H
#define DQI_COMPUTE_H

#include "compute/dq_compute.h"
#include "core/atomics.h"
#include "cuda/gpu_memory.h"
#include "cuda/pinned.h"

#include <pthread.h>

struct dq_stream {
    _Atomic uint32_t refs;
    dqi_gpu *gpu; // NULL: the host
    cu_stream stream;
    char what[80];
};

// Exported as `daqiri_kernel` by a library for the host (runtime/kernel/host.h).
typedef struct dqi_host_kernel {
    const char *types; // types of its arguments
    // Runs the kernel; args has the address of each argument. Returns NULL, or the reason why it can't run.
    const char *(*run)(void *const *args, const uint32_t *grid, const uint32_t *block);
    // Runs one block by its number on the calling thread; blocks may run concurrently.
    const char *(*run_block)(void *const *args, const uint32_t *grid, const uint32_t *block, uint32_t number);
} dqi_host_kernel;

struct dq_kernel {
    _Atomic uint32_t refs;
    _Atomic bool counted; // among the users of its GPU
    dqi_gpu *gpu;         // NULL: runs on the host
    char *ptx, *entry;    // GPU kernel's, for other processes; NULL: from a library
    cu_module module;
    cu_function fn;
    int most_threads; // per block
    void *library;
    int file; // of the library, for other processes; -1: none
    const dqi_host_kernel *host;
    struct dqi_math *math; // library kernel, which runs in `stream`; NULL: not one
    dq_stream *stream;
    char what[80];
};

struct dq_array {
    _Atomic uint32_t refs;
    dqi_gpu *gpu; // with access to it; NULL: CPU only
    uint64_t bytes;
    size_t mapped; // bytes mapped at cpu
    uint8_t *cpu;  // NULL: in the GPU's memory
    dqi_gpu_memory memory;
    cu_ptr device;
    pthread_mutex_t lock; // protects the following fields, for copies
    uint8_t *staging;
    cu_stream stream;
    char what[80];
};

// Add a reference and return the argument, which may be NULL.
dq_stream *dqi_stream_hold(dq_stream *s);
dq_kernel *dqi_kernel_hold(dq_kernel *k);
dq_array *dqi_array_hold(dq_array *a);

// Launches a GPU kernel on the stream: args has the addresses of its arguments. The GPU's context must be
// current.
cu_result dqi_kernel_start(dq_kernel *k, const dq_grid *grid, cu_stream stream, void **args);
// Returns the name of the API call that launches it, for errors: "cuLaunchKernel".
const char *dqi_kernel_call(const dq_kernel *k);

// Counts the kernel among the users of its GPU, or no longer: a persistent one that has ended. NULL: none.
void dqi_kernel_count(dq_kernel *k, bool on);

#endif
