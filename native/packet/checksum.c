// checksum.c: Internet checksums (RFC 1071) of parsed packets, computed, and updated (RFC 1624) for changed
// bytes; prototypes in packet.h.
//
// The one's complement sum is independent of byte order, so words are summed in memory order, 32 bits at a
// time into 64, and only the folded result is converted to host order.
#include "packet/dq_rules.h"
#include "packet/packet.h"

static uint16_t fold(uint64_t sum) {
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffffffff) + (sum >> 32);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

uint32_t dqi_csum_add(const uint8_t *p, uint32_t n, uint32_t sum) {
    uint64_t acc = 0;
    for (; n >= 4; n -= 4, p += 4) {
        uint32_t w;
        memcpy(&w, p, 4);
        acc += w;
    }
    uint8_t tail[4] = {0};
    memcpy(tail, p, n);
    uint32_t w;
    memcpy(&w, tail, 4);
    acc += w;

    uint16_t native = fold(acc);
    uint8_t bytes[2];
    memcpy(bytes, &native, 2);
    return fold((uint64_t)sum + dqi_be16(bytes));
}

uint16_t dqi_csum_fold(uint32_t sum) { return (uint16_t)~fold(sum); }

// Returns the offset of the transport checksum; 0: none to compute (no transport, a fragment, truncated).
static uint32_t l4_csum_off(const uint8_t *p, const dqi_pkt *k) {
    if (k->has & DQ_HAS_FRAGMENT) return 0;
    uint32_t claimed = k->has & DQ_HAS_IPV4   ? dqi_be16(p + k->l3 + 2)
                       : k->has & DQ_HAS_IPV6 ? dqi_be16(p + k->l3 + 4) + (uint32_t)DQI_IPV6_LEN
                                              : 0;
    if (k->l3 == DQI_NONE || claimed > k->len - k->l3) return 0;
    if (k->has & DQ_HAS_UDP) return dqi_be16(p + k->l4 + 4) > k->end - k->l4 ? 0 : k->l4 + 6;
    if (k->has & DQ_HAS_TCP) return k->l4 + 16;
    if (k->has & DQ_HAS_ICMP) return k->l4 + 2;
    return 0;
}

// The transport checksum includes the addresses, the protocol and the length, except ICMP over IPv4.
static uint32_t pseudo_header(const uint8_t *p, const dqi_pkt *k, uint32_t l4_len) {
    if (k->has & DQ_HAS_IPV6) {
        uint32_t sum = dqi_csum_add(p + k->l3 + 8, 32, 0);
        return sum + (l4_len >> 16) + (l4_len & 0xffff) + k->ip_proto;
    }
    if (k->has & DQ_HAS_ICMP) return 0;
    return dqi_csum_add(p + k->l3 + 12, 8, 0) + l4_len + k->ip_proto;
}

// Returns the sum over pseudo header and transport, including the checksum field.
static uint32_t l4_sum(const uint8_t *p, const dqi_pkt *k) {
    uint32_t l4_len = k->end - k->l4;
    if (k->has & DQ_HAS_UDP) l4_len = DQI_UDP_LEN + k->payload_len;
    return dqi_csum_add(p + k->l4, l4_len, pseudo_header(p, k, l4_len));
}

// Clips to the end, as the header's length may have changed since it was parsed.
static uint32_t ipv4_header_len(const uint8_t *p, const dqi_pkt *k) {
    uint32_t n = (uint32_t)(p[k->l3] & 15) * 4;
    return n <= k->end - k->l3 ? n : k->end - k->l3;
}

void dqi_csum_fill(uint8_t *p, const dqi_pkt *pkt) {
    if (pkt->has & DQ_HAS_IPV4) {
        dqi_put_be16(p + pkt->l3 + 10, 0);
        dqi_put_be16(p + pkt->l3 + 10, dqi_csum_fold(dqi_csum_add(p + pkt->l3, ipv4_header_len(p, pkt), 0)));
    }
    uint32_t off = l4_csum_off(p, pkt);
    if (off == 0) return;
    dqi_put_be16(p + off, 0);
    uint16_t csum = dqi_csum_fold(l4_sum(p, pkt));
    if (csum == 0 && pkt->has & DQ_HAS_UDP) csum = 0xffff;
    dqi_put_be16(p + off, csum);
}

uint8_t dqi_csum_plain(const uint8_t *p, const dqi_pkt *k) {
    const uint8_t ip = k->has & (DQ_HAS_IPV4 | DQ_HAS_IPV6), transport = k->has & (DQ_HAS_UDP | DQ_HAS_TCP);
    if (!ip || !transport || l4_csum_off(p, k) == 0 || k->end != k->len || k->n_vlans > 1) return 0;
    if (k->has & DQ_HAS_UDP && dqi_be16(p + k->l4 + 4) != k->end - k->l4) return 0;
    if (k->has & DQ_HAS_IPV6 && k->l4 - k->l3 != DQI_IPV6_LEN)
        return 0; // devices don't support other headers
    return ip | transport;
}

