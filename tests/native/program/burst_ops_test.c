// burst_ops_test.c: burst verbs at every level against a model that checks one packet after another, over
// random frames: cut, tagged, fragments, of either IP version, with options and padding.
#include "frames.h"
#include "program/burst_ops.h"
#include "program/expr.h"

enum { MAX = 150, ROOM = 512 };

typedef struct bed {
    uint64_t seed;
    uint8_t *bytes;
    uint64_t off[MAX];
    uint32_t len[MAX], flow[MAX];
    int64_t ts[MAX];
    uint32_t n;
} bed;

// Packets back to back in memory that ends with the last one, most of them plain, some with wrong checksums.
static dqi_packets packets(bed *b, bool plain) {
    static uint8_t all[MAX * ROOM];
    uint64_t end = 0;
    b->n = 1 + dq_below(&b->seed, MAX);
    for (uint32_t i = 0; i < b->n; i++) {
        frame f;
        frame_random(&b->seed, false, &f);
        if (plain || dq_below(&b->seed, 2)) {
            f.ip = 4;
            f.n_vlans = 0;
            f.more_fragments = false;
            f.frag_offset = 0;
            f.ip_options = 0;
            f.proto = dq_below(&b->seed, 3) ? 17 : dq_below(&b->seed, 2) ? 6 : 47;
        }
        uint8_t *p = all + end;
        uint32_t len = frame_write(&f, p);
        if (dq_below(&b->seed, 10) == 0) p[dq_below(&b->seed, len)] ^= (uint8_t)dq_rand(&b->seed);
        if (!plain && dq_below(&b->seed, 8) == 0) len = dq_below(&b->seed, len + 1);
        dqi_pkt pkt;
        if (dq_below(&b->seed, 4) && dqi_parse(p, len, &pkt)) dqi_csum_fill(p, &pkt);
        b->off[i] = end;
        b->len[i] = len;
        b->flow[i] = (uint32_t)dq_rand(&b->seed);
        b->ts[i] = (int64_t)dq_rand(&b->seed);
        end += len;
    }
    free(b->bytes);
    b->bytes = dq_exact(all, (uint32_t)end);
    return (dqi_packets){
        .base = b->bytes, .off = b->off, .len = b->len, .flow = b->flow, .ts = b->ts, .n = b->n};
}

// A field of the table, or any bits.
static dq_field any_field(bed *b) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    if (dq_below(&b->seed, 3)) return t[dq_below(&b->seed, n)].field;
    dq_field f = {.base = (uint8_t)dq_below(&b->seed, 4),
                  .bit_width = (uint16_t)(1 + dq_below(&b->seed, 64))};
    f.bit_offset = dq_below(&b->seed, dq_below(&b->seed, 2) ? 500 : 160);
    if (f.base == DQ_BASE_L4 && dq_below(&b->seed, 2)) f.need = DQ_HAS_UDP;
    if (dq_below(&b->seed, 4) == 0) {
        f.bit_offset &= ~7u;
        f.bit_width = (uint16_t)(8 * (1 + dq_below(&b->seed, 8)));
        f.flags = DQ_FIELD_LE;
    }
    if (dq_below(&b->seed, 4) == 0) f.flags |= DQ_FIELD_SIGNED;
    return f;
}

static void parse(const bed *b, uint32_t i, bool payload, dqi_pkt *pkt) {
    if (payload)
        dqi_parse_payload(b->len[i], pkt);
    else
        dqi_parse(b->bytes + b->off[i], b->len[i], pkt);
    pkt->has_meta = DQI_HAS_FLOW_ID | DQI_HAS_INDEX | DQI_HAS_RX_TIME;
    pkt->index = i;
    pkt->flow_id = b->flow[i];
    pkt->rx_time_ns = b->ts[i];
}

// A field of all packets, at every level.
static void check_column(const bed *b, const dqi_packets *in, bool payload, const dq_field *f) {
    const dqi_level *k;
    for (uint32_t i = 0; (k = dqi_level_at(i)) != NULL; i++) {
        uint64_t out[MAX];
        uint8_t ok[MAX];
        uint32_t n = 0;
        dq_case = k->name;
        uint32_t got = dqi_verb_column(k, in, payload, f, out, ok);
        for (uint32_t j = 0; j < b->n; j++) {
            dqi_pkt pkt;
            uint64_t want = 0;
            parse(b, j, payload, &pkt);
            bool has = dqi_field_get(b->bytes + b->off[j], b->len[j], &pkt, f, &want);
            DQ_EQ(ok[j], has);
            DQ_EQ(out[j], has ? want : 0);
            n += has;
        }
        DQ_EQ(got, n);
    }
}

