// match.c: checks matches, compiles them to masked words, and builds the key of a parsed frame.
#include "core/err.h"
#include "packet/match_key.h"

static bool empty(dq_port_range r) { return r.lo > r.hi; }
static bool in_range(dq_port_range r, uint64_t port) { return port >= r.lo && port <= r.hi; }
static bool any_port(dq_port_range r) { return r.lo == 0 && r.hi == 0xffff; }

static int bad(dq_diag *diag, const char *what) {
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "match: %s", what);
}

enum {
    UDP_PORTS = DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST,
    TCP_PORTS = DQ_MATCH_TCP_SRC | DQ_MATCH_TCP_DST,
    IPV4_BITS = DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_IPV4_LEN,
    IPV6_BITS = DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST,
    ECPRI_LAST_WITH_ID = 2,
    ECPRI_BITS = DQ_MATCH_ECPRI | DQ_MATCH_ECPRI_TYPE | DQ_MATCH_ECPRI_ID,
};

static int check_members(const dq_match *m, dq_diag *diag) {
    if (m->set & DQ_MATCH_UDP_SRC && empty(m->udp_src)) return bad(diag, "udp_src: the range is empty");
    if (m->set & DQ_MATCH_UDP_DST && empty(m->udp_dst)) return bad(diag, "udp_dst: the range is empty");
    if (m->set & DQ_MATCH_TCP_SRC && empty(m->tcp_src)) return bad(diag, "tcp_src: the range is empty");
    if (m->set & DQ_MATCH_TCP_DST && empty(m->tcp_dst)) return bad(diag, "tcp_dst: the range is empty");
    if (m->set & DQ_MATCH_VLAN_ID && m->vlan_id > 4095) return bad(diag, "vlan_id: outside 0..4095");
    if (m->set & DQ_MATCH_IPV6_SRC && m->ipv6_src_prefix > 128)
        return bad(diag, "ipv6_src: prefix outside 0..128");
    if (m->set & DQ_MATCH_IPV6_DST && m->ipv6_dst_prefix > 128)
        return bad(diag, "ipv6_dst: prefix outside 0..128");
    if (m->set & DQ_MATCH_ECPRI_ID && !(m->set & DQ_MATCH_ECPRI_TYPE))
        return bad(diag, "ecpri: an id needs a msg_type, which determines the position of the id");
    if (m->set & DQ_MATCH_ECPRI_ID && m->ecpri_type > ECPRI_LAST_WITH_ID)
        return bad(diag, "ecpri: only messages of type 0, 1 and 2 carry an id");
    if (m->set & DQ_MATCH_FLEX && m->set & DQ_MATCH_UDP_DST && m->flex_udp_dst != 0 &&
        !in_range(m->udp_dst, m->flex_udp_dst))
        return bad(diag, "udp_dst: the flex item's port is outside the range");
    return DQ_OK;
}

int dqi_match_check(const dq_match *m, dq_diag *diag) {
    uint32_t set = m->set;
    if (set & ~(uint32_t)DQ_MATCH_ALL_BITS) return bad(diag, "unknown bits in set");
    if (set & (UDP_PORTS | DQ_MATCH_FLEX) && set & TCP_PORTS)
        return bad(diag, "UDP and TCP conditions exclude each other");
    if (set & IPV4_BITS && set & IPV6_BITS) return bad(diag, "IPv4 and IPv6 conditions exclude each other");
    if (set & ECPRI_BITS && set & TCP_PORTS) return bad(diag, "eCPRI is not carried over TCP");
    return check_members(m, diag);
}

static void need(dqi_cond *c, int word, uint64_t mask, uint64_t value) {
    if (mask == 0) return; // any value: words and masks must be canonical for grouping
    c->words |= 1u << word;
    c->mask.w[word] |= mask;
    c->value.w[word] |= value & mask;
}

static void need_has(dqi_cond *c, uint64_t has) { need(c, KEY_L4, has << 32, has << 32); }

static uint64_t mac48(const uint8_t *b) { return (uint64_t)dqi_be16(b) << 32 | dqi_be32(b + 2); }

static uint64_t prefix_mask(uint32_t bits) { return bits == 0 ? 0 : bits >= 64 ? ~0ull : ~(~0ull >> bits); }

