// arena.c: the memory arena that holds all regions of a session.
//
// All regions lie in one reserved address range: first the regions on small pages, then those on huge pages.
// Each part is backed by a memfd and mapped shared, so that a device or another process can address every
// packet by (descriptor, offset). Memory of the application that a region is bound to is mapped behind the
// session's own memory in its part. Behind these arena_bytes come the device-only regions: GPU memory, which
// is allocated in cuda/memory.h, and the test regions that emulate it. They have arena offsets like all
// others but no memory at their addresses, so a CPU access to one crashes at once.
#include "core/arena.h"
#include "core/cgroup.h"
#include "core/clock.h"
#include "core/core.h"
#include "core/err.h"
#include "core/populate.h"
#include "core/region.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SLOW_NS 1000000000
// Addresses reserved for regions added while the session is open: 16 times the bytes of the open, within
// limits. They cost no memory, but an emulator of a process (qemu-user) keeps a record for each page.
#define LATER_TIMES 16
#define LATER_MIN   (UINT64_C(1) << 30)
#define LATER_MAX   (UINT64_C(64) << 30)

enum part { SMALL, HUGE, DARK, GPU };

static enum part part_of(const dq_region *r) {
    if (r->cpu) return r->huge ? HUGE : SMALL;
    return r->conf.kind == DQ_KIND_DEVICE ? GPU : DARK;
}

static uint64_t page_of(enum part p) { return p == HUGE ? DQI_HUGE_PAGE : dqi_page_size(); }

static uint64_t bytes_of(const dq_region *r) {
    return dqi_round_up(dqi_region_bytes(r), page_of(part_of(r)));
}

// ---- pages ------------------------------------------------------------------------------------------------

static uint64_t huge_pages(const char *which) {
    char path[96];
    snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/hugepages-2048kB/%s_hugepages", which);
    FILE *f = fopen(path, "r");
    unsigned long long n = 0;
    if (f && fscanf(f, "%llu", &n) != 1) n = 0;
    if (f) fclose(f);
    return n;
}

// Returns the free huge pages less those that other mappings have reserved but not yet touched.
static uint64_t free_huge_pages(void) {
    uint64_t n = huge_pages("free"), reserved = huge_pages("resv");
    return n > reserved ? n - reserved : 0;
}

// Puts a region of kind huge or pinned memory on huge pages if *left of them suffice.
static void choose_page(dq_session *s, dq_region *r, uint64_t *left) {
    uint64_t need = dqi_round_up(dqi_region_bytes(r), DQI_HUGE_PAGE) / DQI_HUGE_PAGE;
    bool wanted = r->conf.kind == DQ_KIND_HUGE;
    bool pinned = r->cpu && (r->conf.kind == DQ_KIND_HOST_PINNED || r->conf.kind == DQ_KIND_DEVICE);
    r->huge = (wanted || pinned) && need <= *left;
    if (r->huge)
        *left -= need;
    else if (wanted)
        dqi_note(s,
                 "region %s: huge: %llu pages of 2 MiB needed, %llu free: on small pages; hint: "
                 "echo N > /proc/sys/vm/nr_hugepages",
                 r->conf.name, (unsigned long long)need, (unsigned long long)*left);
}

// Assigns huge pages to regions in order while free ones last: to regions of kind huge, and to pinned ones,
// which work on small pages as well.
static void choose_pages(dq_session *s) {
    dqi_core *core = dqi_core_of(s);
    uint64_t left = free_huge_pages();
    for (uint32_t i = 0; i < core->n_regions; i++) {
        dq_region *r = core->regions[i];
        if (r->bound)
            r->huge = r->cpu && r->bound->huge;
        else
            choose_page(s, r, &left);
    }
}

// A preference only: a full node must not stop the run.
void dqi_region_prefer_node(const dq_region *r) {
#ifdef SYS_mbind
    enum { MPOL_PREFERRED_ = 1 };
    if (!r->cpu || r->conf.affinity < 0 || r->conf.affinity > 62) return;
    unsigned long mask = 1ul << r->conf.affinity;
    if (syscall(SYS_mbind, dqi_core_of(r->session)->base + r->offset, bytes_of(r), MPOL_PREFERRED_, &mask,
                64ul, 0u) != 0 &&
        errno != ENOSYS)
        dqi_note(r->session, "region %s: NUMA node %d: %s; memory comes from any node", r->conf.name,
                 r->conf.affinity, strerror(errno));
#endif
}

