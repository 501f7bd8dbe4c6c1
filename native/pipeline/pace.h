// pace.h: pacing of transmit queues.
#ifndef DQI_PACE_H
#define DQI_PACE_H

#include "core/dq_core.h"

// State of a paced queue: a packet leaves at next_ns or later, and advances it by its cost.
typedef struct dqi_pace {
    _Atomic double bps, pps;     // 0: not limited
    _Atomic double speed;        // speed at which receive times are followed (pace_follow.c); 0: not
    double next_ns;              // relative to the session's start
    double seen_bps, seen_pps;   // rates on which next_ns and the costs are based
    double per_byte, per_packet; // ns
    // when following receive times: next_ns is the due time of the last packet
    double seen_speed, first_ns; // first_ns: due time of the first counted packet
    int64_t last_ts;             // the latest receive time so far; DQ_NO_TIME: none
    bool was_idle;               // the queue was idle before these packets
} dqi_pace;

// Returns how many of n packets of len bytes may leave now; sets q->next_ns if none may.
uint32_t dqi_pace_allow(dq_queue *q, int64_t now, uint32_t len, uint32_t n);
// The same for packets [first, first + n) of b; with a pace at most batch_size.
uint32_t dqi_pace_count(dq_queue *q, int64_t now, dq_burst *b, uint32_t first, uint32_t n);
// Charges the first n packets counted by dqi_pace_count, which have left.
void dqi_pace_spend(dq_queue *q, int64_t now, uint32_t n);
// The same for a queue that follows receive times at a speed.
uint32_t dqi_follow_count(dq_queue *q, int64_t now, dq_burst *b, uint32_t first, uint32_t n, double speed);
void dqi_follow_spend(dq_queue *q, int64_t now, uint32_t n);
#define DQI_CATCH_UP_NS 10e6 // maximum delay that is caught up
// Reports that the queue was idle until now, so that it accumulates no credit.
void dqi_pace_idle(dq_queue *q, int64_t now);

#endif
