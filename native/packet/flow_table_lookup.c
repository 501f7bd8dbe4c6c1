// flow_table_lookup.c: finds the first matching rule of a flow table (flow_table.c has the construction).
//
// The keys of 64 frames are built at once, as columns of words: for the most common shape (dqi_plain) by a
// kernel of the processor's instruction set (lanes.h), for others by parsing. Neighbours that no rule
// distinguishes share a key, so a burst of one flow needs one lookup. The remaining keys pass through the
// table's steps together, each with its best rank so far, until no later step can improve it: hashes and
// loads of different keys overlap, and the cost grows with the number of distinct masks, not with the number
// of rules.
#include "core/cpu_target.h"
#include "packet/flow_table.h"

enum {
    FEW = DQI_LANES / 4, // up to this many keys are compacted; else all frames are looked up
    NEAR_BUCKETS = 1024, // this many fit in a core's cache
    STEPS_AT_ONCE = 4    // steps between checks whether later ones can matter
};

#define PLAIN_UDP_WORD                                                                                       \
    ((uint64_t)DQI_PROTO_UDP << 40 | (uint64_t)(DQ_HAS_ETH | DQ_HAS_IPV4 | DQ_HAS_UDP) << 32)

static inline uint64_t plain_l4_word(const uint8_t *p) {
    uint64_t has = DQ_HAS_ETH | DQ_HAS_IPV4 | (p[23] == DQI_PROTO_UDP ? DQ_HAS_UDP : DQ_HAS_TCP);
    return (uint64_t)dqi_be16(p + 16) << 48 | (uint64_t)p[23] << 40 | has << 32 | dqi_be32(p + 34);
}

// Reports whether a frame does not match the one rule on ports.
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

// Keys that are looked up together.
typedef struct walkers {
    uint32_t n;
    dqi_keys plain;
    dqi_col word[KEY_WORDS]; // of keys; those that the table uses
    uint8_t of[DQI_LANES];   // the frame of each key
    const uint8_t *p[DQI_LANES];
    dqi_pkt pkt[DQI_LANES];                    // of parsed frames
    uint64_t own[DQI_LANES], below[DQI_LANES]; // lowest ranks so far in the table and its base
    // The last frame of the previous group, unless it was parsed.
    bool fresh; // there is none
    dqi_key last;
    const flow_table_target *last_to;
} walkers;

static inline bool has_gone(const uint64_t *gone, uint32_t rank) { return gone[rank / 64] >> rank % 64 & 1; }

static inline uint64_t lower(uint64_t a, uint64_t b) { return a < b ? a : b; }

// ways is a constant at each call. Branch-free: with frames of many flows branches would be mispredicted.
static inline void walk_buckets(const flow_table_step *s, uint32_t ways, const uint64_t *h, uint32_t n,
                                uint64_t *best) {
    const flow_table_slot *slots = s->slots;
    const uint64_t last = s->n_buckets - 1;
    DQI_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const flow_table_slot *bucket = &slots[(h[i] & last) * ways];
        const uint64_t tag = FLOW_TABLE_TAG(h[i]);
        uint64_t rank = best[i];
        for (uint32_t k = 0; k < ways; k++)
            rank = lower(rank, bucket[k] ^ tag);
        best[i] = rank;
    }
}

// Finds ranks by the hash's tags; mend compares the keys of the final ranks.
static void walk_hash(const dqi_flow_table *t, const flow_table_step *s, const walkers *w, uint64_t *best) {
    dqi_col hash;
    const uint64_t *h = hash.v;
    const uint32_t last = s->n_buckets - 1;
    dqi_key_part part[KEY_WORDS];
    uint32_t n_parts = 0;
    for (uint32_t words = s->cond->words; words != 0; words &= words - 1) {
        const int k = __builtin_ctz(words);
        part[n_parts++] = (dqi_key_part){&w->word[k], s->cond->mask.w[k]};
    }
    t->level->hash(part, n_parts, s->seed, w->n, &hash);
    if (s->ways == 1) {
        walk_buckets(s, 1, h, w->n, best);
        return;
    }
    for (uint32_t i = 0; s->n_buckets > NEAR_BUCKETS && i < w->n; i++)
        __builtin_prefetch(&s->slots[(h[i] & last) * BUCKET_WAYS]);
    walk_buckets(s, BUCKET_WAYS, h, w->n, best);
}

