// writer_test.c: the writer stage: hand-over, ledger, files, and what happens when they cannot be written.
#include "writer_rig.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

// ---- hand-over --------------------------------------------------------------------------------------------

// Waits until the writer has returned enough descriptors for every producer.
static void await_bursts(rig *r) {
    while (dqi_burst_pool_level(r->bursts) < 8)
        sched_yield();
}

static void everything_arrives_in_order(void) {
    enum { BURSTS = 2000, N = 16 };
    rig r;
    rig_open(&r, false, 1, 16384, 256);
    dq_writer_conf c = writer_conf(&r);
    c.policy = DQ_POLICY_WAIT;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    for (uint32_t k = 0; k < BURSTS; k++) {
        await_bursts(&r);
        push_waiting(st, &node, burst_of(&r, N, 60 + k % 100, k * N));
    }
    st->ops->finish(st);
    dq_line l = balanced(st, &node, 1);
    DQ_EQ(l.out, BURSTS * N);
    DQ_EQ(l.held, 0);
    DQ_EQ(l.out_bytes, l.in_bytes);
    DQ_EQ(l.extra[DQ_EXTRA_FILES], 1);
    check_error(st, "");
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_EQ(cap.n, BURSTS * N);
    DQ_EQ(cap.size, l.extra[DQ_EXTRA_FILE_BYTES]);
    for (uint32_t i = 0; i < cap.n; i++) {
        DQ_EQ(cap.records[i].ts, i + 1);
        DQ_CHECK(is_fill(cap.records[i].data, cap.records[i].kept, i));
    }
    capture_free(&cap);
    rig_close(&r);
}

typedef struct producer {
    rig *r;
    dq_stage *st;
    dqi_node *node;
    uint64_t id;
} producer;

enum { PRODUCERS = 3, EACH = 500 };

static void *produce(void *arg) {
    const producer *p = arg;
    for (uint64_t k = 0; k < EACH; k++) {
        await_bursts(p->r);
        push_waiting(p->st, p->node, burst_of(p->r, 2, 64, p->id << 32 | k * 2));
    }
    return NULL;
}

static void several_queues_feed_one_writer(void) {
    rig r;
    rig_open(&r, false, 1, 8192, 128);
    dq_writer_conf c = writer_conf(&r);
    c.policy = DQ_POLICY_WAIT;
    dq_stage *st = new_writer(&r, &c);
    dqi_node nodes[PRODUCERS] = {0};
    producer p[PRODUCERS];
    pthread_t t[PRODUCERS];
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        p[i] = (producer){&r, st, &nodes[i], i};
        must(pthread_create(&t[i], NULL, produce, &p[i]) == 0, "thread");
    }
    for (uint32_t i = 0; i < PRODUCERS; i++)
        pthread_join(t[i], NULL);
    st->ops->finish(st);
    dq_line l = balanced(st, nodes, PRODUCERS);
    DQ_EQ(l.out, PRODUCERS * EACH * 2);
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_EQ(cap.n, l.out);
    int64_t next[PRODUCERS] = {0};
    for (uint32_t i = 0; i < cap.n; i++) {
        uint64_t tag = (uint64_t)cap.records[i].ts - 1;
        DQ_CHECK(tag >> 32 < PRODUCERS);
        DQ_EQ(tag & UINT32_MAX, next[tag >> 32]++); // each queue's order is kept
        DQ_CHECK(is_fill(cap.records[i].data, 64, tag));
    }
    capture_free(&cap);
    rig_close(&r);
}

