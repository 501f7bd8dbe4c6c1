// tx_memory.h: descriptors that copy bytes between regions.
#ifndef DQI_PROXY_TX_MEMORY_H
#define DQI_PROXY_TX_MEMORY_H

#include "gpunetio/host/context.h"

// Returns how many bytes of memory a validated descriptor moves.
uint32_t dqi_gn_bytes(const gn_desc *d);
// Checks that the CPU can access the memory of a validated descriptor; returns a gn_fault.
int dqi_gn_memory_fault(const dqi_gn_tx *t, const gn_desc *d);
// Executes a validated descriptor other than a send. Returns false if incomplete: call again. Poller's
// thread.
bool dqi_gn_memory(dqi_gn_tx *t, const gn_desc *d);

#endif