static void columns(void) {
    bed b = {.seed = 31};
    for (int round = 0; round < DQ_ROUNDS(3000); round++) {
        bool payload = round % 5 == 0;
        dqi_packets in = packets(&b, round % 3 == 0);
        dq_field f = any_field(&b);
        if (f.flags & DQ_FIELD_LE && round % 2) f.bit_offset += 5, f.bit_width -= 6; // not on bytes
        if (dqi_field_check(&f, NULL) == DQ_OK) check_column(&b, &in, payload, &f);
    }
    free(b.bytes);
}

// One bit, or the length, of one of many equal frames is another: what holds for the others is not taken for
// this one's.
static void all_but_one(void) {
    static const dq_field fields[] = {
        {.base = DQ_BASE_PAYLOAD, .bit_width = 32, .bit_offset = 8},
        {.base = DQ_BASE_PAYLOAD, .bit_width = 64, .bit_offset = 12 * 8},
        {.base = DQ_BASE_L3, .bit_width = 8, .bit_offset = 39 * 8},
        {.base = DQ_BASE_L4, .bit_width = 16, .bit_offset = 16, .need = DQ_HAS_UDP},
        {.base = DQ_BASE_START, .bit_width = 32, .bit_offset = 56 * 8},
        {.base = DQ_BASE_META, .meta = DQ_META_PAYLOAD_LEN, .bit_width = 64},
    };
    enum { N = 67, LEN = 42 + 20 + 3, BITS = LEN * 8 }; // a chunk and a bit more; 3 bytes of padding
    bed b = {.seed = 5, .n = N, .bytes = calloc(N, LEN)};
    frame f = {.ip = 4, .proto = 17, .payload_len = 20, .padding = 3};
    for (uint32_t k = 0; k < 20; k++)
        f.payload[k] = (uint8_t)(k + 1);
    for (uint32_t i = 0; i < N; i++) {
        frame_write(&f, b.bytes + i * LEN);
        b.off[i] = i * LEN;
        b.len[i] = LEN;
    }
    const dqi_packets in = {.base = b.bytes, .off = b.off, .len = b.len, .flow = b.flow, .ts = b.ts, .n = N};
    for (uint32_t bit = 0; bit < BITS + LEN; bit++) {
        uint32_t i = dq_below(&b.seed, N);
        if (bit < BITS)
            b.bytes[i * LEN + bit / 8] ^= (uint8_t)(1 << bit % 8);
        else
            b.len[i] = bit - BITS;
        for (size_t k = 0; k < sizeof fields / sizeof *fields; k++)
            check_column(&b, &in, false, &fields[k]);
        if (bit < BITS) b.bytes[i * LEN + bit / 8] ^= (uint8_t)(1 << bit % 8);
        b.len[i] = LEN;
    }
    free(b.bytes);
}

static void clear_both(uint8_t *a, uint8_t *b, uint32_t at) {
    memset(a + at, 0, 2);
    memset(b + at, 0, 2);
}

// Whether the checksums of a frame are right.
static bool right(const uint8_t *p, uint32_t len) {
    dqi_pkt pkt;
    return dqi_parse(p, len, &pkt) && dqi_csum_ok(p, &pkt);
}

