// checksum.c: Internet checksums (RFC 1071, 1624) of parsed packets; prototypes in packet.h.
//
// The one's complement sum does not depend on byte order, so words are summed as they lie in memory, 32 bits
// a time into 64, and only the folded result is turned to host order.
#include "packet.h"

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

// Where the transport's checksum lies; 0 where it cannot be computed: no transport, a fragment, a cut packet.
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

// The transport's checksum counts the addresses, the protocol and the length too, except ICMP over IPv4.
static uint32_t pseudo_header(const uint8_t *p, const dqi_pkt *k, uint32_t l4_len) {
    if (k->has & DQ_HAS_IPV6) {
        uint32_t sum = dqi_csum_add(p + k->l3 + 8, 32, 0);
        return sum + (l4_len >> 16) + (l4_len & 0xffff) + k->ip_proto;
    }
    if (k->has & DQ_HAS_ICMP) return 0;
    return dqi_csum_add(p + k->l3 + 12, 8, 0) + l4_len + k->ip_proto;
}

// The sum over pseudo header and transport, whatever the checksum field holds.
static uint32_t l4_sum(const uint8_t *p, const dqi_pkt *k) {
    uint32_t l4_len = k->end - k->l4;
    if (k->has & DQ_HAS_UDP) l4_len = DQI_UDP_LEN + k->payload_len;
    return dqi_csum_add(p + k->l4, l4_len, pseudo_header(p, k, l4_len));
}

static uint32_t ipv4_header_len(const uint8_t *p, const dqi_pkt *k) { return (uint32_t)(p[k->l3] & 15) * 4; }

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

bool dqi_csum_ok(const uint8_t *p, const dqi_pkt *pkt) {
    if (pkt->has & DQ_HAS_IPV4 && dqi_csum_fold(dqi_csum_add(p + pkt->l3, ipv4_header_len(p, pkt), 0)) != 0)
        return false;
    uint32_t off = l4_csum_off(p, pkt);
    if (off == 0) return true;
    if (pkt->has & DQ_HAS_UDP && dqi_be16(p + off) == 0) return pkt->has & DQ_HAS_IPV4;
    return dqi_csum_fold(l4_sum(p, pkt)) == 0;
}

uint16_t dqi_csum_update16(uint16_t csum, uint16_t old_val, uint16_t new_val) {
    return (uint16_t)~fold((uint64_t)(uint16_t)~csum + (uint16_t)~old_val + new_val);
}

uint16_t dqi_csum_update32(uint16_t csum, uint32_t old_val, uint32_t new_val) {
    csum = dqi_csum_update16(csum, (uint16_t)(old_val >> 16), (uint16_t)(new_val >> 16));
    return dqi_csum_update16(csum, (uint16_t)old_val, (uint16_t)new_val);
}
