// packet.h: header parser and Internet checksums.
//
// The parser accepts any bytes: it reads nothing outside [p, p + len), bounds chains of tags and extension
// headers, and clips lengths in headers to the available bytes. It allocates nothing and has no state.
#ifndef DQI_PACKET_H
#define DQI_PACKET_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "core/dq_core.h"

#define DQI_NONE UINT32_MAX // an offset that does not exist

enum { DQI_ETH_LEN = 14, DQI_IPV4_LEN = 20, DQI_IPV6_LEN = 40, DQI_UDP_LEN = 8, DQI_TCP_LEN = 20 };
enum { DQI_PROTO_ICMP = 1, DQI_PROTO_TCP = 6, DQI_PROTO_UDP = 17, DQI_PROTO_ICMPV6 = 58 };
enum { DQI_TYPE_IPV4 = 0x0800, DQI_TYPE_IPV6 = 0x86dd, DQI_TYPE_VLAN = 0x8100, DQI_TYPE_QINQ = 0x88a8 };
enum { DQI_TYPE_ECPRI = 0xaefe };

// A parsed packet: offsets into it, and its metadata.
typedef struct dqi_pkt {
    uint32_t len;         // available bytes
    uint32_t l3;          // offset after the Ethernet header and its tags, or DQI_NONE
    uint32_t l4;          // offset of the transport header; DQI_NONE in later fragments
    uint32_t payload;     // offset of the innermost payload; DQI_NONE if a header is truncated or malformed
    uint32_t payload_len; // available bytes of payload, without Ethernet padding
    uint32_t end;         // offset of the end of the IP packet, clipped to len; len for other packets
    uint32_t proto_off;   // offset of the byte that identifies the transport, or DQI_NONE
    uint16_t ethertype;   // the one after the tags
    uint16_t vlan_tci;    // that of the outermost tag, if DQ_HAS_VLAN
    uint8_t n_vlans;      // 0..2
    uint8_t ip_proto;     // the transport, if DQ_HAS_IPV4 or DQ_HAS_IPV6
    uint8_t has;          // enum dq_has
    uint8_t has_meta;     // enum dqi_has_meta: members below that the caller has set
    uint32_t flow_id;
    uint32_t index;
    int64_t rx_time_ns;
} dqi_pkt;

enum dqi_has_meta { DQI_HAS_FLOW_ID = 1, DQI_HAS_INDEX = 2, DQI_HAS_RX_TIME = 4 };

static inline uint16_t dqi_be16(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static inline uint32_t dqi_be32(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static inline uint64_t dqi_be64(const uint8_t *p) { return (uint64_t)dqi_be32(p) << 32 | dqi_be32(p + 4); }

static inline void dqi_put_be16(uint8_t *p, uint16_t v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
}

static inline void dqi_put_be32(uint8_t *p, uint32_t v) {
    dqi_put_be16(p, (uint16_t)(v >> 16));
    dqi_put_be16(p + 2, (uint16_t)v);
}

// Reports whether the frame is Ethernet without tags, IPv4 without options, not a fragment, has this
// transport and room for a TCP header.
static inline bool dqi_plain_ipv4(const uint8_t *p, uint32_t len, uint32_t proto) {
    return len >= DQI_ETH_LEN + DQI_IPV4_LEN + DQI_TCP_LEN &&
           (dqi_be32(p + 12) & 0xffffff00) == 0x08004500 && // ethertype, version, header length
           (dqi_be32(p + 20) & 0x3fff00ff) == proto;        // more-fragments bit, fragment offset, protocol
}

// Reports whether the frame is the most common one: the above with UDP and consistent lengths. Its offsets
// are fixed: l3 14, source and destination address 26 and 30, ports 34 and 36. Any thread, never blocks.
static inline bool dqi_plain_udp(const uint8_t *p, uint32_t len) {
    // A UDP length of 0 is a jumbogram's, 1 to 7 are malformed.
    return dqi_plain_ipv4(p, len, DQI_PROTO_UDP) && dqi_be16(p + 16) >= DQI_IPV4_LEN + DQI_UDP_LEN &&
           (uint16_t)(dqi_be16(p + 38) - 1) >= DQI_UDP_LEN - 1;
}

// Reports the same for UDP or TCP.
static inline bool dqi_plain(const uint8_t *p, uint32_t len) {
    return dqi_plain_udp(p, len) || (dqi_plain_ipv4(p, len, DQI_PROTO_TCP) &&
                                     dqi_be16(p + 16) >= DQI_IPV4_LEN + DQI_TCP_LEN && p[46] >> 4 >= 5);
}

// Finds the headers of an Ethernet frame of len bytes and fills *out; the caller owns both. Header layouts:
// IEEE 802.3 and 802.1Q, RFC 791, 8200, 768, 9293, 792, 4443. Metadata (flow id, index, time) is marked
// absent. Returns false if there is no complete Ethernet header. Any thread, never blocks.
bool dqi_parse(const uint8_t *p, uint32_t len, dqi_pkt *out);

// Does the same for a frame of len bytes of which only the first `have` are at p. A header beyond those
// counts as truncated.
bool dqi_parse_head(const uint8_t *p, uint32_t have, uint32_t len, dqi_pkt *out);

// Fills *out for a packet of a queue of payloads: no headers, the payload is all len bytes.
void dqi_parse_payload(uint32_t len, dqi_pkt *out);

// Returns the Internet checksum (RFC 1071) of n bytes; sum continues an earlier call of even length, first 0.
uint32_t dqi_csum_add(const uint8_t *p, uint32_t n, uint32_t sum);

// Returns the value of the checksum field for a sum: folded and complemented.
uint16_t dqi_csum_fold(uint32_t sum);

// Writes the IPv4 header checksum and the UDP, TCP or ICMP checksum of a parsed frame in place. Skips the
// transport checksum of fragments and truncated packets. Any thread, never blocks.
void dqi_csum_fill(uint8_t *p, const dqi_pkt *pkt);

// Returns the headers (DQ_HAS_*, IP and transport) of a parsed frame whose checksums a device can compute. 0:
// not possible: no UDP or TCP, a fragment, a truncated packet, other headers between, trailing bytes.
uint8_t dqi_csum_plain(const uint8_t *p, const dqi_pkt *pkt);

// Reports whether the packet's checksums are correct. A UDP checksum of 0 over IPv4 (none sent) and a
// transport that cannot be checked (a fragment, a truncated packet, another protocol) count as correct.
bool dqi_csum_ok(const uint8_t *p, const dqi_pkt *pkt);

// A change of bytes [from, to) of a packet, at most 9, and its effect on checksums.
typedef struct dqi_csum_change {
    uint32_t from, to;
    bool recompute;  // the bytes control checksum coverage, or are one
    uint32_t ip, l4; // differences of the sums so far
} dqi_csum_change;

// Call these before and after the bytes of a parsed frame change: they update the checksums by the difference
// (RFC 1624, equation 3), so that correct ones stay correct and wrong ones wrong, and a UDP checksum of 0
// stays 0, also in first fragments and truncated packets. Where the bytes control checksum coverage it is
// recomputed as in dqi_csum_fill. Any thread, never blocks.
void dqi_csum_before(dqi_csum_change *c, const uint8_t *p, const dqi_pkt *pkt, uint32_t from, uint32_t to);
void dqi_csum_after(dqi_csum_change *c, uint8_t *p, const dqi_pkt *pkt);

#endif
