// tx_remote.h: descriptors that work on the memory of a connection's peer.
#ifndef DQI_PROXY_TX_REMOTE_H
#define DQI_PROXY_TX_REMOTE_H

#include "gpunetio/host/context.h"

// Whether a queue has memory for what operations bring with them.
bool dqi_gn_remote_fits(const dq_queue *q);
// Whether a checked descriptor is one: put, get or add over a connection.
bool dqi_gn_is_remote(const dqi_gn_tx *t, const gn_desc *d);
// Begins it: *op ends with it; NULL: there is no room for it now. Else a gn_fault: it can't be done. Poller's
// thread.
int dqi_gn_remote(dqi_gn_tx *t, const gn_desc *d, dq_op **op);

#endif
