// socket_rig.h: a session with socket interfaces for the units: direct queues served by one waiter, or
// workers; every packet and event that arrives is written down. Peers that are not part of the engine are
// plain sockets.
#ifndef SOCKET_RIG_H
#define SOCKET_RIG_H

#include "dq.h"
#include "dqtest.h"
#include "pipeline/stages/dq_stages.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define RIG_QUEUES 16
#define RIG_EVENTS 64

typedef struct rig_packet {
    dq_queue *queue;
    uint32_t conn, len, burst; // burst: the ordinal of the burst that it came in
    int64_t ts;
    char peer[64];
    uint8_t *bytes;
} rig_packet;

typedef struct rig_event {
    int32_t kind, code;
    uint32_t conn;
} rig_event;

typedef struct rig {
    dq_session *s;
    dq_waiter *w;
    dq_region *region;
    dq_queue *queues[RIG_QUEUES];
    uint32_t n_queues, batch;
    int workers; // 1: queues are served by workers
    uint64_t timeout_us;
    bool hold; // received bursts are kept until rig_let_go
    dq_burst *held[256];
    uint32_t n_held;
    rig_packet *packets;
    uint32_t n, cap, n_bursts;
    rig_event events[RIG_EVENTS];
    uint32_t n_events;
    char error[512];
} rig;

static inline void rig_need(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "%s: %s (%s)\n", dq_case, what, strerror(errno));
    exit(1);
}

static inline rig rig_new(uint32_t n_bufs, uint32_t buf_size) {
    rig r = {.batch = 64};
    dq_diag d;
    dq_session_conf conf = {.rx_meta_buffers = 1024, .tx_meta_buffers = 64};
    dq_region_conf mem = {.name = "mem", .affinity = -1, .num_bufs = n_bufs, .buf_size = buf_size};
    rig_need(dq_session_new(&conf, &r.s, &d) == DQ_OK, "session");
    rig_need(dq_waiter_new(&r.w, &d) == DQ_OK, "waiter");
    rig_need(dq_region_add(r.s, &mem, &r.region, &d) == DQ_OK, "region");
    return r;
}

static inline dq_iface_conf rig_conf(const char *name, dq_proto proto, int server, const char *local,
                                     uint16_t local_port, const char *remote, uint16_t remote_port) {
    dq_iface_conf c = {.engine = "socket"};
    snprintf(c.name, sizeof c.name, "%s", name);
    c.socket = (dq_socket_conf){
        .proto = (int32_t)proto, .server = server, .local_port = local_port, .remote_port = remote_port};
    snprintf(c.socket.local_host, sizeof c.socket.local_host, "%s", local);
    snprintf(c.socket.remote_host, sizeof c.socket.remote_host, "%s", remote);
    return c;
}

static inline dq_iface *rig_iface(rig *r, const dq_iface_conf *c) {
    dq_iface *i = NULL;
    dq_diag d;
    rig_need(dq_iface_add(r->s, c, &i, &d) == DQ_OK, d.text);
    return i;
}

static inline dq_queue *rig_queue(rig *r, dq_iface *i, dq_dir dir) {
    dq_queue_conf c = {.dir = dir,
                       .id = r->n_queues,
                       .direct = !r->workers,
                       .core = -1,
                       .batch_size = r->batch,
                       .timeout_us = dir == DQ_RX ? r->timeout_us : 0,
                       .n_regions = 1,
                       .regions = {r->region}};
    snprintf(c.name, sizeof c.name, "q%u", r->n_queues);
    dq_queue *q = NULL;
    dq_diag d;
    rig_need(r->n_queues < RIG_QUEUES && dq_queue_add(i, &c, &q, &d) == DQ_OK, d.text);
    r->queues[r->n_queues++] = q;
    return q;
}

static inline dq_queue *rig_rx(rig *r, dq_iface *i) { return rig_queue(r, i, DQ_RX); }
static inline dq_queue *rig_tx(rig *r, dq_iface *i) { return rig_queue(r, i, DQ_TX); }

// Opens; the error's words are in r->error.
static inline int rig_open(rig *r) {
    dq_diag d = {{0}};
    int err = dq_session_open(r->s, &d);
    snprintf(r->error, sizeof r->error, "%s", d.text);
    return err;
}

// Taps every receive queue (transmit queues say so by their dir), adopts and starts.
static inline void rig_start(rig *r, dq_queue *const *rx, uint32_t n_rx) {
    dq_diag d = {{0}};
    for (uint32_t k = 0; k < n_rx; k++) {
        char name[16];
        dq_stage *tap;
        dq_pipe *pipe;
        snprintf(name, sizeof name, "tap%u", k);
        rig_need(dq_stage_tap(r->s, name, r->w, k, 1024, DQ_POLICY_WAIT, 1, &tap, &d) == DQ_OK, d.text);
        rig_need(dq_pipe_add(rx[k], &tap, 1, 0, &pipe, &d) == DQ_OK, d.text);
    }
    for (uint32_t k = 0; k < r->n_queues && !r->workers; k++)
        rig_need(dq_waiter_adopt(r->w, r->queues[k]) == DQ_OK, "adopt");
    rig_need(dq_session_start(r->s, &d) == DQ_OK, d.text);
}

