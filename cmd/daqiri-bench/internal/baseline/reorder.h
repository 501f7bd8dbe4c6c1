// reorder.h: how fast a reorder stage puts payloads in order, and how fast memcpy moves the same bytes
// to the same places, for daqiri-bench.
#ifndef DQ_BASELINE_REORDER_H
#define DQ_BASELINE_REORDER_H

#include "core/dq_core.h"

typedef struct dq_baseline_reorder {
    uint32_t payload; // bytes of a packet that the block keeps
    int32_t copy;     // 1: memcpy alone; 0: the stage
    int32_t heaps;    // 1: a heaps stage instead, whose heaps are the blocks
    int32_t gpu;      // 1: the blocks lie in the memory of GPU 0, which reads the packets where they are
    double seconds;
} dq_baseline_reorder;

typedef struct dq_baseline_reorder_figures {
    double bytes_per_s;      // of payload
    uint64_t packets, bytes; // payloads that were put in order, in rounds that warm up, too
    double plan_ns;          // with gpu: time a packet of deciding, listing and launching
} dq_baseline_reorder_figures;

// Puts bursts of numbered packets into blocks of 4 MiB in one thread, again and again. The packets lie in
// 2048 buffers, with gpu in 16384 pinned ones; blocks are held for a while, as a writer does, so that 16
// buffers of them come round. bytes_per_s is of a second of the thread's CPU time in the median of many
// rounds; with gpu of a second by the clock, until the GPU has moved all. 0 or a negative dq_err in words.
// Blocks.
int dq_baseline_reorder_run(const dq_baseline_reorder *conf, dq_baseline_reorder_figures *out, dq_diag *diag);

#endif
