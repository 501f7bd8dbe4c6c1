// writer_files_test.c: files one after the other: rotation, quota, appending, pcapng and batches, and the
// checksums in the writer's list.
#include "writer_rig.h"

#include "batch_format.h"
#include "crc32c.h"

#include <sys/resource.h>
#include <sys/wait.h>

enum { LEN = 100, RECORD = 16 + LEN };

static uint32_t crc_of(const char *path, uint64_t *size) {
    size_t n = 0;
    uint8_t *p = slurp(path, &n);
    must(p != NULL, path);
    uint32_t crc = dqi_crc32c(0, p, n);
    free(p);
    *size = n;
    return crc;
}

// Every file of the list is as it says; their number.
static uint32_t check_list(dq_stage *st, uint64_t *packets) {
    dq_writer_file f;
    uint32_t n = 0;
    for (*packets = 0; dq_writer_file_read(st, n, &f); n++) {
        DQ_CHECK(f.closed);
        if (f.deleted) {
            DQ_CHECK(access(f.path, F_OK) != 0);
            continue;
        }
        uint64_t size = 0;
        DQ_EQ(f.crc32c, crc_of(f.path, &size));
        DQ_EQ(f.bytes, size);
        *packets += f.packets;
    }
    return n;
}

static void push_numbered(rig *r, dq_stage *st, dqi_node *node, uint32_t first, uint32_t n) {
    for (uint32_t k = first; k < first + n; k++) {
        push(st, node, burst_of(r, 1, LEN, k));
        if (dqi_virtual(r->s)) st->ops->step(st); // else it has a thread
    }
}

enum { SLOTS = 6, CELLS = 12, CELL = 500 };

// Batch `id`, of which the cells in `there` came.
static dq_burst *batch_of(rig *r, uint32_t slots, uint64_t id, const uint64_t *there, dq_aggregate *a) {
    static const uint64_t extra[SLOTS] = {10, 11, 12, 13, 14, 15};
    *a = (dq_aggregate){.batch_id = id,
                        .ordinal = id + 256,
                        .slots = slots,
                        .slot_bytes = CELL * CELLS / SLOTS,
                        .cells = slots * (CELLS / SLOTS),
                        .cell_bytes = CELL,
                        .dtype = DQ_DTYPE_INT16,
                        .flags = DQ_AGGREGATE_TIMEOUT,
                        .fill = DQ_FILL_KEEP,
                        .first_ns = 5,
                        .last_ns = 9,
                        .present = there,
                        .extra = extra};
    dq_burst *b = rig_burst(r, 1);
    fill_seg(b, 0, 0, a->slots * a->slot_bytes, id);
    b->aggregate = a;
    return b;
}

static void put_batch(dq_stage *st, dqi_node *node, dq_burst *b) {
    push(st, node, b);
    st->ops->step(st);
}

