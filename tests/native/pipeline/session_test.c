// session_test.c: a session's life: half-built, opened twice, stopped in mid-traffic, closed at every stage,
// two hundred times over; clocks; errors that name the object.
#include "bed.h"

#include <dirent.h>
#include <pthread.h>
#include <unistd.h>

static dq_session *new_session(bool virtual_clock) {
    dq_session_conf c = {.virtual_clock = virtual_clock,
                         .start_ns = virtual_clock ? BED_START_NS : 0,
                         .rx_meta_buffers = 16,
                         .tx_meta_buffers = 16};
    dq_session *s;
    dq_diag d = {{0}};
    bed_must(dq_session_new(&c, &s, &d), &d, "session");
    return s;
}

static uint32_t entries(const char *dir) {
    uint32_t n = 0;
    DIR *d = opendir(dir);
    while (d && readdir(d))
        n++;
    if (d) closedir(d);
    return n;
}

// The same once it is `want`, or after a second what it is: a thread that has been joined may show for a
// moment.
static uint32_t entries_soon(const char *dir, uint32_t want) {
    uint32_t n = entries(dir);
    for (int k = 0; n != want && k < 1000; k++) {
        usleep(1000);
        n = entries(dir);
    }
    return n;
}

// ---- half-built -------------------------------------------------------------------------------------------

// Builds a session as far as `steps` and closes it there.
static void half_built(void) {
    for (int steps = 0; steps <= 7; steps++) {
        dq_diag d = {{0}};
        dq_iface *i;
        dq_queue *q, *rx;
        dq_session *s = new_session(steps % 2);
        dq_region *r = NULL;
        dq_iface_conf ic = {.name = "port0", .engine = "loop"};
        dq_queue_conf qc = {.name = "tx0", .dir = DQ_TX, .core = -1, .batch_size = 8, .n_regions = 1};
        dq_burst *x;
        if (steps > 0) r = bed_region(s, "r", 64, 200);
        if (steps > 1) bed_must(dq_iface_add(s, &ic, &i, &d), &d, "port0");
        qc.regions[0] = r;
        if (steps > 2) bed_must(dq_queue_add(i, &qc, &q, &d), &d, "tx0");
        qc.dir = DQ_RX;
        strcpy(qc.name, "rx0");
        if (steps > 3) bed_must(dq_queue_add(i, &qc, &rx, &d), &d, "rx0");
        DQ_EQ(dq_session_stop(s, 0), 0);
        bed_check_ledger(s, true);
        if (steps > 4) bed_must(dq_session_open(s, &d), &d, "open");
        if (steps > 5) {
            DQ_EQ(dq_tx_alloc(q, 8, &x), DQ_OK);
            DQ_EQ(dq_burst_set_len(x, 0, -1, 60), DQ_OK);
            DQ_EQ(dq_tx_send(q, x), DQ_OK); // waits for a start that never comes
        }
        if (steps > 6) {
            DQ_EQ(dq_next_time(s), INT64_MAX);
            dq_session_finish(s);
        }
        DQ_EQ(dq_session_close(s), 0);
    }
    DQ_EQ(dq_session_close(NULL), 0);
}

static void out_of_order(void) {
    dq_diag d = {{0}};
    dq_session *s = new_session(true);
    dq_iface_conf ic = {.name = "late", .engine = "loop"};
    dq_queue_conf qc = {.name = "late0", .dir = DQ_TX, .core = -1, .batch_size = 8, .n_regions = 1};
    dq_iface *i, *late;
    dq_queue *q;
    qc.regions[0] = bed_region(s, "r", 8, 64);
    bed_must(dq_iface_add(s, &ic, &i, &d), &d, "interface");
    DQ_EQ(dq_session_start(s, &d), DQ_INVALID_PARAMETER);
    bed_must(dq_session_open(s, &d), &d, "open");
    DQ_EQ(dq_session_open(s, &d), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_iface_add(s, &ic, &late, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "late") != NULL);
    DQ_EQ(dq_queue_add(i, &qc, &q, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "late0") != NULL);
    bed_must(dq_session_start(s, &d), &d, "start");
    DQ_EQ(dq_session_start(s, &d), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_session_stop(s, 0), 0);
    DQ_EQ(dq_session_start(s, &d), DQ_INVALID_PARAMETER);
    dq_session_finish(s);
    DQ_EQ(dq_session_stop(s, 0), 0);
    DQ_EQ(dq_session_close(s), 0);
}