// Collects the bits that differ from the condition's masked values.
static inline void differ(const dqi_cond *c, const walkers *w, uint64_t *diff) {
    for (uint32_t i = 0; i < w->n; i++)
        diff[i] = (w->word[KEY_L4].v[i] & c->mask.w[KEY_L4]) ^ c->value.w[KEY_L4];
    for (uint32_t words = c->words & ~(1u << KEY_L4); words != 0; words &= words - 1) {
        const int k = __builtin_ctz(words);
        const uint64_t mask = c->mask.w[k], value = c->value.w[k], *word = w->word[k].v;
        for (uint32_t i = 0; i < w->n; i++)
            diff[i] |= (word[i] & mask) ^ value;
    }
}

// shift is a constant at each call.
static inline void walk_port(const flow_table_step *s, uint32_t shift, const walkers *w, uint64_t *best) {
    const uint64_t *l4 = w->word[KEY_L4].v, mask = s->cond->mask.w[KEY_L4], value = s->cond->value.w[KEY_L4];
    const dqi_port_map *ports = s->ports;
    const uint32_t n = w->n;
    DQI_UNROLL
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t rank = dqi_port_map_get(ports, (uint16_t)(l4[i] >> shift));
        best[i] = lower(best[i], (l4[i] & mask) == value ? rank : NO_RANK);
    }
}

static void walk_ports(const flow_table_step *s, const walkers *w, uint64_t *best) {
    if (s->cond->words & ~(1u << KEY_L4)) {
        uint64_t diff[DQI_LANES];
        differ(s->cond, w, diff);
        for (uint32_t i = 0; i < w->n; i++) {
            const uint32_t rank = dqi_port_map_get(s->ports, (uint16_t)(w->word[KEY_L4].v[i] >> s->shift));
            best[i] = lower(best[i], diff[i] == 0 ? rank : NO_RANK);
        }
    } else if (s->shift == 0) {
        walk_port(s, 0, w, best);
    } else {
        walk_port(s, 16, w, best);
    }
}

static bool meets_extra(const dqi_cond *c, const walkers *w, uint32_t i) {
    return dqi_cond_extra(c, w->p[w->of[i]], &w->pkt[w->of[i]], w->word[KEY_L4].v[i]);
}

static void walk_single(const flow_table_step *s, const walkers *w, uint64_t *best) {
    uint64_t diff[DQI_LANES];
    differ(s->cond, w, diff);
    for (uint32_t i = 0; i < w->n; i++)
        best[i] = lower(best[i], diff[i] == 0 && meets_extra(s->cond, w, i) ? s->rank : NO_RANK);
}

static bool meets(const dqi_cond *c, const dqi_key *key, const walkers *w, uint32_t i) {
    return dqi_cond_words(c, key) && meets_extra(c, w, i);
}

// Returns the rank of frames that match in no step.
static uint32_t other(const dqi_flow_table *t, const uint64_t *gone) {
    return t->last < t->n && gone && has_gone(gone, t->last) ? t->n : t->last;
}

static void key_of(const dqi_flow_table *t, const walkers *w, uint32_t i, dqi_key *key) {
    for (uint32_t k = 0; k < t->n_words; k++)
        key->w[t->word[k]] = w->word[t->word[k]].v[i];
}

// Returns the exact rank of key i if a tag collided or the rule is removed, by comparing keys in each step.
static uint32_t walk_alone(const dqi_flow_table *t, const uint64_t *gone, const walkers *w, uint32_t i) {
    uint32_t best = other(t, gone);
    dqi_key key;
    key_of(t, w, i, &key);
    for (const flow_table_step *s = t->steps, *end = s + t->n_steps; s < end && s->rank < best; s++) {
        uint32_t rank = s->rank;
        if (s->kind == STEP_PORTS)
            rank = dqi_port_map_get(s->ports, (uint16_t)(w->word[KEY_L4].v[i] >> s->shift));
        if (s->kind != STEP_HASH) {
            if (rank < best && meets(&t->conds[rank], &key, w, i) && !(gone && has_gone(gone, rank)))
                best = rank;
            continue;
        }
        const uint64_t h = dqi_flow_table_hash(s->cond, &key, s->seed);
        const flow_table_slot *slot = &s->slots[(h & (s->n_buckets - 1)) * s->ways];
        for (const flow_table_slot *last = slot + s->ways; slot < last; slot++) {
            const uint64_t r = *slot ^ FLOW_TABLE_TAG(h);
            if (r < best && dqi_cond_words(&t->conds[r], &key) && !(gone && has_gone(gone, (uint32_t)r)))
                best = (uint32_t)r;
        }
    }
    return best;
}

// Reports whether each of n ranks is below this one.
static bool all_below(const uint64_t *best, uint32_t n, uint32_t rank) {
    uint64_t worst = 0;
    for (uint32_t i = 0; i < n; i++)
        worst = best[i] > worst ? best[i] : worst;
    return worst < rank;
}

