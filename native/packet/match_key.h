// match_key.h: internals of match.c and flow_table.c: a packet's header fields as a few 64-bit words, and a
// match as masks and values over them, so that one comparison covers several conditions and rules with equal
// masks share a hash table.
#ifndef DQI_MATCH_KEY_H
#define DQI_MATCH_KEY_H

#include "packet/key_words.h"
#include "packet/match.h"

typedef struct dqi_key {
    uint64_t w[KEY_WORDS];
} dqi_key;

// A compiled match. Conditions beyond masks (port ranges, flex items) are separate members.
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

// Sets the words of a parsed frame's key that are set in words, and KEY_L4; others are unchanged.
void dqi_key_make(const uint8_t *p, const dqi_pkt *k, uint32_t words, dqi_key *key);

// Tests the flex condition and the port ranges; the caller compares the masked words.
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
