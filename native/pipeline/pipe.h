// pipe.h: pipes, and the dispatch of received bursts.
#ifndef DQI_PIPE_H
#define DQI_PIPE_H

#include "pipeline/stage.h"

struct dq_pipe {
    dq_queue *queue;
    uint32_t conn;
    uint32_t n;
    bool changes;      // what comes, not what a stage of it made
    uint32_t *scratch; // batch_size indices, for the nodes in turn
    dqi_node nodes[];
};

// How far a burst has come through its queue's pipes; a stage may stall it.
typedef struct dqi_dispatch {
    bool active;     // a burst is under way
    bool taken;      // by a pipe at least
    bool claimed;    // what the queue's claim takes is taken
    dq_burst *burst; // the reference for the pipes to come; NULL: `pipe` is the last
    dq_burst *cur;   // before node `node` of pipe `pipe`
    uint32_t pipe, node, conn, n;
    uint64_t bytes;
} dqi_dispatch;

// Puts b, with its reference, at the start of q's pipes. Nothing may be under way.
void dqi_dispatch_start(dq_queue *q, dq_burst *b);
// Goes on with what is under way. True: nothing is left; false: a stage stalls it. Queue's poller.
bool dqi_dispatch_run(dq_queue *q);
// Drops what is under way, counted as stopped. The queue's poller has ended.
void dqi_dispatch_drop(dq_queue *q);

// Frees q's pipes; nothing is under way.
void dqi_pipes_free(dq_queue *q);

#endif