bool dqi_csum_ok(const uint8_t *p, const dqi_pkt *pkt) {
    if (pkt->has & DQ_HAS_IPV4 && dqi_csum_fold(dqi_csum_add(p + pkt->l3, ipv4_header_len(p, pkt), 0)) != 0)
        return false;
    uint32_t off = l4_csum_off(p, pkt);
    if (off == 0) return true;
    if (pkt->has & DQ_HAS_UDP && dqi_be16(p + off) == 0) return pkt->has & DQ_HAS_IPV4;
    return dqi_csum_fold(l4_sum(p, pkt)) == 0;
}

// ---- changes ----------------------------------------------------------------------------------------------

typedef struct range {
    uint32_t from, to;
} range;

static range common(range a, range b) {
    range r = {a.from > b.from ? a.from : b.from, a.to < b.to ? a.to : b.to};
    return r.to > r.from ? r : (range){0, 0};
}

static bool touch(range a, range b) { return common(a, b).to != 0; }

// Reports whether the bytes affect header lengths or checksum coverage, or are checksums.
static bool is_special(range r, const dqi_pkt *k) {
    uint32_t l3 = k->l3, l4 = k->l4;
    if (k->has & DQ_HAS_IPV4 && (touch(r, (range){l3, l3 + 1}) || touch(r, (range){l3 + 2, l3 + 4}) ||
                                 touch(r, (range){l3 + 6, l3 + 8}) || touch(r, (range){l3 + 9, l3 + 12})))
        return true;
    if (k->has & DQ_HAS_IPV6 && (touch(r, (range){l3, l3 + 1}) || touch(r, (range){l3 + 4, l3 + 7}) ||
                                 (l4 != DQI_NONE && touch(r, (range){l3 + DQI_IPV6_LEN, l4}))))
        return true;
    if (k->has & DQ_HAS_UDP) return touch(r, (range){l4 + 4, l4 + 8});
    if (k->has & DQ_HAS_TCP) return touch(r, (range){l4 + 16, l4 + 18});
    return k->has & DQ_HAS_ICMP && touch(r, (range){l4 + 2, l4 + 4});
}

// Headers start at even offsets, so a byte's weight follows from its offset. less: subtracts in one's
// complement.
static uint32_t sum_range(const uint8_t *p, range r, bool less) {
    uint32_t sum = 0;
    for (uint32_t i = r.from; i < r.to; i++) {
        uint32_t v = i % 2 == 0 ? (uint32_t)p[i] << 8 : p[i];
        sum += less ? 0xffff - v : v;
    }
    return sum;
}

static void add_ranges(dqi_csum_change *c, const uint8_t *p, const dqi_pkt *k, bool less) {
    range r = {c->from, c->to};
    bool v4 = k->has & DQ_HAS_IPV4;
    if (v4) c->ip += sum_range(p, common(r, (range){k->l3, k->l3 + ipv4_header_len(p, k)}), less);
    if (!(k->has & (DQ_HAS_UDP | DQ_HAS_TCP | DQ_HAS_ICMP))) return;
    uint32_t end = k->has & DQ_HAS_UDP ? k->payload + k->payload_len : k->end;
    c->l4 += sum_range(p, common(r, (range){k->l4, end}), less);
    range addresses = v4 ? (range){k->l3 + 12, k->l3 + 20} : (range){k->l3 + 8, k->l3 + 40};
    if (!v4 || !(k->has & DQ_HAS_ICMP)) c->l4 += sum_range(p, common(r, addresses), less);
}

static uint16_t adjusted(const uint8_t *p, uint32_t sum) {
    return (uint16_t)~fold((uint64_t)(uint16_t)~dqi_be16(p) + sum);
}

// was: the packet before the change. A UDP checksum of 0 stays 0; if the packet was not UDP before, there was
// none.
static void recompute(uint8_t *p, const dqi_pkt *was) {
    dqi_pkt now;
    dqi_parse(p, was->len, &now);
    bool none = was->has & now.has & DQ_HAS_UDP && dqi_be16(p + now.l4 + 6) == 0;
    dqi_csum_fill(p, &now);
    if (none) dqi_put_be16(p + now.l4 + 6, 0);
}

void dqi_csum_before(dqi_csum_change *c, const uint8_t *p, const dqi_pkt *pkt, uint32_t from, uint32_t to) {
    *c = (dqi_csum_change){.from = from, .to = to, .recompute = is_special((range){from, to}, pkt)};
    if (!c->recompute) add_ranges(c, p, pkt, true);
}

void dqi_csum_after(dqi_csum_change *c, uint8_t *p, const dqi_pkt *pkt) {
    if (c->recompute) {
        recompute(p, pkt);
        return;
    }
    add_ranges(c, p, pkt, false);
    if (c->ip != 0) dqi_put_be16(p + pkt->l3 + 10, adjusted(p + pkt->l3 + 10, c->ip));
    if (c->l4 == 0) return;
    bool udp = pkt->has & DQ_HAS_UDP;
    uint8_t *at = p + pkt->l4 + (udp ? 6 : pkt->has & DQ_HAS_TCP ? 16 : 2);
    if (udp && dqi_be16(at) == 0) return;
    uint16_t csum = adjusted(at, c->l4);
    dqi_put_be16(at, udp && csum == 0 ? 0xffff : csum);
}
