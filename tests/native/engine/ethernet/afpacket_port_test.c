// afpacket_port_test.c: AF_PACKET over a pair of virtual Ethernet devices in a network namespace of the
// test's own, polled by the test itself.
#include "core/burst.h"
#include "core/clock.h"
#include "core/region.h"
#include "dqtest.h"
#include "packet/packet.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { BATCH = 64 };

typedef struct rig {
    dq_session *s;
    dq_region *out, *in;
    dq_queue *tx, *rx;
} rig;

static void must(int err, const dq_diag *d) {
    if (err == DQ_OK) return;
    fprintf(stderr, "set-up: %s: %s\n", dq_err_name(err), d->text);
    exit(1);
}

static dq_queue *add_queue(dq_session *s, const char *link, dq_dir dir, dq_region *r, dq_region *joined) {
    dq_diag d = {{0}};
    dq_iface_conf ic = {.engine = "xdp", .joined = joined};
    dq_queue_conf qc = {
        .name = "q", .dir = dir, .direct = 1, .batch_size = BATCH, .n_regions = 1, .regions = {r}};
    dq_iface *i;
    dq_queue *q;
    snprintf(ic.name, sizeof ic.name, "%s", link);
    snprintf(ic.address, sizeof ic.address, "%s", link);
    must(dq_iface_add(s, &ic, &i, &d), &d);
    must(dq_queue_add(i, &qc, &q, &d), &d);
    return q;
}

// Opens the rig; long_bufs: buffers for joined frames, 0: these are dropped.
static rig rig_with(uint32_t long_bufs) {
    rig r = {0};
    dq_region *joined = NULL;
    dq_diag d = {{0}};
    dq_session_conf sc = {.rx_meta_buffers = 64, .tx_meta_buffers = 64};
    dq_region_conf rc = {.name = "out", .affinity = -1, .num_bufs = 1024, .buf_size = 1600};
    must(dq_session_new(&sc, &r.s, &d), &d);
    must(dq_region_add(r.s, &rc, &r.out, &d), &d);
    snprintf(rc.name, sizeof rc.name, "in");
    must(dq_region_add(r.s, &rc, &r.in, &d), &d);
    if (long_bufs > 0) {
        rc = (dq_region_conf){.name = "joined", .affinity = -1, .num_bufs = long_bufs, .buf_size = 262144};
        must(dq_region_add(r.s, &rc, &joined, &d), &d);
    }
    r.tx = add_queue(r.s, "left", DQ_TX, r.out, NULL);
    r.rx = add_queue(r.s, "right", DQ_RX, r.in, joined);
    must(dq_session_open(r.s, &d), &d);
    must(dq_session_start(r.s, &d), &d);
    return r;
}

static rig rig_open(void) { return rig_with(0); }

static dq_line port_line(const rig *r) {
    dq_line lines[8];
    uint32_t n = dq_ledger(r->s, lines, 8);
    for (uint32_t k = 0; k < n && k < 8; k++)
        if (lines[k].kind == DQ_LINE_WIRE) return lines[k];
    dq_failed(__FILE__, __LINE__, "no line of the port");
    return lines[0];
}

static void rig_close(rig *r) { DQ_EQ(dq_session_close(r->s), 0); }

// A frame of len bytes with a number, of a type that nothing takes.
static void make(uint8_t *p, uint32_t len, uint32_t seq) {
    memcpy(p, "\2\0\0\0\0\2\2\0\0\0\0\1\x88\xb5", 14);
    memcpy(p + 14, &seq, sizeof seq);
    for (uint32_t i = 18; i < len; i++)
        p[i] = (uint8_t)(seq + i);
}

static uint32_t length_of(uint32_t seq) { return 60 + seq * 37 % 1455; }

static void send_frames(rig *r, uint32_t first, uint32_t n) {
    dq_burst *b;
    DQ_EQ(dq_tx_alloc(r->tx, n, &b), DQ_OK);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t len = length_of(first + i);
        dq_burst_set_len(b, 0, i, len);
        make(r->s->core.base + b->off[0][i], len, first + i);
    }
    DQ_EQ(dq_tx_send(r->tx, b), DQ_OK);
    for (int k = 0; k < 1000000 && dqi_gauge_get(&r->tx->held) > 0; k++)
        dqi_tx_poll(r->tx);
    DQ_EQ(dqi_gauge_get(&r->tx->held), 0);
}

