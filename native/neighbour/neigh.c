// neigh.c: answers ARP requests and IPv6 neighbour solicitations (neigh.h).
#include "neighbour/neigh.h"
#include "packet/dq_rules.h"

enum { TYPE_ARP = 0x0806, ARP_LEN = 28, ARP_REQUEST = 1, ARP_REPLY = 2 };
enum { SOLICITATION = 135, ADVERTISEMENT = 136, ND_LEN = 24, OPTION_LEN = 8 };
enum { SOURCE_ADDRESS = 1, TARGET_ADDRESS = 2 };             // options
enum { SOLICITED = 0x40, OVERRIDE = 0x20, HOP_LIMIT = 255 }; // HOP_LIMIT: not forwarded by a router

static bool has_ip4(const dqi_station *me, const uint8_t *ip) {
    for (uint32_t i = 0; i < me->n_ip4; i++)
        if (memcmp(me->ip4[i], ip, 4) == 0) return true;
    return false;
}

static bool has_ip6(const dqi_station *me, const uint8_t *ip) {
    for (uint32_t i = 0; i < me->n_ip6; i++)
        if (memcmp(me->ip6[i], ip, 16) == 0) return true;
    return false;
}

// Writes an Ethernet header from the station to the frame's sender, with its tags.
static void answer_ethernet(const dqi_station *me, const uint8_t *frame, uint32_t l3, uint8_t *out) {
    memcpy(out, frame, l3);
    memcpy(out, frame + 6, 6);
    memcpy(out + 6, me->mac, 6);
}

static uint32_t answer_arp(const dqi_station *me, const uint8_t *frame, const dqi_pkt *pkt, uint8_t *out) {
    static const uint8_t ethernet_ip4[] = {0, 1, 0x08, 0x00, 6, 4, 0, ARP_REQUEST};
    const uint8_t *asks = frame + pkt->l3;
    if (pkt->len < pkt->l3 + ARP_LEN || memcmp(asks, ethernet_ip4, sizeof ethernet_ip4) != 0) return 0;
    const uint8_t *sender = asks + 8, *sender_ip = asks + 14, *target_ip = asks + 24;
    bool announces = memcmp(sender_ip, target_ip, 4) == 0; // an announcement of the sender's own address
    if (announces || !has_ip4(me, target_ip) || (sender[0] & 1)) return 0;
    answer_ethernet(me, frame, pkt->l3, out);
    memcpy(out, sender, 6);
    uint8_t *says = out + pkt->l3;
    memcpy(says, ethernet_ip4, sizeof ethernet_ip4);
    says[7] = ARP_REPLY;
    memcpy(says + 8, me->mac, 6);
    memcpy(says + 14, target_ip, 4);
    memcpy(says + 18, sender, 10); // Ethernet and IP address of the sender
    return pkt->l3 + ARP_LEN;
}

// Validates a solicitation (RFC 4861, 7.1.1). nd is its ICMPv6 message of n bytes.
static bool solicitation_ok(const uint8_t *frame, const dqi_pkt *pkt, const uint8_t *nd, uint32_t n,
                            bool unspecified) {
    static const uint8_t solicited_node[13] = {0xff, 0x02, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff};
    const uint8_t *ip = frame + pkt->l3;
    if (n < ND_LEN || nd[0] != SOLICITATION || nd[1] != 0 || ip[7] != HOP_LIMIT || nd[8] == 0xff)
        return false;
    if (pkt->l3 + DQI_IPV6_LEN + dqi_be16(ip + 4) > pkt->len) return false; // truncated
    for (uint32_t at = ND_LEN; at < n; at += nd[at + 1] * 8u) {
        if (n - at < OPTION_LEN || nd[at + 1] == 0 || nd[at + 1] * 8u > n - at) return false;
        if (unspecified && nd[at] == SOURCE_ADDRESS) return false;
    }
    if (unspecified && memcmp(ip + 24, solicited_node, sizeof solicited_node) != 0) return false;
    return dqi_csum_ok(frame, pkt);
}

static uint32_t answer_nd(const dqi_station *me, const uint8_t *frame, const dqi_pkt *pkt, uint8_t *out) {
    static const uint8_t any_address[16] = {0}, all_nodes[16] = {0xff, 0x02, [15] = 1};
    static const uint8_t all_nodes_mac[6] = {0x33, 0x33, 0, 0, 0, 1};
    if (pkt->ip_proto != DQI_PROTO_ICMPV6 || pkt->l4 == DQI_NONE) return 0;
    const uint8_t *ip = frame + pkt->l3, *nd = frame + pkt->l4;
    bool probe =
        memcmp(ip + 8, any_address, 16) == 0; // duplicate address detection: all nodes get the answer
    if (!solicitation_ok(frame, pkt, nd, pkt->end - pkt->l4, probe) || !has_ip6(me, nd + 8)) return 0;

    answer_ethernet(me, frame, pkt->l3, out);
    if (probe) memcpy(out, all_nodes_mac, 6);
    uint8_t *to = out + pkt->l3;
    memset(to, 0, DQI_IPV6_LEN + ND_LEN + OPTION_LEN);
    to[0] = 0x60;
    dqi_put_be16(to + 4, ND_LEN + OPTION_LEN);
    to[6] = DQI_PROTO_ICMPV6;
    to[7] = HOP_LIMIT;
    memcpy(to + 8, nd + 8, 16);
    memcpy(to + 24, probe ? all_nodes : ip + 8, 16);
    uint8_t *says = to + DQI_IPV6_LEN;
    says[0] = ADVERTISEMENT;
    says[4] = probe ? OVERRIDE : SOLICITED | OVERRIDE;
    memcpy(says + 8, nd + 8, 16);
    says[ND_LEN] = TARGET_ADDRESS;
    says[ND_LEN + 1] = OPTION_LEN / 8;
    memcpy(says + ND_LEN + 2, me->mac, 6);

    dqi_pkt answer;
    uint32_t len = pkt->l3 + DQI_IPV6_LEN + ND_LEN + OPTION_LEN;
    if (!dqi_parse(out, len, &answer)) return 0;
    dqi_csum_fill(out, &answer);
    return len;
}

uint32_t dqi_neigh_answer(const dqi_station *me, const uint8_t *frame, uint32_t len, uint8_t *out) {
    dqi_pkt pkt;
    if (!dqi_parse(frame, len, &pkt) || pkt.l3 == DQI_NONE || pkt.l3 > DQI_ETH_LEN + 8) return 0;
    if (pkt.ethertype == TYPE_ARP) return answer_arp(me, frame, &pkt, out);
    if (pkt.has & DQ_HAS_IPV6) return answer_nd(me, frame, &pkt, out);
    return 0;
}
