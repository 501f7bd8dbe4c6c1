// ethernet_rx.h: between ethernet.c, an interface's life, and ethernet_rx.c, its packets.
#ifndef DQI_ETHERNET_RX_H
#define DQI_ETHERNET_RX_H

#include "pipeline/inbox.h"
#include "engine/ethernet/ethernet.h"

#define DQI_ETH_PIECES 256 // of one read, at most

// A receive queue of a port.
typedef struct dqi_eth_queue {
    dqi_inbox box;
    uint8_t order[DQ_MAX_QUEUES]; // device queues in the order in which it looks at them: its own first
} dqi_eth_queue;

// Where a device queue's frames are looked at; whoever has the device queue has it. Frame k is pieces
// [first[k], first[k + 1]).
typedef struct dqi_eth_batch {
    dqi_piece pieces[DQI_ETH_PIECES];
    uint32_t first[DQI_ETH_PIECES + 1];
    uint32_t total[DQI_ETH_PIECES]; // bytes of the frame, all pieces
    uint64_t off[DQI_ETH_PIECES];
    uint32_t len[DQI_ETH_PIECES]; // of the first piece
    uint32_t flow[DQI_ETH_PIECES];
    uint16_t queue[DQI_ETH_PIECES]; // ids
    uint32_t idx[DQI_ETH_PIECES];
    uint32_t ids[DQ_MAX_SEGS][DQI_ETH_PIECES]; // buffers for copies
    uint32_t lead;                             // dq_queue.lead of the queue whose packets are copied
    const dq_region *region; // dqi_port_queue.region; with heads, those are brought (heads.h)
    const dq_queue *split;   // dqi_port_queue.split
    int64_t now;
} dqi_eth_batch;

#endif
