// gaps.c: follows a counter in packets, per stream, and passes the packets on unchanged.
#include "core/burst.h"
#include "core/err.h"
#include "core/id_table.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"
#include "pipeline/stages/dq_stages.h"
#include "pipeline/stages/gap_track.h"
#include "program/expr.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK 256 // packets whose numbers are computed at a time

typedef struct gaps {
    dq_prog *counter, *by; // by NULL: one stream, DQI_KEY_NONE
    dqi_gap_rule rule;
    dqi_spin lock; // protects streams and counts: the stage's queues may have several threads
    dqi_id_table keys;
    dqi_count unnumbered, untracked;
    uint64_t *seen;           // the bitmaps of all streams
    dqi_gap_stream streams[]; // by id
} gaps;

static uint32_t streams_of(const gaps *g) { return g->by ? DQI_KEY_IDS : DQI_KEY_FIRST; }

// ---- packets ----------------------------------------------------------------------------------------------

typedef struct numbers {
    uint64_t number[CHUNK], stream[CHUNK];
    uint8_t has[CHUNK], named[CHUNK];
} numbers;

static void take(gaps *g, const numbers *x, uint32_t i) {
    uint32_t id = DQI_KEY_NONE;
    if (!x->has[i] || (g->by && !x->named[i])) {
        dqi_add(&g->unnumbered, 1);
        return;
    }
    if (g->by) id = dqi_key_id(&g->keys, (dqi_key){.a = x->stream[i]});
    if (id == DQI_KEY_OTHER)
        dqi_add(&g->untracked, 1);
    else
        dqi_gap_take(&g->streams[id], &g->rule, x->number[i]);
}

static int gaps_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    gaps *g = st->impl;
    numbers x;
    for (uint32_t first = 0; first < in->n; first += CHUNK) {
        const uint32_t n = in->n - first < CHUNK ? in->n - first : CHUNK;
        const dqi_packets packets = dqi_packets_at(in, first, n);
        dqi_prog_eval(g->counter, dqi_level_best(), &packets, in->payload, x.number, x.has);
        if (g->by) dqi_prog_eval(g->by, dqi_level_best(), &packets, in->payload, x.stream, x.named);
        dqi_lock(&g->lock);
        for (uint32_t i = 0; i < n; i++)
            take(g, &x, i);
        dqi_unlock(&g->lock);
    }
    dqi_add(&node->c.out, in->n);
    dqi_add(&node->c.out_bytes, in->bytes);
    *out = in;
    return DQ_OK;
}

static void gaps_finish(dq_stage *st) {
    gaps *g = st->impl;
    dqi_lock(&g->lock);
    for (uint32_t id = 0; id < streams_of(g); id++)
        dqi_gap_close(&g->streams[id], &g->rule);
    dqi_unlock(&g->lock);
}

// ---- figures ----------------------------------------------------------------------------------------------

static void gaps_line(const dq_stage *st, dq_line *line) {
    const gaps *g = st->impl;
    uint64_t *x = line->extra;
    for (uint32_t id = 0; id < streams_of(g); id++) {
        const dqi_gap_counts *c = &g->streams[id].c;
        x[DQ_EXTRA_EXPECTED] += dqi_get(&c->expected);
        x[DQ_EXTRA_UNIQUE] += dqi_get(&c->unique);
        x[DQ_EXTRA_MISSING] += dqi_get(&c->missing);
        x[DQ_EXTRA_REORDERED] += dqi_get(&c->reordered);
        x[DQ_EXTRA_DUPLICATE] += dqi_get(&c->duplicate);
        x[DQ_EXTRA_LATE] += dqi_get(&c->late);
        x[DQ_EXTRA_OUTLIERS] += dqi_get(&c->outliers);
        x[DQ_EXTRA_RESTARTS] += dqi_get(&c->restarts);
    }
    x[DQ_EXTRA_UNNUMBERED] += dqi_get(&g->unnumbered);
    x[DQ_EXTRA_UNTRACKED] += dqi_get(&g->untracked);
}

