// tx_memory.h: descriptors that move bytes between regions.
#ifndef DQI_PROXY_TX_MEMORY_H
#define DQI_PROXY_TX_MEMORY_H

#include "gpunetio/host/context.h"

// Whether the CPU reaches what a checked descriptor names: a gn_fault.
int dqi_gn_memory_fault(const dqi_gn_tx *t, const gn_desc *d);
// Does what a checked descriptor other than a send says. False: not all of it yet, the same again later.
// Poller's thread.
bool dqi_gn_memory(dqi_gn_tx *t, const gn_desc *d);

#endif
