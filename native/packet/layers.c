#include "packet/layers.h"
#include "core/err.h"
#include "packet/packet.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { GRE = 47, HEADERS = 256, KINDS = DQ_TUNNEL_NVGRE + 1 };

// Key of a shell. Kind 0: no tunnel, only n_tags is used.
typedef struct shell_key {
    uint8_t macs[12], addrs[32]; // in frame layout; IPv4 addresses use the first 8
    uint32_t id;                 // VNI; TNI and flow id
    uint16_t src, dst;           // UDP ports, source 0: any; GRE: dst is the protocol
    uint8_t kind, ipv6;
    uint8_t n_tags; // minimum number of tags that are removed before it
    uint8_t zero;
} shell_key;

typedef struct level level;

// A rule, and how many of its actions the outer shells perform.
typedef struct entry {
    uint32_t rule, done;
} entry;

typedef struct shell {
    shell_key key;
    dqi_flow_table *flows; // flow ids are indices in dqi_layers.rules, from 1; NULL: no rules
    level *next;           // shells of rules that remove more; NULL
    struct shell *chain;
    entry *entries; // during construction
    uint32_t n, room;
} shell;

// Properties that distinguish keys of a level besides their values.
typedef struct shape {
    uint8_t kind, n_tags;
    bool any_src;
} shape;

enum { SHAPES = KINDS * 2 * (DQ_RULE_MAX_ACTIONS + 1) };

struct level {
    uint32_t n_shapes, n_buckets, n_shells;
    shape shapes[SHAPES];
    shell **buckets;
};

struct dqi_layers {
    _Atomic uint32_t refs;
    uint32_t n;
    dqi_layered *rules;
    level *top;
};

// ---- keys -------------------------------------------------------------------------------------------------

// The products are independent, so they overlap.
static uint32_t hash_of(const shell_key *k) {
    static const uint64_t odd[] = {0x9e3779b97f4a7c15ull, 0xbf58476d1ce4e5b9ull, 0x94d049bb133111ebull,
                                   0xd6e8feb86659fd93ull, 0xa0761d6478bd642full, 0xe7037ed1a0b428dbull,
                                   0x8ebc6af09c88c6e3ull};
    uint64_t words[sizeof *k / 8], h = 0;
    _Static_assert(sizeof words == sizeof *k, "a key is whole words");
    memcpy(words, k, sizeof words);
    _Static_assert(sizeof odd == sizeof words, "each word has a factor");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        h += (words[i] ^ words[i] >> 32) * odd[i];
    return (uint32_t)(h >> 32);
}

// The action's header is the one that the tunnel's other end pushes.
static void key_of_tunnel(const dqi_act *a, shell_key *k) {
    const uint8_t *l4 = a->header + DQI_ETH_LEN + (a->ipv6 ? DQI_IPV6_LEN : DQI_IPV4_LEN);
    memcpy(k->macs, a->header, sizeof k->macs);
    memcpy(k->addrs, a->header + DQI_ETH_LEN + (a->ipv6 ? 8 : 12), a->ipv6 ? 32 : 8);
    k->kind = a->tunnel;
    k->ipv6 = a->ipv6;
    k->id = a->tunnel == DQ_TUNNEL_NVGRE ? dqi_be32(l4 + 4) : a->id;
    k->src = a->tunnel == DQ_TUNNEL_VXLAN ? dqi_be16(l4) : 0;
    k->dst = a->tunnel == DQ_TUNNEL_VXLAN ? a->udp_dst : a->protocol;
}

// Computes the headers that the actions from `done` on remove: tags, then possibly a tunnel. Returns the
// number of actions done after that.
static uint32_t key_of(const dqi_acts *a, uint32_t done, shell_key *k) {
    *k = (shell_key){0};
    for (; done < a->n && a->act[done].kind != DQ_ACT_DECAP; done++)
        k->n_tags += a->act[done].kind == DQ_ACT_VLAN_POP;
    if (done < a->n) key_of_tunnel(&a->act[done++], k);
    return done;
}