// Apart from checksums every byte is as the model has it; right checksums stay right.
static void check_set(const uint8_t *before, const uint8_t *p, uint32_t len, const dqi_pkt *pkt,
                      const dq_field *f, uint64_t v, int csum) {
    uint8_t want[ROOM], got[ROOM];
    dqi_pkt now;
    memcpy(want, before, len);
    memcpy(got, p, len);
    if (!dqi_field_set(want, len, pkt, f, v)) {
        DQ_EQ_BYTES(got, before, len);
        return;
    }
    if (csum == DQ_CSUM_KEEP) {
        DQ_EQ_BYTES(got, want, len);
        return;
    }
    bool none = pkt->has & DQ_HAS_UDP && dqi_be16(before + pkt->l4 + 6) == 0;
    if (right(before, len) && dqi_parse(got, len, &now)) DQ_CHECK(dqi_csum_ok(got, &now));
    uint64_t bit;
    uint32_t width;
    DQ_CHECK(dqi_field_place(len, pkt, f, &bit, &width));
    if (none && bit >= pkt->l4 * 8 + 64) DQ_EQ(dqi_be16(got + pkt->l4 + 6), 0);
    if (pkt->has & DQ_HAS_IPV4) clear_both(got, want, pkt->l3 + 10);
    uint32_t at = pkt->has & DQ_HAS_UDP ? 6 : pkt->has & DQ_HAS_TCP ? 16 : pkt->has & DQ_HAS_ICMP ? 2 : 0;
    if (at != 0) clear_both(got, want, pkt->l4 + at);
    if (dqi_parse(want, len, &now) && now.l3 == pkt->l3 && now.has == pkt->has && now.l4 == pkt->l4)
        DQ_EQ_BYTES(got, want, len);
}

static void sets(void) {
    bed b = {.seed = 32};
    for (int round = 0; round < DQ_ROUNDS(4000); round++) {
        dqi_packets in = packets(&b, round % 3 == 0);
        dq_field f = any_field(&b);
        if (dqi_field_check(&f, NULL) != DQ_OK) continue;
        uint64_t v = dq_rand(&b.seed), step = dq_below(&b.seed, 2) ? dq_below(&b.seed, 1000) : 0;
        int csum = (int)dq_below(&b.seed, 2);
        uint64_t total = b.off[b.n - 1] + b.len[b.n - 1];
        uint8_t *before = malloc(total + 1), *first = malloc(total + 1);
        memcpy(before, b.bytes, total);
        const dqi_level *k;
        uint32_t count = 0;
        for (uint32_t i = 0; (k = dqi_level_at(i)) != NULL; i++) {
            dq_case = k->name;
            memcpy(b.bytes, before, total);
            uint32_t n = dqi_verb_set(k, &in, false, &f, v, step, csum);
            if (i == 0) {
                count = n;
                memcpy(first, b.bytes, total);
            }
            DQ_EQ(n, count);
            DQ_EQ(memcmp(first, b.bytes, total), 0);
        }
        for (uint32_t j = 0; j < b.n; j++) {
            dqi_pkt pkt;
            dqi_parse(before + b.off[j], b.len[j], &pkt);
            check_set(before + b.off[j], first + b.off[j], b.len[j], &pkt, &f, v + j * step, csum);
        }
        free(before);
        free(first);
    }
    free(b.bytes);
}

// A wrong checksum stays wrong by the same difference, so that damage on the way still shows.
static void wrong_stays_wrong(void) {
    static const char *const names[] = {"ipv4_src", "ipv4_dst", "udp_dst", "ip_ttl", "ip_tos"};
    frame f = {.ip = 4, .proto = 17, .ttl = 9, .dport = 7, .payload_len = 30};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        uint8_t p[FRAME_MAX];
        uint64_t off = 0;
        uint32_t len = frame_write(&f, p);
        dqi_packets in = {.base = p, .off = &off, .len = &len, .n = 1};
        dqi_pkt pkt;
        dq_field field;
        dq_case = names[i];
        DQ_CHECK(dq_field_named(names[i], &field));
        dqi_parse(p, len, &pkt);
        dqi_csum_fill(p, &pkt);
        p[24] ^= 0x11;
        p[60] ^= 0x22;
        DQ_EQ(dqi_verb_set(dqi_level_best(), &in, false, &field, 77, 0, DQ_CSUM_UPDATE), 1);
        DQ_CHECK(!dqi_csum_ok(p, &pkt));
        p[60] ^= 0x22;
        DQ_CHECK(!dqi_csum_ok(p, &pkt));
        p[24] ^= 0x11;
        DQ_CHECK(dqi_csum_ok(p, &pkt));
    }
}

typedef struct term {
    dq_field f;
    uint8_t op;
    uint64_t c;
} term;

// A comparison of a field with what some packet has there, or nearly.
static term any_term(bed *b) {
    term t = {.f = any_field(b), .op = (uint8_t)(DQ_OP_EQ + dq_below(&b->seed, DQ_OP_GE_U - DQ_OP_EQ + 1))};
    while (dqi_field_check(&t.f, NULL) != DQ_OK)
        t.f = any_field(b);
    uint32_t i = dq_below(&b->seed, b->n);
    dqi_pkt pkt;
    parse(b, i, false, &pkt);
    t.c = dq_rand(&b->seed);
    dqi_field_get(b->bytes + b->off[i], b->len[i], &pkt, &t.f, &t.c);
    if (dq_below(&b->seed, 4) == 0) t.c += dq_below(&b->seed, 3) - 1;
    return t;
}

