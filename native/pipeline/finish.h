// finish.h: termination of a session's stages.
#ifndef DQI_FINISH_H
#define DQI_FINISH_H

#include "core/dq_core.h"

#define DQI_END_NS INT64_C(5000000000) // maximum time without progress

// Finishes all stages; those whose finish may block run concurrently on their own threads. A stage that
// releases no packet for s->end_ns is abandoned: its packets count as stopped, and everything it may access
// is leaked. Pollers have ended.
void dqi_stages_finish(dq_session *s);
// Records a device error of the queue; the session keeps the first one. Any thread.
void dqi_queue_fail(dq_queue *q, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Whether a stage was abandoned, or the session's memory was leaked.
bool dqi_session_abandoned(const dq_session *s);

#endif
