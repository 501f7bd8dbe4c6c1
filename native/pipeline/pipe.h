// pipe.h: pipes, and the dispatch of received bursts.
#ifndef DQI_PIPE_H
#define DQI_PIPE_H

#include "pipeline/stage.h"

struct dq_pipe {
    dq_queue *queue;
    uint32_t conn;
    uint32_t n;
    bool changes;      // modifies received packets, not only those of its own stages
    uint32_t *scratch; // batch_size indices, for the nodes in turn
    dqi_node nodes[];
};

// Progress of a burst through its queue's pipes; a stage may stall it.
typedef struct dqi_dispatch {
    bool active;     // a burst is being dispatched
    bool taken;      // by at least one pipe
    bool claimed;    // the queue's claim has run
    dq_burst *burst; // reference for the remaining pipes; NULL: `pipe` is the last
    dq_burst *cur;   // input of node `node` of pipe `pipe`
    uint32_t pipe, node, conn, n;
    uint64_t bytes;
} dqi_dispatch;

// Starts the dispatch of b, with its reference. No other dispatch may be active.
void dqi_dispatch_start(dq_queue *q, dq_burst *b);
// Continues the active dispatch. Returns true when done, false if a stage stalls it. Queue's poller.
bool dqi_dispatch_run(dq_queue *q);
// Drops the burst being dispatched, counted as stopped. The queue's poller has ended.
void dqi_dispatch_drop(dq_queue *q);

// Frees q's pipes; no dispatch may be active.
void dqi_pipes_free(dq_queue *q);

#endif