static void checksum(void) {
    DQ_EQ(dqi_crc32c(0, "123456789", 9), 0xe3069283); // of the standard
    DQ_EQ(dqi_crc32c(dqi_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    DQ_EQ(dqi_crc32c(7, "", 0), 7);
}

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
    static const int kinds[] = {DQ_WRITE_PCAP, DQ_WRITE_PCAPNG, DQ_WRITE_RAW_FILE, DQ_WRITE_BATCHES};
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
            FILE *f = fopen(rig_path(&r, name), "wb");
            must(f && fputs("another's", f) >= 0 && fclose(f) == 0, name);
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

// ---- what somebody else does to a file --------------------------------------------------------------------

static void put_file(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    must(f && fputs(text, f) >= 0 && fclose(f) == 0, path);
}

enum touch { NOTHING, CUT, EMPTIED, LONGER, RENAMED, REPLACED, UNLINKED };

static void touch_file(const rig *r, enum touch how) {
    char path[300], other[300];
    snprintf(path, sizeof path, "%s", rig_path(r, "t.pcap"));
    snprintf(other, sizeof other, "%s", rig_path(r, "other"));
    switch (how) {
    case NOTHING:
        return;
    case CUT:
        must(truncate(path, 24 + RECORD + 1) == 0, "truncate");
        return;
    case EMPTIED:
        must(truncate(path, 0) == 0, "truncate");
        return;
    case LONGER:
        must(truncate(path, 1 << 20) == 0, "truncate");
        return;
    case RENAMED:
        must(rename(path, other) == 0, "rename");
        return;
    case REPLACED:
        put_file(other, "another's");
        must(rename(other, path) == 0, "rename");
        return;
    case UNLINKED:
        must(unlink(path) == 0, "unlink");
        return;
    }
}

// What is done to a file before its end is noticed, whether more is written to it afterwards or not, on the
// writer's thread or not, and none of its packets count as written.
static void touched_files_are_noticed(void) {
    static const struct {
        enum touch how;
        const char *want;
    } cases[] = {
        {NOTHING, ""},
        {CUT, "/t.pcap: something else changed its length"},
        {EMPTIED, "/t.pcap: something else changed its length"},
        {LONGER, "/t.pcap: something else changed its length"},
        {RENAMED, "/t.pcap: the file was removed while writing"},
        {REPLACED, "/t.pcap: the file was removed while writing"},
        {UNLINKED, "/t.pcap: the file was removed while writing"},
    };
    for (size_t k = 0; k < 4 * sizeof cases / sizeof *cases; k++) {
        const size_t i = k / 4, more = k % 2;
        rig r;
        rig_open(&r, k & 2, 1, 64, 256);
        dq_writer_conf c = writer_conf(&r);
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        push_numbered(&r, st, &node, 0, 5);
        while (account(st, &node, 1).held > 0) {
            dq_advance(r.s, dq_now(r.s) + DQI_WRITER_LAG_NS);
            k & 2 ? (void)st->ops->step(st) : (void)sched_yield();
        }
        touch_file(&r, cases[i].how);
        if (more) push_numbered(&r, st, &node, 5, 2);
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        uint64_t n = 5 + 2 * more;
        DQ_EQ(l.out, cases[i].how == NOTHING ? n : 0);
        DQ_EQ(l.out_bytes, l.out * LEN);
        DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], n - l.out);
        check_error(st, cases[i].want);
        dq_writer_file f;
        DQ_CHECK(dq_writer_file_read(st, 0, &f) && f.closed && f.packets == l.out);
        DQ_EQ(l.extra[DQ_EXTRA_FILE_BYTES], f.bytes);
        if (cases[i].how == CUT || cases[i].how == EMPTIED) { // no zeros were put in
            capture cap = capture_read(rig_path(&r, "t.pcap"));
            DQ_EQ(cap.n, cases[i].how == CUT);
            capture_free(&cap);
        }
        rig_close(&r);
    }
}

// A file of that name that isn't the writer's any more: one that took its place while it has another link.
static void replaced_files_with_another_link_are_noticed(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    push_numbered(&r, st, &node, 0, 5);
    touch_file(&r, RENAMED);
    put_file(rig_path(&r, "t.pcap"), "another's");
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).dropped[DQ_DROP_WRITE_ERROR], 5);
    check_error(st, "/t.pcap: another file took its name");
    rig_close(&r);
}

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

// ---- quota ------------------------------------------------------------------------------------------------

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

// ---- appending --------------------------------------------------------------------------------------------

// One run that appends n packets, numbered from first on.
static void append_run(rig *r, dq_writer_conf *c, uint32_t first, uint32_t n) {
    static uint32_t runs;
    char name[16];
    snprintf(name, sizeof name, "w%u", runs++);
    dq_stage *st = NULL;
    dq_diag d;
    must(dq_stage_writer(r->s, name, c, &st, &d) == DQ_OK && st->ops->start(st, &d) == DQ_OK, "writer");
    dqi_node node = {.stage = st};
    push_numbered(r, st, &node, first, n);
    st->ops->finish(st);
    uint64_t packets;
    DQ_EQ(check_list(st, &packets), 1);
    DQ_EQ(balanced(st, &node, 1).out, n);
}

