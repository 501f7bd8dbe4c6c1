// gaps_test.c: numbers that are lost, doubled, late and out of order, against a list of all that came; and
// the stage with several streams.
#include "bed_pipe.h"
#include "pipeline/stages/gap_track.h"

// ---- one stream -------------------------------------------------------------------------------------------

typedef struct stream {
    dqi_gap_rule rule;
    dqi_gap_stream g;
} stream;

static stream begun(uint32_t bits, uint32_t window, uint64_t jump) {
    stream s = {.rule = {.bits = bits, .window = window, .ring = dqi_gap_ring(window), .jump = jump}};
    s.g.seen = calloc(s.rule.ring / 64, 8);
    return s;
}

static void take(stream *s, uint64_t from, uint64_t to) { // the numbers from .. to - 1
    for (uint64_t n = from; n != to; n++)
        dqi_gap_take(&s->g, &s->rule, s->rule.bits == 64 ? n : n & ((1ull << s->rule.bits) - 1));
}

// Closes the stream and compares its counts.
static void ends_as(stream *s, dqi_gap_counts want) {
    dqi_gap_close(&s->g, &s->rule);
    const dqi_gap_counts *c = &s->g.c;
    DQ_EQ(dqi_get(&c->expected), dqi_get(&want.expected));
    DQ_EQ(dqi_get(&c->unique), dqi_get(&want.unique));
    DQ_EQ(dqi_get(&c->missing), dqi_get(&want.missing));
    DQ_EQ(dqi_get(&c->reordered), dqi_get(&want.reordered));
    DQ_EQ(dqi_get(&c->duplicate), dqi_get(&want.duplicate));
    DQ_EQ(dqi_get(&c->late), dqi_get(&want.late));
    DQ_EQ(dqi_get(&c->outliers), dqi_get(&want.outliers));
    DQ_EQ(dqi_get(&c->restarts), dqi_get(&want.restarts));
    DQ_EQ(dqi_get(&c->expected), dqi_get(&c->unique) + dqi_get(&c->missing));
    free(s->g.seen);
}

static void whole(void) {
    stream s = begun(32, 1024, 1 << 24);
    take(&s, 7, 100007);
    ends_as(&s, (dqi_gap_counts){.expected = 100000, .unique = 100000});
    s = begun(32, 1024, 1 << 24);
    ends_as(&s, (dqi_gap_counts){0}); // nothing came
}

static void wraps(void) {
    const uint32_t widths[] = {4, 8, 16, 24, 32, 48, 64};
    for (size_t k = 0; k < sizeof widths / sizeof *widths; k++) {
        stream s = begun(widths[k], 4, 4);
        const uint64_t at = widths[k] == 64 ? 0 : 1ull << widths[k];
        take(&s, at - 100, at - 2);
        take(&s, at + 1, at + 100); // -2, -1 and 0 are missing
        ends_as(&s, (dqi_gap_counts){.expected = 200, .unique = 197, .missing = 3});
    }
}

static void edges_of_the_window(void) {
    stream s = begun(32, 100, 1000); // not a power of two
    take(&s, 0, 500);
    take(&s, 501, 600); // 500 is missing, and exactly at the edge behind 599
    take(&s, 500, 501);
    take(&s, 500, 501); // again
    take(&s, 600, 601);
    take(&s, 500, 501); // outside now
    take(&s, 700, 701); // as far ahead as the window
    ends_as(&s,
            (dqi_gap_counts){
                .expected = 701, .unique = 602, .missing = 99, .reordered = 1, .duplicate = 1, .late = 1});
}

// Numbers before the first are expected only if they come.
static void joined_late(void) {
    stream s = begun(32, 64, 1000);
    take(&s, 10, 11);
    take(&s, 5, 6);
    take(&s, 5, 6);
    take(&s, 8, 10);
    take(&s, 11, 200);
    ends_as(&s, (dqi_gap_counts){.expected = 193, .unique = 193, .reordered = 3, .duplicate = 1});
}

static void far_numbers(void) {
    stream s = begun(32, 64, 100000);
    take(&s, 0, 1000);
    take(&s, 51000, 52000); // a loss
    ends_as(&s, (dqi_gap_counts){.expected = 52000, .unique = 2000, .missing = 50000});

    s = begun(32, 64, 100000);
    take(&s, 0, 1000);
    take(&s, 200000, 200001); // wrong numbers, ahead and, of the next packet, behind
    take(&s, 1000, 1500);
    take(&s, 20, 23);
    take(&s, 1500, 2000);
    ends_as(&s, (dqi_gap_counts){.expected = 2000, .unique = 2000, .late = 3, .outliers = 1});

    s = begun(32, 64, 100000);
    take(&s, 1000000000, 1000001000);
    take(&s, 0, 20); // restarts; 20 is lost
    take(&s, 21, 50);
    take(&s, 3000000000, 3000000003); // too few to believe
    ends_as(&s,
            (dqi_gap_counts){.expected = 1050, .unique = 1049, .missing = 1, .outliers = 3, .restarts = 1});

    s = begun(32, 64, 100000);
    take(&s, 0, 1000);
    take(&s, 101000, 102000); // one more than jump ahead
    ends_as(&s, (dqi_gap_counts){.expected = 2000, .unique = 2000, .restarts = 1});

    s = begun(32, 64, 100000);
    take(&s, 5000, 5100);
    for (int k = 0; k < 20; k++) // a number that stands still is not a stream
        take(&s, 9, 10);
    take(&s, 5100, 5101);
    ends_as(&s, (dqi_gap_counts){.expected = 101, .unique = 101, .late = 20});

    s = begun(32, 64, 100000);
    take(&s, 0, 100);
    const uint64_t mixed[] = {1003, 1001, 1003, 1002}; // out of order, and twice, behind a loss
    for (int k = 0; k < 4; k++)
        take(&s, mixed[k], mixed[k] + 1);
    ends_as(&s, (dqi_gap_counts){
                    .expected = 1004, .unique = 103, .missing = 901, .reordered = 2, .duplicate = 1});
}

