// tx_test.c: the transmit proxy: what a kernel's slots become.
#include "pipeline/poller.h"
#include "rig.h"

#include <sys/stat.h>

#define EACH_REAL_MODE(m) for (bed_mode m = BED_DIRECT; m <= BED_WORKER && (bed_case(__func__, m), true); m++)

// Frames of ring 0, one buffer each, through a ring of `slots`, from a ticket on.
static void stream(bed_mode m, uint32_t slots, uint64_t first, uint64_t count) {
    rig r;
    rig_open(&r, (bed_conf){.mode = m}, (dq_gn_conf){.n_tx = 1, .tx_slots = slots, .first = first});
    bed_tap_all(&r.b);
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    for (uint64_t k = 0; k < count && dqi_mono_ns() < end;) {
        bool reuse = k < 64 || rig_completed(&r, 0) > first + k - 64;
        if (!reuse || !rig_room(&r, 0)) {
            bed_serve(&r.b, 0);
            continue;
        }
        bed_frame(rig_bytes(&r, rig_buf(&r, k)), RIG_LEN, 1000, 2000, k);
        rig_send(&r, 0, rig_buf(&r, k), RIG_LEN);
        k++;
    }
    bed_until(&r.b, count);
    bed_check_order(&r.b, count);
    RIG_UNTIL(&r, rig_completed(&r, 0) == first + count);
    DQ_EQ(rig_accepted(&r, 0), first + count);
    dq_line l = rig_line(&r, "test.tx"), q = bed_line(r.b.s, "port0", DQ_LINE_TX, "tx0");
    DQ_EQ(l.in, count);
    DQ_EQ(l.out, count);
    DQ_EQ(q.out, count);
    DQ_EQ(q.out_bytes, count * RIG_LEN);
    dq_gn_state st;
    dq_gn_read(r.gn, &st);
    DQ_EQ(st.completed, count);
    DQ_EQ(st.dropped, 0);
    DQ_CHECK(dq_gn_idle(r.gn));
    DQ_CHECK(!st.abi_differs);
    gn_store(&r.gn->kernel->abi, GN_ABI ^ 1);
    dq_gn_read(r.gn, &st);
    DQ_CHECK(st.abi_differs);
    rig_close(&r);
}

static void sends(void) {
    EACH_REAL_MODE(m) {
        stream(m, 2, 0, 500);
        stream(m, 4, (UINT64_C(1) << 32) - 3, 500);
        stream(m, 64, UINT64_C(1) << 62, 5000);
    }
}

// What is wrong is counted by its reason, reported to the kernel, and completed; what is right continues.
static void refused(void) {
    EACH_REAL_MODE(m) {
        rig r;
        rig_open(&r, (bed_conf){.mode = m}, (dq_gn_conf){.n_tx = 1});
        bed_tap_all(&r.b);
        uint32_t row = rig_row(&r);
        uint64_t end = dqi_region_bytes(r.b.more);
        const gn_u64 bad[][GN_TX_WORDS] = {
            {rig_word0(99, 0, RIG_LEN), gn_place(row, 0)},               // an operation that there isn't
            {rig_word0(GN_OP_PUT, 0, 8), gn_place(row, 0)},              // one that the ring doesn't take
            {rig_word0(GN_OP_SEND, 0, 0), gn_place(row, 0)},             // no bytes
            {rig_word0(GN_OP_SEND, 0, RIG_LEN), gn_place(77, 0)},        // a region not given
            {rig_word0(GN_OP_SEND, 0, RIG_LEN), gn_place(row, end - 8)}, // past its end
            {rig_word0(GN_OP_SEND, 0, RIG_LEN), gn_place(row, r.b.more->stride - 8)}, // of its buffer
            {rig_word0(GN_OP_SEND, 0, RIG_LEN), gn_place(row, 0), 0, 5},              // a peer
        };
        uint32_t n = sizeof bad / sizeof *bad;
        for (uint32_t k = 0; k < n; k++) {
            gn_u64 w[GN_TX_WORDS];
            memcpy(w, bad[k], sizeof w);
            rig_post(&r, 0, w);
        }
        bed_frame(rig_bytes(&r, 0), RIG_LEN, 1000, 2000, 0);
        rig_send(&r, 0, 0, RIG_LEN);
        bed_until(&r.b, 1);
        bed_check_order(&r.b, 1);
        RIG_UNTIL(&r, rig_completed(&r, 0) == n + 1);
        dq_line l = rig_line(&r, "test.tx");
        DQ_EQ(l.in, n + 1);
        DQ_EQ(l.out, 1);
        DQ_EQ(l.dropped[DQ_DROP_BAD_DESCRIPTOR], 3);
        DQ_EQ(l.dropped[DQ_DROP_NOT_ITS_REGION], 1);
        DQ_EQ(l.dropped[DQ_DROP_OUTSIDE_REGION], 2);
        DQ_EQ(l.dropped[DQ_DROP_NO_PEER], 1);
        DQ_EQ(gn_load(&r.gn->tx[0].state->dropped), n);
        DQ_EQ(gn_load(&r.gn->tx[0].state->error), gn_error(GN_FAULT_PEER, n - 1));
        rig_close(&r);
    }
}

