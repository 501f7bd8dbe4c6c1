// gn_check_test.c: hostile descriptors: whatever the 512 bits of a slot are, what passes the check lies
// within the regions that the kernel was given, with rights for it, and nothing else.
//
// What is right is given a second time here, a row for each form that a descriptor may have: the bits that
// may be set in each word, and its places.
#include "dqtest.h"

#include "gpunetio/device/gn_check.h"

enum { REGIONS = 5, MOST = 9000 };

static const gn_region regions[REGIONS] = {
    {0x10000, 4096, 0, GN_READ | GN_WRITE, 0},
    {0x20000, 64, 0, GN_READ, 0},
    {0, 1ull << 47, 0, GN_REMOTE | GN_READ | GN_WRITE | GN_ADD, 0},
    {0, 24, 0, GN_REMOTE | GN_WRITE, 0},
    {0x30000, 0, 0, GN_READ | GN_WRITE, 0},
};
static const gn_given given = {regions, REGIONS, (1u << GN_OPS) - 1, MOST};

#define PLACE 0x7fffffffffffffffull
#define LOW32 0xffffffffull
#define SEVEN 0x00ffffffffffffffull
#define ANY   0x7fffffffffffffffull

// A place in word `word` of as many bytes as word `bytes` has, BOTH: as words 0 and 2 have, -1: 8 at a
// multiple of 8; rights: r, w, R, W, A (the large ones of remote regions).
#define BOTH (-2)
typedef struct use {
    int word, bytes;
    char rights;
} use;

static const struct form {
    uint32_t op, flags, may; // flags that it has; TOP may be there
    uint64_t bits[7];
    use uses[5];
    uint32_t least, most; // of the bytes in word 0
} forms[] = {
    {0, 0, 0, {0, 0, 0, 0, 0, 0, 0}, {{0}}, 0, 0},
    {1, 0, 0, {LOW32, PLACE, ANY, LOW32, 0, 0, 0}, {{1, 0, 'r'}}, 1, MOST},
    {1, 16, 0, {LOW32, PLACE, ANY, LOW32, 0, LOW32, PLACE}, {{1, 0, 'r'}, {6, 5, 'r'}}, 1, MOST},
    {1, 32, 0, {LOW32, PLACE, ANY, LOW32, LOW32, 0, 0}, {{1, 0, 'r'}}, 0, MOST},
    {1, 48, 0, {LOW32, PLACE, ANY, LOW32, LOW32, LOW32, PLACE}, {{1, 0, 'r'}, {6, 5, 'r'}}, 1, MOST},
    {2, 0, 0, {LOW32, PLACE, 0, PLACE, 0, 0, 0}, {{1, 0, 'r'}, {3, 0, 'W'}}, 1, UINT32_MAX},
    {2, 32, 0, {LOW32, PLACE, 0, PLACE, LOW32, 0, 0}, {{1, 0, 'r'}, {3, 0, 'W'}}, 0, UINT32_MAX},
    {2, 33, 0, {LOW32, SEVEN, SEVEN, PLACE, LOW32, SEVEN, SEVEN}, {{3, 0, 'W'}}, 0, 28},
    {2,
     48,
     0,
     {LOW32, PLACE, LOW32, PLACE, LOW32, 0, PLACE},
     {{1, 0, 'r'}, {6, 2, 'r'}, {3, BOTH, 'W'}},
     1,
     UINT32_MAX},
    {2, 1, 0, {LOW32, SEVEN, SEVEN, PLACE, SEVEN, SEVEN, SEVEN}, {{3, 0, 'W'}}, 1, 35},
    {2,
     16,
     0,
     {LOW32, PLACE, LOW32, PLACE, 0, 0, PLACE},
     {{1, 0, 'r'}, {6, 2, 'r'}, {3, BOTH, 'W'}},
     1,
     UINT32_MAX},
    {2,
     18,
     8,
     {LOW32, PLACE, LOW32, PLACE, PLACE, ANY, PLACE},
     {{1, 0, 'r'}, {6, 2, 'r'}, {3, BOTH, 'W'}, {4, -1, 'A'}},
     1,
     UINT32_MAX},
    {3,
     16,
     0,
     {LOW32, PLACE, LOW32, PLACE, 0, 0, PLACE},
     {{1, 0, 'w'}, {6, 2, 'w'}, {3, BOTH, 'R'}},
     1,
     UINT32_MAX},
    {2,
     2,
     8,
     {LOW32, PLACE, 0, PLACE, PLACE, ANY, 0},
     {{1, 0, 'r'}, {3, 0, 'W'}, {4, -1, 'A'}},
     1,
     UINT32_MAX},
    {2, 3, 8, {LOW32, SEVEN, SEVEN, PLACE, PLACE, ANY, SEVEN}, {{3, 0, 'W'}, {4, -1, 'A'}}, 1, 21},
    {3, 0, 0, {LOW32, PLACE, 0, PLACE, 0, 0, 0}, {{1, 0, 'w'}, {3, 0, 'R'}}, 1, UINT32_MAX},
    {4, 0, 8, {0, 0, 0, 0, PLACE, ANY, 0}, {{4, -1, 'A'}}, 0, 0},
    {4, 4, 8, {0, 0, 0, 0, PLACE, ANY, PLACE}, {{4, -1, 'A'}, {6, -1, 'w'}}, 0, 0},
    {5, 0, 0, {LOW32, PLACE, 0, PLACE, 0, 0, 0}, {{1, 0, 'r'}, {3, 0, 'w'}}, 1, UINT32_MAX},
    {6, 0, 0, {LOW32, PLACE, 0, LOW32, 0, 0, 0}, {{1, 0, 'r'}}, 1, UINT32_MAX},
    {7, 0, 72, {0, ANY, 0, 0, PLACE, ANY, 0}, {{4, -1, 'A'}}, 0, 0},
    {7, 4, 72, {0, ANY, 0, 0, PLACE, ANY, PLACE}, {{4, -1, 'A'}, {6, -1, 'w'}}, 0, 0},
    {8, 0, 0, {0, ANY, 0, LOW32, 0, 0, 0}, {{0}}, 0, 0},
};
enum { FORMS = sizeof forms / sizeof *forms };