// ---- the layout -------------------------------------------------------------------------------------------

// Assigns arena offsets from `at` to the regions of a part, of the session's own memory or bound ones;
// returns the end offset.
static uint64_t lay_out(dqi_core *core, enum part p, bool bound, uint64_t at) {
    for (uint32_t i = 0; i < core->n_regions; i++) {
        dq_region *r = core->regions[i];
        if (part_of(r) != p || (r->bound != NULL) != bound) continue;
        r->offset = at;
        r->space = bytes_of(r);
        at += r->space;
    }
    return at;
}

// ---- mappings ---------------------------------------------------------------------------------------------

static bool limits_addresses(void) {
    struct rlimit l;
    return getrlimit(RLIMIT_AS, &l) == 0 && l.rlim_cur != RLIM_INFINITY;
}

// Reserves the address range, with slack to align the start to a huge page.
static int reserve(dqi_core *core, uint64_t bytes, dq_diag *diag) {
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    core->later_at = dqi_round_up(bytes, DQI_HUGE_PAGE);
    uint64_t later = bytes * LATER_TIMES;
    later = later < LATER_MIN ? LATER_MIN : later > LATER_MAX ? LATER_MAX : later;
    core->later_end = core->later_at + later;
    void *p =
        limits_addresses() ? MAP_FAILED : mmap(NULL, core->later_end + DQI_HUGE_PAGE, PROT_NONE, how, -1, 0);
    if (p == MAP_FAILED) {
        core->later_end = core->later_at;
        p = mmap(NULL, core->later_end + DQI_HUGE_PAGE, PROT_NONE, how, -1, 0);
    }
    if (p == MAP_FAILED)
        return dqi_fail(diag, DQ_ESYS - errno, "memory regions: %llu bytes: %s%s", (unsigned long long)bytes,
                        strerror(errno),
                        limits_addresses() ? "; hint: ulimit -v limits addresses: raise it" : "");
    core->reserved = p;
    core->reserved_bytes = core->later_end + DQI_HUGE_PAGE;
    core->base = (uint8_t *)dqi_round_up((uintptr_t)p, DQI_HUGE_PAGE);
    return DQ_OK;
}

static int make_file(dqi_core *core, enum part p) {
    static const char *const names[] = {"daqiri", "daqiri-huge", "daqiri-dark"};
    core->fds[p] = memfd_create(names[p], MFD_CLOEXEC | (p == HUGE ? MFD_HUGETLB : 0));
    return core->fds[p] < 0 ? -errno : 0;
}

static int map_part(dqi_core *core, enum part p, uint64_t at, uint64_t bytes) {
    if (bytes == 0) return 0;
    int err = make_file(core, p);
    if (err != 0) return err;
    if (ftruncate(core->fds[p], (off_t)bytes) != 0) return -errno;
    int may = p == DARK ? PROT_NONE : PROT_READ | PROT_WRITE;
    if (mmap(core->base + at, bytes, may, MAP_SHARED | MAP_FIXED, core->fds[p], 0) == MAP_FAILED)
        return -errno;
    return 0;
}

// Maps device-only regions of the host a second time, at the addresses that the emulated device uses.
static int map_device(dqi_core *core, uint64_t bytes) {
    if (bytes == 0) return 0;
    void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, core->fds[DARK], 0);
    if (p == MAP_FAILED) return -errno;
    core->device = p;
    core->device_bytes = bytes;
    for (uint32_t i = 0; i < core->n_regions; i++)
        if (part_of(core->regions[i]) == DARK)
            core->regions[i]->device = core->device + (core->regions[i]->offset - core->arena_bytes);
    return 0;
}

// Maps the memory that a region is bound to.
static int map_one(dq_session *s, dq_region *r, dq_diag *diag) {
    dqi_note(s, "memory region %s: %llu KiB %s", r->conf.name, (unsigned long long)bytes_of(r) >> 10,
             r->bound->own ? "in a file of its own, which other programs can read"
                           : "of memory of the application");
    return r->bound->map(r, dqi_core_of(s)->base + r->offset, diag);
}

// Maps the memory that regions are bound to.
static int map_bound(dq_session *s, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    int err = DQ_OK;
    for (uint32_t i = 0; i < core->n_regions && err == DQ_OK; i++) {
        dq_region *r = core->regions[i];
        if (!r->bound || !r->cpu) continue;
        err = map_one(s, r, diag);
    }
    return err;
}

