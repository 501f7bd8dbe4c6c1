// region_test.c: regions and their pools: layout, ids, exhaustion, pages, side arrays.
#include "bed.h"
#include "core/cgroup.h"
#include "core/region.h"
#include "pipeline/session.h"

#include <errno.h>
#include <ftw.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static dq_session *new_session(void) {
    dq_session_conf c = {
        .virtual_clock = 1, .start_ns = BED_START_NS, .rx_meta_buffers = 4, .tx_meta_buffers = 4};
    dq_session *s;
    dq_diag d = {{0}};
    bed_must(dq_session_new(&c, &s, &d), &d, "session");
    return s;
}

static void open_it(dq_session *s) {
    dq_diag d = {{0}};
    bed_must(dq_session_open(s, &d), &d, "open");
}

// A queue that names these regions.
static void name_regions(dq_session *s, dq_region *const *r, uint32_t n) {
    dq_diag d = {{0}};
    dq_iface *i;
    dq_queue *q;
    dq_iface_conf ic = {.name = "port", .engine = "loop"};
    dq_queue_conf qc = {.name = "tx", .dir = DQ_TX, .direct = 1, .core = -1, .batch_size = 4, .n_regions = n};
    for (uint32_t k = 0; k < n; k++)
        qc.regions[k] = r[k];
    bed_must(dq_iface_add(s, &ic, &i, &d), &d, "interface");
    bed_must(dq_queue_add(i, &qc, &q, &d), &d, "queue");
}

// Buffers lie apart, aligned, inside the arena, each with its headroom, where a queue names the region, and
// its whole size to write to. Others begin at multiples of what their size is a multiple of.
static void layout(void) {
    static const uint32_t sizes[] = {1, 64, 1500, 2048, 9000, 65, 1 << 16, 3 << 10};
    enum { REGIONS = sizeof sizes / sizeof *sizes, QUEUED = 3, BUFS = 17 };
    dq_session *s = new_session();
    dq_region *r[REGIONS];
    for (uint32_t i = 0; i < REGIONS; i++)
        r[i] = bed_region(s, "r", BUFS, sizes[i]);
    name_regions(s, r, QUEUED);
    open_it(s);
    uint64_t end = 0;
    for (uint32_t i = 0; i < REGIONS; i++) {
        dq_region_info info;
        dq_region_read(r[i], &info);
        DQ_EQ(info.num_bufs, BUFS);
        DQ_EQ(info.free_bufs, BUFS);
        DQ_EQ(info.buf_size, sizes[i]);
        DQ_EQ(info.kind, DQ_KIND_HOST);
        const uint32_t head = i < QUEUED ? DQ_HEADROOM : 0;
        DQ_EQ(info.headroom, head);
        DQ_CHECK(info.base != NULL && info.device == NULL && info.stride >= head + sizes[i]);
        DQ_EQ(info.stride % 64, 0);
        if (sizes[i] == 1 << 16) DQ_EQ(info.stride, 1 << 16);
        if (sizes[i] == 3 << 10) DQ_EQ(info.stride % 1024, 0);
        DQ_EQ(info.offset % 64, 0);
        DQ_CHECK(info.offset >= end);
        end = info.offset + (uint64_t)BUFS * info.stride;
        uint32_t ids[BUFS];
        DQ_EQ(dqi_bufs_alloc(r[i], ids, BUFS), BUFS);
        for (uint32_t k = 0; k < BUFS; k++) {
            uint64_t off = dqi_buf_off(r[i], ids[k]);
            DQ_CHECK(off >= info.offset + head && off + sizes[i] <= end);
            DQ_EQ((off - head - info.offset) % info.stride, 0);
            if (sizes[i] == 1 << 16) DQ_EQ((uintptr_t)(info.base + off) % dqi_page_size(), 0);
            memset(info.base + off - head, (int)k, head + sizes[i]);
        }
        for (uint32_t k = 0; k < BUFS; k++) { // nothing wrote over another's bytes
            const uint8_t *p = info.base + dqi_buf_off(r[i], ids[k]);
            DQ_EQ(p[-(int)head], k);
            DQ_EQ(p[sizes[i] - 1], k);
        }
        dqi_bufs_free(s, ids, BUFS);
    }
    DQ_EQ(dq_session_close(s), 0);
}

