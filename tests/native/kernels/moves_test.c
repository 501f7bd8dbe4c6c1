// moves_test.c: lists of moves against a model that goes byte by byte: the kernels' bodies, warp after warp,
// and the host's way. Every alignment of both sides, every conversion, and what is not written stays.
#include "dqtest.h"
#include "kernels/kernels.h"
#include "kernels_bodies.h"
#include "kernels_model.h"

#include <stdlib.h>

enum { ROOM = 5 << 20 };

static uint8_t *src, *got, *want;

// Exactly as large as specified, so that the address sanitizer sees what is read behind it.
static uint8_t *memory(size_t n) {
    uint8_t *p = aligned_alloc(16, n);
    if (!p) abort();
    return p;
}

static void compare(const model_kind *c, const char *who, uint64_t covers, uint32_t len, uint32_t parts) {
    uint64_t at = model_differs(got, want, covers);
    if (at == covers) return;
    fprintf(stderr, "%s: conversion %u, moves of %u bytes, %u parts, byte %llu\n", who, c->number, len, parts,
            (unsigned long long)at);
    DQ_EQ(got[at], want[at]);
}

// A list of up to `most` moves of that length, by both ways.
static void list_of(const model_kind *c, uint32_t len, uint32_t most, uint64_t seed) {
    static dqk_move moves[MODEL_MOVES];
    uint64_t covers, ticket = 0;
    uint32_t n = model_list(c, len, most, seed, moves, &covers);
    DQ_CHECK(covers <= ROOM);
    memset(want, MODEL_POISON, covers);
    model_apply(c, moves, n, src, want);
    for (uint32_t i = 0; i < n; i++) {
        moves[i].dst += (uintptr_t)got;
        if (moves[i].what != DQK_FILL) moves[i].src += (uintptr_t)src;
    }
    uint32_t parts = seed % 2 ? 3 : dqk_parts(len);
    dqk_list l = {.moves = (uintptr_t)moves,
                  .ticket = (uintptr_t)&ticket,
                  .value = seed + 1,
                  .n = n,
                  .parts = parts,
                  .conversion = c->number,
                  .far = (uint32_t)seed / 2 % 2};
    memset(got, MODEL_POISON, covers);
    bodies_run(&l, 1 + (uint32_t)seed % 40);
    compare(c, "kernel", covers, len, parts);
    memset(got, MODEL_POISON, covers);
    dqk_host_kernel(dqk_kernel(c->number))(&l);
    compare(c, "host", covers, len, parts);
    DQ_EQ(ticket, seed + 1);
}

static void bytes(void) {
    model_kind c = model_kind_of(0);
    for (uint32_t len = 0; len <= 300; len++)
        list_of(&c, len, len % 16 < 2 ? MODEL_MOVES : 48, len);
    static const uint32_t large[] = {1000, 1024, 2047, 2048, 2049, 4096, 8192, 9000, 65507, 131072};
    for (uint32_t k = 0; k < sizeof large / sizeof *large; k++)
        for (uint32_t seed = 0; seed < 2; seed++)
            list_of(&c, large[k], 16, seed);
}

static void conversions(void) {
    for (uint32_t number = 1; number <= DQK_CONVERSIONS; number++) {
        model_kind c = model_kind_of(number);
        DQ_EQ(dqk_conversion(c.from, c.to, c.swapped), number);
        for (uint32_t len = 0; len <= 300; len += (DQ_SANITIZED ? 7 : 1) + number % 3)
            list_of(&c, len, 24, len + number);
        list_of(&c, 1024, MODEL_MOVES, number);
        for (uint32_t seed = 0; seed < 2; seed++)
            list_of(&c, 5000, 16, seed);
    }
}

static void names(void) {
    DQ_EQ_STR(dqk_kernel(0), "dqk_moves");
    DQ_EQ_STR(dqk_kernel(dqk_conversion(K_TYPE_int16, K_TYPE_fp32, true)), "dqk_int16_fp32");
    DQ_CHECK(dqk_kernel(DQK_SUMS + 1) == NULL && dqk_ptx(DQK_SUMS + 1) == NULL);
    DQ_EQ(dqk_conversion(K_TYPE_fp32, K_TYPE_fp16, false), 0);
    DQ_EQ(dqk_conversion(K_TYPE_int8, K_TYPE_bytes, false), 0);
    for (uint32_t i = 0; i <= DQK_SUMS; i++) {
        char entry[64];
        snprintf(entry, sizeof entry, ".visible .entry %s(", dqk_kernel(i));
        DQ_CHECK(strstr(dqk_ptx(i), entry) != NULL);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    src = memory(MODEL_SRC);
    got = memory(ROOM);
    want = memory(ROOM);
    uint64_t state = 42;
    for (uint32_t i = 0; i < MODEL_SRC; i++)
        src[i] = (uint8_t)(model_random(&state) >> 8);
    DQ_RUN(names);
    DQ_RUN(bytes);
    DQ_RUN(conversions);
    free(src);
    free(got);
    free(want);
    return dq_done();
}
