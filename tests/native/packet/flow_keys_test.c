// flow_keys_test.c: a rule asks for all that its match specifies. Each key of a match, alone and with all
// others that go with it: the frame that it describes is taken, one that differs in one bit of that key is
// not. Rules stand alone, among others of one shape (a hash table, a map of ports), and in a changed table.
#include "frames.h"

#include "packet/flow_table.h"

enum { MOST = 700, OTHERS = 24, MINE = 5, THEIRS = 9 };

typedef struct sample {
    uint8_t bytes[MOST * FRAME_MAX];
    uint64_t off[MOST];
    uint32_t len[MOST], n;
    bool hit[MOST];
} sample;

static sample all;

static void add(frame f, bool hit) {
    if (all.n == MOST) exit(1);
    all.off[all.n] = (uint64_t)all.n * FRAME_MAX;
    all.len[all.n] = frame_write(&f, all.bytes + all.off[all.n]);
    all.hit[all.n++] = hit;
}

// ---- keys -------------------------------------------------------------------------------------------------

static uint32_t addr4(const uint8_t *a) {
    return (uint32_t)a[0] << 24 | (uint32_t)a[1] << 16 | (uint32_t)a[2] << 8 | a[3];
}

// The match that describes f. Prefixes of 20 and 76 bits, `width` ports more than one.
static dq_match match_of(const frame *f, uint32_t set, uint32_t width) {
    dq_match m = {.set = set,
                  .ethertype = f->ethertype,
                  .vlan_id = f->tci[0] & 0xfff,
                  .ip_proto = f->proto,
                  .ipv4_src = addr4(f->src),
                  .ipv4_dst = addr4(f->dst),
                  .ipv4_src_mask = 0xfffff000,
                  .ipv4_dst_mask = 0xffffffff,
                  .ipv4_len = (uint16_t)(20 + frame_l4_len(f) + f->payload_len),
                  .ipv6_src_prefix = 76,
                  .ipv6_dst_prefix = 128,
                  .flex_udp_dst = f->dport,
                  .flex_offset = 4,
                  .flex_mask = 0xffffff00,
                  .flex_val = addr4(f->payload + 4) & 0xffffff00,
                  .ecpri_type = f->payload[1],
                  .ecpri_id = (uint16_t)(f->payload[4] << 8 | f->payload[5])};
    m.udp_src = m.tcp_src = (dq_port_range){f->sport, (uint16_t)(f->sport + width)};
    m.udp_dst = m.tcp_dst = (dq_port_range){f->dport, (uint16_t)(f->dport + width)};
    memcpy(m.eth_src, f->eth_src, 6);
    memcpy(m.eth_dst, f->eth_dst, 6);
    memcpy(m.ipv6_src, f->src, 16);
    memcpy(m.ipv6_dst, f->dst, 16);
    m.ipv4_src &= m.ipv4_src_mask;
    return m;
}

// Flips each of the n bits from p on, the first `asked` of which the rule asks for.
static void flip(frame *f, uint8_t *p, uint32_t n, uint32_t asked) {
    for (uint32_t i = 0; i < n; i++) {
        p[i / 8] ^= (uint8_t)(0x80 >> i % 8);
        add(*f, i >= asked);
        p[i / 8] ^= (uint8_t)(0x80 >> i % 8);
    }
}

static void flip16(frame *f, uint16_t *v, uint32_t first) {
    for (uint32_t i = first; i < 16; i++) {
        *v ^= (uint16_t)(0x8000 >> i);
        add(*f, false);
        *v ^= (uint16_t)(0x8000 >> i);
    }
}

// Ports at both ends of the range, and outside it.
static void flip_port(frame *f, uint16_t *port, uint32_t width) {
    uint32_t lo = *port;
    for (uint32_t v = lo - 2; v <= lo + width + 2; v++) {
        *port = (uint16_t)v;
        add(*f, v >= lo && v <= lo + width);
    }
    *port = (uint16_t)lo;
    for (uint32_t i = 0; i < 11; i++) { // by more than the range is wide
        *port ^= (uint16_t)(0x8000 >> i);
        add(*f, false);
        *port ^= (uint16_t)(0x8000 >> i);
    }
}

