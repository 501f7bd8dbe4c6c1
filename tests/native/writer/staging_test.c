// staging_test.c: files of what lies in a GPU's memory are, byte for byte, those of the same packets in the
// host's, through staging memory and by cuFile. GPU and cuFile are the libraries that stand in for them,
// linked in; a case that loses the GPU runs in a child.
#include "../../gpu/fake/fake_cuda.c"
#include "../../gpu/fake/fake_cufile.c"
#include "../../gpu/fake/fake_error.c"
#include "../../gpu/fake/fake_handles.c"
#include "../../gpu/fake/fake_list.c"
#include "../../gpu/fake/fake_time.c"
#include "../../gpu/fake/fake_user.c"

#include "writer_files_rig.h"

#include "core/burst.h"
#include "cuda/memory.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { BUFS = 256, FEW = 4, BIG = 5 << 20 };

static const int32_t all_host[] = {DQ_KIND_HOST, DQ_KIND_HOST}, all_gpu[] = {DQ_KIND_DEVICE, DQ_KIND_DEVICE},
                     payload_gpu[] = {DQ_KIND_HOST, DQ_KIND_DEVICE};

static uint8_t *memory_of(const dq_burst *b, uint32_t seg, uint32_t i, uint32_t n) {
    if (!(b->device_only >> seg & 1)) return seg_bytes(b, seg, i);
    uint8_t *p = fake_reach((uintptr_t)dqi_device_bytes(b, seg, i), n);
    must(p != NULL, "the GPU's memory");
    return p;
}

// Bytes that repeat after 64,256; a tag names where they begin.
static void put_bytes(dq_burst *b, uint32_t seg, uint32_t i, uint32_t len, uint64_t tag) {
    enum { PERIOD = 256 * 251 };
    static uint8_t pattern[2 * PERIOD];
    for (uint32_t k = 0; pattern[PERIOD] != 7 && k < sizeof pattern; k++)
        pattern[k] = (uint8_t)(7 + k * 7 + k / 251);
    uint8_t *p = memory_of(b, seg, i, len);
    for (uint32_t k = 0; k < len; k += PERIOD)
        memcpy(p + k, pattern + tag * 31 % PERIOD, len - k < PERIOD ? len - k : PERIOD);
    b->bytes += len;
    b->len[seg][i] = len;
}

// What is written: bursts of n packets, each with segments of any lengths.
typedef struct load {
    uint32_t kind, nseg, bursts, n, len, skip;
    uint32_t buf; // bytes of a buffer; 0: len
    bool payloads, aggregates;
    uint64_t rotate, limit; // limit: bytes of a file that the system allows
} load;

static int describe(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    (void)i, (void)conn;
    *out = (dq_conn_info){.local = "192.0.2.1:7000", .peer = "192.0.2.2:7001"};
    return DQ_OK;
}

static dq_burst *make(rig *r, const load *l, uint32_t number, dq_aggregate *a) {
    static const uint64_t there[] = {5};
    dq_burst *b = rig_burst(r, l->n);
    uint64_t state = number;
    for (uint32_t i = 0; i < l->n; i++) {
        for (uint32_t s = 0; s < l->nseg; s++)
            put_bytes(b, s, i, l->aggregates ? l->len : (uint32_t)(dq_rand(&state) % (l->len + 1)),
                      number * 100 + i);
        b->ts[i] = 1000000 * (int64_t)(number + 1) + i;
        b->flow[i] = 0;
    }
    if (!l->aggregates) return b;
    *a = (dq_aggregate){.batch_id = number,
                        .ordinal = number,
                        .slots = 4,
                        .slot_bytes = l->len / 4,
                        .cells = 4,
                        .cell_bytes = l->len / 4,
                        .present = there};
    b->aggregate = a;
    return b;
}

typedef struct folder {
    char dir[64];
    dq_line line;
    char error[2048];
} folder;

