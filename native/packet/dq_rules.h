// dq_rules.h: packet fields and rules on them, shared with the eBPF program of the engine xdp.
//
// Plain structs with fixed-width members and no significant padding, so that Go can mirror them. Integers are
// in host byte order; addresses stored as bytes are in wire order.
#ifndef DQ_RULES_H
#define DQ_RULES_H

#include <stddef.h>
#include <stdint.h>

// Headers of a parsed packet. A field or a match that needs several of these is satisfied by any one.
enum dq_has {
    DQ_HAS_ETH = 1 << 0,      // an Ethernet header; absent in queues of payloads
    DQ_HAS_VLAN = 1 << 1,     // one or more 802.1Q or 802.1ad tags
    DQ_HAS_IPV4 = 1 << 2,     // a complete, well-formed IPv4 header
    DQ_HAS_IPV6 = 1 << 3,     // a complete, well-formed IPv6 header
    DQ_HAS_UDP = 1 << 4,      // a complete UDP header; never in a later fragment
    DQ_HAS_TCP = 1 << 5,      // at least the first 20 bytes of a TCP header
    DQ_HAS_ICMP = 1 << 6,     // a complete ICMP or ICMPv6 header
    DQ_HAS_FRAGMENT = 1 << 7, // an IP fragment, the first or a later one
};

// Origin of a field's bit offset.
enum dq_base {
    DQ_BASE_START = 0,   // the first byte of the queue's data
    DQ_BASE_L3 = 1,      // the network header
    DQ_BASE_L4 = 2,      // the transport header
    DQ_BASE_PAYLOAD = 3, // the innermost payload; the first byte in queues of payloads
    DQ_BASE_META = 4,    // no offset: see dq_meta
    DQ_BASE_COUNT
};

// Fields of base DQ_BASE_META: packet metadata, and header fields whose position varies.
enum dq_meta {
    DQ_META_NONE = 0,
    DQ_META_LEN,         // bytes of the packet in its queue
    DQ_META_FLOW_ID,     // id of the flow that matched, 0: none
    DQ_META_RX_TIME,     // receive time, ns since the burst's time_origin, signed
    DQ_META_INDEX,       // position in the burst, from 0
    DQ_META_PAYLOAD_LEN, // bytes of payload present
    DQ_META_ETHERTYPE,   // the one after the VLAN tags
    DQ_META_VLAN_ID,     // that of the outermost tag
    DQ_META_IP_PROTO,    // the one after IPv6 extension headers
    DQ_META_IP_TTL,      // IPv4 time to live or IPv6 hop limit
    DQ_META_IP_TOS,      // IPv4 type of service or IPv6 traffic class
    DQ_META_COUNT
};

enum dq_field_flags {
    DQ_FIELD_LE = 1 << 0,     // little endian: bits count from the least significant bit of the first byte
    DQ_FIELD_SIGNED = 1 << 1, // two's complement, sign-extended to 64 bits
};

// A field of 1 to 64 bits. Bits are counted from the most significant bit of the first byte, as in RFCs; with
// DQ_FIELD_LE from the least significant one, so that bits of a little-endian word of any size form a field.
typedef struct dq_field {
    uint8_t base;       // enum dq_base
    uint8_t meta;       // enum dq_meta when base is DQ_BASE_META, else 0
    uint8_t flags;      // enum dq_field_flags
    uint8_t need;       // enum dq_has bits, one of which the packet must have; 0: no condition
    uint16_t bit_width; // 1..64; DQ_BASE_META: width of the value, for type checks
    uint16_t reserved;  // 0
    uint32_t bit_offset;
} dq_field;

// Members of a dq_match in use; an empty set matches every packet.
enum dq_match_set {
    DQ_MATCH_ETH_SRC = 1 << 0,
    DQ_MATCH_ETH_DST = 1 << 1,
    DQ_MATCH_ETHERTYPE = 1 << 2,
    DQ_MATCH_VLAN_ID = 1 << 3,
    DQ_MATCH_IP_PROTO = 1 << 4,
    DQ_MATCH_IPV4_SRC = 1 << 5,
    DQ_MATCH_IPV4_DST = 1 << 6,
    DQ_MATCH_IPV4_LEN = 1 << 7,
    DQ_MATCH_IPV6_SRC = 1 << 8,
    DQ_MATCH_IPV6_DST = 1 << 9,
    DQ_MATCH_UDP_SRC = 1 << 10,
    DQ_MATCH_UDP_DST = 1 << 11,
    DQ_MATCH_TCP_SRC = 1 << 12,
    DQ_MATCH_TCP_DST = 1 << 13,
    DQ_MATCH_FLEX = 1 << 14,
    DQ_MATCH_ECPRI = 1 << 15,      // any eCPRI message
    DQ_MATCH_ECPRI_TYPE = 1 << 16, // implies DQ_MATCH_ECPRI
    DQ_MATCH_ECPRI_ID = 1 << 17,   // requires DQ_MATCH_ECPRI_TYPE, which determines where the id is
    DQ_MATCH_TAGGED = 1 << 18,     // a VLAN tag with any id
    DQ_MATCH_ALL_BITS = (1 << 19) - 1,
};

