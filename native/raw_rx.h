// raw_rx.h: between raw.c, an interface's life, and raw_rx.c, its packets.
#ifndef DQI_RAW_RX_H
#define DQI_RAW_RX_H

#include "inbox.h"
#include "raw.h"

#define DQI_RAW_PIECES 256 // of one read, at most

// A receive queue of a port.
typedef struct dqi_raw_queue {
    dqi_inbox box;
    uint8_t order[DQ_MAX_QUEUES]; // lanes in the order in which it looks at them: its own first
} dqi_raw_queue;

// Where a lane's frames are looked at; whoever has the lane has it. Frame k is pieces [first[k], first[k +
// 1]).
typedef struct dqi_raw_desk {
    dqi_piece pieces[DQI_RAW_PIECES];
    uint32_t first[DQI_RAW_PIECES + 1];
    uint32_t total[DQI_RAW_PIECES]; // bytes of the frame, all pieces
    uint64_t off[DQI_RAW_PIECES];
    uint32_t len[DQI_RAW_PIECES]; // of the first piece
    uint32_t flow[DQI_RAW_PIECES];
    uint16_t queue[DQI_RAW_PIECES]; // ids
    uint32_t idx[DQI_RAW_PIECES];
    uint32_t ids[DQ_MAX_SEGS][DQI_RAW_PIECES]; // buffers for copies
    uint32_t lead;                             // dq_queue.lead of the queue whose packets are copied
    const dq_region *region;                   // dqi_lane.region
    const dq_queue *split;                     // dqi_lane.split
    int64_t now;
} dqi_raw_desk;

#endif