static bool has_room(rig *r, uint32_t n) {
    for (uint32_t s = 0; s < r->nseg; s++)
        if (dqi_region_level(r->regions[s]) < n) return false;
    return dqi_burst_pool_level(r->bursts) > 0;
}

// Files may have so many bytes from now on; 0: any number.
static void limit_files(uint64_t bytes) {
    struct rlimit r;
    signal(SIGXFSZ, SIG_IGN);
    must(getrlimit(RLIMIT_FSIZE, &r) == 0, "getrlimit");
    r.rlim_cur = bytes > 0 ? bytes : r.rlim_max;
    must(setrlimit(RLIMIT_FSIZE, &r) == 0, "setrlimit");
}

// Writes the load from memory of these kinds; the folder is the caller's to remove.
static void write_load(const load *l, const int32_t *kinds, bool virtual, folder *out) {
    rig r;
    dq_diag d = {{0}};
    rig_open_kinds(&r, virtual, l->nseg, kinds, l->len < BIG ? BUFS : FEW, l->buf ? l->buf : l->len);
    if (l->payloads) {
        rig_payloads(&r);
        rig_conns(&r, describe);
    }
    r.queue.conf.n_regions = l->nseg;
    for (uint32_t s = 0; s < l->nseg; s++)
        r.queue.conf.regions[s] = r.regions[s];
    dq_writer_conf c = writer_conf(&r);
    c.kind = (int32_t)l->kind;
    c.policy = DQ_POLICY_WAIT;
    c.packet_data_offset = l->skip;
    c.rotate_bytes = l->rotate;
    dq_stage *st = new_writer(&r, &c);
    if (st->ops->join(st, &r.queue, &d) != DQ_OK) dq_failed(__FILE__, __LINE__, d.text);
    if (l->limit > 0) limit_files(l->limit);
    dqi_node node = {.stage = st};
    dq_aggregate *a = calloc(l->bursts, sizeof *a); // each stays as long as its burst
    for (uint32_t k = 0; k < l->bursts; k++) {
        while (!virtual && !has_room(&r, l->n))
            usleep(50);
        push_waiting(st, &node, make(&r, l, k, &a[k]));
        while (virtual && dqi_stage_poll(st) > 0) {
        }
        if (virtual) balanced(st, &node, 1);
    }
    st->ops->finish(st);
    limit_files(0);
    out->line = balanced(st, &node, 1);
    DQ_EQ(out->line.held, 0);
    dq_writer_error(st, out->error, sizeof out->error);
    uint64_t packets;
    if (l->kind != DQ_WRITE_RAW_PACKETS && l->kind != DQ_WRITE_RAW_BURSTS) check_list(st, &packets);
    memcpy(out->dir, r.dir, sizeof out->dir);
    snprintf(r.dir, sizeof r.dir, "%s", "/nowhere");
    rig_close(&r);
    free(a);
}

static const char *path_in(const folder *f, const char *name) {
    static char paths[2][512];
    static int turn;
    char *p = paths[turn++ % 2];
    snprintf(p, sizeof paths[0], "%s/%s", f->dir, name);
    return p;
}

