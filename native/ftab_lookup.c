// ftab_lookup.c: which rule of a flow table a frame matches first (ftab.c says how tables are made).
//
// A lookup walks the table's steps, keeps the best rank found, and ends when no later step can be better. So
// the cost grows with the number of different masks, not with the number of rules. Some frames walk together,
// step by step: the hashes and loads of one don't wait for those of another. Frames of the commonest shape
// (dqi_plain) get their key from fixed offsets without a parse.
#include "ftab.h"

#define WALKERS       16
#define FEW_STEPS     2    // each frame walks alone
#define NEAR_BUCKETS  1024 // so many are in a core's cache
#define STEPS_AT_ONCE 4    // before a look at whether the rest could change anything

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

// Frames that walk together. best: of each frame the lowest ranks that steps had for it, in four lanes.
typedef struct walkers {
    uint32_t n;
    const uint8_t *p[WALKERS];
    dqi_key key[WALKERS];
    dqi_pkt pkt[WALKERS]; // where parsed
    bool parsed[WALKERS];
    ftab_lanes best[WALKERS];
    uint32_t own[WALKERS], below[WALKERS]; // ranks in the table and in its base
} walkers;

// Ranks are below 2^31, and signed numbers are compared by one instruction.
static inline ftab_lanes lowest(ftab_lanes a, ftab_lanes b) {
    typedef int32_t lanes __attribute__((vector_size(16)));
    ftab_lanes less = (ftab_lanes)((lanes)a < (lanes)b);
    return (a & less) | (b & ~less);
}

static inline uint32_t lowest_lane(ftab_lanes v) {
    v = lowest(v, (ftab_lanes){v[2], v[3], v[0], v[1]});
    return v[0] < v[1] ? v[0] : v[1];
}

static inline void take(ftab_lanes *best, uint32_t rank) {
    *best = lowest(*best, (ftab_lanes){rank, NO_RANK, NO_RANK, NO_RANK});
}

static inline bool has_gone(const uint64_t *gone, uint32_t rank) { return gone[rank / 64] >> rank % 64 & 1; }

// Hashes word by word: frames don't wait for each other.
static inline void hash_all(const dqi_cond *c, const walkers *w, uint64_t *h) {
    for (uint32_t i = 0; i < w->n; i++)
        h[i] = 0;
    for (uint32_t words = c->words; words != 0; words &= words - 1) {
        const int k = __builtin_ctz(words);
        const uint64_t mask = c->mask.w[k];
        for (uint32_t i = 0; i < w->n; i++)
            h[i] = dqi_ftab_mix(h[i], w->key[i].w[k] & mask);
    }
}

// Ranks whose tags are the hash's: who is taken in the end is compared then.
static void walk_hash(const ftab_step *s, walkers *w) {
    uint64_t h[WALKERS];
    const uint32_t last = s->n_buckets - 1;
    hash_all(s->cond, w, h);
    for (uint32_t i = 0; s->n_buckets > NEAR_BUCKETS && i < w->n; i++)
        __builtin_prefetch(&s->buckets[h[i] >> 32 & last]);
    for (uint32_t i = 0; i < w->n; i++) {
        const uint32_t tag = (uint32_t)h[i];
        for (const ftab_bucket *b = &s->buckets[h[i] >> 32 & last];; b = &s->buckets[b->tag[BUCKET_NEXT]]) {
            ftab_lanes same = (ftab_lanes)(b->tag == tag);
            w->best[i] = lowest(w->best[i], (b->rank & same) | (~same & NO_RANK));
            if (b->tag[BUCKET_NEXT] == 0) break;
        }
    }
}

static void walk_ports(const ftab_step *s, walkers *w) {
    uint64_t diff[WALKERS] = {0};
    for (uint32_t words = s->cond->words; words != 0; words &= words - 1) {
        const int k = __builtin_ctz(words);
        const uint64_t mask = s->cond->mask.w[k], value = s->cond->value.w[k];
        for (uint32_t i = 0; i < w->n; i++)
            diff[i] |= (w->key[i].w[k] & mask) ^ value;
    }
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t rank = dqi_port_map_get(s->ports, (uint16_t)(w->key[i].w[KEY_L4] >> s->shift));
        take(&w->best[i], diff[i] == 0 ? rank : NO_RANK);
    }
}

static bool meets(const dqi_cond *c, const walkers *w, uint32_t i) {
    return dqi_cond_words(c, &w->key[i]) && dqi_cond_extra(c, w->p[i], &w->pkt[i], w->key[i].w[KEY_L4]);
}

static void walk_single(const ftab_step *s, walkers *w) {
    for (uint32_t i = 0; i < w->n; i++)
        if (meets(s->cond, w, i)) take(&w->best[i], s->rank);
}