static void errors_name_the_object(void) {
    dq_session *s = new_session(true);
    dq_diag d = {{0}};
    dq_iface *i;
    dq_queue *q;
    dq_iface_conf bad = {.name = "port7", .engine = "warp"}, real = {.name = "port8", .engine = "socket"},
                  good = {.name = "port0", .engine = "loop"};
    DQ_EQ(dq_iface_add(s, &bad, &i, &d), DQ_NOT_SUPPORTED);
    DQ_CHECK(strstr(d.text, "port7") && strstr(d.text, "warp"));
    DQ_EQ(dq_iface_add(s, &real, &i, &d), DQ_NOT_SUPPORTED); // sockets have no virtual clock
    DQ_CHECK(strstr(d.text, "port8") != NULL);
    DQ_EQ(dq_iface_add(s, &good, &i, &d), DQ_OK);
    static const dq_queue_conf queues[] = {{.name = "rx5", .batch_size = 0, .n_regions = 1},
                                           {.name = "rx5", .batch_size = 8, .n_regions = 0},
                                           {.name = "rx5", .batch_size = 8, .n_regions = DQ_MAX_SEGS + 1}};
    for (int k = 0; k < 3; k++) {
        DQ_EQ(dq_queue_add(i, &queues[k], &q, &d), DQ_INVALID_PARAMETER);
        DQ_CHECK(strstr(d.text, "rx5") != NULL);
    }
    DQ_EQ(dq_iface_events(i, NULL, 0, &d), DQ_NOT_SUPPORTED);
    DQ_EQ(dq_iface_multicast(i, "10.0.0.1", "", true, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "port0") && strstr(d.text, "10.0.0.1"));
    uint32_t conn;
    DQ_EQ(dq_conn_open(i, &(dq_connect){.address = "127.0.0.1:1", .local = ""}, &conn, &d), DQ_NOT_SUPPORTED);
    DQ_CHECK(strstr(d.text, "port0") != NULL);
    DQ_EQ(dq_session_close(s), 0);
}

// A worker on a core that is not there: the start fails with an error.
static void start_without_a_core(void) {
    dq_session *s = new_session(false);
    dq_diag d = {{0}};
    dq_iface *i;
    dq_queue *q;
    dq_iface_conf ic = {.name = "port0", .engine = "loop"};
    dq_queue_conf qc = {.name = "tx0", .dir = DQ_TX, .core = -1, .batch_size = 8, .n_regions = 1};
    qc.regions[0] = bed_region(s, "r", 8, 64);
    bed_must(dq_iface_add(s, &ic, &i, &d), &d, "interface");
    bed_must(dq_queue_add(i, &qc, &q, &d), &d, "tx0");
    qc.core = 1000;
    strcpy(qc.name, "tx1");
    qc.id = 1;
    bed_must(dq_queue_add(i, &qc, &q, &d), &d, "tx1");
    bed_must(dq_session_open(s, &d), &d, "open");
    DQ_CHECK(dq_session_start(s, &d) < 0);
    DQ_CHECK(strstr(d.text, "1000") != NULL);
    DQ_EQ(dq_session_close(s), 0);
}

// The workers that did start are gone after the close, and so are the descriptors.
static void worker_without_a_core(void) {
    start_without_a_core(); // the first brings what stays in the process
    uint32_t fds = entries("/proc/self/fd"), threads = entries_soon("/proc/self/task", 1);
    for (int i = 0; i < 5; i++)
        start_without_a_core();
    DQ_EQ(entries("/proc/self/fd"), fds);
    DQ_EQ(entries_soon("/proc/self/task", threads), threads);
}

