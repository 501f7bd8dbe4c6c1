// binding.c: binding of regions, and the checks common to all kinds of memory.
#include "binding/binding.h"
#include "compute/compute.h"
#include "core/core.h"
#include "core/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int dqi_refuse(const dq_region *r, dq_diag *diag, const char *fmt, ...) {
    char why[400];
    va_list args;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "cannot bind memory region %s: %s", r->conf.name, why);
}

int dqi_binding_fits(dq_region *r, uint64_t all, uint64_t page, dq_diag *diag) {
    dqi_binding *b = dqi_binding_of(r);
    uint64_t bytes = b->conf.bytes;
    b->need = dqi_round_up(dqi_region_bytes(r), page);
    if (b->conf.offset % page != 0)
        return dqi_refuse(r, diag, "offset %llu is not a multiple of %llu",
                          (unsigned long long)b->conf.offset, (unsigned long long)page);
    if (b->conf.offset > all || (bytes != DQ_BINDING_REST && bytes > all - b->conf.offset))
        return dqi_refuse(r, diag, "its source has %llu bytes, and the range ends behind them",
                          (unsigned long long)all);
    if (bytes == DQ_BINDING_REST) bytes = all - b->conf.offset;
    if (bytes < b->need)
        return dqi_refuse(r, diag, "%u buffers of %u bytes need %llu bytes, and the memory has %llu",
                          r->conf.num_bufs, r->stride, (unsigned long long)b->need,
                          (unsigned long long)bytes);
    return DQ_OK;
}

static bool overlaps(uint64_t a, uint64_t a_bytes, uint64_t b, uint64_t b_bytes) {
    return a < b + b_bytes && b < a + a_bytes;
}

int dqi_binding_alone(const dq_region *r, dq_diag *diag) {
    const dqi_core *core = dqi_core_of(r->session);
    const dqi_binding *b = dqi_binding_of(r);
    for (uint32_t k = 0; k < core->n_regions && core->regions[k] != r; k++) {
        const dqi_binding *o = dqi_binding_of(core->regions[k]); // NULL also of a deleted region
        if (!o || (b->bound.fd < 0) != (o->bound.fd < 0)) continue;
        bool same = b->bound.fd < 0
                        ? overlaps((uintptr_t)b->bound.device, b->need, (uintptr_t)o->bound.device, o->need)
                        : b->device == o->device && b->inode == o->inode &&
                              overlaps(b->bound.at, b->need, o->bound.at, o->need);
        if (same)
            return dqi_refuse(r, diag, "its memory overlaps that of region %s", core->regions[k]->conf.name);
    }
    return DQ_OK;
}

static int check(dq_region *r, dq_diag *diag) {
    return r->cpu ? dqi_file_check(r, diag) : dqi_gpu_check(r, diag);
}

static void release(dqi_bound *bound) {
    dqi_binding *b = (dqi_binding *)(void *)bound;
    dqi_guard_remove(b->guard);
    dqi_gpu_release(b);
    if (b->conf.fd >= 0) close(b->conf.fd);
    dq_array_free(b->conf.array);
    free(b);
}

// Takes a descriptor of its own. The open never waits, as that of a pipe would.
static int take_file(const dq_region *r, const dq_binding *from, dq_binding *to, dq_diag *diag) {
    to->fd = from->fd >= 0 ? fcntl(from->fd, F_DUPFD_CLOEXEC, 0)
                           : open(from->path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (to->fd >= 0) return DQ_OK;
    if (from->fd >= 0) return dqi_refuse(r, diag, "descriptor %d: %s", from->fd, strerror(errno));
    return dqi_refuse(r, diag, "%.300s: %s", from->path, strerror(errno));
}

// Makes the binding of a region that is not bound yet.
static int make(const dq_region *r, const dq_binding *conf, dqi_bound **out, dq_diag *diag) {
    if (conf->bytes == 0) return dqi_refuse(r, diag, "its memory has no bytes");
    if (r->conf.kind == DQ_KIND_DARK)
        return dqi_refuse(r, diag, "memory of kind %s can't be bound", dq_kind_name(r->conf.kind));
    if (conf->source == DQ_BINDING_OWN && r->conf.kind == DQ_KIND_DEVICE)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "cannot share memory region %s: it is on a GPU, and sharing GPU memory is not "
                        "supported; hint: kind host or host_pinned",
                        r->conf.name);
    dqi_binding *b = calloc(1, sizeof *b);
    if (!b) return dqi_fail(diag, DQ_ESYS - ENOMEM, "memory region %s: no memory", r->conf.name);
    b->bound = (dqi_bound){.check = check, .map = dqi_file_map, .release = release, .fd = -1};
    b->bound.own = conf->source == DQ_BINDING_OWN;
    b->conf = *conf;
    b->conf.fd = -1;
    b->conf.path = NULL;
    b->guard = DQI_NO_GUARD;
    int err = conf->source == DQ_BINDING_FILE ? take_file(r, conf, &b->conf, diag) : DQ_OK;
    if (err != DQ_OK) {
        free(b);
        return err;
    }
    dqi_array_hold(b->conf.array);
    *out = &b->bound;
    return DQ_OK;
}

int dq_region_bind(dq_region *r, const dq_binding *conf, dq_diag *diag) {
    if (dqi_core_of(r->session)->base || r->bound)
        return dqi_refuse(r, diag, "the session is open already, or the region is bound");
    return make(r, conf, &r->bound, diag);
}

int dq_bound_new(dq_session *s, const dq_region_conf *conf, const dq_binding *b, dqi_bound **out,
                 dq_diag *diag) {
    const dq_region plan = {.conf = *conf, .cpu = true, .session = s};
    if (b->source == DQ_BINDING_OWN)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "memory region %s: shared memory is allocated at the open only", conf->name);
    return make(&plan, b, out, diag);
}

bool dq_region_lost(const dq_region *r, char *why, size_t len) {
    const dqi_binding *b = dqi_binding_of(r);
    struct stat st;
    if (!b || b->fixed || b->guard == DQI_NO_GUARD || fstat(b->bound.fd, &st) != 0) return false;
    uint64_t size = (uint64_t)st.st_size, left = size > b->bound.at ? size - b->bound.at : 0;
    bool shorter = left < dqi_region_bytes(r);
    if (shorter && !dqi_guard_hit(b->guard)) dqi_guard_replace(b->guard, left);
    if (shorter)
        snprintf(
            why, len,
            "another process made its file shorter: %llu of %llu bytes are left, and packets in the rest "
            "are lost; hint: seal it against this (F_SEAL_SHRINK), or keep it until the session has ended",
            (unsigned long long)left, (unsigned long long)dqi_region_bytes(r));
    else if (dqi_guard_hit(b->guard))
        snprintf(
            why, len,
            "pages of its file were not there when they were accessed, and packets in them are lost; hint: "
            "another process made the file shorter for a time, or its file system is full");
    return shorter || dqi_guard_hit(b->guard);
}