static void ids_are_the_sessions(void) {
    dq_session *s = new_session();
    dq_region *r[3];
    uint8_t seen[30] = {0};
    uint32_t ids[30];
    for (uint32_t i = 0; i < 3; i++)
        r[i] = bed_region(s, "r", 10, 100);
    open_it(s);
    for (uint32_t i = 0; i < 3; i++) {
        DQ_EQ(dqi_bufs_alloc(r[i], ids + 10 * i, 10), 10);
        for (uint32_t k = 0; k < 10; k++) {
            uint32_t id = ids[10 * i + k];
            DQ_CHECK(id < 30 && !seen[id]);
            seen[id < 30 ? id : 0] = 1;
            DQ_CHECK(dqi_buf_region(s, id) == r[i]);
        }
    }
    DQ_CHECK(dqi_buf_region(s, 30) == NULL);
    DQ_CHECK(dqi_buf_region(s, DQI_NO_BUF) == NULL);
    for (uint32_t k = 0; k < 30; k += 4) // regions mixed, holes in between
        ids[k] = DQI_NO_BUF;
    dqi_bufs_free(s, ids, 30);
    DQ_EQ(dq_session_close(s), 8);
}

static void all_or_none(void) {
    dq_session *s = new_session();
    dq_region *r = bed_region(s, "r", 8, 64);
    open_it(s);
    uint32_t ids[16];
    dq_region_info info;
    DQ_EQ(dqi_bufs_alloc(r, ids, 5), 5);
    DQ_EQ(dqi_bufs_alloc(r, ids + 5, 4), 0);
    dq_region_read(r, &info);
    DQ_EQ(info.free_bufs, 3);
    DQ_EQ(dqi_bufs_some(r, ids + 5, 4), 3);
    DQ_EQ(dqi_bufs_some(r, ids + 8, 4), 0);
    DQ_EQ(dqi_bufs_alloc(r, ids + 8, 1), 0);
    DQ_EQ(dqi_bufs_alloc(r, ids + 8, 0), 0);
    dqi_bufs_free(s, ids, 8);
    DQ_EQ(dqi_bufs_alloc(r, ids, 8), 8);
    DQ_EQ(dqi_bufs_alloc(r, ids + 8, 1), 0);
    dqi_bufs_free(s, ids, 8);
    DQ_EQ(dq_session_close(s), 0);
}

static void side_array(void) {
    dq_session *s = new_session();
    dq_diag d = {{0}};
    dq_region *r = bed_region(s, "super", 4, 256);
    DQ_EQ(dqi_region_share(r, &d), DQ_OK);
    open_it(s);
    uint32_t ids[4];
    dq_region_info info;
    for (int round = 0; round < 3; round++) { // a buffer that comes back starts with one holder again
        DQ_EQ(dqi_bufs_alloc(r, ids, 4), 4);
        memset(s->core.base + dqi_buf_off(r, ids[0]), 0xff, 256); // counts lie elsewhere
        dqi_buf_hold(r, ids[0]);
        dqi_buf_hold(r, ids[0]);
        dqi_bufs_free(s, ids, 4);
        dq_region_read(r, &info);
        DQ_EQ(info.free_bufs, 3);
        dqi_bufs_free(s, ids, 1);
        dq_region_read(r, &info);
        DQ_EQ(info.free_bufs, 3);
        dqi_bufs_free(s, ids, 1);
        dq_region_read(r, &info);
        DQ_EQ(info.free_bufs, 4);
    }
    DQ_EQ(dq_session_close(s), 0);
}

static bool report_has(const dq_session *s, const char *a, const char *b) {
    char text[512];
    for (uint32_t i = 0; dq_session_report(s, i, text, sizeof text); i++)
        if (strstr(text, a) && strstr(text, b)) return true;
    return false;
}

