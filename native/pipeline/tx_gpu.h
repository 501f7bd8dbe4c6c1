// tx_gpu.h: what lies in a GPU's memory is copied to the queue's own, pinned buffers before it is sent, by
// the GPU, one batch after the other; what came behind it waits for that.
#ifndef DQI_TX_GPU_H
#define DQI_TX_GPU_H

#include "pipeline/queue.h"

// Lets q send packets whose segments lie in these regions: device_only says which of them the CPU can't read.
// Any thread.
int dqi_tx_reach_gpu(dq_queue *q, uint32_t device_only, dq_region *const *regions, dq_diag *diag);
// Whether q can send b, of whose segments the CPU can't read some; from now on it can where a GPU has them.
bool dqi_tx_takes_gpu(dq_queue *q, const dq_burst *b);

// Has segment seg of packet i of b copied to `to`, in the CPU's memory; b is held until then. Poller's
// thread, as for all that follow.
void dqi_tx_bring(dq_queue *q, dq_burst *b, uint32_t seg, uint32_t i, uint8_t *to);
// c has all that was asked for; it is q's to keep until dqi_tx_brought.
void dqi_tx_bringing(dq_queue *q, dq_burst *c);
// The burst that was being brought, once it is there; empty where the GPU was lost, with its packets counted.
// NULL: none is, or it is not there yet, and q->next_ns says when to ask again.
dq_burst *dqi_tx_brought(dq_queue *q);
// Whether one is on its way.
bool dqi_tx_is_bringing(const dq_queue *q);
// The same at the end: waits for it, but no longer than the session does for a device. NULL: none is, or it
// never came.
dq_burst *dqi_tx_brought_last(dq_queue *q);
// Fine where nothing was ever brought.
void dqi_tx_gpu_free(dq_queue *q);

#endif
