// packed_test.c: conversions of packed elements by the kernels' bodies, against the host's loops, which have
// a model of their own: every type and output, with scale, offset and levels, and every alignment of both
// sides.
#include "dqtest.h"
#include "kernels/kernels.h"
#include "kernels_bodies.h"
#include "packed_model.h"

#include <stdlib.h>

enum { ROOM = 1 << 20 };

static uint8_t *src, *got, *want;

// Exactly as large as specified, so that the address sanitizer sees what is read behind it.
static uint8_t *memory(size_t n) {
    uint8_t *p = aligned_alloc(16, n);
    if (!p) abort();
    return p;
}

static void same(const char *who, const char *type, const dqk_unpack *u, uint32_t len) {
    uint64_t at = model_differs(got, want, ROOM);
    if (at == ROOM) return;
    fprintf(stderr, "%s: %s to type %d, moves of %u bytes, byte %llu\n", who, type, u->output, len,
            (unsigned long long)at);
    DQ_EQ(got[at], want[at]);
}

static void list_of(const char *type, const dqk_unpack *u, uint32_t len, uint64_t seed) {
    static dqk_move moves[PACKED_MOVES];
    uint32_t n = packed_list(u, len, seed, src, want, ROOM, moves),
             parts = seed % 2 ? 3 : dqk_list_parts(len, 1);
    for (uint32_t i = 0; i < n; i++) {
        moves[i].dst += (uintptr_t)got;
        if (moves[i].what != DQK_FILL) moves[i].src += (uintptr_t)src;
    }
    dqk_list l = {.moves = (uintptr_t)moves,
                  .n = n,
                  .parts = parts,
                  .conversion = dqk_packed(u->output),
                  .packing = dqk_unpack_packing(u)};
    if (u->levelled) l.packing.levels = (uintptr_t)u->levels;
    memset(got, MODEL_POISON, ROOM);
    bodies_run(&l, 1 + (uint32_t)seed % 40);
    same("kernel", type, u, len);
    memset(got, MODEL_POISON, ROOM);
    dqk_host_kernel(dqk_kernel(l.conversion))(&l);
    same("host", type, u, len);
}

static void type_of(const char *name, uint64_t seed) {
    dq_sample t;
    dqk_unpack u;
    if (dq_sample_parse(name, &t, NULL) != DQ_OK) return;
    for (uint32_t k = 0; k < PACKED_OUTPUTS; k++) {
        if (!dqk_unpack_init(&u, &t, packed_outputs[k])) continue;
        list_of(name, &u, 20, seed + k);
        dqk_unpack_scale(&u, 0.37, k % 2 ? -3.25 : 0);
        list_of(name, &u, 600, seed + k);
    }
}

static void every_type(void) {
    static const char *const kinds[] = {"i", "ci", "qi", "u", "o", "qo"};
    static const char *const orders[] = {"",       ".lsb",   "be",     "le",     "/16be",  "/16le",
                                         "/16hbe", "/16hle", "/32be",  "/32le",  "/32hbe", "/32hle",
                                         ".w16le", ".w32le", ".w64le", ".pad32", ".gev"};
    uint64_t seed = 1;
    for (uint32_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (uint32_t bits = 1; bits <= 32; bits++)
            for (uint32_t o = 0; o < sizeof orders / sizeof *orders; o++) {
                char name[32];
                if ((k * 7 + bits * 3 + o) % (DQ_SANITIZED ? 11 : 3) != 0 && bits != 10 && bits != 12)
                    continue;
                snprintf(name, sizeof name, "%s%u%s", kinds[k], bits, orders[o]);
                type_of(name, seed++);
            }
    type_of("bfp8", 1);
    type_of("bfp9", 2);
    type_of("bfp14", 3);
    type_of("bfp16", 4);
}

static void levels(void) {
    static const char *const names[] = {"u2.lsb", "i1", "o4", "ci8"};
    double all[256];
    for (int c = 0; c < 256; c++)
        all[c] = c * c * 0.75 - 300;
    for (uint32_t i = 0; i < 4; i++)
        for (uint32_t k = 0; k < PACKED_OUTPUTS; k++) {
            dq_sample t;
            dqk_unpack u;
            DQ_EQ(dq_sample_parse(names[i], &t, NULL), DQ_OK);
            DQ_CHECK(dqk_unpack_init(&u, &t, packed_outputs[k]));
            dqk_unpack_levels(&u, all);
            if (k % 2) dqk_unpack_scale(&u, 1e6, 0.5);
            list_of(names[i], &u, 333, i * PACKED_OUTPUTS + k);
        }
}

// Values that fp16 and integers do not hold: subnormals, infinities and saturation.
static void limits(void) {
    static const double scales[] = {1e-9, 3e-7, 70, 1e6, 1e30, 1e38};
    dq_sample t;
    dqk_unpack u;
    DQ_EQ(dq_sample_parse("i16be", &t, NULL), DQ_OK);
    for (uint32_t s = 0; s < sizeof scales / sizeof *scales; s++)
        for (uint32_t k = 0; k < PACKED_OUTPUTS; k++) {
            DQ_CHECK(dqk_unpack_init(&u, &t, packed_outputs[k]));
            dqk_unpack_scale(&u, scales[s], 0);
            list_of("i16be", &u, 2000, s);
        }
}

static void names(void) {
    DQ_EQ(dqk_packed(K_TYPE_fp16), DQK_PACKED);
    DQ_EQ(dqk_packed(K_TYPE_int16), DQK_SUMS - 1);
    DQ_EQ(dqk_packed(K_TYPE_bytes), 0);
    DQ_EQ(dqk_packed(-1), 0);
    DQ_EQ_STR(dqk_kernel(dqk_packed(K_TYPE_int16)), "dqk_packed_int16");
    DQ_EQ(dqk_conversion(K_TYPE_int8, K_TYPE_int16, false), 0);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    src = memory(PACKED_SRC);
    got = memory(ROOM);
    want = memory(ROOM);
    uint64_t state = 7;
    for (uint32_t i = 0; i < PACKED_SRC; i++)
        src[i] = (uint8_t)(model_random(&state) >> 8);
    DQ_RUN(names);
    DQ_RUN(levels);
    DQ_RUN(limits);
    DQ_RUN(every_type);
    free(src);
    free(got);
    free(want);
    return dq_done();
}
