// tx_timers.h: duration of operations of a transmit ring, from descriptor to completion.
#ifndef DQI_PROXY_TX_TIMERS_H
#define DQI_PROXY_TX_TIMERS_H

#include "gpunetio/host/context.h"

// Allocates the histograms if the context has timers. Returns false without memory.
bool dqi_gn_timers_open(dqi_gn_tx *t);
// Returns the time in ns; 0: no timers.
int64_t dqi_gn_timers_now(const dqi_gn_tx *t);
// Records n completed operations, taken at `since`. Poller's thread.
void dqi_gn_timers_note(dqi_gn_tx *t, uint32_t op, int64_t since, uint32_t n);
// Implements histogram of dqi_stage_ops.
bool dqi_gn_timers_histogram(const dq_stage *st, uint32_t k, dq_histogram *out);

#endif
