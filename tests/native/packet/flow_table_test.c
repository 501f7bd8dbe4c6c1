// flow_table_test.c: flow tables, whole batches at once, against a look through all rules with the model of a
// match.
#include "match_model.h"

#include "packet/flow_table.h"
#include "packet/rss.h"

enum { BATCH = 256 };

typedef struct batch {
    frame f[BATCH];
    uint8_t bytes[BATCH * FRAME_MAX];
    uint64_t off[BATCH];
    uint32_t len[BATCH];
    uint32_t flow[BATCH];
    uint16_t queue[BATCH];
} batch;

static void batch_random(uint64_t *seed, batch *b) {
    uint64_t off = 0;
    for (uint32_t i = 0; i < BATCH; i++) {
        frame_random(seed, true, &b->f[i]);
        b->off[i] = off;
        b->len[i] = frame_write(&b->f[i], b->bytes + off);
        off += b->len[i];
    }
}

static const dq_rule *slow_lookup(const dq_rule *rules, uint32_t n, const frame *f) {
    const dq_rule *best = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (slow_match(&rules[i].match, f) && (best == NULL || rules[i].order < best->order))
            best = &rules[i];
    return best;
}

static void check_batch(const dqi_flow_table *t, const dq_rule *rules, uint32_t n, batch *b) {
    dqi_flow_table_classify(t, b->bytes, b->off, b->len, BATCH, b->flow, b->queue);
    for (uint32_t i = 0; i < BATCH; i++) {
        const dq_rule *r = slow_lookup(rules, n, &b->f[i]);
        DQ_EQ(b->flow[i], r ? r->flow_id : 0);
        if (r == NULL) {
            DQ_EQ(b->queue[i], DQI_NO_QUEUE);
        } else if (!r->rss) {
            DQ_EQ(b->queue[i], r->queues[0]);
        } else {
            dqi_pkt k;
            const uint8_t *p = b->bytes + b->off[i];
            dqi_parse(p, b->len[i], &k);
            DQ_EQ(b->queue[i], r->queues[dqi_rss_queue(dqi_rss_hash(dqi_rss_default(), p, &k), r->n_queues)]);
        }
    }
}

static void rule_random(uint64_t *seed, const batch *b, uint32_t id, dq_rule *r) {
    *r = (dq_rule){.flow_id = id, .order = dq_below(seed, 4), .n_queues = (uint16_t)(1 + dq_below(seed, 4))};
    for (uint16_t q = 0; q < r->n_queues; q++)
        r->queues[q] = (uint16_t)(id * 4 % 60000 + q);
    r->rss = dq_below(seed, 3) == 0 && r->n_queues > 1;
    match_random(seed, &b->f[dq_below(seed, BATCH)], &r->match);
    if (r->match.set == 0 && dq_below(seed, 4)) r->match.set = DQ_MATCH_UDP_DST;
}

static void first_match_wins(void) {
    uint64_t seed = 9;
    static const uint32_t sizes[] = {0, 1, 2, 3, 8, 40, 300};
    batch *b = malloc(sizeof *b);
    dq_rule *rules = calloc(300, sizeof *rules);
    for (int round = 0; round < 400; round++) {
        uint32_t n = sizes[dq_below(&seed, 7)];
        batch_random(&seed, b);
        for (uint32_t i = 0; i < n; i++)
            rule_random(&seed, b, i + 1, &rules[i]);
        dqi_flow_table *t = NULL;
        DQ_EQ(dqi_flow_table_build(rules, n, &t, NULL), DQ_OK);
        check_batch(t, rules, n, b);
        dqi_flow_table_free(t);
    }
    free(rules);
    free(b);
}