int dqi_arena_measure(dq_session *s, uint32_t align, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    int err = DQ_OK;
    for (uint32_t i = 0; i < core->n_regions && err == DQ_OK; i++)
        err = dqi_region_size(core->regions[i], align, diag);
    for (uint32_t i = 0; i < core->n_regions && err == DQ_OK; i++)
        if (core->regions[i]->bound) err = core->regions[i]->bound->check(core->regions[i], diag);
    return err;
}

// Lays out all parts. *behind: bytes of the device-only regions of the host, and of all device-only regions.
// Returns the bytes of the CPU's regions that the session allocates, with their padding.
static uint64_t lay_out_all(dqi_core *core, uint64_t *dark, uint64_t *behind) {
    core->small_end = lay_out(core, SMALL, false, 0);
    uint64_t small = lay_out(core, SMALL, true, core->small_end);
    core->huge_at = dqi_round_up(small, DQI_HUGE_PAGE);
    core->huge_end = lay_out(core, HUGE, false, core->huge_at);
    uint64_t huge = lay_out(core, HUGE, true, core->huge_end);
    core->arena_bytes = dqi_round_up(huge, DQI_HUGE_PAGE);
    uint64_t end = lay_out(core, DARK, false, core->arena_bytes);
    *dark = end - core->arena_bytes;
    end = lay_out(core, GPU, true, lay_out(core, GPU, false, end));
    *behind = end - core->arena_bytes;
    return core->arena_bytes - (small - core->small_end) - (huge - core->huge_end);
}

int dqi_arena_open(dq_session *s, uint32_t align, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    core->align = align;
    uint64_t dark_bytes, behind;
    int err = dqi_arena_measure(s, align, diag);
    if (err != DQ_OK) return err;
    choose_pages(s);
    uint64_t own = lay_out_all(core, &dark_bytes, &behind);
    if (core->arena_bytes + behind == 0) return DQ_OK;
    err = dqi_memory_check("memory regions", own, core->small_end, "lower num_bufs or buf_size", diag);
    if (err == DQ_OK) err = reserve(core, core->arena_bytes + behind, diag);
    if (err != DQ_OK) return err;
    err = map_part(core, SMALL, 0,
                   core->huge_at); // includes the padding: a device may register the whole arena
    if (err == 0) err = map_part(core, HUGE, core->huge_at, core->huge_end - core->huge_at);
    if (err == 0) err = map_part(core, DARK, core->arena_bytes, dark_bytes);
    if (err == 0) err = map_device(core, dark_bytes);
    if (err != 0)
        return dqi_fail(diag, DQ_ESYS + err, "memory regions: %llu bytes: %s%s",
                        (unsigned long long)(core->arena_bytes + behind), strerror(-err),
                        err == -EFBIG ? "; hint: ulimit -f holds for memory too: raise it" : "");
    for (uint32_t i = 0; i < core->n_regions; i++) {
        core->regions[i]->base = core->base;
        if (!core->regions[i]->bound) dqi_region_prefer_node(core->regions[i]);
    }
    err = map_bound(s, diag);
    return err == DQ_OK ? dqi_pools_fill(s, diag) : err;
}

int dqi_region_file(const dq_region *r, uint64_t *at) {
    const dqi_core *core = dqi_core_of(r->session);
    *at = r->bound ? r->bound->at : r->huge ? r->offset - core->huge_at : r->offset;
    return r->bound ? r->bound->fd : core->fds[r->huge ? HUGE : SMALL];
}

int dqi_arena_touch(dq_session *s, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    unsigned long long mib = (core->small_end + core->huge_end - core->huge_at) >> 20;
    int64_t from = dqi_mono_ns();
    int err = dqi_populate(core->base, core->small_end);
    if (err == 0) err = dqi_populate(core->base + core->huge_at, core->huge_end - core->huge_at);
    if (err != 0)
        return dqi_fail(diag, DQ_ESYS + err, "memory regions: %llu MiB: %s%s", mib, strerror(-err),
                        err == -EFAULT ? "; hint: huge pages went to another process meanwhile: raise "
                                         "/proc/sys/vm/nr_hugepages"
                                       : "");
    int64_t took = dqi_mono_ns() - from;
    if (took > SLOW_NS)
        dqi_note(s,
                 "memory regions: the open waited %.1f s for %llu MiB; huge pages (kind: huge) take a tenth",
                 (double)took / 1e9, mib);
    return DQ_OK;
}

