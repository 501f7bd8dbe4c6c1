// dq_cuda.h: the GPUs of the host and their capabilities, and the CUDA source compiler.
#ifndef DQ_CUDA_H
#define DQ_CUDA_H

#include "core/dq_core.h"

typedef struct dq_gpu_info {
    int32_t number;       // number in configurations (affinity of kind device)
    char name[64];        // as reported by the driver
    char bus[24];         // PCI address: "0000:8a:00.0"
    int32_t major, minor; // compute capability
    int32_t multiprocessors;
    uint64_t bytes;     // bytes of memory
    int32_t numa_node;  // nearest node; -1: unknown
    int32_t integrated; // 1: shares the host's memory
    int32_t exports;    // 1: its memory can be exported to another process as a file descriptor
    int32_t gpudirect;  // 1: network devices can reach its memory (GPUDirect RDMA)
    int32_t dma_buf;    // 1: also by DMA-BUF
    int32_t writes;     // 1: streams can write 64 bits after kernels: required by user kernels
} dq_gpu_info;

// Returns the driver's version (12040: 12.4) and its number of GPUs. NOT_SUPPORTED: no driver, or no GPU,
// with the reason in diag. Opens the driver, but creates no context. Any thread.
int dq_gpu_count(int32_t *driver_version, uint32_t *n, dq_diag *diag);
// Describes the GPU of this number.
int dq_gpu_read(int32_t number, dq_gpu_info *out, dq_diag *diag);

// ---- NVRTC, the CUDA source compiler: opened by the first of these calls; DAQIRI_NVRTC names another
// library. NOT_SUPPORTED: not available; `what` names the object in errors. Any thread.

int dq_nvrtc_version(const char *what, int32_t *major, int32_t *minor, dq_diag *diag);
// Returns the newest compute capability that it can compile for, at most wanted: 90 for 9.0.
int dq_nvrtc_arch(const char *what, int32_t wanted, int32_t *arch, dq_diag *diag);

typedef struct dq_nvrtc_source {
    const char *what, *text;
    const char *name;  // name of the text in compiler messages
    const char *entry; // the kernel's name in the source
    const char *const *options;
    const char *const *headers; // texts that it may include, by name
    const char *const *header_names;
    uint32_t n_options, n_headers;
} dq_nvrtc_source;

typedef struct dq_nvrtc_output {
    char *ptx, *name; // name: of the kernel in the PTX
    char *log;        // compiler messages, also after a failure; NULL: none
} dq_nvrtc_output;

// Compiles src. INVALID_PARAMETER: compile errors, in the log. Free out with dq_nvrtc_free in any case.
int dq_nvrtc_compile(const dq_nvrtc_source *src, dq_nvrtc_output *out, dq_diag *diag);
void dq_nvrtc_free(dq_nvrtc_output *out);

#endif