static void behind_drops(void) {
    static const struct {
        const char *name;
        uint32_t num_bufs, per_burst, accepted;
    } cases[] = {
        {"three quarters of the descriptors", 4096, 1, RIG_BURSTS / 4 * 3},
        {"three quarters of the region", 400, 10, 30},
        {"at least one burst", 40, 20, 2},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 1, cases[k].num_bufs, 64);
        dq_writer_conf c = writer_conf(&r);
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        uint32_t n = cases[k].per_burst, room = cases[k].num_bufs / n, tries = room < 450 ? room : 450;
        for (uint32_t i = 0; i < tries; i++)
            push(st, &node, burst_of(&r, n, 60, i * n));
        dq_line l = balanced(st, &node, 1);
        DQ_EQ(l.in, tries * n);
        DQ_EQ(l.held, cases[k].accepted * n);
        DQ_EQ(l.dropped[DQ_DROP_BEHIND], l.in - cases[k].accepted * n);
        DQ_CHECK(st->ops->step(st) > 0);
        push(st, &node, burst_of(&r, n, 60, 0)); // there is room again
        st->ops->finish(st);
        DQ_EQ(balanced(st, &node, 1).out, (cases[k].accepted + 1) * n);
        rig_close(&r);
    }
}

static void behind_waits(void) {
    rig r;
    rig_open(&r, true, 1, 4, 64);
    dq_writer_conf c = writer_conf(&r);
    c.policy = DQ_POLICY_WAIT;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    dq_burst *b = burst_of(&r, 2, 60, 0);
    for (uint32_t i = 0; i < DQI_WRITER_DEPTH; i++) {
        dq_burst_ref(b);
        DQ_EQ(push(st, &node, b), DQ_OK);
    }
    DQ_EQ(push(st, &node, b), DQ_NOT_READY);
    DQ_EQ(balanced(st, &node, 1).held, 2 * DQI_WRITER_DEPTH);
    st->ops->step(st);
    DQ_EQ(push(st, &node, b), DQ_OK); // nothing was taken before
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, 2 * (DQI_WRITER_DEPTH + 1));
    rig_close(&r);
}