// ---- stop -------------------------------------------------------------------------------------------------

static bed *sending;
static _Atomic bool ended;

static void *keep_sending(void *arg) {
    (void)arg;
    while (!atomic_load(&ended))
        if (bed_send(sending, sending->tx[0][0], 8, 100, 7) != DQ_OK)
            nanosleep(&(struct timespec){.tv_nsec = 10000}, NULL);
    return NULL;
}

// Stopped while a transmission and a task send: whatever was accepted is accounted for.
static void stop_in_mid_traffic(void) {
    for (int round = 0; round < 10; round++) {
        bed b;
        pthread_t t;
        bed_case(__func__, BED_WORKER);
        bed_open(&b, (bed_conf){.mode = BED_WORKER,
                                .tx = 2,
                                .timeout_us = 50,
                                .bufs = 1024,
                                .wire = {.loss = 0.01, .dup = 0.01, .reorder = 0.01, .delay_ns = 20000}});
        bed_tap_all(&b);
        dq_diag d = {{0}};
        dq_template *tp;
        uint8_t f[100];
        bed_frame(f, 100, 1, 7, 0);
        bed_must(dq_template_new(f, 100, NULL, 0, 0, 0, &tp, &d), &d, "template");
        DQ_EQ(dq_tx_transmit(b.tx[0][1], tp, 0), DQ_OK);
        sending = &b;
        ended = false;
        DQ_EQ(pthread_create(&t, NULL, keep_sending, NULL), 0);
        bed_until(&b, 500 + 300 * (size_t)round);
        atomic_store(&ended, true);
        pthread_join(t, NULL);
        bed_stop(&b);
        DQ_EQ(dq_session_stop(b.s, 0), 0);
        dq_line w = bed_line(b.s, "port0", DQ_LINE_WIRE, "tx0"),
                w1 = bed_line(b.s, "port0", DQ_LINE_WIRE, "tx1");
        DQ_EQ(w.out + w1.out, b.n + bed_line(b.s, "port0", DQ_LINE_RX, NULL).dropped[DQ_DROP_STOPPED]);
        bed_close(&b);
        dq_template_unref(tp);
    }
}

// Closed at once, without a stop, with packets everywhere and nothing serving the tap.
static void close_in_mid_traffic(void) {
    BED_EACH_MODE(m) {
        bed b;
        dq_diag d = {{0}};
        dq_template *tp;
        uint8_t f[100];
        bed_frame(f, 100, 1, 7, 0);
        bed_must(dq_template_new(f, 100, NULL, 0, 0, 0, &tp, &d), &d, "template");
        bed_open(&b, (bed_conf){.mode = m,
                                .ifaces = 3,
                                .timeout_us = 50,
                                .bufs = 1024,
                                .wire = {.reorder = 0.1, .delay_ns = 1000}});
        bed_tap_all(&b);
        for (int i = 0; i < 3; i++)
            DQ_EQ(dq_tx_transmit(b.tx[i][0], tp, 0), DQ_OK);
        for (int i = 0; i < 30; i++) {
            if (m == BED_VIRTUAL && dq_step(b.s) == 0) dq_advance(b.s, dq_next_time(b.s));
            if (m == BED_DIRECT) bed_serve(&b, 0);
            if (m == BED_WORKER) nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        }
        DQ_EQ(dq_session_close(b.s), 0);
        dq_waiter_free(b.w);
        dq_template_unref(tp);
        free(b.got);
    }
}

