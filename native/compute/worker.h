// worker.h: workers, processes that run user kernels: the program restarted under another name, with a
// message socket. A worker maps its kernel's memory at the addresses used in the program, and never leaves
// its constructor. An invalid pointer in the kernel only ends the worker.
#ifndef DQI_COMPUTE_WORKER_H
#define DQI_COMPUTE_WORKER_H

#include "compute/compute.h"
#include "compute/confine.h"
#include "core/region.h"

#define DQI_WORKER_SOCKET 3   // its descriptor
#define DQI_WORKER_TRIES  16  // attempts, as a worker's libraries may be mapped at addresses of the program
#define DQI_WORKER_FILES  253 // maximum descriptors per message (Linux: SCM_MAX_FD)

// Memory mapped by a worker.
typedef struct dqi_worker_map {
    uint64_t at, bytes, offset; // offset: in the file
    uint64_t file;              // index of the message's descriptors
} dqi_worker_map;

// Answer of a worker: that it is ready or a kernel has ended, or an error.
typedef struct dqi_worker_word {
    int32_t is;     // DQ_OK, or a dq_err. DQ_ESYS - EADDRINUSE: another worker may find the addresses free
    char text[228]; // the reason, unless DQ_OK
} dqi_worker_word;

// A message to a worker, with descriptors. The caller keeps ownership.
typedef struct dqi_worker_message {
    void *data;
    size_t bytes;
    int *files;
    uint32_t n_files;
} dqi_worker_message;

// ---- in the program: worker_process.c ---------------------------------------------------------------------

typedef struct dqi_worker {
    int pid, socket;
} dqi_worker;

// Starts a worker, sends it the first message and waits until it is ready. name: argv[0], by which its
// constructor recognizes it; what: the kernel's name in errors. Blocks.
int dqi_worker_spawn(const char *what, const char *name, const dqi_worker_message *first, dqi_worker *out,
                     dq_diag *diag);
// Returns false if the worker has ended.
bool dqi_worker_send(const dqi_worker *w, const dqi_worker_message *m);
// Waits for an answer. Returns false after timeout_ms, or with *ended if the worker has ended.
bool dqi_worker_hear(const dqi_worker *w, int timeout_ms, dqi_worker_word *word, bool *ended);
// Kills the worker and waits for the process. If word is not NULL, its text describes how the process ended.
void dqi_worker_end(dqi_worker *w, dqi_worker_word *word);

// Return the map of a region of the session, or of other shared memory of the program (cuda/pinned.h).
dqi_worker_map dqi_worker_region(const dq_session *s, const dq_region *r, uint64_t file);
dqi_worker_map dqi_worker_shared(const void *at, uint64_t bytes, uint64_t file);

// ---- in the worker: worker.c ------------------------------------------------------------------------------

// Drops state of the program that a worker does not need: signal handlers, descriptors, capabilities.
void dqi_worker_begin(void);
// Receives a message of at most m->bytes, updated to its length, with its descriptors; m->files has space for
// DQI_WORKER_FILES. Exits if the program has ended.
void dqi_worker_receive(dqi_worker_message *m);
void dqi_worker_answer(int32_t is, const char *text);
_Noreturn void dqi_worker_refuse(int32_t is, const char *text);
// Maps memory of the program; calls dqi_worker_refuse if the address is in use.
void dqi_worker_map_one(const dqi_worker_map *m, const int *files);
// Loads a library for the host.
const dqi_host_kernel *dqi_worker_load(int file);
// Restricts the system calls of its threads from here on; calls dqi_worker_refuse on failure.
void dqi_worker_confine(dqi_calls may);

#endif