// ---- regions added and deleted while the session is open --------------------------------------------------

static bool is_host(const dq_region_conf *conf) {
    return conf->kind == DQ_KIND_HOST || conf->kind == DQ_KIND_HUGE;
}

// Returns a deleted region whose ids and space suffice for num_bufs buffers in `bytes` bytes; NULL: none.
static dq_region *reusable(const dqi_core *core, uint32_t num_bufs, uint64_t bytes, bool huge) {
    for (uint32_t i = 0; i < core->n_regions; i++) {
        dq_region *r = core->regions[i];
        bool fits = r->n_ids >= num_bufs && (r->space >= bytes || r->space == 0);
        if (atomic_load(&r->gone) && is_host(&r->conf) && r->huge == huge && fits) return r;
    }
    return NULL;
}

// Maps `bytes` bytes of the part's file at the region's arena offset, which the file has at the same place as
// for the regions of the open, and populates them. Returns 0 or -errno.
static int map_later(dqi_core *core, const dq_region *r, uint64_t bytes) {
    const enum part p = r->huge ? HUGE : SMALL;
    int err = core->fds[p] < 0 ? make_file(core, p) : 0;
    off_t at = (off_t)(p == HUGE ? r->offset - core->huge_at : r->offset), end = at + (off_t)bytes;
    if (err != 0) return err;
    off_t size = lseek(core->fds[p], 0, SEEK_END);
    if (size < end && ftruncate(core->fds[p], end) != 0) return -errno;
    if (mmap(core->base + r->offset, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, core->fds[p],
             at) == MAP_FAILED)
        return -errno;
    return dqi_populate(core->base + r->offset, bytes);
}

static bool is_named(const dqi_core *core, const char *name) {
    bool is = false;
    for (uint32_t i = 0; i < core->n_regions && !is; i++)
        is = !atomic_load(&core->regions[i]->gone) && strcmp(core->regions[i]->conf.name, name) == 0;
    return is;
}

// Checks whether a region of this configuration can be added now.
static int may_join(const dqi_core *core, const dq_region_conf *conf, dq_diag *diag) {
    if (is_named(core, conf->name))
        return dqi_fail(diag, DQ_ALREADY_EXISTS, "region %s: the session has a region of this name",
                        conf->name);
    if (!is_host(conf))
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "region %s: memory of kind %s is allocated at the open only; hint: kind host or huge",
                        conf->name, dq_kind_name(conf->kind));
    if (!core->reserved)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "region %s: the session was opened without a memory region, and so has no addresses "
                        "for one",
                        conf->name);
    return dqi_region_check(conf, diag);
}

// Gives the region addresses for `bytes` bytes.
static int place(dqi_core *core, dq_region *r, uint64_t bytes, dq_diag *diag) {
    if (r->space != 0) return DQ_OK;
    uint64_t at = dqi_round_up(core->later_at, DQI_HUGE_PAGE);
    if (at + bytes > core->later_end)
        return dqi_fail(diag, DQ_ESYS - ENOMEM,
                        "region %s: no addresses are left for its %llu bytes: the session reserved %d "
                        "times the memory of its configuration%s",
                        r->conf.name, (unsigned long long)bytes, LATER_TIMES,
                        limits_addresses() ? "; hint: ulimit -v limits addresses: raise it" : "");
    core->later_at = at + bytes;
    r->offset = at;
    r->space = bytes;
    return DQ_OK;
}

static int no_memory(const dq_region *r, uint64_t bytes, int err, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS + err, "region %s: %llu bytes: %s", r->conf.name, (unsigned long long)bytes,
                    strerror(-err));
}

// Gives the region addresses, memory and a pool. Its ids are reserved.
static int furnish(dq_session *s, dq_region *r, uint64_t bytes, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    char what[DQ_NAME_LEN + 32];
    snprintf(what, sizeof what, "region %s", r->conf.name);
    uint64_t own = r->bound ? 0 : bytes;
    int err = dqi_memory_check(what, own, r->huge ? 0 : own, "lower num_bufs or buf_size", diag);
    if (err == DQ_OK) err = place(core, r, bytes, diag);
    if (err == DQ_OK && r->bound) err = map_one(s, r, diag);
    if (err != DQ_OK) return err;
    if (!r->bound && (err = map_later(core, r, bytes)) != 0) return no_memory(r, bytes, err, diag);
    if ((err = dqi_pool_fill(r)) != 0) return no_memory(r, bytes, err, diag);
    r->base = core->base;
    if (!r->bound) dqi_region_prefer_node(r);
    return DQ_OK;
}