// What waits to be sent and has no time to go is counted as stopped.
static void nothing_drains_in_no_time(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 8});
    bed_tap_all(&b);
    dq_tx_pace(b.tx[0][0], 0, 1);
    for (int i = 0; i < 3; i++)
        DQ_EQ(bed_send(&b, b.tx[0][0], 8, 100, 7), DQ_OK);
    DQ_EQ(dq_session_stop(b.s, 2500000000), 0); // three leave: at 0, 1 and 2 s
    while (bed_serve(&b, 0) > 0) {
    }
    DQ_EQ(b.n, 3);
    DQ_EQ(dq_session_quiesced(b.s) - dq_start_ns(b.s), 2000000000); // it ran until the last one left
    bed_check_ledger(b.s, false);
    dq_session_finish(b.s);
    dq_line l = bed_line(b.s, "port0", DQ_LINE_TX, NULL);
    DQ_EQ(l.out, 3);
    DQ_EQ(l.dropped[DQ_DROP_STOPPED], 21);
    bed_check_ledger(b.s, true);
    DQ_EQ(dq_session_close(b.s), 0);
    dq_waiter_free(b.w);
    free(b.got);
}

// ---- again and again --------------------------------------------------------------------------------------

static void no_leak(void) {
    uint32_t fds = 0, threads = 0;
    for (int i = 0; i < 200; i++) {
        bed b;
        bed_case(__func__, (bed_mode)(i % BED_MODES));
        bed_open(&b, (bed_conf){.mode = (bed_mode)(i % BED_MODES),
                                .rx = 2,
                                .tx = 2,
                                .timeout_us = 20,
                                .bufs = 128,
                                .rx_meta = 16,
                                .tx_meta = 16});
        bed_tap_all(&b);
        bed_stream(&b, b.tx[0][i % 2], 30, 10, 100, 7);
        if (i % 4 == 0) bed_until(&b, 30);
        bed_close(&b);
        if (i == 0) {
            fds = entries("/proc/self/fd");
            threads = entries("/proc/self/task"); // one of an earlier case may be about to end
        }
    }
    DQ_EQ(entries("/proc/self/fd"), fds);
    DQ_CHECK(entries("/proc/self/task") <= threads || entries_soon("/proc/self/task", threads) <= threads);
}

// Several sessions live side by side, each with its own clock and accounts.
static void side_by_side(void) {
    bed b[BED_MODES];
    for (bed_mode m = BED_VIRTUAL; m < BED_MODES; m = (bed_mode)(m + 1)) {
        bed_open(&b[m], (bed_conf){.mode = m, .timeout_us = 50});
        bed_tap_all(&b[m]);
    }
    for (int i = 0; i < 20; i++)
        for (int m = 0; m < BED_MODES; m++)
            bed_stream(&b[m], b[m].tx[0][0], 10 + (uint32_t)m, 10, 100, 7);
    for (int m = 0; m < BED_MODES; m++) {
        bed_until(&b[m], 200 + 20 * (size_t)m);
        bed_check_order(&b[m], 200 + 20 * (size_t)m);
        bed_close(&b[m]);
    }
}

// ---- clocks -----------------------------------------------------------------------------------------------

static void virtual_clock(void) {
    dq_session *s = new_session(true);
    dq_diag d;
    DQ_EQ(dq_start_ns(s), BED_START_NS);
    DQ_EQ(dq_now(s), BED_START_NS);
    DQ_EQ(dq_session_open(s, &d), DQ_OK);
    DQ_EQ(dq_session_start(s, &d), DQ_OK);
    DQ_EQ(dq_step(s), 0);
    DQ_EQ(dq_next_time(s), INT64_MAX);
    dq_advance(s, BED_START_NS + 5);
    DQ_EQ(dq_now(s), BED_START_NS + 5);
    dq_advance(s, BED_START_NS + 3); // never back
    DQ_EQ(dq_now(s), BED_START_NS + 5);
    DQ_EQ(dq_start_ns(s), BED_START_NS);
    DQ_EQ(dq_session_close(s), 0);
}

