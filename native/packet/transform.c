// transform.c: pushes and pops VLAN tags and tunnels of one frame.
#include "packet/transform.h"
#include "core/dq_core.h"
#include "core/dq_ledger.h"
#include "core/err.h"
#include "packet/packet.h"
#include "packet/rss.h"

enum { PROTO_GRE = 47, VXLAN_LEN = 8, GRE_LEN = 4, NVGRE_LEN = 8, DONT_FRAGMENT = 0x4000 };
enum { GRE_SUM = 0x8000, GRE_KEY = 0x2000, GRE_SEQ = 0x1000, GRE_KNOWN = GRE_SUM | GRE_KEY | GRE_SEQ };
enum { FIRST_PRIVATE_PORT = 49152, PRIVATE_PORTS = 0x3fff, TYPE_QINQ_OLD = 0x9100 };

// ---- preparing --------------------------------------------------------------------------------------------

// Returns the bytes of the outer Ethernet and IP headers.
static uint32_t outer_len(bool ipv6) { return DQI_ETH_LEN + (ipv6 ? DQI_IPV6_LEN : DQI_IPV4_LEN); }

static void write_ipv4(uint8_t *ip, const dq_action *a, uint8_t proto) {
    ip[0] = 0x45;
    ip[1] = a->tos;
    dqi_put_be16(ip + 6, DONT_FRAGMENT);
    ip[8] = a->ttl;
    ip[9] = proto;
    dqi_put_be32(ip + 12, a->ipv4_src);
    dqi_put_be32(ip + 16, a->ipv4_dst);
}

static void write_ipv6(uint8_t *ip, const dq_action *a, uint8_t proto) {
    ip[0] = (uint8_t)(0x60 | a->tos >> 4);
    ip[1] = (uint8_t)(a->tos << 4);
    ip[6] = proto;
    ip[7] = a->ttl;
    memcpy(ip + 8, a->ipv6_src, 16);
    memcpy(ip + 24, a->ipv6_dst, 16);
}

// Writes Ethernet and IP without length and checksum; *sum as in dqi_act.
static void write_outer(uint8_t *h, const dq_action *a, uint32_t *sum) {
    uint8_t *ip = h + DQI_ETH_LEN, proto = a->tunnel == DQ_TUNNEL_VXLAN ? DQI_PROTO_UDP : PROTO_GRE;
    memcpy(h, a->eth_dst, 6);
    memcpy(h + 6, a->eth_src, 6);
    dqi_put_be16(h + 12, a->ipv6 ? DQI_TYPE_IPV6 : DQI_TYPE_IPV4);
    if (a->ipv6)
        write_ipv6(ip, a, proto);
    else
        write_ipv4(ip, a, proto);
    *sum = a->ipv6 ? dqi_csum_add(ip + 8, 32, proto) : dqi_csum_add(ip, DQI_IPV4_LEN, 0);
}

static uint32_t tunnel_len(int tunnel) {
    return tunnel == DQ_TUNNEL_VXLAN ? DQI_UDP_LEN + VXLAN_LEN
           : tunnel == DQ_TUNNEL_GRE ? GRE_LEN
                                     : NVGRE_LEN;
}

static void make_header(const dq_action *a, dqi_act *out) {
    uint8_t *h = out->header + outer_len(a->ipv6);
    write_outer(out->header, a, &out->ip_sum);
    out->header_len = outer_len(a->ipv6) + tunnel_len(a->tunnel);
    switch (a->tunnel) {
    case DQ_TUNNEL_VXLAN: // over IPv4 the UDP checksum is 0, as RFC 7348 recommends
        dqi_put_be16(h, a->udp_src);
        dqi_put_be16(h + 2, a->udp_dst);
        h[8] = DQI_VXLAN_HAS_VNI;
        dqi_put_be32(h + 12, a->id << 8);
        out->spread = a->udp_src == 0;
        break;
    case DQ_TUNNEL_GRE:
        dqi_put_be16(h + 2, a->protocol);
        break;
    case DQ_TUNNEL_NVGRE:
        dqi_put_be16(h, GRE_KEY);
        dqi_put_be16(h + 2, DQI_TYPE_TEB);
        dqi_put_be32(h + 4, a->id << 8 | a->flow_id);
        break;
    }
}

const char *dq_action_name(int kind) {
    static const char *const names[DQ_ACTS] = {
#define X(id, name) name,
        DQ_ACTION_ROWS(X)
#undef X
    };
    return kind >= 0 && kind < DQ_ACTS ? names[kind] : NULL;
}