static void selections_hold_their_parents(void) {
    rig r;
    rig_open(&r, true, 1, 64, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    dq_burst *b = rig_burst(&r, 4), *some = NULL;
    for (uint32_t i = 0; i < 4; i++)
        fill_seg(b, 0, i, 20, i);
    static const uint32_t one[] = {2};
    r.s->picks_cap = 1; // a session without queues has room for no more
    DQ_EQ(dq_burst_pick(b, one, 1, &some), DQ_OK);
    dq_burst_unref(b);
    push(st, &node, some);
    st->ops->finish(st);
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_EQ(cap.n, 1);
    DQ_CHECK(is_fill(cap.records[0].data, 20, 2));
    capture_free(&cap);
    rig_close(&r);
}

// ---- time -------------------------------------------------------------------------------------------------

static void packets_without_a_time_get_that_of_their_push(void) {
    rig r;
    rig_open(&r, true, 1, 16, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    dq_burst *b = rig_burst(&r, 2);
    b->ts[1] = 42;
    dq_advance(r.s, RIG_START_NS + 5);
    push(st, &node, b);
    dq_advance(r.s, RIG_START_NS + 1000000000);
    st->ops->finish(st);
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_EQ(cap.n, 2);
    DQ_EQ(cap.records[0].ts, RIG_START_NS + 5);
    DQ_EQ(cap.records[1].ts, 42);
    capture_free(&cap);
    rig_close(&r);
}

// Without more traffic and without a finish, what was pushed becomes readable.
static void idle_writer_flushes(void) {
    rig r;
    rig_open(&r, false, 1, 64, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    for (uint32_t round = 1; round <= 2; round++) {
        push(st, &node, burst_of(&r, 3, 60, 0));
        uint32_t n = 0;
        for (int tries = 0; tries < 3000 && n < 3 * round;
             tries++) { // 30 s on a machine that does something else
            nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
            capture cap = capture_read(rig_path(&r, "t.pcap"));
            DQ_CHECK(cap.whole);
            n = cap.n;
            capture_free(&cap);
        }
        DQ_EQ(n, 3 * round);
    }
    st->ops->finish(st);
    rig_close(&r);
}

static void virtual_clock_flushes_by_its_time(void) {
    rig r;
    rig_open(&r, true, 1, 64, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    push(st, &node, burst_of(&r, 3, 60, 0));
    DQ_EQ(balanced(st, &node, 1).held, 3);
    DQ_CHECK(st->ops->step(st) > 0);
    DQ_EQ(balanced(st, &node, 1).held, 3); // in the block
    DQ_EQ(st->ops->step(st), 0);
    dq_advance(r.s, RIG_START_NS + DQI_WRITER_LAG_NS);
    st->ops->step(st);
    dq_line l = balanced(st, &node, 1);
    DQ_EQ(l.out, 3);
    DQ_EQ(l.held, 0);
    DQ_EQ(l.extra[DQ_EXTRA_STALL_NS], 0); // it would differ from run to run
    st->ops->finish(st);
    rig_close(&r);
}

// ---- raw files --------------------------------------------------------------------------------------------

static void raw_files(void) {
    static const struct {
        const char *name;
        uint32_t skip;
    } cases[] = {{"whole", 0},
                 {"inside the first segment", 7},
                 {"at the boundary", 20},
                 {"inside the second", 33},
                 {"all", 60},
                 {"more than all", 61}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 3, 16, 64);
        dq_writer_conf c = writer_conf(&r);
        c.kind = DQ_WRITE_RAW_PACKETS;
        c.packet_data_offset = cases[k].skip;
        mode_t mask = umask(022);
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        char path[256];
        dq_writer_path(st, 0, path, sizeof path);
        DQ_EQ_STR(path, "");
        uint8_t want[60];
        uint64_t bytes = 0;
        for (uint32_t round = 0; round < 2; round++) { // indices go on over bursts
            dq_burst *b = rig_burst(&r, 2);
            for (uint32_t i = 0; i < 2; i++)
                for (uint32_t s = 0; s < 3; s++)
                    fill_seg(b, s, i, 20, 3 * (2 * round + i) + s);
            push(st, &node, b);
        }
        st->ops->finish(st);
        umask(mask);
        for (uint32_t i = 0; i < 4; i++) {
            char name[32];
            snprintf(name, sizeof name, "t_%u", i);
            size_t size = 0, left = cases[k].skip < 60 ? 60 - cases[k].skip : 0;
            uint8_t *got = slurp(rig_path(&r, name), &size);
            DQ_CHECK(got != NULL);
            for (uint32_t n = 0; n < 60; n++)
                want[n] = (uint8_t)((3 * i + n / 20) * 31 + n % 20 * 7);
            DQ_EQ(size, left);
            if (got && size == left) DQ_EQ_BYTES(got, want + 60 - left, left);
            struct stat info;
            DQ_EQ(stat(rig_path(&r, name), &info), 0);
            DQ_EQ(info.st_mode & 0777, 0644);
            bytes += size;
            free(got);
        }
        dq_line l = balanced(st, &node, 1);
        DQ_EQ(l.out, 4);
        DQ_EQ(l.out_bytes, bytes);
        DQ_EQ(l.extra[DQ_EXTRA_FILES], 4);
        DQ_EQ(l.extra[DQ_EXTRA_FILE_BYTES], bytes);
        dq_writer_path(st, 0, path, sizeof path);
        DQ_EQ_STR(path, rig_path(&r, "t_3"));
        rig_close(&r);
    }
}

static void raw_file_replaces_a_longer_one(void) {
    rig r;
    rig_open(&r, true, 1, 4, 64);
    FILE *f = fopen(rig_path(&r, "t_0"), "w");
    must(f && fprintf(f, "%0100d", 0) == 100 && fclose(f) == 0, "file");
    dq_writer_conf c = writer_conf(&r);
    c.kind = DQ_WRITE_RAW_PACKETS;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    push(st, &node, burst_of(&r, 1, 10, 0));
    st->ops->finish(st);
    size_t size = 0;
    free(slurp(rig_path(&r, "t_0"), &size));
    DQ_EQ(size, 10);
    rig_close(&r);
}

// ---- errors -----------------------------------------------------------------------------------------------

static void refused_configurations(void) {
    static const struct {
        const char *name, *dir, *prefix;
        uint32_t snaplen;
        const char *want;
    } cases[] = {
        {"no folder", "", "t", 0, "writer disk: the folder's name is empty"},
        {"no prefix", "/", "", 0, "writer disk: prefix \"\": must be the start of a file's name"},
        {"folder in prefix", "/", "a/b", 0,
         "writer disk: prefix \"a/b\": must be the start of a file's name"},
        {"snaplen", "/", "t", 262145,
         "writer disk: snaplen 262145: readers of pcap files take at most 262144"},
    };
    rig r;
    rig_open(&r, true, 1, 4, 64);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dq_writer_conf c = {.n_dirs = 1, .snaplen = cases[k].snaplen};
        snprintf(c.dirs[0], sizeof c.dirs[0], "%s", cases[k].dir);
        snprintf(c.prefix, sizeof c.prefix, "%s", cases[k].prefix);
        dq_stage *st = NULL;
        dq_diag diag = {0};
        DQ_EQ(dq_stage_writer(r.s, "disk", &c, &st, &diag), DQ_INVALID_PARAMETER);
        CHECK_TEXT(diag.text, cases[k].want);
    }
    rig_close(&r);
}

static void refused_starts(void) {
    static const struct {
        const char *name, *dir, *want;
        int raw, err;
    } cases[] = {
        {"no such folder", "none", "none: there is none; hint: mkdir -p ", 0, ENOENT},
        {"no such folder, raw", "none", "none: there is none; hint: mkdir -p ", 1, ENOENT},
        {"a file", "file", "file: it is not a folder", 0, ENOTDIR},
        {"in use", "used", "used/t.pcap: another writer has this file open", 0, EWOULDBLOCK},
        {"full", "full", "full/t.pcap: no space left on device", 0, ENOSPC},
        {"a pipe", "pipe", "pipe/t.pcap: it is a pipe that nobody reads", 0, ENXIO},
    };
    rig r;
    rig_open(&r, false, 1, 4, 64);
    must(mkdir(rig_path(&r, "used"), 0755) == 0 && mkdir(rig_path(&r, "full"), 0755) == 0, "mkdir");
    must(symlink("/dev/full", rig_path(&r, "full/t.pcap")) == 0, "symlink");
    must(mkdir(rig_path(&r, "pipe"), 0755) == 0 && mkfifo(rig_path(&r, "pipe/t.pcap"), 0644) == 0, "mkfifo");
    must(close(open(rig_path(&r, "file"), O_CREAT | O_WRONLY, 0644)) == 0, "file");
    dq_writer_conf c = writer_conf(&r);
    snprintf(c.dirs[0], sizeof c.dirs[0], "%s", rig_path(&r, "used"));
    dq_stage *first = new_writer(&r, &c);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        char name[16];
        snprintf(name, sizeof name, "w%zu", k);
        snprintf(c.dirs[0], sizeof c.dirs[0], "%s", rig_path(&r, cases[k].dir));
        c.kind = cases[k].raw ? DQ_WRITE_RAW_PACKETS : DQ_WRITE_PCAP;
        dq_stage *st = NULL;
        dq_diag diag = {0};
        DQ_EQ(dq_stage_writer(r.s, name, &c, &st, &diag), DQ_OK);
        DQ_EQ(st->ops->start(st, &diag), DQ_ESYS - cases[k].err);
        CHECK_TEXT(diag.text, cases[k].want);
        dqi_node node = {.stage = st};
        push(st, &node, burst_of(&r, 1, 10, 0)); // a session that starts all the same loses nothing silently
        st->ops->finish(st);
        DQ_EQ(balanced(st, &node, 1).dropped[DQ_DROP_STOPPED], 1);
    }
    first->ops->finish(first);
    remove_folder(rig_path(&r, "used"));
    remove_folder(rig_path(&r, "full"));
    remove_folder(rig_path(&r, "pipe"));
    rig_close(&r);
}

// A pipe whose reader stands still, or goes: the end comes all the same, and what did not fit is counted.
static void pipe_reader_fails(void) {
    enum { BURSTS = 200, PACKETS = 16 };
    signal(SIGPIPE, SIG_IGN); // as the host does
    for (int goes = 0; goes < 2; goes++) {
        rig r;
        rig_open(&r, true, 1, 4096, 2000);
        dq_writer_conf c = writer_conf(&r);
        must(mkfifo(rig_path(&r, "t.pcap"), 0644) == 0, "mkfifo");
        int reader = open(rig_path(&r, "t.pcap"), O_RDONLY | O_NONBLOCK);
        dq_stage *st = new_writer(&r, &c);
        if (goes) close(reader);
        dqi_node node = {.stage = st};
        for (int k = 0; k < BURSTS; k++)
            push(st, &node, burst_of(&r, PACKETS, 1000, 0));
        st->ops->finish(st);
        DQ_CHECK(balanced(st, &node, 1).dropped[DQ_DROP_WRITE_ERROR] > 0);
        char text[512];
        dq_writer_error(st, text, sizeof text);
        CHECK_TEXT(text, goes ? "the pipe's reader has ended" : "the pipe's reader stands still");
        if (!goes) close(reader);
        rig_close(&r);
    }
}

// The file's end is whole and its packets are those that count as out, in whichever call the error shows.
static void file_too_large(void) {
    rig r;
    rig_open(&r, true, 1, 4096, 2000);
    dq_writer_conf c = writer_conf(&r);
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    limit = (struct rlimit){.rlim_cur = 3000000, .rlim_max = old.rlim_max};
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    for (uint32_t k = 0; k < 100; k++) {
        push(st, &node, burst_of(&r, 40, 1000, k * 40));
        st->ops->step(st);
        balanced(st, &node, 1);
    }
    st->ops->finish(st);
    setrlimit(RLIMIT_FSIZE, &old);
    dq_line l = balanced(st, &node, 1);
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_EQ(cap.n, (3000000 - 24) / 1016);
    DQ_EQ(l.out, cap.n);
    DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 4000 - cap.n);
    DQ_EQ(l.extra[DQ_EXTRA_FILE_BYTES], cap.size);
    check_error(st, "/t.pcap: the file is as large as the file system or ulimit -f allows");
    capture_free(&cap);
    rig_close(&r);
}

