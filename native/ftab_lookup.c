// ftab_lookup.c: which rule of a flow table a frame matches first (ftab.c says how tables are made).
//
// A lookup walks the table's steps, keeps the best rank found, and ends when no later step can be better. So
// the cost grows with the number of different masks, not with the number of rules. Frames of the commonest
// shape (dqi_plain) get their key from fixed offsets without a parse.
#include "ftab.h"

#define PLAIN_UDP_WORD                                                                                       \
    ((uint64_t)DQI_PROTO_UDP << 40 | (uint64_t)(DQ_HAS_ETH | DQ_HAS_IPV4 | DQ_HAS_UDP) << 32)

static inline uint64_t plain_l4_word(const uint8_t *p) {
    uint64_t has = DQ_HAS_ETH | DQ_HAS_IPV4 | (p[23] == DQI_PROTO_UDP ? DQ_HAS_UDP : DQ_HAS_TCP);
    return (uint64_t)dqi_be16(p + 16) << 48 | (uint64_t)p[23] << 40 | has << 32 | dqi_be32(p + 34);
}

// True when a frame does not match the one rule on ports.
static bool misses_l4(const uint8_t *p, uint32_t len, uint64_t mask, uint64_t value) {
    dqi_key key;
    if (dqi_plain(p, len)) {
        key.w[KEY_L4] = plain_l4_word(p);
    } else {
        dqi_pkt pkt;
        dqi_parse(p, len, &pkt);
        dqi_key_make(p, &pkt, 1u << KEY_L4, &key);
    }
    return (key.w[KEY_L4] & mask) != value;
}

// As dqi_key_make, for a plain frame: no tag, no IPv6.
static inline void plain_key(const uint8_t *p, uint32_t words, dqi_key *key) {
    key->w[KEY_L4] = plain_l4_word(p);
    if (words & 1u << KEY_IPV4) key->w[KEY_IPV4] = dqi_be64(p + 26);
    if (words & (1u << KEY_ETH_DST | 1u << KEY_ETH_SRC)) {
        key->w[KEY_ETH_DST] = (dqi_be64(p) & ~0xffffull) | DQI_TYPE_IPV4;
        key->w[KEY_ETH_SRC] = dqi_be64(p + 6) & ~0xffffull;
    }
    for (int i = KEY_IPV6_SRC_HI; words & 15u << KEY_IPV6_SRC_HI && i <= KEY_IPV6_DST_LO; i++)
        key->w[i] = 0;
}

// The rank of the group's rule that the key matches, or NO_RANK.
static uint32_t probe(const ftab_step *s, const dqi_cond *conds, const dqi_key *key) {
    uint64_t h = dqi_ftab_hash(s->cond, key);
    uint32_t mask = s->n_slots - 1;
    for (uint32_t i = (uint32_t)h & mask; s->slots[i].rank != 0; i = (i + 1) & mask) {
        uint32_t rank = s->slots[i].rank - 1;
        if (s->slots[i].tag == (uint32_t)(h >> 32) && dqi_cond_words(&conds[rank], key)) return rank;
    }
    return NO_RANK;
}

static inline bool has_gone(const uint64_t *gone, uint32_t rank) { return gone[rank / 64] >> rank % 64 & 1; }

// The rank of the first rule that matches, of those that are not gone (NULL: all are there); n without one.
static inline uint32_t lookup(const dqi_ftab *t, const uint64_t *gone, const uint8_t *p, const dqi_pkt *pkt,
                              const dqi_key *key) {
    uint32_t best = NO_RANK;
    for (const ftab_step *s = t->steps, *end = s + t->n_steps; s < end && s->rank < best; s++) {
        if (s->n_slots != 0) {
            uint32_t rank = probe(s, t->conds, key);
            if (rank < best && !(gone && has_gone(gone, rank))) best = rank;
        } else if (dqi_cond_words(s->cond, key) && dqi_cond_extra(s->cond, p, pkt, key->w[KEY_L4]) &&
                   !(gone && has_gone(gone, s->rank))) {
            best = s->rank;
        }
    }
    return best < t->n ? best : t->n;
}