// The folders have the same files, at least `least`; a block file has the time when it was made.
static void same_files(const folder *a, const folder *b, uint32_t least) {
    uint32_t n = 0, others = 0;
    DIR *d = opendir(a->dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        size_t has = 0, want = 0;
        uint8_t *x = slurp(path_in(a, e->d_name), &has), *y = slurp(path_in(b, e->d_name), &want);
        DQ_EQ(has, want);
        uint32_t at = strstr(e->d_name, ".dqb") ? 4096 : 0;
        if (x && y && has == want && has > at) DQ_EQ_BYTES(x + at, y + at, has - at);
        free(x);
        free(y);
        n++;
    }
    closedir(d);
    d = opendir(b->dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        others += e->d_name[0] != '.';
    closedir(d);
    DQ_EQ(n, others);
    DQ_CHECK(n >= least);
}

// Sizes of which some are less than a list of moves, some more than a buffer of staging memory.
static const load loads[] = {
    {.kind = DQ_WRITE_PCAP, .nseg = 2, .bursts = DQ_ROUNDS(200), .n = 40, .len = 2000},
    {.kind = DQ_WRITE_PCAP, .nseg = 2, .bursts = DQ_ROUNDS(100), .n = 40, .len = 2000, .rotate = 500000},
    {.kind = DQ_WRITE_PCAP, .nseg = 1, .bursts = DQ_ROUNDS(200), .n = 60, .len = 1400, .payloads = true},
    {.kind = DQ_WRITE_PCAPNG, .nseg = 2, .bursts = DQ_ROUNDS(100), .n = 40, .len = 3000},
    {.kind = DQ_WRITE_RAW_FILE, .nseg = 2, .bursts = DQ_ROUNDS(100), .n = 40, .len = 3000, .skip = 7},
    {.kind = DQ_WRITE_RAW_FILE, .nseg = 1, .bursts = 7, .n = 1, .len = BIG},
    {.kind = DQ_WRITE_RAW_PACKETS, .nseg = 2, .bursts = 20, .n = 40, .len = 3000, .skip = 7},
    {.kind = DQ_WRITE_RAW_BURSTS, .nseg = 2, .bursts = 8, .n = 60, .len = 100000},
    {.kind = DQ_WRITE_RAW_BURSTS, .nseg = 1, .bursts = 5, .n = 2, .len = BIG, .skip = 4001},
    {.kind = DQ_WRITE_BLOCKS, .nseg = 1, .bursts = 40, .n = 1, .len = 100000, .aggregates = true},
    {.kind = DQ_WRITE_BLOCKS,
     .nseg = 1,
     .bursts = 6,
     .n = 1,
     .len = BIG,
     .aggregates = true,
     .rotate = 3 * BIG},
};

static void compare(const load *loads, size_t n, bool virtual) {
    for (size_t k = 0; k < n; k++) {
        const load *l = &loads[k];
        if (l->kind == DQ_WRITE_PCAPNG && !virtual) continue; // it has the time at its end
        const int32_t *kinds = l->nseg == 2 && k % 2 ? payload_gpu : all_gpu;
        folder want, got;
        write_load(l, all_host, virtual, &want);
        write_load(l, kinds, virtual, &got);
        same_files(&want, &got, 1);
        DQ_EQ(got.line.out, (uint64_t)l->bursts * l->n);
        DQ_EQ(got.line.out_bytes, want.line.out_bytes);
        CHECK_TEXT(got.error, "");
        remove_folder(want.dir);
        remove_folder(got.dir);
    }
}

static void staged(bool virtual) {
    conf_file.refuse = 1;
    compare(loads, sizeof loads / sizeof *loads, virtual);
    conf_file.refuse = 0;
}

static void on_threads(void) { staged(false); }

static void slow_gpu(void) {
    conf.delay_us = 300;
    staged(false);
    conf.delay_us = 0;
}

static void on_the_virtual_clock(void) { staged(true); }

// ---- by cuFile --------------------------------------------------------------------------------------------

// Whole pages and not, packets of which the first ones alone end at a page; the last one is more than one
// sum's worth, and takes long.
static const load straight[] = {
    {.kind = DQ_WRITE_BLOCKS, .nseg = 1, .bursts = 40, .n = 1, .len = 1 << 17, .aggregates = true},
    {.kind = DQ_WRITE_BLOCKS,
     .nseg = 1,
     .bursts = 40,
     .n = 1,
     .len = 100000,
     .buf = 1 << 17,
     .aggregates = true},
    {.kind = DQ_WRITE_BLOCKS, .nseg = 1, .bursts = 40, .n = 1, .len = 4000, .buf = 4096, .aggregates = true},
    {.kind = DQ_WRITE_BLOCKS,
     .nseg = 1,
     .bursts = 6,
     .n = 1,
     .len = BIG + 4,
     .buf = BIG + 4096,
     .aggregates = true,
     .rotate = 3 * BIG},
    {.kind = DQ_WRITE_RAW_BURSTS,
     .nseg = 1,
     .bursts = 20,
     .n = 1,
     .len = 100000,
     .buf = 1 << 17,
     .aggregates = true},
    {.kind = DQ_WRITE_RAW_BURSTS, .nseg = 1, .bursts = 20, .n = 3, .len = 16384, .aggregates = true},
    {.kind = DQ_WRITE_RAW_BURSTS,
     .nseg = 1,
     .bursts = 20,
     .n = 3,
     .len = 16388,
     .buf = 20480,
     .aggregates = true},
    {.kind = DQ_WRITE_RAW_BURSTS,
     .nseg = 1,
     .bursts = 20,
     .n = 5,
     .len = 16384,
     .skip = 8192,
     .aggregates = true},
    {.kind = DQ_WRITE_RAW_BURSTS, .nseg = 1, .bursts = 20, .n = 40, .len = 16384, .skip = 20},
    {.kind = DQ_WRITE_BLOCKS, .nseg = 1, .bursts = 2, .n = 1, .len = (64 << 20) + 8192, .aggregates = true},
};
enum { STRAIGHT = sizeof straight / sizeof *straight };

static void straight_ways(int from, int to) {
    for (int way = from; way < to; way++) {
        uint64_t before = writes;
        conf_file.shorter = way == 1;
        conf.delay_us = way == 2 ? 300 : 0;
        compare(straight, way ? STRAIGHT - 1 : STRAIGHT, way == 3);
        DQ_CHECK(writes - before >= 40 + 40 + 6 + 20 + 60 + 20 + 100 + (way ? 0 : 4));
    }
    conf_file.shorter = 0;
}

static void by_cufile(void) { straight_ways(0, 3); }
static void by_cufile_on_the_virtual_clock(void) { straight_ways(3, 4); }

// What cuFile won't take goes through staging memory.
static void cufile_refuses(void) {
    for (uint64_t why = 1; why <= 2; why++) { // files, memory
        conf_file.refuse = why;
        uint64_t before = writes;
        compare(straight, STRAIGHT - 1, true);
        DQ_EQ(writes > before, why == 2);
    }
    conf_file.refuse = 0;
}

// Blocks, whole ones, up to what the system allows.
static void disk_full_by_cufile(void) {
    uint32_t block = 4096 + 100000 / 4096 * 4096 + 4096; // its header, pages, the last one
    load l = straight[1];
    l.limit = 4096 + 7 * block + 8192;
    for (int virtual = 0; virtual < 2; virtual ++) {
        folder f;
        struct stat st = {0};
        write_load(&l, all_gpu, virtual, &f);
        DQ_EQ(f.line.out, 7);
        DQ_EQ(f.line.dropped[DQ_DROP_WRITE_ERROR], l.bursts - 7);
        CHECK_TEXT(f.error, "the file is as large as");
        DQ_EQ(stat(path_in(&f, "t_000000.dqb"), &st), 0);
        DQ_EQ(st.st_size, 4096 + 7 * block);
        remove_folder(f.dir);
    }
}

// A file as large as the system allows: whole packets up to there, the same from both kinds of memory.
static void disk_full(void) {
    const load l = {.kind = DQ_WRITE_PCAP, .nseg = 2, .bursts = 100, .n = 40, .len = 2000, .limit = 3000000};
    folder f;
    write_load(&l, payload_gpu, true, &f);
    capture c = capture_read(path_in(&f, "t.pcap"));
    DQ_CHECK(c.whole && c.n > 500);
    DQ_EQ(f.line.out, c.n);
    DQ_EQ(f.line.dropped[DQ_DROP_WRITE_ERROR], 4000 - c.n);
    CHECK_TEXT(f.error, "the file is as large as");
    capture_free(&c);
    remove_folder(f.dir);
}

// ---- a GPU that is lost -----------------------------------------------------------------------------------

static void lose(uint32_t kind, const char *file) {
    const load l = {.kind = kind, .nseg = 2, .bursts = 200, .n = 60, .len = 2000};
    const bool by_cufile = conf_file.fail > 0;
    const load *what = !by_cufile ? &l : kind == DQ_WRITE_BLOCKS ? &straight[1] : &straight[5];
    uint32_t n = what->bursts * what->n;
    folder f;
    write_load(what, by_cufile ? all_gpu : payload_gpu, true, &f);
    DQ_EQ(f.line.dropped[DQ_DROP_DEVICE_LOST], n - f.line.out);
    DQ_CHECK(f.line.out < n && (!by_cufile || f.line.out > 0));
    CHECK_TEXT(f.error, "GPU 0 (Fake GPU): CUDA_ERROR_LAUNCH_FAILED: unspecified launch failure");
    if (kind == DQ_WRITE_PCAP) { // ends with a whole packet, and has those that count
        capture c = capture_read(path_in(&f, file));
        DQ_CHECK(c.whole);
        DQ_EQ(c.n, f.line.out);
        capture_free(&c);
    }
    remove_folder(f.dir);
}

static void in_child(uint32_t kind, const char *file) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        atomic_store(&dq_failures, 0);
        lose(kind, file);
        exit(atomic_load(&dq_failures) > 0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    DQ_EQ(status, 0);
}

static void gpu_is_lost(void) {
    for (int k = 0; k < 2; k++) {
        for (uint64_t launch = 1; launch < 16; launch += 6) {
            *(k ? &conf.fail : &conf.trap) = launch;
            in_child(DQ_WRITE_PCAP, "t.pcap");
            in_child(DQ_WRITE_RAW_PACKETS, NULL);
            in_child(DQ_WRITE_RAW_FILE, NULL);
        }
        conf.fail = conf.trap = 0;
    }
    conf_file.fail = 12; // a write of cuFile's
    in_child(DQ_WRITE_BLOCKS, NULL);
    in_child(DQ_WRITE_RAW_BURSTS, NULL);
    conf_file.fail = 0;
}

// Another GPU's memory is refused, and a queue's that no GPU has.
static void refusals(void) {
    rig r;
    dq_diag d = {{0}};
    conf.gpus = 2;
    rig_open_kinds(&r, true, 2, all_gpu, 4, 64);
    dqi_gpu *other = dqi_gpu_open(1, "test", &d);
    must(other != NULL, d.text);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    r.queue.conf.n_regions = 1;
    r.queue.conf.regions[0] = r.regions[0];
    DQ_EQ(st->ops->join(st, &r.queue, &d), DQ_OK);
    dqi_gpu *first = r.regions[1]->gpu;
    r.queue.conf.regions[0] = r.regions[1];
    r.regions[1]->gpu = other;
    DQ_EQ(st->ops->join(st, &r.queue, &d), DQ_NOT_SUPPORTED);
    DQ_EQ_STR(
        d.text,
        "writer disk: it writes what lies on GPU 0, and region r1 lies on GPU 1: hint: a writer for each");
    r.regions[1]->gpu = first;
    st->ops->finish(st);
    rig_close(&r);
}

int main(int argc, char **argv) {
    if (!dlsym(RTLD_DEFAULT, "cuInit")) DQ_SKIP("a static program: the driver's calls are looked up by name");
    setenv("DAQIRI_FAKE_CUDA", "gpus=2", 1);
    unsetenv("DAQIRI_CUFILE");
    unsetenv("DAQIRI_CUDA");
    dq_begin(argc, argv);
    DQ_RUN_ALONE(gpu_is_lost); // in children, before this process has threads
    DQ_RUN(on_threads);
    DQ_RUN(slow_gpu);
    DQ_RUN_ALONE(on_the_virtual_clock);
    DQ_RUN_ALONE(disk_full);
    DQ_RUN(by_cufile);
    DQ_RUN_ALONE(by_cufile_on_the_virtual_clock);
    DQ_RUN_ALONE(cufile_refuses);
    DQ_RUN(disk_full_by_cufile);
    DQ_RUN_ALONE(refusals);
    return dq_done();
}