static void flip_vlan(frame *f) {
    flip16(f, &f->tci[0], 4);
    f->tci[0] ^= 0xe000; // another priority
    add(*f, true);
    f->n_vlans = 0;
    add(*f, false);
}

static void flip_len(frame *f) {
    f->payload_len++;
    add(*f, false);
    f->payload_len -= 2;
    add(*f, false);
}

static void flip_flex(frame *f) {
    flip(f, f->payload + 4, 32, 24);
    flip16(f, &f->dport, 0);
    f->payload_len = 7;
    add(*f, false);
}

// Adds frames that differ from f in this key alone.
static void vary(frame f, uint32_t key, uint32_t width) {
    switch (key) {
    case DQ_MATCH_ETH_SRC:
        return flip(&f, f.eth_src, 48, 48);
    case DQ_MATCH_ETH_DST:
        return flip(&f, f.eth_dst, 48, 48);
    case DQ_MATCH_ETHERTYPE:
        return flip16(&f, &f.ethertype, 0);
    case DQ_MATCH_VLAN_ID:
        return flip_vlan(&f);
    case DQ_MATCH_IP_PROTO:
        return flip(&f, &f.proto, 8, 8);
    case DQ_MATCH_IPV4_SRC:
        return flip(&f, f.src, 32, 20);
    case DQ_MATCH_IPV4_DST:
        return flip(&f, f.dst, 32, 32);
    case DQ_MATCH_IPV4_LEN:
        return flip_len(&f);
    case DQ_MATCH_IPV6_SRC:
        return flip(&f, f.src, 128, 76);
    case DQ_MATCH_IPV6_DST:
        return flip(&f, f.dst, 128, 128);
    case DQ_MATCH_UDP_SRC:
    case DQ_MATCH_TCP_SRC:
        return flip_port(&f, &f.sport, width);
    case DQ_MATCH_UDP_DST:
    case DQ_MATCH_TCP_DST:
        return flip_port(&f, &f.dport, width);
    case DQ_MATCH_FLEX:
        return flip_flex(&f);
    case DQ_MATCH_ECPRI_TYPE:
        return flip(&f, f.payload + 1, 8, 8);
    case DQ_MATCH_ECPRI_ID:
        return flip(&f, f.payload + 4, 16, 16);
    default:
        DQ_CHECK(!"a key without frames");
    }
}

// ---- tables -----------------------------------------------------------------------------------------------

// Another rule of m's shape that asks for what no frame here has: two bits of each key differ, or more.
static dq_rule other(dq_match m, uint32_t k) {
    uint8_t b = (uint8_t)(0xc0 | k);
    m.eth_src[2] ^= b;
    m.eth_dst[3] ^= b;
    m.ethertype ^= 0xc00 | k;
    m.vlan_id ^= 0xc00 | k;
    m.ip_proto ^= b;
    m.ipv4_src ^= (uint32_t)b << 16;
    m.ipv4_dst ^= b;
    m.ipv4_len += 300 + k;
    m.ipv6_src[4] ^= b;
    m.ipv6_dst[15] ^= b;
    m.flex_val ^= (uint32_t)b << 16;
    m.ecpri_id ^= 0xc00 | k;
    if (!(m.set & DQ_MATCH_ECPRI_ID)) m.ecpri_type ^= b;
    dq_port_range *const ranges[] = {&m.udp_src, &m.udp_dst, &m.tcp_src, &m.tcp_dst};
    for (int i = 0; i < 4; i++) {
        ranges[i]->lo += 100 + 32 * k;
        ranges[i]->hi += 100 + 32 * k;
    }
    if (m.set & DQ_MATCH_FLEX) m.udp_dst = (dq_port_range){m.flex_udp_dst, m.flex_udp_dst};
    return (dq_rule){.match = m, .flow_id = 100 + k, .order = 100 + k, .n_queues = 1, .queues = {THEIRS}};
}