// Starts; what rx receives goes back by tx.
static inline void rig_echo(rig *r, dq_queue *rx, dq_queue *tx, int policy) {
    dq_diag d;
    dq_stage *forward;
    dq_pipe *pipe;
    rig_need(dq_stage_forward(r->s, "back", tx, policy, &forward, &d) == DQ_OK, d.text);
    rig_need(dq_pipe_add(rx, &forward, 1, 0, &pipe, &d) == DQ_OK, d.text);
    rig_start(r, NULL, 0);
}

static inline void rig_listen(rig *r, dq_iface *i) {
    dq_diag d;
    rig_need(dq_iface_events(i, r->w, 99, &d) == DQ_OK, d.text);
}

static inline void rig_note_burst(rig *r, const dq_event *e) {
    const dq_view *v = &e->view;
    for (uint32_t k = 0; k < v->n; k++) {
        if (r->n == r->cap) {
            r->cap = r->cap ? 2 * r->cap : 256;
            r->packets = realloc(r->packets, r->cap * sizeof *r->packets);
            rig_need(r->packets != NULL, "memory");
        }
        rig_packet *p = &r->packets[r->n++];
        *p = (rig_packet){
            .queue = v->queue, .conn = v->conn, .len = v->len[0][k], .burst = r->n_bursts, .ts = v->ts[k]};
        p->bytes = dq_exact(v->base + v->off[0][k], p->len);
        dq_burst_peer(e->b, k, p->peer, sizeof p->peer);
    }
    r->n_bursts++;
    if (r->hold && r->n_held < 256)
        r->held[r->n_held++] = e->b;
    else
        dq_burst_unref(e->b);
}

static inline void rig_let_go(rig *r) {
    for (uint32_t k = 0; k < r->n_held; k++)
        dq_burst_unref(r->held[k]);
    r->n_held = 0;
    r->hold = false;
}

// Serves for at most ms; false: nothing came.
static inline bool rig_serve(rig *r, int ms) {
    dq_event ev[16];
    int n = dq_wait(r->w, ms * INT64_C(1000000), ev, 16);
    for (int k = 0; k < n; k++) {
        if (ev[k].kind == DQ_EV_BURST)
            rig_note_burst(r, &ev[k]);
        else if (r->n_events < RIG_EVENTS)
            r->events[r->n_events++] = (rig_event){ev[k].kind, ev[k].code, ev[k].conn};
    }
    return n > 0;
}

static inline int64_t rig_now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

// Serves until cond, for as long as a hang would take to be one.
#define RIG_UNTIL(r, cond)                                                                                   \
    do {                                                                                                     \
        int64_t rig_end = rig_now_ms() + 30000;                                                              \
        bool rig_so;                                                                                         \
        while (!(rig_so = (cond)) && rig_now_ms() < rig_end)                                                 \
            rig_serve(r, 5);                                                                                 \
        if (!rig_so) dq_failed(__FILE__, __LINE__, "never came true: " #cond);                               \
    } while (0)

// How many events of this kind came; *last: the last one.
static inline uint32_t rig_events(const rig *r, int kind, rig_event *last) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < r->n_events; k++) {
        if (r->events[k].kind != kind) continue;
        n++;
        if (last) *last = r->events[k];
    }
    return n;
}

// The bytes of packet `ordinal`, as rig_matches wants them.
static inline void rig_fill(uint8_t *p, uint32_t len, uint32_t ordinal) {
    for (uint32_t j = 0; j < len; j++)
        p[j] = (uint8_t)(ordinal + j * 7);
}

// A burst of n packets of len bytes, numbered from first on. The caller sends it.
static inline dq_burst *rig_burst(rig *r, dq_queue *q, uint32_t n, uint32_t len, uint32_t first) {
    dq_burst *b = NULL;
    dq_view v;
    RIG_UNTIL(r, dq_tx_alloc(q, n, &b) == DQ_OK);
    rig_need(b != NULL, "no burst to send");
    dq_burst_view(b, &v);
    for (uint32_t i = 0; i < n; i++)
        rig_fill(v.base + v.off[0][i], len, first + i);
    DQ_EQ(dq_burst_set_len(b, 0, -1, len), DQ_OK);
    return b;
}

