// UDP in runs that the kernel cuts for a transmit queue (UDP_SEGMENT), read with plain sockets.
#include "pipeline/queue.h"
#include "udp_rig.h"

// A client with one transmit queue, and the plain socket that it sends to.
typedef struct client {
    rig r;
    dq_iface *i;
    dq_queue *tx;
    int fd;
} client;

static client udp_client(uint32_t n_bufs, uint32_t buf_size, uint32_t batch) {
    client c = {.r = rig_new(n_bufs, buf_size)};
    uint16_t port = 0;
    int big = 32 << 20;
    c.fd = peer_bind(SOCK_DGRAM, "127.0.0.1", &port);
    if (setsockopt(c.fd, SOL_SOCKET, SO_RCVBUFFORCE, &big, sizeof big) != 0)
        dq_lack("root", "datagrams wait in a socket buffer that is larger than the system's limit");
    dq_iface_conf conf = rig_conf("client", DQ_PROTO_UDP, 0, "", 0, "127.0.0.1", port);
    c.r.batch = batch;
    c.i = rig_iface(&c.r, &conf);
    c.tx = rig_tx(&c.r, c.i);
    rig_need(rig_open(&c.r) == DQ_OK, c.r.error);
    rig_start(&c.r, NULL, 0);
    return c;
}

// Reads the datagrams that a burst of these lengths became.
static void expect_burst(client *c, const uint32_t *lens, uint32_t n) {
    static uint8_t bytes[65536];
    for (uint32_t k = 0; k < n; k++) {
        peer_wait(&c->r, c->fd);
        ssize_t got = recv(c->fd, bytes, sizeof bytes, MSG_DONTWAIT);
        rig_packet p = {.len = (uint32_t)got, .bytes = bytes};
        DQ_EQ(got, lens[k]);
        DQ_CHECK(rig_matches(&p, lens[k], k));
    }
}

static void send_lengths(client *c, const uint32_t *lens, uint32_t n) {
    dq_burst *b = rig_burst(&c->r, c->tx, n, 0, 0);
    dq_view v;
    dq_burst_view(b, &v);
    for (uint32_t k = 0; k < n; k++) {
        rig_fill(v.base + v.off[0][k], lens[k], k);
        DQ_EQ(dq_burst_set_len(b, 0, k, lens[k]), DQ_OK);
    }
    rig_send(&c->r, c->tx, b);
}

static void each_packet_is_a_datagram(void) {
    static const struct {
        const char *name;
        uint32_t n, a, b, every; // every so many-th is b bytes long, the others a
    } cases[] = {{"equal", 200, 1000, 1000, 1},
                 {"shorter now and then", 200, 1000, 10, 7},
                 {"longer now and then", 200, 10, 1000, 7},
                 {"alternating", 200, 400, 300, 2},
                 {"empty now and then", 200, 100, 0, 5},
                 {"all empty", 70, 0, 0, 1},
                 {"one byte", 256, 1, 1, 1},
                 {"long", 20, 40000, 20000, 3},
                 {"longest", 5, 65507, 65507, 1},
                 {"two in one", 9, 32753, 32753, 1},
                 {"just not two", 9, 32754, 32754, 1}};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        client c = udp_client(256, 65507, 256);
        uint32_t lens[256];
        uint64_t bytes = 0;
        for (uint32_t j = 0; j < cases[k].n; j++)
            bytes += lens[j] = j % cases[k].every == cases[k].every - 1 ? cases[k].b : cases[k].a;
        send_lengths(&c, lens, cases[k].n);
        expect_burst(&c, lens, cases[k].n);
        dq_line l = rig_line(&c.r, c.tx);
        DQ_EQ(l.out, cases[k].n);
        DQ_EQ(l.out_bytes, bytes);
        DQ_EQ(rig_dropped(&l), 0);
        close(c.fd);
        rig_close(&c.r);
    }
}

// Sends n packets of a template whose first two bytes count up, and reads them.
static void transmit_some(client *c, uint8_t byte, uint32_t len, uint32_t n) {
    uint8_t bytes[1000], got[1000];
    dq_vary count = {.field = {.bit_width = 16}, .step = 1, .max = UINT16_MAX};
    dq_template *t = NULL;
    dq_diag d;
    memset(bytes, byte, len);
    rig_need(dq_template_new(bytes, len, &count, 1, 0, 1, &t, &d) == DQ_OK, d.text);
    DQ_EQ(dq_tx_transmit(c->tx, t, n), DQ_OK);
    for (uint32_t k = 0; k < n; k++) {
        peer_wait(&c->r, c->fd);
        DQ_EQ(recv(c->fd, got, sizeof got, MSG_DONTWAIT), len);
        bytes[0] = (uint8_t)(k >> 8);
        bytes[1] = (uint8_t)k;
        DQ_EQ_BYTES(got, bytes, len);
    }
    DQ_EQ(dq_tx_transmit(c->tx, NULL, 0), DQ_OK);
    dq_template_unref(t);
}

