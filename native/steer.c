// steer.c: rules as the maps of the eBPF program that decides between us and the kernel.
//
// The program only asks whether some rule matches, so rules become sets: those without port ranges and flex
// items are entries of a hash map, under the group of rules that look at the same bits; the others are tried
// one by one. A change is made by difference, so that what stays is never missing.
#include "dqi.h"
#include "match_key.h"
#include "steer_map.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// What the maps hold, or are to hold.
typedef struct sets {
    steer_group groups[STEER_GROUPS];
    uint32_t entries_of[STEER_GROUPS]; // in each group
    steer_single singles[STEER_SINGLES];
    uint32_t n_singles;
    bool all;
    // A hash set of n entries by linear probing; group UINT64_MAX: an empty slot.
    steer_entry *slots;
    uint32_t n_slots, n;
} sets;

struct dq_steer {
    dq_steer_maps maps;
    steer_conf conf;
    sets now;
    uint32_t n_cpus; // whose counters a look at counts brings
};

// ---- maps -------------------------------------------------------------------------------------------------

static int map_op(int cmd, int fd, const void *key, const void *value) {
    union bpf_attr a;
    memset(&a, 0, sizeof a);
    a.map_fd = (uint32_t)fd;
    a.key = (uint64_t)(uintptr_t)key;
    a.value = (uint64_t)(uintptr_t)value;
    return syscall(SYS_bpf, cmd, &a, sizeof a) == 0 ? 0 : -errno;
}

static int map_put(int fd, const void *key, const void *value) {
    return map_op(BPF_MAP_UPDATE_ELEM, fd, key, value);
}

static int put_conf(dq_steer *s) {
    uint32_t zero = 0;
    return map_put(s->maps.conf, &zero, &s->conf);
}

// ---- a hash set of entries --------------------------------------------------------------------------------

static bool is_empty(const steer_entry *e) { return e->group == UINT64_MAX; }

static bool slots_make(sets *t, uint32_t n) {
    t->n = 0;
    t->n_slots = 8;
    while (t->n_slots < 2 * n)
        t->n_slots *= 2;
    t->slots = malloc(t->n_slots * sizeof *t->slots);
    for (uint32_t i = 0; t->slots && i < t->n_slots; i++)
        t->slots[i].group = UINT64_MAX;
    return t->slots != NULL;
}

// The slot that e is in, or would be.
static steer_entry *slot_of(const sets *t, const steer_entry *e) {
    uint64_t h = e->group;
    for (int i = 0; i < KEY_WORDS; i++) {
        h = (h ^ e->value[i]) * 0x9e3779b97f4a7c15ull;
        h ^= h >> 32;
    }
    uint32_t i = (uint32_t)h & (t->n_slots - 1);
    while (!is_empty(&t->slots[i]) && memcmp(&t->slots[i], e, sizeof *e) != 0)
        i = (i + 1) & (t->n_slots - 1);
    return &t->slots[i];
}

static bool has_entry(const sets *t, const steer_entry *e) { return t->slots && !is_empty(slot_of(t, e)); }

// ---- from rules to sets -----------------------------------------------------------------------------------

static int too_many(dq_diag *diag, uint32_t flow, int limit, const char *what) {
    return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE,
                    "flow %u: with flow_isolation the kernel's program takes at most %d %s", flow, limit,
                    what);
}

// The group with these masks: one that there is, in t or before it, else a place that neither has.
static steer_group *find_group(sets *t, const sets *before, const uint64_t *mask) {
    size_t bytes = sizeof t->groups[0].mask;
    steer_group *unused = NULL, *gone = NULL;
    for (uint32_t g = 0; g < STEER_GROUPS; g++) {
        if (t->groups[g].used && memcmp(t->groups[g].mask, mask, bytes) == 0) return &t->groups[g];
        if (t->groups[g].used) continue;
        if (before->groups[g].used && memcmp(before->groups[g].mask, mask, bytes) == 0) return &t->groups[g];
        if (before->groups[g].used)
            gone = &t->groups[g];
        else if (!unused)
            unused = &t->groups[g];
    }
    return unused ? unused : gone;
}