// Huge pages where there are some, else small ones and a note that names the region; memory works either way.
static void huge_or_a_note(void) {
    dq_session *s = new_session();
    dq_diag d = {{0}};
    dq_region_conf c = {
        .name = "big", .kind = DQ_KIND_HUGE, .affinity = -1, .num_bufs = 64, .buf_size = 4000};
    dq_region *r, *small = bed_region(s, "small", 3, 100);
    DQ_EQ(dq_region_add(s, &c, &r, &d), DQ_OK);
    open_it(s);
    dq_region_info info;
    dq_region_read(r, &info);
    DQ_EQ(info.kind, DQ_KIND_HUGE);
    DQ_CHECK(info.huge == !report_has(s, "big", "hint"));
    if (info.huge) DQ_EQ((uintptr_t)(info.base + info.offset) % (2u << 20), 0);
    uint32_t ids[64];
    DQ_EQ(dqi_bufs_alloc(r, ids, 64), 64);
    for (uint32_t i = 0; i < 64; i++)
        memset(s->core.base + dqi_buf_off(r, ids[i]), 1, 4000);
    dqi_bufs_free(s, ids, 64);
    dq_region_read(small, &info);
    DQ_CHECK(!info.huge);
    DQ_EQ(dq_session_close(s), 0);
}