static void appending(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    dq_writer_conf c = writer_conf(&r);
    c.append = true;
    append_run(&r, &c, 0, 5);
    append_run(&r, &c, 5, 5);
    const char *path = rig_path(&r, "t.pcap");
    for (uint32_t cut = 1; cut <= RECORD; cut++) { // a last record that lacks so many bytes
        must(truncate(path, 24 + 10 * RECORD - cut) == 0, "truncate");
        append_run(&r, &c, 9, 1);
        capture cap = capture_read(path);
        DQ_CHECK(cap.whole && cap.n == 10);
        for (uint32_t i = 0; i < cap.n; i++)
            DQ_CHECK(cap.records[i].ts == i + 1 && is_fill(cap.records[i].data, LEN, i));
        capture_free(&cap);
    }
    rig_close(&r);
}

static void incompatible_files_stay_as_they_are(void) {
    static const uint8_t good[24] = {0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0,
                                     0,    0,    0,    0,    0, 0, 0, 4, 0, 1};
    static const struct {
        const char *name, *want;
        uint32_t at, n; // bytes that differ; the file's length
        uint8_t with[4];
    } cases[] = {
        {"text", "no capture of this format", 0, 24, "text"},
        {"short", "no capture of this format", 0, 5, "text"},
        {"big endian", "other order of bytes", 0, 24, {0xa1, 0xb2, 0x3c, 0x4d}},
        {"µs", "another resolution", 0, 24, {0xd4, 0xc3, 0xb2, 0xa1}},
        {"snaplen", "another snaplen", 16, 24, {0, 1, 0, 0}},
        {"link type", "not Ethernet", 20, 24, {101, 0, 0, 0}},
        {"damaged", "damaged before its end", 24 + 8, 24 + 40, {0xff, 0xff, 0xff, 0xff}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 1, 64, 256);
        uint8_t bytes[64] = {0};
        memcpy(bytes, good, sizeof good);
        memcpy(bytes + cases[k].at, cases[k].with, 4);
        const char *path = rig_path(&r, "t.pcap");
        FILE *f = fopen(path, "wb");
        must(f && fwrite(bytes, 1, cases[k].n, f) == cases[k].n && fclose(f) == 0, path);
        dq_writer_conf c = writer_conf(&r);
        c.append = true;
        dq_stage *st = NULL;
        dq_diag d;
        must(dq_stage_writer(r.s, "w", &c, &st, &d) == DQ_OK, "writer");
        DQ_EQ(st->ops->start(st, &d), DQ_INVALID_PARAMETER);
        CHECK_TEXT(d.text, cases[k].want);
        size_t n = 0;
        uint8_t *now = slurp(path, &n);
        DQ_EQ(n, cases[k].n);
        DQ_EQ_BYTES(now, bytes, n);
        free(now);
        rig_close(&r);
    }
}

// ---- pcapng -----------------------------------------------------------------------------------------------

typedef struct blocks {
    uint32_t sections, interfaces, packets, statistics;
    bool whole;
} blocks;

// Walks over a pcapng; packets must be the fill of their time.
static blocks read_blocks(const char *path) {
    blocks k = {0};
    size_t n = 0, at = 0;
    uint8_t *p = slurp(path, &n);
    must(p != NULL, path);
    while (n - at >= 12) {
        uint32_t type = read_le32(p + at), len = read_le32(p + at + 4);
        if (len < 12 || len % 4 || len > n - at || read_le32(p + at + len - 4) != len) break;
        if (type == 0x0a0d0d0a) k.interfaces = (k.sections++, 0);
        k.interfaces += type == 1;
        k.statistics += type == 5;
        if (type == 6) {
            uint64_t ts = (uint64_t)read_le32(p + at + 12) << 32 | read_le32(p + at + 16);
            DQ_CHECK(read_le32(p + at + 8) < k.interfaces);
            DQ_CHECK(is_fill(p + at + 28, read_le32(p + at + 20), ts - 1));
            k.packets++;
        }
        at += len;
    }
    k.whole = at == n;
    free(p);
    return k;
}

