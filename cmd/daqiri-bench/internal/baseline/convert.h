// convert.h: how fast elements are converted from memory to memory, for daqiri-bench: the engine's
// conversion and nothing around it.
#ifndef DQ_BASELINE_CONVERT_H
#define DQ_BASELINE_CONVERT_H

#include "core/dq_core.h"
#include "reorder/dq_reorder.h"

typedef struct dq_baseline_convert {
    dq_data_types types; // bytes to bytes: a copy
    double seconds;
} dq_baseline_convert;

// Converts 64 MiB in pieces of 8 KiB, as payloads are, one after the other, again and again. *bytes_per_s: of
// input and output, of a second of the thread's CPU time, in the median of many rounds. 0 or a negative
// dq_err in words. Blocks.
int dq_baseline_convert_run(const dq_baseline_convert *conf, double *bytes_per_s, dq_diag *diag);

#endif
