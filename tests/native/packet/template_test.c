// template_test.c: packets made from a template: fields that change, their wrap and range, seeds, checksums
// (verified by a slow sum of our own), refusals.
#include "bed.h"
#include "core/region.h"
#include "frames.h"
#include "packet/template.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

enum { LEN = 200, BATCH = 64 };

static dq_vary vary(uint32_t bit_offset, uint16_t width, int kind, uint64_t start, uint64_t step,
                    uint64_t max) {
    return (dq_vary){.field = {.base = DQ_BASE_START, .bit_width = width, .bit_offset = bit_offset},
                     .kind = kind,
                     .start = start,
                     .step = step,
                     .max = max};
}

static dq_template *new_template(const uint8_t *p, uint32_t len, const dq_vary *v, uint32_t n, int checksums,
                                 uint64_t seed) {
    dq_diag d = {{0}};
    dq_template *t;
    bed_must(dq_template_new(p, len, v, n, checksums, seed, &t, &d), &d, "template");
    return t;
}

static bed shop; // where bursts come from
static dq_view v;

// A burst of n packets filled from t; unref it.
static dq_burst *filled(dq_template *t, uint32_t n) {
    dq_burst *x = NULL;
    DQ_EQ(dq_tx_alloc(shop.tx[0][0], n, &x), DQ_OK);
    if (!x) exit(1);
    DQ_EQ(dq_template_fill(t, x), DQ_OK);
    dq_burst_view(x, &v);
    return x;
}

static uint64_t bits(const uint8_t *p, uint32_t bit_offset, uint32_t width) {
    uint64_t r = 0;
    for (uint32_t k = bit_offset; k < bit_offset + width; k++)
        r = r << 1 | (p[k / 8] >> (7 - k % 8) & 1);
    return r;
}

// ---- what changes -----------------------------------------------------------------------------------------

static void unchanged(void) {
    uint8_t f[LEN];
    bed_frame(f, LEN, 1, 2, 3);
    dq_template *t = new_template(f, LEN, NULL, 0, 0, 0);
    dq_burst *x = filled(t, BATCH);
    DQ_EQ(v.bytes, BATCH * LEN);
    for (uint32_t i = 0; i < BATCH; i++) {
        DQ_EQ(v.len[0][i], LEN);
        DQ_EQ_BYTES(bed_bytes(&v, 0, i), f, LEN);
    }
    dq_burst_unref(x);
    dq_template_unref(t);
}

// Start, start + step, …; after max from start again, the excess carried over.
static void increments(void) {
    static const struct {
        const char *name;
        uint16_t width;
        uint64_t start, step, max, want[6];
    } cases[] = {
        {"by one", 32, 5, 1, UINT64_MAX, {5, 6, 7, 8, 9, 10}},
        {"wraps at max", 16, 1, 1, 3, {1, 2, 3, 1, 2, 3}},
        {"wraps with a step", 16, 0, 4, 9, {0, 4, 8, 2, 6, 0}},
        {"step past the range", 16, 10, 7, 12, {10, 11, 12, 10, 11, 12}},
        {"wraps with its width", 8, 254, 1, UINT64_MAX, {254, 255, 0, 1, 2, 3}},
        {"wraps at a max that is its largest", 8, 254, 1, 255, {254, 255, 254, 255, 254, 255}},
        {"stands still", 16, 7, 0, 100, {7, 7, 7, 7, 7, 7}},
        {"64 bits", 64, UINT64_MAX - 1, 1, UINT64_MAX, {UINT64_MAX - 1, UINT64_MAX, 0, 1, 2, 3}},
        {"64 bits in great steps",
         64,
         0,
         UINT64_C(1) << 63,
         UINT64_MAX,
         {0, UINT64_C(1) << 63, 0, UINT64_C(1) << 63, 0, UINT64_C(1) << 63}},
        {"3 bits", 3, 0, 1, 7, {0, 1, 2, 3, 4, 5}},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t f[LEN] = {0};
        dq_case = cases[k].name;
        dq_vary one = vary(60 * 8, cases[k].width, DQ_VARY_INC, cases[k].start, cases[k].step, cases[k].max);
        dq_template *t = new_template(f, LEN, &one, 1, 0, 0);
        for (uint32_t i = 0; i < 6; i += 2) { // the counters continue from burst to burst
            dq_burst *x = filled(t, 2);
            for (uint32_t j = 0; j < 2; j++) {
                DQ_EQ(bits(bed_bytes(&v, 0, j), 60 * 8, cases[k].width), cases[k].want[i + j]);
                for (uint32_t b = 0; b < LEN; b++) // and nothing else changed
                    if (b < 60 || b >= 60u + (cases[k].width + 7u) / 8) DQ_EQ(bed_bytes(&v, 0, j)[b], 0);
            }
            dq_burst_unref(x);
        }
        dq_template_unref(t);
    }
}