static uint32_t rights_of(char c) {
    switch (c) {
    case 'r':
        return GN_READ;
    case 'w':
        return GN_WRITE;
    case 'R':
        return GN_REMOTE | GN_READ;
    case 'W':
        return GN_REMOTE | GN_WRITE;
    }
    return GN_REMOTE | GN_ADD;
}

static bool use_is_right(const gn_u64 *w, const use *u) {
    unsigned __int128 n = u->bytes == BOTH ? (unsigned __int128)(uint32_t)w[0] + (uint32_t)w[2]
                          : u->bytes < 0   ? 8
                                           : (uint32_t)w[u->bytes];
    uint64_t region = w[u->word] >> 48, offset = w[u->word] & 0xffffffffffff;
    if (region >= REGIONS || (u->bytes > 0 && n == 0)) return false; // a second segment has bytes
    const gn_region *r = &regions[region];
    uint32_t rights = rights_of(u->rights);
    if ((r->rights & rights) != rights || (r->rights ^ rights) & GN_REMOTE) return false;
    return offset + n <= r->bytes && (u->bytes != -1 || offset % 8 == 0);
}

static bool is_right(const gn_u64 *w, uint64_t ticket) {
    for (int k = 0; k < FORMS; k++) {
        const struct form *f = &forms[k];
        uint32_t flags = (uint32_t)(w[0] >> 48) & 0xff, bytes = (uint32_t)w[0];
        if (w[0] >> 56 != f->op || (flags & ~f->may) != f->flags) continue;
        bool ok = w[7] == (ticket & ANY) && bytes >= f->least && bytes <= f->most && !(w[0] >> 32 & 0xffff);
        for (int i = 0; i < 7; i++)
            ok &= !(w[i] & ~(i ? f->bits[i] : f->bits[0] | 0x7fffull << 48));
        if (f->op == 1 && f->flags & 16) ok &= (uint64_t)bytes + (uint32_t)w[5] <= MOST;
        for (int i = 0; f->uses[i].rights; i++)
            ok &= use_is_right(w, &f->uses[i]);
        return ok;
    }
    return false;
}

static uint32_t seen[GN_FAULTS];

static void compare(const gn_u64 *w, uint64_t ticket) {
    gn_desc d;
    int fault = gn_check(w, ticket, &given, &d);
    DQ_CHECK(fault >= 0 && fault < GN_FAULTS);
    if ((fault == GN_FAULT_NONE) != is_right(w, ticket)) {
        fprintf(stderr, "words");
        for (int k = 0; k < 8; k++)
            fprintf(stderr, " %016llx", w[k]);
        fprintf(stderr, ": %s\n", gn_fault_name(fault));
        dq_failed(__FILE__, __LINE__, "the check and this test differ");
    }
    seen[fault]++;
}

