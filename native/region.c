// region.c: regions, their buffer pools, and the arena that they are slices of.
//
// All CPU regions of a session lie in one reserved range of addresses: first the slices on small pages, then
// those on huge pages, each part backed by a memfd and mapped shared, so that a device or another process can
// address every packet by (descriptor, offset). A pool is a stack of buffer ids: the buffer used last is the
// warmest.
#include "region.h"
#include "err.h"
#include "session.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HUGE_PAGE  (2u << 20)
#define SMALL_PAGE 4096u

#define MAX_BUF_SIZE (1u << 31) // so that a stride fits its 32 bits

struct dqi_pool {
    dqi_spin lock;
    uint32_t n;
    uint32_t ids[];
};

static uint64_t round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }

int dq_region_add(dq_session *s, const dq_region_conf *conf, dq_region **out, dq_diag *diag) {
    if (conf->kind == DQ_KIND_DEVICE || conf->kind == DQ_KIND_HOST_PINNED)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "region %s: kind %s needs CUDA, which is not in this version; hint: open with memory = \"host\"",
            conf->name, conf->kind == DQ_KIND_DEVICE ? "device" : "host_pinned");
    if (s->state != DQI_NEW)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "region %s: the session is open already", conf->name);
    if (conf->buf_size > MAX_BUF_SIZE)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "region %s: buf_size is above %u", conf->name,
                        MAX_BUF_SIZE);
    if (conf->num_bufs == 0 || conf->buf_size == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "region %s: num_bufs and buf_size must be above 0",
                        conf->name);
    if (s->n_regions == DQI_MAX_REGIONS)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "region %s: more than %d regions", conf->name,
                        DQI_MAX_REGIONS);
    dq_region *r = calloc(1, sizeof *r);
    if (!r) return dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory", conf->name);
    r->conf = *conf;
    r->session = s;
    dq_region *last = s->n_regions ? s->regions[s->n_regions - 1] : NULL;
    uint64_t first = last ? (uint64_t)last->first_id + last->conf.num_bufs : 0;
    if (first + conf->num_bufs >= DQI_NO_BUF) {
        free(r);
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "region %s: the session has more than 2^32 buffers",
                        conf->name);
    }
    r->first_id = (uint32_t)first;
    r->spare.id = DQI_NO_BUF;
    s->regions[s->n_regions++] = r;
    *out = r;
    return DQ_OK;
}

int dqi_region_share(dq_region *r, dq_diag *diag) {
    if (!r->holders) r->holders = calloc(r->conf.num_bufs, sizeof *r->holders);
    return r->holders
               ? DQ_OK
               : dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory for its side array", r->conf.name);
}

void dqi_region_want_groups(dq_region *r, uint32_t bytes, uint32_t least) {
    r->want_bytes = bytes;
    r->want_least = least;
}

// Groups the region's buffers as was asked for; the last group is filled up, so that none is lost.
static int form_groups(dq_session *s, dq_region *r, dq_diag *diag) {
    uint32_t num = r->conf.num_bufs;
    r->group = 1;
    r->n_groups = num;
    if (r->want_bytes == 0) return DQ_OK;
    uint32_t group = (uint32_t)(((uint64_t)r->want_bytes + DQ_HEADROOM + r->stride - 1) / r->stride);
    uint32_t n = (num + group - 1) / group;
    if (n < r->want_least) {
        dqi_note(s,
                 "region %s: %u buffers are too few for super-buffers: datagrams come one by one; hint: %u "
                 "buffers let the kernel hand over 64 KiB at a time",
                 r->conf.name, num, r->want_least * group);
        return DQ_OK;
    }
    r->group = group;
    r->n_groups = n;
    r->across = calloc(n, 1);
    dqi_note(s, "region %s: %u buffers of %u bytes are %u super-buffers of %llu KiB", r->conf.name, num,
             r->conf.buf_size, n, (unsigned long long)r->stride * group >> 10);
    return r->across ? dqi_region_share(r, diag)
                     : dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory for its groups", r->conf.name);
}

// ---- the arena --------------------------------------------------------------------------------------------

