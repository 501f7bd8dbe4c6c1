// packet_test.c: the parser against described frames, cut and broken ones; checksums against a byte-wise sum.
#include "frames.h"

#include "packet/packet.h"

static uint32_t wanted_has(const frame *f) {
    uint32_t has = DQ_HAS_ETH;
    if (f->n_vlans) has |= DQ_HAS_VLAN;
    if (f->ip == 4) has |= DQ_HAS_IPV4;
    if (f->ip == 6) has |= DQ_HAS_IPV6;
    if (f->frag_offset || f->more_fragments) has |= DQ_HAS_FRAGMENT;
    if (frame_ports(f)) has |= f->proto == 17 ? DQ_HAS_UDP : DQ_HAS_TCP;
    return has;
}

static void parses_what_was_written(void) {
    uint64_t seed = 1;
    uint8_t buf[FRAME_MAX];
    for (int i = 0; i < 20000; i++) {
        frame f;
        frame_random(&seed, i % 2, &f);
        uint32_t len = frame_write(&f, buf);
        uint8_t *p = dq_exact(buf, len);
        dqi_pkt k;
        DQ_CHECK(dqi_parse(p, len, &k));
        DQ_EQ(k.has, wanted_has(&f));
        DQ_EQ(k.len, len);
        DQ_EQ(k.l3, f.l3);
        DQ_EQ(k.l4, f.ip == 0 || f.frag_offset ? DQI_NONE : f.l4);
        DQ_EQ(k.payload, f.payload_off);
        DQ_EQ(k.payload_len, f.payload_len);
        DQ_EQ(k.end, len - f.padding);
        DQ_EQ(k.ip_proto, f.proto);
        DQ_EQ(k.n_vlans, f.n_vlans);
        DQ_EQ(k.vlan_tci, f.n_vlans ? f.tci[0] : 0);
        DQ_EQ(k.ethertype, f.ip == 4 ? 0x0800 : f.ip == 6 ? 0x86dd : f.ethertype);
        if (f.ip) DQ_EQ(p[k.proto_off], f.proto);
        free(p);
    }
}

// Whatever the bytes, every offset lies inside, and what a flag promises is there.
static void check_inside(const dqi_pkt *k, uint32_t len) {
    DQ_CHECK(k->end <= len);
    if (k->l3 != DQI_NONE) DQ_CHECK(k->l3 <= len);
    if (k->l4 != DQI_NONE) DQ_CHECK(k->l4 <= k->end);
    if (k->payload != DQI_NONE) DQ_CHECK((uint64_t)k->payload + k->payload_len <= k->end);
    if (k->has & DQ_HAS_IPV4) DQ_CHECK(k->l3 + 20 <= len);
    if (k->has & DQ_HAS_IPV6) DQ_CHECK(k->l3 + 40 <= len);
    if (k->has & DQ_HAS_UDP) DQ_CHECK(k->l4 + 8 <= k->end);
    if (k->has & DQ_HAS_TCP) DQ_CHECK(k->l4 + 20 <= k->end);
    if (k->has & DQ_HAS_ICMP) DQ_CHECK(k->l4 + 8 <= k->end);
}

static void survives_cuts_and_damage(void) {
    uint64_t seed = 2;
    uint8_t buf[FRAME_MAX];
    for (int i = 0; i < 3000; i++) {
        frame f;
        frame_random(&seed, false, &f);
        uint32_t len = frame_write(&f, buf);
        for (uint32_t n = dq_below(&seed, 4); n > 0; n--)
            buf[dq_below(&seed, len < 80 ? len : 80)] = (uint8_t)dq_rand(&seed);
        for (uint32_t cut = 0; cut <= len; cut += 1 + cut / 100 * 10) {
            uint8_t *p = dq_exact(buf, cut);
            dqi_pkt k;
            DQ_EQ(dqi_parse(p, cut, &k), cut >= 14);
            check_inside(&k, cut);
            dqi_csum_ok(p, &k);
            dqi_csum_fill(p, &k);
            free(p);
        }
    }
}

static void survives_noise(void) {
    uint64_t seed = 3;
    static const uint16_t types[] = {0x0800, 0x86dd, 0x8100, 0x88a8};
    for (int i = 0; i < 30000; i++) {
        uint8_t buf[160];
        uint32_t len = dq_below(&seed, sizeof buf + 1);
        fill_random(&seed, buf, sizeof buf);
        put16(buf + 12, types[dq_below(&seed, 4)]);
        if (dq_below(&seed, 2)) buf[14] = (uint8_t)(dq_below(&seed, 2) ? 0x45 : 0x60);
        uint8_t *p = dq_exact(buf, len);
        dqi_pkt k;
        dqi_parse(p, len, &k);
        check_inside(&k, len);
        dqi_csum_fill(p, &k);
        free(p);
    }
}