// What is to be done with the frame.
static const ftab_target *ask(const dqi_ftab *t, const uint8_t *p, const dqi_pkt *pkt, const dqi_key *key) {
    uint32_t rank = lookup(t, NULL, p, pkt, key);
    const dqi_ftab *base = t->base;
    if (base == NULL) return &t->targets[rank];
    uint32_t below = lookup(base, t->gone, p, pkt, key);
    bool own = rank < t->n && (below == base->n || t->rules[rank].order < base->rules[below].order);
    return own ? &t->targets[rank] : &base->targets[below];
}

static uint16_t spread(const dqi_ftab *t, const ftab_target *to, const uint8_t *p, uint32_t len,
                       const dqi_pkt *pkt) {
    dqi_pkt own;
    uint32_t hash;
    if (dqi_plain(p, len)) {
        hash = dqi_rss_bytes(t->rss, p + 26, 12);
    } else {
        if (pkt == NULL) dqi_parse(p, len, &own);
        hash = dqi_rss_hash(t->rss, p, pkt != NULL ? pkt : &own);
    }
    return to->queues[dqi_rss_queue(hash, to->n_queues)];
}

static void classify_general(const dqi_ftab *t, const uint8_t *p, uint32_t len, uint32_t *flow_id,
                             uint16_t *queue) {
    dqi_key key;
    dqi_pkt pkt;
    const dqi_pkt *parsed = NULL;
    if (t->plain_ok && dqi_plain(p, len)) {
        plain_key(p, t->words, &key);
    } else {
        dqi_parse(p, len, &pkt);
        dqi_key_make(p, &pkt, t->words, &key);
        parsed = &pkt;
    }
    const ftab_target *to = ask(t, p, parsed, &key);
    *flow_id = to->flow_id;
    *queue = to->rss ? spread(t, to, p, len, parsed) : to->queues[0];
}

// One rule on ports, perhaps with a catch-all behind it: its miss target is targets[1] either way.
static void classify_one_l4(const dqi_ftab *t, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                            uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    const uint64_t mask = t->conds[0].mask.w[KEY_L4], value = t->conds[0].value.w[KEY_L4];
    const ftab_target hit = t->targets[0], other = t->targets[1];
    // Of a plain UDP frame only the ports, the word's low half, can differ, unless a length is asked for.
    const bool by_ports = mask >> 48 == 0 && ((PLAIN_UDP_WORD ^ value) & mask) >> 32 == 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *p = base + off[i];
        bool miss = by_ports && dqi_plain_udp(p, len[i])
                        ? (dqi_be32(p + 34) & (uint32_t)mask) != (uint32_t)value
                        : misses_l4(p, len[i], mask, value);
        flow_id[i] = miss ? other.flow_id : hit.flow_id;
        queue[i] = miss ? other.queues[0] : hit.queues[0];
    }
}

void dqi_ftab_classify(const dqi_ftab *t, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                       uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    switch (t->shape) {
    case SHAPE_EMPTY:
    case SHAPE_CONSTANT:
        for (uint32_t i = 0; i < n; i++) {
            const ftab_target *to = &t->targets[0];
            flow_id[i] = to->flow_id;
            queue[i] = to->rss ? spread(t, to, base + off[i], len[i], NULL) : to->queues[0];
        }
        return;
    case SHAPE_ONE_L4:
        classify_one_l4(t, base, off, len, n, flow_id, queue);
        return;
    case SHAPE_GENERAL:
    case SHAPE_LAYERED:
        for (uint32_t i = 0; i < n; i++)
            classify_general(t, base + off[i], len[i], &flow_id[i], &queue[i]);
        return;
    }
}

uint32_t dqi_ftab_select(const dqi_ftab *t, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                         uint32_t n, uint32_t *out) {
    enum { CHUNK = 64 };
    uint32_t flow_id[CHUNK], found = 0;
    uint16_t queue[CHUNK];
    for (uint32_t first = 0; first < n; first += CHUNK) {
        uint32_t m = n - first < CHUNK ? n - first : CHUNK;
        dqi_ftab_classify(t, base, off + first, len + first, m, flow_id, queue);
        for (uint32_t i = 0; i < m; i++) {
            out[found] = first + i;
            found += queue[i] != DQI_NO_QUEUE;
        }
    }
    return found;
}