static inline bool rig_matches(const rig_packet *p, uint32_t len, uint32_t ordinal) {
    if (p->len != len) return false;
    for (uint32_t j = 0; j < len; j++)
        if (p->bytes[j] != (uint8_t)(ordinal + j * 7)) return false;
    return true;
}

static inline void rig_send(rig *r, dq_queue *q, dq_burst *b) {
    int err;
    RIG_UNTIL(r, (err = dq_tx_send(q, b)) != DQ_NO_SPACE_AVAILABLE);
    DQ_EQ(err, DQ_OK);
}

static inline dq_line rig_line(const rig *r, const dq_queue *q) {
    static dq_line lines[64];
    uint32_t n = dq_ledger(r->s, lines, 64), k = 0;
    while (k < RIG_QUEUES && r->queues[k] != q)
        k++;
    for (uint32_t i = 0; i < n; i++)
        if ((lines[i].kind == DQ_LINE_RX || lines[i].kind == DQ_LINE_TX) && lines[i].queue_id == k)
            return lines[i];
    dq_failed(__FILE__, __LINE__, "no ledger line");
    return (dq_line){0};
}

static inline uint64_t rig_dropped(const dq_line *l) {
    uint64_t n = 0;
    for (int i = 0; i < DQ_REASONS; i++)
        n += l->dropped[i];
    return n;
}

// The port of the interface's own socket.
static inline uint16_t rig_port(dq_iface *i) {
    dq_conn_info info;
    DQ_EQ(dq_conn_read(i, 0, &info), DQ_OK);
    const char *colon = strrchr(info.local, ':');
    return colon ? (uint16_t)atoi(colon + 1) : 0;
}

// Stops, checks that every account adds up, closes, checks that no buffer is missing.
static inline void rig_close(rig *r) {
    rig_let_go(r);
    while (dq_session_stop(r->s, INT64_C(2000000000)) > 0)
        rig_serve(r, 0);
    dq_session_finish(r->s);
    while (rig_serve(r, 0)) {
    }
    dq_line lines[64];
    uint32_t n = dq_ledger(r->s, lines, 64);
    for (uint32_t i = 0; i < n; i++) {
        DQ_EQ(lines[i].in, lines[i].out + lines[i].held + rig_dropped(&lines[i]));
        DQ_EQ(lines[i].held, 0);
    }
    DQ_EQ(dq_session_close(r->s), 0);
    dq_waiter_free(r->w);
    for (uint32_t i = 0; i < r->n; i++)
        free(r->packets[i].bytes);
    free(r->packets);
}

// Closes a session that did not open.
static inline void rig_abandon(rig *r) {
    DQ_EQ(dq_session_close(r->s), 0);
    dq_waiter_free(r->w);
}

// Opening fails, and the error has these words in it.
static inline void rig_open_fails(rig *r, const char *name, const char *const *want, uint32_t n) {
    DQ_CHECK(rig_open(r) < 0);
    for (uint32_t k = 0; k < n; k++)
        if (!strstr(r->error, want[k])) {
            fprintf(stderr, "%s: \"%s\" is not in \"%s\"\n", name, want[k], r->error);
            dq_failed(__FILE__, __LINE__, name);
        }
    rig_abandon(r);
}

// A line of the session's report has these words in it.
static inline bool rig_reports(const rig *r, const char *words) {
    char line[512];
    for (uint32_t k = 0; dq_session_report(r->s, k, line, sizeof line); k++)
        if (strstr(line, words)) return true;
    return false;
}

// ---- peers: plain sockets ---------------------------------------------------------------------------------

static inline struct sockaddr_in6 peer_address(const char *host, uint16_t port, socklen_t *len) {
    struct sockaddr_in6 a6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};
    struct sockaddr_in a4 = {.sin_family = AF_INET, .sin_port = htons(port)};
    *len = sizeof a6;
    if (inet_pton(AF_INET, host, &a4.sin_addr) == 1) {
        memset(&a6, 0, sizeof a6);
        memcpy(&a6, &a4, sizeof a4);
        *len = sizeof a4;
    } else {
        rig_need(inet_pton(AF_INET6, host, &a6.sin6_addr) == 1, "address");
    }
    return a6;
}

// A bound socket (listening, for streams); *port: which.
static inline int peer_bind(int type, const char *host, uint16_t *port) {
    socklen_t len;
    struct sockaddr_in6 a = peer_address(host, *port, &len);
    int on = 1, fd = socket(a.sin6_family, type | SOCK_CLOEXEC, 0);
    rig_need(fd >= 0, "socket");
    if (type == SOCK_STREAM) setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    rig_need(bind(fd, (struct sockaddr *)&a, len) == 0, "bind");
    if (type == SOCK_STREAM) rig_need(listen(fd, 16) == 0, "listen");
    len = sizeof a;
    rig_need(getsockname(fd, (struct sockaddr *)&a, &len) == 0, "getsockname");
    *port = ntohs(a.sin6_port);
    return fd;
}

