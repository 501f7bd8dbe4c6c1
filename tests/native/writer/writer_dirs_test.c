// writer_dirs_test.c: writers with several folders, raw files of every kind, and bursts that scripts hand
// over.
#include "core/region.h"
#include "writer_rig.h"

#include <sys/mount.h>
#include <sys/wait.h>

enum { LANES = 3, LEN = 1000 };

// A writer to LANES folders below the rig's.
static dq_stage *dirs_writer(rig *r, int kind) {
    dq_writer_conf c = writer_conf(r);
    c.kind = kind;
    c.n_dirs = LANES;
    c.policy = DQ_POLICY_WAIT;
    for (int i = 0; i < LANES; i++) {
        snprintf(c.dirs[i], sizeof c.dirs[i], "%s/%d", r->dir, i);
        must(mkdir(c.dirs[i], 0755) == 0 || errno == EEXIST, "mkdir");
    }
    return new_writer(r, &c);
}

static void remove_dirs(rig *r) {
    for (int i = 0; i < LANES; i++) {
        char name[16];
        snprintf(name, sizeof name, "%d", i);
        remove_folder(rig_path(r, name));
    }
}

static capture dir_capture(const rig *r, int dir) {
    char name[16];
    snprintf(name, sizeof name, "%d/t.pcap", dir);
    return capture_read(rig_path(r, name));
}

// ---- several folders --------------------------------------------------------------------------------------

// Each packet is in one of the files, once, and each file is in order.
static void bursts_go_to_the_folders_in_turn(void) {
    enum { BURSTS = 600, N = 4 };
    for (int virtual = 0; virtual < 2; virtual ++) {
        rig r;
        rig_open(&r, virtual, 1, 8192, 2000);
        dq_stage *st = dirs_writer(&r, DQ_WRITE_PCAP);
        dqi_node node = {.stage = st};
        for (uint32_t k = 0; k < BURSTS; k++) {
            while (dqi_burst_pool_level(r.bursts) == 0)
                virtual ? (void)dqi_stage_poll(st) : (void)sched_yield();
            push_waiting(st, &node, burst_of(&r, N, LEN, k * N));
            if (virtual) dqi_stage_poll(st);
        }
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        DQ_EQ(l.out, BURSTS * N);
        DQ_EQ(l.extra[DQ_EXTRA_FILES], LANES);
        static uint8_t seen[BURSTS * N];
        memset(seen, 0, sizeof seen);
        for (int i = 0; i < LANES; i++) {
            capture c = dir_capture(&r, i);
            DQ_CHECK(c.whole && c.n > 0);
            if (virtual) DQ_EQ(c.n, BURSTS * N / LANES); // equal queues: strictly in turn
            for (uint32_t k = 0; k < c.n; k++) {
                uint64_t tag = (uint64_t)c.records[k].ts - 1;
                DQ_CHECK(tag < sizeof seen && seen[tag]++ == 0);
                DQ_CHECK(k == 0 || c.records[k].ts > c.records[k - 1].ts);
                DQ_CHECK(is_fill(c.records[k].data, LEN, tag));
            }
            capture_free(&c);
            char path[512];
            DQ_CHECK(dq_writer_path(st, (uint32_t)i, path, sizeof path));
            CHECK_TEXT(path, i == 0 ? "/0/t.pcap" : i == 1 ? "/1/t.pcap" : "/2/t.pcap");
        }
        char path[16];
        DQ_CHECK(!dq_writer_path(st, LANES, path, sizeof path));
        remove_dirs(&r);
        rig_close(&r);
    }
}

// A folder that goes away costs what was on its way to it; the others take the rest.
static void others_take_the_share_of_a_folder_that_is_gone(void) {
    enum { BURSTS = 400, N = 4 };
    for (int virtual = 0; virtual < 2; virtual ++) {
        rig r;
        rig_open(&r, virtual, 1, 8192, 2000);
        dq_stage *st = dirs_writer(&r, DQ_WRITE_PCAP);
        dqi_node node = {.stage = st};
        must(unlink(rig_path(&r, "1/t.pcap")) == 0, "unlink");
        for (uint32_t k = 0; k < BURSTS; k++) {
            while (dqi_burst_pool_level(r.bursts) == 0)
                virtual ? (void)dqi_stage_poll(st) : (void)sched_yield();
            push_waiting(st, &node, burst_of(&r, N, LEN, k * N));
            if (virtual) dqi_stage_poll(st);
            if (virtual) dq_advance(r.s, dq_now(r.s) + DQI_WRITER_LAG_NS / 10);
            while (!virtual && k == 50 && account(st, &node, 1).held > 0)
                sched_yield(); // until the loss shows
        }
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        DQ_CHECK(l.dropped[DQ_DROP_WRITE_ERROR] > 0 && l.dropped[DQ_DROP_WRITE_ERROR] <= 51 * N);
        DQ_EQ(l.out, BURSTS * N - l.dropped[DQ_DROP_WRITE_ERROR]);
        check_error(st, "/1/t.pcap: the file was removed while writing");
        capture a = dir_capture(&r, 0), b = dir_capture(&r, 2);
        DQ_EQ(a.n + b.n, l.out);
        capture_free(&a);
        capture_free(&b);
        remove_dirs(&r);
        rig_close(&r);
    }
}

