// worker.h: what the program and the worker of a persistent kernel say to each other. It answers when the
// kernel begins, or why it can't, and once more when it has ended.
#ifndef DQI_PROXY_WORKER_H
#define DQI_PROXY_WORKER_H

#include "compute/worker.h"
#include "gpunetio/host/context.h"

#define DQI_WORKER_NAME "daqiri-run: kernel"

// Files that come with the plan, in this order; one that there is none of is the shared file again. Behind
// them come the pieces of the GPU's memory.
enum { DQI_FILE_LIBRARY, DQI_FILE_SMALL, DQI_FILE_HUGE, DQI_FILE_SHARED, DQI_FILES };

#define DQI_WORKER_MAPS   (2 + DQI_GN_ROWS + DQ_MAX_KERNEL_ARGS)
#define DQI_WORKER_PIECES 128 // of a GPU's memory

// Of a kernel on a GPU.
typedef struct dqi_worker_gpu {
    uint64_t ptx, block; // where they lie; ptx 0: the library is the kernel, on the host
    int32_t number;
    uint32_t n_pieces;
    uint64_t pieces[DQI_WORKER_PIECES]; // bytes of each; it lies wherever the worker's GPU has room
    uint8_t of_arg[DQ_MAX_KERNEL_ARGS]; // 1 + the piece that the argument points to; 0: none
    uint8_t of_row[DQI_GN_ROWS];        // and the row of the context's regions
    char entry[256];
} dqi_worker_gpu;

// The program's first message.
typedef struct dqi_worker_plan {
    dq_grid grid;
    uint32_t n_args, n_maps;
    uint64_t values[DQ_MAX_KERNEL_ARGS]; // of the arguments
    dqi_worker_map maps[DQI_WORKER_MAPS];
    dqi_worker_gpu gpu;
} dqi_worker_plan;

// ---- the program's side: worker_plan.c --------------------------------------------------------------------

// A plan with what it names.
typedef struct dqi_worker_kit {
    dqi_worker_plan plan;
    int files[DQI_FILES + DQI_WORKER_PIECES];
    uint8_t *ptx; // shared pages
    size_t ptx_bytes;
} dqi_worker_kit;

// What the kernel of the context is given: the context, its regions, its arrays. After an error, too, out is
// given to _free.
int dqi_worker_pack(const dq_gn *g, const dq_kernel *k, const dq_grid *grid, const dq_kernel_arg *args,
                    uint32_t n, dqi_worker_kit *out, dq_diag *diag);
void dqi_worker_unpack(dqi_worker_kit *kit);
// Starts a worker for it; its kernel begins. Blocks until then. what names the kernel in errors.
int dqi_gn_worker_start(const char *what, dqi_worker_kit *kit, dqi_worker *out, dq_diag *diag);

// ---- the worker's side ------------------------------------------------------------------------------------

// Runs the kernel of plan->gpu to its end, on memory that is mapped. files: of the pieces.
_Noreturn void dqi_worker_on_gpu(dqi_worker_plan *plan, const int *files);

#endif