static bool is_known(const dq_action *a) {
    bool tunnel = a->kind == DQ_ACT_ENCAP || a->kind == DQ_ACT_DECAP;
    return a->kind > DQ_ACT_NONE && a->kind < DQ_ACTS &&
           (!tunnel || (a->tunnel >= DQ_TUNNEL_VXLAN && a->tunnel <= DQ_TUNNEL_NVGRE && a->id < 1u << 24));
}

static void make_act(const dq_action *a, dqi_act *out) {
    *out = (dqi_act){.kind = a->kind,
                     .tunnel = a->tunnel,
                     .ipv6 = a->ipv6 != 0,
                     .tpid = a->tpid,
                     .tci = a->tci,
                     .protocol = a->tunnel == DQ_TUNNEL_NVGRE ? DQI_TYPE_TEB : a->protocol,
                     .udp_dst = a->udp_dst,
                     .id = a->id};
    if (a->kind == DQ_ACT_ENCAP || a->kind == DQ_ACT_DECAP) make_header(a, out);
}

int dqi_acts_make(const dq_action *actions, uint32_t n, dqi_acts *out, dq_diag *diag) {
    *out = (dqi_acts){.n = n};
    if (n > DQ_RULE_MAX_ACTIONS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%u actions, at most %d are possible", n,
                        DQ_RULE_MAX_ACTIONS);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_known(&actions[i]))
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "action %u is of no known kind", i + 1);
        dqi_act *a = &out->act[i];
        make_act(&actions[i], a);
        out->grows += a->kind == DQ_ACT_VLAN_PUSH ? DQI_TAG_LEN : a->kind == DQ_ACT_ENCAP ? a->header_len : 0;
        out->shrinks += a->kind == DQ_ACT_VLAN_POP ? DQI_TAG_LEN
                        : a->kind == DQ_ACT_DECAP  ? a->header_len
                                                   : 0;
    }
    if (out->grows > DQ_HEADROOM)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "its actions add %u bytes, at most %d are possible",
                        out->grows, DQ_HEADROOM);
    return DQ_OK;
}

// ---- VLAN -------------------------------------------------------------------------------------------------

static bool is_tag(uint16_t type) {
    return type == DQI_TYPE_VLAN || type == DQI_TYPE_QINQ || type == TYPE_QINQ_OLD;
}

uint32_t dqi_tags(const uint8_t *p, uint32_t len) {
    uint32_t n = 0;
    while (len >= DQI_ETH_LEN + DQI_TAG_LEN * (n + 1) && is_tag(dqi_be16(p + 12 + DQI_TAG_LEN * n)))
        n++;
    return n;
}

static bool is_tagged(const dqi_frame *f) { return f->len >= DQI_ETH_LEN && is_tag(dqi_be16(f->p + 12)); }

static void move_macs(uint8_t *to, const uint8_t *from) {
    uint8_t macs[12];
    memcpy(macs, from, sizeof macs);
    memcpy(to, macs, sizeof macs);
}

static void move_start(dqi_frame *f, int32_t by) {
    f->p += by;
    f->len -= (uint32_t)by;
    f->room += (uint32_t)by;
}

static int vlan_push(const dqi_act *a, dqi_frame *f) {
    if (f->len < DQI_ETH_LEN) return DQ_DROP_BAD_TUNNEL;
    if (f->room < DQI_TAG_LEN) return DQ_DROP_TOO_LONG;
    move_start(f, -DQI_TAG_LEN);
    move_macs(f->p, f->p + DQI_TAG_LEN);
    dqi_put_be16(f->p + 12, a->tpid);
    dqi_put_be16(f->p + 14, a->tci);
    return DQI_DONE;
}

// Removes the outermost tag; a frame without a tag is unchanged.
static int vlan_pop(dqi_frame *f) {
    if (!is_tagged(f)) return DQI_DONE;
    if (f->len < DQI_ETH_LEN + DQI_TAG_LEN) return DQ_DROP_BAD_TUNNEL;
    move_macs(f->p + DQI_TAG_LEN, f->p);
    move_start(f, DQI_TAG_LEN);
    return DQI_DONE;
}

// ---- tunnels: push ----------------------------------------------------------------------------------------

// Returns the same port for all packets of a flow: a hash of addresses and ports, or of the MAC addresses.
static uint16_t source_port(const dqi_frame *f) {
    dqi_pkt k;
    dqi_parse(f->p, f->len, &k);
    uint32_t h = dqi_rss_hash(dqi_rss_default(), f->p, &k);
    if (h == 0) h = dqi_rss_bytes(dqi_rss_default(), f->p, 12);
    return (uint16_t)(FIRST_PRIVATE_PORT | ((h ^ h >> 14) & PRIVATE_PORTS));
}

