// derived_test.c: programs whose fields lie elsewhere in each packet: fields moved by a number, items of
// lists, numbers that are absent under a condition. Frames, tagged frames and payloads, cut anywhere, against
// a model that works a bit at a time.
#include "bed_frame.h"
#include "dqtest.h"

#include "packet/items.h"
#include "program/burst_ops.h"
#include "program/expr.h"

enum { N = 130, ROOM = 200, BODY = 60 };

static uint8_t bytes[N * ROOM];
static uint64_t off[N];
static uint32_t len[N], payload_at[N];

// Packets with random payloads of 0 to BODY bytes.
static dqi_packets make(uint64_t *seed, bool payload) {
    for (uint32_t i = 0; i < N; i++) {
        uint8_t *p = bytes + i * ROOM;
        uint32_t tag = !payload && i % 5 == 1 ? 4 : 0, body = (uint32_t)dq_below(seed, BODY + 1);
        payload_at[i] = payload ? 0 : BED_HEAD + tag;
        off[i] = i * ROOM;
        len[i] = payload_at[i] + body;
        if (!payload) bed_frame(p, BED_HEAD + body, 1000, 7, i);
        if (tag) {
            memmove(p + 16, p + 12, len[i] - 16);
            memcpy(p + 12, (uint8_t[]){0x81, 0, 0, 5}, 4);
        }
        for (uint32_t k = payload_at[i]; k < len[i]; k++)
            p[k] = (uint8_t)dq_rand(seed);
        if (body > 0) p[payload_at[i]] %= 8; // how far the field is moved, and how many items there are
    }
    return (dqi_packets){.base = bytes, .off = off, .len = len, .n = N};
}

static bool bit_of(const uint8_t *p, uint64_t bit, bool little) {
    return p[bit / 8] >> (little ? bit % 8 : 7 - bit % 8) & 1;
}

// A field of the payload of packet i; false: it is not all there.
static bool slow(uint32_t i, uint64_t bit, uint32_t width, bool little, uint64_t *v) {
    const uint8_t *p = bytes + i * ROOM + payload_at[i];
    if (bit + width > 8ull * (len[i] - payload_at[i])) return false;
    *v = 0;
    for (uint32_t k = 0; k < width; k++)
        *v = little ? *v | (uint64_t)bit_of(p, bit + k, true) << k : *v << 1 | bit_of(p, bit + k, false);
    return true;
}

static dq_prog *compile(const dq_insn *insns, uint32_t n) {
    dq_prog *prog = NULL;
    dq_diag diag = {{0}};
    if (dq_prog_new(insns, n, &prog, &diag) != DQ_OK) dq_failed(__FILE__, __LINE__, diag.text);
    return prog;
}

#define FIRST                                                                                                \
    { .op = DQ_OP_LOAD, .a = DQ_BASE_PAYLOAD, .b = 8, .c = 0 }

// The field at bit `at` plus 13 times the first byte, absent where that is 5 or more.
static void moved(void) {
    uint64_t seed = 3, out[N];
    uint8_t ok[N];
    for (uint32_t round = 0; round < 200; round++) {
        bool payload = round % 2, little = round % 3 == 0;
        uint32_t width = 1 + (uint32_t)dq_below(&seed, 64), at = (uint32_t)dq_below(&seed, 200);
        const dq_insn insns[] = {FIRST,
                                 {.op = DQ_OP_PUSH, .imm = 13},
                                 {.op = DQ_OP_MUL},
                                 {.op = DQ_OP_LOAD_AT,
                                  .a = DQ_BASE_PAYLOAD,
                                  .b = (uint16_t)width,
                                  .c = at,
                                  .imm = (uint64_t)little << 8},
                                 FIRST,
                                 {.op = DQ_OP_PUSH, .imm = 5},
                                 {.op = DQ_OP_LT_U},
                                 {.op = DQ_OP_KEEP},
                                 {.op = DQ_OP_RET}};
        dq_prog *prog = compile(insns, sizeof insns / sizeof *insns);
        dqi_packets in = make(&seed, payload);
        const dqi_level *k;
        for (uint32_t l = 0; (k = dqi_level_at(l)) != NULL; l++) {
            dqi_prog_eval(prog, k, &in, payload, out, ok);
            for (uint32_t i = 0; i < N; i++) {
                uint64_t first = 0, want = 0;
                bool has = slow(i, 0, 8, false, &first) && first < 5 &&
                           slow(i, at + 13 * first, width, little, &want);
                DQ_EQ(ok[i], has);
                DQ_EQ(out[i], has ? want : 0);
            }
        }
        dq_prog_free(prog);
    }
}

