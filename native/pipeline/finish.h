// finish.h: the end of a session's stages.
#ifndef DQI_FINISH_H
#define DQI_FINISH_H

#include "core/dq_core.h"

#define DQI_END_NS INT64_C(5000000000) // without progress

// Finishes all stages; those whose finish may block at the same time, on threads of their own. One that lets
// go of no packet for s->end_ns is abandoned: what it has counts as stopped, and all that it may touch stays
// as it is for good. Pollers have ended.
void dqi_stages_finish(dq_session *s);
// Notes what a device did to the queue; the session's first is kept. Any thread.
void dqi_queue_fail(dq_queue *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Whether a stage was abandoned, or the session leaked its memory.
bool dqi_session_abandoned(const dq_session *s);

#endif