// Returns the bits in which key i differs from the rule of a rank. n_words is a constant at each call.
static inline uint64_t wrong_bits(const dqi_flow_table *t, uint32_t n_words, const uint64_t *const *word,
                                  uint32_t i, uint64_t rank) {
    const flow_table_check *c = &t->checks[rank * n_words];
    uint64_t diff = 0;
    for (uint32_t k = 0; k < n_words; k++)
        diff |= (word[k][i] & c[k].mask) ^ c[k].value;
    return diff;
}

// Looks up exactly the keys that differ from the rule of their rank (another key has the same tag) and those
// whose rule is removed. Both are rare, so all keys are first checked together.
static inline void mend(const dqi_flow_table *t, uint32_t n_words, const uint64_t *gone, const walkers *w,
                        uint32_t none, uint64_t *best) {
    const uint32_t n = w->n;
    const uint64_t *word[KEY_WORDS];
    for (uint32_t k = 0; k < n_words; k++)
        word[k] = w->word[t->word[k]].v;
    uint64_t wrong = 0;
    DQI_UNROLL
    for (uint32_t i = 0; i < n; i++)
        wrong |= wrong_bits(t, n_words, word, i, best[i]);
    if (wrong == 0 && gone == NULL) return;
    for (uint32_t i = 0; i < n; i++)
        if (wrong_bits(t, n_words, word, i, best[i]) != 0 ||
            (gone && best[i] < none && has_gone(gone, (uint32_t)best[i])))
            best[i] = walk_alone(t, gone, w, i);
}

// Computes for each key the rank of the first matching rule that is not in gone (NULL: none is removed); n if
// none matches.
static void walk(const dqi_flow_table *t, const uint64_t *gone, const walkers *w, uint64_t *best) {
    const uint32_t none = other(t, gone), n = w->n;
    for (uint32_t i = 0; i < n; i++)
        best[i] = none;
    for (uint32_t k = 0; k < t->n_steps; k++) {
        const flow_table_step *s = &t->steps[k];
        if (k % STEPS_AT_ONCE == 0 && k > 0 && all_below(best, n, s->rank)) break;
        if (s->kind == STEP_HASH)
            walk_hash(t, s, w, best);
        else if (s->kind == STEP_PORTS)
            walk_ports(s, w, best);
        else
            walk_single(s, w, best);
    }
    if (t->exact && !gone) return;
    switch (t->n_words) {
    case 1:
        mend(t, 1, gone, w, none, best);
        return;
    case 2:
        mend(t, 2, gone, w, none, best);
        return;
    default:
        mend(t, t->n_words, gone, w, none, best);
    }
}

static void walk_all(const dqi_flow_table *t, walkers *w) {
    walk(t, NULL, w, w->own);
    if (t->base) walk(t->base, t->gone, w, w->below);
}

