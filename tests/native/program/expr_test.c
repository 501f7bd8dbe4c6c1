// expr_test.c: packet programs: what the check refuses, what each operator does, and random programs against
// a tree walk.
#include "frames.h"

#include "packet/field.h"
#include "program/expr.h"

static dq_insn push(uint64_t v) { return (dq_insn){.op = DQ_OP_PUSH, .imm = v}; }
static dq_insn op(uint8_t o) { return (dq_insn){.op = o}; }
static dq_insn jump(uint8_t o, uint32_t to) { return (dq_insn){.op = o, .c = to}; }

static dq_insn load(dq_field f) {
    uint64_t imm = f.meta | (uint64_t)f.flags << 8 | (uint64_t)f.need << 16;
    return (dq_insn){.op = DQ_OP_LOAD, .a = f.base, .b = f.bit_width, .c = f.bit_offset, .imm = imm};
}

static dq_field named(const char *name) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(t[i].name, name) == 0) return t[i].field;
    dq_failed(__FILE__, __LINE__, name);
    return (dq_field){.bit_width = 8};
}

// Runs a program over one packet, at every level.
static bool matches(const dq_insn *insns, uint32_t n, const uint8_t *p, uint32_t len, bool payload) {
    dq_prog *prog = NULL;
    dq_diag diag = {{0}};
    if (dq_prog_new(insns, n, &prog, &diag) != DQ_OK) {
        dq_failed(__FILE__, __LINE__, diag.text);
        return false;
    }
    uint64_t off = 0;
    uint32_t out, flow = 9, got = 0;
    int64_t ts = -3;
    dqi_packets in = {
        .base = (uint8_t *)(uintptr_t)p, .off = &off, .len = &len, .flow = &flow, .ts = &ts, .n = 1};
    const dqi_level *k;
    for (uint32_t i = 0; (k = dqi_level_at(i)) != NULL; i++) {
        uint32_t now = dqi_prog_select(prog, k, &in, payload, &out);
        if (i > 0) DQ_EQ(now, got);
        DQ_EQ(dqi_prog_count(prog, k, &in, payload), now);
        got = now;
    }
    dq_prog_free(prog);
    return got == 1;
}

typedef struct sum {
    const char *name;
    uint8_t op;
    int64_t a, b, want;
} sum;

