// writer_test.c: the writer stage: hand-over, ledger, times and raw files.
#include "writer_rig.h"

#include <pthread.h>
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
        DQ_CHECK(dqi_stage_poll(st) > 0);
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
    dqi_stage_poll(st);
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
    r.s->core.picks_cap = 1; // a session without queues has room for no more
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
    dq_burst *b = rig_burst(&r, 3);
    b->ts[0] = DQ_NO_TIME;
    b->ts[1] = 42;
    b->ts[2] = 0; // 1970-01-01 00:00:00, which is a time
    dq_advance(r.s, RIG_START_NS + 5);
    push(st, &node, b);
    dq_advance(r.s, RIG_START_NS + 1000000000);
    st->ops->finish(st);
    capture cap = capture_read(rig_path(&r, "t.pcap"));
    DQ_EQ(cap.n, 3);
    DQ_EQ(cap.records[0].ts, RIG_START_NS + 5);
    DQ_EQ(cap.records[1].ts, 42);
    DQ_EQ(cap.records[2].ts, 0);
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
    DQ_CHECK(dqi_stage_poll(st) > 0);
    DQ_EQ(balanced(st, &node, 1).held, 3); // in the block
    DQ_EQ(dqi_stage_poll(st), 0);
    dq_advance(r.s, RIG_START_NS + DQI_WRITER_LAG_NS);
    dqi_stage_poll(st);
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
        for (uint32_t round = 0; round < 2; round++) { // indices continue over bursts
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

static size_t size_of(const rig *r, const char *name) {
    size_t size = 0;
    free(slurp(rig_path(r, name), &size));
    return size;
}

// A file of 100 bytes is there already: what becomes of it, and where the packet of 10 bytes goes.
static void files_that_are_there(void) {
    static const struct {
        int32_t kind;
        bool overwrite;
        const char *there, *next;
    } rows[] = {
        {DQ_WRITE_RAW_PACKETS, false, "t_7", "t_8"},         {DQ_WRITE_RAW_PACKETS, true, "t_0", "t_0"},
        {DQ_WRITE_RAW_BURSTS, false, "t_0", "t_1"},          {DQ_WRITE_RAW_BURSTS, true, "t_0", "t_0"},
        {DQ_WRITE_RAW_FILE, false, "t.raw", "t_000000.raw"}, {DQ_WRITE_RAW_FILE, true, "t.raw", "t.raw"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bool same = strcmp(rows[k].there, rows[k].next) == 0;
        rig r;
        rig_open(&r, true, 1, 4, 64);
        FILE *f = fopen(rig_path(&r, rows[k].there), "w");
        must(f && fprintf(f, "%0100d", 0) == 100 && fclose(f) == 0, "file");
        dq_writer_conf c = writer_conf(&r);
        c.kind = rows[k].kind;
        c.overwrite = rows[k].overwrite;
        dq_stage *st = new_writer(&r, &c);
        dqi_node node = {.stage = st};
        push(st, &node, burst_of(&r, 1, 10, 0));
        st->ops->finish(st);
        DQ_EQ(balanced(st, &node, 1).out, 1);
        DQ_EQ(size_of(&r, rows[k].there), same ? 10 : 100);
        DQ_EQ(size_of(&r, rows[k].next), 10);
        rig_close(&r);
    }
}

// A file that a burst names and that is there stays, and fails no other packet.
static void named_file_that_is_there(void) {
    rig r;
    rig_open(&r, true, 1, 8, 64);
    FILE *f = fopen(rig_path(&r, "mine_1"), "w");
    must(f && fprintf(f, "%0100d", 0) == 100 && fclose(f) == 0, "file");
    dq_writer_conf c = writer_conf(&r);
    c.kind = DQ_WRITE_RAW_PACKETS;
    dq_stage *st = new_writer(&r, &c);
    dq_op *op = NULL;
    dq_burst *b = burst_of(&r, 3, 10, 0);
    dq_write_names names = {.prefix = "mine"};
    DQ_EQ(dq_writer_write(st, b, &names, &op), DQ_OK);
    dq_burst_unref(b);
    st->ops->finish(st);
    char error[2048];
    dq_writer_error(st, error, sizeof error);
    DQ_CHECK(strstr(error, "mine_1: a file of this name is there"));
    dq_line l = balanced(st, NULL, 0);
    DQ_EQ(l.out, 2);
    DQ_EQ(l.dropped[DQ_DROP_WRITE_ERROR], 1);
    DQ_EQ(size_of(&r, "mine_0"), 10);
    DQ_EQ(size_of(&r, "mine_1"), 100);
    DQ_EQ(size_of(&r, "mine_2"), 10);
    dq_op_free(op);
    rig_close(&r);
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
    rig_payloads(&r);
    rig_conns(&r, conn_of_test);
    r.iface.conf.socket.local_port = 7148;
    dq_writer_conf c = writer_conf(&r);
    dq_stage *st = new_writer(&r, &c);
    dqi_node node = {.stage = st};
    for (uint32_t k = 0; k < 6; k++) {
        r.iface.index = k % 3;
        r.iface.conf.socket.proto = k < 3 ? DQ_PROTO_UDP : DQ_PROTO_TCP;
        dq_burst *b = burst_of(&r, 4, k < 3 ? 1001 + k : 150000, k);
        for (uint32_t i = 0; i < 4; i++)
            memset(dqi_burst_peer_addr(b, i), 0, sizeof(dqi_sockaddr)); // UDP: unknown
        b->conn = k;
        push(st, &node, b);
        dqi_stage_poll(st);
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
    DQ_RUN(files_that_are_there);
    DQ_RUN(named_file_that_is_there);
    DQ_RUN(finish_is_final);
    DQ_RUN(other_readers_agree);
    return dq_done();
}