// A field of every width at every bit of a short packet gets its value, and every other bit stays.
static void every_place(void) {
    enum { LONGEST = 12 };
    const uint64_t value = UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t len = 1; len <= LONGEST; len++)
        for (uint32_t width = 1; width <= 64; width++)
            for (uint32_t at = 0; at + width <= 8 * len; at++)
                for (int little = 0; little < 2; little++) {
                    if (little && (width % 8 != 0 || at % 8 != 0)) continue;
                    const uint64_t want = value >> (64 - width);
                    uint8_t f[LONGEST];
                    memset(f, 0xa5, sizeof f);
                    dq_vary one = vary(at, (uint16_t)width, DQ_VARY_INC, want, 0, UINT64_MAX);
                    if (little) one.field.flags = DQ_FIELD_LE;
                    dq_template *t = new_template(f, len, &one, 1, 0, 0);
                    dq_burst *x = filled(t, 1);
                    const uint8_t *p = bed_bytes(&v, 0, 0);
                    uint64_t got = bits(p, at, width);
                    for (uint32_t k = 0; little && k < width / 8; k++)
                        got = (k == 0 ? 0 : got) | (uint64_t)p[at / 8 + k] << (8 * k);
                    DQ_EQ(got, want);
                    for (uint32_t k = 0; k < 8 * len; k++)
                        if (k < at || k >= at + width)
                            DQ_EQ(p[k / 8] >> (7 - k % 8) & 1, 0xa5 >> (7 - k % 8) & 1);
                    dq_burst_unref(x);
                    dq_template_unref(t);
                }
}

static void random_in_range(void) {
    uint8_t f[LEN] = {0}, seen[11] = {0};
    dq_vary one[] = {vary(60 * 8, 16, DQ_VARY_RANDOM, 100, 0, 110),
                     vary(70 * 8, 64, DQ_VARY_RANDOM, 0, 0, UINT64_MAX)};
    uint64_t first[3][BATCH];
    for (int run = 0; run < 3; run++) {
        dq_template *t = new_template(f, LEN, one, 2, 0, run == 2 ? 8 : 7);
        for (int round = 0; round < 8; round++) {
            dq_burst *x = filled(t, BATCH);
            for (uint32_t i = 0; i < BATCH; i++) {
                uint64_t a = bits(bed_bytes(&v, 0, i), 60 * 8, 16);
                DQ_CHECK(a >= 100 && a <= 110);
                seen[a >= 100 && a <= 110 ? a - 100 : 0] = 1;
                if (round == 0) first[run][i] = bits(bed_bytes(&v, 0, i), 70 * 8, 64);
            }
            dq_burst_unref(x);
        }
        dq_template_unref(t);
    }
    for (int k = 0; k < 11; k++)
        DQ_EQ(seen[k], 1);
    DQ_CHECK(memcmp(first[0], first[1], sizeof first[0]) == 0); // the seed determines it all
    DQ_CHECK(memcmp(first[0], first[2], sizeof first[0]) != 0);
}

static void several_fields(void) {
    uint8_t f[LEN];
    bed_frame(f, LEN, 1, 2, 3);
    dq_vary two[] = {vary(60 * 8, 16, DQ_VARY_INC, 0, 1, 9), vary(62 * 8, 16, DQ_VARY_INC, 0, 1, 6)};
    dq_template *t = new_template(f, LEN, two, 2, 0, 0);
    dq_burst *x = filled(t, 40);
    for (uint32_t i = 0; i < 40; i++) {
        DQ_EQ(bits(bed_bytes(&v, 0, i), 60 * 8, 16), i % 10);
        DQ_EQ(bits(bed_bytes(&v, 0, i), 62 * 8, 16), i % 7);
    }
    dq_burst_unref(x);
    dq_template_unref(t);
}

