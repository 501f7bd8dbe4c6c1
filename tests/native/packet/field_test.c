// field_test.c: fields of any alignment against one bit at a time, and the named fields against described
// frames.
#include "frames.h"

#include "packet/field.h"

#include <endian.h>

static uint64_t slow_bits(const uint8_t *p, uint64_t bit, uint32_t width) {
    uint64_t v = 0;
    for (uint64_t i = bit; i < bit + width; i++)
        v = v << 1 | (p[i / 8] >> (7 - i % 8) & 1);
    return v;
}

static void any_alignment(void) {
    uint64_t seed = 12;
    for (uint32_t width = 1; width <= 64; width++) {
        for (uint32_t bit = 0; bit < 40; bit++) {
            uint8_t buf[16];
            uint32_t len = (bit + width + 7) / 8; // not a byte more than needed
            fill_random(&seed, buf, sizeof buf);
            uint8_t *p = dq_exact(buf, len);
            dqi_pkt k;
            dqi_parse_payload(len, &k);
            dq_field f = {.base = DQ_BASE_PAYLOAD, .bit_width = (uint16_t)width, .bit_offset = bit};
            uint64_t v = 0, want = slow_bits(buf, bit, width), back = 0;
            DQ_EQ(dqi_field_check(&f, NULL), DQ_OK);
            DQ_CHECK(dqi_field_get(p, len, &k, &f, &v));
            DQ_EQ(v, want);
            f.flags = DQ_FIELD_SIGNED;
            DQ_CHECK(dqi_field_get(p, len, &k, &f, &v));
            DQ_EQ(v, width < 64 && want >> (width - 1) ? want | ~0ull << width : want);
            DQ_CHECK(dqi_field_set(p, len, &k, &f, ~want));
            f.flags = 0;
            DQ_CHECK(dqi_field_get(p, len, &k, &f, &back));
            DQ_EQ(back, ~want & (~0ull >> (64 - width)));
            DQ_CHECK(dqi_field_set(p, len, &k, &f, want));
            DQ_EQ_BYTES(p, buf, len); // no neighbouring bit was touched
            f.bit_offset = len * 8 - width + 1;
            DQ_CHECK(!dqi_field_get(p, len, &k, &f, &v));
            DQ_CHECK(!dqi_field_set(p, len, &k, &f, 0));
            free(p);
        }
    }
}

static void little_endian(void) {
    uint8_t p[9] = {0xff, 1, 2, 3, 4, 5, 6, 7, 0x88};
    dqi_pkt k;
    dqi_parse_payload(sizeof p, &k);
    uint64_t v = 0, want = 0;
    for (uint16_t bytes = 1; bytes <= 8; bytes++) {
        dq_field f = {.flags = DQ_FIELD_LE, .bit_width = (uint16_t)(8 * bytes), .bit_offset = 8};
        want |= (uint64_t)p[bytes] << (8 * (bytes - 1));
        DQ_CHECK(dqi_field_get(p, sizeof p, &k, &f, &v));
        DQ_EQ(v, want);
        DQ_CHECK(dqi_field_set(p, sizeof p, &k, &f, want));
    }
    dq_field f = {.flags = DQ_FIELD_LE | DQ_FIELD_SIGNED, .bit_width = 16, .bit_offset = 56};
    DQ_CHECK(dqi_field_get(p, sizeof p, &k, &f, &v));
    DQ_EQ(v, (uint64_t)(int64_t)(int16_t)0x8807);
    f.bit_offset = 64;
    DQ_CHECK(!dqi_field_get(p, sizeof p, &k, &f, &v));
    DQ_CHECK(dqi_field_set(p, sizeof p, &k,
                           &(dq_field){.flags = DQ_FIELD_LE, .bit_width = 24, .bit_offset = 16}, 0xabcdef));
    DQ_EQ(p[2], 0xef);
    DQ_EQ(p[4], 0xab);
}

// Bits of a little-endian word at any place: against the words of 64 bits that C reads.
static void little_bits(void) {
    uint64_t seed = 13;
    for (uint32_t width = 1; width <= 64; width++) {
        for (uint32_t bit = 0; bit < 40; bit++) {
            uint8_t buf[16];
            uint32_t len = (bit + width + 7) / 8;
            fill_random(&seed, buf, sizeof buf);
            uint64_t low, high, v = 0, back = 0;
            memcpy(&low, buf, 8);
            memcpy(&high, buf + 8, 8);
            low = le64toh(low);
            high = le64toh(high);
            uint64_t want = (bit ? low >> bit | high << (64 - bit) : low) & (UINT64_MAX >> (64 - width));
            uint8_t *p = dq_exact(buf, len);
            dqi_pkt k;
            dqi_parse_payload(len, &k);
            dq_field f = {.flags = DQ_FIELD_LE, .bit_width = (uint16_t)width, .bit_offset = bit};
            DQ_EQ(dqi_field_check(&f, NULL), DQ_OK);
            DQ_CHECK(dqi_field_get(p, len, &k, &f, &v));
            DQ_EQ(v, want);
            DQ_CHECK(dqi_field_set(p, len, &k, &f, ~want));
            DQ_CHECK(dqi_field_get(p, len, &k, &f, &back));
            DQ_EQ(back, ~want & (UINT64_MAX >> (64 - width)));
            DQ_CHECK(dqi_field_set(p, len, &k, &f, want));
            DQ_EQ_BYTES(p, buf, len);
            free(p);
        }
    }
}

