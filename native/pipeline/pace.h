// pace.h: when packets of a transmit queue may leave.
#ifndef DQI_PACE_H
#define DQI_PACE_H

#include "core/dq_core.h"

// Software pacing: a packet leaves when its time has come; each moves the time on by what it costs at the
// rate.
typedef struct dqi_pace {
    _Atomic double bps, pps;     // 0: not limited
    _Atomic double speed;        // of the receive times that it follows (pace_follow.c); 0: none
    double next_ns;              // relative to the session's start
    double seen_bps, seen_pps;   // at the last look: next_ns and these two follow from them
    double per_byte, per_packet; // ns
    // follows receive times: next_ns is when the last packet was due
    double seen_speed, first_ns; // first_ns: when the first of the counted packets is due
    int64_t last_ts;             // the latest receive time so far; DQ_NO_TIME: none
    bool was_idle;               // the queue had nothing to send before these packets
} dqi_pace;

// Packets of len bytes, at most n, that the pace lets leave now; sets q->next_ns when none may.
uint32_t dqi_pace_allow(dq_queue *q, int64_t now, uint32_t len, uint32_t n);
// The same for packets [first, first + n) of b; where there is a pace, at most batch_size.
uint32_t dqi_pace_count(dq_queue *q, int64_t now, dq_burst *b, uint32_t first, uint32_t n);
// The first n of those that dqi_pace_count counted have left: charges them.
void dqi_pace_spend(dq_queue *q, int64_t now, uint32_t n);
// The same for a queue that follows receive times, at a speed.
uint32_t dqi_follow_count(dq_queue *q, int64_t now, dq_burst *b, uint32_t first, uint32_t n, double speed);
void dqi_follow_spend(dq_queue *q, int64_t now, uint32_t n);
#define DQI_CATCH_UP_NS 10e6 // what a queue may be late by and catch up
// The queue had nothing to send until now: no credit is gathered.
void dqi_pace_idle(dq_queue *q, int64_t now);

#endif