static uint16_t spread(const dqi_flow_table *t, const flow_table_target *to, const uint8_t *p, uint32_t len,
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

// Computes the words of plain frames that the kernel does not; returns where neighbours differ.
static uint64_t more_words(const dqi_flow_table *t, const uint8_t *base, const uint64_t *off, uint32_t n,
                           uint64_t plain, walkers *w) {
    uint64_t changed = 0;
    for (int k = KEY_IPV6_SRC_HI; t->words & 15u << KEY_IPV6_SRC_HI && k <= KEY_IPV6_DST_LO; k++)
        memset(&w->word[k], 0, n * sizeof w->word[k].v[0]);
    if (!(t->words & (1u << KEY_ETH_DST | 1u << KEY_ETH_SRC))) return 0;
    uint64_t *dst = w->word[KEY_ETH_DST].v, *src = w->word[KEY_ETH_SRC].v;
    uint64_t last_dst = w->last.w[KEY_ETH_DST], last_src = w->last.w[KEY_ETH_SRC];
    for (uint32_t i = 0; i < n; i++) {
        if (!(plain >> i & 1)) continue;
        const uint8_t *p = base + off[i];
        dst[i] = (dqi_be64(p) & ~0xffffull) | DQI_TYPE_IPV4;
        src[i] = dqi_be64(p + 6) & ~0xffffull;
        uint64_t diff =
            ((dst[i] ^ last_dst) & t->any.w[KEY_ETH_DST]) | ((src[i] ^ last_src) & t->any.w[KEY_ETH_SRC]);
        changed |= (uint64_t)(diff != 0) << i;
        last_dst = dst[i];
        last_src = src[i];
    }
    return changed;
}

// Parses frame i, which is not plain, and builds its key.
static void make_odd(const dqi_flow_table *t, const uint8_t *p, uint32_t len, uint32_t i, walkers *w) {
    dqi_key key;
    dqi_parse(p, len, &w->pkt[i]);
    dqi_key_make(p, &w->pkt[i], t->words, &key);
    w->p[i] = p;
    w->word[KEY_L4].v[i] = key.w[KEY_L4];
    for (uint32_t words = t->words; words != 0; words &= words - 1) {
        const int k = __builtin_ctz(words);
        w->word[k].v[i] = key.w[k];
    }
}

// Builds the keys of frames; bit i of the result: frame i's may differ from that of the frame before.
static uint64_t gather(const dqi_flow_table *t, const dqi_packets *in, walkers *w) {
    const uint64_t all = in->n == DQI_LANES ? UINT64_MAX : (1ull << in->n) - 1;
    uint64_t plain = 0, changed = w->fresh;
    if (t->plain_ok) {
        w->plain.l4 = &w->word[KEY_L4];
        w->plain.ipv4 = &w->word[KEY_IPV4];
        w->plain.l4_mask = t->any.w[KEY_L4];
        w->plain.ipv4_mask = t->any.w[KEY_IPV4];
        w->plain.last_l4 = w->last.w[KEY_L4];
        w->plain.last_ipv4 = w->last.w[KEY_IPV4];
        plain = t->level->keys(in, &w->plain) & all;
        changed |= w->plain.changed;
        changed |= more_words(t, in->base, in->off, in->n, plain, w);
    }
    const uint64_t odd = all & ~plain;
    for (uint64_t left = odd; left != 0; left &= left - 1) {
        const uint32_t i = (uint32_t)__builtin_ctzll(left);
        make_odd(t, in->base + in->off[i], in->len[i], i, w);
    }
    w->fresh = odd >> (in->n - 1) & 1;
    for (uint32_t k = 0; k < KEY_WORDS; k++)
        if ((t->words | 1u << KEY_L4) & 1u << k) w->last.w[k] = w->word[k].v[in->n - 1];
    return (changed | odd | odd << 1) & all;
}

// Compacts the keys of the frames in bits to the front.
static void gather_keys(const dqi_flow_table *t, uint64_t bits, walkers *w) {
    w->n = 0;
    for (; bits != 0; bits &= bits - 1)
        w->of[w->n++] = (uint8_t)__builtin_ctzll(bits);
    for (uint32_t words = t->words | 1u << KEY_L4; words != 0; words &= words - 1) {
        uint64_t *v = w->word[__builtin_ctz(words)].v;
        for (uint32_t i = 0; i < w->n; i++)
            v[i] = v[w->of[i]];
    }
}

// Returns the action for frames of key i.
static const flow_table_target *target_of(const dqi_flow_table *t, const walkers *w, uint32_t i) {
    const dqi_flow_table *base = t->base;
    const uint64_t rank = w->own[i], below = w->below[i];
    if (base == NULL) return &t->targets[rank];
    bool own = rank < t->n && (below == base->n || t->rules[rank].order < base->rules[below].order);
    return own ? &t->targets[rank] : &base->targets[below];
}

// Stores the action for frames [i, end).
static void put(const dqi_flow_table *t, const flow_table_target *to, const dqi_packets *in, uint32_t i,
                uint32_t end, const walkers *w, uint32_t *flow_id, uint16_t *queue) {
    const uint32_t id = to->flow_id;
    const uint16_t only = to->queues[0];
    for (uint32_t k = i; k < end; k++)
        flow_id[k] = id;
    for (uint32_t k = i; k < end; k++)
        queue[k] = only;
    for (uint32_t k = i; to->rss && k < end; k++)
        queue[k] = spread(t, to, in->base + in->off[k], in->len[k], &w->pkt[k]);
}

// Looks up one key per run of frames. bits: starts of runs; the first frames may belong to the last run of
// the previous group.
static void look_up_runs(const dqi_flow_table *t, const dqi_packets *in, uint64_t bits, walkers *w,
                         uint32_t *flow_id, uint16_t *queue) {
    gather_keys(t, bits, w);
    walk_all(t, w);
    uint32_t at = 0;
    for (uint32_t i = 0; i < w->n; i++) {
        put(t, w->last_to, in, at, w->of[i], w, flow_id, queue);
        at = w->of[i];
        w->last_to = target_of(t, w, i);
    }
    put(t, w->last_to, in, at, in->n, w, flow_id, queue);
}

// base: the table is layered (a constant at each call).
static inline void put_each(const dqi_flow_table *t, bool base, const dqi_packets *in, const walkers *w,
                            uint32_t *flow_id, uint16_t *queue) {
    const flow_table_target *targets = t->targets;
    DQI_UNROLL
    for (uint32_t i = 0, n = in->n; i < n; i++) {
        const flow_table_target *to = base ? target_of(t, w, i) : &targets[w->own[i]];
        flow_id[i] = to->flow_id;
        queue[i] = to->queues[0];
        if (to->rss) queue[i] = spread(t, to, in->base + in->off[i], in->len[i], &w->pkt[i]);
    }
}

static void look_up_each(const dqi_flow_table *t, const dqi_packets *in, walkers *w, uint32_t *flow_id,
                         uint16_t *queue) {
    w->n = in->n;
    for (uint32_t i = 0; i < DQI_LANES; i++)
        w->of[i] = (uint8_t)i;
    walk_all(t, w);
    if (t->base)
        put_each(t, true, in, w, flow_id, queue);
    else
        put_each(t, false, in, w, flow_id, queue);
    w->last_to = target_of(t, w, w->n - 1);
}

// Reports whether all frames are plain UDP and no rule distinguishes them from the last frame before. Used if
// rules test ports only: the word's other parts are equal in all plain UDP frames.
static bool go_on(const dqi_flow_table *t, const dqi_packets *in, const walkers *w) {
    const uint64_t any = t->any.w[KEY_L4];
    const uint32_t ports = (uint32_t)any, last = (uint32_t)w->last.w[KEY_L4] & ports;
    if (w->fresh || t->words & ~(1u << KEY_L4) || any >> 48 != 0 || !t->plain_ok) return false;
    if (((w->last.w[KEY_L4] ^ PLAIN_UDP_WORD) & any) >> 32 != 0) return false;
    for (uint32_t i = 0; i < in->n; i++) {
        const uint8_t *p = in->base + in->off[i];
        if (!dqi_plain_udp(p, in->len[i]) || (dqi_be32(p + 34) & ports) != last) return false;
    }
    return true;
}

static void classify_general(const dqi_flow_table *t, const uint8_t *base, const uint64_t *off,
                             const uint32_t *len, uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    walkers w;
    w.fresh = true;
    w.last = (dqi_key){0};
    w.last_to = &t->targets[t->n];
    for (uint32_t first = 0; first < n; first += DQI_LANES) {
        const uint32_t m = n - first < DQI_LANES ? n - first : DQI_LANES;
        const dqi_packets in = {.base = (uint8_t *)base, .off = off + first, .len = len + first, .n = m};
        if (go_on(t, &in, &w)) {
            put(t, w.last_to, &in, 0, m, &w, flow_id + first, queue + first);
            continue;
        }
        const uint64_t bits = gather(t, &in, &w);
        if (__builtin_popcountll(bits) <= FEW)
            look_up_runs(t, &in, bits, &w, flow_id + first, queue + first);
        else
            look_up_each(t, &in, &w, flow_id + first, queue + first);
    }
}

// Handles one rule on ports, perhaps followed by a catch-all: targets[1] is the miss target either way.
static void classify_one_l4(const dqi_flow_table *t, const uint8_t *base, const uint64_t *off,
                            const uint32_t *len, uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    const uint64_t mask = t->conds[0].mask.w[KEY_L4], value = t->conds[0].value.w[KEY_L4];
    const flow_table_target hit = t->targets[0], other = t->targets[1];
    // In a plain UDP frame only the ports, the word's low half, can differ, unless a rule tests a length.
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

void dqi_flow_table_classify(const dqi_flow_table *t, const uint8_t *base, const uint64_t *off,
                             const uint32_t *len, uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    switch (t->shape) {
    case SHAPE_EMPTY:
    case SHAPE_CONSTANT:
        for (uint32_t i = 0; i < n; i++) {
            const flow_table_target *to = &t->targets[0];
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

uint32_t dqi_flow_table_select(const dqi_flow_table *t, const uint8_t *base, const uint64_t *off,
                               const uint32_t *len, uint32_t n, uint32_t *out) {
    enum { CHUNK = 64 };
    uint32_t flow_id[CHUNK], found = 0;
    uint16_t queue[CHUNK];
    for (uint32_t first = 0; first < n; first += CHUNK) {
        uint32_t m = n - first < CHUNK ? n - first : CHUNK;
        dqi_flow_table_classify(t, base, off + first, len + first, m, flow_id, queue);
        for (uint32_t i = 0; i < m; i++) {
            out[found] = first + i;
            found += queue[i] != DQI_NO_QUEUE;
        }
    }
    return found;
}
