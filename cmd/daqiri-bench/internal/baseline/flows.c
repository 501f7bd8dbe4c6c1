// flows.c: classification of frames of many flows by a table of mixed rules.
#include "flows.h"
#include "clock.h"
#include "core/err.h"
#include "packet/match.h"

#include <errno.h>
#include <stdlib.h>

enum { FRAMES = 1024, FRAME_LEN = 106, STRIDE = 192, ROUND_PACKETS = 16 * FRAMES, ROUNDS = 1 << 15 };

typedef struct bench {
    dq_rule *rules;
    uint8_t *bytes;
    uint64_t off[FRAMES];
    uint32_t len[FRAMES], flow[FRAMES];
    uint16_t queue[FRAMES];
    double took[ROUNDS]; // CPU seconds
} bench;

static uint32_t next_random(uint32_t *seed) {
    *seed = *seed * 1664525u + 1013904223u;
    return *seed >> 8;
}

static dq_port_range ports(uint32_t lo, uint32_t n) {
    return (dq_port_range){(uint16_t)lo, (uint16_t)(lo + n - 1)};
}

static dq_match make_match(uint32_t k) {
    switch (k % 10) {
    case 9:
        return (dq_match){.set = DQ_MATCH_UDP_DST, .udp_dst = ports(10000 + k % 40000, 3)};
    case 8:
    case 7:
    case 6:
        return (dq_match){
            .set = DQ_MATCH_IPV4_DST, .ipv4_dst = 0x0b000000 + (k << 8), .ipv4_dst_mask = 0xffffff00};
    case 5:
    case 4:
        return (dq_match){.set = DQ_MATCH_UDP_DST, .udp_dst = ports(10000 + k % 40000, 1)};
    default:
        return (dq_match){.set = DQ_MATCH_IPV4_SRC | DQ_MATCH_IPV4_DST | DQ_MATCH_UDP_SRC | DQ_MATCH_UDP_DST,
                          .ipv4_src = 0x0a000000 + k,
                          .ipv4_src_mask = 0xffffffff,
                          .ipv4_dst = 0xc0000201,
                          .ipv4_dst_mask = 0xffffffff,
                          .udp_src = ports(4096, 1),
                          .udp_dst = ports(7148, 1)};
    }
}

// A UDP frame of a flow of its own that matches m.
static void make_frame(uint8_t *p, const dq_match *m, uint32_t *seed) {
    static const uint8_t head[] = {2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0, 0x45, 0, 0, FRAME_LEN - 14};
    bool src = m->set & DQ_MATCH_IPV4_SRC, dst = m->set & DQ_MATCH_IPV4_DST;
    memcpy(p, head, sizeof head);
    p[22] = 64;
    p[23] = DQI_PROTO_UDP;
    dqi_put_be32(p + 26, src ? m->ipv4_src : 0x0c000000 | next_random(seed) % 65536);
    dqi_put_be32(p + 30, dst ? m->ipv4_dst | (next_random(seed) & ~m->ipv4_dst_mask) : 0xc0000202);
    dqi_put_be16(p + 34,
                 m->set & DQ_MATCH_UDP_SRC ? m->udp_src.lo : (uint16_t)(1024 + next_random(seed) % 60000));
    dqi_put_be16(p + 36, m->set & DQ_MATCH_UDP_DST ? m->udp_dst.lo : 9);
    dqi_put_be16(p + 38, FRAME_LEN - 34);
}

static int prepare(bench *b, uint32_t n, dqi_flow_table **t, dq_diag *diag) {
    uint32_t seed = 1;
    for (uint32_t k = 0; k < n; k++)
        b->rules[k] = (dq_rule){.match = make_match(k), .flow_id = k + 1, .order = k, .n_queues = 1};
    for (uint32_t i = 0; i < FRAMES; i++) {
        b->off[i] = (uint64_t)i * STRIDE;
        b->len[i] = FRAME_LEN;
        make_frame(b->bytes + b->off[i], &b->rules[next_random(&seed) % n].match, &seed);
    }
    return dqi_flow_table_build(b->rules, n, t, diag);
}

// The median round, by the thread's own time: what else runs on the machine is not in it.
static double measure(bench *b, const dqi_flow_table *t, double seconds) {
    double end = baseline_seconds(CLOCK_MONOTONIC) + seconds;
    uint32_t n = 0;
    do {
        double from = baseline_seconds(CLOCK_THREAD_CPUTIME_ID);
        for (uint32_t k = 0; k < ROUND_PACKETS / FRAMES; k++)
            dqi_flow_table_classify(t, b->bytes, b->off, b->len, FRAMES, b->flow, b->queue);
        b->took[n++] = baseline_seconds(CLOCK_THREAD_CPUTIME_ID) - from;
    } while (n < ROUNDS && baseline_seconds(CLOCK_MONOTONIC) < end);
    return baseline_median(b->took, n) * 1e9 / ROUND_PACKETS;
}

int dq_baseline_flows_run(const dq_baseline_flows *conf, double *ns, dq_diag *diag) {
    if (conf->rules == 0) return dqi_fail(diag, DQ_INVALID_PARAMETER, "there is no table without rules");
    bench *b = calloc(1, sizeof *b);
    dqi_flow_table *t = NULL;
    int err = DQ_ESYS - ENOMEM;
    if (b) {
        b->rules = calloc(conf->rules, sizeof *b->rules);
        b->bytes = calloc(FRAMES, STRIDE);
    }
    if (b && b->rules && b->bytes) err = prepare(b, conf->rules, &t, diag);
    if (err == DQ_OK) *ns = measure(b, t, conf->seconds);
    for (uint32_t i = 0; err == DQ_OK && i < FRAMES; i++)
        if (b->queue[i] == DQI_NO_QUEUE)
            err = dqi_fail(diag, DQ_INTERNAL_ERROR, "frame %u matched no rule", i);
    dqi_flow_table_free(t);
    if (b) free(b->rules);
    if (b) free(b->bytes);
    free(b);
    return err;
}