static uint64_t huge_pages(const char *which) {
    char path[96];
    snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-2048kB/%s_hugepages", which);
    FILE *f = fopen(path, "r");
    unsigned long long n = 0;
    if (f && fscanf(f, "%llu", &n) != 1) n = 0;
    if (f) fclose(f);
    return n;
}

// Those that others have reserved count as free until they are used.
static uint64_t free_huge_pages(void) {
    uint64_t n = huge_pages("free"), reserved = huge_pages("resv");
    return n > reserved ? n - reserved : 0;
}

// Asks the kernel to place the region on its NUMA node; a preference, as a full node is no reason not to run.
static void bind_node(dq_session *s, dq_region *r) {
#ifdef SYS_mbind
    enum { MPOL_PREFERRED_ = 1 };
    if (r->conf.affinity < 0 || r->conf.affinity > 62) return;
    unsigned long mask = 1ul << r->conf.affinity;
    uint64_t bytes = round_up(dqi_region_bytes(r), r->huge ? HUGE_PAGE : SMALL_PAGE);
    if (syscall(SYS_mbind, s->base + r->offset, bytes, MPOL_PREFERRED_, &mask, 64ul, 0u) != 0 &&
        errno != ENOSYS)
        dqi_note(s, "region %s: NUMA node %d: %s; memory comes from any node", r->conf.name, r->conf.affinity,
                 strerror(errno));
#endif
}

static int map_part(dq_session *s, int which, uint64_t at, uint64_t bytes, unsigned flags) {
    if (bytes == 0) return 0;
    s->fds[which] = memfd_create(which ? "daqiri-huge" : "daqiri", MFD_CLOEXEC | flags);
    if (s->fds[which] < 0 || ftruncate(s->fds[which], (off_t)bytes) != 0) return -errno;
    void *p = mmap(s->base + at, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, s->fds[which], 0);
    return p == MAP_FAILED ? -errno : 0;
}

// Lays the regions that are (not) on huge pages out from `at`; returns the end.
static uint64_t lay_out(dq_session *s, bool huge, uint64_t at) {
    for (uint32_t i = 0; i < s->n_regions; i++) {
        dq_region *r = s->regions[i];
        if (r->huge != huge) continue;
        r->offset = at;
        at = round_up(at + dqi_region_bytes(r), huge ? HUGE_PAGE : SMALL_PAGE);
    }
    return at;
}

// Decides which regions get huge pages: each that asks, as long as the free ones last.
static void choose_pages(dq_session *s) {
    uint64_t left = free_huge_pages();
    for (uint32_t i = 0; i < s->n_regions; i++) {
        dq_region *r = s->regions[i];
        uint64_t need = round_up(dqi_region_bytes(r), HUGE_PAGE) / HUGE_PAGE;
        r->huge = r->conf.kind == DQ_KIND_HUGE && need <= left;
        if (r->huge)
            left -= need;
        else if (r->conf.kind == DQ_KIND_HUGE)
            dqi_note(s,
                     "region %s: huge: %llu pages of 2 MiB needed, %llu free: on small pages; hint: "
                     "echo N > /proc/sys/vm/nr_hugepages",
                     r->conf.name, (unsigned long long)need, (unsigned long long)left);
    }
}

static int pool_fill(dq_region *r) {
    uint32_t n = r->n_groups;
    r->pool = malloc(sizeof *r->pool + n * sizeof(uint32_t));
    if (!r->pool) return -ENOMEM;
    r->pool->lock = (dqi_spin){0};
    r->pool->n = n;
    for (uint32_t i = 0; i < n; i++)
        r->pool->ids[i] = r->first_id + (n - 1 - i) * r->group;
    return 0;
}

void dqi_region_ascend(dq_region *r) {
    uint32_t *ids = r->pool->ids;
    for (uint32_t i = 0, k = r->pool->n; i + 1 < k; i++) {
        uint32_t last = ids[--k];
        ids[k] = ids[i];
        ids[i] = last;
    }
}

uint32_t dqi_stride(uint32_t buf_size, uint32_t align) {
    return (uint32_t)round_up((uint64_t)DQ_HEADROOM + buf_size, align);
}

static bool limits_addresses(void) {
    struct rlimit l;
    return getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY;
}

