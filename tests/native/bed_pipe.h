// bed_pipe.h: stages for tests of pipes, and what came through each tap.
#ifndef BED_PIPE_H
#define BED_PIPE_H

#include "bed.h"
#include "pipeline/stages/dq_stages.h"

static inline dq_stage *filter(bed *b, const char *name, const dq_filter_conf *conf) {
    dq_diag d = {{0}};
    dq_stage *st;
    bed_must(dq_stage_filter(b->s, name, conf, &st, &d), &d, name);
    return st;
}

static inline dq_stage *port_filter(bed *b, const char *name, uint16_t port) {
    dq_match m = {.set = DQ_MATCH_UDP_DST, .udp_dst = {port, port}};
    return filter(b, name, &(dq_filter_conf){.kind = DQ_FILTER_MATCH, .match = &m});
}

static inline dq_stage *counter(bed *b, const char *name) {
    dq_diag d = {{0}};
    dq_stage *st;
    bed_must(dq_stage_count(b->s, name, &st, &d), &d, name);
    return st;
}

static inline dq_stage *forwarder(bed *b, const char *name, dq_queue *tx, int policy) {
    dq_diag d = {{0}};
    dq_stage *st;
    bed_must(dq_stage_forward(b->s, name, tx, policy, &st, &d), &d, name);
    return st;
}

static inline dq_line stage_line(const bed *b, const char *name) {
    return bed_line(b->s, name, DQ_LINE_STAGE, NULL);
}
static inline dq_line tap_line(const bed *b, const char *name) {
    return bed_line(b->s, name, DQ_LINE_TAP, NULL);
}

// The packets that came through one tap.
static inline bed_got *of_tag(const bed *b, uint64_t tag, size_t *n) {
    bed_got *out = calloc(b->n + 1, sizeof *out);
    *n = 0;
    for (size_t k = 0; out && k < b->n; k++)
        if (b->got[k].tag == tag) out[(*n)++] = b->got[k];
    return out;
}

static inline void check_tag(const bed *b, uint64_t tag, size_t want, uint64_t first, uint64_t step) {
    size_t n;
    bed_got *g = of_tag(b, tag, &n);
    DQ_EQ(n, want);
    for (size_t k = 0; k < n; k++)
        if (g[k].seq != first + k * step || !g[k].intact) {
            DQ_EQ(g[k].seq, first + k * step);
            DQ_CHECK(g[k].intact);
            break;
        }
    free(g);
}

#endif
