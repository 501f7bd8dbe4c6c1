// pace.h: a paced sender and a receiver that notes with a clock of its own when each packet came, for
// daqiri-run bench: once with the engine's pacer on the loop engine, once with a plain loop that waits for
// each time and writes it to shared memory. The receiver is the caller's thread and never sleeps.
#ifndef DQ_BASELINE_PACE_H
#define DQ_BASELINE_PACE_H

#include "core/dq_core.h"

typedef struct dq_baseline_pace {
    double pps;
    uint32_t n;     // packets
    int32_t engine; // 1: the engine's pacer; 0: the plain loop
} dq_baseline_pace;

// Sends and receives conf->n packets; at[i] is when packet i came, ns of the monotonic clock. Ends early when
// none comes for a second and 10 gaps; *got: how many came. 0 or a negative dq_err with the step that failed
// in diag. Blocks.
int dq_baseline_pace_run(const dq_baseline_pace *conf, int64_t *at, uint32_t *got, dq_diag *diag);

#endif