// Runs of frames that rules may not tell apart: the same frame again, or with another time to live, sender's
// port or address.
static void batch_runs(uint64_t *seed, batch *b) {
    uint64_t off = 0;
    const uint32_t change = 1 + dq_below(seed, 60);
    for (uint32_t i = 0; i < BATCH; i++) {
        frame *f = &b->f[i];
        if (i == 0 || dq_below(seed, change) == 0)
            frame_random(seed, dq_below(seed, 4) == 0, f);
        else
            *f = b->f[i - 1];
        f->ttl = (uint8_t)dq_rand(seed);
        if (dq_below(seed, 30) == 0) f->sport = (uint16_t)(1000 + dq_below(seed, 6));
        if (dq_below(seed, 30) == 0) f->dport = (uint16_t)(2000 + dq_below(seed, 6));
        if (dq_below(seed, 30) == 0) f->dst[3] = (uint8_t)dq_rand(seed);
        if (dq_below(seed, 30) == 0) f->eth_src[5] ^= 1;
        b->off[i] = off;
        b->len[i] = frame_write(f, b->bytes + off);
        off += b->len[i];
    }
}

// n rules on the same fields, drawn from frames, sometimes before one that takes all.
static uint32_t rules_alike(uint64_t *seed, const batch *b, uint32_t n, dq_rule *rules) {
    static const uint32_t fields[] = {DQ_MATCH_UDP_DST,
                                      DQ_MATCH_IPV4_DST,
                                      DQ_MATCH_ETH_SRC,
                                      DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_UDP_SRC |
                                          DQ_MATCH_UDP_DST,
                                      DQ_MATCH_IPV6_DST | DQ_MATCH_TCP_DST,
                                      DQ_MATCH_ETHERTYPE | DQ_MATCH_IPV4_SRC};
    const uint32_t set = fields[dq_below(seed, 6)];
    for (uint32_t i = 0; i < n; i++) {
        rule_random(seed, b, i + 1, &rules[i]);
        dq_match *m = &rules[i].match;
        const frame *f = &b->f[dq_below(seed, BATCH)];
        *m = (dq_match){.set = set,
                        .ethertype = 0x0800,
                        .ipv4_src = addr4(f->src),
                        .ipv4_dst = addr4(f->dst),
                        .ipv4_src_mask = 0xffffffff,
                        .ipv4_dst_mask = 0xffffffff,
                        .ipv6_dst_prefix = 128,
                        .udp_src = {f->sport, f->sport},
                        .udp_dst = {f->dport, f->dport},
                        .tcp_dst = {f->dport, f->dport}};
        memcpy(m->eth_src, f->eth_src, 6);
        memcpy(m->ipv6_dst, f->dst, 16);
    }
    if (dq_below(seed, 3) != 0) return n;
    rules[n] = (dq_rule){.flow_id = n + 1, .order = 9, .n_queues = 1, .queues = {60001}};
    return n + 1;
}

// What neighbours share is looked up once, in tables of one shape and of all, by every instruction set.
static void runs_of_frames(void) {
    enum { MOST = 40 };
    uint64_t seed = 21;
    batch *b = malloc(sizeof *b);
    dq_rule rules[MOST + 1];
    uint32_t hits = 0;
    for (int round = 0; round < 600; round++) {
        uint32_t n = 1 + dq_below(&seed, MOST);
        batch_runs(&seed, b);
        if (round % 3 != 0)
            n = rules_alike(&seed, b, n, rules);
        else
            for (uint32_t i = 0; i < n; i++)
                rule_random(&seed, b, i + 1, &rules[i]);
        dqi_flow_table *t = NULL;
        DQ_EQ(dqi_flow_table_build(rules, n, &t, NULL), DQ_OK);
        for (uint32_t k = 0; dqi_level_at(k) != NULL; k++) {
            t->level = dqi_level_at(k);
            check_batch(t, rules, n, b);
        }
        for (uint32_t i = 0; i < BATCH; i++)
            hits += b->queue[i] != DQI_NO_QUEUE;
        dqi_flow_table_free(t);
    }
    DQ_CHECK(hits > 600 * BATCH / 4);
    free(b);
}

