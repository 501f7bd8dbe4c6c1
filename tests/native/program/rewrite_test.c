// rewrite_test.c: rules at every level against a model that changes one packet after another, over random
// frames: cut, tagged, fragments, of either IP version, with options and padding.
#include "frames.h"
#include "packet/field.h"
#include "program/rewrite.h"

enum { MAX = 150, ROOM = 512, MAPS = 3 };

typedef struct bed {
    uint64_t seed;
    uint8_t bytes[MAX * ROOM];
    uint64_t off[MAX];
    uint32_t len[MAX], loops[MAX];
    uint32_t n;
} bed;

static bed b = {.seed = 51};

static dqi_packets packets(bool plain) {
    b.n = 1 + dq_below(&b.seed, MAX);
    for (uint32_t i = 0; i < b.n; i++) {
        frame f;
        frame_random(&b.seed, false, &f);
        if (plain || dq_below(&b.seed, 2)) {
            f.ip = 4;
            f.n_vlans = 0;
            f.more_fragments = false;
            f.frag_offset = f.ip_options = 0;
            f.proto = dq_below(&b.seed, 3) ? 17 : 6;
        }
        b.off[i] = (uint64_t)i * ROOM;
        b.len[i] = frame_write(&f, b.bytes + b.off[i]);
        b.loops[i] = dq_below(&b.seed, 5);
        dqi_pkt pkt;
        if (dqi_parse(b.bytes + b.off[i], b.len[i], &pkt)) dqi_csum_fill(b.bytes + b.off[i], &pkt);
    }
    return (dqi_packets){.base = b.bytes, .off = b.off, .len = b.len, .n = b.n};
}

// A field that is part of packets, but for what names where others are: then the model would have to parse
// between rules.
static dq_field any_field(void) {
    static const char *const names[] = {"eth_dst", "eth_src", "ipv4_src", "ipv4_dst", "udp_dst", "udp_src",
                                        "tcp_dst", "ip_ttl",  "ip_tos",   "vlan_id",  "udp_dst", "ipv4_dst"};
    dq_field f;
    if (dq_below(&b.seed, 4)) {
        dq_field_named(names[dq_below(&b.seed, sizeof names / sizeof *names)], &f);
        return f;
    }
    f = (dq_field){.base = DQ_BASE_PAYLOAD, .bit_width = (uint16_t)(1 + dq_below(&b.seed, 64))};
    f.bit_offset = dq_below(&b.seed, 100);
    return f;
}

static dq_rewrite_rule any_rule(dq_rewrite_map *maps) {
    dq_rewrite_rule r = {
        .field = any_field(), .kind = (int32_t)dq_below(&b.seed, 3), .start = dq_rand(&b.seed)};
    r.step = dq_below(&b.seed, 2) ? dq_rand(&b.seed) : 0;
    if (r.kind != DQ_REWRITE_MAP) return r;
    r.maps = maps;
    r.n_maps = MAPS;
    if (dq_below(&b.seed, 3) == 0) {
        dq_field_named("ipv6_src_hi", &r.field);
        dq_field_named("ipv6_src_lo", &r.low);
    }
    for (uint32_t i = 0; i < MAPS; i++) { // what half of the packets have in one bit
        maps[i] = (dq_rewrite_map){.mask = UINT64_C(1) << dq_below(&b.seed, r.field.bit_width)};
        maps[i].from = dq_below(&b.seed, 2) ? maps[i].mask : 0;
        maps[i].to = maps[i].mask & dq_rand(&b.seed);
        if (r.low.bit_width == 0) continue;
        maps[i].low_mask = UINT64_C(1) << dq_below(&b.seed, 64);
        maps[i].low_from = dq_below(&b.seed, 2) ? maps[i].low_mask : 0;
        maps[i].low_to = maps[i].low_mask & dq_rand(&b.seed);
    }
    return r;
}

