// column_test.c: burst verbs: a field of every packet as a column, a condition as indices, a field set in
// all.
#include "bed.h"

enum { N = 40 };

static bed shop;

// N frames to ports 100, 101, …, of which every fourth is not UDP.
static dq_burst *mixed(dq_view *v) {
    dq_burst *x = NULL;
    DQ_EQ(dq_tx_alloc(shop.tx[0][0], N, &x), DQ_OK);
    if (!x) exit(1);
    DQ_EQ(dq_burst_set_len(x, 0, -1, 80), DQ_OK);
    dq_burst_view(x, v);
    for (uint32_t i = 0; i < N; i++) {
        bed_frame(bed_bytes(v, 0, i), 80, 9, (uint16_t)(100 + i), i);
        if (i % 4 == 3) bed_bytes(v, 0, i)[23] = 50;
        v->flow[i] = 7 * i;
        v->ts[i] = BED_START_NS + i;
    }
    return x;
}

static dq_field named(const char *name) {
    dq_field f = {0};
    DQ_CHECK(dq_field_named(name, &f));
    return f;
}

static void columns(void) {
    static const struct {
        const char *name;
        uint64_t base, step;
        bool udp; // where there is UDP only
    } cases[] = {{"udp_dst", 100, 1, true}, {"udp_src", 9, 0, true},  {"ip_proto", 17, 0, true},
                 {"len", 80, 0, false},     {"flow_id", 0, 7, false}, {"rx_time", 0, 1, false}};
    dq_view v;
    dq_burst *x = mixed(&v);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint64_t out[N];
        uint8_t ok[N];
        dq_case = cases[k].name;
        dq_field f = named(cases[k].name);
        bool is_proto = strcmp(cases[k].name, "ip_proto") == 0;
        uint32_t n = dq_burst_column(x, &f, out, ok);
        DQ_EQ(n, cases[k].udp && !is_proto ? N - N / 4 : N);
        for (uint32_t i = 0; i < N; i++) {
            bool has = !cases[k].udp || i % 4 != 3 || is_proto;
            DQ_EQ(ok[i], has);
            if (has && !(is_proto && i % 4 == 3)) DQ_EQ(out[i], cases[k].base + cases[k].step * i);
        }
        DQ_EQ(dq_burst_column(x, &f, out, NULL), n);
    }
    dq_burst_unref(x);
}

// The names that exist can all be looked up; others cannot.
static void names(void) {
    dq_field f;
    uint32_t n = 0;
    for (const char *name; (name = dq_field_name(n)) != NULL; n++)
        DQ_CHECK(dq_field_named(name, &f) && f.bit_width >= 1 && f.bit_width <= 64);
    DQ_CHECK(n > 5);
    DQ_CHECK(!dq_field_named("udp_dts", &f) && !dq_field_named("", &f));
}

// A field that lies past a packet's end is absent, not read.
static void past_the_end(void) {
    dq_view v;
    dq_burst *x = mixed(&v);
    uint64_t out[N];
    uint8_t ok[N];
    dq_field f = {.base = DQ_BASE_START, .bit_width = 32, .bit_offset = 76 * 8};
    DQ_EQ(dq_burst_set_len(x, 0, 5, 79), DQ_OK);
    DQ_EQ(dq_burst_set_len(x, 0, 6, 0), DQ_OK);
    DQ_EQ(dq_burst_column(x, &f, out, ok), N - 2);
    DQ_EQ(ok[5] + ok[6], 0);
    f.bit_width = 70;
    DQ_EQ(dq_burst_column(x, &f, out, ok), 0);
    dq_burst_unref(x);
}

// ---- select -----------------------------------------------------------------------------------------------