// Runs of three to or from each port, and rules on pairs of ports: of a table that is changed both layers
// tell frames apart.
static void layers_see_runs(void) {
    enum { RULES = 20 };
    batch *b = calloc(1, sizeof *b);
    dq_rule rules[RULES + 1];
    for (uint32_t from = 0; from < 2; from++) {
        dqi_flow_table *t = NULL, *next = NULL;
        for (uint32_t i = 0; i < RULES; i++) {
            dq_port_range pair = {(uint16_t)(2000 + 2 * i), (uint16_t)(2001 + 2 * i)};
            rules[i] = (dq_rule){.flow_id = i + 1, .order = 10 + i, .n_queues = 1};
            rules[i].match = (dq_match){
                .set = from ? DQ_MATCH_UDP_SRC : DQ_MATCH_UDP_DST, .udp_src = pair, .udp_dst = pair};
        }
        rules[RULES] = (dq_rule){.flow_id = RULES + 1, .order = 5, .n_queues = 1};
        rules[RULES].match = (dq_match){.set = DQ_MATCH_IPV4_DST, .ipv4_dst = 7, .ipv4_dst_mask = 0xffffffff};
        for (uint32_t i = 0; i < BATCH; i++) {
            uint16_t port = (uint16_t)(2000 + i / 3 % 48);
            b->f[i] = (frame){.ip = 4, .proto = 17, .payload_len = 30};
            *(from ? &b->f[i].sport : &b->f[i].dport) = port;
            b->f[i].dst[3] = i % 40 == 0 ? 7 : 0;
            b->off[i] = i * FRAME_MAX;
            b->len[i] = frame_write(&b->f[i], b->bytes + b->off[i]);
        }
        DQ_EQ(dqi_flow_table_build(rules, RULES, &t, NULL), DQ_OK);
        check_batch(t, rules, RULES, b);
        DQ_EQ(dqi_flow_table_change(t, NULL, 0, &rules[RULES], 1, &next, NULL), DQ_OK);
        DQ_CHECK(next->base == t);
        check_batch(next, rules, RULES + 1, b);
        dqi_flow_table_free(next);
        dqi_flow_table_free(t);
    }
    free(b);
}

// Frames of another EtherType with the bytes of an IPv4 packet behind it, among real ones: they are not
// neighbours of the same key, wherever they stand.
static void bytes_are_not_headers(void) {
    enum { N = 200 };
    batch *b = calloc(1, sizeof *b);
    dq_rule rule = {.flow_id = 1,
                    .n_queues = 1,
                    .match = {.set = DQ_MATCH_IPV4_DST, .ipv4_dst = 0x0a000001, .ipv4_dst_mask = 0xffffffff}};
    frame f = {.ip = 4, .proto = 17, .dst = {10, 0, 0, 1}, .payload_len = 30};
    dqi_flow_table *t = NULL;
    DQ_EQ(dqi_flow_table_build(&rule, 1, &t, NULL), DQ_OK);
    for (uint32_t at = 60; at < 70; at++) {
        for (uint32_t i = 0; i < N; i++) {
            b->off[i] = i * FRAME_MAX;
            b->len[i] = frame_write(&f, b->bytes + b->off[i]);
            if (i % at == at - 1) b->bytes[b->off[i] + 12] = 0x88;
        }
        dqi_flow_table_classify(t, b->bytes, b->off, b->len, N, b->flow, b->queue);
        for (uint32_t i = 0; i < N; i++)
            DQ_EQ(b->flow[i], i % at != at - 1);
    }
    dqi_flow_table_free(t);
    free(b);
}

