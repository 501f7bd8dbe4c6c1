// writer_files_test.c: what is in files: appending, pcapng, batches, the checksums in the writer's list, and
// what a process that is killed leaves.
#include "writer_files_rig.h"

#include "writer/block_format.h"

#include <sys/resource.h>
#include <sys/wait.h>

static void checksum(void) {
    DQ_EQ(dqi_crc32c(0, "123456789", 9), 0xe3069283); // of the standard
    DQ_EQ(dqi_crc32c(dqi_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
    DQ_EQ(dqi_crc32c(7, "", 0), 7);
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
        {"text", "not a capture of this format", 0, 24, "text"},
        {"short", "not a capture of this format", 0, 5, "text"},
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

// A block of an unknown type behind our own: a whole one is followed by more, one that was cut off is
// cut away, and one whose lengths can't be leaves the file alone.
static void pcapng_unknown_blocks(void) {
    static const struct {
        const char *name;
        uint8_t bytes[16];
        uint32_t n, left; // its bytes in the file before and after
        const char *want; // NULL: it is gone on
    } cases[] = {
        {"whole", {0x77, 0, 0, 0, 16, 0, 0, 0, 1, 2, 3, 4, 16}, 16, 16, NULL},
        {"cut off", {0x77, 0, 0, 0, 16, 0, 0, 0, 1, 2}, 10, 0, NULL},
        {"ends as another", {0x77, 0, 0, 0, 16, 0, 0, 0, 1, 2, 3, 4, 20}, 16, 16, "damaged before its end"},
        {"beyond all", {0x77, 0, 0, 0, 0, 0, 0, 2}, 16, 16, "damaged before its end"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        rig r;
        rig_open(&r, true, 1, 64, 256);
        dq_writer_conf c = writer_conf(&r);
        c.kind = DQ_WRITE_PCAPNG;
        c.append = true;
        append_run(&r, &c, 0, 3);
        const char *path = rig_path(&r, "t.pcapng");
        size_t before = 0, after = 0;
        free(slurp(path, &before));
        FILE *f = fopen(path, "ab");
        must(f && fwrite(cases[k].bytes, 1, cases[k].n, f) == cases[k].n && fclose(f) == 0, path);
        if (cases[k].want) {
            dq_stage *st = NULL;
            dq_diag d;
            must(dq_stage_writer(r.s, "refused", &c, &st, &d) == DQ_OK, "writer");
            DQ_EQ(st->ops->start(st, &d), DQ_INVALID_PARAMETER);
            CHECK_TEXT(d.text, cases[k].want);
        } else {
            append_run(&r, &c, 3, 4);
            blocks b = read_blocks(path);
            DQ_CHECK(b.whole && b.sections == 2 && b.packets == 7);
        }
        uint8_t *p = slurp(path, &after);
        DQ_EQ_BYTES(p + before, cases[k].bytes, cases[k].left);
        DQ_EQ(after == before + cases[k].n, cases[k].want != NULL);
        free(p);
        rig_close(&r);
    }
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
    DQ_EQ(dqi_buffered_file_flush(&p.file, &t), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &old);
    DQ_EQ(t.lost, 1);
    DQ_EQ(dqi_pcap_add(&p, b, 0, 1, &t), 0);
    DQ_EQ(dqi_pcap_end(&p, 5, "end", &t), 0);
    DQ_EQ(dqi_buffered_file_flush(&p.file, &t), 0);
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
        c.kind = DQ_WRITE_BLOCKS;
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
        check_error(st, "received packets outside of batches");
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
    c.kind = DQ_WRITE_BLOCKS;
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
                     kind == DQ_WRITE_BLOCKS ? batch_of(&r, SLOTS, k, &there, &a[k % 1024])
                                             : burst_of(&r, 32, 1 + k % 1400, 32 * k));
    }
}

static uint64_t file_bytes(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? (uint64_t)s.st_size : 0;
}

static void killed_process_leaves_whole_records(void) {
    static const int kinds[] = {DQ_WRITE_PCAPNG, DQ_WRITE_BLOCKS};
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
    DQ_RUN(appending);
    DQ_RUN(incompatible_files_stay_as_they_are);
    DQ_RUN(pcapng_blocks);
    DQ_RUN(pcapng_unknown_blocks);
    DQ_RUN(pcapng_after_a_failed_write);
    DQ_RUN(batches);
    DQ_RUN(large_batches);
    DQ_RUN(killed_process_leaves_whole_records);
    return dq_done();
}