static void pcapng_blocks(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    dq_writer_conf c = writer_conf(&r);
    c.kind = DQ_WRITE_PCAPNG;
    c.append = true;
    for (uint32_t run = 1; run <= 2; run++) {
        append_run(&r, &c, 0, 20);
        blocks k = read_blocks(rig_path(&r, "t.pcapng"));
        DQ_CHECK(k.whole && k.sections == run && k.packets == 20 * run && k.statistics == run);
    }
    char out[2048];
    if (run_tool("capinfos", "capinfos %s", rig_path(&r, "t.pcapng"), out, sizeof out)) {
        CHECK_TEXT(out, "Number of packets:   40\n");
        CHECK_TEXT(out, "Number of stat entries = ");
    }
    must(truncate(rig_path(&r, "t.pcapng"), 1000) == 0, "truncate");
    append_run(&r, &c, 0, 3);
    blocks k = read_blocks(rig_path(&r, "t.pcapng"));
    DQ_CHECK(k.whole && k.sections == 2 && k.packets > 3 && k.packets < 10);
    rig_close(&r);
}

// A failed write may cost an interface's description: the next packet brings it again.
static void pcapng_after_a_failed_write(void) {
    rig r;
    rig_open(&r, true, 1, 64, 256);
    struct rlimit old, limit;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    dqi_file_tally t = {0};
    static dqi_pcap_file p;
    const dqi_pcap_conf conf = {.ng = true};
    DQ_EQ(dqi_pcap_open(&p, rig_path(&r, "t.pcapng"), &conf, false, &t), 0);
    uint64_t header = t.file_bytes;
    limit = (struct rlimit){.rlim_cur = header + 10, .rlim_max = old.rlim_max};
    dq_burst *b = burst_of(&r, 1, LEN, 0);
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
    DQ_EQ(dqi_pcap_add(&p, b, 0, 1, &t), 0);
    DQ_EQ(dqi_block_flush(&p.file, &t), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &old);
    DQ_EQ(t.lost, 1);
    DQ_EQ(dqi_pcap_add(&p, b, 0, 1, &t), 0);
    DQ_EQ(dqi_pcap_end(&p, 5, "end", &t), 0);
    DQ_EQ(dqi_block_flush(&p.file, &t), 0);
    uint32_t crc = p.file.whole_crc;
    DQ_EQ(dqi_pcap_close(&p), 0);
    blocks k = read_blocks(rig_path(&r, "t.pcapng"));
    DQ_CHECK(k.whole && k.interfaces == 1 && k.packets == 1 && k.statistics == 1);
    uint64_t size = 0;
    DQ_EQ(crc, crc_of(rig_path(&r, "t.pcapng"), &size));
    dq_burst_unref(b);
    rig_close(&r);
}

// ---- batches ----------------------------------------------------------------------------------------------

static uint64_t le64_at(const uint8_t *p) { return read_le32(p) | (uint64_t)read_le32(p + 4) << 32; }

// A reader that shares nothing with ours but the page on the format.
static const char *const reader =
    "python3 -c 'import struct,sys; d=open(sys.argv[1],\"rb\").read(); u=lambda "
    "f,at:struct.unpack_from(f,d,at)[0];"
    "head,step=u(\"<I\",12),u(\"<Q\",16); at=range(head,len(d)-step+1,step);"
    "print(d[48:64].rstrip(b\"\\0\"),[u(\"<Q\",i+8) for i in at],[u(\"<Q\",i+16) for i in at],"
    "u(\"<Q\",head+u(\"<I\",68)))' %s";