// Thousands of rules of a few shapes: the hash tables, with collisions and equal values.
static void many_exact_rules(void) {
    enum { N = 3000 };
    uint64_t seed = 10;
    batch *b = malloc(sizeof *b);
    dq_rule *rules = calloc(N, sizeof *rules);
    batch_random(&seed, b);
    for (uint32_t i = 0; i < N; i++) {
        const frame *f = &b->f[dq_below(&seed, BATCH)];
        dq_match *m = &rules[i].match;
        m->set = DQ_MATCH_UDP_DST | (i % 3 ? DQ_MATCH_IPV4_DST : 0) | (i % 2 ? DQ_MATCH_IPV4_SRC : 0);
        m->ipv4_src = addr4(f->src) + (i % 5 ? i : 0);
        m->ipv4_dst = addr4(f->dst);
        m->ipv4_src_mask = m->ipv4_dst_mask = 0xffffffff;
        m->udp_dst.lo = m->udp_dst.hi = (uint16_t)(i % 7 ? 3000 + i : f->dport);
        rules[i].flow_id = i + 1;
        rules[i].order = dq_below(&seed, 100);
        rules[i].n_queues = 1;
    }
    dqi_flow_table *t = NULL;
    DQ_EQ(dqi_flow_table_build(rules, N, &t, NULL), DQ_OK);
    check_batch(t, rules, N, b);
    dqi_flow_table_free(t);
    free(rules);
    free(b);
}

// A rule on ports: a range or one port, of either side, sometimes of one sender only.
static void rule_ports(uint64_t *seed, uint32_t k, dq_rule *r) {
    static const uint32_t widths[] = {0, 0, 2, 40, 700, 20000};
    uint16_t lo = (uint16_t)dq_rand(seed);
    uint32_t hi = lo + dq_below(seed, 1 + widths[dq_below(seed, 6)]);
    dq_port_range range = {lo, (uint16_t)(hi < 0xffff ? hi : 0xffff)};
    bool src = dq_below(seed, 4) == 0;
    *r = (dq_rule){.flow_id = k + 1, .order = (uint64_t)dq_below(seed, 1u << 20) << 32 | k, .n_queues = 1};
    r->match =
        (dq_match){.set = src ? DQ_MATCH_UDP_SRC : DQ_MATCH_UDP_DST, .udp_src = range, .udp_dst = range};
    if (dq_below(seed, 3) != 0) return;
    r->match.set |= DQ_MATCH_IPV4_SRC;
    r->match.ipv4_src = 0x0a0a0a00 | dq_below(seed, 4);
    r->match.ipv4_src_mask = 0xffffffff;
}

// Ranges that overlap, share maps and come and go.
static void many_ranges(void) {
    enum { N = 500, ROUNDS = 60 };
    uint64_t seed = 13;
    batch *b = malloc(sizeof *b);
    dq_rule *rules = calloc(N + 1, sizeof *rules);
    dqi_flow_table *t = NULL, *next = NULL;
    uint32_t hits = 0;
    for (uint32_t i = 0; i < N; i++)
        rule_ports(&seed, i, &rules[i]);
    DQ_EQ(dqi_flow_table_build(rules, N, &t, NULL), DQ_OK);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        batch_random(&seed, b);
        for (uint32_t i = 0; i < BATCH; i++) {
            b->f[i].sport = (uint16_t)dq_rand(&seed);
            b->f[i].dport = (uint16_t)dq_rand(&seed);
            frame_write(&b->f[i], b->bytes + b->off[i]);
        }
        check_batch(t, rules, N, b);
        for (uint32_t i = 0; i < BATCH; i++)
            hits += b->queue[i] != DQI_NO_QUEUE;
        uint32_t k = dq_below(&seed, N);
        uint64_t gone = rules[k].order;
        rule_ports(&seed, N + round, &rules[k]);
        DQ_EQ(dqi_flow_table_change(t, &gone, 1, &rules[k], 1, &next, NULL), DQ_OK);
        dqi_flow_table_free(t);
        t = next;
    }
    DQ_CHECK(hits > ROUNDS * BATCH / 8);
    dqi_flow_table_free(t);
    free(rules);
    free(b);
}

static dq_rule from_sender(uint64_t mac, uint32_t id) {
    dq_rule r = {.match = {.set = DQ_MATCH_ETH_SRC}, .flow_id = id, .order = id, .n_queues = 1};
    for (int k = 0; k < 6; k++)
        r.match.eth_src[k] = (uint8_t)(mac >> (8 * k));
    return r;
}

