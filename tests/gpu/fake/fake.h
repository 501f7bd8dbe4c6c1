// fake.h: what the files of the stand-in for the driver share: streams and what is put on them.
#ifndef FAKE_H
#define FAKE_H

#include "compute/compute.h"
#include "cuda/driver.h"
#include "kernels/kernels.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <time.h>

// Statuses of the driver.
#define INVALID     1
#define BAD_CONTEXT 201
#define ILLEGAL     700
#define BAD_LAUNCH  719

typedef struct cu_event_s *cu_event;
typedef struct cu_graph_s *cu_graph, *cu_graph_exec;

// Memory on a GPU, at an address.
typedef struct fake_memory {
    uint64_t at, bytes; // of the whole range; bytes 0: not a GPU's
    int fd, gpu;
    bool gpudirect, dmabuf; // what the driver offers
} fake_memory;
fake_memory fake_memory_at(uint64_t at);
// Returns the GPU of an allocation, to be set, and its file.
int *fake_place(uint64_t handle, int **fd);

// A launch of a user's kernel.
typedef struct user_launch {
    const dqi_host_kernel *kernel; // NULL: none
    uint64_t values[DQ_MAX_KERNEL_ARGS];
    uint32_t grid[3], block[3];
} user_launch;

struct cu_module_s {
    const char *ptx;
    void *library; // of a user's kernel
};

struct cu_function_s {
    char name[64];
    dqk_host_fn *run;            // of a shipped kernel,
    const dqi_host_kernel *user; // or a user's
    bool loaded;                 // cuFuncLoad was called
    int local;                   // bytes of local memory of each thread
};

typedef struct job {
    struct job *next;
    dqk_host_fn *run; // NULL: fill, or the user's
    dqk_list list;
    user_launch user;
    uint64_t number; // of the launch
    void *at;
    const void *from; // NULL: fill with value
    unsigned char value;
    size_t n;
    int64_t *stamp;          // of an event: when the stream came to it
    _Atomic uint64_t *write; // where the stream writes number
} job;

struct cu_stream_s {
    int device;
    struct cu_graph_s *graph; // of the last capture
    job **captures;           // where one that is under way puts what comes; NULL: none is
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    job *first, **last;
    uint64_t added, done;
    bool end;
    uint64_t chance;
};

// The error that every call comes back with.
extern _Atomic int fake_broken;
// Sets it, once no stream is in the middle of a list, a copy or a fill: of a lost GPU nothing runs on.
// Kernels of users do.
void fake_break(int err);
#define OK_OR_BROKEN(err) (atomic_load(&fake_broken) ? atomic_load(&fake_broken) : (err))

// Where the host finds n bytes that a kernel addresses; NULL: it may not.
void *fake_reach(uint64_t at, uint64_t n);
// A list whose addresses are the host's, and its moves, which the caller frees; false: it has one that a
// kernel may not touch.
bool fake_translate(const dqk_list *in, dqk_list *out);
// A user's kernel begins to run (1), or has ended (-1): while one runs, the memory of GPUs is where they
// address it.
void fake_expose(int more);
void fake_user_launch(user_launch *u, const dqi_host_kernel *kernel, const uint32_t *grid,
                      const uint32_t *block, void **args);
// Runs one; the error that it ends with.
int fake_run_user(const user_launch *u);
// Waits until no user's kernel runs, as the driver does in some calls (native/cuda/resident.h).
void fake_wait_users(void);
// Keeps as much local memory as a function needs; waits if no launch before it needed as much.
void fake_keep_local(cu_function fn);
// Puts a job on the stream, or into what captures it; a status.
int fake_put(cu_stream s, job add);
int cuStreamSynchronize(cu_stream s);

static inline int64_t fake_now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

// Calls of fake_cuda.c for the other files.
int cuMemImportFromShareableHandle(uint64_t *handle, void *os_handle, int type);
int cuMemAddressReserve(cu_ptr *at, size_t bytes, size_t align, cu_ptr wish, unsigned long long flags);
int cuMemMap(cu_ptr at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags);
int cuMemSetAccess(cu_ptr at, size_t bytes, const cu_access_desc *who, size_t n);
int cuMemFree_v2(cu_ptr at);

#endif
