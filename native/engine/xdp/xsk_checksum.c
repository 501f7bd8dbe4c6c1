// xsk_checksum.c: completes checksums that a sending kernel left to checksum offload of a virtual device.
//
// A sender in another namespace or virtual machine stores only the pseudo-header sum in the UDP or TCP
// checksum, and AF_XDP does not report it. A checksum equal to that sum is computed; one that is equal by
// chance is recomputed to the same value.
#include "engine/xdp/xsk.h"
#include "packet/packet.h"

enum { UDP_CHECKSUM = 6, TCP_CHECKSUM = 16 }; // offset in the header

// Returns the bytes from the transport header to the end of the packet, from the IP header's length; 0:
// unknown.
static uint32_t transport_len(const uint8_t *p, const dqi_pkt *k) {
    bool v4 = k->has & DQ_HAS_IPV4;
    uint32_t len = dqi_be16(p + k->l3 + (v4 ? 2 : 4)), end = k->l3 + len + (v4 ? 0 : DQI_IPV6_LEN);
    return len > 0 && end > k->l4 ? end - k->l4 : 0;
}

static uint16_t pseudo_sum(const uint8_t *p, const dqi_pkt *k, uint32_t len) {
    bool v4 = k->has & DQ_HAS_IPV4;
    uint32_t sum = dqi_csum_add(p + k->l3 + (v4 ? 12 : 8), v4 ? 8 : 32, len + k->ip_proto);
    return (uint16_t)~dqi_csum_fold(sum);
}

// Adds up len bytes from offset `at` of the first piece; returns false if a piece other than the last
// contributes an odd number of bytes.
static bool sum_pieces(const dqi_piece *p, uint32_t n, uint32_t at, uint32_t len, uint32_t *sum) {
    *sum = 0;
    for (uint32_t k = 0; k < n && len > 0; k++, at = 0) {
        uint32_t part = p[k].len - at < len ? p[k].len - at : len;
        if (part < len && part % 2 != 0) return false;
        *sum = dqi_csum_add(p[k].data + at, part, *sum);
        len -= part;
    }
    return len == 0;
}

void xsk_finish_checksum(dqi_piece *p, uint32_t n) {
    dqi_pkt k;
    uint8_t *data = p->data;
    dqi_parse(data, p->len, &k);
    if (!(k.has & (DQ_HAS_UDP | DQ_HAS_TCP)) || k.has & DQ_HAS_FRAGMENT) return;
    uint32_t at = k.l4 + (k.has & DQ_HAS_UDP ? UDP_CHECKSUM : TCP_CHECKSUM), len = transport_len(data, &k),
             sum;
    if (dqi_be16(data + at) != pseudo_sum(data, &k, len) || !sum_pieces(p, n, k.l4, len, &sum)) return;
    uint16_t done = dqi_csum_fold(sum);
    dqi_put_be16(data + at, done != 0 ? done : 0xffff);
}
