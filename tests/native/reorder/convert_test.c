// convert_test.c: every conversion of every instruction set against a model: all elements of 4, 8 and 16
// bits, and of 32 bits the edges of each rounding and a sample. And the stage that converts packets.
#include "bed_pipe.h"
#include "convert_model.h"
#include "packet/packet.h"
#include "reorder/convert.h"

#define SAMPLE 20000
#define MOST   (65536 + SAMPLE)

static const int32_t inputs[] = {DQ_DTYPE_INT4, DQ_DTYPE_INT8, DQ_DTYPE_INT16, DQ_DTYPE_INT32};
static const int32_t outputs[] = {DQ_DTYPE_FP16, DQ_DTYPE_BF16,  DQ_DTYPE_FP32,
                                  DQ_DTYPE_FP64, DQ_DTYPE_INT32, DQ_DTYPE_INT8};

// ---- elements ---------------------------------------------------------------------------------------------

static uint32_t random32(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(*state >> 32);
}

// All elements of the type, or edges and a sample; how many.
static uint32_t elements(uint32_t bits, int32_t *v) {
    uint32_t n = 0;
    if (bits < 32) {
        for (int32_t x = -(1 << (bits - 1)); x < 1 << (bits - 1); x++)
            v[n++] = x;
        return n;
    }
    for (int k = 0; k < 32; k++)
        for (int below = 0; below < 32; below++)
            for (int d = -2; d <= 2; d++) {
                uint32_t edge = (UINT32_C(1) << k) + (k > below ? UINT32_C(1) << below : 0) + (uint32_t)d;
                v[n++] = (int32_t)edge;
                v[n++] = (int32_t)(0 - edge);
            }
    for (int32_t x = 65400; x < 65600; x++)
        v[n++] = x;
    uint64_t state = 7;
    while (n < SAMPLE)
        v[n++] = (int32_t)(random32(&state) >> random32(&state) % 32);
    return n;
}

// Writes the elements as they come in a packet.
static void pack(uint8_t *dst, const int32_t *v, uint32_t n, uint32_t bits, bool network) {
    for (uint32_t i = 0; i < n; i++) {
        if (bits == 4) {
            dst[i / 2] = (uint8_t)(i % 2 ? dst[i / 2] | (v[i] & 15) : (v[i] & 15) << 4);
            continue;
        }
        bool high_first = network || __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
        for (uint32_t k = 0; k < bits / 8; k++)
            dst[i * bits / 8 + k] = (uint8_t)((uint32_t)v[i] >> 8 * (high_first ? bits / 8 - 1 - k : k));
    }
}

static uint64_t unpack(const uint8_t *src, uint32_t i, uint32_t bits) {
    uint8_t b;
    uint16_t h;
    uint32_t w;
    uint64_t d;
    switch (bits) {
    case 8:
        return memcpy(&b, src + i, 1), b;
    case 16:
        return memcpy(&h, src + 2 * i, 2), h;
    case 32:
        return memcpy(&w, src + 4 * i, 4), w;
    default:
        return memcpy(&d, src + 8 * i, 8), d;
    }
}

// ---- cases ------------------------------------------------------------------------------------------------

static int32_t values[MOST];
static uint64_t expected[MOST];
static uint8_t from[4 * MOST + 64], to[8 * MOST + 64];

static dq_data_types types_of(int i, int o, int network) {
    return (dq_data_types){.input = inputs[i], .output = outputs[o], .network = network};
}

static void check(dqk_convert_fn *fn, const dqi_convert *c, uint32_t n, uint32_t shift) {
    uint32_t bytes = n * c->out_bytes, in_bytes = n / c->elements * c->bytes;
    uint8_t *dst = to + shift % 7;
    memmove(from + shift, from, in_bytes);
    memset(dst, 0x5a, bytes + 8);
    fn(dst, from + shift, n);
    for (uint32_t i = 0; i < n; i++)
        if (unpack(dst, i, 8 * c->out_bytes) != expected[i]) {
            DQ_EQ(values[i], INT64_MIN); // shows it
            DQ_EQ(unpack(dst, i, 8 * c->out_bytes), expected[i]);
            return;
        }
    for (uint32_t i = 0; i < 8; i++)
        DQ_EQ(dst[bytes + i], 0x5a);
    memmove(from, from + shift, in_bytes);
}