static void need_ipv6(dqi_cond *c, int hi, const uint8_t *addr, uint32_t prefix) {
    need_has(c, DQ_HAS_IPV6);
    need(c, hi, prefix_mask(prefix), dqi_be64(addr));
    if (prefix > 64) need(c, hi + 1, prefix_mask(prefix - 64), dqi_be64(addr + 8));
}

// A range of one port becomes a masked value, the full range needs no condition, any other remains a range.
static bool need_port(dqi_cond *c, dq_port_range r, int shift) {
    if (r.lo == r.hi) need(c, KEY_L4, 0xffffull << shift, (uint64_t)r.lo << shift);
    return r.lo != r.hi && !any_port(r);
}

static void make_ports(const dq_match *m, dqi_cond *c) {
    bool udp = m->set & UDP_PORTS, src = m->set & (DQ_MATCH_UDP_SRC | DQ_MATCH_TCP_SRC);
    bool dst = m->set & (DQ_MATCH_UDP_DST | DQ_MATCH_TCP_DST);
    if (!src && !dst) return;
    need_has(c, udp ? DQ_HAS_UDP : DQ_HAS_TCP);
    c->src = udp ? m->udp_src : m->tcp_src;
    c->dst = udp ? m->udp_dst : m->tcp_dst;
    c->src_range = src && need_port(c, c->src, 16);
    c->dst_range = dst && need_port(c, c->dst, 0);
}

static void make_ip(const dq_match *m, dqi_cond *c) {
    if (m->set & IPV4_BITS) need_has(c, DQ_HAS_IPV4);
    if (m->set & DQ_MATCH_IPV4_SRC)
        need(c, KEY_IPV4, (uint64_t)m->ipv4_src_mask << 32, (uint64_t)m->ipv4_src << 32);
    if (m->set & DQ_MATCH_IPV4_DST) need(c, KEY_IPV4, m->ipv4_dst_mask, m->ipv4_dst);
    if (m->set & DQ_MATCH_IPV4_LEN) need(c, KEY_L4, 0xffffull << 48, (uint64_t)m->ipv4_len << 48);
    if (m->set & DQ_MATCH_IPV6_SRC) need_ipv6(c, KEY_IPV6_SRC_HI, m->ipv6_src, m->ipv6_src_prefix);
    if (m->set & DQ_MATCH_IPV6_DST) need_ipv6(c, KEY_IPV6_DST_HI, m->ipv6_dst, m->ipv6_dst_prefix);
}

// eCPRI has no assigned UDP port: a match with a UDP port means eCPRI over UDP, any other the EtherType.
static void make_ecpri(const dq_match *m, dqi_cond *c) {
    uint64_t over = m->set & UDP_PORTS ? KEY_ECPRI_UDP : KEY_ECPRI_ETH;
    need(c, KEY_ECPRI, 0xffull << 32, over << 32);
    if (m->set & DQ_MATCH_ECPRI_TYPE) need(c, KEY_ECPRI, 0xffull << 16, (uint64_t)m->ecpri_type << 16);
    if (m->set & DQ_MATCH_ECPRI_ID)
        need(c, KEY_ECPRI, KEY_ECPRI_HAS_ID | 0xffff, KEY_ECPRI_HAS_ID | m->ecpri_id);
}

static void make_flex(const dq_match *m, dqi_cond *c) {
    c->flex = true;
    c->flex_offset = m->flex_offset;
    c->flex_mask = m->flex_mask;
    c->flex_val = m->flex_val & m->flex_mask;
    need_has(c, DQ_HAS_UDP);
    if (m->flex_udp_dst != 0) need(c, KEY_L4, 0xffff, m->flex_udp_dst);
}

void dqi_cond_make(const dq_match *m, dqi_cond *c) {
    *c = (dqi_cond){0};
    if (m->set & DQ_MATCH_ETH_DST) need(c, KEY_ETH_DST, ~0ull << 16, mac48(m->eth_dst) << 16);
    if (m->set & DQ_MATCH_ETH_SRC) need(c, KEY_ETH_SRC, ~0ull << 16, mac48(m->eth_src) << 16);
    if (m->set & DQ_MATCH_ETHERTYPE) need(c, KEY_ETH_DST, 0xffff, m->ethertype);
    if (m->set & (DQ_MATCH_ETH_DST | DQ_MATCH_ETH_SRC | DQ_MATCH_ETHERTYPE)) need_has(c, DQ_HAS_ETH);
    if (m->set & (DQ_MATCH_VLAN_ID | DQ_MATCH_TAGGED)) need_has(c, DQ_HAS_VLAN);
    if (m->set & DQ_MATCH_VLAN_ID) need(c, KEY_ETH_SRC, 0xfff, m->vlan_id);
    if (m->set & DQ_MATCH_IP_PROTO) need(c, KEY_L4, 0xffull << 40, (uint64_t)m->ip_proto << 40);
    make_ip(m, c);
    make_ports(m, c);
    if (m->set & ECPRI_BITS) make_ecpri(m, c);
    if (m->set & DQ_MATCH_FLEX) make_flex(m, c);
}

