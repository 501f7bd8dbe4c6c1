// packet.c: the packet parser.
//
// One pass from the outermost header inwards; each step works on [off, end) and narrows end by the headers'
// lengths, so that no later step can read past it. The most common frame takes a fast path with fixed
// offsets; a property test compares the fast path with the general one.
#include "packet/packet.h"
#include "packet/dq_rules.h"

enum { MAX_VLANS = 2, MAX_IPV6_EXTENSIONS = 8 };

static inline uint32_t min32(uint32_t a, uint32_t b) { return a < b ? a : b; }

static void set_payload(dqi_pkt *k, uint32_t off) {
    k->payload = off;
    k->payload_len = k->end - off;
}

// A UDP length of 0 (a jumbogram) or past the packet's end means that the datagram extends to the end.
static void parse_udp(const uint8_t *p, dqi_pkt *k) {
    uint32_t avail = k->end - k->l4;
    if (avail < DQI_UDP_LEN) return;
    uint32_t udp_len = dqi_be16(p + k->l4 + 4);
    if (udp_len != 0 && udp_len < DQI_UDP_LEN) return;
    k->has |= DQ_HAS_UDP;
    set_payload(k, k->l4 + DQI_UDP_LEN);
    if (udp_len != 0) k->payload_len = min32(k->payload_len, udp_len - DQI_UDP_LEN);
}

static void parse_tcp(const uint8_t *p, dqi_pkt *k) {
    uint32_t avail = k->end - k->l4;
    if (avail < DQI_TCP_LEN) return;
    uint32_t header = (uint32_t)(p[k->l4 + 12] >> 4) * 4;
    if (header < DQI_TCP_LEN) return;
    k->has |= DQ_HAS_TCP;
    set_payload(k, k->l4 + min32(header, avail));
}

static void parse_icmp(dqi_pkt *k) {
    if (k->end - k->l4 < 8) return;
    k->has |= DQ_HAS_ICMP;
    set_payload(k, k->l4 + 8);
}

static void parse_l4(const uint8_t *p, uint32_t off, dqi_pkt *k) {
    k->l4 = off;
    switch (k->ip_proto) {
    case DQI_PROTO_UDP:
        parse_udp(p, k);
        break;
    case DQI_PROTO_TCP:
        parse_tcp(p, k);
        break;
    case DQI_PROTO_ICMP:
        if (k->has & DQ_HAS_IPV4) parse_icmp(k);
        break;
    case DQI_PROTO_ICMPV6:
        if (k->has & DQ_HAS_IPV6) parse_icmp(k);
        break;
    default:
        set_payload(k, off);
    }
}

// A total length of 0 occurs in captures of segmentation-offloaded packets: it means up to the frame's end.
static void parse_ipv4(const uint8_t *p, dqi_pkt *k) {
    uint32_t off = k->l3;
    if (k->len - off < DQI_IPV4_LEN || p[off] >> 4 != 4) return;
    uint32_t header = (uint32_t)(p[off] & 15) * 4;
    uint32_t total = dqi_be16(p + off + 2);
    if (total == 0) total = k->len - off;
    if (header < DQI_IPV4_LEN || total < header || header > k->len - off) return;
    uint16_t frag = dqi_be16(p + off + 6);

    k->has |= DQ_HAS_IPV4;
    k->end = min32(k->len, off + total);
    k->proto_off = off + 9;
    k->ip_proto = p[off + 9];
    if (frag & 0x3fff) k->has |= DQ_HAS_FRAGMENT;
    if (frag & 0x1fff)
        set_payload(k, off + header);
    else
        parse_l4(p, off + header, k);
}

// Returns the length in bytes of the extension header at p; 0: next is not a known extension header.
static uint32_t extension_len(uint8_t next, const uint8_t *p) {
    switch (next) {
    case 0:   // hop-by-hop options
    case 43:  // routing
    case 60:  // destination options
    case 135: // mobility
    case 139: // HIP
    case 140: // shim6
        return ((uint32_t)p[1] + 1) * 8;
    case 44: // fragment
        return 8;
    case 51: // authentication
        return ((uint32_t)p[1] + 2) * 4;
    default:
        return 0;
    }
}

static bool is_extension(uint8_t next) {
    static const uint8_t any[8] = {0};
    return extension_len(next, any) != 0;
}

