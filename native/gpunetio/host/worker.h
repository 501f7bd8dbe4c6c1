// worker.h: protocol between the program and the worker of a persistent kernel. The worker answers when the
// kernel starts, or with an error, and again when it has ended.
#ifndef DQI_PROXY_WORKER_H
#define DQI_PROXY_WORKER_H

#include "compute/worker.h"
#include "gpunetio/host/context.h"

#define DQI_WORKER_NAME "daqiri-run: kernel"

// Descriptors sent with the plan, in this order; a missing one is replaced by the shared file. The pieces of
// GPU memory follow.
enum { DQI_FILE_LIBRARY, DQI_FILE_SMALL, DQI_FILE_HUGE, DQI_FILE_SHARED, DQI_FILES };

#define DQI_WORKER_MAPS   (2 + DQI_GN_ROWS + DQ_MAX_KERNEL_ARGS)
#define DQI_WORKER_PIECES 128 // of a GPU's memory

// Parameters of a kernel on a GPU.
typedef struct dqi_worker_gpu {
    uint64_t ptx, block; // addresses; ptx 0: kernel of the library, on the host
    int32_t number;
    uint32_t n_pieces;
    uint64_t pieces[DQI_WORKER_PIECES]; // bytes of each; the worker maps it at any address
    uint8_t of_arg[DQ_MAX_KERNEL_ARGS]; // 1 + the piece of a pointer argument, to which its value is added;
                                        // 0: none
    uint8_t of_row[DQI_GN_ROWS];        // the same for the rows of the context's regions
    char entry[256];
} dqi_worker_gpu;

// First message of the program.
typedef struct dqi_worker_plan {
    dq_grid grid;
    uint32_t n_args, n_maps;
    uint64_t values[DQ_MAX_KERNEL_ARGS]; // of the arguments
    dqi_worker_map maps[DQI_WORKER_MAPS];
    dqi_worker_gpu gpu;
} dqi_worker_plan;

// ---- in the program: worker_plan.c ------------------------------------------------------------------------

// A plan with its descriptors and PTX.
typedef struct dqi_worker_kit {
    dqi_worker_plan plan;
    int files[DQI_FILES + DQI_WORKER_PIECES];
    uint8_t *ptx; // shared pages
    size_t ptx_bytes;
} dqi_worker_kit;

// Collects the memory of the context's kernel: context, regions and arrays. Also after an error, out must be
// passed to dqi_worker_unpack.
int dqi_worker_pack(const dq_gn *g, const dq_kernel *k, const dq_grid *grid, const dq_kernel_arg *args,
                    uint32_t n, dqi_worker_kit *out, dq_diag *diag);
void dqi_worker_unpack(dqi_worker_kit *kit);
// Starts a worker with the plan; blocks until its kernel starts. what: the kernel's name in errors.
int dqi_gn_worker_start(const char *what, dqi_worker_kit *kit, dqi_worker *out, dq_diag *diag);

// ---- in the worker ----------------------------------------------------------------------------------------

// Runs the kernel of plan->gpu to its end, on mapped memory. files: of the pieces.
_Noreturn void dqi_worker_on_gpu(dqi_worker_plan *plan, const int *files);

#endif
