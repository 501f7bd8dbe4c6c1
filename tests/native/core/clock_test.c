// clock_test.c: kernel stamps on the session's clock while the wall clock is stepped under them.
#include "core/clock.h"
#include "pipeline/session.h"
#include "socket_rig.h"

#define MS INT64_C(1000000)
#define S  (1000 * MS)
#define T0 (INT64_C(1700000000) * S)

// One packet: when it came and when it was read, by a clock that nothing steps; by how much the wall clock
// was ahead then.
typedef struct packet {
    int64_t came, read, ahead_came, ahead_read;
} packet;

#define STEADY(at)                                                                                           \
    { at, at + MS, 0, 0 }

static const struct {
    const char *name;
    packet in[4];
    int64_t off; // how far a time may be from the truth
} cases[] = {
    {"no step", {STEADY(0), STEADY(MS), STEADY(2 * MS), STEADY(9 * S)}, 0},
    {"forward between reads",
     {STEADY(0), {S, S, 5 * S, 5 * S}, {2 * S, 2 * S, 5 * S, 5 * S}, {3 * S, 3 * S, 5 * S, 5 * S}},
     0},
    {"back between reads",
     {STEADY(0), {S, S, -5 * S, -5 * S}, {2 * S, 2 * S, -5 * S, -5 * S}, {3 * S, 3 * S, -5 * S, -5 * S}},
     0},
    {"forward while it waits",
     {STEADY(0), {2 * MS, S, 0, 5 * S}, {3 * MS, S, 0, 5 * S}, {900 * MS, S, 5 * S, 5 * S}},
     0},
    {"back while it waits",
     {STEADY(0), {2 * MS, S, 0, -5 * S}, {3 * MS, S, 0, -5 * S}, {900 * MS, S, -5 * S, -5 * S}},
     0},
    {"there and back",
     {STEADY(0), {S, S, 100 * S, 100 * S}, {2 * S, 2 * S, 0, 0}, {3 * S, 3 * S, -100 * S, -100 * S}},
     0},
    {"stepped before the first",
     {{0, MS, 7 * S, 7 * S},
      {S, S, 7 * S, 7 * S},
      {2 * S, 2 * S, 7 * S, 7 * S},
      {3 * S, 3 * S, 7 * S, 7 * S}},
     0},
    {"less than a step",
     {STEADY(0), {S, S, MS / 2, MS / 2}, {2 * S, 2 * S, -MS / 2, -MS / 2}, {3 * S, 3 * S, 0, 0}},
     MS / 2},
    {"slowly away",
     {STEADY(0), {S, S, MS / 2, MS / 2}, {2 * S, 2 * S, MS, MS}, {3 * S, 3 * S, 3 * MS / 2, 3 * MS / 2}},
     MS / 2},
    {"a small step forward between reads",
     {STEADY(0),
      {S, S, 3 * MS / 2, 3 * MS / 2},
      {2 * S, 2 * S, 3 * MS / 2, 3 * MS / 2},
      {3 * S, 3 * S, 0, 0}},
     0},
    {"a small step back between reads",
     {STEADY(0), {S, S, -MS, -MS}, {2 * S, 2 * S, -MS, -MS}, {3 * S, 3 * S, -2 * MS, -2 * MS}},
     0},
    {"a small step while it waits",
     {STEADY(0), {2 * MS, S, 0, 5 * MS}, {3 * MS, S, 0, 5 * MS}, {900 * MS, S, 5 * MS, 5 * MS}},
     0},
    {"stamped by two cores",
     {STEADY(0), {5 * MS, 6 * MS, 0, 0}, {5 * MS - 900, 6 * MS, 0, 0}, STEADY(7 * MS)},
     900},
};

static void steps_are_taken_out(void) {
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dqi_stamps t = {0};
        int64_t last = 0;
        dq_case = cases[k].name;
        for (int i = 0; i < 4; i++) {
            const packet *p = &cases[k].in[i];
            dqi_stamps_set(&t, T0 + p->read + p->ahead_read, T0 + p->read);
            int64_t at = dqi_stamps_time(&t, T0 + p->came + p->ahead_came);
            DQ_CHECK(llabs(at - T0 - p->came) <= cases[k].off);
            DQ_CHECK(at >= last && at <= T0 + p->read);
            last = at;
        }
    }
}

// Whatever the wall clock does, times neither go back nor lie ahead of the session's clock.
static void any_steps_keep_the_order(void) {
    uint64_t x = 88172645463325252;
    dqi_stamps t = {0};
    int64_t now = T0, ahead = 0, last = 0;
    for (int i = 0; i < 100000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        int64_t came = now + (int64_t)(x % (uint64_t)(3 * MS)), before = ahead;
        now = came + (int64_t)(x >> 20) % (20 * MS);
        if (x >> 40 & 1) ahead = (int64_t)(x >> 41) % (200 * S) - 100 * S;
        dqi_stamps_set(&t, now + ahead, now);
        int64_t at = dqi_stamps_time(&t, came + (x >> 42 & 1 ? before : ahead));
        DQ_CHECK(at >= last && at <= now);
        last = at;
    }
}

// A session whose start lies elsewhere than the wall clock is one under which that was stepped.
static void packets_have_session_times(int64_t start_ns, uint32_t n_bufs) {
    rig r = rig_new(n_bufs, 256);
    r.s->core.conf.start_ns = start_ns;
    dqi_clock_start(r.s);
    dq_iface_conf c = rig_conf("udp", DQ_PROTO_UDP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    dq_queue *rx = rig_rx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_start(&r, &rx, 1);
    DQ_EQ(dq_start_ns(r.s), start_ns);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", rig_port(i));
    int64_t before = dq_now(r.s);
    for (int k = 0; k < 20; k++)
        DQ_EQ(send(fd, "x", 1, 0), 1);
    RIG_UNTIL(&r, r.n == 20);
    for (uint32_t k = 0; k < r.n; k++)
        DQ_CHECK(r.packets[k].ts > before - MS && r.packets[k].ts <= dq_now(r.s));
    for (int k = 0; k < 20; k++)
        DQ_EQ(send(fd, "x", 1, 0), 1);
    rig_close(&r); // what had come before the stop is taken in: the accounts add up
    close(fd);
}

static void sessions_keep_their_time(void) {
    packets_have_session_times(T0, 64);
    packets_have_session_times(2 * T0, 64);
    packets_have_session_times(T0, 8192); // joined datagrams
    packets_have_session_times(2 * T0, 8192);
}

// Time that passes between the reading of a start and the making of its session is not lost.
static void start_may_be_old(void) {
    rig r = rig_new(64, 256);
    r.s->core.conf.start_ns = T0;
    r.s->core.conf.mono_ns = dqi_mono_ns() - 10 * S;
    dqi_clock_start(r.s);
    DQ_EQ(dq_start_ns(r.s), T0);
    DQ_CHECK(dq_now(r.s) >= T0 + 10 * S);
    rig_close(&r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(steps_are_taken_out);
    DQ_RUN(any_steps_keep_the_order);
    DQ_RUN(sessions_keep_their_time);
    DQ_RUN(start_may_be_old);
    return dq_done();
}