void dqi_layers_outer(const dq_rule *r, const dqi_acts *a, dq_match *out) {
    shell_key k;
    key_of(a, 0, &k);
    *out = r->match;
    if (k.kind != 0) {
        *out = (dq_match){.set = DQ_MATCH_ETH_SRC | DQ_MATCH_ETH_DST | DQ_MATCH_IP_PROTO,
                          .ip_proto = k.kind == DQ_TUNNEL_VXLAN ? DQI_PROTO_UDP : GRE};
        memcpy(out->eth_dst, k.macs, 6);
        memcpy(out->eth_src, k.macs + 6, 6);
        memcpy(out->ipv6_src, k.addrs, 16);
        memcpy(out->ipv6_dst, k.addrs + 16, 16);
        out->ipv6_src_prefix = out->ipv6_dst_prefix = 128;
        out->ipv4_src = dqi_be32(k.addrs);
        out->ipv4_dst = dqi_be32(k.addrs + 4);
        out->ipv4_src_mask = out->ipv4_dst_mask = UINT32_MAX;
        out->set |= k.ipv6 ? DQ_MATCH_IPV6_SRC | DQ_MATCH_IPV6_DST : DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST;
    }
    if (k.kind == DQ_TUNNEL_VXLAN) { // the VNI is in the second word after the UDP header
        out->set |= DQ_MATCH_UDP_DST | DQ_MATCH_FLEX | (k.src ? DQ_MATCH_UDP_SRC : 0);
        out->udp_src = (dq_port_range){k.src, k.src};
        out->udp_dst = (dq_port_range){k.dst, k.dst};
        out->flex_udp_dst = k.dst;
        out->flex_offset = 4;
        out->flex_val = k.id << 8;
        out->flex_mask = 0xffffff00;
    }
    if (k.n_tags > 0) out->set |= DQ_MATCH_TAGGED;
}

// ---- making -----------------------------------------------------------------------------------------------

static int make_level(const dqi_layers *l, const entry *entries, uint32_t n, level **out, dq_diag *diag);

static void free_level(level *v) {
    for (uint32_t b = 0; v && v->buckets && b < v->n_buckets; b++)
        for (shell *s = v->buckets[b], *next; s; s = next) {
            next = s->chain;
            dqi_flow_table_free(s->flows);
            free_level(s->next);
            free(s->entries);
            free(s);
        }
    if (v) free(v->buckets);
    free(v);
}

static shell *find(const level *v, const shell_key *k) {
    shell *s = v->buckets[hash_of(k) & (v->n_buckets - 1)];
    while (s && memcmp(&s->key, k, sizeof *k) != 0)
        s = s->chain;
    return s;
}

static void note_shape(level *v, const shell_key *k) {
    const shape x = {.kind = k->kind, .n_tags = k->n_tags, .any_src = k->src == 0};
    for (uint32_t i = 0; i < v->n_shapes; i++)
        if (v->shapes[i].kind == x.kind && v->shapes[i].n_tags == x.n_tags &&
            v->shapes[i].any_src == x.any_src)
            return;
    v->shapes[v->n_shapes++] = x;
}

static shell *add_shell(level *v, const shell_key *k) {
    shell *s = calloc(1, sizeof *s), **bucket = &v->buckets[hash_of(k) & (v->n_buckets - 1)];
    if (!s) return NULL;
    s->key = *k;
    s->chain = *bucket;
    *bucket = s;
    note_shape(v, k);
    return s;
}

static bool add_entry(level *v, const dqi_layers *l, entry e) {
    shell_key k;
    e.done = key_of(&l->rules[e.rule].acts, e.done, &k);
    shell *s = find(v, &k);
    if (!s && !(s = add_shell(v, &k))) return false;
    if (s->n == s->room) {
        uint32_t room = s->room ? 2 * s->room : 1;
        entry *more = realloc(s->entries, room * sizeof *more);
        if (!more) return false;
        s->entries = more;
        s->room = room;
    }
    s->entries[s->n++] = e;
    return true;
}

// Returns the rule as stored in the flow table of its shell.
static dq_rule inner_rule(const dqi_layers *l, uint32_t k) {
    dq_rule r = l->rules[k].rule;
    r.flow_id = k + 1;
    r.order = k;
    r.n_actions = 0;
    return r;
}

// Builds the flow table and next level of the shell's entries.
static int fill_shell(const dqi_layers *l, shell *s, dq_diag *diag) {
    uint32_t n = 0, more = 0;
    dq_rule *rules = calloc(s->n, sizeof *rules);
    if (!rules) return dqi_fail(diag, DQ_GENERIC_FAILURE, "flows: no memory for a table of %u", s->n);
    for (uint32_t i = 0; i < s->n; i++) {
        const entry e = s->entries[i];
        if (e.done == l->rules[e.rule].acts.n)
            rules[n++] = inner_rule(l, e.rule);
        else
            s->entries[more++] = e;
    }
    int err = n > 0 ? dqi_flow_table_build(rules, n, &s->flows, diag) : DQ_OK;
    free(rules);
    if (err == DQ_OK && more > 0) err = make_level(l, s->entries, more, &s->next, diag);
    free(s->entries);
    s->entries = NULL;
    return err;
}