static int add_entry(sets *t, const sets *before, const dqi_cond *c, uint32_t flow, dq_diag *diag) {
    steer_group *group = find_group(t, before, c->mask.w);
    if (!group) return too_many(diag, flow, STEER_GROUPS, "different sets of conditions");
    memcpy(group->mask, c->mask.w, sizeof group->mask);
    group->used = 1;
    steer_entry e = {.group = (uint64_t)(group - t->groups)};
    memcpy(e.value, c->value.w, sizeof e.value);
    steer_entry *slot = slot_of(t, &e);
    if (!is_empty(slot)) return DQ_OK;
    if (t->n == STEER_ENTRIES) return too_many(diag, flow, STEER_ENTRIES, "flows");
    *slot = e;
    t->n++;
    t->entries_of[e.group]++;
    return DQ_OK;
}

static int add_single(sets *t, const dqi_cond *c, uint32_t flow, dq_diag *diag) {
    steer_single s = {.src_hi = 0xffff, .dst_hi = 0xffff, .used = 1};
    memcpy(s.mask, c->mask.w, sizeof s.mask);
    memcpy(s.value, c->value.w, sizeof s.value);
    if (c->src_range) s.src_lo = c->src.lo, s.src_hi = c->src.hi;
    if (c->dst_range) s.dst_lo = c->dst.lo, s.dst_hi = c->dst.hi;
    if (c->flex) {
        s.flex = 1;
        s.flex_val = c->flex_val;
        s.flex_mask = c->flex_mask;
        s.flex_offset = c->flex_offset;
    }
    for (uint32_t i = 0; i < t->n_singles; i++)
        if (memcmp(&t->singles[i], &s, sizeof s) == 0) return DQ_OK;
    if (t->n_singles == STEER_SINGLES)
        return too_many(diag, flow, STEER_SINGLES, "flows with port ranges or flex items");
    t->singles[t->n_singles++] = s;
    return DQ_OK;
}

static int add_rule(sets *t, const sets *before, const dq_rule *r, dq_diag *diag) {
    dq_diag why = {{0}};
    dqi_cond c;
    if (dqi_match_check(&r->match, &why) != DQ_OK)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "flow %u: %s", r->flow_id, why.text);
    dqi_cond_make(&r->match, &c);
    if (c.src_range || c.dst_range || c.flex) return add_single(t, &c, r->flow_id, diag);
    if (c.words == 0) {
        t->all = true;
        return DQ_OK;
    }
    return add_entry(t, before, &c, r->flow_id, diag);
}

static int sets_make(sets *t, const sets *before, const dq_rule *rules, uint32_t n, dq_diag *diag) {
    if (!slots_make(t, n)) return dqi_fail(diag, DQ_ESYS - ENOMEM, "flows: no memory for %u", n);
    int err = DQ_OK;
    for (uint32_t i = 0; err == DQ_OK && i < n; i++)
        err = add_rule(t, before, &rules[i], diag);
    return err;
}

// ---- from sets to maps ------------------------------------------------------------------------------------

// Takes out of the map what only `before` has.
static void take_out(const dq_steer *s, const sets *before, const sets *after) {
    for (uint32_t i = 0; i < before->n_slots; i++) {
        const steer_entry *e = &before->slots[i];
        if (!is_empty(e) && !has_entry(after, e)) map_op(BPF_MAP_DELETE_ELEM, s->maps.entries, e, NULL);
    }
}

static int put_entries(const dq_steer *s, const sets *before, const sets *after) {
    int err = 0;
    uint8_t one = 1;
    for (uint32_t i = 0; err == 0 && i < after->n_slots; i++) {
        const steer_entry *e = &after->slots[i];
        if (!is_empty(e) && !has_entry(before, e)) err = map_put(s->maps.entries, e, &one);
    }
    return err;
}

static int put_groups(const dq_steer *s, const sets *before, const sets *after) {
    int err = 0;
    for (uint32_t g = 0; err == 0 && g < STEER_GROUPS; g++)
        if (memcmp(&before->groups[g], &after->groups[g], sizeof after->groups[g]) != 0)
            err = map_put(s->maps.groups, &g, &after->groups[g]);
    return err;
}

static int put_singles(const dq_steer *s, const sets *before, const sets *after) {
    int err = 0;
    for (uint32_t i = 0; err == 0 && i < STEER_SINGLES; i++)
        if (memcmp(&before->singles[i], &after->singles[i], sizeof after->singles[i]) != 0)
            err = map_put(s->maps.singles, &i, &after->singles[i]);
    return err;
}