static void selects(void) {
    dq_view v;
    dq_burst *x = mixed(&v), *p;
    uint32_t idx[N];
    dq_field f = named("udp_dst");
    const dq_insn load = {.op = DQ_OP_LOAD,
                          .a = f.base,
                          .b = f.bit_width,
                          .c = f.bit_offset,
                          .imm = f.meta | (uint64_t)f.flags << 8 | (uint64_t)f.need << 16};
    const dq_insn prog[] = {load,
                            {.op = DQ_OP_PUSH, .imm = 2},
                            {.op = DQ_OP_MOD_U},
                            {.op = DQ_OP_PUSH, .imm = 0},
                            {.op = DQ_OP_EQ},
                            {.op = DQ_OP_RET}};
    const dq_insn rest[] = {prog[0], prog[1], prog[2], {.op = DQ_OP_RET}};
    const dq_insn never[] = {{.op = DQ_OP_PUSH, .imm = 0}, {.op = DQ_OP_RET}};
    const dq_insn always[] = {{.op = DQ_OP_PUSH, .imm = 1}, {.op = DQ_OP_RET}};
    dq_prog *half, *no, *yes, *number;
    DQ_EQ(dq_prog_new(prog, 6, &half, NULL), DQ_OK);
    DQ_EQ(dq_prog_new(never, 2, &no, NULL), DQ_OK);
    DQ_EQ(dq_prog_new(always, 2, &yes, NULL), DQ_OK);
    DQ_EQ(dq_prog_new(rest, 4, &number, NULL), DQ_OK);
    DQ_EQ(dq_burst_count(x, half), N / 2);
    DQ_EQ(dq_burst_select(x, half, idx), N / 2);
    for (uint32_t i = 0; i < N / 2; i++)
        DQ_EQ(idx[i], 2 * i);
    DQ_EQ(dq_burst_pick(x, idx, N / 2, &p), DQ_OK); // a selection can be selected from again
    DQ_EQ(dq_burst_select(p, half, idx), N / 2);
    DQ_EQ(idx[N / 2 - 1], N / 2 - 1);
    DQ_EQ(dq_burst_select(p, no, idx), 0);
    DQ_EQ(dq_burst_select(x, yes, idx), N);
    uint64_t out[N];
    uint8_t ok[N];
    DQ_EQ(dq_burst_eval(x, number, out, ok), N - N / 4);
    for (uint32_t i = 0; i < N; i++) {
        DQ_EQ(ok[i], i % 4 != 3);
        DQ_EQ(out[i], ok[i] ? i % 2 : 0);
    }
    DQ_CHECK(dq_prog_new(prog, 5, &half, NULL) < 0); // no end
    DQ_CHECK(dq_prog_new(prog, 0, &half, NULL) < 0);
    dq_prog_free(half);
    dq_prog_free(no);
    dq_prog_free(yes);
    dq_prog_free(number);
    dq_burst_unref(p);
    dq_burst_unref(x);
}

// ---- set --------------------------------------------------------------------------------------------------

static uint32_t slow_sum(uint32_t sum, const uint8_t *p, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        sum += k % 2 == 0 ? (uint32_t)p[k] << 8 : p[k];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static void check_sums(const uint8_t *p, uint32_t len) {
    uint32_t n = len - 34;
    const uint8_t tail[4] = {0, 17, (uint8_t)(n >> 8), (uint8_t)n};
    DQ_EQ(slow_sum(0, p + 14, 20), 0xffff);
    DQ_EQ(slow_sum(slow_sum(slow_sum(0, p + 26, 8), tail, 4), p + 34, n), 0xffff);
}

static void sets(void) {
    dq_view v;
    dq_burst *x = mixed(&v);
    dq_field port = named("udp_dst"), number = {.base = DQ_BASE_PAYLOAD, .bit_width = 64};
    uint64_t out[N];
    uint8_t ok[N];
    DQ_EQ(dq_burst_set(x, &port, 5000, 3, DQ_CSUM_KEEP), N - N / 4);
    DQ_EQ(dq_burst_checksums(x, -1), DQ_OK);
    DQ_EQ(dq_burst_column(x, &port, out, ok), N - N / 4);
    for (uint32_t i = 0; i < N; i++) {
        const uint8_t *p = bed_bytes(&v, 0, i);
        if (!ok[i]) {
            DQ_EQ(p[36] << 8 | p[37], 100 + i);
            continue;
        }
        DQ_EQ(out[i], 5000 + 3 * i);
        check_sums(p, 80);
    }
    DQ_CHECK(dq_burst_set(x, &number, UINT64_MAX, 1, 0) >= (int)(N - N / 4));
    DQ_CHECK(dq_burst_column(x, &number, out, ok) >= N - N / 4);
    DQ_EQ(out[0], UINT64_MAX);
    DQ_EQ(out[1], 0);
    DQ_EQ(out[4], 3);
    dq_burst_unref(x);
}

// A value wider than the field leaves its neighbours alone.
static void set_keeps_neighbours(void) {
    dq_view v;
    dq_burst *x = mixed(&v);
    uint8_t before[80];
    memcpy(before, bed_bytes(&v, 0, 0), 80);
    dq_field f = {.base = DQ_BASE_START, .bit_width = 5, .bit_offset = 60 * 8 + 2};
    DQ_EQ(dq_burst_set(x, &f, UINT64_MAX, 0, 0), N);
    before[60] |= 0x3e;
    DQ_EQ_BYTES(bed_bytes(&v, 0, 0), before, 80);
    DQ_EQ(dq_burst_set(x, &f, 0, 0, 0), N);
    before[60] &= (uint8_t)~0x3e;
    DQ_EQ_BYTES(bed_bytes(&v, 0, 0), before, 80);
    f.bit_width = 0;
    DQ_EQ(dq_burst_set(x, &f, 0, 0, 0), DQ_INVALID_PARAMETER);
    dq_burst_unref(x);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    bed_open(&shop, (bed_conf){.batch = N});
    DQ_RUN(columns);
    DQ_RUN(names);
    DQ_RUN(past_the_end);
    DQ_RUN(selects);
    DQ_RUN(sets);
    DQ_RUN(set_keeps_neighbours);
    bed_start(&shop);
    bed_close(&shop);
    return dq_done();
}
