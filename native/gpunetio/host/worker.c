// worker.c: persistent kernel in the worker: a thread per block on the host, or a context on a GPU.
#include "gpunetio/host/worker.h"
#include "core/thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static dqi_worker_plan plan;
static const dqi_host_kernel *kernel;
static void *arguments[DQ_MAX_KERNEL_ARGS + 1];
static _Atomic uint32_t left; // running blocks
static _Atomic(const char *) fault;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; // holds blocks back until all exist

// ---- kernel -----------------------------------------------------------------------------------------------

static void *run_block(void *number) {
    char name[16];
    snprintf(name, sizeof name, "%u", (unsigned)(uintptr_t)number);
    dqi_thread_name("block", name);
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    const char *why =
        kernel->run_block(arguments, plan.grid.grid, plan.grid.block, (uint32_t)(uintptr_t)number);
    if (why) atomic_store(&fault, why);
    if (atomic_fetch_sub(&left, 1) != 1) return NULL;
    fflush(NULL); // the kernel's output
    why = atomic_load(&fault);
    dqi_worker_answer(why ? DQ_GENERIC_FAILURE : DQ_OK, why ? why : "");
    _exit(0);
}

// Creates all threads before any code of the kernel runs: none can be started afterwards.
static void run(void) {
    uint32_t n = plan.grid.grid[0] * plan.grid.grid[1] * plan.grid.grid[2];
    for (uint32_t k = 0; k < plan.n_args; k++)
        arguments[k] = &plan.values[k];
    atomic_store(&left, n);
    pthread_mutex_lock(&gate);
    for (uintptr_t k = 0; k < n; k++) {
        pthread_t t;
        if (dqi_thread_start(&t, NULL, run_block, (void *)k) != DQ_OK)
            dqi_worker_refuse(DQ_GENERIC_FAILURE, "its worker has no thread for each of its blocks");
    }
    dqi_worker_confine(DQI_CALLS_BLOCKS);
    dqi_worker_answer(DQ_OK, "");
    pthread_mutex_unlock(&gate);
}

_Noreturn static void be_worker(void) {
    int files[DQI_WORKER_FILES];
    dqi_worker_message m = {.data = &plan, .bytes = sizeof plan, .files = files};
    dqi_worker_begin();
    dqi_worker_receive(&m);
    if (m.bytes != sizeof plan || m.n_files != DQI_FILES + plan.gpu.n_pieces) _exit(1);
    for (uint32_t k = 0; k < plan.n_maps; k++)
        dqi_worker_map_one(&plan.maps[k], files);
    if (!plan.gpu.ptx) kernel = dqi_worker_load(files[DQI_FILE_LIBRARY]);
    for (int k = 0; k < DQI_FILES; k++)
        close(files[k]);
    if (plan.gpu.ptx) dqi_worker_on_gpu(&plan, files + DQI_FILES);
    run();
    char byte; // never received: the program has ended
    while (recv(DQI_WORKER_SOCKET, &byte, 1, 0) < 0 && errno == EINTR)
        ;
    _exit(1);
}

// Runs before the Go runtime.
__attribute__((constructor)) static void begin(int argc, char **argv, char **envp) {
    (void)envp;
    if (argc == 1 && strcmp(argv[0], DQI_WORKER_NAME) == 0) be_worker();
}
