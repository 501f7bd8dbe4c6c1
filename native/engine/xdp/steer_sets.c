#include "engine/xdp/steer_sets.h"
#include "core/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// ---- nodes ------------------------------------------------------------------------------------------------

static uint32_t bucket_of(const steer_entry *e, uint32_t n_buckets) {
    uint64_t h = e->group;
    for (int i = 0; i < KEY_WORDS; i++) {
        h = (h ^ e->value[i]) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    return (uint32_t)h & (n_buckets - 1);
}

static steer_held *find(const steer_sets *t, const steer_entry *e) {
    steer_held *h = t->n_buckets > 0 ? t->buckets[bucket_of(e, t->n_buckets)] : NULL;
    while (h && memcmp(&h->entry, e, sizeof *e) != 0)
        h = h->next;
    return h;
}

static void link_in(steer_held **buckets, uint32_t n_buckets, steer_held *h) {
    steer_held **at = &buckets[bucket_of(&h->entry, n_buckets)];
    h->next = *at;
    *at = h;
}

static bool grow(steer_sets *t, uint32_t n_buckets) {
    steer_held **buckets = calloc(n_buckets, sizeof(*buckets));
    if (!buckets) return false;
    for (uint32_t i = 0; i < t->n_buckets; i++)
        for (steer_held *h = t->buckets[i], *next; h; h = next) {
            next = h->next;
            link_in(buckets, n_buckets, h);
        }
    free(t->buckets);
    t->buckets = buckets;
    t->n_buckets = n_buckets;
    return true;
}

static steer_held *add(steer_sets *t, const steer_entry *e) {
    if (t->n_nodes == t->n_buckets && !grow(t, t->n_buckets ? 2 * t->n_buckets : 64)) return NULL;
    steer_held *h = calloc(1, sizeof *h);
    if (!h) return NULL;
    h->entry = *e;
    link_in(t->buckets, t->n_buckets, h);
    t->n_nodes++;
    return h;
}

static void take_out(steer_sets *t, steer_held *h) {
    steer_held **at = &t->buckets[bucket_of(&h->entry, t->n_buckets)];
    while (*at != h)
        at = &(*at)->next;
    *at = h->next;
    free(h);
    t->n_nodes--;
}

// Adjusts the number of rules that use a node by +1 or -1.
static void count(steer_sets *t, steer_held *h, int by) {
    if (by < 0 && h->rules == 1) t->n_entries--;
    if (by > 0 && h->rules == 0) t->n_entries++;
    h->rules += (uint32_t)by;
    if (!h->touched) t->touched[t->n_touched++] = h;
    h->touched = true;
}

// ---- rules ------------------------------------------------------------------------------------------------

static int too_many(dq_diag *diag, uint32_t flow, int limit, const char *what) {
    return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE,
                    "flow %u: with flow_isolation the kernel's program takes at most %d %s", flow, limit,
                    what);
}

// Returns the group with this mask, or STEER_GROUPS if there is none.
static uint32_t find_group(const steer_sets *t, const uint64_t *mask) {
    uint32_t g = 0;
    while (g < STEER_GROUPS &&
           (!t->groups[g].used || memcmp(t->groups[g].mask, mask, sizeof t->groups[g].mask) != 0))
        g++;
    return g;
}

// Returns an unused group, preferably not one emptied by this change, whose entries are still in the map.
static uint32_t free_group(const steer_sets *t) {
    uint32_t emptied = STEER_GROUPS;
    for (uint32_t g = 0; g < STEER_GROUPS; g++) {
        if (t->groups[g].used) continue;
        if (!(t->new_groups >> g & 1)) return g;
        emptied = g;
    }
    return emptied;
}

static steer_entry entry_of(const dqi_cond *c, uint32_t group) {
    steer_entry e = {.group = group};
    memcpy(e.value, c->value.w, sizeof e.value);
    return e;
}

static void count_group(steer_sets *t, uint32_t g, const uint64_t *mask, int by) {
    t->in_group[g] += (uint32_t)by;
    bool used = t->in_group[g] > 0;
    if (used == (t->groups[g].used != 0)) return;
    memcpy(t->groups[g].mask, mask, sizeof t->groups[g].mask);
    t->groups[g].used = used;
    t->new_groups |= 1ull << g;
}