// Copies of the bottom of the stack, also where a condition parts the packets: four times the first byte
// where that is 1 to 3, else itself.
static void picked(void) {
    uint64_t seed = 11, out[N];
    uint8_t ok[N];
    const dq_insn pick = {.op = DQ_OP_PICK, .c = 0};
    const dq_insn insns[] = {FIRST,
                             pick,
                             {.op = DQ_OP_PUSH, .imm = 3},
                             {.op = DQ_OP_MUL},
                             pick,
                             {.op = DQ_OP_PUSH, .imm = 1},
                             {.op = DQ_OP_GE_U},
                             {.op = DQ_OP_JZ, .c = 11},
                             pick,
                             {.op = DQ_OP_PUSH, .imm = 4},
                             {.op = DQ_OP_LT_U},
                             {.op = DQ_OP_ZERO},
                             pick,
                             {.op = DQ_OP_ADD},
                             {.op = DQ_OP_RET}};
    dq_prog *prog = compile(insns, sizeof insns / sizeof *insns);
    for (uint32_t round = 0; round < 100; round++) {
        dqi_packets in = make(&seed, round % 2);
        const dqi_level *k;
        for (uint32_t l = 0; (k = dqi_level_at(l)) != NULL; l++) {
            dqi_prog_eval(prog, k, &in, round % 2, out, ok);
            for (uint32_t i = 0; i < N; i++) {
                uint64_t first = 0;
                DQ_EQ(ok[i], slow(i, 0, 8, false, &first));
                DQ_EQ(out[i], first >= 1 && first < 4 ? 4 * first : first);
            }
        }
    }
    dq_prog_free(prog);
}

// The value of the first of as many items as the first byte has that begins with a key of 4 bits.
static void found(void) {
    uint64_t seed = 5, out[N];
    uint8_t ok[N];
    for (uint32_t round = 0; round < 200; round++) {
        bool payload = round % 2;
        uint32_t size = 1 + (uint32_t)dq_below(&seed, 8), value = 8 * size - 4;
        uint64_t key = dq_below(&seed, 16);
        const dq_insn insns[] = {
            {.op = DQ_OP_PUSH, .imm = 8},
            FIRST,
            {.op = DQ_OP_FIND, .a = (uint8_t)size, .b = (uint16_t)value, .c = 16, .imm = key},
            {.op = DQ_OP_RET}};
        dq_prog *prog = compile(insns, 4);
        dqi_packets in = make(&seed, payload);
        dqi_prog_eval(prog, dqi_level_best(), &in, payload, out, ok);
        for (uint32_t i = 0; i < N; i++) {
            uint64_t n = 0, v = 0, want = 0;
            bool has = false;
            if (!slow(i, 0, 8, false, &n)) n = 0;
            for (uint64_t k = 0; k < n && !has && slow(i, 24 + 8 * size * k, 8 * size, false, &v); k++) {
                has = v >> value == key;
                want = v & ((UINT64_C(1) << value) - 1);
            }
            DQ_EQ(ok[i], has);
            DQ_EQ(out[i], has ? want : 0);
        }
        dq_prog_free(prog);
    }
}

// A number that is 0 where a condition is false, also where it is absent itself.
static void zeros(void) {
    uint64_t seed = 7, out[N];
    uint8_t ok[N];
    const dq_insn insns[] = {{.op = DQ_OP_LOAD, .a = DQ_BASE_PAYLOAD, .b = 16, .c = 80},
                             FIRST,
                             {.op = DQ_OP_PUSH, .imm = 4},
                             {.op = DQ_OP_GE_U},
                             {.op = DQ_OP_ZERO},
                             {.op = DQ_OP_RET}};
    dq_prog *prog = compile(insns, 6);
    dqi_packets in = make(&seed, false);
    dqi_prog_eval(prog, dqi_level_best(), &in, false, out, ok);
    for (uint32_t i = 0; i < N; i++) {
        uint64_t first = 0, v = 0;
        bool holds = slow(i, 0, 8, false, &first) && first >= 4, has = slow(i, 80, 16, false, &v);
        DQ_EQ(ok[i], !holds || has);
        DQ_EQ(out[i], holds && has ? v : 0);
    }
    dq_prog_free(prog);
}