// What becomes of the value, and of the lower half; false: nothing.
static bool next(const dq_rewrite_rule *r, uint64_t number, uint32_t loop, uint64_t *v, uint64_t *low) {
    if (r->kind == DQ_REWRITE_SET) *v = r->start + r->step * number;
    if (r->kind == DQ_REWRITE_LOOP) *v += r->step * loop;
    for (uint32_t i = 0; r->kind == DQ_REWRITE_MAP; i++) {
        if (i == r->n_maps) return false;
        const dq_rewrite_map *m = &r->maps[i];
        if ((*v & m->mask) != m->from || (*low & m->low_mask) != m->low_from) continue;
        *v = (*v & ~m->mask) | m->to;
        *low = (*low & ~m->low_mask) | m->low_to;
        break;
    }
    return true;
}

static bool model(uint8_t *p, uint32_t len, const dq_rewrite_rule *r, uint32_t n, uint64_t number,
                  uint32_t loop) {
    bool all = true;
    for (uint32_t i = 0; i < n; i++) {
        dqi_pkt pkt;
        uint64_t v = 0, low = 0;
        bool halves = r[i].low.bit_width > 0;
        dqi_parse(p, len, &pkt);
        bool did = dqi_field_get(p, len, &pkt, &r[i].field, &v);
        if (halves) did = did && dqi_field_get(p, len, &pkt, &r[i].low, &low);
        did = did && next(&r[i], number, loop, &v, &low);
        if (did) did = dqi_field_set(p, len, &pkt, &r[i].field, v);
        if (did && halves) did = dqi_field_set(p, len, &pkt, &r[i].low, low);
        all &= did;
    }
    return all;
}

// Without checksums: they are compared by the one who can compute them.
static void clear(uint8_t *p, uint32_t len) {
    dqi_pkt k;
    if (!dqi_parse(p, len, &k)) return;
    if (k.has & DQ_HAS_IPV4) memset(p + k.l3 + 10, 0, 2);
    uint32_t at = k.has & DQ_HAS_UDP ? 6 : k.has & DQ_HAS_TCP ? 16 : k.has & DQ_HAS_ICMP ? 2 : 0;
    if (at != 0 && k.l4 + at + 2 <= len) memset(p + k.l4 + at, 0, 2);
}

static void check(const uint8_t *before, bool spoilt, const dq_rewrite_rule *r, uint32_t n, int csum,
                  uint32_t done) {
    uint32_t want = 0;
    for (uint32_t i = 0; i < b.n; i++) {
        uint8_t p[ROOM], got[ROOM];
        dqi_pkt pkt;
        memcpy(p, before + b.off[i], ROOM);
        memcpy(got, b.bytes + b.off[i], ROOM);
        want += model(p, b.len[i], r, n, 1000 + i, b.loops[i]);
        bool whole = dqi_parse(got, b.len[i], &pkt), right = whole && dqi_csum_ok(got, &pkt);
        if (csum == DQ_CSUM_COMPUTE && whole) DQ_CHECK(right);
        if (csum == DQ_CSUM_UPDATE && whole) DQ_CHECK(right || spoilt);
        if (csum != DQ_CSUM_KEEP) {
            clear(p, b.len[i]);
            clear(got, b.len[i]);
        }
        DQ_EQ_BYTES(got, p, ROOM); // nothing behind the packet either
    }
    DQ_EQ(done, want);
}