static void removed_while_writing(void) {
    static const struct {
        const char *name;
        int raw;
        uint64_t out; // a file that was finished before the removal was written
        const char *want;
    } cases[] = {
        {"file", 0, 0, "/t.pcap: the file was removed while writing"},
        {"folder", 1, 1, "/t_1: the folder was removed while writing"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, false, 1, 64, 64);
        dq_writer_conf c = writer_conf(&r);
        c.kind = cases[k].raw ? DQ_WRITE_RAW_PACKETS : DQ_WRITE_PCAP;
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        push(st, &node, burst_of(&r, 1, 10, 0));
        while (account(st, &node, 1).held > 0)
            sched_yield();
        remove_folder(r.dir);
        push(st, &node, burst_of(&r, 2, 10, 1));
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        DQ_EQ(l.out, cases[k].out);
        DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 3 - cases[k].out);
        check_error(st, cases[k].want);
        rig_close(&r);
    }
}

// Removed after the last packet: nothing is lost by count, and the user is told all the same.
static void removed_before_the_end(void) {
    rig r;
    rig_open(&r, true, 1, 64, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    must(unlink(rig_path(&r, "t.pcap")) == 0, "unlink");
    st->ops->finish(st);
    check_error(st, "/t.pcap: the file was removed while writing");
    rig_close(&r);
}

// In a child with a file system of 256 KiB of its own: fills it, makes room, and goes on. Ends with 0, 77
// or 1.
static int fill_a_disk(void) {
    rig r;
    rig_open(&r, true, 1, 4096, 2000);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", r.dir, "tmpfs", 0, "size=256k") != 0) {
        rig_close(&r);
        return 77;
    }
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    int ballast = open(rig_path(&r, "ballast"), O_CREAT | O_WRONLY, 0644);
    must(ballast >= 0 && fallocate(ballast, 0, 0, 100000) == 0, "ballast");
    uint32_t k = 0;
    for (; balanced(st, &node, 1).dropped[DQ_DROP_WRITE_ERROR] == 0 && k < 1000; k++) {
        push(st, &node, burst_of(&r, 40, 1000, k * 40));
        st->ops->step(st);
    }
    dq_line full = balanced(st, &node, 1);
    check_error(st, "/t.pcap: no space left on device; hint: free some, then writing goes on");
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_EQ(cap.n, full.out);
    DQ_CHECK(cap.n > 0);
    capture_free(&cap);
    DQ_EQ(ftruncate(ballast, 0), 0);
    close(ballast);
    for (int tries = 0; tries < 3000 && account(st, &node, 1).out == full.out; tries++) {
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
        dq_advance(r.s, dq_now(r.s) + DQI_WRITER_LAG_NS);
        push(st, &node, burst_of(&r, 1, 1000, 0));
        st->ops->step(st);
    }
    st->ops->finish(st);
    dq_line l = balanced(st, &node, 1);
    DQ_CHECK(l.out > full.out);
    cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_EQ(cap.n, l.out);
    capture_free(&cap);
    umount(r.dir);
    rig_close(&r);
    return dq_done();
}