// ---- a model ----------------------------------------------------------------------------------------------

typedef struct arrival {
    uint64_t at, position;
} arrival;

static int earlier(const void *x, const void *y) {
    const arrival *a = x, *b = y;
    if (a->at != b->at) return a->at < b->at ? -1 : 1;
    return a->position < b->position ? -1 : a->position > b->position;
}

typedef struct disorder {
    uint32_t bits, window, spread;
    double lost, twice, late;
} disorder;

static bool chance(uint64_t *seed, double p) { return dq_below(seed, 1000000) < p * 1e6; }

static size_t arrive(const disorder *d, uint64_t *seed, uint64_t n, arrival *out) {
    size_t k = 0;
    for (uint64_t p = 0; p < n; p++) {
        if (chance(seed, d->lost)) continue;
        out[k++] = (arrival){p + dq_below(seed, d->spread + 1), p};
        if (chance(seed, d->twice)) out[k++] = (arrival){p + dq_below(seed, d->spread + 1), p};
        if (chance(seed, d->late))
            out[k++] = (arrival){p + d->window + d->spread + 2 + dq_below(seed, 10), p};
    }
    qsort(out, k, sizeof *out, earlier);
    return k;
}

// Counts by what came so far, without a window that moves.
static dqi_gap_counts count(const disorder *d, const arrival *in, size_t n, uint64_t positions) {
    uint8_t *came = calloc(positions, 1);
    uint64_t top = in[0].position, unique = 0, reordered = 0, duplicate = 0, late = 0, expected = 0;
    for (size_t k = 0; k < n; k++) {
        const uint64_t p = in[k].position;
        if (p + d->window <= top) {
            late++;
        } else if (came[p]) {
            duplicate++;
        } else {
            came[p] = 1;
            unique++;
            reordered += p < top;
            if (p > top) top = p;
        }
    }
    for (uint64_t p = 0; p <= top; p++)
        expected += p >= in[0].position || came[p];
    free(came);
    return (dqi_gap_counts){.expected = expected,
                            .unique = unique,
                            .missing = expected - unique,
                            .reordered = reordered,
                            .duplicate = duplicate,
                            .late = late};
}

static void model(void) {
    const disorder kinds[] = {
        {4, 4, 1, 0.01, 0.02, 0},          {8, 32, 10, 0.1, 0.1, 0},      {16, 1024, 900, 0.2, 0.1, 0.002},
        {32, 1000, 900, 0.05, 0.3, 0.002}, {33, 64, 63, 0.3, 0.1, 0.001}, {64, 65536, 300, 0.1, 0.01, 0},
    };
    const uint64_t n = 20000;
    arrival *in = calloc(3 * n, sizeof *in);
    for (uint64_t round = 0; round < DQ_ROUNDS(24); round++) {
        const disorder *d = &kinds[round % (sizeof kinds / sizeof *kinds)];
        uint64_t seed = round, start = dq_rand(&seed) | 1;
        if (round % 4 == 0) start = 0 - n / 2; // wraps at any width
        const size_t arrivals = arrive(d, &seed, n, in);
        stream s = begun(d->bits, d->window, 1ull << (d->bits < 24 ? d->bits - 2 : 20));
        for (size_t k = 0; k < arrivals; k++)
            take(&s, start + in[k].position, start + in[k].position + 1);
        ends_as(&s, count(d, in, arrivals, n));
    }
    free(in);
}

// ---- the stage --------------------------------------------------------------------------------------------

static const dq_insn number[] = {{.op = DQ_OP_LOAD, .b = 16, .c = 8 * BED_HEAD + 48}, {.op = DQ_OP_RET}};
static const dq_insn port[] = {{.op = DQ_OP_LOAD, .b = 16, .c = 8 * 36}, {.op = DQ_OP_RET}};

static dq_stage *gaps(bed *b, bool by_port) {
    dq_diag d = {{0}};
    dq_stage *st;
    dq_gaps_conf c = {.counter = {number, 2}, .bits = 16, .window = 64, .jump = 10000};
    if (by_port) c.by = (dq_number){port, 2};
    bed_must(dq_stage_gaps(b->s, "gaps", &c, &st, &d), &d, "gaps");
    return st;
}

