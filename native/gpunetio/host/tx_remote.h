// tx_remote.h: descriptors that access the memory of a connection's peer.
#ifndef DQI_PROXY_TX_REMOTE_H
#define DQI_PROXY_TX_REMOTE_H

#include "gpunetio/host/context.h"

// Whether a queue has suitable memory for the operations' words.
bool dqi_gn_remote_fits(const dq_queue *q);
// Whether a validated descriptor is a put, get or add over a connection.
bool dqi_gn_is_remote(const dqi_gn_tx *t, const gn_desc *d);
// Starts the operation: *op completes with it; NULL: no space now. Returns a gn_fault if it can't be
// executed. Poller's thread.
int dqi_gn_remote(dqi_gn_tx *t, const gn_desc *d, dq_op **op);

#endif