// Packets in neighbouring buffers are one piece of memory; which hold the template already is known by it and
// by where they lie.
static void neighbours_are_packed(void) {
    uint8_t f[LEN];
    bed_frame(f, LEN, 1, 2, 3);
    dq_template *t = new_template(f, LEN, NULL, 0, 0, 0);
    dq_queue *q = shop.tx[0][0];
    uint64_t places[4096] = {0};
    dqi_stamped s = {.places = places, .stamp = 1, .first = q->conf.regions[0]->first_id, .packs = true};
    DQ_CHECK(q->conf.regions[0]->conf.num_bufs <= 4096);
    dqi_region_ascend(q->conf.regions[0]);
    for (int round = 0; round < 3; round++) {
        dq_burst *x = NULL;
        DQ_EQ(dqi_tx_take_burst(q, BATCH, &x), DQ_OK);
        if (round == 2) places[x->bufs[0][0] - s.first] = 0; // another writer has written what lies there
        uint64_t start = x->off[0][0];
        x->bufs[0][40] = x->bufs[0][BATCH - 1]; // two runs: 40 neighbours, and a stranger
        x->off[0][40] = x->off[0][BATCH - 1];
        x->n = x->n_bufs = 41;
        memset(x->session->core.base + start, 0xee, 40 * LEN);
        memset(x->session->core.base + x->off[0][40], 0xee, LEN);
        dqi_template_write(t, x, &s);
        for (uint32_t i = 0; i < 40; i++)
            DQ_EQ(x->off[0][i], start + i * LEN);
        DQ_CHECK(x->off[0][40] > start + 41 * LEN);
        for (uint32_t i = 0; i < 41; i++) {
            bool written = round == 0 || (round == 2 && i < 40);
            DQ_EQ(x->session->core.base[x->off[0][i] + LEN - 1], written ? f[LEN - 1] : 0xee);
        }
        DQ_EQ(x->bytes, 41 * LEN);
        x->bufs[0][40] = x->bufs[0][39] + 1;
        x->n_bufs = BATCH;
        dq_burst_unref(x);
    }
    dq_template_unref(t);
}

// Where they stay in their buffers, each is known by itself.
static void held_where_they_lie(void) {
    uint8_t f[LEN];
    bed_frame(f, LEN, 1, 2, 3);
    dq_vary number = vary(60 * 8, 16, DQ_VARY_INC, 0, 1, 999);
    dq_template *t = new_template(f, LEN, &number, 1, 0, 0);
    dq_queue *q = shop.tx[0][0];
    uint64_t places[4096] = {0};
    dqi_stamped s = {.places = places, .stamp = 7, .first = q->conf.regions[0]->first_id};
    for (uint32_t round = 0; round < 2; round++) {
        dq_burst *x = NULL;
        DQ_EQ(dqi_tx_take_burst(q, BATCH, &x), DQ_OK);
        if (round == 1) places[x->bufs[0][3] - s.first] = 0; // another writer has written it
        uint64_t off[BATCH];
        memcpy(off, x->off[0], sizeof off);
        for (uint32_t i = 0; i < BATCH; i++)
            memset(x->session->core.base + off[i], 0xee, LEN);
        dqi_template_write(t, x, &s);
        DQ_EQ(memcmp(off, x->off[0], sizeof off), 0);
        for (uint32_t i = 0; i < BATCH; i++) {
            const uint8_t *p = x->session->core.base + off[i];
            DQ_EQ(p[LEN - 1], round == 0 || i == 3 ? f[LEN - 1] : 0xee);
            DQ_EQ(bits(p, 60 * 8, 16), round * BATCH + i);
        }
        dq_burst_unref(x);
    }
    dq_template_unref(t);
}

// ---- checksums --------------------------------------------------------------------------------------------

