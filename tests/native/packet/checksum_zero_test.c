// checksum_zero_test.c: a UDP checksum that comes out as 0 is sent as 0xffff, as 0 means that there is none
// (RFC 768); one that is 0 stays so; TCP's may be 0. Of each place that computes or follows one, against a
// sum of the test's own.
//
// A frame has two bytes that nothing else depends on. Set to what the checksum is while they are 0, they make
// it 0.
#include "bed.h"
#include "frames.h"

#include "engine/xdp/xsk.h"
#include "packet/packet.h"
#include "packet/transform.h"
#include "program/burst_ops.h"

enum { BATCH = 64, PAYLOAD = 30, BOTH = 2 };

// A frame of each kind, the two bytes at `knob`.
typedef struct zero {
    uint8_t p[FRAME_MAX];
    uint32_t len, knob, csum; // csum: offset of the transport's checksum
    frame f;
} zero;

static uint16_t get16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static uint32_t slow_sum(const uint8_t *p, uint32_t n) {
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
    return sum;
}

static uint16_t slow_fold(uint32_t sum) {
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

// The transport's checksum over pseudo header and transport, the field counted as 0.
static uint16_t slow_csum(const zero *z) {
    uint32_t at = z->f.ip == 4 ? z->f.l3 + 12 : z->f.l3 + 8, n = z->f.ip == 4 ? 8 : 32;
    uint32_t l4_len = z->len - z->f.l4;
    return slow_fold(slow_sum(z->p + at, n) + z->f.proto + l4_len + slow_sum(z->p + z->f.l4, l4_len) -
                     get16(z->p + z->csum));
}

static uint16_t slow_ip(const uint8_t *p) { return slow_fold(slow_sum(p, 20) - get16(p + 10)); }

// With right checksums, and the two bytes 0.
static zero make(uint64_t seed, int ip, uint8_t proto) {
    zero z = {
        .f = {.ip = ip, .proto = proto, .ttl = 9, .sport = 4000, .dport = 7148, .payload_len = PAYLOAD}};
    fill_random(&seed, z.f.src, 16);
    fill_random(&seed, z.f.dst, 16);
    fill_random(&seed, z.f.payload + 2, PAYLOAD - 2);
    z.len = frame_write(&z.f, z.p);
    z.knob = z.f.payload_off;
    z.csum = z.f.l4 + (proto == 17 ? 6 : 16);
    if (ip == 4) put16(z.p + 24, slow_ip(z.p + 14));
    put16(z.p + z.csum, slow_csum(&z));
    return z;
}

// Makes the checksum 0, which the field doesn't say yet; false: it was, or a step to it would run over.
static bool turn(zero *z) {
    uint16_t c = slow_csum(z);
    if (c < BATCH || c > 0xffff - BATCH) return false;
    put16(z->p + z->knob, c);
    return slow_csum(z) == 0;
}

static uint16_t sent(uint8_t proto) { return proto == 17 ? 0xffff : 0; }

static void computed(void) {
    uint32_t n = 0;
    for (uint64_t k = 0; k < 80; k++) {
        zero z = make(k / 4, k % 2 ? 6 : 4, k / 2 % 2 ? 6 : 17);
        if (!turn(&z)) continue;
        dqi_pkt pkt;
        dqi_parse(z.p, z.len, &pkt);
        dqi_csum_fill(z.p, &pkt);
        DQ_EQ(get16(z.p + z.csum), sent(z.f.proto));
        n++;
    }
    DQ_CHECK(n > 60);
}

static void set(uint8_t *p, const zero *z, uint32_t at, uint16_t v) {
    dqi_pkt pkt;
    dqi_csum_change c;
    dqi_parse(p, z->len, &pkt);
    dqi_csum_before(&c, p, &pkt, at, at + 2);
    put16(p + at, v);
    dqi_csum_after(&c, p, &pkt);
}

// Bytes of the payload, which change a sum by their difference, and the IPv4 header's length, of which it is
// computed again.
static void followed(void) {
    uint32_t n = 0;
    for (uint64_t k = 0; k < 80; k++) {
        zero z = make(k / 4, k % 2 ? 6 : 4, k / 2 % 2 ? 6 : 17), to = z;
        if (!turn(&to)) continue;
        uint8_t p[FRAME_MAX];
        memcpy(p, z.p, z.len);
        set(p, &z, z.knob, get16(to.p + to.knob));
        DQ_EQ(get16(p + z.csum), sent(z.f.proto));
        n++;
        if (z.f.proto != 17) continue;
        memcpy(p, z.p, z.len);
        put16(p + z.csum, 0); // there is none
        set(p, &z, z.knob, 77);
        DQ_EQ(get16(p + z.csum), 0);
        if (z.f.ip == 4) set(p, &z, 16, (uint16_t)(z.len - 14));
        DQ_EQ(get16(p + z.csum), 0);
    }
    DQ_CHECK(n > 60);
}

// The source port in all packets of a burst: 64 values, the middle one of which makes the checksum 0.
static void set_in_a_burst(void) {
    bed b;
    uint32_t n = 0;
    bed_open(&b, (bed_conf){.batch = BATCH});
    for (uint64_t k = 0; k < 24; k++) {
        zero z = make(k / 4, k % 2 ? 6 : 4, k / 2 % 2 ? 6 : 17), to;
        z.knob = z.f.l4;
        put16(z.p + z.knob, 0);
        put16(z.p + z.csum, slow_csum(&z));
        to = z;
        if (!turn(&to)) continue;
        dq_field f = {.base = DQ_BASE_L4, .bit_width = 16, .need = z.f.proto == 17 ? DQ_HAS_UDP : DQ_HAS_TCP};
        uint16_t first = (uint16_t)(get16(to.p + to.knob) - BATCH / 2);
        dq_burst *x;
        dq_view v;
        DQ_EQ(dq_tx_alloc(b.tx[0][0], BATCH, &x), DQ_OK);
        DQ_EQ(dq_burst_set_len(x, 0, -1, z.len), DQ_OK);
        dq_burst_view(x, &v);
        for (uint32_t i = 0; i < BATCH; i++)
            memcpy(bed_bytes(&v, 0, i), z.p, z.len);
        DQ_EQ(dq_burst_set(x, &f, first, 1, DQ_CSUM_UPDATE), BATCH);
        for (uint32_t i = 0; i < BATCH; i++) {
            memcpy(z.p, bed_bytes(&v, 0, i), z.len);
            uint16_t want = slow_csum(&z);
            DQ_EQ(get16(z.p + z.knob), first + i);
            DQ_EQ(get16(z.p + z.csum), want ? want : sent(z.f.proto));
            n += want == 0;
        }
        dq_burst_unref(x);
    }
    DQ_CHECK(n > 16);
    bed_start(&b);
    bed_close(&b);
}

// VXLAN over IPv6, whose outer datagram has a checksum.
static void put_in_a_tunnel(void) {
    dq_action a = {.kind = DQ_ACT_ENCAP,
                   .tunnel = DQ_TUNNEL_VXLAN,
                   .ipv6 = 1,
                   .ttl = 64,
                   .id = 9,
                   .udp_src = 5555,
                   .udp_dst = 4789};
    a.ipv6_src[15] = a.ipv6_dst[0] = 1;
    dqi_acts acts;
    dq_diag d;
    DQ_EQ(dqi_acts_make(&a, 1, &acts, &d), DQ_OK);
    uint32_t n = 0;
    for (uint64_t k = 0; k < 20; k++) {
        zero inner = make(k, 4, 17);
        uint16_t knob = 0;
        for (int round = 0; round < BOTH; round++) {
            uint8_t space[128 + FRAME_MAX];
            dqi_frame f = {.p = space + 128, .len = inner.len, .room = 128};
            memcpy(f.p, inner.p, inner.len);
            put16(f.p + inner.knob, knob);
            DQ_EQ(dqi_acts_apply(&acts, &f, UINT32_MAX), DQI_DONE);
            zero outer = {.f = {.ip = 6, .proto = 17, .l3 = 14, .l4 = 54}, .len = f.len, .csum = 60};
            memcpy(outer.p, f.p, f.len);
            uint16_t want = slow_csum(&outer);
            DQ_EQ(get16(outer.p + outer.csum), want ? want : 0xffff);
            n += want == 0;
            knob = want;
        }
    }
    DQ_EQ(n, 20);
}

// What the kernel left to a network card: the field has the pseudo header's sum.
static void finished_for_a_kernel(void) {
    uint32_t n = 0;
    for (uint64_t k = 0; k < 80; k++) {
        zero z = make(k / 4, k % 2 ? 6 : 4, k / 2 % 2 ? 6 : 17);
        if (!turn(&z)) continue;
        uint32_t at = z.f.ip == 4 ? z.f.l3 + 12 : z.f.l3 + 8;
        uint32_t sum = slow_sum(z.p + at, z.f.ip == 4 ? 8 : 32) + z.f.proto + z.len - z.f.l4;
        put16(z.p + z.csum, (uint16_t)~slow_fold(sum));
        dqi_piece piece = {.data = z.p, .len = z.len};
        xsk_finish_checksum(&piece, 1);
        // xsk doesn't tell TCP from UDP: 0xffff is a right sum for either.
        DQ_EQ(get16(z.p + z.csum), 0xffff);
        n++;
    }
    DQ_CHECK(n > 60);
}

// TCP whose sequence number reads as a datagram's length and a checksum of 0 becomes UDP, also behind an IPv6
// extension header: a checksum comes there. The frames before and after are scapy's.
static void became_udp(void) {
    static const struct {
        uint32_t l3_len, csum; // bytes of headers before TCP; what scapy has for UDP
        uint8_t ip[48];
    } cases[] = {
        {20, 0xfff4, {0x45, 0, 0, 0x2c, 0, 1, 0, 0, 0x40, 6, 0x66, 0xc9, 10, 0, 0, 1, 10, 0, 0, 2}},
        {48, 0xfff4, {0x60, 0, 0, 0, 0, 0x20, 60, 0x40, 0xfd, [23] = 1, 0xfd, [39] = 2, 6, 0, 1, 4}},
    };
    static const uint8_t tcp[] = {3,    0xe8, 7,    0xd0, 0, 0x18, 0, 0, 0,   0,   0,   0,
                                  0x50, 2,    0x20, 0,    0, 0,    0, 0, 'a', 'b', 'c', 'd'};
    for (size_t i = 0; i < 2; i++) {
        uint8_t p[128] = {2, [5] = 2, 2, [11] = 1};
        uint32_t l4 = 14 + cases[i].l3_len, len = l4 + sizeof tcp;
        uint64_t off = 0;
        put16(p + 12, i == 0 ? 0x0800 : 0x86dd);
        memcpy(p + 14, cases[i].ip, cases[i].l3_len);
        memcpy(p + l4, tcp, sizeof tcp);
        put16(p + l4 + 16, i == 0 ? 0xab45 : 0xc543);
        const dqi_packets in = {.base = p, .off = &off, .len = &len, .n = 1};
        dq_field proto;
        DQ_CHECK(dq_field_named("ip_proto", &proto));
        DQ_EQ(dqi_verb_set(dqi_level_best(), &in, false, &proto, 17, 0, DQ_CSUM_UPDATE), 1);
        DQ_EQ(p[i == 0 ? 23 : 54], 17);
        DQ_EQ(get16(p + l4 + 6), cases[i].csum);
        if (i == 0) DQ_EQ(get16(p + 24), 0x66be);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(computed);
    DQ_RUN(followed);
    DQ_RUN(set_in_a_burst);
    DQ_RUN(became_udp);
    DQ_RUN(put_in_a_tunnel);
    DQ_RUN(finished_for_a_kernel);
    return dq_done();
}