// A ticket that was taken and never comes breaks its ring, and no other.
static void hole(bool waits) {
    EACH_REAL_MODE(m) {
        rig r;
        rig_open(&r, (bed_conf){.mode = m}, (dq_gn_conf){.n_tx = 2});
        bed_tap_all(&r.b);
        int64_t from = dqi_mono_ns(); // before a worker can see the hole
        r.ticket[0]++;                // reserved, and left
        if (waits)
            gn_store(&r.gn->tx[0].posted->waits, 1);
        else
            rig_send(&r, 0, 0, RIG_LEN);
        RIG_UNTIL(&r, gn_load(&r.gn->tx[0].state->epoch) & GN_BROKEN_RING);
        DQ_CHECK(dqi_mono_ns() - from > (int64_t)GN_HOLE_NS);
        DQ_EQ(gn_load(&r.gn->tx[0].state->error), gn_error(GN_FAULT_HOLE, 0));
        bed_frame(rig_bytes(&r, 0), RIG_LEN, 1000, 2000, 0);
        rig_send(&r, 1, 0, RIG_LEN);
        bed_until(&r.b, 1);
        bed_check_order(&r.b, 1);
        char why[256];
        DQ_CHECK(dq_stage_failure(r.gn->tx[0].stage, why, sizeof why) && strstr(why, "ticket 0"));
        DQ_CHECK(!dq_stage_failure(r.gn->tx[1].stage, why, sizeof why));
        dq_gn_state st;
        dq_gn_read(r.gn, &st);
        DQ_EQ(st.broken, 1);
        DQ_EQ(st.fault, GN_FAULT_HOLE);
        rig_close(&r);
    }
}

static void hole_behind(void) { hole(false); }
static void hole_waited(void) { hole(true); }

// A context is idle when each of its rings is: nothing is posted that was not taken, and nothing taken that
// is not done.
static void idle(void) {
    const uint64_t hour = UINT64_C(3600000000000);
    EACH_REAL_MODE(m) {
        rig r;
        rig_open(&r, (bed_conf){.mode = m}, (dq_gn_conf){.n_tx = 2});
        bed_tap_all(&r.b);
        DQ_CHECK(dq_gn_idle(r.gn));
        bed_frame(rig_bytes(&r, 0), RIG_LEN, 1000, 2000, 0);
        dqi_poller_hold(r.gn->tx[1].queue->poller); // the slot stays posted
        rig_send(&r, 1, 0, RIG_LEN);
        DQ_CHECK(!dq_gn_idle(r.gn));
        dqi_poller_release(r.gn->tx[1].queue->poller);
        RIG_UNTIL(&r, rig_completed(&r, 1) == 1);
        DQ_CHECK(dq_gn_idle(r.gn));
        gn_u64 later[GN_TX_WORDS] = {rig_word0(GN_OP_SEND, 0, RIG_LEN), gn_place(rig_row(&r), 0), hour};
        rig_post(&r, 1, later);
        RIG_UNTIL(&r, rig_accepted(&r, 1) == 2);
        DQ_EQ(rig_completed(&r, 1), 1);
        DQ_CHECK(!dq_gn_idle(r.gn));
        r.b.drain_ns = 0; // it is not sent
        rig_close(&r);
    }
}

