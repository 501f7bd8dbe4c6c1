// tx_wait.h: descriptors that wait for a ticket of another transmit ring.
#ifndef DQI_PROXY_TX_WAIT_H
#define DQI_PROXY_TX_WAIT_H

#include "gpunetio/host/context.h"

// Looks whether the awaited ticket of a validated descriptor has completed. *done false: call again later.
// Returns GN_FAULT_WAIT if the context has no such ring, if the ticket, or one before it, failed, or if it
// did not complete within the context's limit, as in a cycle of rings. Poller's thread.
int dqi_gn_wait(dqi_gn_tx *t, const gn_desc *d, bool *done);

#endif
