// worker.c: common code of workers: dropping rights, receiving messages, mapping memory.
#include "compute/worker.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MAP_FIXED_NOREPLACE
#define MAP_FIXED_NOREPLACE 0x100000
#endif

void dqi_worker_begin(void) {
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    const struct rlimit none = {0, 0};
    for (size_t k = 0; k < sizeof faults / sizeof *faults; k++)
        signal(faults[k], SIG_DFL); // die from it, without the program's crash report
    setrlimit(RLIMIT_CORE, &none);  // no core dump, which would delay its end
#ifdef SYS_close_range
    syscall(SYS_close_range, DQI_WORKER_SOCKET + 1u, ~0u, 0u);
#endif
    if (!dqi_confine_rights() || chdir("/") != 0) _exit(1);
}

void dqi_worker_answer(int32_t is, const char *text) {
    dqi_worker_word word = {.is = is};
    snprintf(word.text, sizeof word.text, "%s", text);
    if (send(DQI_WORKER_SOCKET, &word, sizeof word, MSG_NOSIGNAL) < 0) _exit(1);
}

void dqi_worker_refuse(int32_t is, const char *text) {
    dqi_worker_answer(is, text);
    _exit(1);
}

void dqi_worker_receive(dqi_worker_message *m) {
    union {
        char bytes[CMSG_SPACE(DQI_WORKER_FILES * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {m->data, m->bytes};
    struct msghdr h = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;
    do
        n = recvmsg(DQI_WORKER_SOCKET, &h, MSG_CMSG_CLOEXEC);
    while (n < 0 && errno == EINTR);
    if (n <= 0 || (h.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0) _exit(1);
    const struct cmsghdr *c = CMSG_FIRSTHDR(&h);
    m->bytes = (size_t)n;
    m->n_files = c ? (uint32_t)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0;
    if (c) memcpy(m->files, CMSG_DATA(c), m->n_files * sizeof(int));
}

void dqi_worker_map_one(const dqi_worker_map *m, const int *files) {
    char text[160];
    void *at = (void *)(uintptr_t)m->at;
    void *is = mmap(at, m->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED_NOREPLACE, files[m->file],
                    (off_t)m->offset);
    if (is == at) return;
    int err = is == MAP_FAILED ? errno : EEXIST; // old Linux treats the address as a hint
    snprintf(text, sizeof text,
             "its worker can't map %llu bytes at address %p, where the program has them: %s",
             (unsigned long long)m->bytes, at, strerror(err));
    dqi_worker_refuse(DQ_ESYS - (err == EEXIST ? EADDRINUSE : err), text);
}

const dqi_host_kernel *dqi_worker_load(int file) {
    char path[32];
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    const dqi_host_kernel *kernel = library ? dlsym(library, "daqiri_kernel") : NULL;
    if (!kernel) dqi_worker_refuse(DQ_GENERIC_FAILURE, dlerror());
    return kernel;
}

void dqi_worker_confine(dqi_calls may) {
    char text[160];
    if (dqi_confine_calls(may)) return;
    snprintf(text, sizeof text,
             "its worker can't be confined: seccomp: %s; hint: a kernel runs only where Linux allows seccomp "
             "filters",
             strerror(errno));
    dqi_worker_refuse(DQ_NOT_SUPPORTED, text);
}