static uint64_t random_place(uint64_t *seed, char rights) {
    uint32_t region = rights == 'r'                        ? dq_below(seed, 2)
                      : rights == 'w'                      ? 0
                      : rights == 'W' && dq_below(seed, 2) ? 3
                                                           : 2;
    return gn_place(region, dq_below(seed, 3) * 8);
}

// A right descriptor of a form.
static void make(const struct form *f, uint64_t ticket, uint64_t *seed, gn_u64 *w) {
    memset(w, 0, 8 * sizeof *w);
    uint32_t bytes = f->least + (f->most ? dq_below(seed, 8) : 0);
    uint32_t flags = f->flags | (f->may && dq_below(seed, 2) ? f->may : 0);
    w[0] = (uint64_t)f->op << 56 | (uint64_t)flags << 48 | bytes;
    for (int k = 1; k < 7; k++)
        w[k] = dq_rand(seed) & f->bits[k];
    if (f->op == 1 && f->flags & 16) w[5] = 1 + dq_below(seed, 8);
    for (int k = 0; f->uses[k].rights; k++)
        w[f->uses[k].word] = random_place(seed, f->uses[k].rights);
    if (f->op != 1 && f->flags & 16) w[2] = 1 + dq_below(seed, 8), w[3] = gn_place(2, dq_below(seed, 9));
    w[7] = ticket & ANY;
}

static void every_bit(void) {
    uint64_t seed = 1, passed = 0;
    for (int round = 0; round < 200; round++) {
        for (int k = 0; k < FORMS; k++) {
            gn_u64 w[8];
            gn_desc d;
            uint64_t ticket = dq_rand(&seed) >> 1;
            make(&forms[k], ticket, &seed, w);
            DQ_CHECK(is_right(w, ticket));
            DQ_EQ(gn_check(w, ticket, &given, &d), GN_FAULT_NONE);
            for (int bit = 0; bit < 512; bit++) {
                w[bit / 64] ^= 1ull << bit % 64;
                compare(w, ticket);
                passed += is_right(w, ticket);
                w[bit / 64] ^= 1ull << bit % 64;
            }
        }
    }
    DQ_CHECK(passed > 1000); // some changes are right, too: another time, length, operand
}

static void every_word(void) {
    uint64_t seed = 2;
    static const uint64_t odd[] = {0,  1,  ANY, ~0ull, 1ull << 63, 0xffffffffffffull, 4096, 4095, 4089,
                                   64, 57, 24,  17,    16};
    for (int round = 0; round < 300000; round++) {
        gn_u64 w[8];
        uint64_t ticket = dq_rand(&seed) >> 1;
        make(&forms[dq_below(&seed, FORMS)], ticket, &seed, w);
        for (uint32_t n = 1 + dq_below(&seed, 3); n > 0; n--) {
            uint32_t k = dq_below(&seed, 8), how = dq_below(&seed, 4);
            uint64_t v = odd[dq_below(&seed, sizeof odd / sizeof *odd)];
            w[k] = how == 0   ? dq_rand(&seed)
                   : how == 1 ? v
                   : how == 2 ? gn_place(dq_below(&seed, 6), v)
                              : w[k] + v;
            if (k == 0 && how == 2) w[0] = (w[0] & 0xffff) | dq_rand(&seed) << 56;
        }
        compare(w, ticket);
    }
    for (int round = 0; round < 300000; round++) {
        gn_u64 w[8];
        for (int k = 0; k < 8; k++)
            w[k] = dq_rand(&seed);
        compare(w, dq_rand(&seed));
    }
    for (int k = 0; k <= GN_FAULT_LENGTH; k++)
        DQ_CHECK(seen[k] > 0);
}

