// Messages in TCP streams: they come one by one however the stream is chopped, and go out framed.
#include "tcp_rig.h"

static const struct {
    const char *name;
    dq_socket_conf conf;
    uint32_t buf_size, max; // longest message sent
} framings[] = {
    {"fixed", {.framing = DQ_FRAMING_FIXED, .framing_bytes = 300}, 1000, 300},
    {"fixed, a whole buffer", {.framing = DQ_FRAMING_FIXED, .framing_bytes = 1000}, 1000, 1000},
    {"prefix 1", {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 1}, 300, 255},
    {"prefix 2, up to a whole buffer", {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 2}, 1500, 1500},
    {"prefix 4, little endian",
     {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 4, .framing_le = 1},
     4000,
     700},
    {"prefix 8, inclusive", {.framing = DQ_FRAMING_PREFIX, .framing_bytes = 8, .framing_incl = 1}, 1000, 900},
};

// The bytes of a message as they go over the wire; their number.
static uint32_t frame(const dq_socket_conf *f, const uint8_t *bytes, uint32_t len, uint8_t *out) {
    uint32_t w = f->framing == DQ_FRAMING_PREFIX ? f->framing_bytes : 0;
    uint64_t reply = len + (f->framing_incl ? w : 0);
    for (uint32_t k = 0; k < w; k++)
        out[f->framing_le ? k : w - 1 - k] = (uint8_t)(reply >> (8 * k));
    memcpy(out + w, bytes, len);
    return w + len;
}

static void receives_messages(void) {
    enum { MESSAGES = 500 };
    for (size_t t = 0; t < sizeof framings / sizeof *framings; t++) {
        const dq_socket_conf *f = &framings[t].conf;
        server s = tcp_server("127.0.0.1", 64, framings[t].buf_size, f);
        int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
        uint64_t seed = t;
        uint32_t lens[MESSAGES];
        uint8_t *wire = malloc(MESSAGES * (8 + 1500)), *bytes = noise(1500, t);
        size_t n = 0;
        for (uint32_t k = 0; k < MESSAGES; k++) {
            lens[k] =
                f->framing == DQ_FRAMING_FIXED ? f->framing_bytes : dq_below(&seed, framings[t].max + 1);
            bytes[0] = (uint8_t)k;
            n += frame(f, bytes, lens[k], wire + n);
        }
        for (size_t at = 0; at < n;) {
            size_t some = 1 + dq_below(&seed, 4000);
            if (some > n - at) some = n - at;
            peer_write(&s.r, fd, wire + at, some);
            at += some;
            if (dq_below(&seed, 3) == 0) rig_serve(&s.r, 0);
        }
        RIG_UNTIL(&s.r, s.r.n == MESSAGES);
        for (uint32_t k = 0; k < s.r.n; k++) {
            bytes[0] = (uint8_t)k;
            DQ_EQ(s.r.packets[k].len, lens[k]);
            if (s.r.packets[k].len == lens[k]) DQ_EQ_BYTES(s.r.packets[k].bytes, bytes, lens[k]);
            DQ_CHECK(s.r.packets[k].peer[0] != 0);
        }
        free(wire);
        free(bytes);
        close(fd);
        DQ_EQ(wait_disconnect(&s.r, 1).code, DQ_OK);
        dq_line l = rig_line(&s.r, s.rx);
        DQ_EQ(rig_dropped(&l), 0);
        rig_close(&s.r);
    }
}

// Messages stay readable while others that lie in the same buffer come and go.
static void messages_are_held_with_their_buffer(void) {
    server s = tcp_server("127.0.0.1", 8, 1000, &framings[3].conf);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    uint8_t bytes[100], wire[102];
    memset(bytes, 'a', sizeof bytes);
    s.r.hold = true;
    for (uint32_t k = 0; k < 30; k++) {
        bytes[0] = (uint8_t)k;
        peer_write(&s.r, fd, wire, frame(&framings[3].conf, bytes, 100, wire));
        if (k % 10 == 9) rig_serve(&s.r, 5);
    }
    // Eight buffers hold some of them; the rest stays with the kernel until buffers come back.
    rig_serve(&s.r, 5);
    rig_let_go(&s.r);
    RIG_UNTIL(&s.r, s.r.n == 30);
    for (uint32_t k = 0; k < s.r.n; k++)
        DQ_EQ(s.r.packets[k].bytes[0], k);
    close(fd);
    rig_close(&s.r);
}