// Ends the mapping of memory of the application, which keeps its content; the addresses stay reserved.
static void reserve_again(dqi_core *core, const dq_region *r) {
    const int how = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED;
    mmap(core->base + r->offset, r->space, PROT_NONE, how, -1, 0);
}

static void unbind(dqi_core *core, dq_region *r) {
    if (r->cpu) reserve_again(core, r);
    r->bound->release(r->bound);
    r->bound = NULL;
}

// Determines the size of a region to be added, and its pages, which memory of the application has already.
static int measure(dq_session *s, dq_region *plan, dq_diag *diag) {
    int err = dqi_region_size(plan, dqi_core_of(s)->align, diag);
    if (err != DQ_OK) return err;
    uint64_t left = free_huge_pages();
    if (!plan->bound) {
        choose_page(s, plan, &left);
    } else if ((err = plan->bound->check(plan, diag)) == DQ_OK) {
        plan->huge = plan->bound->huge;
    }
    return err;
}

// Adds the region that was planned.
static int add_planned(dq_session *s, const dq_region *plan, dq_region **out, dq_diag *diag) {
    uint64_t bytes = bytes_of(plan);
    dq_region *r = reusable(dqi_core_of(s), plan->conf.num_bufs, bytes, plan->huge);
    int err = r ? DQ_OK : dqi_region_append(s, &plan->conf, &r, diag);
    if (err != DQ_OK) return err;
    r->conf = plan->conf;
    r->headroom = plan->headroom;
    r->stride = plan->stride;
    r->group = plan->group;
    r->n_groups = plan->n_groups;
    r->huge = plan->huge;
    r->bound = plan->bound;
    err = furnish(s, r, bytes, diag);
    atomic_store(&r->gone, err != DQ_OK);
    if (err == DQ_OK) *out = r;
    if (err != DQ_OK && r->bound && r->space > 0) reserve_again(dqi_core_of(s), r);
    if (err != DQ_OK) r->bound = NULL;
    return err;
}

int dq_region_join(dq_session *s, const dq_region_conf *conf, dqi_bound *bound, dq_region **out,
                   dq_diag *diag) {
    dq_region plan = {.conf = *conf, .cpu = true, .headroom = DQ_HEADROOM, .session = s, .bound = bound};
    int err = may_join(dqi_core_of(s), conf, diag);
    if (err == DQ_OK) err = measure(s, &plan, diag);
    if (err == DQ_OK) err = add_planned(s, &plan, out, diag);
    if (err != DQ_OK && bound) bound->release(bound);
    return err;
}

bool dq_region_leave(dq_region *r) {
    if (atomic_load(&r->gone)) return true;
    if (dqi_region_out(r) > 0) return false;
    dqi_core *core = dqi_core_of(r->session);
    dqi_lock(&r->spare_lock);
    dqi_bufs_free(r->session, &r->spare.id, 1);
    r->spare = (dqi_spare){.id = DQI_NO_BUF};
    dqi_unlock(&r->spare_lock);
    dqi_region_forget(r);
    atomic_store(&r->gone, true);
    if (r->bound)
        unbind(core, r);
    else
        madvise(core->base + r->offset, r->space,
                MADV_REMOVE); // gives the pages back; the file keeps its size
    return true;
}

uint64_t dqi_arena_close(dq_session *s) {
    dqi_core *core = dqi_core_of(s);
    uint64_t missing = dqi_regions_free(s);
    if (core->reserved) munmap(core->reserved, core->reserved_bytes);
    if (core->device) munmap(core->device, core->device_bytes);
    core->reserved = core->device = NULL;
    dqi_arena_detach(s);
    return missing;
}

void dqi_arena_detach(dq_session *s) {
    dqi_core *core = dqi_core_of(s);
    for (enum part p = SMALL; p <= DARK; p++)
        if (core->fds[p] >= 0) close(core->fds[p]);
}
