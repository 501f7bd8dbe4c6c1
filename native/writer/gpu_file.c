// gpu_file.c: cuFile requires its own descriptor, in direct mode independently of the writer's.
#include "writer/gpu_file.h"
#include "writer/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

bool dqi_gpu_file_open(dqi_gpu_file *f, int fd, dqi_gpu *gpu, const dqi_cufile *lib, char *why, size_t len) {
    char same[32];
    snprintf(same, sizeof same, "/proc/self/fd/%d", fd);
    *f = (dqi_gpu_file){.gpu = gpu, .fd = open(same, O_WRONLY | O_DIRECT | O_CLOEXEC)};
    if (f->fd < 0) {
        snprintf(why, len, "the file system has no direct writes: %s", strerror(errno));
        return false;
    }
    cu_file_descr d = {.type = 1, .handle = {.fd = f->fd}};
    dqi_gpu_enter(gpu);
    int err = lib->file_register(&f->file, &d).err;
    if (err == CU_FILE_SUCCESS) f->lib = lib;
    if (f->lib) return true;
    dqi_cufile_words("cuFileHandleRegister", err, why, len);
    close(f->fd);
    return false;
}

// Returns the cause of a failed write. A lost GPU fails every call.
static int64_t cause(const dqi_gpu_file *f, int64_t err, int sys) {
    size_t free, total;
    dqi_gpu_note(f->gpu, f->gpu->cu->mem_info(&free, &total));
    if (dqi_gpu_lost(f->gpu, NULL, 0)) return -DQI_EDEVICE;
    return err == -1 && sys > 0 ? -sys : -EIO;
}

int64_t dqi_gpu_file_write(const dqi_gpu_file *f, uint64_t from, uint64_t n, uint64_t at) {
    dqi_gpu_enter(f->gpu);
    errno = 0;
    ssize_t did = f->lib->write(f->file, (const void *)(uintptr_t)from, n, (off_t)at, 0);
    return did > 0 ? did : did == 0 ? -EIO : cause(f, did, errno);
}

void dqi_gpu_file_close(dqi_gpu_file *f) {
    if (!f->lib) return;
    f->lib->file_deregister(f->file);
    close(f->fd);
    f->lib = NULL;
}