// The ones' complement sum of 16-bit words, one at a time, as in RFC 1071.
static uint32_t slow_sum(uint32_t sum, const uint8_t *p, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        sum += k % 2 == 0 ? (uint32_t)p[k] << 8 : p[k];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

// Every sum that the frame carries comes out as all ones.
static void check_sums(const uint8_t *p, uint32_t l3, uint32_t len, uint8_t proto) {
    bool six = p[l3] >> 4 == 6;
    uint32_t l4 = l3 + (six ? 40 : (p[l3] & 15) * 4u), n = len - l4;
    uint8_t tail[4] = {0, proto, (uint8_t)(n >> 8), (uint8_t)n};
    if (!six) DQ_EQ(slow_sum(0, p + l3, l4 - l3), 0xffff);
    uint32_t sum = slow_sum(0, p + l3 + (six ? 8 : 12), six ? 32 : 8);
    sum = slow_sum(sum, tail, 4);
    DQ_EQ(slow_sum(sum, p + l4, n), 0xffff);
    if (proto == 17) DQ_CHECK(p[l4 + 6] != 0 || p[l4 + 7] != 0); // 0 would mean that there is none
}

static uint32_t make(uint8_t *f, bool six, uint8_t proto, uint32_t l3, uint32_t payload) {
    uint32_t l4_len = proto == 6 ? 20 : 8, ip = six ? 40 : 20, len = l3 + ip + l4_len + payload;
    memset(f, 0, len);
    for (uint32_t k = 0; k < len; k++)
        f[k] = (uint8_t)(k * 37);
    if (l3 == 18) f[12] = 0x81, f[13] = 0, f[14] = 0, f[15] = 5;
    f[l3 - 2] = six ? 0x86 : 0x08;
    f[l3 - 1] = six ? 0xdd : 0x00;
    uint8_t *p = f + l3;
    if (six) {
        p[0] = 0x60;
        p[4] = (uint8_t)((l4_len + payload) >> 8);
        p[5] = (uint8_t)(l4_len + payload);
        p[6] = proto;
    } else {
        p[0] = 0x45;
        p[2] = (uint8_t)((ip + l4_len + payload) >> 8);
        p[3] = (uint8_t)(ip + l4_len + payload);
        p[6] = p[7] = 0;
        p[9] = proto;
    }
    p += ip;
    if (proto == 6) p[12] = 0x50;
    if (proto == 17) p[4] = (uint8_t)((8 + payload) >> 8), p[5] = (uint8_t)(8 + payload);
    return len;
}

static void checksums(void) {
    for (int variant = 0; variant < 16; variant++) {
        uint8_t f[512];
        bool six = variant & 1;
        uint8_t proto = variant & 2 ? 6 : 17;
        uint32_t l3 = variant & 4 ? 18 : 14, len = make(f, six, proto, l3, variant & 8 ? 33 : 100);
        uint32_t address = (l3 + (six ? 20 : 16)) * 8;
        dq_vary two[] = {vary(address, 16, DQ_VARY_INC, 0, 0x1111, UINT64_MAX),
                         vary((len - 12) * 8, 64, DQ_VARY_RANDOM, 0, 0, UINT64_MAX)};
        for (uint32_t n_vary = 0; n_vary <= 2; n_vary += 2) {
            dq_template *t = new_template(f, len, two, n_vary, 1, 3);
            for (int round = 0; round < 20; round++) {
                dq_burst *x = filled(t, BATCH);
                for (uint32_t i = 0; i < BATCH; i++)
                    check_sums(bed_bytes(&v, 0, i), l3, len, proto);
                dq_burst_unref(x);
            }
            dq_template_unref(t);
        }
    }
}

// Without the wish, the template's own sums stay, right or wrong.
static void checksums_left_alone(void) {
    uint8_t f[512];
    uint32_t len = make(f, false, 17, 14, 50);
    f[24] = 0xab;
    f[40] = 0xcd;
    dq_template *t = new_template(f, len, NULL, 0, 0, 0);
    dq_burst *x = filled(t, 1);
    DQ_EQ(bed_bytes(&v, 0, 0)[24], 0xab);
    DQ_EQ(bed_bytes(&v, 0, 0)[40], 0xcd);
    dq_burst_unref(x);
    dq_template_unref(t);
}

// ---- headers before payloads ------------------------------------------------------------------------------

// Headers of every kind before payloads of several lengths, one of them larger than its buffer is with them.
static void prepended(void) {
    static const uint32_t lens[] = {1, 33, 100, 1000, 1024};
    for (int variant = 0; variant < 8; variant++) {
        uint8_t f[128], payload[1024];
        bool six = variant & 1;
        uint8_t proto = variant & 2 ? 6 : 17;
        uint32_t l3 = variant & 4 ? 18 : 14, head = make(f, six, proto, l3, 0);
        dq_template *t = new_template(f, head, NULL, 0, 1, 0);
        dq_burst *x;
        DQ_EQ(dq_tx_alloc(shop.tx[0][0], 5, &x), DQ_OK);
        dq_burst_view(x, &v);
        memset(payload, 0x5a + variant, sizeof payload);
        for (uint32_t i = 0; i < 5; i++) {
            memcpy(x->session->core.base + v.off[0][i], payload, lens[i]);
            DQ_EQ(dq_burst_set_len(x, 0, i, lens[i]), DQ_OK);
        }
        dq_diag d = {{0}};
        DQ_EQ(dq_template_prepend(t, x, &d), DQ_OK);
        dq_burst_view(x, &v);
        for (uint32_t i = 0; i < 5; i++) {
            const uint8_t *p = bed_bytes(&v, 0, i);
            DQ_EQ(v.len[0][i], head + lens[i]);
            DQ_EQ_BYTES(p, f, l3);
            DQ_EQ_BYTES(p + head, payload, lens[i]);
            DQ_EQ(bits(p, (l3 + (six ? 4 : 2)) * 8, 16), head + lens[i] - l3 - (six ? 40 : 0));
            if (proto == 17) DQ_EQ(bits(p, (head - 4) * 8, 16), 8 + lens[i]);
            check_sums(p, l3, head + lens[i], proto);
        }
        DQ_EQ(v.bytes, 5 * head + 1 + 33 + 100 + 1000 + 1024);
        dq_burst_unref(x);
        dq_template_unref(t);
    }
}

static void prepend_refused(void) {
    uint8_t f[LEN];
    dq_vary counter = vary(0, 16, DQ_VARY_INC, 0, 1, UINT64_MAX);
    uint32_t len = make(f, false, 17, 14, 0);
    dq_template *varies = new_template(f, len, &counter, 1, 1, 0), *t = new_template(f, len, NULL, 0, 1, 0);
    dq_diag d = {{0}};
    dq_burst *x;
    DQ_EQ(dq_tx_alloc(shop.tx[0][0], 2, &x), DQ_OK);
    DQ_EQ(dq_burst_set_len(x, 0, -1, 10), DQ_OK);
    DQ_EQ(dq_template_prepend(varies, x, &d), DQ_INVALID_PARAMETER);
    for (int k = 0; k < 3; k++)
        DQ_EQ(dq_template_prepend(t, x, &d), DQ_OK);
    DQ_EQ(dq_template_prepend(t, x, &d), DQ_INVALID_PARAMETER); // 168 bytes of headroom
    dq_burst_view(x, &v);
    DQ_EQ(v.len[0][0], 10 + 3 * len);
    dqi_burst_share(x);
    DQ_EQ(dq_template_prepend(t, x, &d), DQ_INVALID_PARAMETER);
    dq_burst_unref(x);
    dq_template_unref(varies);
    dq_template_unref(t);
}

// ---- refusals ---------------------------------------------------------------------------------------------

static void refused(void) {
    static const struct {
        const char *name;
        dq_vary v;
    } cases[] = {
        {"past the end", {.field = {.bit_width = 16, .bit_offset = (LEN - 1) * 8}, .max = 9}},
        {"far past the end", {.field = {.bit_width = 64, .bit_offset = UINT32_MAX}, .max = 9}},
        {"no bits", {.field = {.bit_width = 0, .bit_offset = 0}, .max = 9}},
        {"too many bits", {.field = {.bit_width = 65, .bit_offset = 0}, .max = 9}},
        {"starts above its largest", {.field = {.bit_width = 16, .bit_offset = 0}, .start = 10, .max = 9}},
        {"starts above its width", {.field = {.bit_width = 8, .bit_offset = 0}, .start = 256, .max = 999}},
        {"not in the packet",
         {.field = {.base = DQ_BASE_META, .meta = DQ_META_FLOW_ID, .bit_width = 32}, .max = 9}},
    };
    uint8_t f[LEN] = {0};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        dq_diag d = {{0}};
        dq_template *t;
        dq_case = cases[k].name;
        DQ_EQ(dq_template_new(f, LEN, &cases[k].v, 1, 0, 0, &t, &d), DQ_INVALID_PARAMETER);
        DQ_CHECK(d.text[0] != 0);
    }
}

