// worker.c: the worker's side: a process whose memory is its kernel's. What the kernel was not given is not
// there, so that a stray pointer ends the worker alone.
#include "proxy/worker.h"
#include "compute/compute.h"
#include "compute/confine.h"
#include "core/thread.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

static dqi_worker_plan plan;
static const dqi_host_kernel *kernel;
static void *arguments[DQ_MAX_KERNEL_ARGS + 1];
static _Atomic uint32_t left; // blocks that run
static _Atomic(const char *) fault;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER; // blocks wait for it before they begin

void dqi_worker_tell(int32_t is, const char *text) {
    dqi_worker_word word = {.is = is};
    snprintf(word.text, sizeof word.text, "%s", text);
    if (send(DQI_WORKER_SOCKET, &word, sizeof word, MSG_NOSIGNAL) < 0) _exit(1);
}

void dqi_worker_refuse(int32_t is, const char *text) {
    dqi_worker_tell(is, text);
    _exit(1);
}

// ---- what it is given -------------------------------------------------------------------------------------

static void hear(int *files) {
    union {
        char bytes[CMSG_SPACE((DQI_FILES + DQI_WORKER_PIECES) * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {&plan, sizeof plan};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(DQI_WORKER_SOCKET, &m, MSG_CMSG_CLOEXEC);
    const struct cmsghdr *c = CMSG_FIRSTHDR(&m);
    size_t bytes = (DQI_FILES + plan.gpu.n_pieces) * sizeof(int);
    if (n != (ssize_t)sizeof plan || !c || c->cmsg_len != CMSG_LEN(bytes)) _exit(1);
    memcpy(files, CMSG_DATA(c), bytes);
}

static void map(const dqi_worker_map *m, const int *files) {
    char text[160];
    void *at = (void *)(uintptr_t)m->at;
    void *is = mmap(at, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, files[m->file],
                    (off_t)m->offset);
    if (is == at) return;
    int err = is == MAP_FAILED ? errno : EEXIST; // of an old Linux, which takes the address as a wish
    snprintf(text, sizeof text,
             "its worker can't map %llu bytes at address %p, where the program has them: %s",
             (unsigned long long)m->bytes, at, strerror(err));
    dqi_worker_refuse(DQ_ESYS - (err == EEXIST ? EADDRINUSE : err), text);
}

static void load(int file) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    kernel = library ? dlsym(library, "daqiri_kernel") : NULL;
    if (!kernel) dqi_worker_refuse(DQ_GENERIC_FAILURE, dlerror());
}

// ---- the kernel -------------------------------------------------------------------------------------------

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
    fflush(NULL); // what it printed
    why = atomic_load(&fault);
    dqi_worker_tell(why ? DQ_GENERIC_FAILURE : DQ_OK, why ? why : "");
    _exit(0);
}

void dqi_worker_confine(bool memory_only) {
    char text[160];
    if (dqi_confine_calls(memory_only)) return;
    snprintf(text, sizeof text,
             "its worker can't be confined: seccomp: %s; hint: a kernel runs only where Linux allows seccomp "
             "filters",
             strerror(errno));
    dqi_worker_refuse(DQ_NOT_SUPPORTED, text);
}

// No code of the kernel runs before all threads are there: none can be started afterwards.
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
    dqi_worker_confine(true);
    dqi_worker_tell(DQ_OK, "");
    pthread_mutex_unlock(&gate);
}

_Noreturn static void be_worker(void) {
    int files[DQI_FILES + DQI_WORKER_PIECES];
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const struct rlimit none = {0, 0};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        signal(faults[k], SIG_DFL); // it is to die of it, not to say that the program is at fault
    setrlimit(RLIMIT_CORE, &none);  // its end is not to take longer than its kernel's fault
#ifdef SYS_close_range
    syscall(SYS_close_range, DQI_WORKER_SOCKET + 1u, ~0u, 0u);
#endif
    if (!dqi_confine_rights() || chdir("/") != 0) _exit(1);
    hear(files);
    for (uint32_t k = 0; k < plan.n_maps; k++)
        map(&plan.maps[k], files);
    if (!plan.gpu.ptx) load(files[DQI_FILE_LIBRARY]);
    for (int k = 0; k < DQI_FILES; k++)
        close(files[k]);
    if (plan.gpu.ptx) dqi_worker_on_gpu(&plan, files + DQI_FILES);
    run();
    char byte; // nothing comes: the program has ended
    while (recv(DQI_WORKER_SOCKET, &byte, 1, 0) < 0 && errno == EINTR)
        ;
    _exit(1);
}

// Runs before Go does.
__attribute__((constructor)) static void begin(int argc, char **argv, char **envp) {
    (void)envp;
    if (argc == 1 && strcmp(argv[0], DQI_WORKER_NAME) == 0) be_worker();
}
