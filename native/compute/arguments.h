// arguments.h: arguments of a launch, as the kernel gets them.
#ifndef DQI_COMPUTE_ARGUMENTS_H
#define DQI_COMPUTE_ARGUMENTS_H

#include "compute/compute.h"

// device.h of runtime/kernel declares the same two for kernels.
typedef struct dqi_kernel_packet {
    uint64_t data;
    uint32_t bytes, flow;
} dqi_kernel_packet;

typedef struct dqi_kernel_burst {
    uint32_t packets, segments;
    uint64_t at; // of segment s of packet i: packet i * segments + s
} dqi_kernel_burst;

// Whether the kernel reaches what the arguments name, on gpu (NULL: the host). b: the stage's burst, or NULL.
int dqi_arguments_check(dqi_gpu *gpu, const char *what, const dq_kernel_arg *args, uint32_t n,
                        const dq_burst *b, dq_diag *diag);
// Bytes that dqi_arguments_fill takes at most.
uint64_t dqi_arguments_bytes(const dq_kernel_arg *args, uint32_t n, const dq_burst *b);
// The value of each argument; what they point to beside arrays and packets goes to scratch.
void dqi_arguments_fill(const dq_kernel_arg *args, uint32_t n, const dq_burst *b, uint8_t *scratch,
                        uint64_t *values);

#endif
