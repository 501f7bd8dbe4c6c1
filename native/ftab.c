// ftab.c: flow tables: the first of many rules that a frame matches.
//
// Each rule is masks and values over a key of 64-bit words made from the frame (match_key.h). Rules are
// ranked by their order. Rules with the same masks form a group and share a hash table of their values, which
// keeps, for equal values, the lowest rank; groups too small to gain from hashing, and rules with port ranges
// or flex items, are tried one by one. These groups and single rules are the table's steps, sorted by the
// lowest rank that each can yield: a lookup walks them, keeps the best rank found, and ends when no later
// step can be better. So the cost grows with the number of different masks, not with the number of rules.
// Rules behind a catch-all are never reached and dropped.
//
// Frames of the commonest shape (dqi_plain) get their key from fixed offsets without a parse. A table of one
// rule on ports, with or without a catch-all behind it, compares one word; a table whose first rule is a
// catch-all reads no packet bytes, unless that rule spreads by hash.
#include "match_key.h"
#include "dqi.h"
#include "rss.h"

#include <stdlib.h>

enum { GROUP_MIN = 4, NO_RANK = INT32_MAX };

// What a rule does with a frame.
typedef struct target {
    uint32_t flow_id;
    uint16_t n_queues; // 0: the answer for no match
    uint16_t rss;
    uint16_t queues[DQ_RULE_MAX_QUEUES];
} target;

typedef struct slot {
    uint32_t tag;  // upper half of the hash
    uint32_t rank; // + 1; 0: empty
} slot;

// Single rule: n_slots is 0 and cond is the rule's. Group: cond is that of any of its rules and gives the
// masks.
typedef struct step {
    uint32_t rank; // lowest that this step can yield
    uint32_t n_slots;
    const dqi_cond *cond;
    slot *slots;
} step;

typedef enum shape { SHAPE_EMPTY, SHAPE_CONSTANT, SHAPE_ONE_L4, SHAPE_GENERAL } shape;

struct dqi_ftab {
    shape shape;
    uint32_t n; // rules that can be reached
    uint32_t n_steps;
    uint32_t words; // of the key, that some rule needs
    bool plain_ok;  // no rule looks further than fixed offsets can
    const dqi_rss *rss;
    dqi_cond *conds; // by rank
    target *targets; // by rank; targets[n] is the answer for no match
    step *steps;
};

static bool has_extra(const dqi_cond *c) { return c->src_range || c->dst_range || c->flex; }
static bool catch_all(const dqi_cond *c) { return c->words == 0 && !has_extra(c); }

// ---- building ---------------------------------------------------------------------------------------------

