// match_model.h: what a match means, written out one condition at a time on the description of a frame, and
// random matches.
#ifndef MATCH_MODEL_H
#define MATCH_MODEL_H

#include "frames.h"

#include "packet/match.h"

static inline bool in(dq_port_range r, uint32_t v) { return v >= r.lo && v <= r.hi; }

static inline bool same_prefix(const uint8_t *a, const uint8_t *b, uint32_t bits) {
    for (uint32_t i = 0; i < bits; i++)
        if ((a[i / 8] ^ b[i / 8]) >> (7 - i % 8) & 1) return false;
    return true;
}

// The first four bytes of an address, as a number.
static inline uint32_t addr4(const uint8_t *a) {
    return (uint32_t)a[0] << 24 | (uint32_t)a[1] << 16 | (uint32_t)a[2] << 8 | a[3];
}

static inline bool slow_ip(const dq_match *m, const frame *f) {
    bool v4 = f->ip == 4, v6 = f->ip == 6;
    uint32_t set = m->set, total = 20 + f->ip_options + frame_l4_len(f) + f->payload_len;
    if (set & DQ_MATCH_IP_PROTO && f->proto != m->ip_proto) return false;
    if (set & DQ_MATCH_IPV4_SRC && !(v4 && ((addr4(f->src) ^ m->ipv4_src) & m->ipv4_src_mask) == 0))
        return false;
    if (set & DQ_MATCH_IPV4_DST && !(v4 && ((addr4(f->dst) ^ m->ipv4_dst) & m->ipv4_dst_mask) == 0))
        return false;
    if (set & DQ_MATCH_IPV4_LEN && !(v4 && total == m->ipv4_len)) return false;
    if (set & DQ_MATCH_IPV6_SRC && !(v6 && same_prefix(f->src, m->ipv6_src, m->ipv6_src_prefix)))
        return false;
    if (set & DQ_MATCH_IPV6_DST && !(v6 && same_prefix(f->dst, m->ipv6_dst, m->ipv6_dst_prefix)))
        return false;
    return true;
}

static inline bool slow_ecpri(const dq_match *m, const frame *f) {
    bool udp = frame_ports(f) && f->proto == 17;
    bool by_port = m->set & (DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST);
    if (by_port ? !udp : f->ip != 0 || f->ethertype != 0xaefe) return false;
    if (f->payload_len < 4) return false;
    if (m->set & DQ_MATCH_ECPRI_TYPE && f->payload[1] != m->ecpri_type) return false;
    if (!(m->set & DQ_MATCH_ECPRI_ID)) return true;
    return f->payload_len >= 6 && (f->payload[4] << 8 | f->payload[5]) == m->ecpri_id;
}

// Whether the frame has all that the match wants.
static inline bool slow_match(const dq_match *m, const frame *f) {
    uint32_t set = m->set;
    bool udp = frame_ports(f) && f->proto == 17, tcp = frame_ports(f) && f->proto == 6;
    uint16_t type = f->ip == 4 ? 0x0800 : f->ip == 6 ? 0x86dd : f->ethertype;
    if (set & DQ_MATCH_ETH_SRC && memcmp(m->eth_src, f->eth_src, 6) != 0) return false;
    if (set & DQ_MATCH_ETH_DST && memcmp(m->eth_dst, f->eth_dst, 6) != 0) return false;
    if (set & DQ_MATCH_ETHERTYPE && type != m->ethertype) return false;
    if (set & DQ_MATCH_VLAN_ID && !(f->n_vlans && (f->tci[0] & 0xfff) == m->vlan_id)) return false;
    if (set & DQ_MATCH_UDP_SRC && !(udp && in(m->udp_src, f->sport))) return false;
    if (set & DQ_MATCH_UDP_DST && !(udp && in(m->udp_dst, f->dport))) return false;
    if (set & DQ_MATCH_TCP_SRC && !(tcp && in(m->tcp_src, f->sport))) return false;
    if (set & DQ_MATCH_TCP_DST && !(tcp && in(m->tcp_dst, f->dport))) return false;
    if (set & (DQ_MATCH_ECPRI | DQ_MATCH_ECPRI_TYPE | DQ_MATCH_ECPRI_ID) && !slow_ecpri(m, f)) return false;
    if (set & DQ_MATCH_FLEX) {
        if (!udp || (m->flex_udp_dst && f->dport != m->flex_udp_dst)) return false;
        if (m->flex_offset + 4u > f->payload_len) return false;
        if ((addr4(f->payload + m->flex_offset) ^ m->flex_val) & m->flex_mask) return false;
    }
    return slow_ip(m, f);
}

static inline dq_port_range random_range(uint64_t *seed, uint16_t first) {
    uint16_t lo = (uint16_t)(first + dq_below(seed, 4));
    switch (dq_below(seed, 5)) {
    case 0:
        return (dq_port_range){lo, (uint16_t)(lo + dq_below(seed, 3))};
    case 1:
        return (dq_port_range){0, 0xffff};
    default:
        return (dq_port_range){lo, lo};
    }
}

// Conditions drawn from a frame, so that they hold now and then, and a few from nowhere.
static inline void match_random(uint64_t *seed, const frame *f, dq_match *m) {
    static const uint32_t masks[] = {0xffffffff, 0xffffff00, 0xff000000, 0, 0x00ff00ff};
    static const uint8_t prefixes[] = {128, 96, 64, 10, 0, 127};
    do {
        *m = (dq_match){.ethertype = dq_below(seed, 2) ? 0x0800 : 0xaefe,
                        .vlan_id = (uint16_t)dq_below(seed, 3),
                        .ip_proto = f->proto,
                        .ipv4_src = addr4(f->src),
                        .ipv4_dst = addr4(f->dst),
                        .ipv4_src_mask = masks[dq_below(seed, 5)],
                        .ipv4_dst_mask = masks[dq_below(seed, 5)],
                        .ipv4_len = (uint16_t)(20 + f->ip_options + frame_l4_len(f) + f->payload_len),
                        .ipv6_src_prefix = prefixes[dq_below(seed, 6)],
                        .ipv6_dst_prefix = prefixes[dq_below(seed, 6)],
                        .udp_src = random_range(seed, 1000),
                        .udp_dst = random_range(seed, 2000),
                        .tcp_src = random_range(seed, 1000),
                        .tcp_dst = random_range(seed, 2000),
                        .flex_udp_dst = (uint16_t)(dq_below(seed, 2) ? f->dport : 0),
                        .flex_offset = (uint16_t)(4 * dq_below(seed, 8)),
                        .flex_mask = dq_below(seed, 2) ? 0xff : 0x0101,
                        .ecpri_type = (uint8_t)dq_below(seed, 3),
                        .ecpri_id = (uint16_t)(f->payload[4] << 8 | f->payload[5])};
        memcpy(m->eth_src, f->eth_src, 6);
        memcpy(m->eth_dst, f->eth_dst, 6);
        memcpy(m->ipv6_src, f->src, 16);
        memcpy(m->ipv6_dst, f->dst, 16);
        if (m->flex_offset + 4u <= f->payload_len) m->flex_val = addr4(f->payload + m->flex_offset);
        for (uint32_t n = dq_below(seed, 4); n > 0; n--)
            m->set |= 1u << dq_below(seed, 18);
    } while (dqi_match_check(m, NULL) != DQ_OK);
}

#endif