// Refuses what the host has not got, or a control group does not allow: the packet that touches it would find
// out. Huge pages don't count for the group.
static int check_size(const dq_session *s, uint64_t small, dq_diag *diag) {
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    if (s->arena_bytes > ram)
        return dqi_fail(
            diag, DQ_ESYS - ENOMEM,
            "memory regions: they take %llu MiB and this host has %llu; hint: lower num_bufs or buf_size",
            (unsigned long long)(s->arena_bytes >> 20), (unsigned long long)(ram >> 20));
    char file[256];
    uint64_t group = dq_cgroup_memory(file, sizeof file);
    if (small > group)
        return dqi_fail(diag, DQ_ESYS - ENOMEM,
                        "memory regions: they take %llu MiB and %s allows %llu; hint: lower num_bufs or "
                        "buf_size, or raise that limit",
                        (unsigned long long)(small >> 20), file, (unsigned long long)(group >> 20));
    return DQ_OK;
}

int dqi_arena_open(dq_session *s, uint32_t align, dq_diag *diag) {
    for (uint32_t i = 0; i < s->n_regions; i++) {
        s->regions[i]->stride = dqi_stride(s->regions[i]->conf.buf_size, align);
        int err = form_groups(s, s->regions[i], diag);
        if (err != DQ_OK) return err;
    }
    choose_pages(s);
    uint64_t small = lay_out(s, false, 0);
    uint64_t huge_at = round_up(small, HUGE_PAGE);
    s->arena_bytes = round_up(lay_out(s, true, huge_at), HUGE_PAGE);
    if (s->arena_bytes == 0) return DQ_OK;
    int err = check_size(s, small, diag);
    if (err != DQ_OK) return err;
    // Reserve, with room to align the start for huge pages.
    uint8_t *p =
        mmap(NULL, s->arena_bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        return dqi_fail(diag, DQ_ESYS - errno, "memory regions: %llu bytes: %s%s",
                        (unsigned long long)s->arena_bytes, strerror(errno),
                        limits_addresses() ? "; hint: ulimit -v limits addresses: raise it" : "");
    s->reserved = p;
    s->base = (uint8_t *)round_up((uintptr_t)p, HUGE_PAGE);
    err = map_part(s, 0, 0, huge_at, 0); // without a hole behind it: a device may take the arena as a whole
    if (err == 0) err = map_part(s, 1, huge_at, s->arena_bytes - huge_at, MFD_HUGETLB);
    if (err != 0)
        return dqi_fail(diag, DQ_ESYS + err, "memory regions: %llu bytes: %s%s",
                        (unsigned long long)s->arena_bytes, strerror(-err),
                        err == -EFBIG ? "; hint: ulimit -f holds for memory too: raise it" : "");
    for (uint32_t i = 0; i < s->n_regions; i++) {
        dq_region *r = s->regions[i];
        r->base = s->base;
        bind_node(s, r);
        if (pool_fill(r) != 0) return dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory", r->conf.name);
    }
    return DQ_OK;
}

uint64_t dqi_arena_close(dq_session *s) {
    uint64_t missing = 0;
    for (uint32_t i = 0; i < s->n_regions; i++) {
        dq_region *r = s->regions[i];
        if (r->pool) dqi_bufs_free(s, &r->spare.id, 1);
        if (r->pool) missing += (uint64_t)(r->n_groups - r->pool->n) * r->group;
        free(r->pool);
        free(r->across);
        free(r->holders);
        free(r);
    }
    s->n_regions = 0;
    if (s->reserved) munmap(s->reserved, s->arena_bytes + HUGE_PAGE);
    s->reserved = NULL;
    for (int i = 0; i < 2; i++)
        if (s->fds[i] >= 0) close(s->fds[i]);
    return missing;
}

void dq_region_read(const dq_region *r, dq_region_info *out) {
    *out = (dq_region_info){
        .base = r->base,
        .offset = r->offset,
        .stride = r->stride,
        .num_bufs = r->conf.num_bufs,
        .buf_size = r->conf.buf_size,
        .group = r->group,
        .kind = r->conf.kind,
        .huge = r->huge,
    };
    if (!r->pool) return;
    out->free_bufs = dqi_region_level(r) * r->group;
    if (out->free_bufs > out->num_bufs) out->free_bufs = out->num_bufs; // the last group was filled up
}

uint32_t dqi_region_level(const dq_region *r) {
    dqi_lock(&r->pool->lock);
    uint32_t n = r->pool->n;
    dqi_unlock(&r->pool->lock);
    return n;
}

// ---- buffers ----------------------------------------------------------------------------------------------

static uint32_t pop_ids(dq_region *r, uint32_t *ids, uint32_t n, bool all) {
    dqi_pool *p = r->pool;
    dqi_lock(&p->lock);
    if (n > p->n) n = all ? 0 : p->n;
    p->n -= n;
    memcpy(ids, p->ids + p->n, n * sizeof *ids);
    dqi_unlock(&p->lock);
    if (r->holders)
        for (uint32_t i = 0; i < n; i++)
            atomic_store_explicit(&r->holders[ids[i] - r->first_id], 1, memory_order_relaxed);
    return n;
}

uint32_t dqi_bufs_alloc(dq_region *r, uint32_t *ids, uint32_t n) { return pop_ids(r, ids, n, true); }

uint32_t dqi_bufs_some(dq_region *r, uint32_t *ids, uint32_t n) { return pop_ids(r, ids, n, false); }

dq_region *dqi_buf_region(const dq_session *s, uint32_t id) {
    for (uint32_t i = 0; i < s->n_regions; i++)
        if (id - s->regions[i]->first_id < s->regions[i]->conf.num_bufs) return s->regions[i];
    return NULL;
}

dq_region *dqi_off_region(const dq_session *s, uint64_t off) {
    for (uint32_t i = 0; i < s->n_regions; i++)
        if (dqi_region_has(s->regions[i], off)) return s->regions[i];
    return NULL;
}

void dqi_buf_hold(dq_region *r, uint32_t id) {
    atomic_fetch_add_explicit(&r->holders[id - r->first_id], 1, memory_order_relaxed);
}

static void push_ids(dq_region *r, const uint32_t *ids, uint32_t n) {
    dqi_lock(&r->pool->lock);
    memcpy(r->pool->ids + r->pool->n, ids, n * sizeof *ids);
    r->pool->n += n;
    dqi_unlock(&r->pool->lock);
}

// Gives up one holder of each; those without any return to the pool.
static void drop_holders(dq_region *r, const uint32_t *ids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (atomic_fetch_sub_explicit(&r->holders[ids[i] - r->first_id], 1, memory_order_acq_rel) == 1)
            push_ids(r, ids + i, 1);
}

// Without a way out of the loop, so that it is vectorised: the common case.
static bool all_in(const dq_region *r, const uint32_t *ids, uint32_t n) {
    const uint32_t first = r->first_id, num = r->conf.num_bufs;
    uint32_t outside = 0;
    for (uint32_t i = 0; i < n; i++)
        outside |= ids[i] - first >= num;
    return !outside;
}

void dqi_bufs_free(dq_session *s, const uint32_t *ids, uint32_t n) {
    for (uint32_t i = 0; i < n;) {
        if (ids[i] == DQI_NO_BUF) {
            i++;
            continue;
        }
        dq_region *r = dqi_buf_region(s, ids[i]);
        uint32_t k = n;
        if (!all_in(r, ids + i, n - i))
            for (k = i + 1; k < n && ids[k] - r->first_id < r->conf.num_bufs;)
                k++;
        if (r->holders)
            drop_holders(r, ids + i, k - i);
        else
            push_ids(r, ids + i, k - i);
        i = k;
    }
}

uint32_t dqi_spare_take(dq_region *r, dqi_spare *s) {
    if (s->id == DQI_NO_BUF || s->used == r->group) {
        dqi_bufs_free(r->session, &s->id, 1);
        *s = (dqi_spare){.id = DQI_NO_BUF};
        if (dqi_bufs_alloc(r, &s->id, 1) == 0) return DQI_NO_BUF;
        r->across[(s->id - r->first_id) / r->group] = 0;
    }
    return s->id + s->used++;
}
