// worker.h: what the program and a worker say to each other. A worker is the program started again under a
// name of its own, with a socket; it maps the memory that its kernel is given, at the addresses that the
// program has it at, loads the kernel, runs it, and goes no further.
#ifndef DQI_PROXY_WORKER_H
#define DQI_PROXY_WORKER_H

#include "compute/dq_compute.h"
#include "proxy/port.h"

#define DQI_WORKER_NAME   "daqiri-run: kernel"
#define DQI_WORKER_SOCKET 3 // a descriptor; a message a word

// Files that come with the plan, in this order; one that there is none of is the shared file again. Behind
// them come the pieces of the GPU's memory.
enum { DQI_FILE_LIBRARY, DQI_FILE_SMALL, DQI_FILE_HUGE, DQI_FILE_SHARED, DQI_FILES };

typedef struct dqi_worker_map {
    uint64_t at, bytes, offset; // in the file
    uint64_t file;
} dqi_worker_map;

#define DQI_WORKER_MAPS   (2 + DQI_GN_ROWS + DQ_MAX_KERNEL_ARGS)
#define DQI_WORKER_PIECES 128 // of a GPU's memory

// Of a kernel on a GPU.
typedef struct dqi_worker_gpu {
    uint64_t ptx, block; // where they lie; ptx 0: the library is the kernel, on the host
    int32_t number;
    uint32_t n_pieces;
    uint64_t pieces[DQI_WORKER_PIECES]; // bytes of each; it lies wherever the worker's GPU has room
    uint8_t of_arg[DQ_MAX_KERNEL_ARGS]; // 1 + the piece that the argument points to; 0: none
    uint8_t of_row[DQI_GN_ROWS];        // and the row of the port's regions
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

// The worker's messages: the first when the kernel begins, or why it can't; the second when it has ended.
typedef struct dqi_worker_word {
    int32_t is;     // DQ_OK, or a dq_err: DQ_ESYS - EADDRINUSE: another worker may find the addresses free
    char text[228]; // why it is not OK; "": it is
} dqi_worker_word;

// ---- the program's side: worker_plan.c --------------------------------------------------------------------

// A plan with what it names.
typedef struct dqi_worker_kit {
    dqi_worker_plan plan;
    int files[DQI_FILES + DQI_WORKER_PIECES];
    uint8_t *ptx; // shared pages
    size_t ptx_bytes;
} dqi_worker_kit;

// What the kernel of the port is given: the port, its regions, its arrays. After an error, too, out is given
// to _free.
int dqi_worker_pack(const dq_gn *g, const dq_kernel *k, const dq_grid *grid, const dq_kernel_arg *args,
                    uint32_t n, dqi_worker_kit *out, dq_diag *diag);
void dqi_worker_unpack(dqi_worker_kit *kit);

// ---- the program's side: worker_process.c -----------------------------------------------------------------

typedef struct dqi_gn_worker {
    int pid, socket;
} dqi_gn_worker;

// Starts a worker; its kernel begins. Blocks until then. what names the kernel in errors.
int dqi_gn_worker_start(const char *what, const dqi_worker_kit *kit, dqi_gn_worker *out, dq_diag *diag);
// What the worker has said; false: nothing.
bool dqi_gn_worker_said(const dqi_gn_worker *w, dqi_worker_word *word);
// The worker is ended and waited for. Where word is not NULL, its text says of what the process died.
void dqi_gn_worker_end(dqi_gn_worker *w, dqi_worker_word *word);

// ---- the worker's side ------------------------------------------------------------------------------------

void dqi_worker_tell(int32_t is, const char *text);
_Noreturn void dqi_worker_refuse(int32_t is, const char *text);
// From here on the worker starts no process and reaches neither the network nor the program; memory_only, of
// a kernel on the host: it opens no file, either. Refuses where Linux does.
void dqi_worker_confine(bool memory_only);
// Runs the kernel of plan->gpu to its end, on memory that is mapped. files: of the pieces.
_Noreturn void dqi_worker_on_gpu(dqi_worker_plan *plan, const int *files);

#endif