// Sets the field of packet i, by[i] bits further on, to v + i where ok[i]; how many have it.
static uint32_t set_moved(const dqi_packets *in, const dq_field *f, const uint64_t *by, const uint8_t *ok,
                          uint64_t v) {
    dqi_setter c;
    uint32_t n = 0;
    dqi_setter_init(&c, f, DQ_CSUM_KEEP);
    for (uint32_t first = 0; first < in->n; first += DQI_LANES) {
        dqi_col moved;
        dqi_set_to to = {.start = v, .step = 1, .by = &moved};
        for (uint32_t i = 0; i < DQI_LANES && first + i < in->n; i++) {
            moved.v[i] = by[first + i];
            to.lanes |= (uint64_t)ok[first + i] << i;
        }
        n += (uint32_t)__builtin_popcountll(dqi_set_lanes(&c, dqi_level_best(), in, first, true, &to));
    }
    return n;
}

// A field set where each packet has it: no other bit changes.
static void set(void) {
    uint64_t seed = 9, by[N];
    uint8_t ok[N];
    static uint8_t before[N * ROOM];
    for (uint32_t round = 0; round < 100; round++) {
        dqi_packets in = make(&seed, true);
        bool little = round % 2;
        dq_field f = {.base = DQ_BASE_PAYLOAD,
                      .bit_width = (uint16_t)(1 + dq_below(&seed, 64)),
                      .bit_offset = 8,
                      .flags = little ? DQ_FIELD_LE : 0};
        uint64_t v = dq_rand(&seed), top = UINT64_MAX >> (64 - f.bit_width);
        uint32_t want = 0;
        for (uint32_t i = 0; i < N; i++) {
            by[i] = i % 11 == 0 ? UINT64_MAX : dq_below(&seed, 300);
            ok[i] = i % 7 != 0;
            want += ok[i] && i % 11 != 0 && 8 + by[i] + f.bit_width <= 8 * len[i];
        }
        memcpy(before, bytes, sizeof bytes);
        DQ_EQ(set_moved(&in, &f, by, ok, v), want);
        for (uint32_t i = 0; i < N; i++)
            for (uint64_t bit = 0; bit < 8ull * len[i]; bit++) {
                uint64_t at = bit - 8 - by[i];
                bool in_it =
                    ok[i] && i % 11 != 0 && at < f.bit_width && 8 + by[i] + f.bit_width <= 8ull * len[i];
                uint64_t now = (v + i) & top;
                bool wanted = in_it ? now >> (little ? at : f.bit_width - 1 - at) & 1
                                    : bit_of(before + i * ROOM, bit, little);
                if (bit_of(bytes + i * ROOM, bit, little) != wanted) {
                    dq_failed(__FILE__, __LINE__, "a bit");
                    return;
                }
            }
    }
}

static void refuse(const dq_insn *insns, uint32_t n, const char *why) {
    dq_diag diag = {{0}};
    DQ_EQ(dqi_prog_check(insns, n, NULL, &diag), DQ_INVALID_PARAMETER);
    if (!strstr(diag.text, why)) dq_failed(__FILE__, __LINE__, diag.text);
}

static void refused(void) {
    const dq_insn ret = {.op = DQ_OP_RET}, push = {.op = DQ_OP_PUSH, .imm = 1};
    refuse((dq_insn[]){{.op = DQ_OP_LOAD_AT, .b = 8}, ret}, 2, "the stack is empty");
    refuse((dq_insn[]){push, {.op = DQ_OP_LOAD_AT, .a = DQ_BASE_META, .b = 8, .imm = 1}, ret}, 3,
           "can be moved");
    refuse((dq_insn[]){push, {.op = DQ_OP_LOAD_AT, .b = 8, .c = UINT32_MAX}, ret}, 3, "can be moved");
    refuse((dq_insn[]){push, {.op = DQ_OP_LOAD_AT, .b = 65}, ret}, 3, "outside 1..64");
    refuse((dq_insn[]){push, push, {.op = DQ_OP_FIND, .a = 9, .b = 8}, ret}, 4, "items of 1 to 8 bytes");
    refuse((dq_insn[]){push, push, {.op = DQ_OP_FIND, .a = 4, .b = 32}, ret}, 4, "items of 1 to 8 bytes");
    refuse((dq_insn[]){push, push, {.op = DQ_OP_FIND, .a = 4, .b = 8, .c = 4}, ret}, 4, "byte boundary");
    refuse((dq_insn[]){push, {.op = DQ_OP_FIND, .a = 4, .b = 8}, ret}, 3, "the stack is empty");
    refuse((dq_insn[]){push, push, {.op = DQ_OP_KEEP}, ret}, 4, "takes a condition");
    refuse((dq_insn[]){push, push, {.op = DQ_OP_ZERO}, ret}, 4, "takes a condition");
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(moved);
    DQ_RUN(picked);
    DQ_RUN(found);
    DQ_RUN(zeros);
    DQ_RUN(set);
    DQ_RUN(refused);
    return dq_done();
}