static void pair(int i, int o, int network) {
    dq_data_types t = types_of(i, o, network);
    dqi_convert c;
    dq_diag d = {{0}};
    DQ_EQ(dqi_convert_find(&t, &c, "test", &d), DQ_OK);
    uint32_t n = elements(8 * c.bytes / c.elements, values);
    for (uint32_t k = 0; k < n; k++)
        expected[k] = model_bits(values[k], t.output);
    pack(from, values, n, 8 * c.bytes / c.elements, network);
    for (uint32_t level = 0; dqi_convert_at(level, &t); level++) {
        check(dqi_convert_at(level, &t), &c, n, 0);
        check(dqi_convert_at(level, &t), &c, n, 1);
    }
    memset(to, 0, 64);
    dqi_convert_bytes(&c, to, from, n / c.elements * c.bytes);
    DQ_EQ(unpack(to, n - 1, 8 * c.out_bytes), expected[n - 1]);
}

static void every_pair(void) {
    for (int i = 0; i < 4; i++)
        for (int o = 0; o < 6; o++)
            for (int network = 0; network < 2; network++)
                pair(i, o, network);
}

// Every length around a vector's, at every alignment: nothing is written behind the last element.
static void lengths(void) {
    for (int i = 0; i < 4; i++)
        for (int o = 0; o < 6; o++) {
            dq_data_types t = types_of(i, o, 1);
            dqi_convert c;
            dq_diag d = {{0}};
            DQ_EQ(dqi_convert_find(&t, &c, "test", &d), DQ_OK);
            uint32_t all = elements(8 * c.bytes / c.elements, values);
            for (uint32_t k = 0; k < 140 && k < all; k++) {
                values[k] = values[all - 1 - k];
                expected[k] = model_bits(values[k], t.output);
            }
            for (uint32_t n = 0; n < 140 && n < all; n += c.elements) {
                pack(from, values, n, 8 * c.bytes / c.elements, true);
                for (uint32_t level = 0; dqi_convert_at(level, &t); level++)
                    check(dqi_convert_at(level, &t), &c, n, n % 16);
            }
        }
}

static void sizes(void) {
    dqi_convert c = {.bytes = 2, .elements = 1, .out_bytes = 4};
    uint32_t n = 0;
    DQ_CHECK(dqi_convert_size(&c, 6, &n));
    DQ_EQ(n, 12);
    DQ_CHECK(!dqi_convert_size(&c, 7, &n));
    DQ_CHECK(!dqi_convert_size(&c, UINT64_C(1) << 32, &n));
    DQ_CHECK(!dqi_convert_size(&c, UINT64_C(1) << 31, &n));
    c = (dqi_convert){.bytes = 1, .elements = 2, .out_bytes = 8};
    DQ_CHECK(dqi_convert_size(&c, 3, &n));
    DQ_EQ(n, 48);
    c = (dqi_convert){.bytes = 4, .elements = 1, .out_bytes = 1};
    DQ_CHECK(dqi_convert_size(&c, 12, &n));
    DQ_EQ(n, 3);
    DQ_CHECK(!dqi_convert_size(&c, 6, &n));
}

static void refusals(void) {
    dqi_convert c;
    dq_diag d = {{0}};
    dq_data_types t = {0};
    DQ_EQ(dqi_convert_find(&t, &c, "test", &d), DQ_OK);
    DQ_CHECK(!dqi_converts(&c) && c.bytes == 1 && c.out_bytes == 1);
    t = (dq_data_types){.input = DQ_DTYPE_INT16};
    DQ_EQ(dqi_convert_find(&t, &c, "test", &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "no conversion of int16 to bytes"));
    t = (dq_data_types){.input = DQ_DTYPE_FP32, .output = DQ_DTYPE_FP64};
    DQ_EQ(dqi_convert_find(&t, &c, "test", &d), DQ_INVALID_PARAMETER);
    t = (dq_data_types){.input = DQ_DTYPE_INT8, .output = DQ_DTYPES};
    DQ_EQ(dqi_convert_find(&t, &c, "test", &d), DQ_INVALID_PARAMETER);
    DQ_CHECK(strstr(d.text, "unknown"));
}

// ---- the stage --------------------------------------------------------------------------------------------

#define LEN (BED_HEAD + 58)

static dq_convert_conf usual(const bed *b) {
    return (dq_convert_conf){.region = b->more,
                             .types = {.input = DQ_DTYPE_INT16, .output = DQ_DTYPE_FP32, .network = 1},
                             .at_payload = 1,
                             .policy = DQ_POLICY_WAIT};
}

static dq_stage *converter(bed *b, dq_convert_conf c) {
    dq_diag d = {{0}};
    dq_stage *st;
    bed_must(dq_stage_convert(b->s, "floats", &c, &st, &d), &d, "convert");
    return st;
}

