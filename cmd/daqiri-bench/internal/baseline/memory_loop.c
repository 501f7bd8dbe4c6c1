// memory_loop.c: the baseline loop over packet memory: what the loop engine's work costs without an engine.
#include "baseline.h"
#include "clock.h"
#include "core/burst.h"
#include "core/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define PORT_AT 36 // of the destination port in an Ethernet frame with IPv4 and UDP
#define LINE    64 // bytes that a small frame is written with, as a template of the engine writes it

typedef struct pool {
    uint8_t *base;
    size_t bytes;
    uint32_t *free, n_free; // a stack of buffer numbers
} pool;

typedef struct columns {
    uint32_t *id, *len, *flow;
    int64_t *ts;
} columns;

static bool pool_make(pool *p, const dq_baseline_loop *c) {
    p->bytes = (size_t)c->buffers * c->stride;
    p->base = mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    p->free = malloc(c->buffers * sizeof *p->free);
    if (p->base == MAP_FAILED || !p->free) return false;
    for (uint32_t i = 0; i < c->buffers; i++)
        p->free[i] = i;
    p->n_free = c->buffers;
    return true;
}

static void pool_end(pool *p) {
    if (p->base && p->base != MAP_FAILED) munmap(p->base, p->bytes);
    free(p->free);
}

static void take(pool *p, uint32_t *id, uint32_t n) {
    p->n_free -= n;
    memcpy(id, p->free + p->n_free, n * sizeof *id);
}

static void give(pool *p, const uint32_t *id, uint32_t n) {
    memcpy(p->free + p->n_free, id, n * sizeof *id);
    p->n_free += n;
}

// Writes the frame into each buffer: one that fits into a line as a whole line, its size known to the
// compiler.
static void fill(const dq_baseline_loop *c, const pool *p, const columns *k, const uint8_t *frame) {
    struct {
        uint8_t bytes[LINE];
    } line;
    memcpy(&line, frame, LINE);
    bool small = c->len <= LINE && c->stride >= LINE;
    for (uint32_t i = 0; i < c->batch; i++)
        k->len[i] = c->len;
    for (uint32_t i = 0; small && i < c->batch; i++)
        memcpy(p->base + (size_t)k->id[i] * c->stride, &line, LINE);
    for (uint32_t i = 0; !small && i < c->batch; i++)
        memcpy(p->base + (size_t)k->id[i] * c->stride, frame, c->len);
}

// One burst through everything: the packets that matched.
static uint64_t turn(const dq_baseline_loop *c, pool *from, pool *to, columns *k, const uint8_t *frame,
                     int64_t now) {
    uint32_t n = c->batch;
    take(from, k->id, n);
    fill(c, from, k, frame);
    pool *at = from;
    if (c->copy) {
        uint32_t *source = k->id + n;
        memcpy(source, k->id, n * sizeof *source);
        take(to, k->id, n);
        for (uint32_t i = 0; i < n; i++)
            dqi_copy_bytes(to->base + (size_t)k->id[i] * c->stride,
                           from->base + (size_t)source[i] * c->stride, k->len[i]);
        give(from, source, n);
        at = to;
    }
    uint64_t matched = 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint8_t *p = at->base + (size_t)k->id[i] * c->stride;
        bool hit = (uint16_t)(p[PORT_AT] << 8 | p[PORT_AT + 1]) == c->port;
        k->flow[i] = hit;
        k->ts[i] = now;
        matched += hit;
    }
    give(at, k->id, n);
    return matched;
}

static void loop(const dq_baseline_loop *c, pool *pools, columns *k, const uint8_t *frame,
                 dq_baseline_figures *out) {
    double start = baseline_seconds(CLOCK_MONOTONIC), cpu = baseline_seconds(CLOCK_PROCESS_CPUTIME_ID),
           now = start;
    for (double end = start + c->seconds; now < end; now = baseline_seconds(CLOCK_MONOTONIC))
        out->packets += turn(c, &pools[0], &pools[1], k, frame, (int64_t)(now * 1e9));
    out->bytes = out->packets * c->len;
    out->seconds = now - start;
    out->cpu_seconds = baseline_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
}

int dq_baseline_loop_run(const dq_baseline_loop *c, dq_baseline_figures *out, dq_diag *diag) {
    uint8_t frame[2048] = {0};
    pool pools[2] = {0};
    columns k = {0};
    *out = (dq_baseline_figures){0};
    if (c->batch == 0 || c->batch > c->buffers || c->len <= PORT_AT + 1 || c->len > sizeof frame ||
        c->len > c->stride)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "baseline loop: a batch of %u in %u buffers, frames of %u bytes", c->batch,
                        c->buffers, c->len);
    frame[PORT_AT] = (uint8_t)(c->port >> 8);
    frame[PORT_AT + 1] = (uint8_t)c->port;
    k.id = malloc(2 * c->batch * sizeof *k.id);
    k.len = malloc(c->batch * sizeof *k.len);
    k.flow = malloc(c->batch * sizeof *k.flow);
    k.ts = malloc(c->batch * sizeof *k.ts);
    bool room =
        k.id && k.len && k.flow && k.ts && pool_make(&pools[0], c) && (!c->copy || pool_make(&pools[1], c));
    int err = room ? DQ_OK
                   : dqi_fail(diag, DQ_ESYS - ENOMEM, "baseline loop: no memory for %u buffers", c->buffers);
    if (room) loop(c, pools, &k, frame, out);
    pool_end(&pools[0]);
    pool_end(&pools[1]);
    free(k.id);
    free(k.len);
    free(k.flow);
    free(k.ts);
    return err;
}
