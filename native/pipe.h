// pipe.h: dispatch of received bursts, for rx.c and session.c.
#ifndef DQI_PIPE_H
#define DQI_PIPE_H

#include "dqi.h"

// Puts b, with its reference, at the start of q's pipes. Nothing may be under way.
void dqi_dispatch_start(dq_queue *q, dq_burst *b);
// Goes on with what is under way. True: nothing is left; false: a stage stalls it. Queue's poller.
bool dqi_dispatch_run(dq_queue *q);
// Drops what is under way, counted as stopped. The queue's poller has ended.
void dqi_dispatch_drop(dq_queue *q);

// Frees q's pipes; nothing is under way.
void dqi_pipes_free(dq_queue *q);

#endif
