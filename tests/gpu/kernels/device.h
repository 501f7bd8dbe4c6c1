// device.h: a GPU through the driver's own interface, opened at run time: no toolkit is needed to build this.
// Every call that fails ends the program with its name.
#ifndef DEVICE_H
#define DEVICE_H

#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef struct cu_module *cu_module;
typedef struct cu_function *cu_function;
typedef struct cu_stream *cu_stream;
typedef struct cu_event *cu_event;
typedef struct cu_graph *cu_graph;
typedef struct cu_graph_exec *cu_graph_exec;
typedef struct cu_context *cu_context;
typedef uint64_t cu_ptr;

// name, symbol, arguments
#define DEVICE_CALLS(X)                                                                                      \
    X(init, "cuInit", unsigned)                                                                              \
    X(device_get, "cuDeviceGet", int *, int)                                                                 \
    X(device_name, "cuDeviceGetName", char *, int, int)                                                      \
    X(device_attribute, "cuDeviceGetAttribute", int *, int, int)                                             \
    X(context_retain, "cuDevicePrimaryCtxRetain", cu_context *, int)                                         \
    X(context_set, "cuCtxSetCurrent", cu_context)                                                            \
    X(module_load, "cuModuleLoadDataEx", cu_module *, const void *, unsigned, int *, void **)                \
    X(module_function, "cuModuleGetFunction", cu_function *, cu_module, const char *)                        \
    X(function_attribute, "cuFuncGetAttribute", int *, int, cu_function)                                     \
    X(occupancy, "cuOccupancyMaxActiveBlocksPerMultiprocessor", int *, cu_function, int, size_t)             \
    X(mem_alloc, "cuMemAlloc_v2", cu_ptr *, size_t)                                                          \
    X(mem_free, "cuMemFree_v2", cu_ptr)                                                                      \
    X(host_alloc, "cuMemHostAlloc", void **, size_t, unsigned)                                               \
    X(host_free, "cuMemFreeHost", void *)                                                                    \
    X(copy_in, "cuMemcpyHtoDAsync_v2", cu_ptr, const void *, size_t, cu_stream)                              \
    X(copy_out, "cuMemcpyDtoHAsync_v2", void *, cu_ptr, size_t, cu_stream)                                   \
    X(copy, "cuMemcpyDtoDAsync_v2", cu_ptr, cu_ptr, size_t, cu_stream)                                       \
    X(fill, "cuMemsetD8Async", cu_ptr, unsigned char, size_t, cu_stream)                                     \
    X(stream_create, "cuStreamCreate", cu_stream *, unsigned)                                                \
    X(stream_wait, "cuStreamSynchronize", cu_stream)                                                         \
    X(launch, "cuLaunchKernel", cu_function, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned,     \
      unsigned, cu_stream, void **, void **)                                                                 \
    X(event_create, "cuEventCreate", cu_event *, unsigned)                                                   \
    X(event_record, "cuEventRecord", cu_event, cu_stream)                                                    \
    X(event_wait, "cuEventSynchronize", cu_event)                                                            \
    X(event_between, "cuEventElapsedTime", float *, cu_event, cu_event)                                      \
    X(capture, "cuStreamBeginCapture_v2", cu_stream, int)                                                    \
    X(capture_end, "cuStreamEndCapture", cu_stream, cu_graph *)                                              \
    X(graph_make, "cuGraphInstantiateWithFlags", cu_graph_exec *, cu_graph, unsigned long long)              \
    X(graph_run, "cuGraphLaunch", cu_graph_exec, cu_stream)                                                  \
    X(graph_exec_free, "cuGraphExecDestroy", cu_graph_exec)                                                  \
    X(graph_free, "cuGraphDestroy", cu_graph)

static struct {
#define DEVICE_FIELD(name, symbol, ...) int (*name)(__VA_ARGS__);
    DEVICE_CALLS(DEVICE_FIELD)
    int number, multiprocessors;
    char model[96];
    cu_stream stream;
} gpu;

static inline void device_must(int err, const char *what) {
    if (err == 0) return;
    fprintf(stderr, "%s: CUDA error %d\n", what, err);
    exit(1);
}
#define CU(name, ...) device_must(gpu.name(__VA_ARGS__), #name)

static inline double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

// False: there is no driver or no GPU; why is printed.
static inline bool device_open(void) {
    const char *named = getenv("DAQIRI_CUDA");
    void *lib = dlopen(named && *named ? named : "libcuda.so.1", RTLD_NOW);
    if (!lib) return printf("no CUDA driver: %s\n", dlerror()), false;
#define DEVICE_SYMBOL(name, symbol, ...)                                                                     \
    *(void **)&gpu.name = dlsym(lib, symbol);                                                                \
    if (!gpu.name) return printf("the CUDA driver lacks %s\n", symbol), false;
    DEVICE_CALLS(DEVICE_SYMBOL)
    if (gpu.init(0) != 0 || gpu.device_get(&gpu.number, 0) != 0) return printf("no GPU\n"), false;
    cu_context context;
    CU(device_name, gpu.model, sizeof gpu.model, gpu.number);
    CU(device_attribute, &gpu.multiprocessors, 16, gpu.number);
    CU(context_retain, &context, gpu.number);
    CU(context_set, context);
    CU(stream_create, &gpu.stream, 1);
    return true;
}

// The modules that were loaded, by their text.
static inline cu_function device_function(const char *ptx, const char *name) {
    static struct {
        const char *ptx;
        cu_module module;
    } known[16];
    uint32_t i = 0;
    while (known[i].ptx && known[i].ptx != ptx)
        i++;
    if (!known[i].ptx) {
        CU(module_load, &known[i].module, ptx, 0, NULL, NULL);
        known[i].ptx = ptx;
    }
    cu_function f;
    CU(module_function, &f, known[i].module, name);
    return f;
}

static inline cu_ptr device_memory(size_t n) {
    cu_ptr p;
    CU(mem_alloc, &p, n);
    return p;
}

// Pinned, and at the same address for the GPU.
static inline void *host_memory(size_t n) {
    void *p;
    CU(host_alloc, &p, n, 1 | 2);
    return p;
}

static inline void device_launch(cu_function f, uint32_t blocks, uint32_t threads, void *argument) {
    CU(launch, f, blocks, 1, 1, threads, 1, 1, 0, gpu.stream, (void *[]){argument}, NULL);
}

static inline void device_wait(void) { CU(stream_wait, gpu.stream); }

#endif