// Takes at least n frames, or those that come until a second without any; *next: the number of the next one.
static uint32_t take_frames(rig *r, uint32_t n, uint32_t *next) {
    const int64_t patience = 1000000000;
    int64_t last = dqi_mono_ns();
    uint32_t got = 0;
    while (got < n && dqi_mono_ns() < last + patience) {
        dq_burst *b = dqi_burst_get(r->rx->bursts);
        got += (uint32_t)r->rx->iface->ops->rx(r->rx, &b, BATCH);
        if (b->n > 0) last = dqi_mono_ns();
        for (uint32_t i = 0; i < b->n; i++, ++*next) {
            uint8_t want[1600];
            make(want, length_of(*next), *next);
            DQ_EQ(b->len[0][i], length_of(*next));
            DQ_EQ_BYTES(r->s->core.base + b->off[0][i], want, b->len[0][i]);
            DQ_CHECK(b->ts[i] > r->s->core.start_ns && b->ts[i] <= dq_now(r->s));
        }
        dqi_add(&r->rx->c.out, b->n);
        dq_burst_unref(b);
    }
    return got;
}

// More frames than the ring has places, in order, byte for byte.
static void round_the_ring(void) {
    rig r = rig_open();
    uint32_t next = 0;
    for (uint32_t k = 0; k < 12000; k += BATCH) {
        send_frames(&r, k, BATCH);
        DQ_EQ(take_frames(&r, BATCH, &next), BATCH);
    }
    dq_line l = port_line(&r);
    DQ_EQ(l.in, l.out);
    DQ_EQ(l.extra[DQ_EXTRA_KERNEL_DROPPED], 0);
    rig_close(&r);
}

// Frames that nothing reads fill the ring; what comes then is the kernel's loss, to the frame.
static void full_ring(void) {
    rig r = rig_open();
    uint32_t sent = 0, next = 0, got;
    for (; port_line(&r).extra[DQ_EXTRA_KERNEL_DROPPED] == 0 && sent < 100000; sent += BATCH)
        send_frames(&r, sent, BATCH);
    got = take_frames(&r, sent, &next);
    DQ_CHECK(got > 1000);
    DQ_EQ(port_line(&r).extra[DQ_EXTRA_KERNEL_DROPPED] + got, sent);
    DQ_EQ(port_line(&r).in, got);
    rig_close(&r);
}

// What a kernel of this host sends, before a network card would have finished it: v has what is left to do.
static void send_unfinished(const struct virtio_net_hdr *v, const uint8_t *p, size_t len) {
    static uint8_t all[70000];
    int fd = socket(AF_PACKET, SOCK_RAW, 0), one = 1;
    struct sockaddr_ll to = {.sll_family = AF_PACKET,
                             .sll_protocol = htons(dqi_be16(p + 12)),
                             .sll_ifindex = (int)if_nametoindex("left"),
                             .sll_halen = 6};
    memcpy(all, v, sizeof *v);
    memcpy(all + sizeof *v, p, len);
    DQ_EQ(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof one), 0);
    DQ_EQ(sendto(fd, all, sizeof *v + len, 0, (struct sockaddr *)&to, sizeof to), (ssize_t)(sizeof *v + len));
    close(fd);
}

// A TCP segment of len bytes whose checksum field holds the pseudo header's sum.
static void make_tcp(uint8_t *p, uint32_t len) {
    memset(p, 7, len);
    memcpy(p, "\2\0\0\0\0\2\2\0\0\0\0\1\x08\0\x45\0", 16);
    dqi_put_be16(p + 16, (uint16_t)(len - 14));
    memcpy(p + 18, "\0\0\0\0\x40\x06\0\0\x0a\0\0\1\x0a\0\0\2", 16);
    dqi_put_be16(p + 24, dqi_csum_fold(dqi_csum_add(p + 14, 20, 0)));
    memset(p + 34, 0, 20);
    memcpy(p + 34, "\x10\x00\x20\x00", 4);
    p[46] = 0x50;
    uint32_t sum = dqi_csum_add(p + 26, 8, 0) + (len - 34) + 6;
    dqi_put_be16(p + 50, (uint16_t)~dqi_csum_fold(sum));
}

static const struct virtio_net_hdr tcp_hdr = {
    .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .hdr_len = 54, .csum_start = 34, .csum_offset = 16};

// One packet that the receiver is given within ten seconds; its descriptor is the caller's.
static dq_burst *take_one(rig *r) {
    const int64_t until = dqi_mono_ns() + INT64_C(10000000000);
    dq_burst *b = dqi_burst_get(r->rx->bursts);
    while (r->rx->iface->ops->rx(r->rx, &b, 1) == 0 && dqi_mono_ns() < until)
        dqi_yield();
    dqi_add(&r->rx->c.out, b->n);
    return b;
}

