// staged.h: a walk over the bytes of a burst, for whoever needs them one after the other: what lies in a
// GPU's memory comes through staging memory, the next 4 MiB while these are used.
#ifndef DQI_STAGED_H
#define DQI_STAGED_H

#include "writer/staging.h"

// A place in a burst: byte `at` of segment seg of packet i.
typedef struct dqi_staged_place {
    uint32_t i, seg, at;
} dqi_staged_place;

// What a buffer has: bytes up to the place `end`, of segments that the CPU can't read.
typedef struct dqi_staged_run {
    dqi_staged_place last, end;
    uint32_t bytes;
    uint32_t offset; // of the place `last`, the last that was asked for
    _Atomic uint32_t lists;
} dqi_staged_run;

typedef struct dqi_staged {
    dqi_staging *staging; // NULL: none was needed yet
    dq_burst *b;
    dqi_staged_run runs[2];
    uint32_t first, n; // runs that are under way or there
    bool begun;        // something was asked for
    bool spent;        // nothing of the first one is needed that was not found
} dqi_staged;

// A walk over b begins, and ends, whatever was asked for.
void dqi_staged_begin(dqi_staged *s, dq_burst *b);
void dqi_staged_end(dqi_staged *s);
// Where the CPU finds bytes of segment seg of packet i from `at` on, of which there are *n, and says how many
// lie there; places only go forward. NULL: what was found before stands in the way, call dqi_staged_release
// and then again; or the GPU is lost (*n is 0).
const uint8_t *dqi_staged_bytes(dqi_staged *s, uint32_t seg, uint32_t i, uint32_t at, uint32_t *n);
// What was found is not needed any more.
void dqi_staged_release(dqi_staged *s);

#endif
