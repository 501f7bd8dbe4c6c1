// pace.c: software pacing. Each packet moves the queue's next send time on by what it costs at the rate: bits
// (of what the queue holds, without FCS and preamble) over bits/s, or one over packets/s, whichever is
// longer. A poll that comes late catches up, by at most CATCH_UP_NS; a queue that had nothing to send gathers
// no credit.
#include "burst.h"
#include "queue.h"

#define CATCH_UP_NS 10e6

static double rate(const _Atomic double *r) { return atomic_load_explicit(r, memory_order_relaxed); }

void dq_tx_pace(dq_queue *q, double bps, double pps) {
    atomic_store(&q->pace.bps, bps);
    atomic_store(&q->pace.pps, pps);
    dqi_queue_kick(q);
}

// ns that a packet of len bytes takes.
static double cost_of(double bps, double pps, uint32_t len) {
    double by_bits = bps > 0 ? len * 8e9 / bps : 0;
    double by_count = pps > 0 ? 1e9 / pps : 0;
    return by_bits > by_count ? by_bits : by_count;
}

// Time since the session's start, and the next send time brought up to at most CATCH_UP_NS before it. After a
// change of the pace the next packet, of len bytes, leaves within one of its new costs.
static double now_and_next(dq_queue *q, int64_t now, uint32_t len, double *next) {
    dqi_pace *p = &q->pace;
    double t = (double)(now - q->session->start_ns), bps = rate(&p->bps), pps = rate(&p->pps);
    if (bps != p->seen_bps || pps != p->seen_pps) {
        double latest = t + cost_of(bps, pps, len);
        p->next_ns = p->next_ns < t ? t : p->next_ns > latest ? latest : p->next_ns;
        p->seen_bps = bps;
        p->seen_pps = pps;
    }
    if (p->next_ns < t - CATCH_UP_NS) p->next_ns = t - CATCH_UP_NS;
    *next = p->next_ns;
    return t;
}

// The first whole nanosecond that is not before next.
static void wait_until(dq_queue *q, double next) {
    int64_t whole = (int64_t)next, at = q->session->start_ns + whole + ((double)whole < next);
    if (at < q->next_ns) q->next_ns = at;
}

static bool unpaced(dq_queue *q) {
    if (rate(&q->pace.bps) > 0 || rate(&q->pace.pps) > 0) return false;
    q->pace.seen_bps = q->pace.seen_pps = 0;
    return true;
}

uint32_t dqi_pace_allow(dq_queue *q, int64_t now, uint32_t len, uint32_t n) {
    if (unpaced(q)) return n;
    double next, t = now_and_next(q, now, len, &next);
    if (next > t) {
        wait_until(q, next);
        return 0;
    }
    double due = (t - next) / cost_of(rate(&q->pace.bps), rate(&q->pace.pps), len) + 1;
    return due < n ? (uint32_t)due : n;
}

uint32_t dqi_pace_count(dq_queue *q, int64_t now, const dq_burst *b, uint32_t first, uint32_t n) {
    if (unpaced(q)) return n;
    double bps = rate(&q->pace.bps), pps = rate(&q->pace.pps);
    double next, t = now_and_next(q, now, dqi_packet_len(b, first), &next);
    uint32_t k = 0;
    for (; k < n && next <= t; k++)
        next += cost_of(bps, pps, dqi_packet_len(b, first + k));
    if (k == 0) wait_until(q, next);
    return k;
}

double dqi_pace_cost(const dq_queue *q, const dq_burst *b, uint32_t first, uint32_t n) {
    double bps = rate(&q->pace.bps), pps = rate(&q->pace.pps), sum = 0;
    if (bps <= 0 && pps <= 0) return 0;
    for (uint32_t i = first; i < first + n; i++)
        sum += cost_of(bps, pps, dqi_packet_len(b, i));
    return sum;
}

void dqi_pace_spend(dq_queue *q, double cost_ns) { q->pace.next_ns += cost_ns; }

void dqi_pace_idle(dq_queue *q, int64_t now) {
    double t = (double)(now - q->session->start_ns);
    if (q->pace.next_ns < t) q->pace.next_ns = t;
}
