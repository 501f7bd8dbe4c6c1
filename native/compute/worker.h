// worker.h: a worker is a process that runs kernels of users: the program started again under another name,
// with a socket of messages. It maps the memory that its kernel is given, at the addresses that the program
// has it at, and goes no further than its constructor. A stray pointer of the kernel ends the worker alone.
#ifndef DQI_COMPUTE_WORKER_H
#define DQI_COMPUTE_WORKER_H

#include "compute/compute.h"
#include "compute/confine.h"
#include "core/region.h"

#define DQI_WORKER_SOCKET 3   // its descriptor
#define DQI_WORKER_TRIES  16  // workers, where the libraries of one lie at addresses of the program's memory
#define DQI_WORKER_FILES  253 // most descriptors of a message (SCM_MAX_FD of Linux)

// Memory that a worker maps.
typedef struct dqi_worker_map {
    uint64_t at, bytes, offset; // in the file
    uint64_t file;              // of those that come with the message
} dqi_worker_map;

// What a worker answers: that it is ready, and that a kernel has ended; or why not.
typedef struct dqi_worker_word {
    int32_t is;     // DQ_OK, or a dq_err. DQ_ESYS - EADDRINUSE: another worker may find the addresses free
    char text[228]; // the reason, where it is not DQ_OK
} dqi_worker_word;

// A message to a worker, with descriptors. Both stay the caller's.
typedef struct dqi_worker_message {
    void *data;
    size_t bytes;
    int *files;
    uint32_t n_files;
} dqi_worker_message;

// ---- the program's side: worker_process.c -----------------------------------------------------------------

typedef struct dqi_worker {
    int pid, socket;
} dqi_worker;

// Starts a worker, sends it the first message and waits until it is ready. name: argv[0], by which its
// constructor knows it; what: the kernel's name in errors. Blocks.
int dqi_worker_spawn(const char *what, const char *name, const dqi_worker_message *first, dqi_worker *out,
                     dq_diag *diag);
// False: the worker has ended.
bool dqi_worker_send(const dqi_worker *w, const dqi_worker_message *m);
// Waits for an answer. False: there is none within timeout_ms, or the worker has ended; *ended says which.
bool dqi_worker_hear(const dqi_worker *w, int timeout_ms, dqi_worker_word *word, bool *ended);
// Ends the worker and waits for the process. Where word is not NULL, its text says how the process ended.
void dqi_worker_end(dqi_worker *w, dqi_worker_word *word);

// The map of a region of the session, or of other shared memory of the program (cuda/pinned.h).
dqi_worker_map dqi_worker_region(const dq_session *s, const dq_region *r, uint64_t file);
dqi_worker_map dqi_worker_shared(const void *at, uint64_t bytes, uint64_t file);

// ---- the worker's side: worker.c --------------------------------------------------------------------------

// Gives up what the program has and the worker does not need: signal handlers, descriptors, capabilities.
void dqi_worker_begin(void);
// Receives a message of at most m->bytes, which become its length, with its descriptors, m->files having room
// for DQI_WORKER_FILES. Ends the process where the program has ended.
void dqi_worker_receive(dqi_worker_message *m);
void dqi_worker_answer(int32_t is, const char *text);
_Noreturn void dqi_worker_refuse(int32_t is, const char *text);
// Maps memory of the program. Refuses where the address is not free.
void dqi_worker_map_one(const dqi_worker_map *m, const int *files);
// Loads a library for the host.
const dqi_host_kernel *dqi_worker_load(int file);
// From here on its threads ask Linux for nothing else. Refuses where Linux does.
void dqi_worker_confine(dqi_calls may);

#endif
