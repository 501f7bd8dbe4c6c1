// pace.c: software pacing. Each packet advances the queue's next send time by its cost at the rate: bits (of
// the queue's packet, without FCS and preamble) over bits/s, or one over packets/s, whichever is longer. A
// late poll catches up by at most DQI_CATCH_UP_NS; an idle queue accumulates no credit.
#include "core/burst.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/tx_accuracy.h"

static double rate(const _Atomic double *r) { return atomic_load_explicit(r, memory_order_relaxed); }

void dq_tx_pace(dq_queue *q, double bps, double pps) {
    atomic_store(&q->tx.pace.speed, 0);
    atomic_store(&q->tx.pace.bps, bps);
    atomic_store(&q->tx.pace.pps, pps);
    dqi_queue_kick(q);
}

// Returns the cost of a packet of len bytes in ns.
static inline double cost_of(const dqi_pace *p, uint32_t len) {
    double by_bits = len * p->per_byte;
    return by_bits > p->per_packet ? by_bits : p->per_packet;
}

// Applies a change made by dq_tx_pace; the next packet, of len bytes, leaves after at most its cost at the
// new rate.
static void follow_change(dq_queue *q, double t, uint32_t len) {
    dqi_pace *p = &q->tx.pace;
    double bps = rate(&p->bps), pps = rate(&p->pps);
    if (bps == p->seen_bps && pps == p->seen_pps) return;
    p->per_byte = bps > 0 ? 8e9 / bps : 0;
    p->per_packet = pps > 0 ? 1e9 / pps : 0;
    double latest = t + cost_of(p, len);
    p->next_ns = p->next_ns < t ? t : p->next_ns > latest ? latest : p->next_ns;
    p->seen_bps = bps;
    p->seen_pps = pps;
    q->tx.timing->fresh = true;
}

// Returns the time since the session's start; *next: the next send time, at most DQI_CATCH_UP_NS before it.
static double now_and_next(dq_queue *q, int64_t now, uint32_t len, double *next) {
    double t = (double)(now - q->session->core.start_ns);
    follow_change(q, t, len);
    if (q->tx.pace.next_ns < t - DQI_CATCH_UP_NS) q->tx.pace.next_ns = t - DQI_CATCH_UP_NS;
    *next = q->tx.pace.next_ns;
    return t;
}

// Wakes the poller at the first whole nanosecond that is not before next.
static void wait_until(dq_queue *q, double next) {
    int64_t whole = (int64_t)next, at = q->session->core.start_ns + whole + ((double)whole < next);
    if (at < q->next_ns) q->next_ns = at;
}

static bool unpaced(dq_queue *q) {
    if (rate(&q->tx.pace.bps) > 0 || rate(&q->tx.pace.pps) > 0) return false;
    q->tx.pace.seen_bps = q->tx.pace.seen_pps = 0;
    return true;
}

uint32_t dqi_pace_allow(dq_queue *q, int64_t now, uint32_t len, uint32_t n) {
    if (unpaced(q)) return n;
    double next, t = now_and_next(q, now, len, &next);
    if (next > t) {
        wait_until(q, next);
        return 0;
    }
    double due = (t - next) / cost_of(&q->tx.pace, len) + 1;
    return due < n ? (uint32_t)due : n;
}

uint32_t dqi_pace_count(dq_queue *q, int64_t now, dq_burst *b, uint32_t first, uint32_t n) {
    double speed = b->timed || q->tx.made ? 0 : rate(&q->tx.pace.speed);
    if (speed > 0) return dqi_follow_count(q, now, b, first, n, speed);
    q->tx.pace.seen_speed = 0;
    if (unpaced(q)) return n;
    dqi_burst_columns(b);
    double next, t = now_and_next(q, now, dqi_packet_len(b, first), &next), *cost = q->tx.timing->cost;
    uint32_t k = 0;
    if (n > q->conf.batch_size) n = q->conf.batch_size;
    for (; k < n && next <= t; k++)
        next += cost[k] = cost_of(&q->tx.pace, dqi_packet_len(b, first + k));
    if (k == 0) wait_until(q, next);
    return k;
}

void dqi_pace_spend(dq_queue *q, int64_t now, uint32_t n) {
    if (q->tx.pace.seen_speed > 0) {
        dqi_follow_spend(q, now, n);
        return;
    }
    if (q->tx.pace.seen_bps <= 0 && q->tx.pace.seen_pps <= 0) return;
    for (uint32_t i = 0; i < n; i++)
        q->tx.pace.next_ns += q->tx.timing->cost[i];
    dqi_tx_accuracy_paced(q->tx.timing, now, n);
}

void dqi_pace_idle(dq_queue *q, int64_t now) {
    double t = (double)(now - q->session->core.start_ns);
    q->tx.pace.was_idle = true;
    if (rate(&q->tx.pace.speed) > 0 || q->tx.pace.next_ns >= t) return;
    q->tx.pace.next_ns = t;
    q->tx.timing->dry = true;
    if (dqi_gauge_get(&q->tx.timing->due_ns) == 0 && !unpaced(q))
        atomic_store_explicit(&q->tx.timing->due_ns, now, memory_order_relaxed);
}
