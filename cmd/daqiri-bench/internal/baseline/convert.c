// convert.c: conversions of elements from memory to memory.
#include "convert.h"
#include "clock.h"
#include "core/err.h"
#include "reorder/convert.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>

enum { INPUT = 64 << 20, PIECE = 8192, ROUND = 4 << 20, ROUNDS = 1 << 14 };

// Bytes of a piece, whole elements.
static uint32_t piece_of(const dqi_convert *c) { return PIECE / c->bytes * c->bytes; }

static double round_of(const dqi_convert *c, uint8_t *to, const uint8_t *from, uint32_t piece) {
    double start = baseline_seconds(CLOCK_THREAD_CPUTIME_ID);
    for (uint32_t i = 0; i < ROUND / PIECE; i++)
        dqi_convert_bytes(c, to + (size_t)i * piece, from + (size_t)i * PIECE, piece_of(c));
    return baseline_seconds(CLOCK_THREAD_CPUTIME_ID) - start;
}

static double measure(const dqi_convert *c, double *took, uint8_t *to, const uint8_t *from, double seconds) {
    uint32_t n = 0, piece = 0;
    dqi_convert_size(c, piece_of(c), &piece);
    for (double end = baseline_seconds(CLOCK_MONOTONIC) + seconds;
         n < ROUNDS && (n == 0 || baseline_seconds(CLOCK_MONOTONIC) < end); n++) {
        size_t at = (size_t)n % (INPUT / ROUND) * (ROUND / PIECE);
        took[n] = round_of(c, to + at * piece, from + at * PIECE, piece);
    }
    return (double)(ROUND / PIECE) * (piece_of(c) + piece) / baseline_median(took, n);
}

int dq_baseline_convert_run(const dq_baseline_convert *conf, double *bytes_per_s, dq_diag *diag) {
    dqi_convert c;
    *bytes_per_s = 0;
    int err = dqi_convert_find(&conf->types, &c, "bench", diag);
    if (err != DQ_OK) return err;
    size_t output = dqi_convert_elements(&c, INPUT) * c.out_bytes, bytes = INPUT + output;
    uint8_t *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    double *took = malloc(ROUNDS * sizeof *took);
    if (p == MAP_FAILED || !took) {
        err = dqi_fail(diag, DQ_ESYS - ENOMEM, "no memory for %zu bytes to convert", bytes);
    } else {
        memset(p, 0x5a, INPUT);
        *bytes_per_s = measure(&c, took, p + INPUT, p, conf->seconds);
    }
    if (p != MAP_FAILED) munmap(p, bytes);
    free(took);
    return err;
}
