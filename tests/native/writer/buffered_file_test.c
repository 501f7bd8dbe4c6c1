// buffered_file_test.c: blocks that are written while the next ones are filled: on a disk direct, in memory
// buffered. Records carry their number, so that the file shows what arrived.
#include "capture.h"

#include "writer/buffered_file.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

// ---- records ----------------------------------------------------------------------------------------------

enum { HEAD = 12 }; // number (8 bytes) and length (4)

static uint32_t length_of(uint64_t number, uint32_t max) {
    uint64_t seed = number + 1;
    return HEAD + (uint32_t)dq_below(&seed, max - HEAD);
}

// Behind its head byte i is number * 31 + i, modulo 256.
static void make_record(uint8_t *to, uint64_t number, uint32_t len) {
    static uint8_t all[256];
    for (uint32_t i = 0; all[1] == 0 && i < sizeof all; i++)
        all[i] = (uint8_t)i;
    memcpy(to, &number, 8);
    memcpy(to + 8, &len, 4);
    for (uint32_t i = HEAD, n; i < len; i += n) {
        uint32_t from = (number * 31 + i) % sizeof all;
        n = len - i < sizeof all - from ? len - i : sizeof all - from;
        memcpy(to + i, all + from, n);
    }
}

static bool is_record(const uint8_t *at, uint64_t number, uint32_t len) {
    static uint8_t want[1 << 19];
    make_record(want, number, len);
    return memcmp(at, want, len) == 0;
}

// A file of whole records; their numbers are asked for by the caller.
typedef struct records {
    uint8_t *bytes;
    size_t size, whole; // whole: where the last whole record ends
    uint64_t n, first, last;
    bool rising; // each number is larger than the one before
} records;

static records read_records(const char *path, uint32_t max) {
    records r = {.rising = true};
    r.bytes = slurp(path, &r.size);
    must(r.bytes != NULL, path);
    while (r.size - r.whole >= HEAD) {
        uint64_t number;
        uint32_t len;
        memcpy(&number, r.bytes + r.whole, 8);
        memcpy(&len, r.bytes + r.whole + 8, 4);
        if (len != length_of(number, max) || len > r.size - r.whole) break;
        if (!is_record(r.bytes + r.whole, number, len)) break;
        r.rising &= r.n == 0 || number > r.last;
        if (r.n++ == 0) r.first = number;
        r.last = number;
        r.whole += len;
    }
    return r;
}

// ---- folders: one on a disk, one in memory ----------------------------------------------------------------

static const char *const roots[] = {NULL, "/dev/shm"}; // NULL: TMPDIR or /tmp