// Rules of other shapes, so that frames walk past many steps.
static dq_rule stranger(uint32_t k) {
    static const uint32_t sets[] = {DQ_MATCH_ETH_SRC | DQ_MATCH_ETHERTYPE, DQ_MATCH_IPV4_LEN,
                                    DQ_MATCH_ETH_DST, DQ_MATCH_IPV6_DST, DQ_MATCH_ECPRI_TYPE};
    frame no_peer = {.eth_src = {0xff, 0xff, 0xff},
                     .eth_dst = {0xfe, 0xfe, 0xfe},
                     .ethertype = 0x9000,
                     .dst = {0xfd, 0xfd, 0xfd, 0xfd},
                     .payload = {0, 0xf7},
                     .payload_len = 1};
    dq_match m = match_of(&no_peer, sets[k % 5], 0);
    return (dq_rule){.match = m, .flow_id = 200 + k, .order = 200 + k, .n_queues = 1, .queues = {THEIRS}};
}

static void ask(const char *how, const dqi_flow_table *t) {
    static char name[128];
    static uint32_t flow[MOST];
    static uint16_t queue[MOST];
    const char *was = dq_case;
    snprintf(name, sizeof name, "%s, %s", was, how);
    dq_case = name;
    dqi_flow_table_classify(t, all.bytes, all.off, all.len, all.n, flow, queue);
    for (uint32_t i = 0; i < all.n; i++) {
        DQ_EQ(queue[i], all.hit[i] ? MINE : DQI_NO_QUEUE);
        DQ_EQ(flow[i], all.hit[i] ? 1 : 0);
    }
    dq_case = was;
}

static dqi_flow_table *build(const dq_rule *rules, uint32_t n) {
    dqi_flow_table *t = NULL;
    dq_diag d = {{0}};
    DQ_EQ(dqi_flow_table_build(rules, n, &t, &d), DQ_OK);
    DQ_EQ_STR(d.text, "");
    if (!t) exit(1);
    return t;
}

// A table that was made, and one rule more.
static dqi_flow_table *change(dqi_flow_table *t, const dq_rule *more, uint32_t n) {
    dqi_flow_table *next = NULL;
    DQ_EQ(dqi_flow_table_change(t, NULL, 0, more, n, &next, NULL), DQ_OK);
    dqi_flow_table_free(t);
    if (!next) exit(1);
    DQ_CHECK(next->base != NULL);
    return next;
}

// Asks tables of all kinds in which m's rule is.
static void ask_all(dq_match m) {
    dq_rule rules[1 + OTHERS] = {{.match = m, .flow_id = 1, .order = 50, .n_queues = 1, .queues = {MINE}}};
    dqi_flow_table *t = build(rules, 1);
    ask("alone", t);
    dqi_flow_table_free(t);
    for (uint32_t k = 0; k < OTHERS; k++)
        rules[1 + k] = other(m, k);
    t = build(rules, 2);
    ask("of two", t);
    dqi_flow_table_free(t);
    t = build(rules, 1 + OTHERS);
    ask("of one shape", t);
    dqi_flow_table_free(t);
    ask("added to a table", t = change(build(rules + 1, OTHERS), rules, 1));
    dqi_flow_table_free(t);
    dq_rule last = rules[OTHERS];
    ask("in a table that was added to", t = change(build(rules, OTHERS), &last, 1));
    dqi_flow_table_free(t);
    for (uint32_t k = 0; k < 5; k++)
        rules[1 + k] = stranger(k);
    t = build(rules, 6);
    ask("among others", t);
    dqi_flow_table_free(t);
}

// ---- cases ------------------------------------------------------------------------------------------------

static frame described(int ip, uint8_t proto, int n_vlans, uint16_t ethertype) {
    uint64_t seed = 5;
    frame f = {.ip = ip,
               .proto = proto,
               .n_vlans = n_vlans,
               .tci = {0x2123},
               .ethertype = ethertype,
               .sport = 4100,
               .dport = 7148,
               .payload_len = 40};
    fill_random(&seed, f.eth_dst, 6);
    fill_random(&seed, f.eth_src, 6);
    fill_random(&seed, f.src, 16);
    fill_random(&seed, f.dst, 16);
    fill_random(&seed, f.payload, sizeof f.payload);
    f.payload[1] = 2;
    return f;
}