static uint64_t sender_hash(uint64_t mac) {
    dqi_cond c;
    dq_rule r = from_sender(mac, 1);
    dqi_cond_make(&r.match, &c);
    return dqi_flow_table_hash(&c, &c.value, 0);
}

typedef struct hashed {
    uint64_t hash, mac;
} hashed;

static int by_tag(const void *a, const void *b) {
    const hashed *x = a, *y = b;
    uint64_t s = FLOW_TABLE_TAG(x->hash), t = FLOW_TABLE_TAG(y->hash);
    return s < t ? -1 : s > t;
}

// Finds two senders whose rules have one tag in a hash table of the first seed, and one bucket of eight.
static void find_twins(uint64_t *one, uint64_t *other) {
    enum { N = 600000 };
    uint64_t seed = 14;
    hashed *all = calloc(N, sizeof *all);
    for (uint32_t i = 0; i < N; i++) {
        all[i].mac = dq_rand(&seed) & 0xfffffffffffe;
        all[i].hash = sender_hash(all[i].mac);
    }
    qsort(all, N, sizeof *all, by_tag);
    for (uint32_t i = 1; i < N && *one == *other; i++) {
        if (FLOW_TABLE_TAG(all[i].hash ^ all[i - 1].hash) != 0) continue;
        if (((all[i].hash ^ all[i - 1].hash) & 7) != 0) continue;
        *one = all[i].mac;
        *other = all[i - 1].mac;
    }
    free(all);
}

// A frame that has a rule's tag and not its value continues to the rules that it does match.
static void tags_may_be_wrong(void) {
    uint64_t one = 0, other = 0;
    find_twins(&one, &other);
    DQ_CHECK(one != other);
    dq_rule rules[8] = {from_sender(one, 1), from_sender(2, 2), from_sender(4, 3), from_sender(6, 4)};
    static const uint32_t sets[] = {DQ_MATCH_ETHERTYPE, DQ_MATCH_VLAN_ID, DQ_MATCH_IP_PROTO};
    for (uint32_t k = 0; k < 3; k++)
        rules[4 + k] = (dq_rule){.match = {.set = sets[2 - k], .ethertype = 0x88b5, .ip_proto = 17},
                                 .flow_id = 5 + k,
                                 .order = 5 + k,
                                 .n_queues = 1};
    uint8_t frames[2][64] = {{[12] = 0x88, 0xb5}, {[12] = 0x88, 0xb5}};
    dq_rule with = from_sender(other, 1);
    memcpy(frames[0] + 6, with.match.eth_src, 6);
    memcpy(frames[1] + 6, rules[0].match.eth_src, 6);
    const uint64_t off[2] = {0, 64};
    const uint32_t len[2] = {64, 64};
    uint32_t flow[2];
    uint16_t queue[2];
    dqi_flow_table *t = NULL;
    DQ_EQ(dqi_flow_table_build(rules, 7, &t, NULL), DQ_OK);
    DQ_CHECK(t->n_steps > 3);
    for (uint32_t k = 0; k < t->n_steps; k++)
        DQ_CHECK(t->steps[k].kind != STEP_HASH || (t->steps[k].seed == 0 && t->steps[k].n_buckets <= 8));
    dqi_flow_table_classify(t, frames[0], off, len, 2, flow, queue);
    DQ_EQ(flow[0], 7);
    DQ_EQ(flow[1], 1);
    dqi_flow_table_free(t);
}