static void operators(void) {
    static const sum cases[] = {
        {"add wraps", DQ_OP_ADD, INT64_MAX, 1, INT64_MIN},
        {"sub", DQ_OP_SUB, 3, 5, -2},
        {"mul", DQ_OP_MUL, -3, 5, -15},
        {"div", DQ_OP_DIV_S, 7, 2, 3},
        {"div floors below zero", DQ_OP_DIV_S, -7, 2, -4},
        {"div floors by a negative", DQ_OP_DIV_S, 7, -2, -4},
        {"div of two negatives", DQ_OP_DIV_S, -7, -2, 3},
        {"div at the edge", DQ_OP_DIV_S, INT64_MIN, -1, INT64_MIN},
        {"div unsigned", DQ_OP_DIV_U, -1, 2, INT64_MAX},
        {"mod", DQ_OP_MOD_S, 7, 3, 1},
        {"mod takes the divisor's sign", DQ_OP_MOD_S, -7, 3, 2},
        {"mod by a negative", DQ_OP_MOD_S, 7, -3, -2},
        {"mod at the edge", DQ_OP_MOD_S, INT64_MIN, -1, 0},
        {"mod unsigned", DQ_OP_MOD_U, -1, 10, 5},
        {"and", DQ_OP_AND, 12, 10, 8},
        {"or", DQ_OP_OR, 12, 10, 14},
        {"xor", DQ_OP_XOR, 12, 10, 6},
        {"shl", DQ_OP_SHL, 1, 63, INT64_MIN},
        {"shl by 64", DQ_OP_SHL, 1, 64, 0},
        {"shl by a negative", DQ_OP_SHL, 1, -1, 0},
        {"shr is logical", DQ_OP_SHR, -1, 60, 15},
        {"shr by 64", DQ_OP_SHR, -1, 64, 0},
        {"sar floors", DQ_OP_SAR, -7, 1, -4},
        {"sar by 99", DQ_OP_SAR, -7, 99, -1},
        {"sar of a positive by 99", DQ_OP_SAR, 7, 99, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const sum *c = &cases[i];
        dq_insn direct[] = {push((uint64_t)c->a),    push((uint64_t)c->b), op(c->op),
                            push((uint64_t)c->want), op(DQ_OP_EQ),         op(DQ_OP_RET)};
        uint8_t p[8];
        dqi_put_be32(p, (uint32_t)((uint64_t)c->a >> 32));
        dqi_put_be32(p + 4, (uint32_t)(uint64_t)c->a);
        dq_insn field[6];
        memcpy(field, direct, sizeof field);
        field[0] = load((dq_field){.bit_width = 64}); // as a term
        dq_case = c->name;
        DQ_CHECK(matches(direct, 6, p, 8, true));
        DQ_CHECK(matches(field, 6, p, 8, true));
        direct[4] = field[4] = op(DQ_OP_NE);
        DQ_CHECK(!matches(direct, 6, p, 8, true));
        DQ_CHECK(!matches(field, 6, p, 8, true));
    }
}

typedef struct order {
    uint8_t op;
    uint64_t a, b;
    bool want;
} order;

static void comparisons(void) {
    const uint64_t m1 = UINT64_MAX;
    const order cases[] = {
        {DQ_OP_EQ, 4, 4, true},     {DQ_OP_NE, 4, 4, false},    {DQ_OP_LT_S, m1, 0, true},
        {DQ_OP_LT_U, m1, 0, false}, {DQ_OP_LE_S, 0, m1, false}, {DQ_OP_LE_U, 0, m1, true},
        {DQ_OP_GT_S, 0, m1, true},  {DQ_OP_GT_U, 0, m1, false}, {DQ_OP_GE_S, m1, 0, false},
        {DQ_OP_GE_U, m1, 0, true},  {DQ_OP_LE_S, 5, 5, true},   {DQ_OP_LT_U, 5, 5, false},
        {DQ_OP_GE_U, 5, 5, true},   {DQ_OP_GT_S, 5, 5, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const order *c = &cases[i];
        dq_insn prog[] = {push(c->a), push(c->b), op(c->op), op(DQ_OP_RET)};
        DQ_EQ(matches(prog, 4, NULL, 0, true), c->want);
        dq_insn negated[] = {push(c->a), push(c->b), op(c->op), op(DQ_OP_NOT), op(DQ_OP_RET)};
        DQ_EQ(matches(negated, 5, NULL, 0, true), !c->want);
    }
    dq_insn unary[] = {push(5), op(DQ_OP_NEG), op(DQ_OP_INV), push(4), op(DQ_OP_EQ), op(DQ_OP_RET)};
    DQ_CHECK(matches(unary, 6, NULL, 0, true));
    static const struct {
        uint64_t number, ones;
    } counts[] = {{0, 0},         {UINT64_MAX, 64},         {1ull << 63, 1},
                  {0x8240000, 3}, {0x123456789abcdef0, 32}, {0xfffffffffffffff7, 63}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        dq_insn ones[] = {push(counts[i].number), op(DQ_OP_ONES), push(counts[i].ones), op(DQ_OP_EQ),
                          op(DQ_OP_RET)};
        DQ_CHECK(matches(ones, 5, NULL, 0, true));
    }
}

// What a packet lacks makes its comparison false, and only that.
static void missing_operands(void) {
    frame f = {.ip = 4, .proto = 6, .dport = 80, .payload_len = 9};
    uint8_t p[FRAME_MAX];
    uint32_t len = frame_write(&f, p);
    dq_field udp = named("udp_dst"), tcp = named("tcp_dst");
    dq_insn absent[] = {load(udp), push(80), op(DQ_OP_EQ), op(DQ_OP_RET)};
    DQ_CHECK(!matches(absent, 4, p, len, false));
    absent[2] = op(DQ_OP_NE);
    DQ_CHECK(!matches(absent, 4, p, len, false));
    dq_insn inverted[] = {load(udp), push(80), op(DQ_OP_EQ), op(DQ_OP_NOT), op(DQ_OP_RET)};
    DQ_CHECK(matches(inverted, 5, p, len, false));
    dq_insn either[] = {load(udp), push(80), op(DQ_OP_EQ), jump(DQ_OP_JNZ, 7),
                        load(tcp), push(80), op(DQ_OP_EQ), op(DQ_OP_RET)};
    DQ_CHECK(matches(either, 8, p, len, false));
    DQ_CHECK(!matches(either, 8, p, len, true));
    dq_insn zero[] = {push(1), load(named("tcp_seq")), op(DQ_OP_DIV_S),
                      push(0), op(DQ_OP_GE_S),         op(DQ_OP_RET)};
    DQ_CHECK(!matches(zero, 6, p, len, false));
    dq_insn meta[] = {load(named("flow_id")), push(9), op(DQ_OP_EQ),   jump(DQ_OP_JZ, 7),
                      load(named("rx_time")), push(0), op(DQ_OP_LT_S), op(DQ_OP_RET)};
    DQ_CHECK(matches(meta, 8, p, len, false));
    dq_insn bare[] = {load(udp), op(DQ_OP_RET)};
    DQ_CHECK(!matches(bare, 2, p, len, false));
}

static void columns_may_be_absent(void) {
    dq_insn prog[] = {load(named("flow_id")), push(0), op(DQ_OP_GE_U), op(DQ_OP_RET)};
    dq_prog *c = NULL;
    const dqi_level *k = dqi_level_best();
    DQ_EQ(dq_prog_new(prog, 4, &c, NULL), DQ_OK);
    uint64_t off[3] = {0};
    uint32_t len[3] = {0}, out[3], flow[3] = {0};
    dqi_packets in = {.off = off, .len = len, .n = 3};
    DQ_EQ(dqi_prog_select(c, k, &in, false, out), 0);
    in.flow = flow;
    DQ_EQ(dqi_prog_select(c, k, &in, false, out), 3);
    dq_prog_free(c);
    dq_insn odd[] = {load(named("index")), push(1), op(DQ_OP_EQ), op(DQ_OP_RET)};
    DQ_EQ(dq_prog_new(odd, 4, &c, NULL), DQ_OK);
    in.flow = NULL;
    DQ_EQ(dqi_prog_select(c, k, &in, false, out), 1);
    DQ_EQ(out[0], 1);
    dq_prog_free(c);
}

typedef struct refusal {
    const char *text;
    uint32_t n;
    dq_insn insns[6];
} refusal;

static void refuses_bad_programs(void) {
    const refusal cases[] = {
        {"packet program: 0 instructions are outside 1..1024", 0, {{0}}},
        {"packet program: instruction 0: unknown opcode", 1, {{0}}},
        {"packet program: instruction 0: unknown opcode", 1, {op(DQ_OP_COUNT)}},
        {"packet program: instruction 0: the stack is empty", 1, {op(DQ_OP_RET)}},
        {"packet program: instruction 1: the stack is empty", 3, {push(1), op(DQ_OP_ADD), op(DQ_OP_RET)}},
        {"packet program: instruction 0: RET must be the last instruction, and only that", 1, {push(1)}},
        {"packet program: instruction 1: RET must be the last instruction, and only that",
         3,
         {push(1), op(DQ_OP_RET), op(DQ_OP_RET)}},
        {"packet program: instruction 1: the stack holds nothing there",
         3,
         {push(1), {.op = DQ_OP_PICK, .c = 1}, op(DQ_OP_RET)}},
        {"packet program: instruction 1: the jump is not forward, or past the end",
         4,
         {push(1), jump(DQ_OP_JZ, 1), push(1), op(DQ_OP_RET)}},
        {"packet program: instruction 1: it takes a condition",
         4,
         {push(1), jump(DQ_OP_JZ, 2), push(1), op(DQ_OP_RET)}},
        {"packet program: instruction 3: it takes a number",
         5,
         {push(1), push(1), op(DQ_OP_EQ), op(DQ_OP_NEG), op(DQ_OP_RET)}},
        {"packet program: instruction 1: the jump is not forward, or past the end",
         4,
         {push(1), jump(DQ_OP_JZ, 4), push(1), op(DQ_OP_RET)}},
        {"packet program: instruction 4: the stack differs between two ways",
         6,
         {push(1), push(1), op(DQ_OP_EQ), jump(DQ_OP_JZ, 4), push(1), op(DQ_OP_RET)}},
        {"packet program: instruction 0: field: bit_width 0 is outside 1..64",
         2,
         {op(DQ_OP_LOAD), op(DQ_OP_RET)}},
        {"packet program: instruction 0: unknown bits in a load",
         2,
         {{.op = DQ_OP_LOAD, .b = 8, .imm = 1u << 24}, op(DQ_OP_RET)}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        dq_diag diag = {{0}};
        DQ_EQ(dqi_prog_check(cases[i].insns, cases[i].n, NULL, &diag), DQ_INVALID_PARAMETER);
        DQ_EQ_STR(diag.text, cases[i].text);
    }
    dq_insn deep[DQ_PROG_MAX_STACK + 2];
    for (int i = 0; i < DQ_PROG_MAX_STACK + 1; i++)
        deep[i] = push(1);
    deep[DQ_PROG_MAX_STACK + 1] = op(DQ_OP_RET);
    dq_diag diag = {{0}};
    DQ_EQ(dqi_prog_check(deep, DQ_PROG_MAX_STACK + 2, NULL, &diag), DQ_INVALID_PARAMETER);
    DQ_EQ_STR(diag.text, "packet program: instruction 32: the stack is too deep");
}

// ---- random programs --------------------------------------------------------------------------------------

// A program under construction and, beside it, what it must give for one packet.
typedef struct maker {
    uint64_t seed;
    const uint8_t *p;
    const dqi_pkt *pkt;
    dq_insn insns[200];
    uint32_t n;
    bool spoilt;
} maker;

static void emit(maker *m, dq_insn i) { m->insns[m->n++] = i; }

// A field of the packet or a constant; conjunctions take a field so that they become terms.
static uint64_t make_leaf(maker *m, bool field) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    uint64_t v = 0;
    if (!field && dq_below(&m->seed, 2)) {
        v = dq_rand(&m->seed) >> dq_below(&m->seed, 64);
        emit(m, push(v));
        return v;
    }
    dq_field f = t[dq_below(&m->seed, n)].field;
    if (dq_below(&m->seed, 3) == 0)
        f = (dq_field){.base = (uint8_t)dq_below(&m->seed, 4),
                       .bit_width = (uint16_t)(1 + dq_below(&m->seed, 64)),
                       .bit_offset = dq_below(&m->seed, 200)};
    emit(m, load(f));
    if (!dqi_field_get(m->p, m->pkt->len, m->pkt, &f, &v)) m->spoilt = true;
    return v;
}

static uint64_t fold(maker *m, uint8_t o, uint64_t a, uint64_t b) {
    switch (o) {
    case DQ_OP_ADD:
        return a + b;
    case DQ_OP_SUB:
        return a - b;
    case DQ_OP_MUL:
        return a * b;
    case DQ_OP_AND:
        return a & b;
    case DQ_OP_OR:
        return a | b;
    case DQ_OP_XOR:
        return a ^ b;
    case DQ_OP_SHR:
        return b < 64 ? a >> b : 0;
    case DQ_OP_DIV_U:
    case DQ_OP_MOD_U:
        if (b == 0) {
            m->spoilt = true;
            return 0;
        }
        return o == DQ_OP_DIV_U ? a / b : a % b;
    default:
        return 0;
    }
}

static uint8_t random_operator(maker *m) {
    static const uint8_t ops[] = {DQ_OP_ADD, DQ_OP_SUB,   DQ_OP_MUL,   DQ_OP_AND, DQ_OP_OR,
                                  DQ_OP_XOR, DQ_OP_DIV_U, DQ_OP_MOD_U, DQ_OP_SHR};
    return ops[dq_below(&m->seed, sizeof ops)];
}

static bool make_comparison(maker *m, bool simple) {
    m->spoilt = false;
    uint64_t a = make_leaf(m, simple), b;
    for (uint32_t n = dq_below(&m->seed, 3); n > 0; n--) {
        uint8_t o = random_operator(m);
        b = dq_rand(&m->seed) >> dq_below(&m->seed, 64);
        if (simple)
            emit(m, push(b));
        else
            b = make_leaf(m, false);
        emit(m, op(o));
        a = fold(m, o, a, b);
    }
    b = dq_below(&m->seed, 2) ? a : dq_rand(&m->seed) >> dq_below(&m->seed, 64);
    emit(m, push(b));
    switch (dq_below(&m->seed, 3)) {
    case 0:
        emit(m, op(DQ_OP_EQ));
        return !m->spoilt && a == b;
    case 1:
        emit(m, op(DQ_OP_LE_S));
        return !m->spoilt && (int64_t)a <= (int64_t)b;
    default:
        emit(m, op(DQ_OP_GE_U));
        return !m->spoilt && a >= b;
    }
}

static bool make_condition(maker *m, int depth) {
    uint32_t kind = depth == 0 ? 0 : dq_below(&m->seed, 4);
    if (kind == 0) return make_comparison(m, false);
    bool a = make_condition(m, depth - 1);
    if (kind == 1) {
        emit(m, op(DQ_OP_NOT));
        return !a;
    }
    uint32_t at = m->n;
    emit(m, jump(kind == 2 ? DQ_OP_JZ : DQ_OP_JNZ, 0));
    bool b = make_condition(m, depth - 1);
    m->insns[at].c = m->n;
    return kind == 2 ? a && b : a || b;
}

// As `and` compiles, from the left: each jump goes to the next one.
static bool make_conjunction(maker *m) {
    bool want = make_comparison(m, true);
    for (uint32_t n = dq_below(&m->seed, 5); n > 0; n--) {
        uint32_t at = m->n;
        emit(m, jump(DQ_OP_JZ, 0));
        want = make_comparison(m, true) && want;
        m->insns[at].c = m->n;
    }
    return want;
}

static void random_programs(void) {
    maker m = {.seed = 14};
    uint32_t hits = 0;
    for (int i = 0; i < 40000; i++) {
        frame f;
        uint8_t buf[FRAME_MAX];
        frame_random(&m.seed, i % 2, &f);
        uint32_t len = frame_write(&f, buf);
        if (i % 7 == 0) len = dq_below(&m.seed, len);
        uint8_t *p = dq_exact(buf, len);
        bool payload = i % 5 == 0;
        dqi_pkt pkt;
        if (payload)
            dqi_parse_payload(len, &pkt);
        else
            dqi_parse(p, len, &pkt);
        pkt.has_meta = DQI_HAS_FLOW_ID | DQI_HAS_INDEX | DQI_HAS_RX_TIME;
        pkt.flow_id = 9;
        pkt.rx_time_ns = -3;
        m.p = p;
        m.pkt = &pkt;
        m.n = 0;
        bool want = i % 2 ? make_conjunction(&m) : make_condition(&m, 3);
        emit(&m, op(DQ_OP_RET));
        DQ_EQ(matches(m.insns, m.n, p, len, payload), want);
        hits += want;
        free(p);
    }
    DQ_CHECK(hits > 4000 && hits < 36000);
}

// Whatever passes the check runs without reading or writing where it must not.
static void random_bytes_as_programs(void) {
    uint64_t seed = 15;
    uint32_t accepted = 0;
    frame f = {.ip = 4, .proto = 17, .payload_len = 30};
    uint8_t buf[FRAME_MAX];
    uint8_t *p = dq_exact(buf, frame_write(&f, buf));
    for (int i = 0; i < 200000; i++) {
        dq_insn insns[12] = {0};
        uint32_t n = 1 + dq_below(&seed, 12);
        for (uint32_t j = 0; j < n; j++) {
            insns[j].op = (uint8_t)(dq_below(&seed, 3) ? DQ_OP_PUSH + dq_below(&seed, 2)
                                                       : dq_below(&seed, DQ_OP_COUNT + 1));
            insns[j].a = (uint8_t)dq_below(&seed, 6);
            insns[j].b = (uint16_t)(1 + dq_below(&seed, 66));
            insns[j].c = dq_below(&seed, 3) ? dq_below(&seed, 500) : (uint32_t)dq_rand(&seed);
            insns[j].imm = insns[j].op == DQ_OP_LOAD && insns[j].a != 4 ? 0 : dq_below(&seed, 12);
        }
        insns[n - 1].op = DQ_OP_RET;
        if (dqi_prog_check(insns, n, NULL, NULL) != DQ_OK) continue;
        accepted++;
        matches(insns, n, p, f.len, i % 2);
    }
    DQ_CHECK(accepted > 1000);
    free(p);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(operators);
    DQ_RUN(comparisons);
    DQ_RUN(missing_operands);
    DQ_RUN(columns_may_be_absent);
    DQ_RUN(refuses_bad_programs);
    DQ_RUN(random_programs);
    DQ_RUN(random_bytes_as_programs);
    return dq_done();
}