// Two rings share a paced queue by bytes, whatever the sizes of their packets: both are full at the start,
// and when half of the one with small packets has left, and all, so have as many bytes of the other. There is
// a burst and a selection (a session has 1024) for each packet, so that none is lost while some thread has no
// core.
static void shares(void) {
    rig r;
    const uint32_t len[] = {4000, 1000}, n = 512;
    rig_open(&r,
             (bed_conf){.mode = BED_WORKER,
                        .pace_bps = 4e8,
                        .buf_size = 4096,
                        .more_size = 4096,
                        .bufs = 2 * n,
                        .rx_meta = 2 * n,
                        .tx_meta = 2 * n,
                        .timeout_us = 10000},
             (dq_gn_conf){.n_tx = 2, .tx_slots = n});
    bed_tap_all(&r.b);
    dqi_poller_hold(r.gn->tx[0].queue->poller);
    for (uint32_t k = 0; k < 2; k++)
        bed_frame(rig_bytes(&r, rig_buf(&r, k)), len[k], 1000, 2000, 0);
    for (uint32_t k = 0; k < 2; k++)
        while (rig_room(&r, k))
            rig_send(&r, k, rig_buf(&r, k), len[k]);
    dqi_poller_release(r.gn->tx[0].queue->poller);
    bed_until(&r.b, 2 * n);
    uint64_t other = 0, small = 0, half = 0;
    for (size_t i = 0; i < r.b.n && small < n; i++) {
        small += r.b.got[i].len == len[1];
        other += r.b.got[i].len == len[0] ? len[0] : 0;
        if (small == n / 2) half = other;
    }
    printf("shares: %" PRIu64 " and %u bytes, %" PRIu64 " at half\n", other, n * len[1], half);
    DQ_CHECK(half > n / 2 * len[1] * 7 / 10);
    DQ_CHECK(half < n / 2 * len[1] * 13 / 10);
    DQ_CHECK(other > n * len[1] * 8 / 10);
    DQ_CHECK(other < n * len[1] * 12 / 10);
    rig_close(&r);
}

static uint64_t next_random(uint64_t *x) {
    *x ^= *x << 13, *x ^= *x >> 7, *x ^= *x << 17;
    return *x;
}

// Slots of random bits, laps right: nothing goes wrong but packets, and accounts add up. DQ_GN_SLOTS: how
// many.
static void hostile(void) {
    const char *more = getenv("DQ_GN_SLOTS");
    const uint64_t slots = more ? strtoull(more, NULL, 10) : 20000;
    EACH_REAL_MODE(m) {
        rig r;
        rig_open(&r, (bed_conf){.mode = m}, (dq_gn_conf){.n_tx = 1, .tx_slots = 64, .ops = ~0u});
        bed_tap_all(&r.b);
        uint64_t x = 88172645463325252u;
        for (uint64_t n = 0; n < slots;) {
            if (!rig_room(&r, 0)) {
                bed_serve(&r.b, 0);
                continue;
            }
            gn_u64 w[GN_TX_WORDS];
            for (uint32_t k = 0; k < GN_TX_WORDS; k++) {
                next_random(&x);
                w[k] = n % 3 ? x : x & 0x1f000001ff0001ffu; // also nearly valid ones
            }
            if (n % 3 == 0) w[0] = (x % GN_OPS) << 56 | (x >> 8 & 1) << 48 | (x >> 20 & 0x3ff);
            if (n % 3 == 0 && x % GN_OPS == GN_OP_FILE)
                w[1] = gn_place(x & 3, x >> 9 & 0xfff), w[3] &= 1, w[2] = w[4] = w[5] = w[6] = 0;
            uint64_t t = r.ticket[0];
            if (n % 2)
                rig_write_at(&r, 0, t, w), r.ticket[0]++;
            else
                rig_post(&r, 0, w);
            n++;
        }
        RIG_UNTIL(&r, rig_completed(&r, 0) == slots);
        dq_line l = rig_line(&r, "test.tx");
        uint64_t dropped = 0;
        for (int k = 0; k < DQ_REASONS; k++)
            dropped += l.dropped[k];
        DQ_EQ(l.in, l.out + dropped);
        DQ_CHECK(dropped > slots / 2);
        DQ_EQ(gn_load(&r.gn->tx[0].state->dropped), dropped);
        dq_line disk = bed_line(r.b.s, "disk", DQ_LINE_WRITER, NULL);
        DQ_CHECK(disk.in > 0);
        DQ_EQ(disk.in, disk.out);
        struct stat is;
        char file[sizeof r.dir + 8];
        snprintf(file, sizeof file, "%s/t.raw", r.dir);
        DQ_EQ(stat(file, &is), 0);
        DQ_EQ((uint64_t)is.st_size, disk.out_bytes);
        rig_close(&r);
    }
}

