// resident.h: persistent kernels in the program's own context, and driver calls that would wait for their
// end.
//
// While a kernel runs, the driver waits for its end in calls that load or unload a module, free memory or
// unregister pages, and in the first launch of a kernel with more local memory than those before it. It does
// not in allocations, registrations, copies, calls on streams and other launches (H200, driver 580).
#ifndef DQI_CUDA_RESIDENT_H
#define DQI_CUDA_RESIDENT_H

#include "cuda/gpu.h"

// A persistent kernel, from before its launch on. The launcher owns it; `next` belongs to the list.
typedef struct dqi_resident {
    struct dqi_resident *next;
    cu_stream stream; // of its launch alone
    char what[80];
    bool launched;
} dqi_resident;

// Adds r before its launch, after calls that are being made.
void dqi_resident_begin(dqi_gpu *g, dqi_resident *r);
// Marks r as launched: it runs until its stream is idle.
void dqi_resident_launched(dqi_resident *r);
// Removes r and makes the calls that no other kernel defers. Waits up to a second for its end; false: it
// still runs, and the list keeps r.
bool dqi_resident_end(dqi_gpu *g, dqi_resident *r);

// Loads a module of PTX. RESOURCE_IN_USE: a persistent kernel runs. The driver's log is part of other errors,
// with PTX line numbers. `what` names the object in errors.
int dqi_gpu_load(dqi_gpu *g, const char *ptx, const char *what, cu_module *out, dq_diag *diag);
// Returns a function of a module, loaded into GPU memory, and reserves its local memory. Otherwise the driver
// would do both at its first launch, and wait for all running kernels. Drivers before CUDA 12.4 load it
// eagerly.
cu_result dqi_gpu_function(dqi_gpu *g, cu_module module, const char *name, cu_function *out);

// Frees an object with fn, now or after the last persistent kernel has ended. g NULL: now. Any thread.
typedef void dqi_gpu_free_fn(dqi_gpu *g, void *at, size_t bytes);
void dqi_gpu_free(dqi_gpu *g, dqi_gpu_free_fn *fn, void *at, size_t bytes);
// The same with cuMemFree.
void dqi_gpu_free_memory(dqi_gpu *g, cu_ptr at);

#endif
