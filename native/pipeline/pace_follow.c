// pace_follow.c: sends packets with the gaps of their receive times, divided by a speed. Each is due one gap
// after the due time of the previous one. A packet that arrives later leaves immediately, and the following
// ones keep their distance from its due time, unless that is more than DQI_CATCH_UP_NS ago: then the schedule
// is shifted. Packets without a receive time leave with the previous one.
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/tx_accuracy.h"

#include <math.h>

void dq_tx_follow(dq_queue *q, double speed) {
    atomic_store(&q->tx.pace.bps, 0);
    atomic_store(&q->tx.pace.pps, 0);
    atomic_store(&q->tx.pace.speed, speed);
    dqi_queue_kick(q);
}

// Applies a change made by dq_tx_follow.
static void follow_change(dq_queue *q, double speed) {
    if (speed == q->tx.pace.seen_speed) return;
    q->tx.pace.seen_speed = speed;
    q->tx.pace.last_ts = DQ_NO_TIME;
    q->tx.timing->fresh = true;
}

// Returns the gap in ns between the previous packet and one with this receive time.
static double gap_of(int64_t last, int64_t ts, double speed) {
    return last == DQ_NO_TIME || ts <= last ? 0 : (double)(ts - last) / speed;
}

// Returns when the first packet is due, relative to the session's start.
static double first_due(dq_queue *q, double t, double gap) {
    double due = q->tx.pace.last_ts == DQ_NO_TIME ? t : q->tx.pace.next_ns + gap;
    if (q->tx.pace.was_idle) q->tx.timing->dry = due < t;
    q->tx.pace.was_idle = false;
    return due < t - DQI_CATCH_UP_NS ? t - DQI_CATCH_UP_NS : due;
}

uint32_t dqi_follow_count(dq_queue *q, int64_t now, dq_burst *b, uint32_t first, uint32_t n, double speed) {
    follow_change(q, speed);
    dqi_burst_columns(b);
    const double t = (double)(now - q->session->core.start_ns);
    int64_t last = q->tx.pace.last_ts, *seen = q->tx.timing->asked;
    double due = 0, *gap = q->tx.timing->cost;
    uint32_t k = 0;
    if (n > q->conf.batch_size) n = q->conf.batch_size;
    for (; k < n; k++) {
        int64_t ts = b->ts[first + k];
        gap[k] = gap_of(last, ts, speed);
        due = k == 0 ? first_due(q, t, gap[0]) : due + gap[k];
        if (due > t) break;
        if (k == 0) q->tx.pace.first_ns = due;
        if (ts > last) last = ts;
        seen[k] = last;
    }
    if (k == 0) {
        int64_t at = q->session->core.start_ns + (int64_t)ceil(due);
        if (at < q->next_ns) q->next_ns = at;
    }
    return k;
}

void dqi_follow_spend(dq_queue *q, int64_t now, uint32_t n) {
    double due = q->tx.pace.first_ns;
    for (uint32_t k = 1; k < n; k++)
        due += q->tx.timing->cost[k];
    q->tx.pace.next_ns = due;
    q->tx.pace.last_ts = q->tx.timing->asked[n - 1];
    dqi_tx_accuracy_followed(q->tx.timing, now, n);
}