static void batches(void) {
    for (int by_slot = 0; by_slot < 2; by_slot++) {
        rig r;
        rig_open(&r, true, 1, 64, 8192);
        dq_writer_conf c = writer_conf(&r);
        c.kind = DQ_WRITE_BATCHES;
        c.by_slot = by_slot;
        snprintf(c.text, sizeof c.text, "{\"telescope\":1}");
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        DQ_CHECK(!dq_writer_file_read(st, 0, &(dq_writer_file){0})); // no batch, no file
        const uint64_t there = 0xb7f; // cells 7 and 10 are missing: slots 3 and 5
        dq_aggregate a[3];
        for (uint64_t id = 0; id < 2; id++)
            put_batch(st, &node, batch_of(&r, SLOTS, id, &there, &a[id]));
        put_batch(st, &node, batch_of(&r, SLOTS - 1, 2, &there, &a[2])); // another shape: another file
        put_batch(st, &node, burst_of(&r, 1, LEN, 0));                   // no batch
        st->ops->finish(st);
        dq_line l = balanced(st, &node, 1);
        DQ_EQ(l.out, 3);
        DQ_EQ(l.out_bytes, (2 * SLOTS + SLOTS - 1) * 1000);
        DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 1);
        check_error(st, "packets that are no batch came");
        uint64_t packets;
        DQ_EQ(check_list(st, &packets), 2);
        dq_writer_file f;
        dq_writer_file_read(st, 0, &f);
        DQ_CHECK(f.packets == 2 && f.first_batch == 0 && f.last_batch == 1 && f.first_ns == 5 &&
                 f.last_ns == 9);
        size_t n = 0;
        uint8_t *p = slurp(rig_path(&r, "t_000000.dqb"), &n);
        DQ_EQ(n, 4096 + 2 * (4096 + 8192));
        DQ_EQ_BYTES(p, "DQBATCH", 8);
        DQ_EQ(le64_at(p + 16), 4096 + 8192);
        DQ_EQ(read_le32(p + 24), 4096);
        DQ_EQ(read_le32(p + 28), SLOTS);
        DQ_EQ_BYTES(p + 48, "int16", 6);
        DQ_EQ_BYTES(p + read_le32(p + 160), "{\"telescope\":1}", read_le32(p + 164));
        char out[256];
        if (run_tool("python3", reader, rig_path(&r, "t_000000.dqb"), out, sizeof out))
            DQ_EQ_STR(out, by_slot ? "b'int16' [0, 1] [256, 257] 23\n" : "b'int16' [0, 1] [256, 257] 2943\n");
        for (uint64_t id = 0; id < 2; id++) {
            const uint8_t *h = p + 4096 + id * (4096 + 8192);
            DQ_CHECK(le64_at(h + 8) == id && le64_at(h + 16) == id + 256 && le64_at(h + 24) == 5);
            DQ_EQ(read_le32(h + 48), DQ_AGGREGATE_TIMEOUT);
            DQ_EQ((int32_t)read_le32(h + 52), DQ_FILL_KEEP);
            DQ_EQ(le64_at(h + read_le32(p + 68)), by_slot ? 0x17 : there);
            DQ_EQ(le64_at(h + read_le32(p + 72) + 8 * 3), 13);
            DQ_CHECK(is_fill(h + 4096, SLOTS * 1000, id));
        }
        free(p);
        rig_close(&r);
    }
}

