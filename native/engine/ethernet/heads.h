// heads.h: frames that a device puts whole into a GPU's memory: a kernel brings their first DQ_HEAD bytes to
// the host, beside their buffers, before they are classified.
//
// Each read of a device queue fills a batch of its own, up to HEADS_BATCHES under way at a time, and its
// frames' heads are moves of a list (cuda/mover.h). Batches come back in the order of the reads. Whoever has
// the device queue calls.
#ifndef DQI_ETHERNET_HEADS_H
#define DQI_ETHERNET_HEADS_H

#include "engine/ethernet/ethernet_rx.h"
#include "core/region.h"

// Where the head of the packet in a region's buffer comes to lie.
static inline uint8_t *dqi_head_of(const dq_region *r, uint32_t buf) {
    return r->heads + (uint64_t)(buf - r->first_id) * DQ_HEAD;
}
static inline uint32_t dqi_head_len(uint32_t len) { return len < DQ_HEAD ? len : DQ_HEAD; }
// Whether the batch's frames lie on a GPU, each in one piece in a buffer, and their heads with the host.
static inline bool dqi_on_gpu(const dqi_eth_batch *d) { return d->region && d->region->heads; }

// Where the device queue's region has heads; else it does nothing. The driver is open. Control thread.
int dqi_eth_heads_open(dqi_port_queue *l, dq_diag *diag);
void dqi_eth_heads_close(dqi_port_queue *l); // with what is under way
// Reads at most `most` pieces and has their heads brought. The batch of the oldest read whose heads are here,
// and its pieces in *n, which the driver's release has no say about; it is the caller's until the next call.
// *n is 0: there is none yet, and the reader's next_ns says when to look again.
dqi_eth_batch *dqi_eth_heads_read(dqi_port_queue *l, uint32_t most, uint32_t *n);
// Whether the GPU is lost, or was given up: heads of what was read are not here, and never will be.
bool dqi_eth_heads_lost(const dqi_port_queue *l);
// Whether some read's heads are still to come.
bool dqi_eth_heads_coming(const dqi_port_queue *l);
// They have not come for so long that they are waited for no more; the GPU may write them for ever.
void dqi_eth_heads_give_up(dqi_port_queue *l, int64_t waited_ns);

#endif