// Buffers that hold a template already get its varied fields alone; packets made by hand in between overwrite
// it, and another template does.
static void templates_come_out_whole(void) {
    client c = udp_client(128, 1000, 64);
    uint32_t lens[64];
    for (uint32_t k = 0; k < 64; k++)
        lens[k] = 900 + k;
    for (int round = 0; round < 3; round++) {
        transmit_some(&c, 0xaa, 700, 500);
        send_lengths(&c, lens, 64);
        expect_burst(&c, lens, 64);
        transmit_some(&c, 0xbb, 1000, 300);
        transmit_some(&c, 0xcc, 1000, 1);
    }
    close(c.fd);
    rig_close(&c.r);
}

// Packets of a template lie one behind the other where their buffers are neighbours. While it is sent, bursts
// of all sizes are made by hand, kept for a while and sent or thrown away, so that the buffers come in every
// order: each packet is whole all the same, and no other's.
static void templates_share_buffers_with_others(void) {
    enum { BUFS = 128, LEN = 300, OTHER = 301, N = 30000, KEPT = 3 };
    client c = udp_client(BUFS, 512, 64);
    dq_burst *kept[KEPT] = {0};
    uint8_t body[LEN], got[1000];
    dq_vary count = {.field = {.bit_width = 32}, .step = 1, .max = UINT32_MAX};
    dq_template *t = NULL;
    dq_diag d;
    dq_view v;
    for (uint32_t k = 0; k < LEN; k++)
        body[k] = (uint8_t)(k * 7 + 1);
    rig_need(dq_template_new(body, LEN, &count, 1, 0, 1, &t, &d) == DQ_OK, d.text);
    DQ_EQ(dq_tx_transmit(c.tx, t, N), DQ_OK);
    uint32_t next = 0, others = 0, sent = 0, random = 1;
    for (uint32_t round = 0; next < N || others < sent; round++) {
        for (ssize_t n; (n = recv(c.fd, got, sizeof got, MSG_DONTWAIT)) >= 0;) {
            if (n == OTHER) {
                others++;
                DQ_EQ(got[0], 0xee);
                DQ_EQ(got[OTHER - 1], 0xee);
                continue;
            }
            for (int k = 0; k < 4; k++)
                body[k] = (uint8_t)(next >> (24 - 8 * k));
            DQ_EQ(n, LEN);
            DQ_EQ_BYTES(got, body, LEN);
            next++;
        }
        random = random * 1664525 + 1013904223;
        uint32_t at = random >> 24, n = 1 + (random >> 16) % 60;
        dq_burst **place = &kept[at % KEPT], *b;
        if (*place && at & 64) {
            dq_burst_view(*place, &v);
            sent += v.n;
            rig_send(&c.r, c.tx, *place);
        } else {
            dq_burst_unref(*place);
        }
        *place = NULL;
        if (round % 3 != 2 && dq_tx_alloc(c.tx, n, &b) == DQ_OK) {
            dq_burst_view(*place = b, &v);
            for (uint32_t k = 0; k < n; k++)
                memset(v.base + v.off[0][k], 0xee, OTHER);
            DQ_EQ(dq_burst_set_len(b, 0, -1, OTHER), DQ_OK);
        }
        rig_serve(&c.r, 0);
    }
    DQ_EQ(next, N);
    for (int k = 0; k < KEPT; k++)
        dq_burst_unref(kept[k]);
    dq_template_unref(t);
    close(c.fd);
    rig_close(&c.r);
}

// The buffers of a queue that has its region alone are taken one behind the other: what a template writes
// there is one piece of memory.
static void buffers_are_neighbours(void) {
    client c = udp_client(128, 512, 64);
    dq_region_info region;
    dq_burst *b = NULL;
    dq_view v;
    dq_region_read(c.tx->conf.regions[0], &region);
    for (int round = 0; round < 3; round++) {
        rig_need(dq_tx_alloc(c.tx, 64, &b) == DQ_OK, "no buffers");
        dq_burst_view(b, &v);
        for (uint32_t k = 1; k < v.n; k++)
            DQ_EQ(v.off[0][k], v.off[0][0] + (uint64_t)k * region.stride);
        dq_burst_unref(b);
    }
    close(c.fd);
    rig_close(&c.r);
}

// A socket that computes no checksums can't cut: each packet is sent alone, none is lost.
static void a_refused_run_goes_one_by_one(void) {
    client c = udp_client(256, 1000, 64);
    int on = 1;
    uint32_t lens[64];
    for (uint32_t k = 0; k < 64; k++)
        lens[k] = k < 32 ? 500 : 900;
    DQ_EQ(dq_conn_setsockopt(c.i, 0, SOL_SOCKET, SO_NO_CHECK, &on, sizeof on), DQ_OK);
    for (int round = 0; round < 3; round++) {
        send_lengths(&c, lens, 64);
        expect_burst(&c, lens, 64);
    }
    dq_line l = rig_line(&c.r, c.tx);
    DQ_EQ(l.out, 3 * 64);
    DQ_EQ(rig_dropped(&l), 0);
    while (dq_session_stop(c.r.s, 0) > 0)
        rig_serve(&c.r, 0);
    DQ_CHECK(rig_reports(&c.r, "one by one"));
    close(c.fd);
    rig_close(&c.r);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    need_runs();
    DQ_RUN(each_packet_is_a_datagram);
    DQ_RUN(templates_come_out_whole);
    DQ_RUN(templates_share_buffers_with_others);
    DQ_RUN(buffers_are_neighbours);
    DQ_RUN(a_refused_run_goes_one_by_one);
    return dq_done();
}
