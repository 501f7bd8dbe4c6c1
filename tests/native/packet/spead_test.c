// spead_test.c: items by id in any order, as fields of frames and of payloads; packets cut short anywhere.
#include "bed_frame.h"
#include "dqtest.h"

#include "program/expr.h"
#include "packet/spead.h"

#define N_ITEMS 6
#define HEADER  (8 + 8 * N_ITEMS)

static void put64(uint8_t *p, uint64_t v) {
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(v >> (56 - 8 * i));
}

static uint64_t value_of(uint32_t id, uint32_t packet) { return id * UINT64_C(0x10001) + packet; }

// Items 0x1600 to 0x1604 and one that is in the heap (0x1700), from a first one on that differs in each
// packet.
static void put_spead(uint8_t *p, uint32_t packet) {
    put64(p, UINT64_C(0x5304020600000000) | N_ITEMS);
    for (uint32_t k = 0; k < N_ITEMS; k++) {
        uint32_t n = (k + packet) % N_ITEMS, id = n == 5 ? 0x1700 : 0x1600 + n;
        put64(p + 8 + 8 * k, (uint64_t)(n != 5) << 63 | (uint64_t)id << 48 | value_of(id, packet));
    }
}

static void items(void) {
    uint8_t p[HEADER];
    uint64_t v = 0;
    for (uint32_t packet = 0; packet < 12; packet++) {
        put_spead(p, packet);
        DQ_EQ(dqi_spead_header(p, HEADER), HEADER);
        for (uint32_t id = 0x1600; id < 0x1605; id++) {
            DQ_CHECK(dqi_spead_item(p, HEADER, id, &v));
            DQ_EQ(v, value_of(id, packet));
        }
        DQ_CHECK(!dqi_spead_item(p, HEADER, 0x1605, &v));
        DQ_CHECK(!dqi_spead_item(p, HEADER, 0x1700, &v)); // its value is elsewhere
    }
}

// No byte behind the end is read (the sanitizers watch), and no other packet is taken for one.
static void cut_short(void) {
    for (uint32_t len = 0; len <= HEADER; len++) {
        uint8_t *p = malloc(len + 1), whole[HEADER];
        uint64_t v;
        put_spead(whole, 0);
        memcpy(p, whole, len);
        uint8_t *exact = realloc(p, len > 0 ? len : 1);
        DQ_EQ(dqi_spead_header(exact, len), len == HEADER ? HEADER : 0);
        DQ_EQ(dqi_spead_item(exact, len, 0x1600, &v), len == HEADER);
        free(exact);
    }
    uint8_t p[HEADER];
    for (uint32_t i = 0; i < 4; i++) {
        put_spead(p, 0);
        p[i] ^= 1;
        DQ_EQ(dqi_spead_header(p, HEADER), 0);
    }
    memset(p, 0xff, sizeof p); // 65535 items
    put64(p, UINT64_C(0x530402060000ffff));
    DQ_EQ(dqi_spead_header(p, HEADER), 0);
}

// Programs read items: of plain frames, of tagged ones, and of payloads; other packets lack them.
static void columns(void) {
    enum { N = 70, ROOM = 200 };
    static uint8_t bytes[N * ROOM];
    uint64_t off[N], out[N];
    uint32_t len[N];
    uint8_t ok[N];
    const dq_insn load[] = {{.op = DQ_OP_LOAD, .a = DQ_BASE_SPEAD, .b = 48, .c = 0x1603}, {.op = DQ_OP_RET}};
    dq_prog *prog = NULL;
    DQ_EQ(dq_prog_new(load, 2, &prog, NULL), DQ_OK);
    for (int payload = 0; payload < 2; payload++) {
        uint32_t want = 0;
        for (uint32_t i = 0; i < N; i++) {
            uint8_t *p = bytes + i * ROOM;
            uint32_t tag = !payload && i % 5 == 1 ? 4 : 0;
            off[i] = i * ROOM;
            len[i] = HEADER + (payload ? 0 : BED_HEAD + tag);
            if (!payload) bed_frame(p, BED_HEAD + HEADER, 1000, 7, i);
            if (tag) {
                memmove(p + 16, p + 12, len[i] - 16);
                memcpy(p + 12, (uint8_t[]){0x81, 0, 0, 5}, 4);
            }
            put_spead(p + len[i] - HEADER, i);
            if (i % 7 == 3) p[len[i] - HEADER] = 0;
            want += i % 7 != 3;
        }
        dqi_packets in = {.base = bytes, .off = off, .len = len, .n = N};
        DQ_EQ(dqi_prog_eval(prog, dqi_level_best(), &in, payload, out, ok), want);
        for (uint32_t i = 0; i < N; i++) {
            DQ_EQ(ok[i], i % 7 != 3);
            DQ_EQ(out[i], ok[i] ? value_of(0x1603, i) : 0);
        }
    }
    dq_prog_free(prog);
}

static void refused(void) {
    dq_field f = {.base = DQ_BASE_SPEAD, .bit_width = 48, .bit_offset = 0x7fff};
    DQ_EQ(dqi_field_check(&f, NULL), DQ_OK);
    f.bit_offset = 0x8000;
    DQ_EQ(dqi_field_check(&f, NULL), DQ_INVALID_PARAMETER);
    f = (dq_field){.base = DQ_BASE_SPEAD, .bit_width = 47};
    DQ_EQ(dqi_field_check(&f, NULL), DQ_INVALID_PARAMETER);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(items);
    DQ_RUN(cut_short);
    DQ_RUN(columns);
    DQ_RUN(refused);
    return dq_done();
}
