// key_words.h: the words of a packet's key (match_key.h), in a separate header: the eBPF program of the
// engine xdp builds the same key.
#ifndef DQI_KEY_WORDS_H
#define DQI_KEY_WORDS_H

enum {
    KEY_ETH_DST, // eth_dst << 16 | ethertype
    KEY_ETH_SRC, // eth_src << 16 | VLAN tag control of the outermost tag
    KEY_IPV4,    // ipv4_src << 32 | ipv4_dst
    KEY_L4,      // ipv4_len << 48 | ip_proto << 40 | enum dq_has << 32 | source port << 16 | destination port
    KEY_IPV6_SRC_HI, // upper and lower halves of the IPv6 addresses
    KEY_IPV6_SRC_LO,
    KEY_IPV6_DST_HI,
    KEY_IPV6_DST_LO,
    KEY_ECPRI, // KEY_ECPRI_HAS_ID | transport << 32 | message type << 16 | id
    KEY_WORDS
};

enum { KEY_ECPRI_NONE = 0, KEY_ECPRI_ETH = 1, KEY_ECPRI_UDP = 2 };
#define KEY_ECPRI_HAS_ID (1ull << 40)

#endif