static uint64_t hash_masked(const dqi_cond *c, const dqi_key *key) {
    uint64_t h = 0;
    for (uint32_t words = c->words; words != 0; words &= words - 1) {
        int i = __builtin_ctz(words);
        h = (h ^ (key->w[i] & c->mask.w[i])) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    return h * 0xd6e8feb86659fd93ull;
}

typedef struct ranked {
    const dq_rule *rule;
    uint32_t index;
} ranked;

static int by_order(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->rule->order != y->rule->order) return x->rule->order < y->rule->order ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

// Brings rules with the same masks together, those that cannot be grouped to the end; within, by rank.
static int by_masks(const void *a, const void *b) {
    const dqi_cond *x = *(const dqi_cond *const *)a, *y = *(const dqi_cond *const *)b;
    int d = (int)has_extra(x) - (int)has_extra(y);
    if (d == 0) d = memcmp(&x->mask, &y->mask, sizeof x->mask);
    if (d == 0) d = x < y ? -1 : x > y;
    return d;
}

static int by_rank(const void *a, const void *b) {
    const step *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

// Same value under the same masks as a rule that is in the table already: that one has the lower rank and
// stays.
static void insert(step *s, const dqi_cond *conds, const dqi_cond *c) {
    uint64_t h = hash_masked(c, &c->value);
    uint32_t mask = s->n_slots - 1, i = (uint32_t)h & mask;
    for (; s->slots[i].rank != 0; i = (i + 1) & mask)
        if (memcmp(&conds[s->slots[i].rank - 1].value, &c->value, sizeof c->value) == 0) return;
    s->slots[i] = (slot){(uint32_t)(h >> 32), (uint32_t)(c - conds) + 1};
}

// Makes the steps for n rules of equal masks. False: no memory.
static bool add_group(dqi_ftab *t, const dqi_cond **group, uint32_t n) {
    if (n < GROUP_MIN || has_extra(group[0])) {
        for (uint32_t i = 0; i < n; i++)
            t->steps[t->n_steps++] = (step){.rank = (uint32_t)(group[i] - t->conds), .cond = group[i]};
        return true;
    }
    step *s = &t->steps[t->n_steps++];
    *s = (step){.rank = (uint32_t)(group[0] - t->conds), .cond = group[0], .n_slots = 8};
    while (s->n_slots < 2 * n)
        s->n_slots *= 2;
    s->slots = calloc(s->n_slots, sizeof *s->slots);
    if (s->slots == NULL) return false;
    for (uint32_t i = 0; i < n; i++)
        insert(s, t->conds, group[i]);
    return true;
}

static bool make_steps(dqi_ftab *t) {
    const dqi_cond **order = calloc(t->n, sizeof(*order));
    if (order == NULL) return false;
    for (uint32_t i = 0; i < t->n; i++)
        order[i] = &t->conds[i];
    qsort(order, t->n, sizeof *order, by_masks);
    bool ok = true;
    for (uint32_t i = 0, end; ok && i < t->n; i = end) {
        for (end = i + 1; end < t->n; end++)
            if (has_extra(order[end]) ||
                memcmp(&order[i]->mask, &order[end]->mask, sizeof order[i]->mask) != 0)
                break;
        ok = add_group(t, order + i, end - i);
    }
    free(order);
    qsort(t->steps, t->n_steps, sizeof *t->steps, by_rank);
    return ok;
}

static shape shape_of(const dqi_ftab *t) {
    if (t->n == 0) return SHAPE_EMPTY;
    if (catch_all(&t->conds[0])) return SHAPE_CONSTANT;
    bool single = t->n == 1 || (t->n == 2 && catch_all(&t->conds[1]));
    bool l4 = t->conds[0].words == 1u << KEY_L4 && !has_extra(&t->conds[0]);
    return single && l4 && t->rss == NULL ? SHAPE_ONE_L4 : SHAPE_GENERAL;
}

static void add_rule(dqi_ftab *t, const dq_rule *r) {
    dqi_cond *c = &t->conds[t->n];
    dqi_cond_make(&r->match, c);
    target *to = &t->targets[t->n++];
    *to = (target){.flow_id = r->flow_id, .n_queues = r->n_queues, .rss = r->rss && r->n_queues > 1};
    memcpy(to->queues, r->queues, sizeof to->queues);
    t->words |= c->words;
    if (c->flex || c->words & 1u << KEY_ECPRI) t->plain_ok = false;
    if (to->rss) t->rss = dqi_rss_default();
}

static int check_rules(const dq_rule *rules, uint32_t n, dq_diag *diag) {
    for (uint32_t i = 0; i < n; i++) {
        dq_diag why = {{0}};
        int err = dqi_match_check(&rules[i].match, &why);
        if (err != DQ_OK) return dqi_fail(diag, err, "flow %u: %s", rules[i].flow_id, why.text);
        if (rules[i].n_queues < 1 || rules[i].n_queues > DQ_RULE_MAX_QUEUES)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "flow %u: %u queues are outside 1..%u",
                            rules[i].flow_id, rules[i].n_queues, DQ_RULE_MAX_QUEUES);
    }
    return n < NO_RANK ? DQ_OK : dqi_fail(diag, DQ_INVALID_PARAMETER, "flows: %u are too many", n);
}

static bool fill(dqi_ftab *t, const dq_rule *rules, uint32_t n) {
    ranked *order = calloc(n + 1, sizeof *order);
    t->conds = calloc(n + 1, sizeof *t->conds);
    t->targets = calloc(n + 1, sizeof *t->targets);
    t->steps = calloc(n + 1, sizeof *t->steps);
    bool ok = order != NULL && t->conds != NULL && t->targets != NULL && t->steps != NULL;
    if (ok) {
        for (uint32_t i = 0; i < n; i++)
            order[i] = (ranked){&rules[i], i};
        qsort(order, n, sizeof *order, by_order);
        for (uint32_t i = 0; i < n && (i == 0 || !catch_all(&t->conds[i - 1])); i++)
            add_rule(t, order[i].rule);
        t->targets[t->n] = (target){.queues = {DQI_NO_QUEUE}};
        ok = make_steps(t);
    }
    free(order);
    return ok;
}

int dqi_ftab_build(const dq_rule *rules, uint32_t n, dqi_ftab **out, dq_diag *diag) {
    int err = check_rules(rules, n, diag);
    if (err != DQ_OK) return err;
    dqi_ftab *t = calloc(1, sizeof *t);
    if (t != NULL) t->plain_ok = true;
    if (t == NULL || !fill(t, rules, n)) {
        dqi_ftab_free(t);
        return dqi_fail(diag, DQ_GENERIC_FAILURE, "flows: no memory for a table of %u", n);
    }
    t->shape = shape_of(t);
    *out = t;
    return DQ_OK;
}

void dqi_ftab_free(dqi_ftab *t) {
    if (t == NULL) return;
    for (uint32_t i = 0; i < t->n_steps; i++)
        free(t->steps[i].slots);
    free(t->steps);
    free(t->targets);
    free(t->conds);
    free(t);
}

// ---- lookup -----------------------------------------------------------------------------------------------

static inline uint64_t plain_l4_word(const uint8_t *p) {
    uint64_t has = DQ_HAS_ETH | DQ_HAS_IPV4 | (p[23] == DQI_PROTO_UDP ? DQ_HAS_UDP : DQ_HAS_TCP);
    return (uint64_t)dqi_be16(p + 16) << 48 | (uint64_t)p[23] << 40 | has << 32 | dqi_be32(p + 34);
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
static uint32_t probe(const step *s, const dqi_cond *conds, const dqi_key *key) {
    uint64_t h = hash_masked(s->cond, key);
    uint32_t mask = s->n_slots - 1;
    for (uint32_t i = (uint32_t)h & mask; s->slots[i].rank != 0; i = (i + 1) & mask) {
        uint32_t rank = s->slots[i].rank - 1;
        if (s->slots[i].tag == (uint32_t)(h >> 32) && dqi_cond_words(&conds[rank], key)) return rank;
    }
    return NO_RANK;
}

static inline uint32_t lookup(const dqi_ftab *t, const uint8_t *p, const dqi_pkt *pkt, const dqi_key *key) {
    uint32_t best = NO_RANK;
    for (const step *s = t->steps, *end = s + t->n_steps; s < end && s->rank < best; s++) {
        if (s->n_slots != 0) {
            uint32_t rank = probe(s, t->conds, key);
            if (rank < best) best = rank;
        } else if (dqi_cond_words(s->cond, key) && dqi_cond_extra(s->cond, p, pkt, key->w[KEY_L4])) {
            best = s->rank;
        }
    }
    return best < t->n ? best : t->n;
}

static uint16_t spread(const dqi_ftab *t, const target *to, const uint8_t *p, uint32_t len,
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
    const target *to = &t->targets[lookup(t, p, parsed, &key)];
    *flow_id = to->flow_id;
    *queue = to->rss ? spread(t, to, p, len, parsed) : to->queues[0];
}

// One rule on ports, perhaps with a catch-all behind it: its miss target is targets[1] either way.
static void classify_one_l4(const dqi_ftab *t, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                            uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    uint64_t mask = t->conds[0].mask.w[KEY_L4], value = t->conds[0].value.w[KEY_L4];
    uint32_t flow[2] = {t->targets[0].flow_id, t->targets[1].flow_id};
    uint16_t to[2] = {t->targets[0].queues[0], t->targets[1].queues[0]};
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *p = base + off[i];
        dqi_key key;
        if (dqi_plain(p, len[i])) {
            key.w[KEY_L4] = plain_l4_word(p);
        } else {
            dqi_pkt pkt;
            dqi_parse(p, len[i], &pkt);
            dqi_key_make(p, &pkt, 1u << KEY_L4, &key);
        }
        bool miss = (key.w[KEY_L4] & mask) != value;
        flow_id[i] = flow[miss];
        queue[i] = to[miss];
    }
}

void dqi_ftab_classify(const dqi_ftab *t, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                       uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    switch (t->shape) {
    case SHAPE_EMPTY:
    case SHAPE_CONSTANT:
        for (uint32_t i = 0; i < n; i++) {
            const target *to = &t->targets[0];
            flow_id[i] = to->flow_id;
            queue[i] = to->rss ? spread(t, to, base + off[i], len[i], NULL) : to->queues[0];
        }
        return;
    case SHAPE_ONE_L4:
        classify_one_l4(t, base, off, len, n, flow_id, queue);
        return;
    case SHAPE_GENERAL:
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