static const dq_field *named(const char *name) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(t[i].name, name) == 0) return &t[i].field;
    dq_failed(__FILE__, __LINE__, name);
    return &t[0].field;
}

// Compares a named field with the frame's description; absent: the packet hasn't got it.
static void expect(const char *name, bool present, uint64_t want, const uint8_t *p, const dqi_pkt *k) {
    uint64_t v = 0;
    dq_case = name;
    DQ_EQ(dqi_field_get(p, k->len, k, named(name), &v), present);
    if (present) DQ_EQ(v, want);
}

static uint64_t be(const uint8_t *p, int n) {
    uint64_t v = 0;
    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

static void expect_ip(const frame *f, const uint8_t *p, const dqi_pkt *k) {
    bool v4 = f->ip == 4, v6 = f->ip == 6;
    expect("ip_proto", f->ip, f->proto, p, k);
    expect("ip_ttl", f->ip, f->ttl, p, k);
    expect("ip_tos", f->ip, f->tos, p, k);
    expect("ipv4_src", v4, be(f->src, 4), p, k);
    expect("ipv4_dst", v4, be(f->dst, 4), p, k);
    expect("ipv4_len", v4, 20 + f->ip_options + frame_l4_len(f) + f->payload_len, p, k);
    expect("ipv4_id", v4, 0x1234, p, k);
    expect("ipv6_src_hi", v6, be(f->src, 8), p, k);
    expect("ipv6_src_lo", v6, be(f->src + 8, 8), p, k);
    expect("ipv6_dst_hi", v6, be(f->dst, 8), p, k);
    expect("ipv6_dst_lo", v6, be(f->dst + 8, 8), p, k);
}

static void names_mean_what_they_say(void) {
    uint64_t seed = 13;
    uint8_t buf[FRAME_MAX];
    for (uint32_t i = 0; i < 5000; i++) {
        frame f;
        frame_random(&seed, false, &f);
        uint32_t len = frame_write(&f, buf);
        uint8_t *p = dq_exact(buf, len);
        dqi_pkt k;
        dqi_parse(p, len, &k);
        bool udp = frame_ports(&f) && f.proto == 17, tcp = frame_ports(&f) && f.proto == 6;
        expect("flow_id", false, 0, p, &k);
        expect("rx_time", false, 0, p, &k);
        expect("index", false, 0, p, &k);
        k.has_meta = DQI_HAS_FLOW_ID | DQI_HAS_INDEX | DQI_HAS_RX_TIME;
        k.flow_id = 5;
        k.index = i;
        k.rx_time_ns = -7;
        expect("flow_id", true, 5, p, &k);
        expect("index", true, i, p, &k);
        expect("rx_time", true, (uint64_t)-7, p, &k);
        expect("len", true, len, p, &k);
        expect("payload_len", true, f.payload_len, p, &k);
        expect("eth_dst", true, be(f.eth_dst, 6), p, &k);
        expect("eth_src", true, be(f.eth_src, 6), p, &k);
        expect("ethertype", true, f.ip == 4 ? 0x0800 : f.ip == 6 ? 0x86dd : f.ethertype, p, &k);
        expect("vlan_id", f.n_vlans, f.tci[0] & 0xfff, p, &k);
        expect("vlan_pcp", f.n_vlans, f.tci[0] >> 13, p, &k);
        expect("port", udp || tcp, f.dport, p, &k);
        expect("src_port", udp || tcp, f.sport, p, &k);
        expect("udp_src", udp, f.sport, p, &k);
        expect("udp_dst", udp, f.dport, p, &k);
        expect("udp_len", udp, 8 + f.payload_len, p, &k);
        expect("tcp_src", tcp, f.sport, p, &k);
        expect("tcp_dst", tcp, f.dport, p, &k);
        expect("tcp_seq", tcp, 0, p, &k);
        expect("tcp_flags", tcp, 0, p, &k);
        expect_ip(&f, p, &k);
        free(p);
    }
}

// Every named field reads back what was written, and only metadata refuses.
static void names_can_be_written(void) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    for (int ip = 4; ip <= 6; ip += 2) {
        for (uint32_t i = 0; i < n; i++) {
            frame f = {.ip = ip, .proto = 17, .n_vlans = 1, .payload_len = 20};
            uint8_t p[FRAME_MAX];
            uint32_t len = frame_write(&f, p);
            dqi_pkt k;
            dqi_parse(p, len, &k);
            k.has_meta = DQI_HAS_FLOW_ID | DQI_HAS_INDEX | DQI_HAS_RX_TIME;
            uint64_t v, want = 0x5aa5123456789abcull & (~0ull >> (64 - t[i].field.bit_width));
            dq_case = t[i].name;
            bool has = dqi_field_get(p, len, &k, &t[i].field, &v);
            bool meta = t[i].field.base == DQ_BASE_META && t[i].field.meta <= DQ_META_PAYLOAD_LEN;
            DQ_EQ(dqi_field_set(p, len, &k, &t[i].field, want), has && !meta);
            if (!has || meta) continue;
            DQ_CHECK(dqi_field_get(p, len, &k, &t[i].field, &v));
            DQ_EQ(v, want);
        }
    }
}

