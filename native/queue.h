// queue.h: what the transmit side, pacing and the session's end know of each other.
#ifndef DQI_QUEUE_H
#define DQI_QUEUE_H

#include "dqi.h"

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

// A burst of n packets with buffers for q; of its columns only off is filled.
int dqi_tx_take_burst(dq_queue *q, uint32_t n, dq_burst **out);
// dq_tx_send, but that nobody polls the queue or is woken.
int dqi_tx_put(dq_queue *q, dq_burst *b);
// True when nothing waits to be sent.
bool dqi_tx_idle(const dq_queue *q);
// Drop what is left, counted as stopped; pollers have ended.
void dqi_tx_drop_rest(dq_queue *q);
void dqi_rx_drop_rest(dq_queue *q);

#endif