static void unfinished_checksum(void) {
    rig r = rig_open();
    uint8_t p[101];
    dqi_pkt k;
    make_tcp(p, sizeof p);
    send_unfinished(&tcp_hdr, p, sizeof p);
    dq_burst *b = take_one(&r);
    DQ_EQ(b->n, 1);
    if (b->n == 1) {
        const uint8_t *got = r.s->core.base + b->off[0][0];
        DQ_CHECK(dqi_parse(got, b->len[0][0], &k) && dqi_csum_ok(got, &k));
        DQ_CHECK(memcmp(got + 50, p + 50, 2) != 0);
    }
    dq_burst_unref(b);
    rig_close(&r);
}

// A TCP segment of len bytes over IPv6, or a UDP datagram, its checksum left unfinished.
static void make_ipv6(uint8_t *p, uint32_t len, uint8_t proto) {
    memset(p, 7, len);
    memcpy(p, "\2\0\0\0\0\2\2\0\0\0\0\1\x86\xdd\x60\0\0\0", 18);
    dqi_put_be16(p + 18, (uint16_t)(len - 54));
    p[20] = proto;
    p[21] = 64;
    memset(p + 54, 0, 20);
    dqi_put_be32(p + 54, 0x10002000);
    if (proto == 6)
        p[66] = 0x50;
    else
        dqi_put_be16(p + 58, (uint16_t)(len - 54));
    uint32_t sum = dqi_csum_add(p + 22, 32, 0) + (len - 54) + proto;
    dqi_put_be16(p + (proto == 6 ? 70 : 60), (uint16_t)~dqi_csum_fold(sum));
}

// Several segments that the sender joined are not a frame, of whatever protocol: counted, and the next one
// comes.
static void joined_segments(void) {
    rig r = rig_open();
    static uint8_t p[4054];
    struct virtio_net_hdr v = tcp_hdr;
    v.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
    v.gso_size = 1000;
    make_tcp(p, sizeof p);
    send_unfinished(&v, p, sizeof p);
    make_tcp(p, 1054); // two that would fit
    v.gso_size = 500;
    send_unfinished(&v, p, 1054);
    make_ipv6(p, 1074, 6);
    v.gso_type = VIRTIO_NET_HDR_GSO_TCPV6;
    v.hdr_len = 74;
    v.csum_start = 54;
    send_unfinished(&v, p, 1074);
    make_tcp(p, 60);
    send_unfinished(&tcp_hdr, p, 60);
    dq_burst *b = take_one(&r);
    DQ_EQ(b->n, 1);
    DQ_EQ(b->n == 1 ? b->len[0][0] : 0, 60);
    dq_burst_unref(b);
    dq_line l = port_line(&r);
    DQ_EQ(l.in, 4);
    DQ_EQ(l.out, 1);
    DQ_EQ(l.dropped[DQ_DROP_JOINED], 3);
    DQ_EQ(l.in_bytes, 4054 + 1054 + 1074 + 60);
    rig_close(&r);
}

enum { LONG = 60054 };

static void send_long(uint32_t seq) {
    static uint8_t p[LONG];
    struct virtio_net_hdr v = tcp_hdr;
    v.gso_type = VIRTIO_NET_HDR_GSO_TCPV4;
    v.gso_size = 1000;
    make_tcp(p, LONG);
    memcpy(p + LONG - 4, &seq, 4);
    uint32_t sum = dqi_csum_add(p + 26, 8, 0) + (LONG - 34) + 6;
    dqi_put_be16(p + 50, (uint16_t)~dqi_csum_fold(sum));
    send_unfinished(&v, p, LONG);
}