// The rank of frame i where the tags were wrong, or the rule is gone: each step is asked exactly.
static uint32_t walk_alone(const dqi_ftab *t, const uint64_t *gone, const walkers *w, uint32_t i) {
    uint32_t best = t->n;
    for (const ftab_step *s = t->steps, *end = s + t->n_steps; s < end && s->rank < best; s++) {
        uint32_t rank = s->rank;
        if (s->kind == STEP_PORTS)
            rank = dqi_port_map_get(s->ports, (uint16_t)(w->key[i].w[KEY_L4] >> s->shift));
        if (s->kind != STEP_HASH) {
            if (rank < best && meets(&t->conds[rank], w, i) && !(gone && has_gone(gone, rank))) best = rank;
            continue;
        }
        uint64_t h = dqi_ftab_hash(s->cond, &w->key[i]);
        uint32_t at = h >> 32 & (s->n_buckets - 1);
        do {
            const ftab_bucket *b = &s->buckets[at];
            for (uint32_t k = 0; k < BUCKET_WAYS; k++)
                if (b->tag[k] == (uint32_t)h && b->rank[k] < best &&
                    dqi_cond_words(&t->conds[b->rank[k]], &w->key[i]) &&
                    !(gone && has_gone(gone, b->rank[k])))
                    best = b->rank[k];
            at = b->tag[BUCKET_NEXT];
        } while (at != 0);
    }
    return best;
}

// True when each frame has a rank below this one.
static bool all_below(const walkers *w, uint32_t rank) {
    uint32_t worst = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t r = lowest_lane(w->best[i]);
        worst = r > worst ? r : worst;
    }
    return worst < rank;
}

// As dqi_cond_words, with all words of the table: rules of all kinds take the same steps.
static inline bool is_right(const dqi_ftab *t, uint32_t rank, const dqi_key *key) {
    const ftab_check *c = &t->checks[rank * t->n_words];
    uint64_t diff = 0;
    for (uint32_t k = 0; k < t->n_words; k++)
        diff |= (key->w[t->word[k]] & c[k].mask) ^ c[k].value;
    return diff == 0;
}

// For each frame the rank of the first rule that it matches, of those that are not gone (NULL: all are
// there); n without one.
static void walk(const dqi_ftab *t, const uint64_t *gone, walkers *w, uint32_t *out) {
    if (t->n_steps <= FEW_STEPS) {
        for (uint32_t i = 0; i < w->n; i++)
            out[i] = walk_alone(t, gone, w, i);
        return;
    }
    for (uint32_t i = 0; i < w->n; i++)
        w->best[i] = (ftab_lanes){NO_RANK, NO_RANK, NO_RANK, NO_RANK};
    for (uint32_t k = 0; k < t->n_steps; k++) {
        const ftab_step *s = &t->steps[k];
        if (k % STEPS_AT_ONCE == 0 && k > 0 && all_below(w, s->rank)) break;
        if (s->kind == STEP_HASH)
            walk_hash(s, w);
        else if (s->kind == STEP_PORTS)
            walk_ports(s, w);
        else
            walk_single(s, w);
    }
    for (uint32_t i = 0; i < w->n; i++) {
        uint32_t rank = lowest_lane(w->best[i]);
        bool wrong = rank < t->n && (!is_right(t, rank, &w->key[i]) || (gone && has_gone(gone, rank)));
        out[i] = wrong ? walk_alone(t, gone, w, i) : rank < t->n ? rank : t->n;
    }
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

static void gather(const dqi_ftab *t, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                   walkers *w) {
    for (uint32_t i = 0; i < w->n; i++) {
        const uint8_t *p = w->p[i] = base + off[i];
        w->parsed[i] = !(t->plain_ok && dqi_plain(p, len[i]));
        if (!w->parsed[i]) {
            plain_key(p, t->words, &w->key[i]);
            continue;
        }
        dqi_parse(p, len[i], &w->pkt[i]);
        dqi_key_make(p, &w->pkt[i], t->words, &w->key[i]);
    }
}

// What is to be done with frame i.
static const ftab_target *target_of(const dqi_ftab *t, const walkers *w, uint32_t i) {
    const dqi_ftab *base = t->base;
    uint32_t rank = w->own[i], below = w->below[i];
    if (base == NULL) return &t->targets[rank];
    bool own = rank < t->n && (below == base->n || t->rules[rank].order < base->rules[below].order);
    return own ? &t->targets[rank] : &base->targets[below];
}

static void classify_general(const dqi_ftab *t, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                             uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    walkers w;
    for (uint32_t first = 0; first < n; first += w.n) {
        w.n = n - first < WALKERS ? n - first : WALKERS;
        gather(t, base, off + first, len + first, &w);
        walk(t, NULL, &w, w.own);
        if (t->base) walk(t->base, t->gone, &w, w.below);
        for (uint32_t i = 0; i < w.n; i++) {
            const ftab_target *to = target_of(t, &w, i);
            flow_id[first + i] = to->flow_id;
            queue[first + i] = to->rss ? spread(t, to, w.p[i], len[first + i], w.parsed[i] ? &w.pkt[i] : NULL)
                                       : to->queues[0];
        }
    }
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
        classify_general(t, base, off, len, n, flow_id, queue);
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