static uint32_t free_huge_pages(void) {
    FILE *f = fopen("/sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "r");
    unsigned n = 0;
    if (f && fscanf(f, "%u", &n) != 1) n = 0;
    if (f) fclose(f);
    return n;
}

// A region that needs more huge pages than there are lies on small ones, and the report gives how many it
// lacks.
static void huge_falls_back(void) {
    uint32_t pages = free_huge_pages();
    if (pages > 512) return; // not worth the memory; huge_or_a_note has seen the others
    dq_session *s = new_session();
    dq_diag d = {{0}};
    dq_region_conf c = {.name = "giant", .kind = DQ_KIND_HUGE, .affinity = -1, .buf_size = 2000000};
    dq_region *r;
    dq_region_info info;
    c.num_bufs = pages + 2 + pages / 16;
    DQ_EQ(dq_region_add(s, &c, &r, &d), DQ_OK);
    open_it(s);
    dq_region_read(r, &info);
    DQ_CHECK(!info.huge && report_has(s, "giant", "small pages") && report_has(s, "giant", "hint"));
    uint32_t id;
    DQ_EQ(dqi_bufs_alloc(r, &id, 1), 1);
    memset(s->core.base + dqi_buf_off(r, id), 1, 2000000);
    dqi_bufs_free(s, &id, 1);
    DQ_EQ(dq_session_close(s), 0);
}

static void affinity_is_a_wish(void) {
    for (int node = 0; node < 70; node += 23) {
        dq_session *s = new_session();
        dq_diag d = {{0}};
        dq_region_conf c = {
            .name = "near", .kind = DQ_KIND_HOST, .affinity = node, .num_bufs = 5, .buf_size = 3000};
        dq_region *r;
        DQ_EQ(dq_region_add(s, &c, &r, &d), DQ_OK);
        open_it(s);
        uint32_t ids[5];
        DQ_EQ(dqi_bufs_alloc(r, ids, 5), 5);
        memset(s->core.base + dqi_buf_off(r, ids[4]), 1, 3000);
        dqi_bufs_free(s, ids, 5);
        DQ_EQ(dq_session_close(s), 0);
    }
}

static void refused(void) {
    static const struct {
        const char *name;
        dq_region_conf c;
        int err;
    } cases[] = {
        {"no buffers", {.name = "r1", .num_bufs = 0, .buf_size = 64}, DQ_INVALID_PARAMETER},
        {"empty buffers", {.name = "r1", .num_bufs = 4, .buf_size = 0}, DQ_INVALID_PARAMETER},
        {"a stride past 32 bits",
         {.name = "r1", .num_bufs = 1, .buf_size = UINT32_MAX},
         DQ_INVALID_PARAMETER},
        {"ids past 32 bits", {.name = "r1", .num_bufs = UINT32_MAX, .buf_size = 64}, DQ_INVALID_PARAMETER},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dq_session *s = new_session();
        dq_diag d = {{0}};
        dq_region *r;
        dq_case = cases[k].name;
        bed_region(s, "first", 4, 64);
        DQ_EQ(dq_region_add(s, &cases[k].c, &r, &d), cases[k].err);
        DQ_CHECK(strstr(d.text, "r1") != NULL);
        DQ_EQ(dq_session_close(s), 0);
    }
    dq_session *s = new_session();
    dq_diag d = {{0}};
    dq_region_conf late = {.name = "late", .num_bufs = 4, .buf_size = 64};
    dq_region *r;
    dq_case = "after open";
    bed_region(s, "first", 4, 64);
    open_it(s);
    DQ_EQ(dq_region_add(s, &late, &r, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "late") != NULL);
    DQ_EQ(dq_session_close(s), 0);
}

// More memory than the host has is refused at open, not found out by the packet that touches it.
static void no_more_than_there_is(void) {
    dq_session *s = new_session();
    bed_region(s, "r", 1u << 20, 1u << 30); // 1 PiB
    dq_diag d = {{0}};
    DQ_EQ(dq_session_open(s, &d), DQ_ESYS - ENOMEM);
    DQ_CHECK(strstr(d.text, "num_bufs") != NULL);
    DQ_EQ(dq_session_close(s), 0);
}

static void write_file(const char *dir, const char *name, const char *text) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    for (char *p = path + strlen(dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
        *p = 0;
        mkdir(path, 0700);
        *p = '/';
    }
    FILE *f = fopen(path, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0) exit(1);
}

static int remove_one(const char *path, const struct stat *st, int flag, struct FTW *at) {
    (void)st, (void)flag, (void)at;
    return remove(path);
}

static void control_groups(void) {
    static const struct {
        const char *name, *own, *file[2], *text[2];
        uint64_t limit;
        int found; // which file has it
    } cases[] = {
        {"container", "0::/\n", {"memory.max"}, {"1000\n"}, 1000, 0},
        {"service", "0::/a/b\n", {"a/b/memory.max", "memory.max"}, {"2000\n", "max\n"}, 2000, 0},
        {"above", "0::/a/b\n", {"a/b/memory.max", "a/memory.max"}, {"2000\n", "1500\n"}, 1500, 1},
        {"none", "0::/a\n", {"a/memory.max", "x/memory.max"}, {"max\n", "5\n"}, UINT64_MAX, 0},
        {"version 1",
         "5:cpu,memory:/a\n0::/\n",
         {"memory/a/memory.limit_in_bytes", "memory.max"},
         {"3000\n", "max\n"},
         3000,
         0},
        {"beside", "0::/a\n", {"unified/a/memory.max"}, {"4000\n"}, 4000, 0},
        {"another controller",
         "5:memoryless:/a\n",
         {"memory/a/memory.limit_in_bytes"},
         {"1\n"},
         UINT64_MAX,
         0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char dir[] = "/tmp/cgroup-XXXXXX", own[64], want[256], file[256] = "";
        dq_case = cases[k].name;
        if (!mkdtemp(dir)) exit(1);
        write_file(dir, "own", cases[k].own);
        for (int i = 0; i < 2 && cases[k].file[i]; i++)
            write_file(dir, cases[k].file[i], cases[k].text[i]);
        snprintf(own, sizeof own, "%s/own", dir);
        DQ_EQ(dqi_cgroup_limit(own, dir, file, sizeof file), cases[k].limit);
        snprintf(want, sizeof want, "%s/%s", dir, cases[k].file[cases[k].found]);
        if (cases[k].limit != UINT64_MAX) DQ_CHECK(strcmp(file, want) == 0);
        nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    }
}

static void a_limit_of_addresses_is_named(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%lu", &pages) != 1) exit(1);
    fclose(f);
    struct rlimit had, less;
    dq_session *s = new_session();
    bed_region(s, "r", 1u << 18, 2048); // 512 MiB and more
    getrlimit(RLIMIT_AS, &had);
    less = had;
    less.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (128u << 20);
    dq_diag d = {{0}};
    setrlimit(RLIMIT_AS, &less);
    void *p = mmap(NULL, 1u << 29, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    int err = dq_session_open(s, &d);
    setrlimit(RLIMIT_AS, &had);
    if (p == MAP_FAILED) { // an emulator has no such limit
        DQ_EQ(err, DQ_ESYS - ENOMEM);
        DQ_CHECK(strstr(d.text, "ulimit -v") != NULL);
    } else {
        munmap(p, 1u << 29);
    }
    DQ_EQ(dq_session_close(s), 0);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(layout);
    DQ_RUN(ids_are_the_sessions);
    DQ_RUN(all_or_none);
    DQ_RUN(side_array);
    DQ_RUN(huge_or_a_note);
    DQ_RUN(huge_falls_back);
    DQ_RUN(affinity_is_a_wish);
    DQ_RUN(refused);
    DQ_RUN(no_more_than_there_is);
    DQ_RUN(control_groups);
    DQ_RUN(a_limit_of_addresses_is_named);
    return dq_done();
}