static int child_status(int (*fn)(void)) {
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        atomic_store(&dq_failures, 0); // the parent's are its own
        _exit(fn());
    }
    int status = 0;
    must(waitpid(pid, &status, 0) == pid, "waitpid");
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void full_disk_and_room_again(void) {
    int status = child_status(fill_a_disk);
    if (status == 77) {
        printf("skip full_disk_and_room_again: mounting a small file system needs root\n");
        DQ_CHECK(!dq_required("root"));
    } else {
        DQ_EQ(status, 0);
    }
}

static rig killed_rig;

static int die_while_writing(void) {
    dq_writer_conf c = writer_conf(&killed_rig);
    dq_stage *st = new_writer(&killed_rig, &c);
    dqi_node node = {.stage = st};
    for (uint32_t k = 0; k < 100; k++) {
        push(st, &node, burst_of(&killed_rig, 40, 1000, k * 40));
        st->ops->step(st);
    }
    raise(SIGKILL);
    return 0;
}

static void killed_process_leaves_a_whole_file(void) {
    rig_open(&killed_rig, true, 1, 4096, 2000);
    DQ_EQ(child_status(die_while_writing), 128 + SIGKILL);
    capture cap = capture_read(rig_path(&killed_rig, "t.pcap"));
    DQ_CHECK(cap.whole);
    DQ_CHECK(cap.n > 3000 && cap.n < 4000);
    for (uint32_t i = 0; i < cap.n; i++)
        DQ_CHECK(is_fill(cap.records[i].data, 1000, i));
    capture_free(&cap);
    rig_close(&killed_rig);
}

