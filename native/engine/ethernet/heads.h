// heads.h: frames that the device stores completely in GPU memory. A GPU kernel copies their first DQ_HEAD
// bytes to host memory before classification.
//
// Each read of a device queue fills a batch, with up to HEADS_BATCHES batches in flight; the heads of its
// frames are copied as moves of a list (cuda/mover.h). Batches complete in the order of the reads. The caller
// of every function holds the device queue lock.
#ifndef DQI_ETHERNET_HEADS_H
#define DQI_ETHERNET_HEADS_H

#include "core/region.h"
#include "engine/ethernet/ethernet_rx.h"

// Returns the host address of the head of the packet in this buffer.
static inline uint8_t *dqi_head_of(const dq_region *r, uint32_t buf) {
    return r->heads + (uint64_t)(buf - r->first_id) * DQ_HEAD;
}
static inline uint32_t dqi_head_len(uint32_t len) { return len < DQ_HEAD ? len : DQ_HEAD; }
// Returns true if the batch's frames are on a GPU, each in one piece in a buffer, with their heads on the
// host.
static inline bool dqi_on_gpu(const dqi_eth_batch *d) { return d->region && d->region->heads; }

// Prepares a device queue whose region has heads; a no-op for others. The driver is open. Control thread.
int dqi_eth_heads_open(dqi_port_queue *l, dq_diag *diag);
void dqi_eth_heads_close(dqi_port_queue *l); // also frees the batches in flight
// Reads at most `most` pieces and starts copying their heads. Returns the batch of the oldest read whose
// heads are complete, valid until the next call, with its pieces in *n; the driver's release does not affect
// them. *n is 0 if none is complete; the reader's next_ns is then the time of the next poll.
dqi_eth_batch *dqi_eth_heads_read(dqi_port_queue *l, uint32_t most, uint32_t *n);
// Returns true if the GPU is lost or was given up: heads of frames already read will never arrive.
bool dqi_eth_heads_lost(const dqi_port_queue *l);
// Returns true if the heads of a read are still being copied.
bool dqi_eth_heads_coming(const dqi_port_queue *l);
// Gives up waiting for heads after a timeout; the GPU may still write them at any later time.
void dqi_eth_heads_give_up(dqi_port_queue *l, int64_t waited_ns);

#endif
