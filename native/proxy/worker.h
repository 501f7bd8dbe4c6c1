// worker.h: what the program and a worker say to each other. A worker is the program started again under a
// name of its own, with a socket; it maps the memory that its kernel is given, at the addresses that the
// program has it at, loads the kernel's library, runs it, and goes no further.
#ifndef DQI_PROXY_WORKER_H
#define DQI_PROXY_WORKER_H

#include "compute/dq_compute.h"
#include "proxy/port.h"

#define DQI_WORKER_NAME   "daqiri-run: kernel"
#define DQI_WORKER_SOCKET 3 // a descriptor; a message a word

// Files that come with the plan, in this order; one that there is none of is the library again.
enum { DQI_FILE_LIBRARY, DQI_FILE_SMALL, DQI_FILE_HUGE, DQI_FILE_SHARED, DQI_FILES };

typedef struct dqi_worker_map {
    uint64_t at, bytes, offset; // in the file
    uint64_t file;
} dqi_worker_map;

#define DQI_WORKER_MAPS (1 + DQI_GN_ROWS + DQ_MAX_KERNEL_ARGS)

// The program's first message.
typedef struct dqi_worker_plan {
    dq_grid grid;
    uint32_t n_args, n_maps;
    uint64_t values[DQ_MAX_KERNEL_ARGS]; // of the arguments
    dqi_worker_map maps[DQI_WORKER_MAPS];
} dqi_worker_plan;

// The worker's messages: the first when the kernel begins, or why it can't; the second when it has ended.
typedef struct dqi_worker_word {
    int32_t is;     // DQ_OK, or a dq_err: DQ_ESYS - EADDRINUSE: another worker may find the addresses free
    char text[228]; // why it is not OK; "": it is
} dqi_worker_word;

typedef struct dqi_gn_worker {
    int pid, socket;
} dqi_gn_worker;

// Starts a worker; its kernel begins. Blocks until then. what names the kernel in errors.
int dqi_gn_worker_start(const char *what, const dqi_worker_plan *plan, const int *files, dqi_gn_worker *out,
                        dq_diag *diag);
// The worker, whose socket has something to read or is closed, is ended and waited for. True: its kernel has
// ended, and word says how. False: the process died; word->text says of what.
bool dqi_gn_worker_end(dqi_gn_worker *w, dqi_worker_word *word);

#endif