// Of these keys each alone, each with all others, and the range of ports. Some go along without frames.
static void keys(const char *name, frame f, uint32_t with, const uint32_t *list, uint32_t n) {
    uint32_t set = with;
    for (uint32_t k = 0; k < n; k++)
        set |= list[k];
    for (uint32_t k = 0; k < n; k++)
        for (int together = 0; together < 2; together++)
            for (uint32_t width = 0; width <= 20; width += 20) {
                char text[96];
                snprintf(text, sizeof text, "%s: key %x%s, width %u", name, list[k],
                         together ? " of all" : "", width);
                dq_case = text;
                all.n = 0;
                add(f, true);
                vary(f, list[k], width);
                bool type = !together && list[k] == DQ_MATCH_ECPRI_ID;
                uint32_t asked = together ? set : with | list[k] | (type ? DQ_MATCH_ECPRI_TYPE : 0);
                dq_match m = match_of(&f, asked, width);
                if (m.set & DQ_MATCH_FLEX) m.udp_dst = (dq_port_range){f.dport, f.dport};
                ask_all(m);
            }
}

#define KEYS(name, f, with, ...)                                                                             \
    keys(name, f, with, (const uint32_t[]){__VA_ARGS__}, sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t))

static void of_udp(void) {
    for (int tags = 0; tags < 2; tags++) {
        frame f = described(4, 17, tags, 0);
        KEYS(tags ? "udp, tagged" : "udp", f, 0, DQ_MATCH_ETH_SRC, DQ_MATCH_ETH_DST, DQ_MATCH_IPV4_SRC,
             DQ_MATCH_IPV4_DST, DQ_MATCH_IPV4_LEN, DQ_MATCH_UDP_SRC, DQ_MATCH_UDP_DST);
        KEYS("flex", f, 0, DQ_MATCH_FLEX, DQ_MATCH_ETH_SRC);
    }
    KEYS("udp, its tag", described(4, 17, 1, 0), 0, DQ_MATCH_VLAN_ID, DQ_MATCH_UDP_DST);
}

static void of_tcp(void) {
    KEYS("tcp", described(4, 6, 0, 0), 0, DQ_MATCH_IPV4_SRC, DQ_MATCH_IPV4_DST, DQ_MATCH_TCP_SRC,
         DQ_MATCH_TCP_DST);
}

static void of_ipv6(void) {
    KEYS("udp over ipv6", described(6, 17, 0, 0), 0, DQ_MATCH_IPV6_SRC, DQ_MATCH_IPV6_DST, DQ_MATCH_UDP_SRC,
         DQ_MATCH_UDP_DST);
    KEYS("tcp over ipv6", described(6, 6, 1, 0), 0, DQ_MATCH_IPV6_SRC, DQ_MATCH_IPV6_DST, DQ_MATCH_TCP_SRC,
         DQ_MATCH_VLAN_ID);
}

static void of_others(void) {
    KEYS("protocol", described(4, 47, 0, 0), 0, DQ_MATCH_IP_PROTO, DQ_MATCH_IPV4_DST);
    KEYS("type", described(0, 0, 0, 0x88b5), 0, DQ_MATCH_ETHERTYPE, DQ_MATCH_ETH_DST);
    KEYS("ecpri", described(0, 0, 0, 0xaefe), DQ_MATCH_ECPRI, DQ_MATCH_ECPRI_TYPE, DQ_MATCH_ECPRI_ID);
    KEYS("ecpri over udp", described(4, 17, 0, 0), DQ_MATCH_ECPRI | DQ_MATCH_UDP_DST, DQ_MATCH_ECPRI_TYPE,
         DQ_MATCH_ECPRI_ID);
}

// The same ports by the other transport, the same addresses by none.
static void transports_differ(void) {
    frame udp = described(4, 17, 0, 0), tcp = described(4, 6, 0, 0), none = described(4, 47, 0, 0);
    frame v6 = described(6, 17, 0, 0);
    for (int k = 0; k < 2; k++) {
        all.n = 0;
        add(udp, k == 0);
        add(tcp, k == 1);
        add(none, false);
        add(v6, k == 0);
        ask_all(match_of(&udp, k == 0 ? DQ_MATCH_UDP_DST : DQ_MATCH_TCP_DST, 0));
    }
    all.n = 0;
    add(described(0, 0, 0, 0xaefe), true);
    frame plain = described(0, 0, 0, 0x88b5);
    add(plain, false);
    ask_all(match_of(&plain, DQ_MATCH_ECPRI, 0));
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(of_udp);
    DQ_RUN(of_tcp);
    DQ_RUN(of_ipv6);
    DQ_RUN(of_others);
    DQ_RUN(transports_differ);
    return dq_done();
}
