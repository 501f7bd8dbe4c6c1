// The framing cutter: any way in which a stream is chopped gives the messages that were put in.
#include "dqtest.h"
#include "engine/socket/socket_framing.h"

#define MAX_MESSAGE 96
#define MESSAGES    200
#define MAX_STREAM  (MESSAGES * (MAX_MESSAGE + 8))

typedef struct stream {
    uint8_t bytes[MAX_STREAM];
    uint32_t n;
    uint32_t at[MESSAGES], len[MESSAGES]; // of the messages' own bytes
} stream;

static const struct {
    const char *name;
    dqi_framing f;
} framings[] = {
    {"fixed 1", {.kind = DQ_FRAMING_FIXED, .fixed = 1, .max_bytes = MAX_MESSAGE}},
    {"fixed 37", {.kind = DQ_FRAMING_FIXED, .fixed = 37, .max_bytes = MAX_MESSAGE}},
    {"fixed, a whole buffer", {.kind = DQ_FRAMING_FIXED, .fixed = MAX_MESSAGE, .max_bytes = MAX_MESSAGE}},
    {"prefix 1", {.kind = DQ_FRAMING_PREFIX, .width = 1, .max_bytes = MAX_MESSAGE}},
    {"prefix 2", {.kind = DQ_FRAMING_PREFIX, .width = 2, .max_bytes = MAX_MESSAGE}},
    {"prefix 2, little endian",
     {.kind = DQ_FRAMING_PREFIX, .width = 2, .max_bytes = MAX_MESSAGE, .le = true}},
    {"prefix 4, inclusive", {.kind = DQ_FRAMING_PREFIX, .width = 4, .max_bytes = MAX_MESSAGE, .incl = true}},
    {"prefix 8, little endian, inclusive",
     {.kind = DQ_FRAMING_PREFIX, .width = 8, .max_bytes = MAX_MESSAGE, .le = true, .incl = true}},
};

// The model: messages of random lengths, each written behind its prefix by hand.
static void make_stream(const dqi_framing *f, uint64_t *seed, stream *s) {
    s->n = 0;
    for (uint32_t k = 0; k < MESSAGES; k++) {
        uint32_t len = f->kind == DQ_FRAMING_FIXED ? f->fixed : dq_below(seed, MAX_MESSAGE + 1);
        uint32_t reply = len + (f->incl ? f->width : 0);
        for (uint32_t i = 0; i < f->width; i++) {
            uint32_t shift = 8 * (f->le ? i : f->width - 1 - i);
            s->bytes[s->n++] = shift < 32 ? (uint8_t)(reply >> shift) : 0;
        }
        s->at[k] = s->n;
        s->len[k] = len;
        for (uint32_t i = 0; i < len; i++)
            s->bytes[s->n++] = (uint8_t)dq_rand(seed);
    }
}

// Feeds s in pieces of 1..most bytes through fresh buffers and compares; the number of messages.
static uint32_t feed(const dqi_framing *f, const stream *s, uint64_t *seed, uint32_t most, uint32_t extra) {
    dqi_cutter c = {0};
    uint8_t *buf = NULL;
    uint32_t fed = 0, k = 0, at, len, room = f->width + f->max_bytes + extra;
    while (fed < s->n) {
        if (!dqi_cut_fits(f, &c)) {
            uint8_t *fresh = malloc(room); // exact, so that the sanitizer sees a byte too many
            dqi_cut_move(f, &c, fresh, room);
            free(buf);
            buf = fresh;
            DQ_CHECK(dqi_cut_fits(f, &c));
        }
        uint32_t n = 1 + dq_below(seed, most), space = c.room - c.to;
        if (n > space) n = space;
        if (n > s->n - fed) n = s->n - fed;
        DQ_CHECK(n > 0);
        memcpy(c.base + c.to, s->bytes + fed, n);
        c.to += n;
        fed += n;
        int got;
        while ((got = dqi_cut_next(f, &c, &at, &len)) > 0 && k < MESSAGES) {
            DQ_EQ(len, s->len[k]);
            if (len == s->len[k]) DQ_EQ_BYTES(c.base + at, s->bytes + s->at[k], len);
            k++;
        }
        DQ_EQ(got, 0);
    }
    DQ_EQ(dqi_cut_pending(f, &c), 0);
    free(buf);
    return k;
}