static int take_entry(steer_sets *t, const dqi_cond *c, uint32_t flow, dq_diag *diag) {
    uint32_t g = find_group(t, c->mask.w);
    if (g == STEER_GROUPS) g = free_group(t);
    if (g == STEER_GROUPS) return too_many(diag, flow, STEER_GROUPS, "different sets of conditions");
    steer_entry e = entry_of(c, g);
    steer_held *h = find(t, &e);
    if ((!h || h->rules == 0) && t->n_entries == STEER_ENTRIES)
        return too_many(diag, flow, STEER_ENTRIES, "flows");
    if (!h) h = add(t, &e);
    if (!h) return dqi_fail(diag, DQ_ESYS - ENOMEM, "flow %u: no memory", flow);
    count_group(t, g, c->mask.w, 1);
    count(t, h, 1);
    return DQ_OK;
}

static steer_single single_of(const dqi_cond *c) {
    steer_single s = {.src_hi = 0xffff, .dst_hi = 0xffff, .used = 1};
    memcpy(s.mask, c->mask.w, sizeof s.mask);
    memcpy(s.value, c->value.w, sizeof s.value);
    if (c->src_range) s.src_lo = c->src.lo, s.src_hi = c->src.hi;
    if (c->dst_range) s.dst_lo = c->dst.lo, s.dst_hi = c->dst.hi;
    if (!c->flex) return s;
    s.flex = 1;
    s.flex_val = c->flex_val;
    s.flex_mask = c->flex_mask;
    s.flex_offset = c->flex_offset;
    return s;
}

static uint32_t find_single(const steer_sets *t, const steer_single *s) {
    uint32_t i = 0;
    while (i < STEER_SINGLES && memcmp(&t->singles[i], s, sizeof *s) != 0)
        i++;
    return i;
}

static int take_single(steer_sets *t, const dqi_cond *c, uint32_t flow, dq_diag *diag) {
    steer_single s = single_of(c);
    uint32_t i = find_single(t, &s);
    for (uint32_t k = 0; i == STEER_SINGLES && k < STEER_SINGLES; k++)
        if (!t->singles[k].used) i = k;
    if (i == STEER_SINGLES)
        return too_many(diag, flow, STEER_SINGLES, "flows with port ranges or flex items");
    t->new_singles[i] |= t->in_single[i]++ == 0;
    t->singles[i] = s;
    return DQ_OK;
}

static void remove_single(steer_sets *t, const dqi_cond *c) {
    steer_single s = single_of(c);
    uint32_t i = find_single(t, &s);
    if (--t->in_single[i] > 0) return;
    t->singles[i] = (steer_single){0};
    t->new_singles[i] = true;
}

int dqi_steer_add(steer_sets *t, const dq_rule *r, dq_diag *diag) {
    dq_diag why = {{0}};
    dqi_cond c;
    if (dqi_match_check(&r->match, &why) != DQ_OK)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "flow %u: %s", r->flow_id, why.text);
    dqi_cond_make(&r->match, &c);
    if (c.src_range || c.dst_range || c.flex) return take_single(t, &c, r->flow_id, diag);
    if (c.words > 0) return take_entry(t, &c, r->flow_id, diag);
    t->all++;
    return DQ_OK;
}

void dqi_steer_remove(steer_sets *t, const dq_rule *r) {
    dqi_cond c;
    dqi_cond_make(&r->match, &c);
    if (c.src_range || c.dst_range || c.flex) {
        remove_single(t, &c);
    } else if (c.words > 0) {
        uint32_t g = find_group(t, c.mask.w);
        steer_entry e = entry_of(&c, g);
        count(t, find(t, &e), -1);
        count_group(t, g, c.mask.w, -1);
    } else {
        t->all--;
    }
}

// ---- changes ----------------------------------------------------------------------------------------------

bool dqi_steer_begin(steer_sets *t, uint32_t n) {
    t->touched = calloc((size_t)n + 1, sizeof(*t->touched));
    t->n_touched = 0;
    return t->touched != NULL;
}

void dqi_steer_end(steer_sets *t) {
    for (uint32_t i = 0; i < t->n_touched; i++) {
        steer_held *h = t->touched[i];
        h->touched = false;
        if (h->rules == 0 && !h->in_map) take_out(t, h);
    }
    t->n_touched = 0;
    free(t->touched);
    t->touched = NULL;
}

void dqi_steer_sets_free(steer_sets *t) {
    for (uint32_t i = 0; i < t->n_buckets; i++)
        for (steer_held *h = t->buckets[i], *next; h; h = next) {
            next = h->next;
            free(h);
        }
    free(t->buckets);
}

uint32_t dqi_steer_groups_end(const steer_sets *t) {
    uint32_t n = STEER_GROUPS;
    while (n > 0 && !t->groups[n - 1].used)
        n--;
    return n;
}

uint32_t dqi_steer_singles_end(const steer_sets *t) {
    uint32_t n = STEER_SINGLES;
    while (n > 0 && !t->singles[n - 1].used)
        n--;
    return n;
}
