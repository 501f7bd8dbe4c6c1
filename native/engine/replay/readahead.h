// readahead.h: reads a file in chunks ahead of its consumer, repeatedly if requested.
//
// A thread fills chunks while others are in use; on the virtual clock the consumer fills the next one itself.
// Files are not mapped, so a file truncated meanwhile just ends early. A pipe is read once, as data arrives;
// on the virtual clock its consumer waits for it in short steps.
#ifndef DQI_READAHEAD_H
#define DQI_READAHEAD_H

#include "core/wake.h"
#include "pipeline/iface.h"

#include <pthread.h>

#define DQI_CHUNK_BYTES (1u << 20)
#define DQI_CHUNK_CARRY (384u << 10) // room in front of the bytes for the remainder of the last chunk
#define DQI_CHUNKS      4

typedef struct dqi_chunk {
    uint8_t *bytes; // preceded by DQI_CHUNK_CARRY bytes of room
    size_t len;
    bool last; // of the file
    int err;   // errno; 0: success
} dqi_chunk;

typedef struct dqi_readahead {
    int fd;
    bool stream;    // a pipe: read once, as much as is available
    uint64_t at;    // file offset of the next chunk
    uint64_t loops; // remaining passes over the file; 0: unlimited
    bool done;      // everything was read
    dqi_chunk chunks[DQI_CHUNKS];
    _Atomic uint32_t filled; // number of chunks filled
    _Atomic uint32_t taken;
    _Atomic uint32_t quit;
    dqi_wake wake;
    pthread_t thread;
    bool threaded;
    dq_iface *iface; // interface whose queues are kicked
} dqi_readahead;

// Opens a file ("-": standard input) to be read `loops` times and reads its first chunk, unless it is a pipe.
// An error describes the problem with the file.
int dqi_readahead_open(dqi_readahead *r, const char *path, uint64_t loops, dq_iface *i, dq_diag *diag);
// Starts the reader thread.
int dqi_readahead_start(dqi_readahead *r);
// Returns the chunk in use (k 0) or the next one (k 1); NULL if it is not yet read. Consumer's thread.
dqi_chunk *dqi_readahead_at(dqi_readahead *r, uint32_t k);
// Returns the file's size in bytes; 0: unknown (a pipe).
uint64_t dqi_readahead_size(const dqi_readahead *r);
// Releases the chunk in use.
void dqi_readahead_next(dqi_readahead *r);
// Also closes a half-open one.
void dqi_readahead_close(dqi_readahead *r);

#endif
