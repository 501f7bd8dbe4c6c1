// fake_cufile.c: stands in for libcufile (DAQIRI_CUFILE=…/libfake_cuda.so) beside fake_cuda.c: it writes from
// the memory of the GPUs that that one has.
//
// It keeps to cuFile's rules where the engine may break them, and is stricter: what isn't whole pages at
// pages, which cuFile would copy once more, is an error. DAQIRI_FAKE_CUFILE sets what goes wrong, as
// "key=value,…":
//   nvfs=0        1: nvidia-fs is there
//   refuse=0      1: files can't be registered, 2: memory can't, 3: the driver doesn't open
//   fail=N        the N-th write comes back with an error of the driver
//   short=0       1: every second write does a page only
#include "cuda/cufile.h"
#include "fake.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_REGISTERED 64

static struct { uint64_t nvfs, refuse, fail, shorter; } conf_file;

static pthread_mutex_t lock_file = PTHREAD_MUTEX_INITIALIZER;
static bool is_open;
static uint64_t writes;
static int files[MAX_REGISTERED]; // descriptor + 1
static const void *memory[MAX_REGISTERED];

static void configure_file(void) {
    const char *text = getenv("DAQIRI_FAKE_CUFILE");
    if (!text) return;
    static const char *const keys[] = {"nvfs=", "refuse=", "fail=", "short="};
    uint64_t *const to[] = {&conf_file.nvfs, &conf_file.refuse, &conf_file.fail, &conf_file.shorter};
    for (int i = 0; i < 4; i++) {
        const char *at = strstr(text, keys[i]);
        *to[i] = at ? strtoull(at + strlen(keys[i]), NULL, 10) : 0;
    }
}

cu_file_error cuFileDriverOpen(void) {
    configure_file();
    is_open = conf_file.refuse != 3;
    return (cu_file_error){is_open ? CU_FILE_SUCCESS : 5001, 0};
}

cu_file_error cuFileDriverGetProperties(cu_file_properties *out) {
    memset(out, 0, 64); // as much as the library's own has
    out->nvfs.major = conf_file.nvfs ? 2 : 0;
    out->nvfs.minor = conf_file.nvfs ? 17 : 0;
    return (cu_file_error){is_open ? CU_FILE_SUCCESS : 5001, 0};
}

cu_file_error cuFileHandleRegister(cu_file *out, cu_file_descr *d) {
    if (!is_open || d->type != 1 || d->fs_ops) return (cu_file_error){CU_FILE_INVALID_VALUE, 0};
    if (conf_file.refuse == 1) return (cu_file_error){CU_FILE_NOT_SUPPORTED, 0};
    if (!(fcntl(d->handle.fd, F_GETFL) & O_DIRECT)) return (cu_file_error){CU_FILE_DIO_NOT_SET, 0};
    pthread_mutex_lock(&lock_file);
    int i = 0;
    while (i < MAX_REGISTERED && files[i])
        i++;
    if (i == MAX_REGISTERED) abort(); // a caller doesn't return them
    files[i] = d->handle.fd + 1;
    pthread_mutex_unlock(&lock_file);
    *out = &files[i];
    return (cu_file_error){CU_FILE_SUCCESS, 0};
}

void cuFileHandleDeregister(cu_file file) {
    pthread_mutex_lock(&lock_file);
    int *f = file;
    if (*f == 0 || fcntl(*f - 1, F_GETFD) < 0) abort(); // before its descriptor is closed
    *f = 0;
    pthread_mutex_unlock(&lock_file);
}

cu_file_error cuFileBufRegister(const void *at, size_t bytes, int flags) {
    if (conf_file.refuse == 2 || flags != 0) return (cu_file_error){CU_FILE_INVALID_VALUE, 0};
    if (!fake_reach((uintptr_t)at, bytes)) return (cu_file_error){CU_FILE_POINTER_INVALID, 0};
    pthread_mutex_lock(&lock_file);
    int free_at = -1, err = CU_FILE_SUCCESS;
    for (int i = 0; i < MAX_REGISTERED; i++) {
        if (memory[i] == at) err = CU_FILE_ALREADY_REGISTERED;
        if (!memory[i]) free_at = i;
    }
    if (free_at < 0) abort();
    if (err == CU_FILE_SUCCESS) memory[free_at] = at;
    pthread_mutex_unlock(&lock_file);
    return (cu_file_error){err, 0};
}

cu_file_error cuFileBufDeregister(const void *at) {
    int err = CU_FILE_NOT_REGISTERED;
    if (!fake_reach((uintptr_t)at, 1)) abort(); // before the memory goes
    pthread_mutex_lock(&lock_file);
    for (int i = 0; i < MAX_REGISTERED; i++)
        if (memory[i] == at) {
            memory[i] = NULL;
            err = CU_FILE_SUCCESS;
        }
    pthread_mutex_unlock(&lock_file);
    return (cu_file_error){err, 0};
}

ssize_t cuFileWrite(cu_file file, const void *base, size_t bytes, off_t file_offset, off_t memory_offset) {
    pthread_mutex_lock(&lock_file);
    int fd = *(int *)file - 1;
    uint64_t number = ++writes;
    pthread_mutex_unlock(&lock_file);
    uint64_t from = (uintptr_t)base + (uint64_t)memory_offset;
    if (fd < 0 || (from | bytes | (uint64_t)file_offset) % 4096 != 0) return -CU_FILE_INVALID_VALUE;
    if (conf_file.fail && number >= conf_file.fail) fake_break(719); // CUDA_ERROR_LAUNCH_FAILED
    if (atomic_load(&fake_broken)) return -CU_FILE_CUDA_DRIVER_ERROR;
    const void *p = fake_reach(from, bytes);
    if (!p) return -CU_FILE_POINTER_INVALID;
    if (conf_file.shorter && number % 2 && bytes > 4096) bytes = 4096;
    return pwrite(fd, p, bytes, file_offset);
}
