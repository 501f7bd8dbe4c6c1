// clock.h: the clocks of a session.
#ifndef DQI_CLOCK_H
#define DQI_CLOCK_H

#include "core/dq_core.h"

int64_t dqi_mono_ns(void);
void dqi_clock_start(dq_session *s);

// Converts the timestamps of one socket, which the kernel takes from the wall clock, to session times. The
// wall clock may be stepped at any time; session times never go back and never exceed the session's clock.
// Zero-initialized. Owner's thread.
typedef struct dqi_stamps {
    int64_t ahead, was; // wall clock minus session clock, now and before its last step
    int64_t now;        // session time of the last dqi_stamps_look
    int64_t last;       // the session time returned last
} dqi_stamps;
// Reads both clocks. Call it after the timestamps were taken and before dqi_stamps_time.
void dqi_stamps_look(dqi_stamps *t, const dq_session *s);
// Does the same with the given clock values. Pure.
void dqi_stamps_set(dqi_stamps *t, int64_t wall_ns, int64_t now_ns);
// Returns the session time of a timestamp taken before the last dqi_stamps_look and, up to some microseconds,
// after the timestamps converted before.
int64_t dqi_stamps_time(dqi_stamps *t, int64_t stamp_ns);

#endif
