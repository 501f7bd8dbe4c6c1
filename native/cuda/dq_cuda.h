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
    int32_t writes;     // 1: a stream can write 64 bits to memory, behind its kernels: users' need it
} dq_gpu_info;

// The driver's version, 12040 for 12.4, and how many GPUs it knows. NOT_SUPPORTED: there is no driver, or no
// GPU; diag says why. Opens the driver, but makes no context. Any thread.
int dq_gpu_count(int32_t *driver_version, uint32_t *n, dq_diag *diag);
// What the GPU of this number is.
int dq_gpu_read(int32_t number, dq_gpu_info *out, dq_diag *diag);

// ---- NVRTC, which compiles CUDA source: opened by the first of these calls; DAQIRI_NVRTC names another
// library. NOT_SUPPORTED: there is none; `what` names who asks. Any thread.

int dq_nvrtc_version(const char *what, int32_t *major, int32_t *minor, dq_diag *diag);
// The newest compute capability that it compiles for and that is no newer than wanted: 90 for 9.0.
int dq_nvrtc_arch(const char *what, int32_t wanted, int32_t *arch, dq_diag *diag);

typedef struct dq_nvrtc_source {
    const char *what, *text;
    const char *name;  // of the text, in the compiler's words
    const char *entry; // the kernel's name in the source
    const char *const *options;
    const char *const *headers; // texts that it may include,
    const char *const *header_names;
    uint32_t n_options, n_headers;
} dq_nvrtc_source;

typedef struct dq_nvrtc_output {
    char *ptx, *name; // name: of the kernel in the PTX
    char *log;        // what the compiler said, also after a failure; NULL
} dq_nvrtc_output;

// INVALID_PARAMETER: it doesn't compile; the log says why. Out is freed by dq_nvrtc_free in any case.
int dq_nvrtc_compile(const dq_nvrtc_source *src, dq_nvrtc_output *out, dq_diag *diag);
void dq_nvrtc_free(dq_nvrtc_output *out);

#endif
