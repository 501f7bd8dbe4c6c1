// launch.h: launches, as the stage sees them.
#ifndef DQI_COMPUTE_LAUNCH_H
#define DQI_COMPUTE_LAUNCH_H

#include "compute/compute.h"
#include "core/histogram.h"

// dq_launch; where b is not NULL it stands for arguments without a burst of their own, and is the caller's to
// hold. ended: of launches so far, those that have ended; they do so in order.
int dqi_launch(dq_launcher *l, const dq_kernel_arg *args, uint32_t n, dq_burst *b, dq_op *op, dq_diag *diag);
uint64_t dqi_launcher_ended(dq_launcher *l);
// Whether one more would go out now.
bool dqi_launcher_room(dq_launcher *l);
bool dqi_launcher_lost(const dq_launcher *l);
// ns until the next look makes sense; INT64_MAX: nothing is under way. Who looks.
int64_t dqi_launcher_next(const dq_launcher *l);
dqi_gpu *dqi_launcher_gpu(const dq_launcher *l); // NULL: the host
// Each launch's ns, until a look saw its ticket, are noted in ran by who looks. Before the first launch.
void dqi_launcher_time(dq_launcher *l, dqi_histogram *ran);

#endif