// n frames whose checksums are right, or, without `sums`, absent.
static void send(bed *b, uint32_t n, uint32_t len, bool sums) {
    dq_burst *burst;
    int err, patience = 100000;
    while ((err = bed_make(b, b->tx[0][0], n, len, 7, &burst)) != DQ_OK && patience-- > 0)
        bed_serve(b, 100000);
    DQ_EQ(err, DQ_OK);
    if (err != DQ_OK) return;
    if (sums) DQ_EQ(dq_burst_checksums(burst, -1), DQ_OK);
    DQ_EQ(dq_tx_send(b->tx[0][0], burst), DQ_OK);
}

// The bytes of frame seq, which had LEN bytes, with floats instead.
static void check_frame(const uint8_t *p, uint32_t len, uint64_t seq, bool sums) {
    uint8_t want[LEN];
    dqi_pkt k;
    bed_frame(want, LEN, 1000, 7, seq);
    DQ_EQ(len, 2 * LEN - BED_HEAD);
    DQ_EQ_BYTES(p, want, 16);
    DQ_EQ_BYTES(p + 26, want + 26, 12);
    for (uint32_t i = 0; i < (LEN - BED_HEAD) / 2; i++) {
        int16_t v = (int16_t)dqi_be16(want + BED_HEAD + 2 * i);
        if (unpack(p + BED_HEAD, i, 32) != model_bits(v, DQ_DTYPE_FP32))
            DQ_EQ(unpack(p + BED_HEAD, i, 32), model_bits(v, DQ_DTYPE_FP32));
    }
    DQ_EQ(dqi_be16(p + 16), len - 14);
    DQ_EQ(dqi_be16(p + 38), len - 34);
    DQ_CHECK(dqi_parse(p, len, &k) && dqi_csum_ok(p, &k));
    DQ_EQ(dqi_be16(p + 40) != 0, sums);
}

// Takes what the taps have: tag 1 gets floats, 2 what came. The number of events.
static int serve(bed *b, uint64_t *next, bool sums) {
    dq_event ev[16];
    int n = dq_wait(b->w, 20000000, ev, 16);
    for (int e = 0; e < n; e++) {
        const dq_view *v = &ev[e].view;
        if (ev[e].tag == 2) bed_note(b, 2, v);
        for (uint32_t i = 0; ev[e].tag == 1 && i < v->n; i++) {
            DQ_CHECK(v->ts[i] > 0 && v->nseg == 1);
            check_frame(bed_bytes(v, 0, i), v->len[0][i], (*next)++, sums);
        }
        dq_burst_unref(ev[e].b);
    }
    return n;
}

// Packets become floats, in buffers of their own: a tee sees what came. On every way of polling.
static void stage(void) {
    BED_EACH_MODE(m) {
        bed b;
        uint64_t next = 0;
        bed_open(&b, (bed_conf){.mode = m, .timeout_us = 100, .more_bufs = 128, .more_size = 2 * LEN});
        dq_stage *st[] = {converter(&b, usual(&b)), bed_tap(&b, 1, 64, DQ_POLICY_WAIT)},
                 *raw = bed_tap(&b, 2, 64, DQ_POLICY_WAIT);
        bed_pipe(b.rx[0][0], st, 2);
        bed_pipe(b.rx[0][0], &raw, 1);
        bed_start(&b);
        int64_t end = dqi_mono_ns() + BED_PATIENCE;
        for (int k = 0; k < 20; k++) {
            send(&b, 50, LEN, false);
            while ((next < 50u * (k + 1) || b.n < 50u * (k + 1)) && dqi_mono_ns() < end)
                if (serve(&b, &next, false) == 0 && m == BED_VIRTUAL && dq_step(b.s) == 0)
                    dq_advance(b.s, dq_next_time(b.s));
        }
        DQ_EQ(next, 1000);
        check_tag(&b, 2, 1000, 0, 1);
        dq_line l = stage_line(&b, "floats");
        DQ_EQ(l.in_bytes, 1000 * LEN);
        DQ_EQ(l.out_bytes, 1000 * (2 * LEN - BED_HEAD));
        bed_close(&b);
    }
}