// Of so many rules of one shape some find their bucket full: they are found, too, and the first of equal
// ones.
static void buckets_may_be_full(void) {
    enum { N = 1 << 15, EQUAL = 64, BURST = 64 };
    uint64_t seed = 21;
    dq_rule *rules = calloc(N + EQUAL, sizeof *rules);
    uint64_t *mac = calloc(N + EQUAL, sizeof *mac);
    for (uint32_t i = 0; i < N + EQUAL; i++) {
        mac[i] = i < N ? (dq_rand(&seed) & 0xffffff000000) | i << 1 : mac[dq_below(&seed, N)];
        rules[i] = from_sender(mac[i], i + 1);
    }
    dqi_flow_table *t = NULL;
    DQ_EQ(dqi_flow_table_build(rules, N + EQUAL, &t, NULL), DQ_OK);
    DQ_CHECK(t->n_steps > 1);
    uint8_t *bytes = calloc(BURST, 64);
    uint64_t off[BURST];
    uint32_t len[BURST], flow[BURST];
    uint16_t queue[BURST];
    for (uint32_t first = 0; first < N; first += BURST) {
        for (uint32_t k = 0; k < BURST; k++) {
            off[k] = (uint64_t)k * 64;
            len[k] = 64;
            memcpy(bytes + off[k] + 6, rules[first + k].match.eth_src, 6);
        }
        dqi_flow_table_classify(t, bytes, off, len, BURST, flow, queue);
        for (uint32_t k = 0; k < BURST; k++)
            DQ_EQ(flow[k], first + k + 1);
    }
    dqi_flow_table_free(t);
    free(bytes);
    free(rules);
    free(mac);
}

// The sender of the frame, or, for most k, nothing.
static dq_match exact(const frame *f, uint32_t k) {
    dq_match m = {.set = DQ_MATCH_ETH_SRC};
    memcpy(m.eth_src, f->eth_src, 6);
    if (k % 16 != 0) memcpy(m.eth_src, &k, sizeof k);
    return m;
}

// Rules come and go one by one and in groups, as in a table that a script changes: each table must say what
// one made of the same rules returns. Sizes on both sides of where tables are layered; equal rules and
// catch-alls in between.
static void changes_one_by_one(void) {
    enum { MOST = 700, ROUNDS = 1500 };
    uint64_t seed = 12;
    batch *b = malloc(sizeof *b);
    dq_rule *rules = calloc(MOST, sizeof *rules);
    uint64_t *gone = calloc(MOST, sizeof *gone);
    uint32_t n = 0, layered = 0;
    dqi_flow_table *t = NULL;
    batch_random(&seed, b);
    DQ_EQ(dqi_flow_table_build(NULL, 0, &t, NULL), DQ_OK);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        uint32_t n_gone = 0, n_add = 0;
        bool shrink = round / 500 % 2 == 1;
        for (uint32_t k = dq_below(&seed, shrink ? 4 : 2); k > 0 && n > 0; k--) {
            uint32_t i = dq_below(&seed, n);
            gone[n_gone++] = rules[i].order;
            rules[i] = rules[--n];
        }
        for (uint32_t left = dq_below(&seed, shrink ? 2 : 4); left > 0 && n + n_add < MOST; left--, n_add++) {
            dq_rule *r = &rules[n + n_add];
            bool broad = dq_below(&seed, 64) == 0; // these come last, or they would match everything
            rule_random(&seed, b, round + 1, r);
            uint32_t k = round * 4 + n_add, at = round < 1000 ? k / 16 : dq_below(&seed, BATCH);
            if (!broad) r->match = exact(&b->f[at % BATCH], k);
            r->order = (uint64_t)broad << 60 | (uint64_t)dq_below(&seed, 1u << 20) << 32 | round << 4 | n_add;
            r->flow_id = 1 + (uint32_t)(r->order % 0xffffff);
        }
        dqi_flow_table *next = NULL;
        DQ_EQ(dqi_flow_table_change(t, gone, n_gone, rules + n, n_add, &next, NULL), DQ_OK);
        dqi_flow_table_free(t);
        t = next;
        n += n_add;
        layered += t->base != NULL;
        DQ_CHECK(n_gone + n_add > 0 || t->base == NULL); // a change of nothing makes it one table
        if (round % (t->base != NULL ? 4 : 16) == 0) check_batch(t, rules, n, b);
    }
    DQ_CHECK(layered > ROUNDS / 8);
    dqi_flow_table *none = NULL;
    uint64_t nowhere = 1ull << 61;
    DQ_EQ(dqi_flow_table_change(t, &nowhere, 1, NULL, 0, &none, NULL), DQ_INVALID_PARAMETER);
    DQ_CHECK(none == NULL);
    dqi_flow_table_free(t);
    free(gone);
    free(rules);
    free(b);
}

