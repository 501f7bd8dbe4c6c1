// arguments.h: conversion of launch arguments to the form kernels expect.
#ifndef DQI_COMPUTE_ARGUMENTS_H
#define DQI_COMPUTE_ARGUMENTS_H

#include "compute/compute.h"

// Also declared for kernels in device.h of runtime/kernel.
typedef struct dqi_kernel_packet {
    uint64_t data;
    uint32_t bytes, flow;
} dqi_kernel_packet;

typedef struct dqi_kernel_burst {
    uint32_t packets, segments;
    uint64_t at; // segment s of packet i is entry i * segments + s
} dqi_kernel_burst;

// Checks that a kernel on gpu (NULL: the host) can access the memory of the arguments. b: the stage's burst,
// or NULL.
int dqi_arguments_check(dqi_gpu *gpu, const char *what, const dq_kernel_arg *args, uint32_t n,
                        const dq_burst *b, dq_diag *diag);
// Returns the maximum bytes used by dqi_arguments_fill.
uint64_t dqi_arguments_bytes(const dq_kernel_arg *args, uint32_t n, const dq_burst *b);
// Computes the value of each argument; data other than arrays and packets are copied to scratch.
void dqi_arguments_fill(const dq_kernel_arg *args, uint32_t n, const dq_burst *b, uint8_t *scratch,
                        uint64_t *values);

#endif
