// A capture of several chunks, replayed by workers: every packet comes, in order, whole, loop after loop; one
// that is cut short meanwhile ends.
#include "dqtest.h"

#include "dq.h"
#include "pipeline/stages/dq_stages.h"

#include <time.h>
#include <unistd.h>

#define PACKETS 4000
#define LONGEST 1500

static char path[256];
static uint8_t record[16 + LONGEST];

static uint32_t length_of(uint32_t k) { return 60 + k * 37 % (LONGEST - 60); }

static uint8_t byte_of(uint32_t k, uint32_t i) { return (uint8_t)(k * 31 + i * 7); }

static void le32(uint8_t *p, uint32_t v) {
    for (int k = 0; k < 4; k++)
        p[k] = (uint8_t)(v >> 8 * k);
}

// About 3 MiB, so that records lie across the ends of chunks.
static void write_capture(void) {
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/daqiri-XXXXXX", tmp && strlen(tmp) < 200 ? tmp : "/tmp");
    FILE *f = fdopen(mkstemp(path), "w");
    if (!f) exit(1);
    uint8_t header[24] = {0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4};
    le32(header + 16, 65535);
    le32(header + 20, 1);
    fwrite(header, 1, sizeof header, f);
    for (uint32_t k = 0; k < PACKETS; k++) {
        uint32_t len = length_of(k);
        le32(record, 1700000000);
        le32(record + 4, k * 1000);
        le32(record + 8, len);
        le32(record + 12, len);
        for (uint32_t i = 0; i < len; i++)
            record[16 + i] = byte_of(k, i);
        le32(record + 16 + 20, k);
        fwrite(record, 1, 16 + len, f);
    }
    fclose(f);
}

typedef struct bench {
    dq_session *s;
    dq_iface *i;
    dq_queue *q;
    dq_waiter *w;
    uint64_t n, wrong;
} bench;

static void must(int err, const dq_diag *d) {
    if (err == DQ_OK) return;
    fprintf(stderr, "%s: %s\n", dq_case, d->text);
    exit(1);
}

static void bench_open(bench *b, dq_replay_conf replay) {
    dq_diag d = {{0}};
    dq_session_conf sc = {.rx_meta_buffers = 16, .tx_meta_buffers = 16};
    dq_region_conf rc = {.name = "m", .affinity = -1, .num_bufs = 256, .buf_size = 2048};
    dq_iface_conf ic = {.name = "src", .engine = "pcap", .replay = replay};
    dq_queue_conf qc = {.name = "q", .core = -1, .batch_size = 32, .n_regions = 1};
    *b = (bench){0};
    snprintf(ic.address, sizeof ic.address, "pcap:%s", path);
    must(dq_session_new(&sc, &b->s, &d), &d);
    must(dq_region_add(b->s, &rc, &qc.regions[0], &d), &d);
    must(dq_iface_add(b->s, &ic, &b->i, &d), &d);
    must(dq_queue_add(b->i, &qc, &b->q, &d), &d);
    must(dq_waiter_new(&b->w, &d), &d);
    must(dq_session_open(b->s, &d), &d);
    dq_stage *tap;
    dq_pipe *pipe;
    must(dq_stage_tap(b->s, "tap", b->w, 1, 4, DQ_POLICY_WAIT, 1, &tap, &d), &d);
    must(dq_pipe_add(b->q, &tap, 1, 0, &pipe, &d), &d);
    must(dq_session_start(b->s, &d), &d);
}

static void look(bench *b, const dq_view *v) {
    for (uint32_t i = 0; i < v->n; i++, b->n++) {
        const uint8_t *p = v->base + v->off[0][i];
        uint32_t k = (uint32_t)(b->n % PACKETS), len = length_of(k), seq = 0;
        memcpy(&seq, p + 20, 4);
        bool right = v->len[0][i] == len && v->clock == DQ_CLOCK_FILE &&
                     v->ts[i] == 1700000000000000000 + (int64_t)(b->n / PACKETS * PACKETS + k) * 1000;
        for (uint32_t j = 0; right && j < len; j++)
            right = j >= 20 && j < 24 ? (j > 20 || p[20] == (uint8_t)k) : p[j] == byte_of(k, j);
        b->wrong += !right;
    }
}