static int make_level(const dqi_layers *l, const entry *entries, uint32_t n, level **out, dq_diag *diag) {
    level *v = *out = calloc(1, sizeof *v);
    if (v) {
        for (v->n_buckets = 1; v->n_buckets < n;)
            v->n_buckets *= 2;
        v->buckets = calloc(v->n_buckets, sizeof(*v->buckets));
    }
    bool ok = v && v->buckets;
    for (uint32_t i = 0; ok && i < n; i++)
        ok = add_entry(v, l, entries[i]);
    if (!ok) return dqi_fail(diag, DQ_GENERIC_FAILURE, "flows: no memory for a table of %u", n);
    int err = DQ_OK;
    for (uint32_t b = 0; err == DQ_OK && b < v->n_buckets; b++)
        for (shell *s = v->buckets[b]; err == DQ_OK && s; s = s->chain)
            err = fill_shell(l, s, diag);
    return err;
}

static int by_order(const void *a, const void *b) {
    const dqi_layered *x = a, *y = b;
    return x->rule.order < y->rule.order ? -1 : x->rule.order > y->rule.order;
}

static int check(const dqi_layered *rules, uint32_t n, dq_diag *diag) {
    for (uint32_t i = 0; i < n; i++) {
        const dq_rule *r = &rules[i].rule;
        dq_diag why = {{0}};
        int err = dqi_match_check(&r->match, &why);
        if (err != DQ_OK) return dqi_fail(diag, err, "flow %u: %s", r->flow_id, why.text);
        if (r->n_queues < 1 || r->n_queues > DQ_RULE_MAX_QUEUES)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "flow %u: %u queues are outside 1..%u", r->flow_id,
                            r->n_queues, DQ_RULE_MAX_QUEUES);
    }
    return DQ_OK;
}

int dqi_layers_build(const dqi_layered *rules, uint32_t n, dqi_layers **out, dq_diag *diag) {
    int err = check(rules, n, diag);
    if (err != DQ_OK) return err;
    dqi_layers *l = calloc(1, sizeof *l);
    entry *all = calloc((size_t)n + 1, sizeof *all);
    if (l) {
        atomic_init(&l->refs, 1);
        l->rules = calloc((size_t)n + 1, sizeof *l->rules);
    }
    if (l && l->rules && all) {
        l->n = n;
        memcpy(l->rules, rules, n * sizeof *rules);
        qsort(l->rules, n, sizeof *rules, by_order);
        for (uint32_t i = 0; i < n; i++)
            all[i].rule = i;
        err = make_level(l, all, n, &l->top, diag);
    } else {
        err = dqi_fail(diag, DQ_GENERIC_FAILURE, "flows: no memory for a table of %u", n);
    }
    free(all);
    if (err != DQ_OK) {
        dqi_layers_let_go(l);
        return err;
    }
    *out = l;
    return DQ_OK;
}

dqi_layers *dqi_layers_hold(dqi_layers *l) {
    if (l) atomic_fetch_add(&l->refs, 1);
    return l;
}

void dqi_layers_let_go(dqi_layers *l) {
    if (!l || atomic_fetch_sub(&l->refs, 1) != 1) return;
    free_level(l->top);
    free(l->rules);
    free(l);
}

const dqi_layered *dqi_layers_rules(const dqi_layers *l, uint32_t *n) {
    *n = l ? l->n : 0;
    return l ? l->rules : NULL;
}

const dqi_layered *dqi_layers_find(const dqi_layers *l, uint64_t order) {
    dqi_layered key;
    key.rule.order = order;
    return l ? bsearch(&key, l->rules, l->n, sizeof key, by_order) : NULL;
}

// ---- frames -----------------------------------------------------------------------------------------------

// Contents of a frame's headers. For each kind of tunnel that they may be: id, ports, and the offset of the
// inner frame, of which `there` bytes are in this segment; whole: its total length.
typedef struct seen {
    const uint8_t *p;
    uint32_t n_tags;
    bool ipv6;
    const uint8_t *addrs;
    struct {
        uint32_t inner, there, whole; // inner 0: not of this kind
        uint32_t id;
        uint16_t src, dst;
    } of[KINDS];
} seen;

// VXLAN: any datagram whose first 8 bytes have a VNI, on any port.
static void see_udp(const dqi_pkt *k, seen *s) {
    const uint8_t *udp = s->p + k->l4, *vxlan = s->p + k->payload;
    if (!(k->has & DQ_HAS_UDP) || k->payload_len < 8 || !(vxlan[0] & DQI_VXLAN_HAS_VNI)) return;
    s->of[DQ_TUNNEL_VXLAN].inner = k->payload + 8;
    s->of[DQ_TUNNEL_VXLAN].there = s->of[DQ_TUNNEL_VXLAN].whole = k->payload_len - 8;
    s->of[DQ_TUNNEL_VXLAN].id = dqi_be32(vxlan + 4) >> 8;
    s->of[DQ_TUNNEL_VXLAN].src = dqi_be16(udp);
    s->of[DQ_TUNNEL_VXLAN].dst = dqi_be16(udp + 2);
}