// A catch-all alone must not read packets: these are nowhere.
static void catch_all_reads_nothing(void) {
    dq_rule rules[2] = {{.flow_id = 7, .n_queues = 1, .queues = {3}},
                        {.flow_id = 8, .n_queues = 1, .queues = {4}}};
    rules[1].match.set = DQ_MATCH_IP_PROTO;
    dqi_flow_table *t = NULL;
    DQ_EQ(dqi_flow_table_build(rules, 2, &t, NULL), DQ_OK);
    uint64_t off[2] = {0, 1u << 20};
    uint32_t len[2] = {64, 1500}, flow[2];
    uint16_t queue[2];
    dqi_flow_table_classify(t, NULL, off, len, 2, flow, queue);
    DQ_EQ(flow[0], 7);
    DQ_EQ(queue[1], 3);
    dqi_flow_table_free(t);
}

static void runts_match_catch_all_only(void) {
    dq_rule rules[2] = {{.flow_id = 1, .n_queues = 1, .queues = {1}},
                        {.flow_id = 2, .order = 1, .n_queues = 1, .queues = {2}}};
    rules[0].match = (dq_match){.set = DQ_MATCH_UDP_DST, .udp_dst = {0, 0xffff}};
    dqi_flow_table *t = NULL;
    DQ_EQ(dqi_flow_table_build(rules, 2, &t, NULL), DQ_OK);
    uint8_t *p = dq_exact((const uint8_t *)"short", 5);
    uint64_t off = 0;
    uint32_t len = 5, flow = 0;
    uint16_t queue = 0;
    dqi_flow_table_classify(t, p, &off, &len, 1, &flow, &queue);
    DQ_EQ(flow, 2);
    DQ_EQ(queue, 2);
    free(p);
    dqi_flow_table_free(t);
}

static void survives_noise(void) {
    uint64_t seed = 11;
    batch *b = malloc(sizeof *b);
    batch_random(&seed, b);
    dq_rule rules[40];
    for (uint32_t i = 0; i < 40; i++)
        rule_random(&seed, b, i + 1, &rules[i]);
    dqi_flow_table *t = NULL;
    DQ_EQ(dqi_flow_table_build(rules, 40, &t, NULL), DQ_OK);
    for (int i = 0; i < 20000; i++) {
        frame *f = &b->f[dq_below(&seed, BATCH)];
        uint8_t buf[FRAME_MAX];
        uint32_t len = dq_below(&seed, frame_write(f, buf) + 1), flow;
        buf[12 + dq_below(&seed, 40)] = (uint8_t)dq_rand(&seed);
        uint8_t *p = dq_exact(buf, len);
        uint64_t off = 0;
        uint16_t queue;
        dqi_flow_table_classify(t, p, &off, &len, 1, &flow, &queue);
        DQ_CHECK(flow <= 40);
        free(p);
    }
    dqi_flow_table_free(t);
    free(b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(first_match_wins);
    DQ_RUN(runs_of_frames);
    DQ_RUN(layers_see_runs);
    DQ_RUN(bytes_are_not_headers);
    DQ_RUN(many_exact_rules);
    DQ_RUN(many_ranges);
    DQ_RUN(tags_may_be_wrong);
    DQ_RUN(buckets_may_be_full);
    DQ_RUN(changes_one_by_one);
    DQ_RUN(catch_all_reads_nothing);
    DQ_RUN(runts_match_catch_all_only);
    DQ_RUN(survives_noise);
    return dq_done();
}
