// replay.h: a capture as packets in time: reads it record by record and says when each is due.
#ifndef DQI_REPLAY_H
#define DQI_REPLAY_H

#include "capture/capture_file.h"
#include "engine/replay/dq_replay.h"
#include "core/counters.h"
#include "engine/replay/readahead.h"
#include "engine/replay/remarks.h"

typedef struct dqi_replay {
    const dq_iface *iface;
    char path[DQ_ADDRESS_LEN];
    dqi_readahead ahead;
    dqi_capture capture;
    dqi_counters *c; // bad records are counted there
    // where it is
    uint8_t *p;              // in the chunk in use; NULL: before its first byte
    size_t left;             // bytes of it
    uint64_t pos;            // of p in the file
    uint64_t skip;           // bytes that belong to a record that isn't looked at
    dqi_capture_packet next; // valid: fetched and not taken
    bool valid, timed;       // timed: due_ns is known
    dqi_remarks remarks;
    const dqi_remark *remark; // of next
    // time
    uint64_t loop, packets;    // done; of this loop
    int64_t first_ns, last_ns; // file times of the first packet and of the latest one, of this loop;
                               // DQ_NO_TIME: none of its packets had one
    int64_t shift_ns;          // what this loop's times are moved on by
    int64_t base_ns;           // session time of the first packet
    int64_t due_ns;            // session time of `next`
    double spent_ns;           // at a rate: what the packets so far take
    bool begun;
    // for other threads
    _Atomic bool ended;
    _Atomic int64_t origin_ns; // file time of the very first packet that has one; DQ_NO_TIME: none
    _Atomic bool faulty;       // fault is written
    char fault[512];
    bool is_cut; // in its last record
    bool told_link, told_left_out;
} dqi_replay;

// Opens the file and looks at its first packet. The interface's conf says how it is replayed.
int dqi_replay_open(dqi_replay *r, dq_iface *i, const char *path, dqi_counters *c, dq_diag *diag);
// Real clock: reads ahead on a thread from here on.
int dqi_replay_start(dqi_replay *r);
void dqi_replay_close(dqi_replay *r); // works on a half-open one

// True when r->next is due at `now`; else *due is when to look again (the session's clock). busy: packets
// that were taken are still in use, so that their memory can't be given back; false then where it has to be.
// One thread at a time.
bool dqi_replay_next(dqi_replay *r, int64_t now, bool busy, int64_t *due);
// r->next was taken.
void dqi_replay_took(dqi_replay *r);

// Any thread.
static inline bool dqi_replay_ended(const dqi_replay *r) {
    return atomic_load_explicit(&r->ended, memory_order_acquire);
}
void dqi_replay_read(const dqi_replay *r, dq_source *out);
// What receive times are counted from: the time of its first packet that has one; 0: none has.
static inline int64_t dqi_replay_origin(const dqi_replay *r) {
    int64_t at = atomic_load_explicit(&r->origin_ns, memory_order_relaxed);
    return at == DQ_NO_TIME ? 0 : at;
}

#endif
