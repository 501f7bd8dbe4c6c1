// writer_rotation_test.c: one file after the other: when the next begins, its name, and the quota.
#include "writer_files_rig.h"

// ---- rotation ---------------------------------------------------------------------------------------------

static void rotation(void) {
    static const struct {
        const char *name;
        uint64_t bytes, packets;
        int64_t ns; // packets come 10 ms apart
        uint32_t dirs, files, first;
    } cases[] = {
        {"by size", 24 + 10 * RECORD, 0, 0, 1, 10, 10},
        {"by size, one byte short", 24 + 10 * RECORD - 1, 0, 0, 1, 12, 9},
        {"smaller than a packet", 30, 0, 0, 1, 100, 1},
        {"by packets", 0, 7, 0, 1, 15, 7},
        {"by time", 0, 0, 200000000, 1, 5, 20},
        {"whatever comes first", 1 << 20, 30, 200000000, 1, 5, 20},
        {"two folders", 24 + 10 * RECORD, 0, 0, 2, 10, 10},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 1, 64, 256);
        dq_writer_conf c = writer_conf(&r);
        c.rotate_bytes = cases[k].bytes;
        c.rotate_packets = cases[k].packets;
        c.rotate_ns = cases[k].ns;
        c.n_dirs = cases[k].dirs;
        snprintf(c.dirs[1], sizeof c.dirs[1], "%s/b", r.dir);
        must(mkdir(c.dirs[1], 0755) == 0, "mkdir");
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        for (uint32_t i = 0; i < 100; i++) {
            push_numbered(&r, st, &node, i, 1);
            dq_advance(r.s, dq_now(r.s) + 10000000);
        }
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        DQ_EQ(l.out, 100);
        DQ_EQ(l.extra[DQ_EXTRA_FILES], cases[k].files);
        uint64_t packets;
        DQ_EQ(check_list(st, &packets), cases[k].files);
        DQ_EQ(packets, 100);
        dq_writer_file f;
        bool seen[100] = {0};
        for (uint32_t i = 0; dq_writer_file_read(st, i, &f); i++) {
            char name[32];
            snprintf(name, sizeof name, "/t_%06u.pcap", i);
            CHECK_TEXT(f.path, name);
            capture cap = capture_read(f.path);
            DQ_CHECK(cap.whole && cap.n == f.packets);
            if (i == 0) DQ_EQ(cap.n, cases[k].first);
            if (cap.n > 0) DQ_EQ(f.first_ns, cap.records[0].ts);
            for (uint32_t m = 0; m < cap.n; m++) {
                uint64_t tag = (uint64_t)cap.records[m].ts - 1;
                DQ_CHECK(tag < 100 && !seen[tag] && is_fill(cap.records[m].data, LEN, tag));
                seen[tag] = true;
            }
            capture_free(&cap);
        }
        remove_folder(c.dirs[1]);
        rig_close(&r);
    }
}

// A file that is due is closed while nothing comes, and none is begun without a packet.
static void due_files_are_closed_in_silence(void) {
    rig r;
    rig_open(&r, false, 1, 64, 256);
    dq_writer_conf c = writer_conf(&r);
    c.rotate_ns = 20000000;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    push(st, &node, burst_of(&r, 1, LEN, 0));
    dq_writer_file f = {0};
    for (int tries = 0; tries < 3000 && !f.closed; tries++) {
        usleep(1000);
        dq_writer_file_read(st, 0, &f);
    }
    DQ_CHECK(f.closed && f.packets == 1);
    st->ops->finish(st);
    DQ_CHECK(!dq_writer_file_read(st, 1, &f));
    rig_close(&r);
}

// A later run leaves the files of an earlier one alone.
static void names_go_on(void) {
    for (uint32_t run = 0; run < 2; run++) {
        static rig r;
        static char dir[80];
        rig_open(&r, true, 1, 64, 256);
        dq_writer_conf c = writer_conf(&r);
        if (run == 0) snprintf(dir, sizeof dir, "%sx", r.dir);
        must(run > 0 || mkdir(dir, 0755) == 0, "mkdir");
        snprintf(c.dirs[0], sizeof c.dirs[0], "%s", dir);
        c.rotate_packets = 2;
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        push_numbered(&r, st, &node, 0, 4);
        st->ops->finish(st);
        dq_writer_file f;
        DQ_CHECK(dq_writer_file_read(st, 0, &f));
        CHECK_TEXT(f.path, run == 0 ? "/t_000000.pcap" : "/t_000002.pcap");
        if (run == 1) remove_folder(dir);
        rig_close(&r);
    }
}