static int put_sets(dq_steer *s, const sets *before, const sets *after) {
    take_out(s, before, after);
    int err = put_groups(s, before, after);
    if (err == 0) err = put_entries(s, before, after);
    if (err == 0) err = put_singles(s, before, after);
    return err;
}

static uint32_t groups_end(const sets *t) {
    uint32_t n = STEER_GROUPS;
    while (n > 0 && !t->groups[n - 1].used)
        n--;
    return n;
}

int dq_steer_set(dq_steer *s, const dq_rule *rules, uint32_t n, bool isolated, bool drop_all, dq_diag *diag) {
    sets *t = calloc(1, sizeof *t);
    if (!t) return dqi_fail(diag, DQ_ESYS - ENOMEM, "flows: no memory for %u", n);
    // Where everything is ours, it does not matter what the rules are.
    int err = sets_make(t, &s->now, rules, isolated ? n : 0, diag);
    if (err == DQ_OK && (err = put_sets(s, &s->now, t)) != 0) {
        put_sets(s, t, &s->now); // as it was
        err = dqi_fail(diag, DQ_ESYS + err, "flows: the kernel's maps: %s", strerror(-err));
    }
    if (err == DQ_OK) {
        s->conf = (steer_conf){.active = s->conf.active,
                               .all = !isolated || t->all,
                               .drop_all = drop_all,
                               .n_groups = groups_end(t),
                               .n_singles = t->n_singles};
        put_conf(s);
        sets was = s->now;
        s->now = *t;
        *t = was;
    }
    free(t->slots);
    free(t);
    return err;
}

void dq_steer_run(dq_steer *s, bool run) {
    s->conf.active = run;
    put_conf(s);
}

// ---- the rest ---------------------------------------------------------------------------------------------

// How many processors the kernel keeps counters for: "0-1" or "0,2-5".
static uint32_t possible_cpus(void) {
    char text[256] = "";
    FILE *f = fopen("/sys/devices/system/cpu/possible", "r");
    uint32_t n = 0;
    if (f && fgets(text, sizeof text, f))
        for (char *save, *part = strtok_r(text, ",", &save); part; part = strtok_r(NULL, ",", &save)) {
            unsigned lo = 0, hi = 0;
            if (sscanf(part, "%u-%u", &lo, &hi) < 2) hi = lo;
            n += hi - lo + 1;
        }
    if (f) fclose(f);
    return n;
}

int dq_steer_new(const dq_steer_maps *maps, dq_steer **out, dq_diag *diag) {
    dq_steer *s = calloc(1, sizeof *s);
    if (!s) return dqi_fail(diag, DQ_ESYS - ENOMEM, "flows: no memory");
    s->maps = *maps;
    s->n_cpus = possible_cpus();
    *out = s;
    return DQ_OK;
}

void dq_steer_free(dq_steer *s) {
    if (!s) return;
    free(s->now.slots);
    free(s);
}

void dq_steer_read(const dq_steer *s, dq_steer_counts *out) {
    uint32_t zero = 0;
    *out = (dq_steer_counts){0};
    struct steer_counts *each = calloc(s->n_cpus, sizeof *each);
    if (each && map_op(BPF_MAP_LOOKUP_ELEM, s->maps.counts, &zero, each) == 0)
        for (uint32_t i = 0; i < s->n_cpus; i++) {
            out->ours += each[i].ours;
            out->passed += each[i].passed;
            out->dropped += each[i].dropped;
        }
    free(each);
}

int dq_steer_socket(dq_steer *s, uint32_t queue, int fd) {
    uint32_t value = (uint32_t)fd;
    int err = queue < STEER_QUEUES ? map_put(s->maps.sockets, &queue, &value) : -E2BIG;
    return err == 0 ? DQ_OK : DQ_ESYS + err;
}

int dq_rules_want(const dq_rule *rules, uint32_t n, const uint8_t *frame, uint32_t len, dq_diag *diag) {
    dqi_ftab *t;
    int err = dqi_ftab_build(rules, n, &t, diag);
    if (err != DQ_OK) return err;
    uint64_t off = 0;
    uint32_t flow;
    uint16_t queue;
    dqi_ftab_classify(t, frame, &off, &len, 1, &flow, &queue);
    dqi_ftab_free(t);
    return queue != DQI_NO_QUEUE;
}