static void any_chopping_gives_the_messages(void) {
    uint64_t seed = 7;
    static stream s;
    for (size_t i = 0; i < sizeof framings / sizeof *framings; i++) {
        make_stream(&framings[i].f, &seed, &s);
        static const uint32_t most[] = {1, 3, 17, 100, 1000};
        static const uint32_t extra[] = {0, 1, 50, 1000};
        for (uint32_t m = 0; m < 5; m++)
            for (uint32_t e = 0; e < 4; e++)
                if (feed(&framings[i].f, &s, &seed, most[m], extra[e]) != MESSAGES)
                    dq_failed(__FILE__, __LINE__, framings[i].name);
    }
}

static void prefixes_are_what_the_cutter_reads(void) {
    for (size_t i = 0; i < sizeof framings / sizeof *framings; i++) {
        const dqi_framing *f = &framings[i].f;
        uint8_t room[8 + MAX_MESSAGE];
        uint32_t len = f->fixed ? f->fixed : 90, at, got;
        dqi_cutter c = {.base = room, .room = sizeof room};
        int width = dqi_framing_prefix(f, len, room);
        DQ_EQ(width, f->width);
        c.to = (uint32_t)width + len;
        memset(room + width, 0xa5, len);
        DQ_EQ(dqi_cut_next(f, &c, &at, &got), 1);
        DQ_EQ(got, len);
        DQ_EQ(at, width);
    }
}

static void refuses_what_cannot_be_framed(void) {
    uint8_t out[8];
    dqi_framing fixed = framings[1].f, one = framings[3].f,
                incl = {.kind = DQ_FRAMING_PREFIX, .width = 1, .incl = true};
    DQ_EQ(dqi_framing_prefix(&fixed, 36, out), -1);
    DQ_EQ(dqi_framing_prefix(&fixed, 37, out), 0);
    DQ_EQ(dqi_framing_prefix(&one, 255, out), 1);
    DQ_EQ(dqi_framing_prefix(&one, 256, out), -1);
    DQ_EQ(dqi_framing_prefix(&incl, 254, out), 1);
    DQ_EQ(dqi_framing_prefix(&incl, 255, out), -1);
}

static void nonsense_is_told(void) {
    static const struct {
        const char *name;
        dqi_framing f;
        uint8_t bytes[8];
        uint32_t n;
        int want;
    } cases[] = {
        {"too long by one", {.kind = DQ_FRAMING_PREFIX, .width = 2, .max_bytes = 10}, {0, 11}, 2, -1},
        {"as long as can be", {.kind = DQ_FRAMING_PREFIX, .width = 2, .max_bytes = 10}, {0, 10}, 2, 0},
        {"shorter than itself",
         {.kind = DQ_FRAMING_PREFIX, .width = 2, .max_bytes = 10, .incl = true},
         {0, 1},
         2,
         -1},
        {"itself alone",
         {.kind = DQ_FRAMING_PREFIX, .width = 2, .max_bytes = 10, .incl = true},
         {0, 2},
         2,
         1},
        {"half a prefix", {.kind = DQ_FRAMING_PREFIX, .width = 4, .max_bytes = 10}, {0xff, 0xff}, 2, 0},
        {"all bits set",
         {.kind = DQ_FRAMING_PREFIX, .width = 8, .max_bytes = 10},
         {0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
         8,
         -1},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint8_t room[32];
        uint32_t at, len;
        memcpy(room, cases[k].bytes, cases[k].n);
        dqi_cutter c = {.base = room, .room = sizeof room, .to = cases[k].n};
        if (dqi_cut_next(&cases[k].f, &c, &at, &len) != cases[k].want)
            dq_failed(__FILE__, __LINE__, cases[k].name);
    }
}

static void pending_counts_the_prefix(void) {
    dqi_framing f = {.kind = DQ_FRAMING_PREFIX, .width = 2, .max_bytes = 10};
    uint8_t room[32] = {0, 5, 'a', 'b'};
    uint32_t at, len;
    dqi_cutter c = {.base = room, .room = sizeof room, .to = 1};
    DQ_EQ(dqi_cut_next(&f, &c, &at, &len), 0);
    DQ_EQ(dqi_cut_pending(&f, &c), 1);
    c.to = 4;
    DQ_EQ(dqi_cut_next(&f, &c, &at, &len), 0);
    DQ_EQ(dqi_cut_pending(&f, &c), 4);
    uint8_t other[32];
    dqi_cut_move(&f, &c, other, 12);
    DQ_EQ(c.from, 2);
    DQ_EQ_BYTES(other + 2, "ab", 2);
    DQ_EQ(dqi_cut_pending(&f, &c), 4);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(any_chopping_gives_the_messages);
    DQ_RUN(prefixes_are_what_the_cutter_reads);
    DQ_RUN(refuses_what_cannot_be_framed);
    DQ_RUN(nonsense_is_told);
    DQ_RUN(pending_counts_the_prefix);
    return dq_done();
}