static void all_folders_gone_is_counted(void) {
    rig r;
    rig_open(&r, false, 1, 1024, 2000);
    dq_stage *st = dirs_writer(&r, DQ_WRITE_RAW_PACKETS);
    dqi_node node = {.stage = st};
    remove_dirs(&r);
    for (uint32_t k = 0; k < 60; k++)
        push_waiting(st, &node, burst_of(&r, 3, LEN, k));
    st->ops->finish(st);
    dq_line l = balanced(st, &node, 1);
    DQ_EQ(l.out, 0);
    DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 180);
    rig_close(&r);
}

// In a child with file systems of its own: one folder is small and fills up. Ends with 0, 77 or 1.
static int fill_one_of_three(void) {
    enum { BURSTS = 1500, N = 8 };
    rig r;
    rig_open(&r, false, 1, 2048, 2000);
    must(mkdir(rig_path(&r, "1"), 0755) == 0, "mkdir");
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("tmpfs", rig_path(&r, "1"), "tmpfs", 0, "size=1m") != 0) {
        remove_dirs(&r);
        rig_close(&r);
        return 77;
    }
    dq_stage *st = dirs_writer(&r, DQ_WRITE_PCAP);
    dqi_node node = {.stage = st};
    for (uint32_t k = 0; k < BURSTS; k++) {
        while (dqi_burst_pool_level(r.bursts) < 8 ||
               r.regions[0]->conf.num_bufs / 4 * 3 < account(st, &node, 1).held)
            sched_yield();
        push_waiting(st, &node, burst_of(&r, N, LEN, k * N));
    }
    st->ops->finish(st);
    dq_line l = balanced(st, &node, 1);
    // What was on its way when the disk filled: two blocks at most.
    DQ_CHECK(l.dropped[DQ_DROP_WRITE_ERROR] > 0 && l.dropped[DQ_DROP_WRITE_ERROR] < (4 << 20) / LEN);
    check_error(st, "/1/t.pcap: no space left on device");
    uint64_t n = 0;
    for (int i = 0; i < LANES; i++) {
        capture c = dir_capture(&r, i);
        DQ_CHECK(c.whole);
        n += c.n;
        capture_free(&c);
    }
    DQ_EQ(n, l.out);
    umount(rig_path(&r, "1"));
    remove_dirs(&r);
    rig_close(&r);
    return dq_done();
}

static void others_take_the_share_of_a_full_disk(void) {
    fflush(stdout);
    pid_t pid = fork();
    must(pid >= 0, "fork");
    if (pid == 0) {
        atomic_store(&dq_failures, 0);
        _exit(fill_one_of_three());
    }
    int status = 0;
    must(waitpid(pid, &status, 0) == pid, "waitpid");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
        printf("skip others_take_the_share_of_a_full_disk: mounting a small file system needs root\n");
        DQ_CHECK(!dq_required("root"));
    } else {
        DQ_EQ(status, 0);
    }
}

// ---- raw files of every kind ------------------------------------------------------------------------------

static void raw_kinds(void) {
    static const struct {
        const char *name;
        int kind;
        uint32_t skip, files;
        const char *first;
        uint32_t size;
    } cases[] = {
        {"packets", DQ_WRITE_RAW_PACKETS, 0, 6, "t_0", 40},
        {"bursts", DQ_WRITE_RAW_BURSTS, 0, 2, "t_0", 120},
        {"bursts, part", DQ_WRITE_RAW_BURSTS, 30, 2, "t_0", 30},
        {"file", DQ_WRITE_RAW_FILE, 0, 1, "t.raw", 240},
        {"file, part", DQ_WRITE_RAW_FILE, 39, 1, "t.raw", 6},
        {"file, nothing", DQ_WRITE_RAW_FILE, 41, 1, "t.raw", 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 2, 16, 64);
        dq_writer_conf c = writer_conf(&r);
        c.kind = cases[k].kind;
        c.packet_data_offset = cases[k].skip;
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        for (uint32_t round = 0; round < 2; round++) {
            dq_burst *b = rig_burst(&r, 3);
            for (uint32_t i = 0; i < 3; i++)
                for (uint32_t s = 0; s < 2; s++)
                    fill_seg(b, s, i, 20, 2 * (3 * round + i) + s);
            push(st, &node, b);
        }
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        DQ_EQ(l.out, 6);
        DQ_EQ(l.extra[DQ_EXTRA_FILES], cases[k].files);
        DQ_EQ(l.out_bytes, 6 * (cases[k].skip < 40 ? 40 - cases[k].skip : 0));
        DQ_EQ(l.extra[DQ_EXTRA_FILE_BYTES], l.out_bytes);
        size_t size = 0;
        uint8_t *got = slurp(rig_path(&r, cases[k].first), &size);
        DQ_EQ(size, cases[k].size);
        for (uint32_t at = 0, i = 0; at < size; i++) // packet after packet, each from byte skip on
            for (uint32_t n = cases[k].skip; n < 40; n++, at++)
                DQ_EQ(got[at], (uint8_t)((2 * i + n / 20) * 31 + n % 20 * 7));
        free(got);
        rig_close(&r);
    }
}