static void rules(void) {
    static uint8_t before[sizeof b.bytes];
    for (int round = 0; round < DQ_ROUNDS(3000); round++) {
        dqi_packets in = packets(round % 3 == 0);
        dq_rewrite_map maps[4][MAPS];
        dq_rewrite_rule r[4];
        uint32_t n = 1 + dq_below(&b.seed, 4);
        for (uint32_t i = 0; i < n; i++)
            r[i] = any_rule(maps[i]);
        int csum = (int)dq_below(&b.seed, 3);
        bool spoilt = csum == DQ_CSUM_COMPUTE && dq_below(&b.seed, 2);
        for (uint32_t i = 0; spoilt && i < b.n; i++)
            if (b.len[i] > 40) b.bytes[b.off[i] + 24] ^= 0x55;
        memcpy(before, b.bytes, sizeof before);
        dqi_rewrite *rw;
        dq_diag d = {{0}};
        DQ_EQ(dqi_rewrite_new(r, n, csum, &rw, &d), DQ_OK);
        const dqi_level *k;
        for (uint32_t i = 0; (k = dqi_level_at(i)) != NULL; i++) {
            dq_case = k->name;
            memcpy(b.bytes, before, sizeof before);
            check(before, spoilt, r, n, csum, dqi_rewrite_run(rw, k, &in, false, 1000, b.loops));
        }
        dqi_rewrite_free(rw);
    }
}

// A field that lies as far on as the payload's first byte gives, in payloads alone.
static void moved(void) {
    const dq_insn place[] = {{.op = DQ_OP_LOAD, .a = DQ_BASE_PAYLOAD, .b = 8, .c = 0},
                             {.op = DQ_OP_PUSH, .imm = 8},
                             {.op = DQ_OP_MUL},
                             {.op = DQ_OP_RET}};
    const dq_rewrite_rule r[] = {{.field = {.base = DQ_BASE_PAYLOAD, .bit_width = 16, .bit_offset = 8},
                                  .place = {place, 4},
                                  .kind = DQ_REWRITE_LOOP,
                                  .step = 300}};
    uint8_t bytes[3][16] = {{0, 0xff, 0xff}, {4, 0, 0, 0, 0, 1, 2, 3}, {14, 9}};
    uint64_t off[] = {0, 16, 32};
    uint32_t len[] = {16, 16, 16}, loops[] = {1, 2, 1};
    dqi_packets in = {.base = bytes[0], .off = off, .len = len, .n = 3};
    dqi_rewrite *rw;
    dq_diag d = {{0}};
    DQ_EQ(dqi_rewrite_new(r, 1, DQ_CSUM_UPDATE, &rw, &d), DQ_OK);
    DQ_EQ(dqi_rewrite_run(rw, dqi_level_best(), &in, true, 0, loops), 2);
    DQ_EQ(dqi_be16(bytes[0] + 1), 299); // it wraps
    DQ_EQ(dqi_be16(bytes[1] + 5), 0x102 + 600);
    DQ_EQ(bytes[2][15], 0); // 16 bits don't fit there
    DQ_EQ(dqi_rewrite_run(rw, dqi_level_best(), &in, true, 0, NULL), 2);
    DQ_EQ(dqi_be16(bytes[0] + 1), 299);
    dqi_rewrite_free(rw);
}

static void refused(void) {
    dq_rewrite_rule r[DQ_MAX_REWRITE_RULES + 1] = {{.field = {.base = DQ_BASE_L4, .bit_width = 65}}};
    dqi_rewrite *rw;
    dq_diag d = {{0}};
    DQ_EQ(dqi_rewrite_new(r, 1, 0, &rw, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "rule 1") != NULL);
    DQ_EQ(dqi_rewrite_new(r, DQ_MAX_REWRITE_RULES + 1, 0, &rw, &d), DQ_INVALID_PARAMETER);
    r[0] = (dq_rewrite_rule){.kind = DQ_REWRITE_LOOP, .low = {.base = DQ_BASE_L4, .bit_width = 8}};
    DQ_CHECK(dq_field_named("ipv6_src_hi", &r[0].field));
    DQ_EQ(dqi_rewrite_new(r, 1, 0, &rw, &d), DQ_INVALID_PARAMETER);
    r[0].low = (dq_field){0};
    DQ_CHECK(dq_field_named("len", &r[0].field));
    DQ_EQ(dqi_rewrite_new(r, 1, 0, &rw, &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "not part of the packet") != NULL);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(rules);
    DQ_RUN(moved);
    DQ_RUN(refused);
    return dq_done();
}
