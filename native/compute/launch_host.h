// launch_host.h: launches on the host, executed sequentially by a worker (worker.h) per launcher.
#ifndef DQI_COMPUTE_LAUNCH_HOST_H
#define DQI_COMPUTE_LAUNCH_HOST_H

#include "compute/worker.h"

#define DQI_LAUNCHES_NAME "daqiri-run: launches"

// Maximum maps of a launch: its scratch memory, and for each argument an array or a burst's segments.
#define DQI_LAUNCH_MAPS (1 + DQ_MAX_KERNEL_ARGS * DQ_MAX_SEGS)

// n_maps of a job with the same maps as the previous job.
#define DQI_AS_BEFORE UINT32_MAX

// Message of a launch. The first n_maps maps are sent; descriptor k is the file of map k. The worker's first
// message is the grid, with the library.
typedef struct dqi_job {
    uint32_t n_args, n_maps;
    uint64_t values[DQ_MAX_KERNEL_ARGS]; // of the arguments
    dqi_worker_map maps[DQI_LAUNCH_MAPS];
} dqi_job;

// State of a launcher on the host.
typedef struct dqi_launch_host {
    pthread_mutex_t lock;
    dqi_worker worker;
    bool is; // the worker is running
    uint8_t *scratch;
    size_t scratch_bytes;
    dqi_job job; // the last one
    int files[DQI_LAUNCH_MAPS];
    _Atomic bool stopped; // running kernels are to be killed
} dqi_launch_host;

void dqi_launch_host_init(dqi_launch_host *h);
// Runs the kernel and returns when it has ended. Its worker is killed after dq_launcher_stop, and 5 s after
// the session of b, if any, has ended receiving. Any thread.
int dqi_launch_host_run(dqi_launch_host *h, const dq_kernel *k, const dq_grid *grid,
                        const dq_kernel_arg *args, uint32_t n, const dq_burst *b, dq_diag *diag);
// Ends the worker after the running kernel: it then maps no memory of the program.
void dqi_launch_host_rest(dqi_launch_host *h);
void dqi_launch_host_free(dqi_launch_host *h);

#endif
