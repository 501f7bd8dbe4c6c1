// neigh_ask.c: requests for a neighbour's Ethernet address, and parsing of their answers (neigh.h).
#include "neighbour/neigh.h"
#include "packet/dq_rules.h"

enum { TYPE_ARP = 0x0806, ARP_LEN = 28, ARP_REQUEST = 1, ARP_REPLY = 2 };
enum { SOLICITATION = 135, ADVERTISEMENT = 136, ND_LEN = 24, OPTION_LEN = 8, HOP_LIMIT = 255 };
enum { SOURCE_ADDRESS = 1, TARGET_ADDRESS = 2 }; // options

static const uint8_t ethernet_ip4[] = {0, 1, 0x08, 0x00, 6, 4, 0};

// ---- requests ---------------------------------------------------------------------------------------------

// Writes an Ethernet header to dst with a tag of vlan (0: none); returns the offset of the next header.
static uint32_t ethernet(uint8_t *out, const uint8_t *dst, const uint8_t *src, uint16_t vlan, uint16_t type) {
    uint32_t at = 12;
    memcpy(out, dst, 6);
    memcpy(out + 6, src, 6);
    if (vlan != 0) {
        dqi_put_be16(out + 12, DQI_TYPE_VLAN);
        dqi_put_be16(out + 14, vlan);
        at = 16;
    }
    dqi_put_be16(out + at, type);
    return at + 2;
}

// Writes an ARP request, or a probe (RFC 5227) if the station has no address.
static uint32_t ask_arp(const uint8_t *mac, const dq_ip *from, const dq_ip *addr, uint16_t vlan,
                        uint8_t *out) {
    static const uint8_t everybody[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};
    uint32_t at = ethernet(out, everybody, mac, vlan, TYPE_ARP);
    uint8_t *asks = out + at;
    memset(asks, 0, ARP_LEN);
    memcpy(asks, ethernet_ip4, sizeof ethernet_ip4);
    asks[7] = ARP_REQUEST;
    memcpy(asks + 8, mac, 6);
    if (from->len == 4) memcpy(asks + 14, from->bytes, 4);
    memcpy(asks + 24, addr->bytes, 4);
    return at + ARP_LEN;
}

// Writes the source address; without one, the link-local address derived from mac (RFC 4291, appendix A).
static void source_ip6(const uint8_t *mac, const dq_ip *from, uint8_t *out) {
    const uint8_t own[16] = {0xfe,   0x80,   0,      0,    0,    0,      0,      0,
                             mac[0], mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]};
    memcpy(out, from->len == 16 ? from->bytes : own, 16);
    if (from->len != 16) out[8] ^= 2; // universal/local bit
}

static uint32_t ask_nd(const uint8_t *mac, const dq_ip *from, const dq_ip *addr, uint16_t vlan,
                       uint8_t *out) {
    const uint8_t *a = addr->bytes, dst[6] = {0x33, 0x33, 0xff, a[13], a[14], a[15]};
    const uint8_t group[16] = {0xff, 0x02, [11] = 1, [12] = 0xff, a[13], a[14], a[15]};
    uint32_t at = ethernet(out, dst, mac, vlan, DQI_TYPE_IPV6);
    uint8_t *ip = out + at, *nd = ip + DQI_IPV6_LEN;
    memset(ip, 0, DQI_IPV6_LEN + ND_LEN + OPTION_LEN);
    ip[0] = 0x60;
    dqi_put_be16(ip + 4, ND_LEN + OPTION_LEN);
    ip[6] = DQI_PROTO_ICMPV6;
    ip[7] = HOP_LIMIT;
    source_ip6(mac, from, ip + 8);
    memcpy(ip + 24, group, 16);
    nd[0] = SOLICITATION;
    memcpy(nd + 8, a, 16);
    nd[ND_LEN] = SOURCE_ADDRESS;
    nd[ND_LEN + 1] = OPTION_LEN / 8;
    memcpy(nd + ND_LEN + 2, mac, 6);
    dqi_pkt pkt;
    uint32_t len = at + DQI_IPV6_LEN + ND_LEN + OPTION_LEN;
    if (dqi_parse(out, len, &pkt)) dqi_csum_fill(out, &pkt);
    return len;
}

uint32_t dqi_neigh_ask(const uint8_t mac[6], const dq_ip *from, const dq_ip *addr, uint16_t vlan,
                       uint8_t *out) {
    return addr->len == 4 ? ask_arp(mac, from, addr, vlan, out) : ask_nd(mac, from, addr, vlan, out);
}

// ---- answers ----------------------------------------------------------------------------------------------

static bool hear_arp(const uint8_t *frame, const dqi_pkt *pkt, dqi_neighbour *out) {
    const uint8_t *says = frame + pkt->l3;
    if (pkt->len < pkt->l3 + ARP_LEN || memcmp(says, ethernet_ip4, sizeof ethernet_ip4) != 0) return false;
    if (says[7] != ARP_REQUEST && says[7] != ARP_REPLY) return false;
    out->ip.len = 4;
    memcpy(out->ip.bytes, says + 14, 4);
    memcpy(out->mac, says + 8, 6);
    return true;
}

// Returns the Ethernet address in the options of an advertisement of n bytes; NULL: malformed, or absent.
static const uint8_t *target_address(const uint8_t *nd, uint32_t n) {
    const uint8_t *found = NULL;
    for (uint32_t at = ND_LEN; at < n; at += nd[at + 1] * 8u) {
        if (n - at < OPTION_LEN || nd[at + 1] == 0 || nd[at + 1] * 8u > n - at) return NULL;
        if (nd[at] == TARGET_ADDRESS) found = nd + at + 2;
    }
    return found;
}

// Validates and parses an advertisement (RFC 4861, 7.1.2).
static bool hear_nd(const uint8_t *frame, const dqi_pkt *pkt, dqi_neighbour *out) {
    if (pkt->ip_proto != DQI_PROTO_ICMPV6 || pkt->l4 == DQI_NONE) return false;
    const uint8_t *ip = frame + pkt->l3, *nd = frame + pkt->l4, *mac;
    uint32_t n = pkt->end - pkt->l4;
    if (n < ND_LEN || nd[0] != ADVERTISEMENT || nd[1] != 0 || ip[7] != HOP_LIMIT) return false;
    if (pkt->l3 + DQI_IPV6_LEN + dqi_be16(ip + 4) > pkt->len || !dqi_csum_ok(frame, pkt)) return false;
    if (!(mac = target_address(nd, n))) return false;
    out->ip.len = 16;
    memcpy(out->ip.bytes, nd + 8, 16);
    memcpy(out->mac, mac, 6);
    return true;
}

bool dqi_neigh_hear(const uint8_t *frame, uint32_t len, dqi_neighbour *out) {
    dqi_pkt pkt;
    if (!dqi_parse(frame, len, &pkt) || pkt.l3 == DQI_NONE) return false;
    *out = (dqi_neighbour){.vlan = pkt.has & DQ_HAS_VLAN ? pkt.vlan_tci & 0xfff : 0};
    bool found = pkt.ethertype == TYPE_ARP ? hear_arp(frame, &pkt, out)
                 : pkt.has & DQ_HAS_IPV6   ? hear_nd(frame, &pkt, out)
                                           : false;
    return found && !(out->mac[0] & 1);
}
