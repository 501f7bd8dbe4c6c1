// bare_reorder.h: how fast a reorder stage puts payloads in order, and how fast memcpy moves the same bytes
// to the same places, for daqiri-run bench.
#ifndef DQ_BARE_REORDER_H
#define DQ_BARE_REORDER_H

#include "core/dq_core.h"

typedef struct dq_bare_reorder {
    uint32_t payload; // bytes of a packet that the block keeps
    int32_t copy;     // 1: memcpy alone; 0: the stage
    int32_t heaps;    // 1: a heaps stage instead, whose heaps are the blocks
    double seconds;
} dq_bare_reorder;

// Puts bursts of numbered packets into blocks of 4 MiB in one thread, again and again. The packets lie in
// 2048 buffers; blocks are held for a while, as a writer does, so that 16 buffers of them come round.
// *bytes_per_s: of payload, of a second of the thread's CPU time, in the median of many rounds. 0 or a
// negative dq_err in words. Blocks.
int dq_bare_reorder_run(const dq_bare_reorder *conf, double *bytes_per_s, dq_diag *diag);

#endif