// Walks the extension headers; a truncated or too long chain leaves the packet without l4 and payload.
static void parse_extensions(const uint8_t *p, uint32_t off, dqi_pkt *k) {
    for (int n = 0; is_extension(k->ip_proto); n++) {
        if (n == MAX_IPV6_EXTENSIONS || k->end - off < 8) return;
        uint32_t len = extension_len(k->ip_proto, p + off);
        if (len > k->end - off) return;
        uint16_t frag = k->ip_proto == 44 ? dqi_be16(p + off + 2) : 0;
        k->proto_off = off;
        k->ip_proto = p[off];
        off += len;
        if (frag & 0xfff9) k->has |= DQ_HAS_FRAGMENT;
        if (frag & 0xfff8) {
            set_payload(k, off);
            return;
        }
    }
    parse_l4(p, off, k);
}

// A payload length of 0 before a transport or hop-by-hop options is a jumbogram (RFC 2675) or the result of
// segmentation offload: the packet extends to the end of the frame.
static void parse_ipv6(const uint8_t *p, dqi_pkt *k) {
    uint32_t off = k->l3;
    if (k->len - off < DQI_IPV6_LEN || p[off] >> 4 != 6) return;
    uint32_t body = dqi_be16(p + off + 4), start = off + DQI_IPV6_LEN;
    uint8_t next = p[off + 6];
    bool to_end = body == 0 && (next == 0 || next == DQI_PROTO_UDP || next == DQI_PROTO_TCP);
    k->has |= DQ_HAS_IPV6;
    k->end = to_end ? k->len : min32(k->len, start + body);
    k->proto_off = off + 6;
    k->ip_proto = next;
    parse_extensions(p, start, k);
}

static void clear(uint32_t len, dqi_pkt *k) {
    *k = (dqi_pkt){
        .len = len, .l3 = DQI_NONE, .l4 = DQI_NONE, .payload = DQI_NONE, .end = len, .proto_off = DQI_NONE};
}

// Returns the offset of the ethertype after the tags, or DQI_NONE if the frame ends before it.
static uint32_t parse_vlans(const uint8_t *p, dqi_pkt *k) {
    uint32_t off = 12;
    k->ethertype = dqi_be16(p + off);
    while (k->n_vlans < MAX_VLANS && (k->ethertype == DQI_TYPE_VLAN || k->ethertype == DQI_TYPE_QINQ)) {
        if (k->len - off < 6) return DQI_NONE;
        if (k->n_vlans++ == 0) k->vlan_tci = dqi_be16(p + off + 2);
        k->has |= DQ_HAS_VLAN;
        off += 4;
        k->ethertype = dqi_be16(p + off);
    }
    return off;
}

static bool parse_general(const uint8_t *p, uint32_t len, dqi_pkt *k) {
    clear(len, k);
    if (len < DQI_ETH_LEN) return false;
    k->has = DQ_HAS_ETH;
    uint32_t type_off = parse_vlans(p, k);
    if (type_off == DQI_NONE) return true;
    k->l3 = type_off + 2;
    if (k->ethertype == DQI_TYPE_IPV4)
        parse_ipv4(p, k);
    else if (k->ethertype == DQI_TYPE_IPV6)
        parse_ipv6(p, k);
    else
        set_payload(k, k->l3);
    return true;
}

bool dqi_parse(const uint8_t *p, uint32_t len, dqi_pkt *out) {
    if (!dqi_plain(p, len)) return parse_general(p, len, out);
    *out = (dqi_pkt){.len = len,
                     .l3 = 14,
                     .l4 = 34,
                     .payload = DQI_NONE,
                     .end = min32(len, 14u + dqi_be16(p + 16)),
                     .proto_off = 23,
                     .ethertype = DQI_TYPE_IPV4,
                     .ip_proto = p[23],
                     .has = DQ_HAS_ETH | DQ_HAS_IPV4};
    if (out->ip_proto == DQI_PROTO_UDP)
        parse_udp(p, out);
    else
        parse_tcp(p, out);
    return true;
}

// If all headers lie in the available bytes, their lengths are valid for the whole frame: parsing again with
// its length reads no further bytes.
bool dqi_parse_head(const uint8_t *p, uint32_t have, uint32_t len, dqi_pkt *out) {
    bool ok = dqi_parse(p, have, out);
    bool whole = out->payload != DQI_NONE && have >= DQI_ETH_LEN + DQI_IPV4_LEN + DQI_TCP_LEN;
    if (have < len && whole) return dqi_parse(p, len, out);
    out->len = len;
    return ok;
}

void dqi_parse_payload(uint32_t len, dqi_pkt *out) {
    clear(len, out);
    set_payload(out, 0);
}