// ---- life -------------------------------------------------------------------------------------------------

static void finish_is_final(void) {
    rig r;
    rig_open(&r, false, 1, 64, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    push(st, &node, burst_of(&r, 2, 10, 0));
    st->ops->finish(st);
    st->ops->finish(st);
    push(st, &node, burst_of(&r, 3, 10, 0));
    dq_line l = balanced(st, &node, 1);
    DQ_EQ(l.out, 2);
    DQ_EQ(l.dropped[DQ_DROP_STOPPED], 3);
    char path[256], tiny[4];
    dq_writer_path(st, 0, path, sizeof path);
    DQ_EQ_STR(path, rig_path(&r, "t.pcap"));
    dq_writer_path(st, 0, tiny, sizeof tiny);
    DQ_EQ(strlen(tiny), 3);
    rig_close(&r);
}

static int conn_of_test(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    bool v6 = conn % 2 != 0;
    snprintf(out->local, sizeof out->local, v6 ? "[::1]:%u" : "127.0.0.1:%u", i->conf.socket.local_port);
    snprintf(out->peer, sizeof out->peer, v6 ? "[2001:db8::1]:%u" : "192.0.2.1:%u", 40000 + conn);
    return DQ_OK;
}

static void other_readers_agree(void) {
    static const char checks[] =
        "tshark -n -r %s -o ip.check_checksum:TRUE -o udp.check_checksum:TRUE -o tcp.check_checksum:TRUE "
        "-Y '_ws.malformed || _ws.short || ip.checksum.status==0 || udp.checksum.status==0 || "
        "tcp.checksum.status==0 || "
        "tcp.analysis.lost_segment || tcp.analysis.out_of_order || tcp.analysis.retransmission' 2>/dev/null";
    rig r;
    rig_open(&r, true, 1, 64, 150000);
    r.ops.payload = true;
    r.ops.conn_read = conn_of_test;
    r.iface.conf.socket.local_port = 7148;
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    for (uint32_t k = 0; k < 6; k++) {
        r.iface.index = k % 3;
        r.iface.conf.socket.proto = k < 3 ? DQ_PROTO_UDP : DQ_PROTO_TCP;
        dq_burst *b = burst_of(&r, 4, k < 3 ? 1001 + k : 150000, k);
        for (uint32_t i = 0; i < 4; i++)
            memset(dqi_burst_peer_addr(b, i), 0, sizeof(struct sockaddr_in6)); // UDP: unknown
        b->conn = k;
        push(st, &node, b);
        st->ops->step(st);
    }
    st->ops->finish(st);
    char out[65536], want[128];
    const char *path = rig_path(&r, "t.pcap");
    uint32_t records = 12 + 12 * 3; // 150000 bytes of a stream are three records
    if (run_tool("tshark", checks, path, out, sizeof out)) CHECK_TEXT(out, "");
    if (run_tool("capinfos", "capinfos -Mtc %s", path, out, sizeof out)) {
        snprintf(want, sizeof want, "Number of packets:   %u\n", records);
        CHECK_TEXT(out, want);
        CHECK_TEXT(out, "nsecpcap");
    }
    if (run_tool("tcpdump", "tcpdump -nn -r %s 2>/dev/null | wc -l", path, out, sizeof out))
        DQ_EQ(atoi(out), records);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(everything_arrives_in_order);
    DQ_RUN(several_queues_feed_one_writer);
    DQ_RUN(behind_drops);
    DQ_RUN(behind_waits);
    DQ_RUN(selections_hold_their_parents);
    DQ_RUN(packets_without_a_time_get_that_of_their_push);
    DQ_RUN(idle_writer_flushes);
    DQ_RUN(virtual_clock_flushes_by_its_time);
    DQ_RUN(raw_files);
    DQ_RUN(raw_file_replaces_a_longer_one);
    DQ_RUN(refused_configurations);
    DQ_RUN(refused_starts);
    DQ_RUN(pipe_reader_fails);
    DQ_RUN(file_too_large);
    DQ_RUN(removed_while_writing);
    DQ_RUN(removed_before_the_end);
    DQ_RUN(full_disk_and_room_again);
    DQ_RUN(killed_process_leaves_a_whole_file);
    DQ_RUN(finish_is_final);
    DQ_RUN(other_readers_agree);
    return dq_done();
}
