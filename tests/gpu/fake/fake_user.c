// fake_user.c: modules, and users' kernels, of the libraries that fake_nvrtc.c made of their source and that
// stand in their PTX. While one runs, the memory of GPUs is at its addresses, and what it touches beyond that
// is an illegal address.
#include "fake.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BAD_PTX 218
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

// The library for the host in a text of PTX; NULL: it has none. False: it can't be loaded.
static bool load_library(const char *ptx, void **library) {
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

// ---- modules ----------------------------------------------------------------------------------------------

int cuModuleLoadDataEx(cu_module *out, const void *image, unsigned n, int *options, void **values) {
    (void)n, (void)options, (void)values;
    if (!strstr(image, ".version")) return BAD_PTX;
    fake_wait_users();
    struct cu_module_s *m = calloc(1, sizeof *m);
    m->ptx = strdup(image);
    *out = m;
    return OK_OR_BROKEN(load_library(image, &m->library) ? CU_SUCCESS : BAD_PTX);
}

int cuModuleUnload(cu_module module) {
    fake_wait_users();
    if (module->library) dlclose(module->library);
    free((void *)(uintptr_t)module->ptx);
    free(module);
    return CU_SUCCESS;
}

static const char *do_nothing(void *const *args, const uint32_t *grid, const uint32_t *block) {
    (void)args, (void)grid, (void)block;
    return NULL;
}
// Of the program's module that reserves local memory.
static const dqi_host_kernel reserve = {.types = "", .run = do_nothing};

int cuModuleGetFunction(cu_function *out, cu_module module, const char *name) {
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    static struct cu_function_s known[4096];
    static int n;
    char entry[96];
    snprintf(entry, sizeof entry, ".entry %.63s(", name);
    struct cu_function_s f = {.run = dqk_host_kernel(name)};
    if (module->library) f = (struct cu_function_s){.user = dlsym(module->library, "daqiri_kernel")};
    const char *local = strstr(module->ptx, ".local .align 8 .b8 a[");
    if (local) {
        f = (struct cu_function_s){.user = &reserve};
        sscanf(local, ".local .align 8 .b8 a[%d]", &f.local);
    }
    if (!strstr(module->ptx, entry) || (!f.run && !f.user)) return CU_ERROR_NOT_FOUND;
    snprintf(f.name, sizeof f.name, "%s", name);
    pthread_mutex_lock(&lock);
    *out = &known[n++ % 4096];
    **out = f;
    pthread_mutex_unlock(&lock);
    return OK_OR_BROKEN(CU_SUCCESS);
}

int cuFuncLoad(cu_function fn) {
    fn->loaded = true;
    return CU_SUCCESS;
}

int cuFuncGetAttribute(int *value, int attribute, cu_function fn) {
    *value = attribute == CU_FN_MAX_THREADS ? 1024 : fn->local;
    return attribute == CU_FN_MAX_THREADS || attribute == CU_FN_LOCAL_BYTES ? CU_SUCCESS : INVALID;
}

// ---- users' kernels ---------------------------------------------------------------------------------------

void fake_user_launch(user_launch *u, const dqi_host_kernel *kernel, const uint32_t *grid,
                      const uint32_t *block, void **args) {
    u->kernel = kernel;
    memcpy(u->grid, grid, sizeof u->grid);
    memcpy(u->block, block, sizeof u->block);
    for (int k = 0; kernel->types[2 * k]; k++)
        memcpy(&u->values[k], args[k], (size_t)(kernel->types[2 * k + 1] - '0'));
}

static _Atomic int users; // kernels that run

void fake_wait_users(void) {
    while (atomic_load(&users) > 0)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

void fake_keep_local(cu_function fn) {
    static _Atomic int local;
    if (fn->local <= atomic_load(&local)) return;
    fake_wait_users();
    atomic_store(&local, fn->local);
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

// A block of a launch, or all of them where number is BLOCKS.
#define BLOCKS 16 // that run at the same time, as those of persistent kernels have to; more run one by one
typedef struct block_run {
    const user_launch *u;
    void *const *args;
    uint32_t number;
    int err;
} block_run;

static void *run_caught(void *arg) {
    block_run *b = arg;
    const user_launch *u = b->u;
    sigjmp_buf here;
    const char *volatile why = NULL;
    b->err = CU_SUCCESS;
    if (sigsetjmp(here, 1) == 0) {
        catcher = &here;
        why = b->number == BLOCKS ? u->kernel->run(b->args, u->grid, u->block)
                                  : u->kernel->run_block(b->args, u->grid, u->block, b->number);
    } else {
        b->err = ILLEGAL;
    }
    catcher = NULL;
    if (why) b->err = BAD_LAUNCH;
    return NULL;
}

static int run_together(const user_launch *u, void *const *args, uint32_t blocks) {
    block_run runs[BLOCKS];
    pthread_t threads[BLOCKS];
    int err = CU_SUCCESS;
    for (uint32_t k = 0; k < blocks; k++) {
        runs[k] = (block_run){.u = u, .args = args, .number = k};
        if (pthread_create(&threads[k], NULL, run_caught, &runs[k]) != 0) abort();
    }
    for (uint32_t k = 0; k < blocks; k++) {
        pthread_join(threads[k], NULL);
        if (runs[k].err != CU_SUCCESS) err = runs[k].err;
    }
    return err;
}

// Whether what the arguments point to was mapped or registered in this process.
static bool in_reach(const user_launch *u) {
    for (int k = 0; u->kernel->types[2 * k]; k++)
        if (u->kernel->types[2 * k] == 'p' && u->values[k] && !fake_reach(u->values[k], 1)) return false;
    return true;
}

int fake_run_user(const user_launch *u) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    void *args[DQ_MAX_KERNEL_ARGS];
    uint64_t blocks = (uint64_t)u->grid[0] * u->grid[1] * u->grid[2];
    block_run all = {.u = u, .args = args, .number = BLOCKS};
    pthread_once(&once, catch_faults);
    if (!in_reach(u)) return ILLEGAL;
    for (int k = 0; k < DQ_MAX_KERNEL_ARGS; k++)
        args[k] = (void *)(uintptr_t)&u->values[k];
    atomic_fetch_add(&users, 1);
    fake_expose(1);
    if (u->kernel->run_block && blocks > 1 && blocks <= BLOCKS)
        all.err = run_together(u, args, (uint32_t)blocks);
    else
        run_caught(&all);
    fake_expose(-1);
    atomic_fetch_sub(&users, 1);
    return all.err;
}

// As of 2048 threads, and 16 blocks, a multiprocessor.
int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, cu_function fn, int threads,
                                                size_t shared_bytes) {
    (void)fn, (void)shared_bytes;
    *blocks = 2048 / threads < 16 ? 2048 / threads : 16;
    return CU_SUCCESS;
}

int cuCtxSynchronize(void) { return OK_OR_BROKEN(CU_SUCCESS); }
