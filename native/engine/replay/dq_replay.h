// dq_replay.h: interfaces that replay a capture.
#ifndef DQ_REPLAY_H
#define DQ_REPLAY_H

#include "core/dq_core.h"

// What there is to know of an interface that replays a capture.
typedef struct dq_source {
    bool ended;      // no more comes: its end, its last loop's, a fault; or no queue of it is read
    char fault[512]; // why the rest of the file can't be read; empty: it can
} dq_source;
// Fills out; false: the interface replays none. Any thread, after the open.
bool dq_iface_source(const dq_iface *i, dq_source *out);

#endif