// A kernel that writes anything over all that it can reach of the context, header and the proxy's words too:
// the proxy continues with what it kept for itself, and accounts add up.
static void scribbled(void) {
    EACH_REAL_MODE(m) {
        rig r;
        rig_open(&r, (bed_conf){.mode = m},
                 (dq_gn_conf){.n_tx = 2, .n_rx = 1, .n_sems = 2, .ops = ~0u, .rx_slots = 16});
        bed_start(&r.b);
        uint64_t x = 2463534242u, first, count;
        dq_gn_state st = {0};
        gn_u64 *block = (gn_u64 *)(void *)r.gn->block;
        for (uint32_t n = 0; n < 500; n++) {
            for (uint32_t k = 0; k < 64; k++) {
                uint64_t at = next_random(&x) % (r.gn->bytes / 8);
                gn_store(&block[at], next_random(&x) % 4 ? x : x & 0xff);
            }
            for (uint32_t k = 0; k < 2; k++) { // else nothing is right, and a hole breaks the ring
                uint64_t at = atomic_load(&r.gn->tx[k].accepted);
                gn_u64 w[GN_TX_WORDS] = {rig_word0(GN_OP_SEND, 0, RIG_LEN), gn_place(rig_row(&r), 0)};
                if (n % 2) w[0] = rig_word0(GN_OP_COPY, 0, 64), w[3] = gn_place(rig_row(&r), 2048);
                w[7] = at & ~GN_LAP;
                rig_write_at(&r, k, at, w);
                gn_store(&r.gn->tx[k].posted->waits, 0);
            }
            if (n % 16 == 0) bed_send(&r.b, r.b.tx[0][0], 4, RIG_LEN, 2000);
            for (uint32_t k = 0; k < 2; k++)
                if (dq_gn_sem_take(r.gn, k, &first, &count)) dq_gn_sem_done(r.gn, k);
            dq_gn_read(r.gn, &st);
            uint64_t was = st.posted;
            for (uint32_t k = 0; k < 20 && st.posted == was; k++) {
                bed_serve(&r.b, 100000);
                dq_gn_read(r.gn, &st);
            }
        }
        dq_gn_abort(r.gn);
        dq_gn_detach(r.gn);
        const char *names[] = {"test.tx1", "test.tx2", "test.rx"};
        for (uint32_t k = 0; k < 3; k++) {
            dq_line l = rig_line(&r, names[k]);
            uint64_t dropped = 0;
            for (int i = 0; i < DQ_REASONS; i++)
                dropped += l.dropped[i];
            DQ_EQ(l.in, l.out + l.held + dropped);
            DQ_EQ(l.held, 0);
            DQ_CHECK(l.in > 0);
        }
        DQ_CHECK(st.posted > 100 && st.posted < 2 * 500 * 64);
        DQ_CHECK(st.completed <= st.posted);
        rig_close(&r);
    }
}