// Names that another program takes meanwhile are passed over, and its files stay as they are.
static void taken_names_are_passed_over(void) {
    static const int kinds[] = {DQ_WRITE_PCAP, DQ_WRITE_PCAPNG, DQ_WRITE_RAW_FILE, DQ_WRITE_BLOCKS};
    static const char *const suffixes[] = {"pcap", "pcapng", "raw", "dqb"};
    for (int k = 0; k < 4; k++) {
        rig r;
        rig_open(&r, true, 1, 64, 8192);
        dq_writer_conf c = writer_conf(&r);
        c.kind = kinds[k];
        c.rotate_packets = 2;
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        for (int i = 1; i <= 2; i++) {
            char name[32];
            snprintf(name, sizeof name, "t_%06d.%s", i, suffixes[k]);
            put_file(rig_path(&r, name), "another's");
        }
        const uint64_t there = 0xfff;
        dq_aggregate a[6];
        for (uint32_t i = 0; i < 6; i++)
            put_batch(st, &node, k == 3 ? batch_of(&r, SLOTS, i, &there, &a[i]) : burst_of(&r, 1, LEN, i));
        st->ops->finish(st);
        DQ_EQ(balanced(st, &node, 1).out, 6);
        uint64_t packets;
        DQ_EQ(check_list(st, &packets), 3);
        DQ_EQ(packets, 6);
        for (int i = 0; i < 5; i++) {
            char name[32];
            snprintf(name, sizeof name, "t_%06d.%s", i, suffixes[k]);
            size_t n = 0;
            char *p = (char *)slurp(rig_path(&r, name), &n);
            must(p != NULL, name);
            DQ_EQ(n == 9 && memcmp(p, "another's", 9) == 0, i == 1 || i == 2);
            free(p);
        }
        check_error(st, "");
        rig_close(&r);
    }
}

// ---- quota ------------------------------------------------------------------------------------------------

// The quota deletes the writer's own files and no others, whatever their names.
static void quota_leaves_others_files_alone(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    dq_writer_conf c = writer_conf(&r);
    c.rotate_bytes = 4000;
    c.quota = 20000;
    c.delete_oldest = true;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    push_numbered(&r, st, &node, 0, 60);
    char path[300];
    snprintf(path, sizeof path, "%s", rig_path(&r, "t_000000.pcap"));
    must(rename(path, rig_path(&r, "kept")) == 0, "rename");
    put_file(path, "another's");
    push_numbered(&r, st, &node, 60, 1000);
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, 1060);
    DQ_CHECK(access(path, F_OK) == 0 && access(rig_path(&r, "kept"), F_OK) == 0);
    check_error(st, "");
    rig_close(&r);
}

static uint64_t folder_bytes(const char *dir) {
    uint64_t sum = 0;
    DIR *d = opendir(dir);
    struct stat s;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        if (fstatat(dirfd(d), e->d_name, &s, 0) == 0 && S_ISREG(s.st_mode)) sum += (uint64_t)s.st_size;
    closedir(d);
    return sum;
}

static void quota(void) {
    static const struct {
        const char *name;
        int kind;
        uint64_t rotate, quota;
        bool deletes;
    } cases[] = {
        {"one file", DQ_WRITE_PCAP, 0, 20000, false},
        {"pcapng", DQ_WRITE_PCAPNG, 0, 30000, false},
        {"rotated", DQ_WRITE_PCAP, 4000, 20000, false},
        {"flat", DQ_WRITE_RAW_FILE, 0, 20000, false},
        {"a file each", DQ_WRITE_RAW_PACKETS, 0, 20000, false},
        {"oldest goes", DQ_WRITE_PCAP, 4000, 20000, true},
        {"oldest pcapng goes", DQ_WRITE_PCAPNG, 8000, 40000, true},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 1, 64, 256);
        dq_writer_conf c = writer_conf(&r);
        c.kind = cases[k].kind;
        c.rotate_bytes = cases[k].rotate;
        c.quota = cases[k].quota;
        c.delete_oldest = cases[k].deletes;
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        for (uint32_t i = 0; i < 1000; i++) {
            push_numbered(&r, st, &node, i, 1);
            if (i % 50 == 0) DQ_CHECK(folder_bytes(r.dir) <= cases[k].quota);
        }
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        uint64_t left, used = folder_bytes(r.dir);
        DQ_CHECK(used <= cases[k].quota && used > cases[k].quota / 2);
        DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 0);
        check_list(st, &left);
        if (cases[k].deletes) {
            DQ_EQ(l.out, 1000);
            DQ_CHECK(l.extra[DQ_EXTRA_DELETED_FILES] > 0 && left < 1000);
            check_error(st, "");
        } else {
            DQ_CHECK(l.dropped[DQ_DROP_QUOTA] > 0 && l.out > 0);
            check_error(st, "the writer's quota is used up");
        }
        rig_close(&r);
    }
}

static void senseless_rotation_is_refused(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = NULL;
    dq_diag d;
    c.delete_oldest = true;
    DQ_EQ(dq_stage_writer(r.s, "a", &c, &st, &d), DQ_INVALID_PARAMETER);
    CHECK_TEXT(d.text, "needs a quota, and rotation by size");
    c.quota = 30000;
    c.rotate_bytes = 10001;
    DQ_EQ(dq_stage_writer(r.s, "a", &c, &st, &d), DQ_INVALID_PARAMETER);
    CHECK_TEXT(d.text, "rotate at 10000 bytes or less");
    c.kind = DQ_WRITE_RAW_PACKETS;
    DQ_EQ(dq_stage_writer(r.s, "a", &c, &st, &d), DQ_INVALID_PARAMETER);
    CHECK_TEXT(d.text, "never too long");
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(rotation);
    DQ_RUN(due_files_are_closed_in_silence);
    DQ_RUN(names_go_on);
    DQ_RUN(taken_names_are_passed_over);
    DQ_RUN(quota_leaves_others_files_alone);
    DQ_RUN(quota);
    DQ_RUN(senseless_rotation_is_refused);
    return dq_done();
}
