// tx_timers.h: how long operations of a transmit ring took, from their descriptor until they were done.
#ifndef DQI_PROXY_TX_TIMERS_H
#define DQI_PROXY_TX_TIMERS_H

#include "gpunetio/host/context.h"

// What the context is to time, with timers. False: no memory.
bool dqi_gn_timers_open(dqi_gn_tx *t);
// ns now; 0: the ring has no timers.
int64_t dqi_gn_timers_now(const dqi_gn_tx *t);
// n operations that were taken at `since` are done. Poller's thread.
void dqi_gn_timers_note(dqi_gn_tx *t, uint32_t op, int64_t since, uint32_t n);
// dqi_stage_ops.histogram.
bool dqi_gn_timers_histogram(const dq_stage *st, uint32_t k, dq_histogram *out);

#endif
