// core.h: what the lower layers know of a session: its clock, memory, and report.
#ifndef DQI_CORE_H
#define DQI_CORE_H

#include "core/atomics.h"
#include "core/dq_core.h"

typedef struct dqi_burst_pool dqi_burst_pool;
typedef struct dqi_cuda_memory dqi_cuda_memory; // cuda/memory.h

#define DQI_MAX_REGIONS 256
#define DQI_MAX_NOTES   256

// The first member of every dq_session (pipeline/session.h).
typedef struct dqi_core {
    dq_session_conf conf;
    bool open; // dq_session_open has succeeded: regions are added by dq_region_join
    // clock
    int64_t start_ns, mono0_ns;
    _Atomic int64_t virtual_ns;
    // arena
    uint8_t *base;
    void *reserved; // the mapping that contains base
    uint64_t reserved_bytes;
    uint64_t huge_at;             // start of the part on huge pages
    uint64_t small_end, huge_end; // ends of the session's own memory in each part; bound memory follows
    uint64_t arena_bytes;         // bytes of CPU memory at the open; device-only regions follow
    uint64_t later_at, later_end; // offsets for regions added while the session is open
    uint32_t align;               // of buffers, bytes
    uint8_t *device;              // base of the emulated device memory
    uint64_t device_bytes;
    int fds[3];            // memfds: small pages, huge pages, device-only
    dqi_cuda_memory *cuda; // GPU memory of the session; NULL: none
    dq_region *regions[DQI_MAX_REGIONS];
    _Atomic uint32_t n_regions;
    bool heads;                     // some region has heads: bursts have head columns
    bool origins;                   // packets may have capture metadata: bursts have an origin column
    bool imms;                      // packets may have immediates: bursts have a column of them
    bool targets;                   // regions record destination addresses (peers.h)
    dqi_burst_pool *picks;          // descriptors of selections of at most picks_cap packets
    uint32_t picks_cap, picks_segs; // and of at most picks_segs segments
    dqi_spin notes_lock;
    char *notes[DQI_MAX_NOTES];
    uint32_t n_notes;
} dqi_core;

static inline dqi_core *dqi_core_of(const dq_session *s) { return (dqi_core *)(uintptr_t)s; }

static inline bool dqi_virtual(const dq_session *s) { return dqi_core_of(s)->conf.virtual_clock != 0; }

// Adds a line to the session's report. Any thread.
void dqi_note(dq_session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
// Frees the lines of the report.
void dqi_notes_free(dqi_core *core);

#endif
