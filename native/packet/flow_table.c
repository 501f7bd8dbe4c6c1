// flow_table.c: construction of flow tables, which find the first of many rules that a frame matches;
// flow_table_lookup.c has the lookup.
//
// Each rule is masks and values over a key of 64-bit words built from the frame (match_key.h). Rules are
// ranked by their order. Rules with equal masks form a group and share a hash table of their values, which
// keeps the lowest rank of equal values (rules that find their bucket full go to another hash table); rules
// that differ in one port range only share a port map. Rules without a group, and those with two ranges or
// flex items, are tested individually. These groups and single rules are the table's steps, sorted by their
// lowest rank. A catch-all rule applies to frames that match in no step; rules behind it are unreachable.
//
// A table of one rule on ports, with or without a catch-all behind it, compares one word; a table whose first
// rule is a catch-all reads no packet bytes, unless that rule distributes by hash.
//
// A table is immutable, since other threads read it. A change builds the next one: for a large table a
// layered one, which shares the base and stores the added rules and a bitmap of removed ones. A lookup
// searches both. When the layer has grown, or the base has hidden a rule that may now match, the whole table
// is rebuilt: 10,000 single changes of 10,000 rules cost 0.1 ms each instead of 4. A lookup in two tables
// costs more per packet than in one, so an empty change rebuilds the whole table, for use after the last one.
#include "packet/flow_table.h"
#include "core/err.h"

#include <stdatomic.h>
#include <stdlib.h>

enum { GROUP_MIN = 2 };

static bool has_extra(const dqi_cond *c) { return c->src_range || c->dst_range || c->flex; }
static bool catch_all(const dqi_cond *c) { return c->words == 0 && !has_extra(c); }

typedef struct ranked {
    const dq_rule *rule;
    uint32_t index;
} ranked;

