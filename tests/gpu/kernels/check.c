// check.c: every shipped kernel on a GPU against the model that the host's units have: outputs are
// poisoned, and what is not written stays. `check` [STEP]: only every STEP-th length, for a run under
// compute-sanitizer.
#include "device.h"
#include "kernels/kernels.h"
#include "packed_model.h"

enum { ROOM = 20 << 20 };

static uint8_t *src, *got, *want; // pinned
static cu_ptr d_src, d_dst, d_moves, d_done;
static dqk_move *moves;
static volatile uint64_t *ticket;
static uint64_t lists, failures;

static void judge(const char *what, uint64_t covers, const model_kind *c, uint32_t len) {
    lists++;
    uint64_t at = model_differs(got, want, covers);
    if (at == covers) return;
    if (failures++ < 20)
        printf("FAILED %s: conversion %u, moves of %u bytes: byte %llu is %u, not %u\n", what, c->number, len,
               (unsigned long long)at, got[at], want[at]);
}

// Sources on the device, then in host memory that is read in place, as are the moves.
static void list_of(const model_kind *c, uint32_t len, uint32_t most, uint64_t seed) {
    uint64_t covers;
    uint32_t n = model_list(c, len, most, seed, moves, &covers);
    if (covers > ROOM) device_must(-1, "ROOM");
    memset(want, MODEL_POISON, covers);
    model_apply(c, moves, n, src, want);
    cu_function f = device_function(dqk_ptx(c->number), dqk_kernel(c->number));
    for (int host = 0; host < 2; host++) {
        for (uint32_t i = 0; i < n; i++) {
            if (host == 0) moves[i].dst += d_dst;
            if (moves[i].what != DQK_FILL) moves[i].src += host ? (uintptr_t)src - d_src : d_src;
        }
        CU(copy_in, d_moves, moves, n * sizeof *moves, gpu.stream);
        CU(fill, d_dst, MODEL_POISON, covers, gpu.stream);
        *ticket = 0;
        dqk_list l = {.moves = host ? (uintptr_t)moves : d_moves,
                      .ticket = (uintptr_t)ticket,
                      .value = seed + 1,
                      .done = d_done,
                      .n = n,
                      .parts = seed % 2 ? 3 : dqk_parts(len),
                      .conversion = c->number,
                      .far = host};
        device_launch(f, 1 + (uint32_t)seed % 40, DQK_THREADS, &l);
        CU(copy_out, got, d_dst, covers, gpu.stream);
        device_wait();
        if (*ticket != seed + 1 && failures++ < 20)
            printf("FAILED: ticket %llu\n", (unsigned long long)*ticket);
        judge(host ? "host memory" : "device memory", covers, c, len);
    }
}

static void every_list(uint32_t step) {
    for (uint32_t number = 0; number <= DQK_CONVERSIONS; number++) {
        model_kind c = model_kind_of(number);
        for (uint32_t len = 0; len <= 300; len += number == 0 ? step : step + step * 2 * (len > 40))
            list_of(&c, len, MODEL_MOVES, len + number);
        list_of(&c, 1024, MODEL_MOVES, number);
        list_of(&c, 9000, 64, number);
        list_of(&c, 131072, 8, number + 1);
    }
}

// ---- packed elements --------------------------------------------------------------------------------------

// Sources and moves on the device; levels in host memory that is read in place.
static void packed_list_of(const char *type, const dqk_unpack *u, uint32_t len, uint64_t seed) {
    static float *levels;
    uint32_t n = packed_list(u, len, seed, src, want, ROOM, moves), number = dqk_packed(u->output);
    if (!levels) levels = host_memory(sizeof u->levels);
    for (uint32_t i = 0; i < n; i++) {
        moves[i].dst += d_dst;
        if (moves[i].what != DQK_FILL) moves[i].src += d_src;
    }
    CU(copy_in, d_moves, moves, n * sizeof *moves, gpu.stream);
    CU(fill, d_dst, MODEL_POISON, ROOM, gpu.stream);
    memcpy(levels, u->levels, sizeof u->levels);
    dqk_list l = {.moves = d_moves,
                  .n = n,
                  .parts = seed % 2 ? 3 : dqk_list_parts(len, number),
                  .conversion = number,
                  .packing = dqk_unpack_packing(u)};
    if (u->levelled) l.packing.levels = (uintptr_t)levels;
    device_launch(device_function(dqk_ptx(number), dqk_kernel(number)), 1 + (uint32_t)seed % 40, DQK_THREADS,
                  &l);
    CU(copy_out, got, d_dst, ROOM, gpu.stream);
    device_wait();
    lists++;
    uint64_t at = model_differs(got, want, ROOM);
    if (at == ROOM || failures++ >= 20) return;
    printf("FAILED %s: %s, moves of %u bytes: byte %llu is %u, not %u\n", type, dqk_kernel(number), len,
           (unsigned long long)at, got[at], want[at]);
}

static void every_packing(void) {
    static const char *const names[] = {
        "i2",        "o2.lsb",   "u1",        "i4.lsb",    "o4",       "co4",   "qi4",      "o8",
        "u8",        "i9",       "i10",       "u10.lsb",   "u10.gev",  "i12",   "qi12.lsb", "i12.w32le",
        "i12.w64le", "u12.gev",  "i12.pad32", "u12/16hbe", "i14/16le", "u14",   "i15.lsb",  "i16be",
        "u16le",     "o16be",    "i16.w32le", "i20",       "i24le",    "u24be", "i31",      "u32be",
        "o32le",     "i18/32le", "bfp9",      "bfp14",     "bfp16"};
    double all[256];
    for (int c = 0; c < 256; c++)
        all[c] = c * c * 0.75 - 300;
    for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
        for (uint32_t k = 0; k < PACKED_OUTPUTS; k++) {
            dq_sample t;
            dqk_unpack u;
            if (dq_sample_parse(names[i], &t, NULL) != DQ_OK) device_must(-1, names[i]);
            if (!dqk_unpack_init(&u, &t, packed_outputs[k])) continue;
            packed_list_of(names[i], &u, 20, i);
            packed_list_of(names[i], &u, 4000, i + 1);
            dqk_unpack_scale(&u, k % 2 ? 3e-7 : 1e6, k % 2 ? -3.25 : 0);
            packed_list_of(names[i], &u, 600, i + k);
            if (t.bits > 8) continue;
            dqk_unpack_levels(&u, all);
            packed_list_of(names[i], &u, 333, i + k);
        }
}

int main(int argc, char **argv) {
    if (!device_open()) return 77;
    src = host_memory(MODEL_SRC);
    got = host_memory(ROOM);
    want = malloc(ROOM);
    moves = host_memory(MODEL_MOVES * sizeof *moves);
    ticket = host_memory(4096);
    d_src = device_memory(MODEL_SRC);
    d_dst = device_memory(ROOM);
    d_moves = device_memory(MODEL_MOVES * sizeof *moves);
    d_done = device_memory(4096);
    uint64_t state = 42;
    for (uint32_t i = 0; i < MODEL_SRC; i++)
        src[i] = (uint8_t)(model_random(&state) >> 8);
    CU(copy_in, d_src, src, MODEL_SRC, gpu.stream);
    CU(fill, d_done, 0, 4096, gpu.stream);
    device_wait();
    every_list(argc > 1 ? (uint32_t)atoi(argv[1]) : 1);
    every_packing();
    printf("%s: %llu lists, %llu failures\n", gpu.model, (unsigned long long)lists,
           (unsigned long long)failures);
    return failures > 0;
}