// Of a frame whose beginning alone is there nothing behind it is read, and what its headers say is as of the
// whole one, where they are there.
static void parses_heads(void) {
    uint64_t seed = 4;
    uint8_t buf[FRAME_MAX];
    uint32_t cut = 0;
    for (int i = 0; i < 30000; i++) {
        frame f;
        frame_random(&seed, i % 2, &f);
        uint32_t len = frame_write(&f, buf), have = dq_below(&seed, 160);
        if (have > len) have = len;
        uint8_t *p = dq_exact(buf, have);
        dqi_pkt whole, head;
        dqi_parse(buf, len, &whole);
        DQ_EQ(dqi_parse_head(p, have, len, &head), have >= 14);
        DQ_EQ(head.len, len);
        check_inside(&head, len);
        if (have < 54) {
            cut++;
        } else if (head.payload != DQI_NONE || (whole.payload != DQI_NONE && whole.payload <= have)) {
            DQ_EQ(head.has, whole.has);
            DQ_EQ(head.l4, whole.l4);
            DQ_EQ(head.payload, whole.payload);
            DQ_EQ(head.payload_len, whole.payload_len);
            DQ_EQ(head.end, whole.end);
        } else {
            DQ_CHECK(whole.payload == DQI_NONE || whole.payload > have);
            cut++;
        }
        free(p);
    }
    DQ_CHECK(cut > 1000 && cut < 20000);
}

typedef struct broken {
    const char *name;
    uint32_t at, len; // bytes replaced
    uint8_t with[4];
    uint32_t cut; // frame length, 0: whole
    uint32_t has;
    uint32_t payload, payload_len; // DQI_NONE: none
} broken;

// One UDP datagram over IPv4 with 10 bytes of payload: l3 14, l4 34, payload 42.
static void bends_of_one_datagram(void) {
    enum { E = DQ_HAS_ETH, I = E | DQ_HAS_IPV4, U = I | DQ_HAS_UDP, F = DQ_HAS_FRAGMENT };
    static const broken cases[] = {
        {"as written", 0, 0, {0}, 0, U, 42, 10},
        {"ip version 5", 14, 1, {0x55}, 0, E, DQI_NONE, 0},
        {"header length 16", 14, 1, {0x44}, 0, E, DQI_NONE, 0},
        {"header length past the frame", 14, 1, {0x4f}, 60, E, DQI_NONE, 0},
        {"total length below header", 16, 2, {0, 19}, 0, E, DQI_NONE, 0},
        {"total length 0: to the end", 16, 2, {0, 0}, 0, U, 42, 10},
        {"total length past the frame", 16, 2, {0xff, 0xff}, 0, U, 42, 10},
        {"total length cuts the payload", 16, 2, {0, 20 + 8 + 3}, 0, U, 42, 3},
        {"total length cuts the udp header", 16, 2, {0, 20 + 7}, 0, I, DQI_NONE, 0},
        {"udp length 7", 38, 2, {0, 7}, 0, I, DQI_NONE, 0},
        {"udp length 0: to the end", 38, 2, {0, 0}, 0, U, 42, 10},
        {"udp length shorter", 38, 2, {0, 12}, 0, U, 42, 4},
        {"udp length of a header alone", 38, 2, {0, 8}, 0, U, 42, 0},
        {"first fragment", 20, 2, {0x20, 0}, 0, U | F, 42, 10},
        {"later fragment", 20, 2, {0x00, 1}, 0, I | F, 34, 18},
        {"don't fragment", 20, 2, {0x40, 0}, 0, U, 42, 10},
        {"other protocol", 23, 1, {47}, 0, I, 34, 18},
        {"icmp", 23, 1, {1}, 0, I | DQ_HAS_ICMP, 42, 10},
        {"icmpv6 over ipv4", 23, 1, {58}, 0, I, DQI_NONE, 0},
        {"cut in the ip header", 0, 0, {0}, 33, E, DQI_NONE, 0},
        {"cut in the udp header", 0, 0, {0}, 41, I, DQI_NONE, 0},
        {"cut in the payload", 0, 0, {0}, 45, U, 42, 3},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const broken *c = &cases[i];
        frame f = {.ip = 4, .proto = 17, .ttl = 9, .sport = 1, .dport = 2, .payload_len = 10};
        uint8_t buf[FRAME_MAX];
        uint32_t len = frame_write(&f, buf);
        memcpy(buf + c->at, c->with, c->len);
        if (c->cut && c->cut < len) len = c->cut;
        uint8_t *p = dq_exact(buf, len);
        dqi_pkt k;
        dqi_parse(p, len, &k);
        dq_case = c->name;
        DQ_EQ(k.has, c->has);
        DQ_EQ(k.payload, c->payload);
        DQ_EQ(k.payload_len, c->payload_len);
        free(p);
    }
}