// ---- bursts from scripts ----------------------------------------------------------------------------------

static void handed_bursts(void) {
    static const int kinds[] = {DQ_WRITE_PCAP, DQ_WRITE_RAW_PACKETS, DQ_WRITE_RAW_BURSTS, DQ_WRITE_RAW_FILE};
    for (int virtual = 0; virtual < 2; virtual ++)
        for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            rig r;
            rig_open(&r, virtual, 1, 64, 64);
            dq_writer_conf c = writer_conf(&r);
            c.kind = kinds[k];
            dq_stage *st = new_writer(&r, &c);
            dqi_node node = {.stage = st};
            dq_burst *b = burst_of(&r, 5, 50, 7);
            dq_op *op = NULL;
            dq_op_state s = {0};
            DQ_EQ(dq_writer_write(st, b, NULL, &op), DQ_OK);
            DQ_CHECK(!dqi_burst_writable(b));
            // Without more traffic or a finish; the account follows the operation.
            for (int tries = 0; tries < 3000 && (!s.done || st->ops->held(st) > 0); tries++) {
                if (virtual)
                    dqi_stage_poll(st);
                else
                    usleep(1000);
                dq_op_read(op, &s);
            }
            DQ_CHECK(s.done && s.completed == 5 && s.failed == 0);
            DQ_EQ(s.bytes, 250);
            dq_line l = balanced(st, &node, 1);
            DQ_EQ(l.in, 5);
            DQ_EQ(l.out, 5);
            dq_op_free(op);
            dq_burst_unref(b);
            st->ops->finish(st);
            b = burst_of(&r, 5, 50, 7);
            DQ_EQ(dq_writer_write(st, b, NULL, &op), DQ_NOT_READY);
            dq_burst_unref(b);
            rig_close(&r);
        }
}

static void a_full_ring_refuses(void) {
    rig r;
    rig_open(&r, true, 1, 4, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    dq_burst *b = burst_of(&r, 1, 60, 0);
    dq_op *op = NULL, *last = NULL;
    for (uint32_t i = 0; i < DQI_WRITER_DEPTH; i++) {
        DQ_EQ(dq_writer_write(st, b, NULL, &op), DQ_OK);
        dq_op_free(op);
    }
    DQ_EQ(dq_writer_write(st, b, NULL, &op), DQ_NO_SPACE_AVAILABLE);
    DQ_EQ(balanced(st, &node, 1).in, DQI_WRITER_DEPTH);
    dqi_stage_poll(st);
    DQ_EQ(dq_writer_write(st, b, NULL, &last), DQ_OK);
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, DQI_WRITER_DEPTH + 1);
    dq_op_state s;
    dq_op_read(last, &s);
    DQ_CHECK(s.done && s.completed == 1);
    dq_op_free(last);
    dq_burst_unref(b);
    rig_close(&r);
}

static void failed_bursts_say_why(void) {
    rig r;
    rig_open(&r, false, 1, 64, 64);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    must(unlink(rig_path(&r, "t.pcap")) == 0, "unlink");
    dq_burst *b = burst_of(&r, 4, 50, 0);
    dq_op *op = NULL;
    DQ_EQ(dq_writer_write(st, b, NULL, &op), DQ_OK);
    st->ops->finish(st);
    dq_op_state s;
    dq_op_read(op, &s);
    DQ_CHECK(s.done && s.completed == 0 && s.failed == 4);
    char text[128];
    dq_op_error(op, text, sizeof text);
    DQ_EQ_STR(text, "it was removed while writing");
    DQ_EQ(balanced(st, &node, 1).dropped[DQ_DROP_WRITE_ERROR], 4);
    dq_op_free(op);
    dq_burst_unref(b);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(bursts_go_to_the_folders_in_turn);
    DQ_RUN(others_take_the_share_of_a_folder_that_is_gone);
    DQ_RUN(all_folders_gone_is_counted);
    DQ_RUN(others_take_the_share_of_a_full_disk);
    DQ_RUN(raw_kinds);
    DQ_RUN(handed_bursts);
    DQ_RUN(a_full_ring_refuses);
    DQ_RUN(failed_bursts_say_why);
    return dq_done();
}