// Takes bursts until the source has ended and the queue is empty, or `most` packets came.
static void take(bench *b, uint64_t most) {
    dq_source src = {.ended = false};
    dq_event ev[8];
    for (int idle = 0; b->n < most && idle < 2;) {
        int n = dq_wait(b->w, 1000000, ev, 8);
        for (int k = 0; k < n; k++) {
            look(b, &ev[k].view);
            dq_burst_unref(ev[k].b);
        }
        DQ_CHECK(dq_iface_source(b->i, &src));
        dq_line l[4];
        uint32_t lines = dq_ledger(b->s, l, 4);
        uint64_t held = 0;
        for (uint32_t k = 0; k < lines && k < 4; k++)
            held += l[k].held;
        idle = src.ended && held == 0 && n == 0 ? idle + 1 : 0;
    }
}

static void bench_close(bench *b) {
    const int64_t patience = INT64_C(60000000000), from = dq_now(b->s);
    dq_line l[4];
    dq_event ev[8];
    while (dq_session_stop(b->s, patience) > 0)
        for (int n = dq_wait(b->w, 0, ev, 8); n > 0; n--)
            dq_burst_unref(ev[n - 1].b);
    DQ_CHECK(dq_now(b->s) < from + patience); // what is left of the file is not waited for
    dq_session_finish(b->s);
    uint32_t n = dq_ledger(b->s, l, 4);
    DQ_EQ(n, 3); // queue, wire, tap
    for (uint32_t k = 0; k < n; k++) {
        uint64_t dropped = 0;
        for (int r = 0; r < DQ_REASONS; r++)
            dropped += l[k].dropped[r];
        DQ_EQ(l[k].in, l[k].out + l[k].held + dropped);
    }
    dq_waiter_free(b->w);
    DQ_EQ(dq_session_close(b->s), 0);
}

static void whole_and_in_order(void) {
    bench b;
    bench_open(&b, (dq_replay_conf){.loops = 3});
    take(&b, UINT64_MAX);
    DQ_EQ(b.n, 3 * PACKETS);
    DQ_EQ(b.wrong, 0);
    bench_close(&b);
}

static void stopped_half_way(void) {
    bench b;
    bench_open(&b, (dq_replay_conf){.loops = 0});
    take(&b, 3 * PACKETS / 2);
    DQ_EQ(b.wrong, 0);
    bench_close(&b);
}

static void at_a_rate(void) {
    bench b;
    bench_open(&b, (dq_replay_conf){.pps = 100000, .loops = 1});
    struct timespec from, to;
    clock_gettime(CLOCK_MONOTONIC, &from);
    take(&b, UINT64_MAX);
    clock_gettime(CLOCK_MONOTONIC, &to);
    DQ_EQ(b.n, PACKETS);
    int64_t took = (to.tv_sec - from.tv_sec) * INT64_C(1000000000) + to.tv_nsec - from.tv_nsec;
    DQ_CHECK(took > INT64_C(30000000)); // 40 ms less what passed before the clock was read
    bench_close(&b);
}

// The file ends where it is cut; what was read ahead comes. Where the cut comes while the file is read, the
// reader finds the part of a record, and returns it.
static void cut_short_meanwhile(void) {
    bench b;
    bench_open(&b, (dq_replay_conf){.pps = 400000, .loops = 0});
    take(&b, PACKETS / 8);
    DQ_EQ(truncate(path, 24), 0);
    take(&b, UINT64_MAX);
    DQ_EQ(b.wrong, 0);
    dq_source src;
    DQ_CHECK(dq_iface_source(b.i, &src) && src.ended);
    DQ_CHECK(src.fault[0] == 0 || strstr(src.fault, "it is cut off in the record") != NULL);
    bench_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    write_capture();
    DQ_RUN(whole_and_in_order);
    DQ_RUN(stopped_half_way);
    DQ_RUN(at_a_rate);
    DQ_RUN(cut_short_meanwhile);
    unlink(path);
    return dq_done();
}