// What a kernel joined of several segments, or a jumbogram, has a payload length of 0: it reaches to the end.
static void joined_over_ipv6(void) {
    static const struct {
        uint8_t proto;
        uint32_t has, head;
    } cases[] = {{6, DQ_HAS_TCP, 20}, {17, DQ_HAS_UDP, 8}, {47, 0, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        frame f = {.ip = 6, .proto = cases[i].proto, .ttl = 9, .sport = 1, .dport = 2, .payload_len = 50};
        uint8_t buf[FRAME_MAX];
        uint32_t len = frame_write(&f, buf);
        dqi_pkt k;
        put16(buf + f.l3 + 4, 0);
        if (f.proto == 17) put16(buf + f.l4 + 4, 0);
        dqi_parse(buf, len, &k);
        DQ_EQ(k.has, DQ_HAS_ETH | DQ_HAS_IPV6 | cases[i].has);
        DQ_EQ(k.end, cases[i].has ? len : f.l4);
        DQ_EQ(k.payload_len, cases[i].has ? 50 : 0);
        DQ_EQ(k.payload, f.l4 + cases[i].head);
    }
}

static void third_tag_is_not_followed(void) {
    uint8_t p[64] = {0};
    for (int i = 0; i < 3; i++)
        put16(p + 12 + 4 * i, 0x8100);
    dqi_pkt k;
    DQ_CHECK(dqi_parse(p, sizeof p, &k));
    DQ_EQ(k.n_vlans, 2);
    DQ_EQ(k.ethertype, 0x8100);
}

static void extension_chain_is_bounded(void) {
    frame f = {.ip = 6, .proto = 17, .payload_len = 1};
    uint8_t buf[FRAME_MAX];
    dqi_pkt k;
    f.extensions = 8;
    dqi_parse(buf, frame_write(&f, buf), &k);
    DQ_CHECK(k.has & DQ_HAS_UDP);
    f.extensions = 9;
    dqi_parse(buf, frame_write(&f, buf), &k);
    DQ_CHECK(!(k.has & DQ_HAS_UDP));
    DQ_EQ(k.payload, DQI_NONE);
}

static void payload_queue(void) {
    dqi_pkt k;
    dqi_parse_payload(77, &k);
    DQ_EQ(k.has, 0);
    DQ_EQ(k.payload, 0);
    DQ_EQ(k.payload_len, 77);
    DQ_EQ(k.l3, DQI_NONE);
}

static uint16_t slow_sum(const uint8_t *p, uint32_t n, uint32_t sum) {
    for (uint32_t i = 0; i < n; i++)
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum;
}

static void checksum_is_the_slow_sum(void) {
    // RFC 1071, section 3: these bytes sum to ddf2.
    static const uint8_t rfc[] = {0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7};
    DQ_EQ(dqi_csum_fold(dqi_csum_add(rfc, 8, 0)), 0xffff ^ 0xddf2);
    uint64_t seed = 4;
    uint8_t buf[1500];
    fill_random(&seed, buf, sizeof buf);
    for (uint32_t n = 0; n <= sizeof buf; n++) {
        uint8_t *p = dq_exact(buf, n);
        DQ_EQ(dqi_csum_fold(dqi_csum_add(p, n, 0)), slow_sum(p, n, 0));
        uint32_t half = n / 2 & ~1u;
        DQ_EQ(dqi_csum_fold(dqi_csum_add(p + half, n - half, dqi_csum_add(p, half, 0))), slow_sum(p, n, 0));
        free(p);
    }
}

// What the packet's transport checksum should be, from the frame's description.
static uint16_t slow_l4_csum(const frame *f, const uint8_t *p) {
    uint32_t n = frame_l4_len(f) + f->payload_len, sum = f->proto + n, addr = f->ip == 4 ? 4 : 16;
    for (uint32_t i = 0; i < addr; i++)
        sum +=
            (i % 2 ? f->src[i] : (uint32_t)f->src[i] << 8) + (i % 2 ? f->dst[i] : (uint32_t)f->dst[i] << 8);
    return slow_sum(p + f->l4, n, sum);
}

static void fills_checksums(void) {
    uint64_t seed = 5;
    uint8_t p[FRAME_MAX];
    for (int i = 0; i < 5000; i++) {
        frame f;
        frame_random(&seed, false, &f);
        if (!frame_ports(&f) || f.more_fragments) continue;
        uint32_t len = frame_write(&f, p);
        uint16_t want = slow_l4_csum(&f, p);
        if (want == 0 && f.proto == 17) want = 0xffff;
        dqi_pkt k;
        dqi_parse(p, len, &k);
        if (f.proto == 6 || f.ip == 6) DQ_CHECK(!dqi_csum_ok(p, &k));
        dqi_csum_fill(p, &k);
        DQ_EQ(dqi_be16(p + f.l4 + (f.proto == 17 ? 6 : 16)), want);
        if (f.ip == 4) DQ_EQ(slow_sum(p + f.l3, 20 + f.ip_options, 0), 0);
        DQ_CHECK(dqi_csum_ok(p, &k));
        p[f.l4 + 1] ^= 0x10;
        DQ_CHECK(!dqi_csum_ok(p, &k));
    }
}

static void leaves_fragments_alone(void) {
    frame f = {.ip = 4, .proto = 17, .more_fragments = true, .payload_len = 16};
    uint8_t p[FRAME_MAX];
    uint32_t len = frame_write(&f, p);
    put16(p + f.l4 + 6, 0xbeef);
    dqi_pkt k;
    dqi_parse(p, len, &k);
    dqi_csum_fill(p, &k);
    DQ_EQ(dqi_be16(p + f.l4 + 6), 0xbeef);
    DQ_CHECK(dqi_csum_ok(p, &k));
    DQ_EQ(slow_sum(p + f.l3, 20, 0), 0);
}

static void updates_incrementally(void) {
    // RFC 1624, section 4: the case that RFC 1141 gets wrong, as a change of the IPv4 identification.
    frame f = {.ip = 4, .proto = 47, .payload_len = 8};
    uint8_t p[FRAME_MAX];
    uint32_t len = frame_write(&f, p);
    dqi_pkt k;
    dqi_csum_change c;
    dqi_parse(p, len, &k);
    put16(p + 18, 0x5555);
    put16(p + 24, 0xdd2f);
    dqi_csum_before(&c, p, &k, 18, 20);
    put16(p + 18, 0x3285);
    dqi_csum_after(&c, p, &k);
    DQ_EQ(dqi_be16(p + 24), 0x0000);
    uint64_t seed = 6;
    for (int i = 0; i < 20000; i++) {
        frame_random(&seed, false, &f);
        len = frame_write(&f, p);
        dqi_parse(p, len, &k);
        dqi_csum_fill(p, &k);
        uint32_t from = dq_below(&seed, len), to = from + 1 + dq_below(&seed, 9);
        if (to > len) to = len;
        dqi_csum_before(&c, p, &k, from, to);
        if (c.recompute || !dqi_csum_ok(p, &k)) continue;
        fill_random(&seed, p + from, to - from);
        dqi_csum_after(&c, p, &k);
        DQ_CHECK(dqi_csum_ok(p, &k));
    }
}

// UDP over IPv4 may have no checksum, and stays without one whatever is changed.
static void updates_no_checksum(void) {
    frame f = {.ip = 4, .proto = 17, .payload_len = 8};
    uint8_t p[FRAME_MAX];
    uint32_t len = frame_write(&f, p);
    dqi_pkt k;
    dqi_csum_change c;
    dqi_parse(p, len, &k);
    dqi_csum_fill(p, &k);
    put16(p + f.l4 + 6, 0);
    dqi_csum_before(&c, p, &k, f.payload_off, f.payload_off + 2);
    put16(p + f.payload_off, 0x1234);
    dqi_csum_after(&c, p, &k);
    DQ_EQ(dqi_be16(p + f.l4 + 6), 0);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(updates_no_checksum);
    DQ_RUN(parses_what_was_written);
    DQ_RUN(survives_cuts_and_damage);
    DQ_RUN(survives_noise);
    DQ_RUN(parses_heads);
    DQ_RUN(bends_of_one_datagram);
    DQ_RUN(joined_over_ipv6);
    DQ_RUN(third_tag_is_not_followed);
    DQ_RUN(extension_chain_is_bounded);
    DQ_RUN(payload_queue);
    DQ_RUN(checksum_is_the_slow_sum);
    DQ_RUN(fills_checksums);
    DQ_RUN(leaves_fragments_alone);
    DQ_RUN(updates_incrementally);
    return dq_done();
}