static inline int peer_connect(int type, const char *host, uint16_t port) {
    socklen_t len;
    struct sockaddr_in6 a = peer_address(host, port, &len);
    int on = 1, fd = socket(a.sin6_family, type | SOCK_CLOEXEC, 0);
    rig_need(fd >= 0, "socket");
    rig_need(connect(fd, (struct sockaddr *)&a, len) == 0, "connect");
    if (type == SOCK_STREAM) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return fd;
}

// "address:port" of a plain socket, as the engine writes it.
static inline void peer_name(int fd, char *text, size_t n) {
    struct sockaddr_in6 a;
    socklen_t len = sizeof a;
    char host[INET6_ADDRSTRLEN];
    rig_need(getsockname(fd, (struct sockaddr *)&a, &len) == 0, "getsockname");
    if (a.sin6_family == AF_INET6) {
        inet_ntop(AF_INET6, &a.sin6_addr, host, sizeof host);
        snprintf(text, n, "[%s]:%u", host, ntohs(a.sin6_port));
    } else {
        struct sockaddr_in a4;
        memcpy(&a4, &a, sizeof a4);
        inet_ntop(AF_INET, &a4.sin_addr, host, sizeof host);
        snprintf(text, n, "%s:%u", host, ntohs(a4.sin_port));
    }
}

// Serves r until fd is readable.
static inline void peer_wait(rig *r, int fd) {
    struct pollfd p = {.fd = fd, .events = POLLIN};
    RIG_UNTIL(r, poll(&p, 1, 0) > 0);
}

// Reads n bytes while r is served; how many came before the stream ended.
static inline size_t peer_read(rig *r, int fd, uint8_t *buf, size_t n) {
    size_t got = 0;
    while (got < n) {
        peer_wait(r, fd);
        ssize_t k = recv(fd, buf + got, n - got, MSG_DONTWAIT);
        if (k <= 0) break;
        got += (size_t)k;
    }
    return got;
}

// Writes n bytes while r is served.
static inline void peer_write(rig *r, int fd, const uint8_t *buf, size_t n) {
    for (size_t done = 0; done < n;) {
        ssize_t k = send(fd, buf + done, n - done, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (k > 0)
            done += (size_t)k;
        else if (errno == EAGAIN)
            rig_serve(r, 1);
        else
            rig_need(false, "send");
    }
}

static inline bool has_ipv6(void) {
    socklen_t len;
    struct sockaddr_in6 a = peer_address("::1", 0, &len);
    int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, len) == 0;
    if (fd >= 0) close(fd);
    return ok;
}

// A datagram to fd of the process's own, and whether the kernel stamped it when it came: it begins to, for
// all sockets, a while after the first one asked it to. *stamped: it has a stamp at all.
static inline bool rig_stamped(int out, int fd, bool *stamped) {
    char buf[8], ctl[64];
    struct iovec iov = {.iov_base = buf, .iov_len = sizeof buf};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = ctl, .msg_controllen = sizeof ctl};
    struct timespec before, at;
    DQ_EQ(send(out, "when", 4, 0), 4);
    usleep(1000);
    clock_gettime(CLOCK_REALTIME, &before);
    *stamped =
        recvmsg(fd, &m, 0) == 4 && CMSG_FIRSTHDR(&m) && CMSG_FIRSTHDR(&m)->cmsg_type == SCM_TIMESTAMPNS;
    if (!*stamped) return false;
    memcpy(&at, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof at);
    return at.tv_sec < before.tv_sec || (at.tv_sec == before.tv_sec && at.tv_nsec < before.tv_nsec);
}

// True when the kernel reports what it dropped and when datagrams came, from now on, as a socket that asks
// for that stays open until the process ends; an emulated one may not.
static inline bool rig_kernel_tells(void) {
    uint16_t port = 0;
    uint32_t info[16];
    socklen_t len = sizeof info;
    int on = 1, fd = peer_bind(SOCK_DGRAM, "127.0.0.1", &port),
        out = peer_connect(SOCK_DGRAM, "127.0.0.1", port);
    bool ok = getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) == 0 &&
              setsockopt(fd, SOL_SOCKET, SO_TIMESTAMPNS, &on, sizeof on) == 0;
    bool tells = ok, stamped = false;
    for (int64_t end = rig_now_ms() + 30000; tells && !stamped && rig_now_ms() < end;)
        stamped = rig_stamped(out, fd, &tells);
    close(out);
    if (!stamped) close(fd);
    if (!stamped) fprintf(stderr, "%s: left out, this kernel does not tell drops and times\n", dq_case);
    return stamped;
}

#endif