// Each packet that can't be converted is counted, and the others continue.
static void losses(void) {
    bed b;
    uint64_t next = 0;
    bed_open(&b, (bed_conf){.timeout_us = 100, .more_bufs = 64, .more_size = 2 * LEN - BED_HEAD});
    dq_convert_conf c = usual(&b);
    c.at_payload = 0;
    c.payload_offset = BED_HEAD;
    dq_stage *st[] = {converter(&b, c), bed_tap(&b, 1, 64, DQ_POLICY_WAIT)};
    bed_pipe(b.rx[0][0], st, 2);
    bed_start(&b);
    static const uint32_t lens[] = {LEN + 1, LEN + 2, 42, LEN};
    for (int k = 0; k < 4; k++) {
        dq_burst *burst;
        b.seq = 0;
        DQ_EQ(bed_make(&b, b.tx[0][0], 1, lens[k] < BED_MIN ? BED_MIN : lens[k], 7, &burst), DQ_OK);
        if (lens[k] == LEN) {
            dq_view v;
            dq_burst_view(burst, &v);
            bed_frame(bed_bytes(&v, 0, 0), LEN, 1000, 7, 0);
            DQ_EQ(dq_burst_checksums(burst, -1), DQ_OK);
        }
        DQ_EQ(dq_burst_set_len(burst, 0, -1, lens[k]), DQ_OK);
        DQ_EQ(dq_tx_send(b.tx[0][0], burst), DQ_OK);
    }
    bed_steps(&b, BED_START_NS + 10000000, false);
    DQ_EQ(serve(&b, &next, true), 1);
    dq_line l = stage_line(&b, "floats");
    DQ_EQ(next, 1);
    DQ_EQ(l.dropped[DQ_DROP_BAD_PAYLOAD], 1);
    DQ_EQ(l.dropped[DQ_DROP_TOO_LONG], 1);
    DQ_EQ(l.dropped[DQ_DROP_BAD_PLACE], 1);
    bed_close(&b);
}

// Without a free buffer packets are dropped, or the queue waits until one is back.
static void no_buffer(void) {
    for (int wait = 0; wait < 2; wait++) {
        bed b;
        uint64_t next = 0;
        bed_open(&b, (bed_conf){.batch = 64, .timeout_us = 100, .more_bufs = 64, .more_size = 2 * LEN});
        dq_convert_conf c = usual(&b);
        c.policy = wait ? DQ_POLICY_WAIT : DQ_POLICY_DROP;
        dq_stage *st[] = {converter(&b, c), bed_tap(&b, 1, 64, DQ_POLICY_WAIT)};
        bed_pipe(b.rx[0][0], st, 2);
        bed_start(&b);
        send(&b, 40, LEN, true);
        bed_steps(&b, BED_START_NS + 10000000, false);
        send(&b, 40, LEN, true);
        bed_steps(&b, BED_START_NS + 20000000, false);
        dq_line l = stage_line(&b, "floats");
        DQ_EQ(l.out, wait ? 40 : 64);
        DQ_EQ(l.dropped[DQ_DROP_NO_PACKET_BUFFER], wait ? 0 : 16);
        do
            serve(&b, &next, true);
        while (dq_step(b.s) > 0 || serve(&b, &next, true) > 0);
        DQ_EQ(next, wait ? 80 : 64);
        bed_close(&b);
    }
}

static void refused(bed *b, dq_convert_conf c, const char *name, const char *why) {
    dq_diag d = {{0}};
    dq_stage *st;
    dq_pipe *p;
    int err = dq_stage_convert(b->s, name, &c, &st, &d);
    if (err == DQ_OK) err = dq_pipe_add(b->rx[0][0], &st, 1, 0, &p, &d);
    DQ_CHECK(err != DQ_OK);
    if (strstr(d.text, why) == NULL) DQ_EQ_STR(d.text, why);
}

static void stage_refusals(void) {
    bed b;
    bed_open(&b, (bed_conf){.more_bufs = 32, .more_size = 512});
    dq_convert_conf c = usual(&b);
    refused(&b, c, "a", "num_bufs must be at least that");
    refused(&b, c, "again", "packets of a may have all buffers of region more");
    c.region = b.in[0];
    refused(&b, c, "own", "packets of rx0 may have all buffers of region in");
    c.policy = DQ_POLICY_DROP;
    c.at_payload = 0;
    refused(&b, c, "b", "headers are not elements");
    c.types.output = DQ_DTYPE_INT4;
    refused(&b, c, "c", "convert c: no conversion of int16 to int4");
    c.region = NULL;
    refused(&b, c, "d", "needs a memory region");
    bed_start(&b);
    bed_close(&b);
    bed_open(&b, (bed_conf){.rx_nseg = 2, .rx_size = {64}, .more_bufs = 64, .more_size = 512});
    refused(&b, usual(&b), "e", "splits packets into 2 segments");
    bed_start(&b);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(every_pair);
    DQ_RUN(lengths);
    DQ_RUN(sizes);
    DQ_RUN(refusals);
    DQ_RUN(stage);
    DQ_RUN(losses);
    DQ_RUN(no_buffer);
    DQ_RUN(stage_refusals);
    return dq_done();
}