static void bad_framing_ends_the_connection(void) {
    static const struct {
        const char *name;
        uint8_t bytes[16];
        uint32_t n, whole;
        int code;
    } cases[] = {
        {"too long", {0, 1, 'a', 0xff, 0xff, 'b'}, 6, 1, DQ_ESYS - EBADMSG},
        {"ends in a message", {0, 1, 'a', 0, 5, 'b'}, 6, 1, DQ_OK},
        {"ends in a prefix", {0, 1, 'a', 0}, 4, 1, DQ_OK},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        server s = tcp_server("127.0.0.1", 64, 1500, &framings[3].conf);
        int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
        wait_connect(&s.r, 1);
        peer_write(&s.r, fd, cases[k].bytes, cases[k].n);
        shutdown(fd, SHUT_WR);
        rig_event e = wait_disconnect(&s.r, 1);
        RIG_UNTIL(&s.r, s.r.n >= cases[k].whole);
        if (e.code != cases[k].code || s.r.n != cases[k].whole) dq_failed(__FILE__, __LINE__, cases[k].name);
        dq_line l = rig_line(&s.r, s.rx);
        DQ_EQ(l.dropped[DQ_DROP_BAD_FRAMING], 1);
        DQ_EQ(l.in, cases[k].whole + 1);
        close(fd);
        rig_close(&s.r);
    }
}

static void sends_messages(void) {
    for (size_t t = 0; t < sizeof framings / sizeof *framings; t++) {
        const dq_socket_conf *f = &framings[t].conf;
        server s = tcp_server("127.0.0.1", 256, framings[t].buf_size, f);
        int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
        wait_connect(&s.r, 1);
        uint32_t len = framings[t].max, n = 50;
        rig_send(&s.r, s.tx, rig_burst(&s.r, s.tx, n, len, 0));
        for (uint32_t k = 0; k < n; k++) {
            uint8_t bytes[1600], want[1600], got[1600];
            rig_fill(bytes, len, k);
            uint32_t size = frame(f, bytes, len, want);
            DQ_EQ(peer_read(&s.r, fd, got, size), size);
            DQ_EQ_BYTES(got, want, size);
        }
        RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
        DQ_EQ(rig_line(&s.r, s.tx).out_bytes, (uint64_t)n * len);
        close(fd);
        rig_close(&s.r);
    }
}

static void what_cannot_be_framed_is_counted(void) {
    server s = tcp_server("127.0.0.1", 64, 1000, &framings[0].conf);
    int fd = peer_connect(SOCK_STREAM, "127.0.0.1", s.port);
    wait_connect(&s.r, 1);
    dq_burst *b = rig_burst(&s.r, s.tx, 4, 300, 0);
    DQ_EQ(dq_burst_set_len(b, 0, 0, 299), DQ_OK);
    DQ_EQ(dq_burst_set_len(b, 0, 3, 301), DQ_OK);
    rig_send(&s.r, s.tx, b);
    uint8_t got[600];
    DQ_EQ(peer_read(&s.r, fd, got, 600), 600);
    RIG_UNTIL(&s.r, rig_line(&s.r, s.tx).held == 0);
    DQ_EQ(rig_line(&s.r, s.tx).dropped[DQ_DROP_SEND_ERROR], 2);
    close(fd);
    rig_close(&s.r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(receives_messages);
    DQ_RUN(messages_are_held_with_their_buffer);
    DQ_RUN(bad_framing_ends_the_connection);
    DQ_RUN(sends_messages);
    DQ_RUN(what_cannot_be_framed_is_counted);
    return dq_done();
}
