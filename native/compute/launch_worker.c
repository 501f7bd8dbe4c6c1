// launch_worker.c: launches on the host, in the worker. One thread runs kernels as requested by messages; the
// other exits when the program has ended, even if a kernel runs.
#include "compute/launch_host.h"
#include "core/thread.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static dq_grid grid;
static const dqi_host_kernel *kernel;
static dqi_job job;
static dqi_worker_map mapped[DQI_LAUNCH_MAPS];
static uint32_t n_mapped;

static void receive_job(int *files) {
    dqi_worker_message m = {.data = &job, .bytes = sizeof job, .files = files};
    dqi_worker_receive(&m);
    size_t maps = job.n_maps == DQI_AS_BEFORE ? 0 : job.n_maps;
    if (m.bytes != offsetof(dqi_job, maps) + maps * sizeof *job.maps || m.n_files != maps) _exit(1);
}

// Replaces the mappings of the previous job.
static void map_job(const int *files) {
    if (job.n_maps == DQI_AS_BEFORE) return;
    for (uint32_t k = 0; k < n_mapped; k++)
        munmap((void *)(uintptr_t)mapped[k].at, mapped[k].bytes);
    n_mapped = 0;
    for (uint32_t k = 0; k < job.n_maps; k++) {
        dqi_worker_map_one(&job.maps[k], files);
        close(files[k]);
        mapped[n_mapped++] = job.maps[k];
    }
}

_Noreturn static void *serve(void *unused) {
    (void)unused;
    void *args[DQ_MAX_KERNEL_ARGS + 1];
    int files[DQI_WORKER_FILES];
    for (;;) {
        receive_job(files);
        map_job(files);
        for (uint32_t k = 0; k < job.n_args; k++)
            args[k] = &job.values[k];
        const char *why = kernel->run(args, grid.grid, grid.block);
        fflush(NULL); // the kernel's output
        dqi_worker_answer(why ? DQ_GENERIC_FAILURE : DQ_OK, why ? why : "");
    }
}

_Noreturn static void be_worker(void) {
    int files[DQI_WORKER_FILES];
    pthread_t thread;
    dqi_worker_message m = {.data = &grid, .bytes = sizeof grid, .files = files};
    dqi_worker_begin();
    dqi_worker_receive(&m);
    if (m.bytes != sizeof grid || m.n_files != 1) _exit(1);
    kernel = dqi_worker_load(files[0]);
    close(files[0]);
    if (dqi_thread_start(&thread, NULL, serve, NULL) != DQ_OK)
        dqi_worker_refuse(DQ_GENERIC_FAILURE, "its worker has no thread for it");
    dqi_worker_confine(DQI_CALLS_LAUNCHES); // both threads; the program sends no job before the answer
    dqi_worker_answer(DQ_OK, "");
    struct pollfd program = {.fd = DQI_WORKER_SOCKET}; // detects only its end
    while (poll(&program, 1, -1) < 0 && errno == EINTR)
        ;
    _exit(0);
}

// Runs before the Go runtime.
__attribute__((constructor)) static void begin(int argc, char **argv, char **envp) {
    (void)envp;
    if (argc == 1 && strcmp(argv[0], DQI_LAUNCHES_NAME) == 0) be_worker();
}