static void send(bed *b, uint64_t from, uint64_t to, uint16_t to_port) {
    for (b->seq = from; b->seq < to;) {
        DQ_EQ(bed_send(b, b->tx[0][0], 1, 100, to_port), DQ_OK);
        bed_steps(b, INT64_MAX, true);
    }
}

static dq_source_count source(const bed *b, uint64_t named) {
    static dq_source_count all[DQ_SOURCES];
    uint32_t n = dq_source_counts(b->s, all, DQ_SOURCES);
    for (uint32_t k = 0; k < n; k++)
        if (all[k].number == named) return all[k];
    return (dq_source_count){0};
}

// Each stream has an account; packets pass, also those without a number.
static void streams(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 4});
    dq_stage *st[] = {gaps(&b, true), bed_tap(&b, 1, 64, DQ_POLICY_DROP)};
    bed_pipe(b.rx[0][0], st, 2);
    bed_start(&b);
    send(&b, 65500, 65536 + 100, 7);
    send(&b, 0, 50, 8);
    send(&b, 51, 60, 8); // 50 is missing
    send(&b, 50, 51, 7); // a duplicate
    send(&b, 30000, 30010, 9);
    send(&b, 1, 11, 9);
    DQ_EQ(bed_send(&b, b.tx[0][0], 1, BED_HEAD + 4, 7), DQ_OK); // without the number
    bed_steps(&b, INT64_MAX, true);
    bed_stop(&b);
    DQ_EQ(stage_line(&b, "gaps").extra[DQ_EXTRA_MISSING], 0); // it may still come
    dq_session_finish(b.s);
    dq_line l = stage_line(&b, "gaps");
    DQ_EQ(l.in, 136 + 59 + 1 + 20 + 1);
    DQ_EQ(l.out, l.in);
    DQ_EQ(l.extra[DQ_EXTRA_EXPECTED], 136 + 60 + 20);
    DQ_EQ(l.extra[DQ_EXTRA_UNIQUE], 136 + 59 + 20);
    DQ_EQ(l.extra[DQ_EXTRA_MISSING], 1);
    DQ_EQ(l.extra[DQ_EXTRA_DUPLICATE], 1);
    DQ_EQ(l.extra[DQ_EXTRA_RESTARTS], 1);
    DQ_EQ(l.extra[DQ_EXTRA_UNNUMBERED], 1);
    DQ_EQ(source(&b, 7).packets, 136);
    DQ_EQ(source(&b, 7).duplicate, 1);
    DQ_EQ(source(&b, 8).missing, 1);
    DQ_EQ(source(&b, 9).restarts, 1);
    DQ_EQ(b.n, l.in);
    bed_close(&b);
}

// Packets of streams that have no account are counted.
static void too_many_streams(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 4});
    dq_stage *st[] = {gaps(&b, true), bed_tap(&b, 1, 64, DQ_POLICY_DROP)};
    bed_pipe(b.rx[0][0], st, 2);
    bed_start(&b);
    for (uint16_t p = 0; p < DQ_SOURCES + 3; p++)
        send(&b, 10, 12, (uint16_t)(1000 + p));
    bed_stop(&b);
    dq_session_finish(b.s);
    dq_line l = stage_line(&b, "gaps");
    DQ_EQ(l.extra[DQ_EXTRA_UNIQUE], 2 * DQ_SOURCES);
    DQ_EQ(l.extra[DQ_EXTRA_UNTRACKED], 6);
    bed_close(&b);
}

static void mistakes(void) {
    bed b;
    bed_open(&b, (bed_conf){.batch = 4});
    const dq_gaps_conf bad[] = {
        {.counter = {number, 2}, .bits = 3, .window = 1, .jump = 1},
        {.counter = {number, 2}, .bits = 65, .window = 1, .jump = 1},
        {.counter = {number, 2}, .bits = 16, .window = 0, .jump = 1},
        {.counter = {number, 2}, .bits = 8, .window = 65, .jump = 65},
        {.counter = {number, 2}, .bits = 32, .window = DQ_MAX_GAP_WINDOW + 1, .jump = 100000},
        {.counter = {number, 2}, .bits = 16, .window = 64, .jump = 63},
        {.counter = {number, 2}, .bits = 16, .window = 64, .jump = 16385},
        {.counter = {number, 1}, .bits = 16, .window = 64, .jump = 64},
    };
    for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
        dq_diag d = {{0}};
        dq_stage *st;
        DQ_EQ(dq_stage_gaps(b.s, "gaps", &bad[k], &st, &d), DQ_INVALID_PARAMETER);
        DQ_CHECK(d.text[0]);
    }
    bed_start(&b);
    bed_close(&b);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN_ALONE(whole);
    DQ_RUN_ALONE(wraps);
    DQ_RUN_ALONE(edges_of_the_window);
    DQ_RUN_ALONE(joined_late);
    DQ_RUN_ALONE(far_numbers);
    DQ_RUN_ALONE(model);
    DQ_RUN(streams);
    DQ_RUN(too_many_streams);
    DQ_RUN(mistakes);
    return dq_done();
}