static uint32_t gaps_sources(const dq_stage *st, dq_source_count *out, uint32_t max) {
    const gaps *g = st->impl;
    const uint32_t n = g->by ? dqi_key_end(&g->keys) - DQI_KEY_FIRST : 0;
    for (uint32_t k = 0; k < n && k < max; k++) {
        const dqi_gap_counts *c = &g->streams[DQI_KEY_FIRST + k].c;
        out[k] = (dq_source_count){.number = g->keys.keys[k].a,
                                   .which = DQ_SOURCE_NUMBER,
                                   .packets = dqi_get(&c->unique),
                                   .missing = dqi_get(&c->missing),
                                   .late = dqi_get(&c->late),
                                   .duplicate = dqi_get(&c->duplicate),
                                   .reordered = dqi_get(&c->reordered),
                                   .restarts = dqi_get(&c->restarts)};
        snprintf(out[k].name, sizeof out[k].name, "%s", st->name);
    }
    return n;
}

// ---- stage ------------------------------------------------------------------------------------------------

static int gaps_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const gaps *g = st->impl;
    int err = dqi_stage_reads(st, q, dqi_prog_needs(g->counter), diag);
    return err == DQ_OK && g->by ? dqi_stage_reads(st, q, dqi_prog_needs(g->by), diag) : err;
}

static void gaps_delete(gaps *g) {
    dq_prog_free(g->counter);
    dq_prog_free(g->by);
    free(g->seen);
    free(g);
}

static void gaps_free(dq_stage *st) { gaps_delete(st->impl); }

static const dqi_stage_ops gaps_ops = {
    .line_kind = DQ_LINE_STAGE,
    .touches = DQI_TOUCHES_HEADS,
    .check = gaps_check,
    .push = gaps_push,
    .line = gaps_line,
    .sources = gaps_sources,
    .finish = gaps_finish,
    .free = gaps_free,
};

static int check(const char *name, const dq_gaps_conf *c, dq_diag *diag) {
    if (c->bits < DQ_LEAST_GAP_BITS || c->bits > 64)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "gaps %s: a counter of %u bits (expected %d to 64)", name,
                        c->bits, DQ_LEAST_GAP_BITS);
    const uint64_t most = UINT64_C(1) << (c->bits - 2);
    if (c->window == 0 || c->window > most || c->window > DQ_MAX_GAP_WINDOW)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "gaps %s: window %u is not a valid number of numbers (expected 1 to %d, and at most a "
            "quarter of what %u bits count)",
            name, c->window, DQ_MAX_GAP_WINDOW, c->bits);
    if (c->jump < c->window || c->jump > most)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "gaps %s: jump %llu is not a valid distance (expected at least the window, %u, and at "
            "most a quarter of what %u bits count)",
            name, (unsigned long long)c->jump, c->window, c->bits);
    return DQ_OK;
}

static int compile(gaps *g, const dq_gaps_conf *conf, dq_diag *diag) {
    const uint32_t n = streams_of(g), words = g->rule.ring / 64;
    g->seen = calloc((size_t)n * words, sizeof *g->seen);
    if (!g->seen) return DQ_ESYS - ENOMEM;
    for (uint32_t id = 0; id < n; id++)
        g->streams[id].seen = g->seen + (size_t)id * words;
    return dq_prog_new(conf->counter.insns, conf->counter.n, &g->counter, diag);
}

// Allocates the stage with a program for its streams, if it has several.
static int allocate(const dq_gaps_conf *conf, gaps **out, dq_diag *diag) {
    dq_prog *by = NULL;
    int err = conf->by.n > 0 ? dq_prog_new(conf->by.insns, conf->by.n, &by, diag) : DQ_OK;
    if (err != DQ_OK) return err;
    const uint32_t n = by ? DQI_KEY_IDS : DQI_KEY_FIRST;
    gaps *g = calloc(1, sizeof *g + n * sizeof *g->streams);
    if (!g) {
        dq_prog_free(by);
        return DQ_ESYS - ENOMEM;
    }
    g->by = by;
    g->rule = (dqi_gap_rule){
        .bits = conf->bits, .window = conf->window, .ring = dqi_gap_ring(conf->window), .jump = conf->jump};
    *out = g;
    return DQ_OK;
}

int dq_stage_gaps(dq_session *s, const char *name, const dq_gaps_conf *conf, dq_stage **out, dq_diag *diag) {
    gaps *g = NULL;
    int err = check(name, conf, diag);
    if (err == DQ_OK) err = allocate(conf, &g, diag);
    if (err == DQ_OK) err = compile(g, conf, diag);
    if (err == DQ_OK) err = dqi_stage_add(s, name, &gaps_ops, g, out, diag);
    if (err != DQ_OK && g) gaps_delete(g);
    return err;
}