static void payload_queues_have_no_headers(void) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    uint8_t p[64] = {0x12, 0x34};
    dqi_pkt k;
    dqi_parse_payload(sizeof p, &k);
    uint64_t v = 0;
    for (uint32_t i = 0; i < n; i++) {
        bool meta = strcmp(t[i].name, "len") == 0 || strcmp(t[i].name, "payload_len") == 0;
        dq_case = t[i].name;
        DQ_EQ(dqi_field_get(p, sizeof p, &k, &t[i].field, &v), meta);
    }
    DQ_CHECK(dqi_field_get(p, sizeof p, &k, &(dq_field){.base = DQ_BASE_PAYLOAD, .bit_width = 16}, &v));
    DQ_EQ(v, 0x1234);
    DQ_CHECK(!dqi_field_get(p, sizeof p, &k, &(dq_field){.base = DQ_BASE_L3, .bit_width = 16}, &v));
    DQ_CHECK(!dqi_field_get(p, sizeof p, &k, &(dq_field){.base = DQ_BASE_L4, .bit_width = 16}, &v));
}

static void payload_fields_stay_out_of_padding(void) {
    frame f = {.ip = 4, .proto = 17, .payload_len = 4, .padding = 14};
    uint8_t p[FRAME_MAX];
    uint32_t len = frame_write(&f, p);
    dqi_pkt k;
    dqi_parse(p, len, &k);
    uint64_t v;
    DQ_CHECK(dqi_field_get(p, len, &k, &(dq_field){.base = DQ_BASE_PAYLOAD, .bit_width = 32}, &v));
    DQ_CHECK(!dqi_field_get(p, len, &k,
                            &(dq_field){.base = DQ_BASE_PAYLOAD, .bit_width = 8, .bit_offset = 32}, &v));
    DQ_CHECK(!dqi_field_get(
        p, len, &k, &(dq_field){.base = DQ_BASE_PAYLOAD, .bit_width = 8, .bit_offset = UINT32_MAX}, &v));
    DQ_CHECK(dqi_field_get(p, len, &k, &(dq_field){.bit_width = 8, .bit_offset = 8 * (len - 1)}, &v));
}

typedef struct refusal {
    const char *text;
    dq_field field;
} refusal;

static void refuses_bad_fields(void) {
    static const refusal cases[] = {
        {"field: unknown base 5", {.base = DQ_BASE_COUNT, .bit_width = 8}},
        {"field: unknown metadata 0", {.base = DQ_BASE_META, .bit_width = 8}},
        {"field: unknown metadata 99", {.base = DQ_BASE_META, .meta = 99, .bit_width = 8}},
        {"field: unknown metadata 1", {.base = DQ_BASE_L3, .meta = 1, .bit_width = 8}},
        {"field: bit_width 0 is outside 1..64", {.base = DQ_BASE_L3}},
        {"field: bit_width 65 is outside 1..64", {.bit_width = 65}},
        {"field: unknown flags 0x84", {.bit_width = 8, .flags = 0x84}},
        {"field: metadata has no byte order and no offset",
         {.base = DQ_BASE_META, .meta = DQ_META_LEN, .bit_width = 32, .flags = DQ_FIELD_LE}},
        {"field: metadata has no byte order and no offset",
         {.base = DQ_BASE_META, .meta = DQ_META_ETHERTYPE, .bit_width = 16, .bit_offset = 60}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dq_diag diag = {{0}};
        DQ_EQ(dqi_field_check(&cases[i].field, &diag), DQ_INVALID_PARAMETER);
        DQ_EQ_STR(diag.text, cases[i].text);
    }
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    for (uint32_t i = 0; i < n; i++)
        DQ_EQ(dqi_field_check(&t[i].field, NULL), DQ_OK);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(any_alignment);
    DQ_RUN(little_endian);
    DQ_RUN(little_bits);
    DQ_RUN(names_mean_what_they_say);
    DQ_RUN(names_can_be_written);
    DQ_RUN(payload_queues_have_no_headers);
    DQ_RUN(payload_fields_stay_out_of_padding);
    DQ_RUN(refuses_bad_fields);
    return dq_done();
}
