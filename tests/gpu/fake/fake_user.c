// fake_user.c: users' kernels, of the libraries that fake_nvrtc.c made of their source and that stand in
// their PTX. While one runs, the memory of GPUs is at its addresses, and what it touches beyond that is an
// illegal address.
#include "fake.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define LIBRARY "// fake library "

// Writes the bytes that stand as hexadecimal digits into a file without a name.
static int write_library(const char *hex) {
    int fd = memfd_create("fake-kernel", MFD_CLOEXEC);
    FILE *f = fdopen(dup(fd), "wb");
    unsigned byte;
    for (; sscanf(hex, "%2x", &byte) == 1; hex += 2)
        fputc((int)byte, f);
    fclose(f);
    return fd;
}

bool fake_load_library(const char *ptx, void **library) {
    char path[64];
    const char *hex = strstr(ptx, LIBRARY);
    *library = NULL;
    if (!hex) return true;
    // It stays open: the loader takes a path that it knows for the library that it had.
    snprintf(path, sizeof path, "/proc/self/fd/%d", write_library(hex + strlen(LIBRARY)));
    *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!*library) fprintf(stderr, "fake CUDA: %s\n", dlerror());
    return *library != NULL;
}

void fake_user_launch(user_launch *u, const dqi_host_kernel *kernel, const uint32_t *grid,
                      const uint32_t *block, void **args) {
    u->kernel = kernel;
    memcpy(u->grid, grid, sizeof u->grid);
    memcpy(u->block, block, sizeof u->block);
    for (int k = 0; kernel->types[2 * k]; k++)
        memcpy(&u->values[k], args[k], (size_t)(kernel->types[2 * k + 1] - '0'));
}

static _Thread_local sigjmp_buf *catcher; // of the thread's kernel
static struct sigaction before[2];

static void on_fault(int sig, siginfo_t *info, void *context) {
    if (catcher) siglongjmp(*catcher, 1);
    before[sig == SIGBUS].sa_sigaction(sig, info, context);
}

static void catch_faults(void) {
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaction(SIGSEGV, &a, &before[0]);
    sigaction(SIGBUS, &a, &before[1]);
}

int fake_run_user(const user_launch *u) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *args[DQ_MAX_KERNEL_ARGS];
    sigjmp_buf here;
    const char *volatile why = NULL;
    volatile int err = CU_SUCCESS;
    pthread_once(&once, catch_faults);
    for (int k = 0; k < DQ_MAX_KERNEL_ARGS; k++)
        args[k] = (void *)(uintptr_t)&u->values[k];
    fake_expose(1);
    if (sigsetjmp(here, 1) == 0) {
        catcher = &here;
        why = u->kernel->run(args, u->grid, u->block);
    } else {
        err = ILLEGAL;
    }
    catcher = NULL;
    fake_expose(-1);
    return why ? BAD_LAUNCH : err;
}
