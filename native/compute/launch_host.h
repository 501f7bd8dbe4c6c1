// launch_host.h: launches on the host. They run in a worker (worker.h) of their launcher, one after another.
#ifndef DQI_COMPUTE_LAUNCH_HOST_H
#define DQI_COMPUTE_LAUNCH_HOST_H

#include "compute/worker.h"

#define DQI_LAUNCHES_NAME "daqiri-run: launches"

// Most maps of a launch: its scratch memory, and for each argument an array or a burst's segments.
#define DQI_LAUNCH_MAPS (1 + DQ_MAX_KERNEL_ARGS * DQ_MAX_SEGS)

// n_maps of a job whose kernel is given what that of the job before was given.
#define DQI_AS_BEFORE UINT32_MAX

// A launch, as its worker gets it. The first n_maps maps are sent; descriptor k is map k's file. The worker's
// first message is the grid, with the library.
typedef struct dqi_job {
    uint32_t n_args, n_maps;
    uint64_t values[DQ_MAX_KERNEL_ARGS]; // of the arguments
    dqi_worker_map maps[DQI_LAUNCH_MAPS];
} dqi_job;

// What a launcher on the host has.
typedef struct dqi_launch_host {
    pthread_mutex_t lock;
    dqi_worker worker;
    bool is; // there is a worker
    uint8_t *scratch;
    size_t scratch_bytes;
    dqi_job job; // the last
    int files[DQI_LAUNCH_MAPS];
    _Atomic bool stopped; // what runs is to end
} dqi_launch_host;

void dqi_launch_host_init(dqi_launch_host *h);
// Runs the kernel, and returns when it has ended. It ends early, by the end of its worker, after
// dqi_launch_host_stop, and 5 s after the session of b, where there is one, has ended receiving. Any thread.
int dqi_launch_host_run(dqi_launch_host *h, const dq_kernel *k, const dq_grid *grid,
                        const dq_kernel_arg *args, uint32_t n, const dq_burst *b, dq_diag *diag);
// Ends the worker, once what runs has ended: it no longer maps anything of the program's.
void dqi_launch_host_rest(dqi_launch_host *h);
void dqi_launch_host_free(dqi_launch_host *h);

#endif
