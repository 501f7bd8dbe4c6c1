// replay.h: reads a capture record by record and schedules its packets.
#ifndef DQI_REPLAY_H
#define DQI_REPLAY_H

#include "capture/capture_file.h"
#include "core/counters.h"
#include "engine/replay/dq_replay.h"
#include "engine/replay/readahead.h"
#include "engine/replay/remarks.h"

typedef struct dqi_replay {
    const dq_iface *iface;
    char path[DQ_ADDRESS_LEN];
    dqi_readahead ahead;
    dqi_capture capture;
    dqi_counters *c; // counts bad records
    // read position
    uint8_t *p;              // position in the chunk in use; NULL: before its first byte
    size_t left;             // remaining bytes in it
    uint64_t pos;            // file offset of p
    uint64_t skip;           // remaining bytes of a record that is skipped
    dqi_capture_packet next; // next packet, if valid
    bool valid, timed;       // timed: due_ns is set
    dqi_remarks remarks;
    const dqi_remark *remark; // of next
    // time
    uint64_t loop, packets;    // completed loops; packets of this loop
    int64_t first_ns, last_ns; // file times of the first and the latest packet of this loop; DQ_NO_TIME: no
                               // packet had a time
    int64_t shift_ns;          // added to this loop's times
    int64_t base_ns;           // session time of the first packet
    int64_t due_ns;            // session time of `next`
    double spent_ns;           // at a fixed rate: duration of the packets so far
    bool begun;
    // read by other threads
    _Atomic bool ended;
    _Atomic int64_t origin_ns; // file time of the first packet of all loops that has one; DQ_NO_TIME: none
    _Atomic bool failed;       // `error` is set
    char error[512];
    bool is_cut; // truncated in its last record
    bool reported_link, reported_left_out;
} dqi_replay;

// Opens the file and reads its first packet. The interface's conf specifies loops and timing.
int dqi_replay_open(dqi_replay *r, dq_iface *i, const char *path, dqi_counters *c, dq_diag *diag);
// Real clock: starts reading ahead on a thread.
int dqi_replay_start(dqi_replay *r);
void dqi_replay_close(dqi_replay *r); // works on a half-open one

// Returns true if r->next is due at `now`; else sets *due to the session time of the next poll. busy: packets
// taken earlier are still in use, so their chunk must not be released; returns false where that is required.
// One thread at a time.
bool dqi_replay_next(dqi_replay *r, int64_t now, bool busy, int64_t *due);
// Marks r->next as taken.
void dqi_replay_took(dqi_replay *r);

// Any thread.
static inline bool dqi_replay_ended(const dqi_replay *r) {
    return atomic_load_explicit(&r->ended, memory_order_acquire);
}
void dqi_replay_read(const dqi_replay *r, dq_source *out);
// Returns the origin of receive times: the time of the first packet that has one; 0: none.
static inline int64_t dqi_replay_origin(const dqi_replay *r) {
    int64_t at = atomic_load_explicit(&r->origin_ns, memory_order_relaxed);
    return at == DQ_NO_TIME ? 0 : at;
}

#endif
