// tx_gpu.h: sending from a GPU's memory: the GPU copies packets to the queue's pinned buffers first, one
// batch at a time; later bursts wait.
#ifndef DQI_TX_GPU_H
#define DQI_TX_GPU_H

#include "pipeline/queue.h"

// Enables q to send packets from these regions; bits in device_only mark those the CPU can't read. Any
// thread.
int dqi_tx_reach_gpu(dq_queue *q, uint32_t device_only, dq_region *const *regions, dq_diag *diag);
// Whether q can send b, which has segments the CPU can't read; enables q for them if they are on a GPU.
bool dqi_tx_takes_gpu(dq_queue *q, const dq_burst *b);

// Starts a copy of segment seg of packet i of b to `to`, in the CPU's memory; b is referenced until it
// completes. Poller's thread, as for the following functions.
void dqi_tx_bring(dq_queue *q, dq_burst *b, uint32_t seg, uint32_t i, uint8_t *to);
// Submits the copies into c, which q owns until dqi_tx_brought returns it.
void dqi_tx_bringing(dq_queue *q, dq_burst *c);
// Returns the burst being copied once complete; without packets, counted as dropped, if the GPU was lost.
// NULL: none, or not complete yet, with q->next_ns set to the next check.
dq_burst *dqi_tx_brought(dq_queue *q);
// Whether a burst is being copied.
bool dqi_tx_is_bringing(const dq_queue *q);
// Waits for the burst being copied, limited by the session's device timeout, and returns it. NULL: none, or
// it did not complete.
dq_burst *dqi_tx_brought_last(dq_queue *q);
// Frees the copy state, if any.
void dqi_tx_gpu_free(dq_queue *q);

#endif