static void real_clock(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    int64_t before = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    dq_session *s = new_session(false);
    DQ_CHECK(dq_start_ns(s) >= before);
    int64_t last = dq_start_ns(s);
    for (int i = 0; i < 1000; i++) {
        int64_t now = dq_now(s);
        DQ_CHECK(now >= last);
        last = now;
    }
    dq_advance(s, INT64_MAX); // of no effect
    DQ_CHECK(dq_now(s) < before + BED_PATIENCE);
    DQ_EQ(dq_session_close(s), 0);
}

// ---- words ------------------------------------------------------------------------------------------------

static bool reply(const char *text) { return text && text[0]; }

static void words(void) {
    for (int r = 0; r < DQ_REASONS; r++) {
        DQ_CHECK(reply(dq_reasons[r].name) && reply(dq_reasons[r].text) && reply(dq_reasons[r].advice));
        for (int k = 0; k < r; k++)
            DQ_CHECK(strcmp(dq_reasons[k].name, dq_reasons[r].name) != 0);
    }
    for (int e = 0; e < DQ_EXTRAS; e++)
        DQ_CHECK(reply(dq_extras[e].name) && reply(dq_extras[e].unit) && reply(dq_extras[e].text));
    for (int h = 0; h < DQ_HISTOGRAMS; h++)
        DQ_CHECK(reply(dq_histogram_rows[h].name) && reply(dq_histogram_rows[h].metric) &&
                 reply(dq_histogram_rows[h].text));
    DQ_EQ_STR(dq_reasons[DQ_DROP_STOPPED].name, "stopped");
    DQ_EQ_STR(dq_extras[DQ_EXTRA_RETRIES].name, "retries");
    DQ_EQ_STR(dq_err_name(DQ_NO_SPACE_AVAILABLE), "NO_SPACE_AVAILABLE");
    DQ_EQ_STR(dq_err_name(DQ_NO_FREE_BURST_BUFFERS), "NO_FREE_BURST_BUFFERS");
    DQ_EQ_STR(dq_err_name(DQ_INTERNAL_ERROR), "INTERNAL_ERROR");
    DQ_EQ_STR(dq_err_name(DQ_ESYS - 2), strerror(2));
}

// Notes come from any thread, while the report is read; none is lost until there is no room.
static void *note_50(void *session) {
    for (int i = 0; i < 50; i++)
        dqi_note(session, "note %d", i);
    return NULL;
}

static void notes_from_threads(void) {
    bed b;
    char text[64];
    pthread_t t[4];
    bed_open(&b, (bed_conf){.mode = BED_DIRECT});
    uint32_t n = 0;
    while (dq_session_report(b.s, n, text, sizeof text))
        n++;
    for (int k = 0; k < 4; k++)
        DQ_EQ(pthread_create(&t[k], NULL, note_50, b.s), 0);
    for (uint32_t i = 0; i < n + 200 && i < DQI_MAX_NOTES;)
        i += dq_session_report(b.s, i, text, sizeof text);
    for (int k = 0; k < 4; k++)
        pthread_join(t[k], NULL);
    DQ_EQ(strncmp(text, "note ", 5), 0);
    DQ_CHECK(!dq_session_report(b.s, n + 200, text, sizeof text));
    note_50(b.s); // only so many find room
    note_50(b.s);
    DQ_CHECK(dq_session_report(b.s, DQI_MAX_NOTES - 1, text, sizeof text));
    DQ_CHECK(!dq_session_report(b.s, DQI_MAX_NOTES, text, sizeof text));
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(half_built);
    DQ_RUN(out_of_order);
    DQ_RUN(errors_name_the_object);
    DQ_RUN(worker_without_a_core);
    DQ_RUN(stop_in_mid_traffic);
    DQ_RUN(close_in_mid_traffic);
    DQ_RUN(nothing_drains_in_no_time);
    DQ_RUN(no_leak);
    DQ_RUN(side_by_side);
    DQ_RUN(virtual_clock);
    DQ_RUN(real_clock);
    DQ_RUN(notes_from_threads);
    DQ_RUN(words);
    return dq_done();
}
