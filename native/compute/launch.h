// launch.h: launches, internal interface for the stage.
#ifndef DQI_COMPUTE_LAUNCH_H
#define DQI_COMPUTE_LAUNCH_H

#include "compute/compute.h"
#include "core/histogram.h"

// Like dq_launch; b, if not NULL, is used for arguments without a burst, and referenced by the caller.
// dqi_launcher_ended returns the number of completed launches; they complete in order.
int dqi_launch(dq_launcher *l, const dq_kernel_arg *args, uint32_t n, dq_burst *b, dq_op *op, dq_diag *diag);
uint64_t dqi_launcher_ended(dq_launcher *l);
// Whether another launch would be accepted.
bool dqi_launcher_room(dq_launcher *l);
bool dqi_launcher_lost(const dq_launcher *l);
// Returns the ns until the next check; INT64_MAX: nothing is pending. Thread that calls dq_launcher_look.
int64_t dqi_launcher_next(const dq_launcher *l);
dqi_gpu *dqi_launcher_gpu(const dq_launcher *l); // NULL: the host
// Makes dq_launcher_look record in ran the ns of each launch until its ticket was seen. Before the first
// launch.
void dqi_launcher_time(dq_launcher *l, dqi_histogram *ran);

#endif