// Batches of several blocks, direct and in the writer's own thread; the file ends with a whole one.
static void large_batches(void) {
    rig r;
    rig_open(&r, false, 1, 8, 10 << 20);
    dq_writer_conf c = writer_conf(&r);
    c.kind = DQ_WRITE_BATCHES;
    c.policy = DQ_POLICY_WAIT;
    c.rotate_packets = 3;
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    const uint64_t there = 3;
    dq_aggregate a = {.slots = 2, .slot_bytes = (9 << 19) + 100, .cells = 2, .present = &there};
    for (uint64_t id = 0; id < 7; id++) {
        while (account(st, &node, 1).held > 2)
            sched_yield();
        dq_burst *b = rig_burst(&r, 1);
        fill_seg(b, 0, 0, 2 * a.slot_bytes, id);
        b->aggregate = &a;
        push_waiting(st, &node, b);
    }
    st->ops->finish(st);
    DQ_EQ(balanced(st, &node, 1).out, 7);
    uint64_t packets, size = 0;
    DQ_EQ(check_list(st, &packets), 3);
    DQ_EQ(packets, 7);
    DQ_CHECK(crc_of(rig_path(&r, "t_000002.dqb"), &size) != 0 && size % 4096 == 0);
    rig_close(&r);
}

// ---- killed -----------------------------------------------------------------------------------------------

static void write_for_ever(int kind, const char *dir) {
    rig r;
    rig_open(&r, false, 1, 1024, 9000);
    dq_writer_conf c = writer_conf(&r);
    c.kind = kind;
    c.policy = DQ_POLICY_WAIT;
    snprintf(c.dirs[0], sizeof c.dirs[0], "%s", dir);
    rmdir(r.dir);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    const uint64_t there = 0xfff;
    static dq_aggregate a[1024];
    for (uint32_t k = 0;; k++) {
        while (dqi_burst_pool_level(r.bursts) < 8 || account(st, &node, 1).held > 900)
            sched_yield();
        push_waiting(st, &node,
                     kind == DQ_WRITE_BATCHES ? batch_of(&r, SLOTS, k, &there, &a[k % 1024])
                                              : burst_of(&r, 32, 1 + k % 1400, 32 * k));
    }
}

static uint64_t file_bytes(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? (uint64_t)s.st_size : 0;
}

static void killed_process_leaves_whole_records(void) {
    static const int kinds[] = {DQ_WRITE_PCAPNG, DQ_WRITE_BATCHES};
    for (int k = 0; k < 2; k++) {
        rig r;
        rig_open(&r, true, 1, 8, 64);
        const char *path = rig_path(&r, k == 0 ? "t.pcapng" : "t_000000.dqb");
        fflush(stdout);
        pid_t pid = fork();
        must(pid >= 0, "fork");
        if (pid == 0) write_for_ever(kinds[k], r.dir);
        for (int tries = 0; tries < 10000 && file_bytes(path) < (5 << 20); tries++)
            usleep(1000);
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
        DQ_CHECK(file_bytes(path) >= 5 << 20);
        if (k == 0) {
            DQ_CHECK(read_blocks(path).packets > 1000);
        } else {
            size_t n = 0;
            uint8_t *p = slurp(path, &n);
            for (uint64_t id = 0, at = 4096; at + 12288 <= n; id++, at += 12288)
                DQ_CHECK(le64_at(p + at + 8) == id && is_fill(p + at + 4096, SLOTS * 1000, id));
            free(p);
        }
        rig_close(&r);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(checksum);
    DQ_RUN(rotation);
    DQ_RUN(due_files_are_closed_in_silence);
    DQ_RUN(names_go_on);
    DQ_RUN(taken_names_are_passed_over);
    DQ_RUN(touched_files_are_noticed);
    DQ_RUN(replaced_files_with_another_link_are_noticed);
    DQ_RUN(quota_leaves_others_files_alone);
    DQ_RUN(quota);
    DQ_RUN(senseless_rotation_is_refused);
    DQ_RUN(appending);
    DQ_RUN(incompatible_files_stay_as_they_are);
    DQ_RUN(pcapng_blocks);
    DQ_RUN(pcapng_after_a_failed_write);
    DQ_RUN(batches);
    DQ_RUN(large_batches);
    DQ_RUN(killed_process_leaves_whole_records);
    return dq_done();
}
