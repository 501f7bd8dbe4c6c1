// readahead.h: a file read in pieces ahead of whoever uses them, over and over where asked for.
//
// A thread fills chunks while others are in use; on the virtual clock the user fills the next one. No file is
// mapped: one that is cut short meanwhile just ends. A pipe is read as it comes, once; on the virtual clock
// its user waits for it, a little at a time.
#ifndef DQI_READAHEAD_H
#define DQI_READAHEAD_H

#include "pipeline/iface.h"
#include "core/wake.h"

#include <pthread.h>

#define DQI_CHUNK_BYTES (1u << 20)
#define DQI_CHUNK_CARRY (384u << 10) // room in front of the bytes, for what the last chunk ended with
#define DQI_CHUNKS      4

typedef struct dqi_chunk {
    uint8_t *bytes; // DQI_CHUNK_CARRY bytes in front of them are there
    size_t len;
    bool last; // of the file
    int err;   // errno; 0: all is well
} dqi_chunk;

typedef struct dqi_readahead {
    int fd;
    bool stream;    // a pipe: at most what is there is read, and nothing a second time
    uint64_t at;    // where in the file the next chunk begins
    uint64_t loops; // times that the file is still to be read; 0: for ever
    bool done;      // nothing is left to be read
    dqi_chunk chunks[DQI_CHUNKS];
    _Atomic uint32_t filled; // chunks so far
    _Atomic uint32_t taken;
    _Atomic uint32_t quit;
    dqi_wake wake;
    pthread_t thread;
    bool threaded;
    dq_iface *iface; // whose queues are kicked
} dqi_readahead;

// Opens a file that is to be read `loops` times, "-" being standard input, and reads its first chunk, unless
// it is a pipe. An error says what is wrong with the file.
int dqi_readahead_open(dqi_readahead *r, const char *path, uint64_t loops, dq_iface *i, dq_diag *diag);
// Starts the thread.
int dqi_readahead_start(dqi_readahead *r);
// The chunk in use, k 0, or the one behind it, k 1; NULL: it isn't there yet. User's thread.
dqi_chunk *dqi_readahead_at(dqi_readahead *r, uint32_t k);
// Bytes of the file; 0: a pipe's are not known.
uint64_t dqi_readahead_size(const dqi_readahead *r);
// The user has done with the chunk in use.
void dqi_readahead_next(dqi_readahead *r);
// Works on a half-open one.
void dqi_readahead_close(dqi_readahead *r);

#endif