// What kernels write, and what the proxy reads of it.
static void said_and_read(void) {
    gn_desc d;
    gn_u64 w[8] = {2ull << 56 | 11ull << 48 | 21,
                   0x07060504030201,
                   0x0e0d0c0b0a0908,
                   gn_place(3, 3),
                   gn_place(2, 16),
                   5,
                   0x1514131211100f,
                   77};
    DQ_EQ(gn_check(w, 77, &given, &d), GN_FAULT_NONE);
    for (uint32_t k = 0; k < GN_INLINE_SIGNAL; k++)
        DQ_EQ(d.data[k], k + 1);
    DQ_EQ(d.bytes, 21);
    DQ_EQ(d.to, gn_place(3, 3));
    DQ_EQ(d.signal, gn_place(2, 16));
    DQ_EQ(d.operand, 5 | 1ull << 63);
    gn_u64 most[8] = {2ull << 56 | 1ull << 48 | 35,
                      0x07060504030201,
                      0x0e0d0c0b0a0908,
                      gn_place(2, 3),
                      0x232221201f1e1d,
                      0x1c1b1a19181716,
                      0x1514131211100f,
                      76};
    DQ_EQ(gn_check(most, 76, &given, &d), GN_FAULT_NONE);
    for (uint32_t k = 0; k < GN_INLINE_BYTES; k++)
        DQ_EQ(d.data[k], k + 1);
    gn_u64 cas[8] = {7ull << 56 | 76ull << 48, 4, 0, 0, gn_place(2, 8), 6, gn_place(0, 16), 75};
    DQ_EQ(gn_check(cas, 75, &given, &d), GN_FAULT_NONE);
    DQ_EQ(d.compare, 4 | 1ull << 63);
    DQ_EQ(d.operand, 6 | 1ull << 63);
    DQ_EQ(d.result, gn_place(0, 16));
    gn_u64 both[8] = {
        2ull << 56 | 16ull << 48 | 5, gn_place(1, 8), 9, gn_place(2, 0), 0, 0, gn_place(0, 32), 74};
    DQ_EQ(gn_check(both, 74, &given, &d), GN_FAULT_NONE);
    DQ_EQ(d.from2, gn_place(0, 32));
    DQ_EQ(d.bytes2, 9);
    gn_u64 send[8] = {
        1ull << 56 | 16ull << 48 | 60, gn_place(1, 4), 123456789, 42, 0, 100, gn_place(0, 512), 78};
    DQ_EQ(gn_check(send, 78, &given, &d), GN_FAULT_NONE);
    DQ_EQ(d.from, gn_place(1, 4));
    DQ_EQ(d.from2, gn_place(0, 512));
    DQ_EQ(d.bytes2, 100);
    DQ_EQ(d.time, 123456789);
    DQ_EQ(d.conn, 42);
    gn_u64 imm[8] = {2ull << 56 | 33ull << 48 | 28,
                     0x07060504030201,
                     0x0e0d0c0b0a0908,
                     gn_place(2, 3),
                     0xfffffffe,
                     0x1c1b1a19181716,
                     0x1514131211100f,
                     73};
    DQ_EQ(gn_check(imm, 73, &given, &d), GN_FAULT_NONE);
    for (uint32_t k = 0; k < GN_INLINE_IMM; k++)
        DQ_EQ(d.data[k], k + 1);
    DQ_EQ(d.imm, 0xfffffffe);
    imm[0]++;
    DQ_EQ(gn_check(imm, 73, &given, &d), GN_FAULT_LENGTH);
    imm[0] = 2ull << 56 | 34ull << 48 | 8;
    DQ_EQ(gn_check(imm, 73, &given, &d), GN_FAULT_FLAGS);
    gn_given less = given;
    less.ops = 1u << GN_OP_SEND;
    DQ_EQ(gn_check(w, 77, &less, &d), GN_FAULT_OP);
    DQ_EQ(gn_check(send, 79, &given, &d), GN_FAULT_TICKET);
    DQ_EQ(gn_check(send, 78 | 1ull << 63, &given, &d), GN_FAULT_NONE);
    DQ_CHECK(gn_fault_name(GN_FAULTS) == NULL && gn_fault_name(-1) == NULL && gn_fault_name(GN_FAULT_HOLE));
}

// The limit of a packet holds for its two segments together, each of which is shorter.
static void segments_together(void) {
    static const gn_region large = {0x10000, 1ull << 40, 0, GN_READ, 0};
    static const struct {
        uint32_t bytes, bytes2;
        int want;
    } cases[] = {{4500, 4500, GN_FAULT_NONE},     {4500, 4501, GN_FAULT_LENGTH},
                 {4501, 4500, GN_FAULT_LENGTH},   {1, MOST - 1, GN_FAULT_NONE},
                 {1, MOST, GN_FAULT_LENGTH},      {MOST, 1, GN_FAULT_LENGTH},
                 {2, UINT32_MAX, GN_FAULT_LENGTH}}; // 1 in 32 bits
    const gn_given one = {&large, 1, 1u << GN_OP_SEND, MOST};
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        gn_desc d;
        const gn_u64 w[8] = {(uint64_t)GN_OP_SEND << 56 | (uint64_t)GN_SPLIT << 48 | cases[k].bytes,
                             gn_place(0, 0),
                             0,
                             0,
                             0,
                             cases[k].bytes2,
                             gn_place(0, MOST),
                             77};
        DQ_EQ(gn_check(w, 77, &one, &d), cases[k].want);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(every_bit);
    DQ_RUN(every_word);
    DQ_RUN(segments_together);
    DQ_RUN(said_and_read);
    return dq_done();
}
