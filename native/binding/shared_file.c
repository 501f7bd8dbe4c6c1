// shared_file.c: memory files that other processes map read-only: those of regions with DQ_BINDING_OWN, and
// small ones of the Go layer.
//
// A file has mode 0400, so that a process that gets a read-only descriptor can't open it for writing through
// /proc, unless it runs as root or as the file's owner and changes the mode. Its size is sealed: a mapping of
// it never raises SIGBUS.
#include "binding/binding.h"
#include "core/cgroup.h"
#include "core/core.h"
#include "core/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int prepare(int fd, uint64_t bytes) {
    if (ftruncate(fd, (off_t)bytes) != 0 || fchmod(fd, 0400) != 0) return -errno;
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) return -errno;
    return 0;
}

static int make(const char *name, uint64_t bytes, unsigned pages) {
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | pages);
    if (fd < 0) return -errno;
    int err = prepare(fd, bytes);
    // Huge pages are taken now: a mapping without them would fail later.
    if (err == 0 && pages != 0 && fallocate(fd, 0, 0, (off_t)bytes) != 0) err = -errno;
    if (err == 0) return fd;
    close(fd);
    return err;
}

int dq_shared_file(const char *name, uint64_t bytes) { return make(name, bytes, 0); }

int dqi_shared_region(dq_region *r, uint64_t *size, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    int fd = -1;
    if (r->conf.kind == DQ_KIND_HUGE) {
        *size = dqi_round_up(dqi_region_bytes(r), DQI_HUGE_PAGE);
        fd = make(r->conf.name, *size, MFD_HUGETLB);
        if (fd < 0)
            dqi_note(r->session,
                     "region %s: huge: %llu huge pages are not free: on small pages; hint: "
                     "echo N > /proc/sys/vm/nr_hugepages",
                     r->conf.name, (unsigned long long)(*size / DQI_HUGE_PAGE));
    }
    if (fd < 0) {
        char what[DQ_NAME_LEN + 16];
        snprintf(what, sizeof what, "memory region %s", r->conf.name);
        *size = dqi_round_up(dqi_region_bytes(r), dqi_page_size());
        int err = dqi_memory_check(what, *size, *size, "lower num_bufs or buf_size", diag);
        if (err != DQ_OK) return err;
        fd = dq_shared_file(r->conf.name, *size);
    }
    if (fd < 0)
        return dqi_fail(diag, DQ_ESYS + fd, "cannot allocate memory region %s: %llu bytes: %s%s",
                        r->conf.name, (unsigned long long)*size, strerror(-fd),
                        fd == -EFBIG ? "; hint: ulimit -f holds for memory too: raise it" : "");
    b->conf.fd = b->bound.fd = fd;
    b->bound.at = 0;
    b->fixed = true;
    return DQ_OK;
}

int dq_region_lend(const dq_region *r) {
    char path[64];
    if (!r->bound || !r->bound->own) return DQ_NOT_SUPPORTED;
    snprintf(path, sizeof path, "/proc/self/fd/%d", r->bound->fd);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? DQ_ESYS - errno : fd;
}