static void longer_than_a_buffer(void) {
    uint8_t f[1100];
    bed_frame(f, sizeof f, 1, 2, 3);
    dq_template *t = new_template(f, 1025, NULL, 0, 0, 0), *fits = new_template(f, 1024, NULL, 0, 0, 0);
    dq_burst *x;
    DQ_EQ(dq_tx_transmit(shop.tx[0][0], t, 1), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_tx_remaining(shop.tx[0][0]), 0);
    DQ_EQ(dq_tx_alloc(shop.tx[0][0], 1, &x), DQ_OK);
    DQ_EQ(dq_template_fill(t, x), DQ_INVALID_PARAMETER);
    DQ_EQ(dq_template_fill(fits, x), DQ_OK);
    dq_burst_unref(x);
    dq_template_unref(t);
    dq_template_unref(fits);
    dq_template_unref(NULL);
}

// What a device may compute: both checksums of plain packets, where no changed field sets what they cover.
static void left_to_a_device(void) {
    enum { V4 = DQ_HAS_IPV4, V6 = DQ_HAS_IPV6, UDP = DQ_HAS_UDP, TCP = DQ_HAS_TCP };
    const dq_vary id = vary(0, 16, DQ_VARY_INC, 1, 1, UINT64_MAX);
    static const struct {
        const char *name;
        frame f;
        uint32_t at, width; // of the changed field: bytes from the IP header, bits; width 0: none changes
        uint8_t has, l2, l3;
    } cases[] = {
        {"port", {.ip = 4, .proto = 17, .payload_len = 50}, 20, 16, V4 | UDP, 14, 20},
        {"payload", {.ip = 4, .proto = 6, .payload_len = 50}, 44, 64, V4 | TCP, 14, 20},
        {"options", {.ip = 4, .proto = 17, .ip_options = 8, .payload_len = 50}, 12, 32, V4 | UDP, 14, 28},
        {"tag", {.ip = 6, .proto = 17, .n_vlans = 1, .payload_len = 50}, 8, 64, V6 | UDP, 18, 40},
        {"nothing changes", {.ip = 4, .proto = 17, .payload_len = 50}, 0, 0, 0, 0, 0},
        {"length", {.ip = 4, .proto = 17, .payload_len = 50}, 2, 16, 0, 0, 0},
        {"protocol", {.ip = 4, .proto = 17, .payload_len = 50}, 9, 8, 0, 0, 0},
        {"two tags", {.ip = 4, .proto = 17, .n_vlans = 2, .payload_len = 50}, 20, 16, 0, 0, 0},
        {"extension", {.ip = 6, .proto = 17, .extensions = 1, .payload_len = 50}, 8, 64, 0, 0, 0},
        {"fragment", {.ip = 4, .proto = 17, .more_fragments = true, .payload_len = 48}, 12, 32, 0, 0, 0},
        {"bytes behind", {.ip = 4, .proto = 17, .payload_len = 4, .padding = 14}, 20, 16, 0, 0, 0},
        {"no transport", {.ip = 4, .proto = 1, .payload_len = 50}, 12, 32, 0, 0, 0},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        frame f = cases[k].f;
        uint8_t p[FRAME_MAX];
        frame_write(&f, p);
        dq_vary change = id;
        change.field.bit_offset = (f.l3 + cases[k].at) * 8;
        change.field.bit_width = (uint16_t)cases[k].width;
        dq_template *t = new_template(p, f.len, &change, cases[k].width > 0, 1, 0);
        dqi_sums s = dqi_template_sums(t);
        dq_template_unref(t);
        if (s.has != cases[k].has) printf("%s:\n", cases[k].name);
        DQ_EQ(s.has, cases[k].has);
        DQ_EQ(s.l2_len, cases[k].l2);
        DQ_EQ(s.l3_len, cases[k].l3);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    bed_open(&shop, (bed_conf){.batch = BATCH});
    DQ_RUN(unchanged);
    DQ_RUN(increments);
    DQ_RUN(every_place);
    DQ_RUN(random_in_range);
    DQ_RUN(several_fields);
    DQ_RUN(neighbours_are_packed);
    DQ_RUN(held_where_they_lie);
    DQ_RUN(checksums);
    DQ_RUN(checksums_left_alone);
    DQ_RUN(left_to_a_device);
    DQ_RUN(prepended);
    DQ_RUN(prepend_refused);
    DQ_RUN(refused);
    DQ_RUN(longer_than_a_buffer);
    bed_start(&shop);
    bed_close(&shop);
    return dq_done();
}
