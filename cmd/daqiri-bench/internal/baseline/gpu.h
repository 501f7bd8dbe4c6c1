// gpu.h: how fast the shipped kernels are alone, and what the GPU's own copies do, for daqiri-bench.
#ifndef DQ_BASELINE_GPU_H
#define DQ_BASELINE_GPU_H

#include "core/dq_core.h"
#include "reorder/dq_reorder.h"

// Packets in a GPU's memory and in host memory that it reads, and room for what becomes of them.
typedef struct dq_baseline_gpu dq_baseline_gpu;

typedef struct dq_baseline_gpu_job {
    uint32_t payload, payload_offset; // bytes of a packet that are kept; where they begin
    uint32_t packets;                 // of a list; fewer where they don't fit
    dq_data_types types;              // that payloads have and get; both BYTES: they are moved
    int32_t host;                     // 1: packets and list lie in host memory; 0: on the GPU
    double seconds;
} dq_baseline_gpu_job;

typedef struct dq_baseline_gpu_figures {
    double bytes_per_s;                // of payload, as it came
    uint64_t bytes, packets, launches; // of all that was launched, to warm up and to compare, too
} dq_baseline_gpu_figures;

// Opens GPU 0 with up to `bytes` of memory for packets, as much for the rest, and up to 256 MiB of the
// host's; together at most two thirds of what the GPU has free. 0 or a negative dq_err in words. Blocks.
int dq_baseline_gpu_open(uint64_t bytes, dq_baseline_gpu **out, dq_diag *diag);
// NULL is fine.
void dq_baseline_gpu_close(dq_baseline_gpu *g);
// Launches lists of packets that are shuffled within 64 as one graph, again and again, over more memory than
// a cache holds; the median of some rounds. The last round is compared with the host's way. Blocks.
int dq_baseline_gpu_run(dq_baseline_gpu *g, const dq_baseline_gpu_job *job, dq_baseline_gpu_figures *out,
                        dq_diag *diag);
// The driver's copy to the GPU's memory, from host memory or there; *bytes_per_s of what is copied. Blocks.
int dq_baseline_gpu_copy(dq_baseline_gpu *g, int32_t host, double seconds, double *bytes_per_s,
                         dq_diag *diag);

#endif