static bool compare(uint8_t op, uint64_t a, uint64_t b) {
    switch (op) {
    case DQ_OP_EQ:
        return a == b;
    case DQ_OP_NE:
        return a != b;
    case DQ_OP_LT_S:
        return (int64_t)a < (int64_t)b;
    case DQ_OP_LE_S:
        return (int64_t)a <= (int64_t)b;
    case DQ_OP_GT_S:
        return (int64_t)a > (int64_t)b;
    case DQ_OP_GE_S:
        return (int64_t)a >= (int64_t)b;
    case DQ_OP_LT_U:
        return a < b;
    case DQ_OP_LE_U:
        return a <= b;
    case DQ_OP_GT_U:
        return a > b;
    default:
        return a >= b;
    }
}

static bool satisfies(const bed *b, uint32_t i, bool payload, const term *terms, uint32_t n) {
    dqi_pkt pkt;
    uint64_t v;
    parse(b, i, payload, &pkt);
    for (uint32_t k = 0; k < n; k++)
        if (!dqi_field_get(b->bytes + b->off[i], b->len[i], &pkt, &terms[k].f, &v) ||
            !compare(terms[k].op, v, terms[k].c))
            return false;
    return true;
}

// `term and term and …`; each jump goes to the next one or to the end.
static dq_prog *conjunction(bed *b, const term *terms, uint32_t n) {
    dq_insn insns[4 * 10];
    dq_prog *prog = NULL;
    for (uint32_t k = 0; k < n; k++) {
        const dq_field *f = &terms[k].f;
        uint32_t to = 4 * (k + 1 + dq_below(&b->seed, n - k)) + 3;
        insns[4 * k] = (dq_insn){.op = DQ_OP_LOAD,
                                 .a = f->base,
                                 .b = f->bit_width,
                                 .c = f->bit_offset,
                                 .imm = f->meta | (uint64_t)f->flags << 8 | (uint64_t)f->need << 16};
        insns[4 * k + 1] = (dq_insn){.op = DQ_OP_PUSH, .imm = terms[k].c};
        insns[4 * k + 2] = (dq_insn){.op = terms[k].op};
        insns[4 * k + 3] = (dq_insn){.op = DQ_OP_JZ, .c = to < 4 * n ? to : 4 * n - 1};
    }
    insns[4 * n - 1] = (dq_insn){.op = DQ_OP_RET};
    DQ_EQ(dq_prog_new(insns, 4 * n, &prog, NULL), DQ_OK);
    return prog;
}

static void conditions(void) {
    bed b = {.seed = 33};
    uint32_t held = 0;
    for (int round = 0; round < DQ_ROUNDS(4000); round++) {
        bool payload = round % 7 == 0;
        dqi_packets in = packets(&b, round % 3 == 0);
        term terms[10];
        uint32_t n = dq_below(&b.seed, 3) ? 1 + dq_below(&b.seed, 2) : 1 + dq_below(&b.seed, 10);
        for (uint32_t k = 0; k < n; k++)
            terms[k] = any_term(&b);
        dq_prog *prog = conjunction(&b, terms, n);
        const dqi_level *k;
        for (uint32_t i = 0; prog && (k = dqi_level_at(i)) != NULL; i++) {
            uint32_t got[MAX + 1], found = dqi_prog_select(prog, k, &in, payload, got), next = 0;
            dq_case = k->name;
            DQ_EQ(dqi_prog_count(prog, k, &in, payload), found);
            for (uint32_t j = 0; j < b.n; j++) {
                bool listed = next < found && got[next] == j;
                DQ_EQ(listed, satisfies(&b, j, payload, terms, n));
                next += listed;
            }
            DQ_EQ(next, found);
            held += found;
        }
        dq_prog_free(prog);
    }
    DQ_CHECK(held > DQ_ROUNDS(10000));
    free(b.bytes);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(columns);
    DQ_RUN(all_but_one);
    DQ_RUN(sets);
    DQ_RUN(wrong_stays_wrong);
    DQ_RUN(conditions);
    return dq_done();
}
