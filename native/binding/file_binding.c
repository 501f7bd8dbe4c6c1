// file_binding.c: regions in files with memory, and in arrays of the host, which lie in a file too.
#include "binding/binding.h"
#include "compute/compute.h"
#include "core/arena.h"
#include "core/core.h"
#include "core/err.h"
#include "core/populate.h"
#include "cuda/pinned.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

// Sets the file's identity and returns its size; 0: it has no memory. A DMA-BUF has no file type, and its
// size is where a seek to its end leads.
static uint64_t identify(dqi_binding *b) {
    struct stat st;
    if (fstat(b->bound.fd, &st) != 0) return 0;
    b->device = st.st_dev;
    b->inode = st.st_ino;
    b->fixed = (st.st_mode & S_IFMT) == 0;
    if (!b->fixed) return S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
    off_t end = lseek(b->bound.fd, 0, SEEK_END);
    return end > 0 ? (uint64_t)end : 0;
}

// Returns the size of the file's pages.
static uint64_t page_of(int fd) {
    struct statfs fs;
    if (fstatfs(fd, &fs) == 0 && (uint64_t)fs.f_type == HUGETLBFS_MAGIC) return (uint64_t)fs.f_bsize;
    return dqi_page_size();
}

static int check_writable(const dq_region *r, int fd, dq_diag *diag) {
    int flags = fcntl(fd, F_GETFL), seals = fcntl(fd, F_GET_SEALS);
    if (flags < 0 || (flags & O_ACCMODE) != O_RDWR)
        return dqi_refuse(r, diag,
                          "its descriptor permits no writing: open the file for reading and writing");
    if (seals > 0 && (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0)
        return dqi_refuse(r, diag, "its file is sealed against writing");
    return DQ_OK;
}

// Sets descriptor, place and identity of a file's memory, and its size.
static int find_file(const dq_region *r, uint64_t *size, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    b->bound.fd = b->conf.fd;
    b->bound.at = b->conf.offset;
    *size = identify(b);
    if (*size == 0)
        return dqi_refuse(r, diag,
                          "its descriptor is not a file with memory (a memfd, shared memory, a file "
                          "of hugetlbfs or a DMA-BUF)");
    return check_writable(r, b->bound.fd, diag);
}

// Does the same for an array, whose memory lies in a file of the program.
static int find_array(const dq_region *r, uint64_t *size, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    const dq_array *a = b->conf.array;
    if (!a->cpu)
        return dqi_refuse(r, diag, "%s lies on a GPU, and the region's buffers lie in host memory", a->what);
    b->bound.fd = dqi_shared_file();
    if (b->bound.fd < 0)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "cannot bind memory region %s: %s can't be shared; hint: ulimit -f holds for memory "
                        "too: raise it",
                        r->conf.name, a->what);
    b->bound.at = (uintptr_t)a->cpu + b->conf.offset;
    *size = a->mapped;
    identify(b);
    b->fixed = true;
    return DQ_OK;
}

int dqi_file_check(dq_region *r, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    uint64_t size = 0;
    if (b->conf.source == DQ_BINDING_IPC)
        return dqi_refuse(r, diag,
                          "a CUDA handle is GPU memory, and the region's buffers lie in host memory");
    int err = b->bound.own                         ? dqi_shared_region(r, &size, diag)
              : b->conf.source == DQ_BINDING_ARRAY ? find_array(r, &size, diag)
                                                   : find_file(r, &size, diag);
    if (err != DQ_OK) return err;
    uint64_t page = page_of(b->bound.fd);
    b->bound.huge = page == DQI_HUGE_PAGE;
    if (page != DQI_HUGE_PAGE && page != dqi_page_size())
        return dqi_refuse(r, diag, "its file has pages of %llu MiB: use pages of 2 MiB",
                          (unsigned long long)page >> 20);
    if (r->conf.kind == DQ_KIND_HUGE && !b->bound.huge && !b->bound.own)
        return dqi_refuse(r, diag, "its kind is huge, and the memory is not on huge pages");
    err = dqi_binding_fits(r, size, page, diag);
    return err == DQ_OK ? dqi_binding_alone(r, diag) : err;
}

// Seals a memfd so that its owner can't make it shorter, if the owner permits seals.
static void seal(dqi_binding *b) {
    int seals = fcntl(b->bound.fd, F_GET_SEALS);
    if (seals >= 0 && (seals & F_SEAL_SHRINK) == 0 && fcntl(b->bound.fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
        seals |= F_SEAL_SHRINK;
    if (seals >= 0 && (seals & F_SEAL_SHRINK) != 0) b->fixed = true;
}

int dqi_file_map(dq_region *r, uint8_t *to, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    int err;
    if (!b->fixed) seal(b);
    if (mmap(to, b->need, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, b->bound.fd, (off_t)b->bound.at) ==
        MAP_FAILED)
        return dqi_refuse(r, diag, "its memory can't be mapped: %s", strerror(errno));
    if (b->bound.own) dqi_region_prefer_node(r);
    b->guard = dqi_guard_add(to, b->need, b->bound.huge ? DQI_HUGE_PAGE : dqi_page_size());
    if (b->guard == DQI_NO_GUARD)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "cannot bind memory region %s: too many bound regions",
                        r->conf.name);
    err = dqi_populate(to, b->need);
    if (err != 0 && (!b->fixed || b->bound.own)) // pages of devices can't be populated, and need not be
        return dqi_refuse(r, diag, "its file provides no pages: %s; hint: its file system may be full",
                          strerror(-err));
    return DQ_OK;
}
