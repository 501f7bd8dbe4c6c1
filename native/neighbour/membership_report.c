// membership_report.c: builds the frames of membership.h.
#include "neighbour/membership.h"

enum { PROTO_IGMP = 2, ALERT4_LEN = 4, ALERT6_LEN = 8, LINK_ONLY = 1, INTERNET_CONTROL = 0xc0 };
enum { IGMP2_REPORT = 0x16, IGMP2_LEAVE = 0x17, IGMP3_REPORT = 0x22 };
enum { MLD1_REPORT = 131, MLD1_DONE = 132, MLD2_REPORT = 143 };
enum { MESSAGE_LEN = 8 }; // bytes before a report's records

static const uint8_t igmp3_routers[] = {224, 0, 0, 22}, igmp2_routers[] = {224, 0, 0, 2};
static const uint8_t mld2_routers[16] = {0xff, 2, [15] = 0x16}, mld1_routers[16] = {0xff, 2, [15] = 2};

static uint32_t address_len(int family) { return family == AF_INET ? 4 : 16; }

// Writes an IPv4 header with the router alert option; returns the message's offset.
static uint32_t begin_ip4(const dqi_station *me, const uint8_t *to, uint8_t *ip) {
    static const uint8_t alert[ALERT4_LEN] = {0x94, ALERT4_LEN};
    memset(ip, 0, DQI_IPV4_LEN);
    ip[0] = 0x40 | (DQI_IPV4_LEN + ALERT4_LEN) / 4;
    ip[1] = INTERNET_CONTROL;
    ip[6] = 0x40; // don't fragment
    ip[8] = LINK_ONLY;
    ip[9] = PROTO_IGMP;
    if (me->n_ip4 > 0) memcpy(ip + 12, me->ip4[0], 4);
    memcpy(ip + 16, to, 4);
    memcpy(ip + DQI_IPV4_LEN, alert, sizeof alert);
    return DQI_IPV4_LEN + ALERT4_LEN;
}

// Does the same for IPv6, from a link-local address or, without one, from :: (RFC 3810, 5.2.13).
static uint32_t begin_ip6(const dqi_station *me, const uint8_t *to, uint8_t *ip) {
    static const uint8_t alert[ALERT6_LEN] = {DQI_PROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0};
    memset(ip, 0, DQI_IPV6_LEN);
    ip[0] = 0x60;
    ip[7] = LINK_ONLY;
    for (uint32_t k = 0; k < me->n_ip6; k++)
        if (me->ip6[k][0] == 0xfe && (me->ip6[k][1] & 0xc0) == 0x80) memcpy(ip + 8, me->ip6[k], 16);
    memcpy(ip + 24, to, 16);
    memcpy(ip + DQI_IPV6_LEN, alert, sizeof alert);
    return DQI_IPV6_LEN + ALERT6_LEN;
}

// Writes all headers of a message to the group `to`; returns the message's offset.
static uint32_t begin(const dqi_station *me, int family, const uint8_t *to, uint8_t *out) {
    dqi_group_mac(family, to, out);
    memcpy(out + 6, me->mac, 6);
    dqi_put_be16(out + 12, family == AF_INET ? DQI_TYPE_IPV4 : DQI_TYPE_IPV6);
    uint8_t *ip = out + DQI_ETH_LEN;
    return DQI_ETH_LEN + (family == AF_INET ? begin_ip4(me, to, ip) : begin_ip6(me, to, ip));
}

// Sets lengths and checksums of a frame whose message ends at len.
static uint32_t end(int family, uint8_t *out, uint32_t len) {
    uint8_t *ip = out + DQI_ETH_LEN;
    uint32_t n = len - DQI_ETH_LEN;
    if (family == AF_INET) {
        uint8_t *message = ip + DQI_IPV4_LEN + ALERT4_LEN;
        uint32_t message_len = n - DQI_IPV4_LEN - ALERT4_LEN;
        dqi_put_be16(ip + 2, (uint16_t)n);
        dqi_put_be16(message + 2, dqi_csum_fold(dqi_csum_add(message, message_len, 0)));
    } else {
        ip[6] = 0; // hop-by-hop options first
        dqi_put_be16(ip + 4, (uint16_t)(n - DQI_IPV6_LEN));
    }
    dqi_pkt pkt;
    if (dqi_parse(out, len, &pkt)) dqi_csum_fill(out, &pkt);
    return len;
}

void dqi_report_begin(dqi_report *r, const dqi_station *me, int family, uint8_t *out, uint32_t room) {
    *r = (dqi_report){.out = out, .room = room, .family = family};
    r->at = begin(me, family, family == AF_INET ? igmp3_routers : mld2_routers, out);
    memset(out + r->at, 0, MESSAGE_LEN);
    out[r->at] = family == AF_INET ? IGMP3_REPORT : MLD2_REPORT;
    r->at += MESSAGE_LEN;
}

bool dqi_report_add(dqi_report *r, int record, const dqi_group *g) {
    uint32_t a = address_len(r->family), n = g->source.sa.sa_family == AF_UNSPEC ? 0 : 1;
    if (r->room - r->at < 4 + a + n * a) return false;
    uint8_t *p = r->out + r->at;
    p[0] = (uint8_t)record;
    p[1] = 0;
    dqi_put_be16(p + 2, (uint16_t)n);
    memcpy(p + 4, dqi_group_bytes(&g->group), a);
    if (n > 0) memcpy(p + 4 + a, dqi_group_bytes(&g->source), a);
    r->at += 4 + a + n * a;
    r->n++;
    return true;
}

uint32_t dqi_report_end(dqi_report *r) {
    uint32_t ip = r->family == AF_INET ? DQI_IPV4_LEN + ALERT4_LEN : DQI_IPV6_LEN + ALERT6_LEN;
    dqi_put_be16(r->out + DQI_ETH_LEN + ip + 6, (uint16_t)r->n);
    return end(r->family, r->out, r->at);
}

uint32_t dqi_report_old(const dqi_station *me, const dqi_group *g, bool member, uint8_t *out) {
    int family = g->group.sa.sa_family;
    const uint8_t *group = dqi_group_bytes(&g->group);
    bool four = family == AF_INET;
    uint32_t at = begin(me, family, member ? group : four ? igmp2_routers : mld1_routers, out);
    uint32_t len = four ? 4 : 8; // bytes before the group
    memset(out + at, 0, len);
    out[at] = four ? (member ? IGMP2_REPORT : IGMP2_LEAVE) : (member ? MLD1_REPORT : MLD1_DONE);
    memcpy(out + at + len, group, address_len(family));
    return end(family, out, at + len + address_len(family));
}
