// dq_replay.h: state of interfaces that replay a capture.
#ifndef DQ_REPLAY_H
#define DQ_REPLAY_H

#include "core/dq_core.h"

// State of a replay.
typedef struct dq_source {
    bool ended;      // no further packets: end of the last loop, an error, or no queue is read
    char fault[512]; // why the rest of the file cannot be read; empty: no error
} dq_source;
// Fills out; returns false if the interface replays no capture. Any thread, after the open.
bool dq_iface_source(const dq_iface *i, dq_source *out);

#endif
