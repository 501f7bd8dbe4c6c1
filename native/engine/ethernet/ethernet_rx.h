// ethernet_rx.h: shared by ethernet.c (setup of an interface) and ethernet_rx.c (reception).
#ifndef DQI_ETHERNET_RX_H
#define DQI_ETHERNET_RX_H

#include "engine/ethernet/ethernet.h"
#include "pipeline/steering/inbox.h"

#define DQI_ETH_PIECES 256 // maximum of one read

// Receive queue of a port.
typedef struct dqi_eth_queue {
    dqi_inbox box;
    uint8_t order[DQ_MAX_QUEUES]; // device queues of the open in polling order: its own first
    dqi_port_queue *own;          // of a queue that was added: the device queue that it alone reads; NULL
} dqi_eth_queue;

// Working memory for the classification of a device queue's frames, protected by the device queue lock. Frame
// k consists of pieces [first[k], first[k + 1]).
typedef struct dqi_eth_batch {
    dqi_piece pieces[DQI_ETH_PIECES];
    uint32_t first[DQI_ETH_PIECES + 1];
    uint32_t total[DQI_ETH_PIECES]; // bytes of the frame, all pieces
    uint64_t off[DQI_ETH_PIECES];
    uint32_t len[DQI_ETH_PIECES]; // length of the first piece
    uint32_t flow[DQI_ETH_PIECES];
    uint16_t queue[DQI_ETH_PIECES]; // queue ids
    uint32_t idx[DQI_ETH_PIECES];
    uint32_t ids[DQ_MAX_SEGS][DQI_ETH_PIECES]; // buffers for copies
    uint32_t lead;                             // dq_queue.lead of the destination queue
    const dq_region *region;                   // dqi_port_queue.region; if it has heads, heads.h copies them
    const dq_queue *split;                     // dqi_port_queue.split
    int64_t now;
} dqi_eth_batch;

#endif
