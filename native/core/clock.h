// clock.h: the clocks of a session.
#ifndef DQI_CLOCK_H
#define DQI_CLOCK_H

#include "core/dq_core.h"

int64_t dqi_mono_ns(void);
void dqi_clock_start(dq_session *s);

// Makes session times of one socket's stamps, which the kernel takes from the wall clock. That may be stepped
// at any time; session times never go back and are never ahead of the session's clock. Zeroed: new. Owner's
// thread.
typedef struct dqi_stamps {
    int64_t ahead, was; // of the session's clock: the wall clock, and before its last step
    int64_t now;        // session time of the last look
    int64_t last;       // session time that was given last
} dqi_stamps;
// Looks at both clocks: after the stamps were made, before dqi_stamps_time.
void dqi_stamps_look(dqi_stamps *t, const dq_session *s);
// The same with what they show. Pure.
void dqi_stamps_set(dqi_stamps *t, int64_t wall_ns, int64_t now_ns);
// The session time of a stamp made before the last look and, but for some microseconds, after the stamps
// before it.
int64_t dqi_stamps_time(dqi_stamps *t, int64_t stamp_ns);

#endif