// Completes the outer header of a frame of len bytes; `whole`: all of them are in this segment.
static void finish(const dqi_act *a, uint8_t *p, uint64_t len, bool whole) {
    uint8_t *ip = p + DQI_ETH_LEN, *udp = p + outer_len(a->ipv6);
    uint32_t l4_len = (uint32_t)len - outer_len(a->ipv6), ip_len = (uint32_t)len - DQI_ETH_LEN;
    if (a->tunnel == DQ_TUNNEL_VXLAN) dqi_put_be16(udp + 4, (uint16_t)l4_len);
    if (!a->ipv6) {
        dqi_put_be16(ip + 2, (uint16_t)ip_len);
        dqi_put_be16(ip + 10, dqi_csum_fold(a->ip_sum + ip_len));
        return;
    }
    dqi_put_be16(ip + 4, (uint16_t)l4_len);
    if (a->tunnel != DQ_TUNNEL_VXLAN || !whole) return; // 0 is allowed (RFC 6935)
    uint16_t sum = dqi_csum_fold(dqi_csum_add(udp, l4_len, a->ip_sum + l4_len));
    dqi_put_be16(udp + 6, sum ? sum : 0xffff);
}

static int encap(const dqi_act *a, dqi_frame *f) {
    if (f->len < DQI_ETH_LEN) return DQ_DROP_BAD_TUNNEL;
    uint16_t src = a->spread ? source_port(f) : 0;
    uint64_t ip_len = (uint64_t)a->header_len - (a->ipv6 ? outer_len(true) : DQI_ETH_LEN) + f->len + f->rest;
    if (ip_len > UINT16_MAX || f->room < a->header_len) return DQ_DROP_TOO_LONG;
    move_start(f, -(int32_t)a->header_len);
    memcpy(f->p, a->header, a->header_len);
    if (a->spread) dqi_put_be16(f->p + outer_len(a->ipv6), src);
    finish(a, f->p, (uint64_t)f->len + f->rest, f->rest == 0);
    return DQI_DONE;
}

// ---- tunnels: pop -----------------------------------------------------------------------------------------

// Finds a complete IP packet of the tunnel's version and this protocol, with a valid header; *end is the
// offset of its end.
static bool find_outer(const dqi_act *a, const dqi_frame *f, uint8_t proto, dqi_pkt *k, uint32_t *end) {
    uint8_t version = a->ipv6 ? DQ_HAS_IPV6 : DQ_HAS_IPV4;
    if (!dqi_parse(f->p, f->len, k) || !(k->has & version) || k->has & DQ_HAS_FRAGMENT) return false;
    if (k->ip_proto != proto || k->l4 == DQI_NONE) return false;
    const uint8_t *ip = f->p + k->l3;
    *end = k->l3 + (a->ipv6 ? DQI_IPV6_LEN + dqi_be16(ip + 4) : dqi_be16(ip + 2));
    return *end <= (uint64_t)f->len + f->rest && *end >= k->l4 &&
           (a->ipv6 || dqi_csum_fold(dqi_csum_add(ip, k->l4 - k->l3, 0)) == 0);
}

// Reports whether the sum over [from, end), with `sum` added, is valid, or cannot be checked as bytes lie in
// other segments.
static bool is_intact(const dqi_frame *f, uint32_t from, uint32_t end, uint32_t sum) {
    return end > f->len || dqi_csum_fold(dqi_csum_add(f->p + from, end - from, sum)) == 0;
}

// A checksum of 0 means that there is none (RFC 768, RFC 6935).
static bool udp_intact(const dqi_act *a, const dqi_frame *f, const dqi_pkt *k, uint32_t end) {
    const uint8_t *ip = f->p + k->l3;
    if (dqi_be16(f->p + k->l4 + 6) == 0) return true;
    uint32_t sum = a->ipv6 ? dqi_csum_add(ip + 8, 32, 0) : dqi_csum_add(ip + 12, 8, 0);
    return is_intact(f, k->l4, end, sum + DQI_PROTO_UDP + end - k->l4);
}

// Returns the offset of the datagram's inner frame; 0: it is not such a VXLAN packet.
static uint32_t find_vxlan(const dqi_act *a, const dqi_frame *f, uint32_t *end) {
    dqi_pkt k;
    if (!find_outer(a, f, DQI_PROTO_UDP, &k, end) || !(k.has & DQ_HAS_UDP)) return 0;
    const uint8_t *udp = f->p + k.l4;
    uint32_t udp_end = k.l4 + dqi_be16(udp + 4), inner = k.l4 + DQI_UDP_LEN + VXLAN_LEN;
    if (udp_end > *end || inner > udp_end || inner > f->len || dqi_be16(udp + 2) != a->udp_dst) return 0;
    *end = udp_end;
    const uint8_t *vxlan = udp + DQI_UDP_LEN;
    if (!(vxlan[0] & DQI_VXLAN_HAS_VNI) || dqi_be32(vxlan + 4) >> 8 != a->id) return 0;
    return udp_intact(a, f, &k, udp_end) ? inner : 0;
}