// Joined segments that are kept: whole, with their checksum, in order among others, and more at once than a
// read has room for. Without a free buffer they are counted.
static void long_frames(void) {
    enum { N = 40, ALL = N + N / 4 }; // four long ones, and one that is not
    rig r = rig_with(N);
    uint8_t p[60];
    for (uint32_t k = 0; k < N; k++) {
        send_long(k);
        if (k % 4 != 3) continue;
        make_tcp(p, sizeof p);
        send_unfinished(&tcp_hdr, p, sizeof p);
    }
    dq_burst *kept[ALL] = {0};
    uint32_t n = 0, reads = 0;
    while (n < ALL && reads < ALL) {
        dq_burst *b = kept[reads++] = take_one(&r);
        if (b->n == 0) break; // took too long
        for (uint32_t i = 0; i < b->n; i++, n++) {
            const uint8_t *got = r.s->core.base + b->off[0][i];
            dqi_pkt k;
            uint32_t seq = n / 5 * 4 + n % 5;
            DQ_EQ(b->len[0][i], n % 5 == 4 ? 60 : LONG);
            DQ_CHECK(dqi_parse(got, b->len[0][i], &k) && dqi_csum_ok(got, &k));
            if (n % 5 != 4) DQ_EQ_BYTES(got + LONG - 4, &seq, 4);
        }
    }
    DQ_EQ(n, ALL);
    DQ_CHECK(reads > 2);
    send_long(N);
    make_tcp(p, sizeof p);
    send_unfinished(&tcp_hdr, p, sizeof p);
    dq_burst *b = take_one(&r);
    DQ_EQ(b->n, 1);
    DQ_EQ(dqi_get(&r.rx->c.dropped[DQ_DROP_NO_PACKET_BUFFER]), 1);
    dq_burst_unref(b);
    for (uint32_t k = 0; k < reads; k++)
        dq_burst_unref(kept[k]);
    dq_line l = port_line(&r);
    DQ_EQ(l.in, ALL + 2);
    DQ_EQ(l.out, ALL + 2);
    DQ_EQ(l.dropped[DQ_DROP_JOINED], 0);
    rig_close(&r);
}

// An unfinished checksum that comes out as 0 is sent as 0xffff, of a datagram over IPv6 too, where it has to
// be there.
static void unfinished_checksum_of_zero(void) {
    rig r = rig_open();
    uint8_t p[100];
    const struct virtio_net_hdr udp = {
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .hdr_len = 62, .csum_start = 54, .csum_offset = 6};
    make_ipv6(p, sizeof p, 17);
    dqi_put_be16(p + 62, 0);
    dqi_put_be16(p + 62, dqi_csum_fold(dqi_csum_add(p + 54, sizeof p - 54, 0)));
    DQ_EQ(dqi_csum_fold(dqi_csum_add(p + 54, sizeof p - 54, 0)), 0);
    send_unfinished(&udp, p, sizeof p);
    dq_burst *b = take_one(&r);
    DQ_EQ(b->n, 1);
    if (b->n == 1) DQ_EQ(dqi_be16(r.s->core.base + b->off[0][0] + 60), 0xffff);
    dq_burst_unref(b);
    rig_close(&r);
}

// The kernel takes a tag out and reports it beside the frame: it comes with the tag that was sent.
static void tags_come_back(void) {
    rig r = rig_open();
    static const uint16_t types[] = {0x8100, 0x88a8};
    for (int k = 0; k < 2; k++) {
        uint8_t p[80];
        const struct virtio_net_hdr none = {0};
        make(p, sizeof p, 3);
        dqi_put_be16(p + 12, types[k]);
        dqi_put_be16(p + 14, 0xa123);
        dqi_put_be16(p + 16, 0x88b5);
        send_unfinished(&none, p, sizeof p);
        dq_burst *b = take_one(&r);
        DQ_EQ(b->n, 1);
        DQ_EQ(b->n == 1 ? b->len[0][0] : 0, sizeof p);
        if (b->n == 1 && b->len[0][0] == sizeof p) DQ_EQ_BYTES(r.s->core.base + b->off[0][0], p, sizeof p);
        dq_burst_unref(b);
    }
    rig_close(&r);
}

static bool run(const char *command) { return system(command) == 0; }

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    if (unshare(CLONE_NEWNET) != 0) dq_lack("netns", "no right to make a network namespace");
    if (access("/proc/sys/net/ipv6", F_OK) == 0 &&
        !run("echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6"))
        dq_lack("netns", "IPv6 can't be switched off");
    if (!run("ip link add left type veth peer name right && ip link set left up && ip link set right up"))
        dq_lack("netns", "ip(8) makes no pair of virtual Ethernet devices");
    int fd = socket(AF_PACKET, SOCK_RAW, 0), version = TPACKET_V2;
    if (setsockopt(fd, SOL_PACKET, PACKET_VERSION, &version, sizeof version) != 0)
        DQ_SKIP("this kernel, or its emulation, has no AF_PACKET rings");
    close(fd);
    DQ_RUN(round_the_ring);
    DQ_RUN(full_ring);
    DQ_RUN(unfinished_checksum);
    DQ_RUN(unfinished_checksum_of_zero);
    DQ_RUN(joined_segments);
    DQ_RUN(long_frames);
    DQ_RUN(tags_come_back);
    return dq_done();
}
