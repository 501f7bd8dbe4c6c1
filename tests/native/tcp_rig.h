// tcp_rig.h: a TCP server in a session, and what its tests expect of streams and connections.
#ifndef TCP_RIG_H
#define TCP_RIG_H

#include "socket_rig.h"

typedef struct server {
    rig r;
    dq_iface *i;
    dq_queue *rx, *tx;
    uint16_t port;
} server;

// Opens and starts s with one receive and one transmit queue.
static inline void begin(server *s, const dq_iface_conf *c) {
    s->i = rig_iface(&s->r, c);
    s->rx = rig_rx(&s->r, s->i);
    s->tx = rig_tx(&s->r, s->i);
    rig_need(rig_open(&s->r) == DQ_OK, s->r.error);
    rig_listen(&s->r, s->i);
    rig_start(&s->r, &s->rx, 1);
    s->port = rig_port(s->i);
}

// A server with one queue each way; framing as in f (NULL: none).
static inline server tcp_server(const char *host, uint32_t n_bufs, uint32_t buf_size,
                                const dq_socket_conf *f) {
    server s = {.r = rig_new(n_bufs, buf_size)};
    dq_iface_conf c = rig_conf("tcp_server", DQ_PROTO_TCP, 1, host, 0, "", 0);
    if (f) {
        c.socket.framing = f->framing;
        c.socket.framing_bytes = f->framing_bytes;
        c.socket.framing_le = f->framing_le;
        c.socket.framing_incl = f->framing_incl;
    }
    begin(&s, &c);
    return s;
}

// The bytes that came of a connection; of 0: of all.
static inline uint64_t bytes_of(const rig *r, uint32_t conn) {
    uint64_t n = 0;
    for (uint32_t k = 0; k < r->n; k++)
        if (conn == 0 || r->packets[k].conn == conn) n += r->packets[k].len;
    return n;
}

// Compares the bytes of a connection's packets, one after the other, with want.
static inline void expect_stream(const rig *r, uint32_t conn, const uint8_t *want, uint64_t n) {
    uint64_t at = 0;
    for (uint32_t k = 0; k < r->n; k++) {
        const rig_packet *p = &r->packets[k];
        if (conn != 0 && p->conn != conn) continue;
        DQ_CHECK(at + p->len <= n);
        if (at + p->len <= n) DQ_EQ_BYTES(p->bytes, want + at, p->len);
        at += p->len;
    }
    DQ_EQ(at, n);
}

// n random bytes of a seed; free() them.
static inline uint8_t *noise(size_t n, uint64_t seed) {
    uint8_t *p = malloc(n);
    rig_need(p != NULL, "memory");
    for (size_t k = 0; k < n; k++)
        p[k] = (uint8_t)dq_rand(&seed);
    return p;
}

// Serves r until n connections in all were made; the last one's id.
static inline uint32_t wait_connect(rig *r, uint32_t n) {
    rig_event e = {0};
    RIG_UNTIL(r, rig_events(r, DQ_EV_CONNECT, &e) == n);
    return e.conn;
}

// Serves r until n connections in all have ended; the last one's event.
static inline rig_event wait_disconnect(rig *r, uint32_t n) {
    rig_event e = {0};
    RIG_UNTIL(r, rig_events(r, DQ_EV_DISCONNECT, &e) == n);
    return e;
}

// Closes a plain socket with a reset.
static inline void reset(int fd) {
    struct linger l = {.l_onoff = 1};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &l, sizeof l);
    close(fd);
}

// Sends bursts of n packets of len bytes to conn until it is refused because its peer doesn't read; packets
// taken.
static inline uint32_t send_until_refused(server *s, uint32_t conn, uint32_t n, uint32_t len) {
    uint32_t taken = 0;
    for (int64_t end = rig_now_ms() + 30000; rig_now_ms() < end;) {
        dq_burst *b = rig_burst(&s->r, s->tx, n, len, taken);
        DQ_EQ(dq_burst_redirect(b, conn, &b), DQ_OK);
        int err = dq_tx_send(s->tx, b);
        if (err == DQ_OK) taken += n;
        rig_serve(&s->r, 0);
        if (err == DQ_OK) continue;
        DQ_EQ(err, DQ_NO_SPACE_AVAILABLE);
        dq_burst_unref(b);
        if (rig_line(&s->r, s->tx).extra[DQ_EXTRA_REFUSED] > 0) return taken;
    }
    dq_failed(__FILE__, __LINE__, "never refused");
    return taken;
}

// A server whose received bursts go back to their own connections.
static inline server echo_server(int workers) {
    server s = {.r = rig_new(256, 500)};
    s.r.workers = workers;
    dq_iface_conf c = rig_conf("echo", DQ_PROTO_TCP, 1, "127.0.0.1", 0, "", 0);
    s.i = rig_iface(&s.r, &c);
    s.rx = rig_rx(&s.r, s.i);
    s.tx = rig_tx(&s.r, s.i);
    rig_need(rig_open(&s.r) == DQ_OK, s.r.error);
    rig_echo(&s.r, s.rx, s.tx, DQ_POLICY_WAIT);
    return s;
}

#endif