// The common header is 4 bytes: revision, message type, payload size; the id of types 0 to 2 follows
// (eCPRI 2.0, 3.1.3).
static uint64_t ecpri_word(const uint8_t *p, const dqi_pkt *k) {
    uint64_t over = k->ethertype == DQI_TYPE_ECPRI ? KEY_ECPRI_ETH
                    : k->has & DQ_HAS_UDP          ? KEY_ECPRI_UDP
                                                   : KEY_ECPRI_NONE;
    if (over == KEY_ECPRI_NONE || k->payload == DQI_NONE || k->payload_len < 4) return 0;
    const uint8_t *e = p + k->payload;
    uint64_t w = over << 32 | (uint64_t)e[1] << 16;
    bool has_id = e[1] <= ECPRI_LAST_WITH_ID && k->payload_len >= 6;
    return has_id ? w | KEY_ECPRI_HAS_ID | dqi_be16(e + 4) : w;
}

static uint64_t l4_word(const uint8_t *p, const dqi_pkt *k) {
    uint64_t w = (uint64_t)k->has << 32;
    if (k->has & (DQ_HAS_IPV4 | DQ_HAS_IPV6)) w |= (uint64_t)k->ip_proto << 40;
    if (k->has & DQ_HAS_IPV4) w |= (uint64_t)dqi_be16(p + k->l3 + 2) << 48;
    if (k->has & (DQ_HAS_UDP | DQ_HAS_TCP)) w |= dqi_be32(p + k->l4);
    return w;
}

void dqi_key_make(const uint8_t *p, const dqi_pkt *k, uint32_t words, dqi_key *key) {
    key->w[KEY_L4] = l4_word(p, k);
    if (words & 1u << KEY_ETH_DST)
        key->w[KEY_ETH_DST] = k->has & DQ_HAS_ETH ? mac48(p) << 16 | k->ethertype : 0;
    if (words & 1u << KEY_ETH_SRC)
        key->w[KEY_ETH_SRC] = k->has & DQ_HAS_ETH ? mac48(p + 6) << 16 | k->vlan_tci : 0;
    if (words & 1u << KEY_IPV4) key->w[KEY_IPV4] = k->has & DQ_HAS_IPV4 ? dqi_be64(p + k->l3 + 12) : 0;
    for (uint32_t i = 0; i < 4; i++) {
        if (!(words & 1u << (KEY_IPV6_SRC_HI + i))) continue;
        key->w[KEY_IPV6_SRC_HI + i] = k->has & DQ_HAS_IPV6 ? dqi_be64(p + k->l3 + 8 + 8 * i) : 0;
    }
    if (words & 1u << KEY_ECPRI) key->w[KEY_ECPRI] = ecpri_word(p, k);
}

bool dqi_cond_extra(const dqi_cond *c, const uint8_t *p, const dqi_pkt *pkt, uint64_t l4_word) {
    if (c->src_range && !in_range(c->src, l4_word >> 16 & 0xffff)) return false;
    if (c->dst_range && !in_range(c->dst, l4_word & 0xffff)) return false;
    if (!c->flex) return true;
    if (pkt->payload == DQI_NONE || pkt->payload_len < c->flex_offset + 4u) return false;
    return (dqi_be32(p + pkt->payload + c->flex_offset) & c->flex_mask) == c->flex_val;
}

bool dqi_match_packet(const dq_match *m, const uint8_t *p, uint32_t len, const dqi_pkt *pkt) {
    if (len < pkt->len) return false; // not the packet that was parsed
    dqi_cond c;
    dqi_cond_make(m, &c);
    dqi_key key;
    dqi_key_make(p, pkt, c.words, &key);
    return dqi_cond_words(&c, &key) && dqi_cond_extra(&c, p, pkt, key.w[KEY_L4]);
}