static int by_order(const void *a, const void *b) {
    const ranked *x = a, *y = b;
    if (x->rule->order != y->rule->order) return x->rule->order < y->rule->order ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

// Returns the kind of step in which a rule may be grouped.
static flow_table_kind kind_of(const dqi_cond *c) {
    if (!has_extra(c)) return STEP_HASH;
    return !c->flex && c->src_range != c->dst_range ? STEP_PORTS : STEP_SINGLE;
}

// Compares what must be equal in a group: masks, and in a group of port ranges also values and side.
static int by_group(const dqi_cond *x, const dqi_cond *y) {
    int d = (int)kind_of(x) - (int)kind_of(y);
    if (d == 0) d = memcmp(&x->mask, &y->mask, sizeof x->mask);
    if (d == 0 && kind_of(x) == STEP_PORTS) d = (int)x->src_range - (int)y->src_range;
    if (d == 0 && kind_of(x) == STEP_PORTS) d = memcmp(&x->value, &y->value, sizeof x->value);
    return d;
}

// Sorts rules of one group together; within a group, by rank.
static int by_masks(const void *a, const void *b) {
    const dqi_cond *x = *(const dqi_cond *const *)a, *y = *(const dqi_cond *const *)b;
    int d = by_group(x, y);
    return d != 0 ? d : x < y ? -1 : x > y;
}

static int by_rank(const void *a, const void *b) {
    const flow_table_step *x = a, *y = b;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

static uint32_t rank_of(const dqi_flow_table *t, const dqi_cond *c) { return (uint32_t)(c - t->conds); }

// Inserts a rule into its bucket, behind those of lower rank. An existing rule of equal value stays and hides
// it. False: the bucket is full.
static bool insert(dqi_flow_table *t, const flow_table_step *s, const dqi_cond *c) {
    const uint64_t h = dqi_flow_table_hash(c, &c->value, s->seed);
    flow_table_slot *slot = &s->slots[(h & (s->n_buckets - 1)) * s->ways];
    for (const flow_table_slot *end = slot + s->ways; slot < end; slot++) {
        if (*slot == NO_RANK) {
            *slot = FLOW_TABLE_TAG(h) | rank_of(t, c);
            return true;
        }
        if (memcmp(&t->conds[(uint32_t)*slot].value, &c->value, sizeof c->value) != 0) continue;
        t->shadowed = true;
        return true;
    }
    return false;
}

enum {
    LONE_MAX = 64,     // up to this many rules get buckets of one slot
    TRIES = 16,        // seeds tried for these
    TRIED_MAX = 16384, // with more rules some find no slot with any seed
};

// Refills s's slots with rules of a group; returns how many found no slot, in left.
static uint32_t try_hash(dqi_flow_table *t, const flow_table_step *s, const dqi_cond **group, uint32_t n,
                         const dqi_cond **left) {
    uint32_t n_left = 0;
    for (uint32_t k = 0; k < s->n_buckets * s->ways; k++)
        s->slots[k] = NO_RANK;
    for (uint32_t i = 0; i < n; i++)
        if (!insert(t, s, group[i])) left[n_left++] = group[i];
    return n_left;
}

// Builds a hash table of a group's rules; *n: number of rules that found no slot, moved to the front of the
// group. Buckets have no chains, so that a lookup is a few comparisons without a branch: few rules get
// one-slot buckets, so many that half of all seeds succeed.
static bool make_hash(dqi_flow_table *t, flow_table_step *s, const dqi_cond **group, uint32_t *n) {
    s->ways = *n <= LONE_MAX ? 1 : BUCKET_WAYS;
    const uint32_t room = s->ways == 1 ? *n * *n / 2 : 2 * *n;
    for (s->n_buckets = 4; s->n_buckets < room;)
        s->n_buckets *= 2;
    const size_t bucket = s->ways * sizeof *s->slots;
    s->slots = aligned_alloc(bucket, s->n_buckets * bucket);
    const dqi_cond **left = calloc(*n, sizeof(*left));
    uint32_t n_left = *n;
    for (uint32_t k = 0; s->slots && left && n_left > 0 && k < (*n <= TRIED_MAX ? TRIES : 1); k++) {
        s->seed = k * (uint64_t)DQI_HASH_LOW << 32 | k * DQI_HASH_HIGH;
        n_left = try_hash(t, s, group, *n, left);
    }
    if (left) memcpy(group, left, n_left * sizeof(*left));
    free(left);
    *n = n_left;
    return s->slots && left;
}

// Builds the hash tables of a group's rules: one, unless some rules find no slot in it.
static bool add_hashes(dqi_flow_table *t, const dqi_cond **group, uint32_t n) {
    while (n > 0) {
        flow_table_step *s = &t->steps[t->n_steps++];
        *s = (flow_table_step){.kind = STEP_HASH, .rank = rank_of(t, group[0]), .cond = group[0]};
        if (!make_hash(t, s, group, &n)) return false;
    }
    t->exact = false;
    return true;
}

static bool make_ports(dqi_flow_table *t, flow_table_step *s, const dqi_cond **group, uint32_t n) {
    s->shift = group[0]->src_range ? 16 : 0;
    s->ports = dqi_port_map_new();
    bool ok = s->ports != NULL;
    for (uint32_t i = 0; ok && i < n; i++) {
        dq_port_range r = group[i]->src_range ? group[i]->src : group[i]->dst;
        ok = dqi_port_map_add(s->ports, r.lo, r.hi, rank_of(t, group[i]), &t->shadowed);
    }
    return ok;
}

// Builds the steps of a group's n rules. False: no memory.
static bool add_group(dqi_flow_table *t, const dqi_cond **group, uint32_t n) {
    flow_table_kind kind = n < GROUP_MIN ? STEP_SINGLE : kind_of(group[0]);
    for (uint32_t i = 0; kind == STEP_SINGLE && i < n; i++)
        t->steps[t->n_steps++] = (flow_table_step){.rank = rank_of(t, group[i]), .cond = group[i]};
    if (kind == STEP_SINGLE) return true;
    if (kind == STEP_HASH) return add_hashes(t, group, n);
    flow_table_step *s = &t->steps[t->n_steps++];
    *s = (flow_table_step){.kind = kind, .rank = rank_of(t, group[0]), .cond = group[0]};
    return make_ports(t, s, group, n);
}

static bool make_steps(dqi_flow_table *t) {
    const dqi_cond **order = calloc(t->n + 1, sizeof(*order));
    if (order == NULL) return false;
    for (uint32_t i = 0; i < t->last; i++)
        order[i] = &t->conds[i];
    qsort(order, t->last, sizeof *order, by_masks);
    bool ok = true;
    for (uint32_t i = 0, end; ok && i < t->last; i = end) {
        for (end = i + 1; end < t->last && by_group(order[i], order[end]) == 0;)
            end++;
        ok = add_group(t, order + i, end - i);
    }
    free(order);
    qsort(t->steps, t->n_steps, sizeof *t->steps, by_rank);
    return ok;
}

static flow_table_shape shape_of(const dqi_flow_table *t) {
    if (t->n == 0) return SHAPE_EMPTY;
    if (catch_all(&t->conds[0])) return SHAPE_CONSTANT;
    bool single = t->n == 1 || (t->n == 2 && catch_all(&t->conds[1]));
    bool l4 = t->conds[0].words == 1u << KEY_L4 && !has_extra(&t->conds[0]);
    return single && l4 && t->rss == NULL ? SHAPE_ONE_L4 : SHAPE_GENERAL;
}

static void add_rule(dqi_flow_table *t, const dq_rule *r) {
    dqi_cond *c = &t->conds[t->n];
    dqi_cond_make(&r->match, c);
    flow_table_target *to = &t->targets[t->n++];
    *to =
        (flow_table_target){.flow_id = r->flow_id, .n_queues = r->n_queues, .rss = r->rss && r->n_queues > 1};
    memcpy(to->queues, r->queues, sizeof to->queues);
    t->words |= c->words;
    for (int k = 0; k < KEY_WORDS; k++)
        t->any.w[k] |= c->mask.w[k];
    t->any.w[KEY_L4] |= (c->src_range ? 0xffff0000u : 0) | (c->dst_range ? 0xffffu : 0);
    if (c->flex || c->words & 1u << KEY_ECPRI) t->plain_ok = false;
    if (to->rss) t->rss = dqi_rss_default();
}

// Converts rules on a single port only to ranges of one port, so that they share the map of the others.
static void make_ranges(dqi_flow_table *t) {
    const uint64_t ports = 0xffff;
    for (uint32_t i = 0; i < t->n; i++) {
        dqi_cond *c = &t->conds[i];
        uint64_t mask = c->mask.w[KEY_L4];
        if (c->words != 1u << KEY_L4 || has_extra(c) || (uint32_t)mask != ports || mask >> 40 != 0) continue;
        uint16_t port = (uint16_t)(c->value.w[KEY_L4] & ports);
        c->dst = (dq_port_range){port, port};
        c->dst_range = true;
        c->mask.w[KEY_L4] &= ~ports;
        c->value.w[KEY_L4] &= ~ports;
    }
}

static bool make_checks(dqi_flow_table *t) {
    for (uint8_t k = 0; k < KEY_WORDS; k++)
        if (t->words & 1u << k) t->word[t->n_words++] = k;
    t->checks = calloc(((size_t)t->n + 1) * t->n_words + 1, sizeof *t->checks);
    for (uint32_t i = 0; t->checks && i < t->n; i++)
        for (uint32_t k = 0; k < t->n_words; k++)
            t->checks[i * t->n_words + k] =
                (flow_table_check){t->conds[i].mask.w[t->word[k]], t->conds[i].value.w[t->word[k]]};
    return t->checks != NULL;
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

static bool fill(dqi_flow_table *t, const dq_rule *rules, uint32_t n) {
    ranked *order = calloc(n + 1, sizeof *order);
    t->rules = calloc(n + 1, sizeof *t->rules);
    t->conds = calloc(n + 1, sizeof *t->conds);
    t->targets = calloc(n + 1, sizeof *t->targets);
    t->steps = calloc(n + 1, sizeof *t->steps);
    bool ok = order && t->rules && t->conds && t->targets && t->steps;
    if (ok) {
        for (uint32_t i = 0; i < n; i++)
            order[i] = (ranked){&rules[i], i};
        qsort(order, n, sizeof *order, by_order);
        for (t->n_rules = 0; t->n_rules < n; t->n_rules++)
            t->rules[t->n_rules] = *order[t->n_rules].rule;
        for (uint32_t i = 0; i < n && (i == 0 || !catch_all(&t->conds[i - 1])); i++)
            add_rule(t, &t->rules[i]);
        t->targets[t->n] = (flow_table_target){.queues = {DQI_NO_QUEUE}};
        t->last = t->n > 0 && catch_all(&t->conds[t->n - 1]) ? t->n - 1 : t->n;
        t->shape = shape_of(t);
        if (t->shape == SHAPE_GENERAL) make_ranges(t);
        ok = make_checks(t) && make_steps(t);
    }
    free(order);
    return ok;
}

static int no_memory(uint32_t n, dq_diag *diag) {
    return dqi_fail(diag, DQ_GENERIC_FAILURE, "flows: no memory for a table of %u", n);
}

int dqi_flow_table_build(const dq_rule *rules, uint32_t n, dqi_flow_table **out, dq_diag *diag) {
    int err = check_rules(rules, n, diag);
    if (err != DQ_OK) return err;
    dqi_flow_table *t = calloc(1, sizeof *t);
    if (t != NULL) {
        t->plain_ok = t->exact = true;
        t->level = dqi_level_best();
        atomic_init(&t->refs, 1);
    }
    if (t == NULL || !fill(t, rules, n)) {
        dqi_flow_table_free(t);
        return no_memory(n, diag);
    }
    *out = t;
    return DQ_OK;
}

void dqi_flow_table_free(dqi_flow_table *t) {
    if (t == NULL || atomic_fetch_sub(&t->refs, 1) != 1) return;
    for (uint32_t i = 0; i < t->n_steps; i++) {
        free(t->steps[i].slots);
        dqi_port_map_free(t->steps[i].ports);
    }
    free(t->steps);
    free(t->targets);
    free(t->conds);
    free(t->checks);
    free(t->rules);
    free(t->gone);
    dqi_flow_table_free(t->base);
    free(t);
}

// ---- changing ---------------------------------------------------------------------------------------------

enum { LAYERED_MIN = 16 }; // smaller tables are rebuilt: fast, and one lookup is faster than two

// A change in progress: removed rules of the base, and the rules of the new layer.
typedef struct change {
    const dqi_flow_table *base;
    uint64_t *gone;
    uint32_t n_gone;
    dq_rule *rules;
    uint32_t n;
    bool whole; // a layer is not possible, or no longer wanted
} change;

// Returns the index of the rule with this order, or n.
static uint32_t find(const dq_rule *rules, uint32_t n, uint64_t order) {
    uint32_t lo = 0, hi = n;
    while (lo < hi) {
        uint32_t mid = lo + (hi - lo) / 2;
        if (rules[mid].order < order)
            lo = mid + 1;
        else
            hi = mid;
    }
    return lo < n && rules[lo].order == order ? lo : n;
}

const dq_rule *dqi_flow_table_rule(const dqi_flow_table *t, uint64_t order) {
    uint32_t i = find(t->rules, t->n_rules, order);
    if (i < t->n_rules) return &t->rules[i];
    if (t->base == NULL) return NULL;
    i = find(t->base->rules, t->base->n_rules, order);
    return i < t->base->n_rules && !(t->gone[i / 64] >> i % 64 & 1) ? &t->base->rules[i] : NULL;
}

static bool start(change *c, const dqi_flow_table *old, uint32_t n_add) {
    *c = (change){.base = old->base ? old->base : old};
    size_t words = c->base->n_rules / 64 + 1;
    c->gone = calloc(words, sizeof *c->gone);
    c->rules = calloc((size_t)old->n_rules + n_add + 1, sizeof *c->rules);
    if (c->gone == NULL || c->rules == NULL) return false;
    if (old->base == NULL) return true;
    memcpy(c->gone, old->gone, words * sizeof *c->gone);
    memcpy(c->rules, old->rules, old->n_rules * sizeof *c->rules);
    c->n = old->n_rules;
    for (size_t i = 0; i < words; i++)
        c->n_gone += (uint32_t)__builtin_popcountll(c->gone[i]);
    return true;
}

static bool take_out(change *c, uint64_t order) {
    const dqi_flow_table *base = c->base;
    uint32_t i = find(c->rules, c->n, order);
    if (i < c->n) {
        memmove(&c->rules[i], &c->rules[i + 1], (--c->n - i) * sizeof *c->rules);
        return true;
    }
    i = find(base->rules, base->n_rules, order);
    if (i == base->n_rules || c->gone[i / 64] >> i % 64 & 1) return false;
    c->gone[i / 64] |= 1ull << i % 64;
    c->n_gone++;
    c->whole |= base->shadowed || (i + 1 == base->n && base->n < base->n_rules);
    return true;
}

// Limits the layer to about the square root of the table's size, which bounds the cost of layer and rebuild.
static bool outgrown(const change *c) {
    uint64_t size = c->n + c->n_gone;
    return c->whole || c->base->n_rules < LAYERED_MIN || size * size > 2 * (uint64_t)c->base->n_rules;
}

static int make_whole(const change *c, dqi_flow_table **out, dq_diag *diag) {
    uint32_t n = 0;
    dq_rule *all = calloc((size_t)c->base->n_rules + c->n + 1, sizeof *all);
    if (all == NULL) return no_memory(c->base->n_rules + c->n, diag);
    for (uint32_t i = 0; i < c->base->n_rules; i++)
        if (!(c->gone[i / 64] >> i % 64 & 1)) all[n++] = c->base->rules[i];
    memcpy(all + n, c->rules, c->n * sizeof *all);
    int err = dqi_flow_table_build(all, n + c->n, out, diag);
    free(all);
    return err;
}

static int make_layer(change *c, dqi_flow_table **out, dq_diag *diag) {
    int err = dqi_flow_table_build(c->rules, c->n, out, diag);
    if (err != DQ_OK) return err;
    dqi_flow_table *t = *out, *base = (dqi_flow_table *)c->base;
    atomic_fetch_add(&base->refs, 1);
    t->base = base;
    t->gone = c->gone;
    c->gone = NULL;
    t->words |= base->words;
    for (int k = 0; k < KEY_WORDS; k++)
        t->any.w[k] |= base->any.w[k];
    t->plain_ok = t->plain_ok && base->plain_ok;
    if (t->rss == NULL) t->rss = base->rss;
    t->shape = SHAPE_LAYERED;
    return DQ_OK;
}

int dqi_flow_table_change(const dqi_flow_table *old, const uint64_t *gone, uint32_t n_gone,
                          const dq_rule *add, uint32_t n_add, dqi_flow_table **out, dq_diag *diag) {
    change c;
    int err = check_rules(add, n_add, diag);
    if (err != DQ_OK) return err;
    const bool settles = n_gone == 0 && n_add == 0;
    if (settles && old->base == NULL) {
        *out = (dqi_flow_table *)old;
        atomic_fetch_add(&(*out)->refs, 1);
        return DQ_OK;
    }
    if (!start(&c, old, n_add)) err = no_memory(old->n_rules, diag);
    for (uint32_t i = 0; err == DQ_OK && i < n_gone; i++)
        if (!take_out(&c, gone[i]))
            err = dqi_fail(diag, DQ_INVALID_PARAMETER, "flows: there is none to take out at order %llu",
                           (unsigned long long)gone[i]);
    if (err == DQ_OK) {
        memcpy(c.rules + c.n, add, n_add * sizeof *add);
        c.n += n_add;
        c.whole |= settles;
        err = outgrown(&c) ? make_whole(&c, out, diag) : make_layer(&c, out, diag);
    }
    free(c.gone);
    free(c.rules);
    return err;
}
