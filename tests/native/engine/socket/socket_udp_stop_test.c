// UDP at the stop and at a flush: what had come by then is delivered or counted, and nothing else.
#include "engine/socket/socket_state.h"
#include "udp_rig.h"

#include <linux/sock_diag.h>
#include <pthread.h>
#include <stdatomic.h>

// Bytes of memory that datagrams occupy in the server's socket.
static uint32_t lying(const server *s) {
    uint32_t info[SK_MEMINFO_VARS] = {0};
    socklen_t len = sizeof info;
    int fd = ((dqi_sock *)s->i->engine)->base[0]->fd;
    rig_need(getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0, "SO_MEMINFO");
    return info[SK_MEMINFO_RMEM_ALLOC];
}

static void wait_lying(const server *s, uint32_t least) {
    int64_t end = rig_now_ms() + 30000;
    while (lying(s) < least && rig_now_ms() < end)
        usleep(1000);
    DQ_CHECK(lying(s) >= least);
}

// Sends a text n times to a server that isn't served, and waits until all of them lie in its socket: a busy
// kernel hands them over later.
static void send_texts(const server *s, int fd, const char *text, uint32_t n) {
    send_text(fd, text);
    wait_lying(s, 1);
    uint32_t one = lying(s);
    for (uint32_t k = 1; k < n; k++)
        send_text(fd, text);
    wait_lying(s, n * one);
}

static void stop_takes_in_what_had_come(void) {
    if (!rig_kernel_tells()) return;
    server s = udp_server("127.0.0.1", 512, 256);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    send_texts(&s, fd, "waiting", 300);
    while (dq_session_stop(s.r.s, INT64_C(30000000000)) >
           0) // as long as it takes: reading has no core now and then
        rig_serve(&s.r, 0);
    send_text(fd, "too late");
    while (rig_serve(&s.r, 0)) {
    }
    DQ_EQ(s.r.n, 300);
    DQ_EQ(rig_line(&s.r, s.rx).in, 300);
    close(fd);
    rig_close(&s.r);
}

typedef struct flood {
    int fd;
    _Atomic bool quit;
    uint32_t n;
} flood;

static void *send_numbers(void *arg) {
    flood *f = arg;
    bool last;
    do {
        last = atomic_load(&f->quit); // one more then, surely too late
        f->n += send(f->fd, &f->n, sizeof f->n, 0) > 0;
    } while (!last);
    return NULL;
}

// A peer sends as fast as it can, through the stop and the finish: what it got in by the stop is a prefix,
// but for what the kernel had no room for, which it counted; nothing else is in the account.
static void a_flood_ends_with_the_stop(bool joined, int workers) {
    if (!rig_kernel_tells()) return;
    server s = {.r = rig_new(joined ? 4096 : 512, joined ? 1500 : 256)};
    s.r.workers = workers;
    dq_iface_conf c = rig_conf("flood", DQ_PROTO_UDP, 1, "127.0.0.1", 0, "", 0);
    s.i = rig_iface(&s.r, &c);
    s.rx = rig_rx(&s.r, s.i);
    if (!joined) rig_tx(&s.r, s.i); // shares the region
    rig_need(rig_open(&s.r) == DQ_OK, s.r.error);
    rig_start(&s.r, &s.rx, 1);
    flood f = {.fd = peer_connect(SOCK_DGRAM, "127.0.0.1", rig_port(s.i))};
    pthread_t thread;
    rig_need(pthread_create(&thread, NULL, send_numbers, &f) == 0, "thread");
    RIG_UNTIL(&s.r, s.r.n >= 1000);
    while (dq_session_stop(s.r.s, 1000000000) > 0)
        rig_serve(&s.r, 0);
    uint64_t dropped = rig_line(&s.r, s.rx).extra[DQ_EXTRA_KERNEL_DROPPED];
    while (rig_serve(&s.r, 0)) {
    }
    dq_session_finish(s.r.s);
    atomic_store(&f.quit, true);
    pthread_join(thread, NULL);
    dq_line l = rig_line(&s.r, s.rx);
    DQ_EQ(l.in, s.r.n);
    DQ_EQ(rig_dropped(&l), 0);
    DQ_EQ(l.extra[DQ_EXTRA_KERNEL_DROPPED], dropped);
    DQ_CHECK(s.r.n < f.n);
    uint32_t last = 0, gaps = 0;
    for (uint32_t k = 0; k < s.r.n; k++) {
        uint32_t number;
        memcpy(&number, s.r.packets[k].bytes, sizeof number);
        DQ_CHECK(k == 0 || number > last);
        gaps += number - last - (k > 0);
        last = number;
        if (k > 0) DQ_CHECK(s.r.packets[k].ts <= dq_session_quiesced(s.r.s));
    }
    DQ_EQ(gaps, dropped);
    close(f.fd);
    rig_close(&s.r);
}

static void a_flood_direct(void) { a_flood_ends_with_the_stop(false, 0); }
static void a_flood_with_workers(void) { a_flood_ends_with_the_stop(false, 1); }

static void a_flood_joined(void) { a_flood_ends_with_the_stop(true, 0); }
static void a_flood_joined_with_workers(void) { a_flood_ends_with_the_stop(true, 1); }

// What had come by the stop and found no buffer is counted.
static void stop_counts_what_the_kernel_keeps(void) {
    if (!rig_kernel_tells()) return;
    server s = udp_server("127.0.0.1", 16, 256);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    s.r.hold = true;
    send_texts(&s, fd, "waiting", 1000);
    RIG_UNTIL(&s.r, s.r.n == 16);
    while (dq_session_stop(s.r.s, 0) > 0)
        rig_serve(&s.r, 0);
    dq_session_finish(s.r.s);
    dq_line line = rig_line(&s.r, s.rx);
    DQ_EQ(line.in, 1000);
    DQ_EQ(line.in_bytes, 1000 * strlen("waiting"));
    DQ_EQ(line.dropped[DQ_DROP_STOPPED], 1000 - s.r.n);
    DQ_EQ(line.extra[DQ_EXTRA_KERNEL_DROPPED], 0);
    rig_let_go(&s.r);
    close(fd);
    rig_close(&s.r);
}

static void flush_throws_away(void) {
    server s = udp_server("127.0.0.1", 512, 256);
    int fd = peer_connect(SOCK_DGRAM, "127.0.0.1", s.port);
    for (int k = 0; k < 200; k++)
        send_text(fd, "old");
    DQ_EQ(dq_rx_flush(s.rx), 200);
    DQ_EQ(rig_line(&s.r, s.rx).dropped[DQ_DROP_FLUSHED], 200);
    send_text(fd, "new");
    RIG_UNTIL(&s.r, s.r.n == 1);
    DQ_EQ_BYTES(s.r.packets[0].bytes, "new", 3);
    close(fd);
    rig_close(&s.r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(stop_takes_in_what_had_come);
    DQ_RUN(a_flood_direct);
    DQ_RUN(a_flood_with_workers);
    DQ_RUN(a_flood_joined);
    DQ_RUN(a_flood_joined_with_workers);
    DQ_RUN(stop_counts_what_the_kernel_keeps);
    DQ_RUN(flush_throws_away);
    return dq_done();
}