static void memory(void) {
    EACH_REAL_MODE(m) {
        rig r;
        dq_gn_conf c = {.n_tx = 1,
                        .ops = 1u << GN_OP_PUT | 1u << GN_OP_GET | 1u << GN_OP_ADD | 1u << GN_OP_COPY};
        bed_conf bc = {.mode = m};
        rig_open(&r, bc, c);
        bed_tap_all(&r.b);
        uint32_t row = rig_row(&r);
        memcpy(rig_bytes(&r, 0), "hello, memory", 14);
        gn_u64 copy[GN_TX_WORDS] = {rig_word0(GN_OP_COPY, 0, 14), gn_place(row, 0), 0, gn_place(row, 4096)};
        rig_post(&r, 0, copy);
        RIG_UNTIL(&r, rig_completed(&r, 0) == 1);
        DQ_CHECK(memcmp(rig_bytes(&r, 4096), "hello, memory", 14) == 0);
        DQ_EQ(rig_line(&r, "test.tx").extra[DQ_EXTRA_COPIES], 1);
        DQ_EQ(rig_line(&r, "test.tx").extra[DQ_EXTRA_COPIED_BYTES], 14);
        DQ_EQ(rig_line(&r, "test.tx").extra[DQ_EXTRA_ONE_SIDED], 0);
        // a put to what is not a peer's is refused
        gn_u64 put[GN_TX_WORDS] = {rig_word0(GN_OP_PUT, 0, 14), gn_place(row, 0), 0, gn_place(row, 8192)};
        rig_post(&r, 0, put);
        RIG_UNTIL(&r, rig_completed(&r, 0) == 2);
        DQ_EQ(rig_line(&r, "test.tx").dropped[DQ_DROP_NOT_ITS_REGION], 1);
        DQ_CHECK(rig_bytes(&r, 8192)[0] == 0);
        rig_close(&r);
    }
}

// What can't be a context is an error, with kernel and ring.
static void bad(void) {
    struct {
        dq_gn_conf c;
        bed_mode mode;
        bool eth_src;
        const char *want;
    } cases[] = {
        {{.n_tx = 1, .tx_slots = 12}, BED_WORKER, false, "kernel test: transmit ring 1 has 12 slots"},
        {{.n_rx = 1, .rx_slots = 1}, BED_WORKER, false, "kernel test: receive ring 1 has 1 slots"},
        {{.n_sems = 1, .sem_slots = 3}, BED_WORKER, false, "kernel test: semaphore 1 has 3 slots"},
        {{.n_tx = 1, .tx_slots = 65536},
         BED_WORKER,
         false,
         "KiB of pinned memory, and a context has 1024 at most"},
        {{.n_tx = 1, .tx_slots = 64}, BED_VIRTUAL, false, "the session's clock is virtual"},
        {{.n_tx = 1, .tx_slots = 64}, BED_WORKER, true, "queue tx0 writes the source address"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        bed b;
        dq_diag d = {{0}};
        dq_gn *gn;
        dq_stage *st[DQ_GN_RINGS];
        bed_open(&b, (bed_conf){.mode = cases[k].mode, .eth_src = cases[k].eth_src});
        dq_gn_conf c = cases[k].c;
        c.name = "test";
        c.gpu = DQ_HOST_GPU;
        c.tx[0] = b.tx[0][0];
        c.rx[0] = b.rx[0][0];
        DQ_CHECK(dq_gn_open(b.s, &c, &gn, st, &d) != DQ_OK);
        if (!strstr(d.text, cases[k].want)) fprintf(stderr, "%s\nwanted: %s\n", d.text, cases[k].want);
        DQ_CHECK(strstr(d.text, cases[k].want) != NULL);
        bed_start(&b);
        bed_close(&b);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(sends);
    DQ_RUN(refused);
    DQ_RUN(hole_behind);
    DQ_RUN(hole_waited);
    DQ_RUN(idle);
    DQ_RUN(shares);
    DQ_RUN(hostile);
    DQ_RUN(scribbled);
    DQ_RUN(memory);
    DQ_RUN(bad);
    return dq_done();
}
