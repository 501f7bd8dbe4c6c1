// compute.h: what the files of this folder share.
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

// A library for the host has this under the name daqiri_kernel (runtime/kernel/host.h).
typedef struct dqi_host_kernel {
    const char *types; // of its arguments
    // Runs it: args points to the address of each argument. NULL; or what it can't be run with.
    const char *(*run)(void *const *args, const uint32_t *grid, const uint32_t *block);
    // Runs one block of it by its number, on the calling thread; blocks may run at the same time.
    const char *(*run_block)(void *const *args, const uint32_t *grid, const uint32_t *block, uint32_t number);
} dqi_host_kernel;

struct dq_kernel {
    _Atomic uint32_t refs;
    dqi_gpu *gpu;      // NULL: it runs on the host
    char *ptx, *entry; // of a GPU's, for other processes; NULL: it is a library's
    cu_module module;
    cu_function fn;
    int most_threads; // a block
    void *library;
    int file; // of the library, for other processes; -1: there is none
    const dqi_host_kernel *host;
    struct dqi_math *math; // one of a library's, which runs in `stream`; NULL: it is none
    dq_stream *stream;
    char what[80];
};

struct dq_array {
    _Atomic uint32_t refs;
    dqi_gpu *gpu; // that reaches it; NULL: only the CPU does
    uint64_t bytes;
    size_t mapped; // bytes of the mapping at cpu
    uint8_t *cpu;  // NULL: it is in the GPU's memory
    dqi_gpu_memory memory;
    cu_ptr device;
    pthread_mutex_t lock; // of what follows, for copies
    uint8_t *staging;
    cu_stream stream;
    char what[80];
};

// One holder more. What they are NULL.
dq_stream *dqi_stream_hold(dq_stream *s);
dq_kernel *dqi_kernel_hold(dq_kernel *k);
dq_array *dqi_array_hold(dq_array *a);

// Puts a run of a kernel of a GPU on the stream: args are the addresses of its arguments. The GPU is the
// thread's.
cu_result dqi_kernel_start(dq_kernel *k, const dq_grid *grid, cu_stream stream, void **args);
// What runs it, in the words of whom it is asked: "cuLaunchKernel".
const char *dqi_kernel_call(const dq_kernel *k);

#endif