uint32_t dqi_gre_len(const uint8_t *p, uint32_t len) {
    uint16_t flags = len >= GRE_LEN ? dqi_be16(p) : UINT16_MAX;
    uint32_t words = !!(flags & GRE_SUM) + !!(flags & GRE_KEY) + !!(flags & GRE_SEQ);
    return flags & ~GRE_KNOWN || len < GRE_LEN + 4 * words ? 0 : GRE_LEN + 4 * words;
}

bool dqi_is_nvgre(const uint8_t *p) { return dqi_be32(p) == ((uint32_t)GRE_KEY << 16 | DQI_TYPE_TEB); }

bool dqi_is_packet(uint16_t protocol, const uint8_t *p, uint32_t there, uint32_t len) {
    if (protocol == DQI_TYPE_IPV6 && there >= DQI_IPV6_LEN)
        return p[0] >> 4 == 6 && dqi_be16(p + 4) == len - DQI_IPV6_LEN;
    if (protocol != DQI_TYPE_IPV4 || there < DQI_IPV4_LEN) return false;
    uint32_t header = (uint32_t)(p[0] & 15) * 4;
    return p[0] >> 4 == 4 && header >= DQI_IPV4_LEN && header <= there && dqi_be16(p + 2) == len &&
           dqi_csum_fold(dqi_csum_add(p, header, 0)) == 0;
}

// Does the same for GRE and NVGRE. A checksum, if present, must be valid; sequence numbers are skipped.
static uint32_t find_gre(const dqi_act *a, const dqi_frame *f, uint32_t *end) {
    dqi_pkt k;
    if (!find_outer(a, f, PROTO_GRE, &k, end) || k.l4 > f->len) return 0;
    const uint8_t *gre = f->p + k.l4;
    uint32_t there = *end < f->len ? *end : f->len, n = dqi_gre_len(gre, there - k.l4);
    if (n == 0 || dqi_be16(gre + 2) != a->protocol) return 0;
    if (a->tunnel == DQ_TUNNEL_NVGRE && (!dqi_is_nvgre(gre) || dqi_be32(gre + 4) >> 8 != a->id)) return 0;
    return dqi_be16(gre) & GRE_SUM && !is_intact(f, k.l4, *end, 0) ? 0 : k.l4 + n;
}

// Truncates the frame at offset end.
static void cut(dqi_frame *f, uint32_t end) {
    if (end < f->len) f->len = end;
    f->rest = end - f->len;
}

// Removes the tunnel; a packet without an Ethernet header gets the outer one's addresses.
static int decap(const dqi_act *a, dqi_frame *f) {
    uint32_t end = 0;
    uint32_t inner = a->tunnel == DQ_TUNNEL_VXLAN ? find_vxlan(a, f, &end) : find_gre(a, f, &end);
    if (inner == 0) return DQ_DROP_BAD_TUNNEL;
    cut(f, end);
    if (a->tunnel == DQ_TUNNEL_GRE && dqi_is_packet(a->protocol, f->p + inner, f->len - inner, end - inner)) {
        inner -= DQI_ETH_LEN;
        memcpy(f->p + inner, f->p, 12);
        dqi_put_be16(f->p + inner + 12, a->protocol);
    } else if (end - inner < DQI_ETH_LEN) {
        return DQ_DROP_BAD_TUNNEL;
    }
    move_start(f, (int32_t)inner);
    return DQI_DONE;
}

static int apply(const dqi_act *a, dqi_frame *f) {
    switch ((enum dq_action_kind)a->kind) {
    case DQ_ACT_VLAN_PUSH:
        return vlan_push(a, f);
    case DQ_ACT_VLAN_POP:
        return vlan_pop(f);
    case DQ_ACT_ENCAP:
        return encap(a, f);
    case DQ_ACT_DECAP:
        return decap(a, f);
    case DQ_ACT_NONE:
    case DQ_ACTS:
        break;
    }
    return DQI_DONE;
}

int dqi_acts_apply(const dqi_acts *a, dqi_frame *f, uint32_t longest) {
    for (uint32_t i = 0; i < a->n; i++) {
        int why = apply(&a->act[i], f);
        if (why != DQI_DONE) return why;
    }
    uint64_t most = (uint64_t)longest + (is_tagged(f) ? DQI_TAG_LEN : 0);
    return (uint64_t)f->len + f->rest > most ? DQ_DROP_TOO_LONG : DQI_DONE;
}
