// staged.h: sequential access to the bytes of a burst: data in a GPU's memory are copied through staging
// memory, the next 4 MiB while the current ones are used.
#ifndef DQI_STAGED_H
#define DQI_STAGED_H

#include "writer/staging.h"

// A position in a burst: byte `at` of segment seg of packet i.
typedef struct dqi_staged_place {
    uint32_t i, seg, at;
} dqi_staged_place;

// Contents of a buffer: bytes from device-only segments, up to position `end`.
typedef struct dqi_staged_run {
    dqi_staged_place last, end;
    uint32_t bytes;
    uint32_t offset; // of `last`, the position requested last
    _Atomic uint32_t lists;
} dqi_staged_run;

typedef struct dqi_staged {
    dqi_staging *staging; // NULL: not needed so far
    dq_burst *b;
    dqi_staged_run runs[2];
    uint32_t first, n; // active runs, first of them
    bool begun;        // a position was requested
    bool spent;        // the first run is used up
} dqi_staged;

// Begin and end a walk over b.
void dqi_staged_begin(dqi_staged *s, dq_burst *b);
void dqi_staged_end(dqi_staged *s);
// Returns the address of bytes of segment seg of packet i from `at` on; reduces *n to the bytes available
// there; positions only increase. NULL: the current buffer is used up, call dqi_staged_release and retry; or
// the GPU is lost (*n is 0).
const uint8_t *dqi_staged_bytes(dqi_staged *s, uint32_t seg, uint32_t i, uint32_t at, uint32_t *n);
// Releases a used-up buffer.
void dqi_staged_release(dqi_staged *s);

#endif