typedef struct dq_port_range {
    uint16_t lo; // the range includes both ends
    uint16_t hi;
} dq_port_range;

typedef struct dq_match {
    uint32_t set; // enum dq_match_set
    uint32_t ipv4_src;
    uint32_t ipv4_src_mask; // any mask; 0xffffffff: a single address
    uint32_t ipv4_dst;
    uint32_t ipv4_dst_mask;
    uint32_t flex_val;
    uint32_t flex_mask;
    uint16_t flex_udp_dst; // UDP destination port of the flex item; 0: any
    uint16_t flex_offset;  // bytes after the UDP header; the 32 bits there are read in wire order
    uint16_t ethertype;    // the one after the VLAN tags
    uint16_t vlan_id;      // that of the outermost tag
    uint16_t ipv4_len;     // total length in the IPv4 header
    uint16_t ecpri_id;     // pc_id of message types 0 and 1, rtc_id of type 2
    dq_port_range udp_src;
    dq_port_range udp_dst;
    dq_port_range tcp_src;
    dq_port_range tcp_dst;
    uint8_t eth_src[6];
    uint8_t eth_dst[6];
    uint8_t ipv6_src[16];
    uint8_t ipv6_dst[16];
    uint8_t ipv6_src_prefix; // bits, 0..128
    uint8_t ipv6_dst_prefix;
    uint8_t ip_proto;
    uint8_t ecpri_type;
} dq_match;

#define DQ_RULE_MAX_QUEUES  32
#define DQ_RULE_MAX_ACTIONS 7

// Frame actions of flows: X(NAME, name).
#define DQ_ACTION_ROWS(X)                                                                                    \
    X(NONE, "")                                                                                              \
    X(VLAN_PUSH, "vlan_push")                                                                                \
    X(VLAN_POP, "vlan_pop")                                                                                  \
    X(ENCAP, "tunnel_encap")                                                                                 \
    X(DECAP, "tunnel_decap")

enum dq_action_kind {
#define X(id, ...) DQ_ACT_##id,
    DQ_ACTION_ROWS(X)
#undef X
        DQ_ACTS
};
// Returns the name as in configurations; NULL: not a valid action.
const char *dq_action_name(int kind);
enum dq_tunnel { DQ_TUNNEL_VXLAN = 1, DQ_TUNNEL_GRE, DQ_TUNNEL_NVGRE };

// One change that a rule makes to matching frames. VLAN_PUSH uses tpid and tci; ENCAP all members of the
// outer header. DECAP removes its tunnel: it selects frames whose outer header has these members, all but ttl
// and tos, and the rule's match applies to the inner frame. VLAN_POP selects frames with a tag.
typedef struct dq_action {
    uint8_t kind;     // enum dq_action_kind
    uint8_t tunnel;   // enum dq_tunnel
    uint8_t ttl, tos; // hop limit and traffic class of IPv6
    uint16_t tpid, tci;
    uint32_t ipv4_src, ipv4_dst;
    uint32_t id;       // VNI or TNI, 24 bits
    uint16_t udp_src;  // VXLAN; 0: a hash of the inner frame; DECAP: any
    uint16_t udp_dst;  // VXLAN
    uint16_t protocol; // GRE: protocol in its header; the payload is always a whole frame
    uint8_t eth_src[6], eth_dst[6];
    uint8_t flow_id; // NVGRE
    uint8_t ipv6;    // 1: outer header is IPv6
    uint8_t ipv6_src[16], ipv6_dst[16];
} dq_action;

typedef struct dq_rule {
    dq_match match;
    uint32_t flow_id;
    uint64_t order;    // lower has priority; if equal, the earlier in the array
    uint16_t n_queues; // 1..DQ_RULE_MAX_QUEUES
    uint16_t rss;      // 1: distribute over the queues by Toeplitz hash; 0: queues[0]
    uint16_t queues[DQ_RULE_MAX_QUEUES];
    uint16_t n_actions;    // at most DQ_RULE_MAX_ACTIONS
    uint32_t first_action; // index into the array passed with the rules
} dq_rule;

#endif