static void see_gre(const dqi_pkt *k, seen *s) {
    const uint8_t *gre = s->p + k->l4, *ip = s->p + k->l3;
    uint32_t n = dqi_gre_len(gre, k->end - k->l4);
    uint32_t end = k->l3 + (s->ipv6 ? DQI_IPV6_LEN + dqi_be16(ip + 4) : dqi_be16(ip + 2));
    if (n == 0) return;
    s->of[DQ_TUNNEL_GRE].inner = k->l4 + n;
    s->of[DQ_TUNNEL_GRE].there = k->end - k->l4 - n;
    s->of[DQ_TUNNEL_GRE].whole = end > k->l4 + n ? end - k->l4 - n : 0;
    s->of[DQ_TUNNEL_GRE].dst = dqi_be16(gre + 2);
    if (!dqi_is_nvgre(gre)) return;
    s->of[DQ_TUNNEL_NVGRE] = s->of[DQ_TUNNEL_GRE];
    s->of[DQ_TUNNEL_NVGRE].id = dqi_be32(gre + 4);
}

static void see(const uint8_t *p, uint32_t len, seen *s) {
    dqi_pkt k;
    s->p = s->addrs = p;
    s->ipv6 = false;
    s->n_tags = dqi_tags(p, len);
    for (uint32_t k = 0; k < KINDS; k++)
        s->of[k].inner = 0;
    if (!dqi_parse(p, len, &k) || !(k.has & (DQ_HAS_IPV4 | DQ_HAS_IPV6)) || k.has & DQ_HAS_FRAGMENT) return;
    if (k.l4 == DQI_NONE || k.l4 > k.end) return;
    s->ipv6 = k.has & DQ_HAS_IPV6;
    s->addrs = p + k.l3 + (s->ipv6 ? 8 : 12);
    if (k.ip_proto == DQI_PROTO_UDP)
        see_udp(&k, s);
    else if (k.ip_proto == GRE)
        see_gre(&k, s);
}

static shell_key key_seen(const seen *s, const shape *x) {
    shell_key k = {.kind = x->kind, .n_tags = x->n_tags};
    if (x->kind == 0) return k;
    memcpy(k.macs, s->p, sizeof k.macs);
    memcpy(k.addrs, s->addrs, s->ipv6 ? 32 : 8);
    k.ipv6 = s->ipv6;
    k.id = x->kind == DQ_TUNNEL_GRE ? 0 : s->of[x->kind].id;
    k.src = x->any_src ? 0 : s->of[x->kind].src;
    k.dst = s->of[x->kind].dst;
    return k;
}

// Returns the inner frame; for a tunnel of packets its beginning, in buf, with the Ethernet header that
// decapsulation adds.
static const uint8_t *inside(const seen *s, uint8_t kind, uint8_t buf[HEADERS], uint32_t *len) {
    const uint8_t *p = s->p + s->of[kind].inner;
    const uint16_t type = s->of[kind].dst;
    *len = s->of[kind].there;
    if (kind != DQ_TUNNEL_GRE || !dqi_is_packet(type, p, *len, s->of[kind].whole)) return p;
    if (*len > HEADERS - DQI_ETH_LEN) *len = HEADERS - DQI_ETH_LEN;
    memcpy(buf, s->p, 12);
    dqi_put_be16(buf + 12, type);
    memcpy(buf + DQI_ETH_LEN, p, *len);
    *len += DQI_ETH_LEN;
    return buf;
}

// Returns the first flow below `best` that a frame matches, and its queue; else returns best.
static uint32_t ask(const level *v, const uint8_t *p, uint32_t len, uint32_t best, uint16_t *queue) {
    seen s;
    see(p, len, &s);
    for (uint32_t i = 0; i < v->n_shapes; i++) {
        const shape *x = &v->shapes[i];
        if (s.n_tags < x->n_tags || (x->kind != 0 && s.of[x->kind].inner == 0)) continue;
        const shell_key k = key_seen(&s, x);
        const shell *of = find(v, &k);
        if (!of) continue;
        uint8_t buf[HEADERS];
        uint32_t n = len, id = 0;
        const uint8_t *q = x->kind == 0 ? p : inside(&s, x->kind, buf, &n);
        const uint64_t off = 0;
        uint16_t to = DQI_NO_QUEUE;
        if (of->flows) dqi_flow_table_classify(of->flows, q, &off, &n, 1, &id, &to);
        if (to != DQI_NO_QUEUE && id < best) {
            best = id;
            *queue = to;
        }
        if (of->next) best = ask(of->next, q, n, best, queue);
    }
    return best;
}

void dqi_layers_classify(const dqi_layers *l, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                         uint32_t n, uint32_t *flow_id, uint16_t *queue) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t id = ask(l->top, base + off[i], len[i], UINT32_MAX, &queue[i]);
        if (id != UINT32_MAX) flow_id[i] = l->rules[id - 1].rule.flow_id;
    }
}