static bool make_folder(size_t k, char *dir, size_t len) {
    const char *tmp = roots[k] ? roots[k] : getenv("TMPDIR");
    snprintf(dir, len, "%s/daqiri-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    return mkdtemp(dir) != NULL;
}

typedef struct bench {
    char dir[64], path[80];
    dqi_buffered_file f;
    dqi_file_tally t;
    uint64_t next;   // number of the next record
    uint64_t failed; // records that dqi_buffered_file_room refused
    uint32_t max;    // length of a record
} bench;

static bool bench_open(bench *b, size_t root, bool overlap, uint32_t max) {
    *b = (bench){.max = max};
    if (!make_folder(root, b->dir, sizeof b->dir)) return false; // no such root here
    snprintf(b->path, sizeof b->path, "%s/f", b->dir);
    DQ_EQ(dqi_buffered_file_open(&b->f, b->path, overlap, false), 0);
    return true;
}

static void bench_close(bench *b) {
    dqi_buffered_file_close(&b->f);
    remove_folder(b->dir);
}

// Adds one record; 0, or the result of the room.
static int add(bench *b) {
    uint32_t len = length_of(b->next, b->max);
    int err = 0;
    uint8_t *to = dqi_buffered_file_room(&b->f, len, &b->t, &err);
    if (to) make_record(to, b->next, len);
    if (to) dqi_buffered_file_commit(&b->f, len, len, true, false);
    b->failed += to == NULL;
    b->next++;
    return err;
}

// Every record is in the file or counted as lost.
static void check_account(const bench *b, const records *r) {
    DQ_EQ(b->t.packets, r->n);
    DQ_EQ(b->t.packets + b->t.lost + b->failed, b->next);
    DQ_EQ(b->t.file_bytes, r->whole);
    DQ_EQ(b->t.packet_bytes, r->whole);
    DQ_CHECK(r->rising);
}

// ---- cases ------------------------------------------------------------------------------------------------

static void file_is_a_prefix_at_any_time(void) {
    enum { RECORDS = 2500, MAX = 9000 };
    for (size_t root = 0; root < 2; root++)
        for (int overlap = 0; overlap < 2; overlap++) {
            bench b;
            if (!bench_open(&b, root, overlap, MAX)) continue;
            uint64_t seen = 0, turns = 0;
            while (b.next < RECORDS) {
                DQ_EQ(add(&b), 0);
                if (b.f.turns == turns) continue;
                turns = b.f.turns;
                records r = read_records(b.path, MAX); // while that block is being written
                DQ_CHECK(r.n == 0 || (r.first == 0 && r.last == r.n - 1));
                DQ_CHECK(r.size - r.whole < MAX); // at most the last record is torn
                seen += r.n > 0;
                free(r.bytes);
            }
            DQ_CHECK(seen > 0);
            DQ_EQ(dqi_buffered_file_flush(&b.f, &b.t), 0);
            records r = read_records(b.path, MAX);
            DQ_EQ(r.n, RECORDS);
            DQ_EQ(r.whole, r.size);
            DQ_CHECK(!dqi_buffered_file_dirty(&b.f));
            check_account(&b, &r);
            free(r.bytes);
            bench_close(&b);
        }
}

// After a flush of any size all is readable, and the next block continues behind it.
static void flushes_between(void) {
    static const uint32_t every[] = {1, 3, 40, 200, 3000};
    enum { RECORDS = 3000, MAX = 3000 };
    for (size_t root = 0; root < 2; root++)
        for (size_t k = 0; k < sizeof every / sizeof *every; k++) {
            bench b;
            if (!bench_open(&b, root, true, MAX)) continue;
            uint32_t rounds = every[k] < 40 ? 100 : RECORDS / every[k];
            for (uint32_t i = 0; i < rounds; i++) {
                for (uint32_t n = 0; n < every[k]; n++)
                    DQ_EQ(add(&b), 0);
                DQ_EQ(dqi_buffered_file_flush(&b.f, &b.t), 0);
                if (i % 7 != 0 && i != rounds - 1) continue;
                records r = read_records(b.path, MAX);
                DQ_EQ(r.n, b.next);
                DQ_EQ(r.size, r.whole);
                check_account(&b, &r);
                free(r.bytes);
            }
            bench_close(&b);
        }
}

// Packets of no bytes: nothing of the buffer is full but the account of what it holds.
static void packets_of_no_bytes(void) {
    enum { PACKETS = 600000, BEFORE = 100 };
    for (size_t root = 0; root < 2; root++) {
        bench b;
        int err = 0;
        if (!bench_open(&b, root, true, 100)) continue;
        for (uint32_t n = 0; n < BEFORE; n++)
            DQ_EQ(add(&b), 0);
        for (uint32_t n = 0; n < PACKETS; n++) {
            DQ_CHECK(dqi_buffered_file_room(&b.f, 0, &b.t, &err) != NULL);
            dqi_buffered_file_commit(&b.f, 0, 0, true, false);
        }
        DQ_EQ(add(&b), 0);
        DQ_EQ(dqi_buffered_file_flush(&b.f, &b.t), 0);
        records r = read_records(b.path, 100);
        DQ_EQ(r.n, BEFORE + 1);
        DQ_EQ(b.t.packets, BEFORE + PACKETS + 1);
        DQ_EQ(b.t.file_bytes, r.size);
        DQ_EQ(r.size, r.whole);
        free(r.bytes);
        bench_close(&b);
    }
}

// A limit in the middle of a record: the file ends before it, all is accounted for, and once there is room
// again the file continues without a gap in what it holds.
static void failed_write_and_room_again(void) {
    static const rlim_t limits[] = {3000001, 4194304, 4194305, 9999999, 12582912};
    enum { MAX = 20000 };
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit old;
    getrlimit(RLIMIT_FSIZE, &old);
    for (size_t root = 0; root < 2; root++)
        for (size_t k = 0; k < sizeof limits / sizeof *limits; k++) {
            bench b;
            if (!bench_open(&b, root, true, MAX)) continue;
            struct rlimit limit = {.rlim_cur = limits[k], .rlim_max = old.rlim_max};
            must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
            int err = 0;
            while (err == 0 && b.next < 5000)
                err = add(&b);
            DQ_EQ(err, -EFBIG);
            records r = read_records(b.path, MAX);
            DQ_EQ(r.size, r.whole);
            DQ_CHECK(r.whole <= limits[k] && limits[k] - r.whole < MAX);
            check_account(&b, &r);
            free(r.bytes);
            must(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
            for (int i = 0; i < 2000; i++)
                DQ_EQ(add(&b), 0);
            DQ_EQ(dqi_buffered_file_flush(&b.f, &b.t), 0);
            r = read_records(b.path, MAX);
            DQ_EQ(r.size, r.whole);
            DQ_EQ(r.last, b.next - 1);
            check_account(&b, &r);
            free(r.bytes);
            bench_close(&b);
        }
}

// A packet of several blocks that does not fit leaves nothing of itself behind.
static void long_packet_fails_as_a_whole(void) {
    enum { PIECE = 1 << 18, PIECES = 100, SMALL = 1000 };
    struct rlimit old;
    getrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_IGN);
    for (size_t root = 0; root < 2; root++) {
        bench b;
        if (!bench_open(&b, root, true, SMALL)) continue;
        for (int i = 0; i < 10; i++)
            DQ_EQ(add(&b), 0);
        struct rlimit limit = {.rlim_cur = 10000000, .rlim_max = old.rlim_max};
        must(setrlimit(RLIMIT_FSIZE, &limit) == 0, "setrlimit");
        int err = 0;
        for (int i = 0; i < PIECES && err == 0; i++) {
            uint8_t *to = dqi_buffered_file_room(&b.f, PIECE, &b.t, &err);
            if (to) memset(to, 0xff, PIECE);
            if (to) dqi_buffered_file_extend(&b.f, PIECE);
        }
        DQ_EQ(err, -EFBIG);
        must(setrlimit(RLIMIT_FSIZE, &old) == 0, "setrlimit");
        for (int i = 0; i < 10; i++)
            DQ_EQ(add(&b), 0);
        DQ_EQ(dqi_buffered_file_flush(&b.f, &b.t), 0);
        records r = read_records(b.path, SMALL);
        DQ_EQ(r.n, 20);
        DQ_EQ(r.size, r.whole);
        check_account(&b, &r);
        free(r.bytes);
        bench_close(&b);
    }
}

static void killed_process_leaves_a_prefix(void) {
    enum { MAX = 5000 };
    for (size_t root = 0; root < 2; root++) {
        char dir[64], path[80];
        if (!make_folder(root, dir, sizeof dir)) continue;
        snprintf(path, sizeof path, "%s/f", dir);
        pid_t pid = fork();
        must(pid >= 0, "fork");
        if (pid == 0) {
            bench b = {.max = MAX};
            if (dqi_buffered_file_open(&b.f, path, true, false) != 0) _exit(1);
            while (b.next < 8000)
                add(&b);
            raise(SIGKILL);
        }
        int status = 0;
        must(waitpid(pid, &status, 0) == pid, "waitpid");
        DQ_CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
        records r = read_records(path, MAX);
        DQ_CHECK(r.n > 1000 && r.first == 0 && r.last == r.n - 1);
        DQ_CHECK(r.size - r.whole < MAX);
        free(r.bytes);
        remove_folder(dir);
    }
}

// Each packet of an account ends as completed or failed, also when the account is released before.
static void accounts(void) {
    bench b;
    must(bench_open(&b, 0, true, 1000), "folder");
    dq_op *good = dqi_op_new(100, NULL, 0), *gone = dqi_op_new(1, NULL, 0), *bad = dqi_op_new(3, NULL, 0);
    dq_op_state st;
    b.f.op = good;
    for (int i = 0; i < 100; i++)
        DQ_EQ(add(&b), 0);
    dq_op_read(good, &st);
    DQ_CHECK(!st.done && st.completed == 0); // staged is not written
    b.f.op = gone;
    DQ_EQ(add(&b), 0);
    dq_op_free(gone);
    DQ_EQ(dqi_buffered_file_flush(&b.f, &b.t), 0);
    dq_op_read(good, &st);
    DQ_CHECK(st.done && st.completed == 100 && st.failed == 0);
    DQ_EQ(st.bytes, b.t.packet_bytes - length_of(100, 1000));
    b.f.op = bad;
    DQ_EQ(add(&b), 0);
    DQ_EQ(add(&b), 0);
    must(unlink(b.path) == 0, "unlink");
    DQ_EQ(dqi_buffered_file_flush(&b.f, &b.t), -ENOENT);
    dq_op_read(bad, &st);
    DQ_CHECK(!st.done && st.completed == 0 && st.failed == 2);
    dqi_op_lost(bad, 1, -EIO);
    dq_op_read(bad, &st);
    DQ_CHECK(st.done && st.failed == 3);
    char text[128];
    dq_op_error(bad, text, sizeof text);
    DQ_EQ_STR(text, "it was removed while writing"); // the first one stays
    dq_op_free(good);
    dq_op_free(bad);
    dq_op_free(NULL);
    bench_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(file_is_a_prefix_at_any_time);
    DQ_RUN(flushes_between);
    DQ_RUN(packets_of_no_bytes);
    DQ_RUN(failed_write_and_room_again);
    DQ_RUN(long_packet_fails_as_a_whole);
    DQ_RUN(killed_process_leaves_a_prefix);
    DQ_RUN(accounts);
    return dq_done();
}
