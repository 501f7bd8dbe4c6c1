// match_key.h: between match.c and ftab.c: a packet's header fields as a few 64-bit words, and a match as
// masks and values over them, so that one comparison covers several conditions and rules with equal masks
// share a hash table.
#ifndef DQI_MATCH_KEY_H
#define DQI_MATCH_KEY_H

#include "match.h"

// The words of a key.
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

typedef struct dqi_key {
    uint64_t w[KEY_WORDS];
} dqi_key;

// A match, compiled. Conditions that masks can't say (port ranges, flex items) stand beside them.
typedef struct dqi_cond {
    uint32_t words; // bit i: word i has a mask
    bool src_range, dst_range, flex;
    dq_port_range src, dst;
    uint16_t flex_offset;
    uint32_t flex_val, flex_mask;
    dqi_key mask, value;
} dqi_cond;

// Compiles a checked match.
void dqi_cond_make(const dq_match *m, dqi_cond *c);

// Fills those words of a parsed frame's key that are set in words; the others are untouched.
void dqi_key_make(const uint8_t *p, const dqi_pkt *k, uint32_t words, dqi_key *key);

// The flex condition and the port ranges; the masked words are compared by the caller.
bool dqi_cond_extra(const dqi_cond *c, const uint8_t *p, const dqi_pkt *pkt, uint64_t l4_word);

static inline bool dqi_cond_words(const dqi_cond *c, const dqi_key *key) {
    uint64_t diff = 0;
    for (uint32_t words = c->words; words != 0; words &= words - 1) {
        int i = __builtin_ctz(words);
        diff |= (key->w[i] & c->mask.w[i]) ^ c->value.w[i];
    }
    return diff == 0;
}

#endif
