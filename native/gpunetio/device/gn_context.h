// gn_context.h: size and initial contents of a context's block.
#ifndef GN_CONTEXT_H
#define GN_CONTEXT_H

#include "core/dq_core.h"
#include "gpunetio/device/gn_ring.h"

typedef struct gn_ring_conf {
    uint32_t slots; // a power of two, 2 to 65536
    uint32_t ops;   // of a transmit ring: bit k: accepts gn_op k
    uint32_t queue; // its number in the row
    uint64_t first; // first ticket, 0 except in tests; below 2^63
    bool single;    // receive ring: each packet has one descriptor
    bool mlx5;      // transmit ring: entries in mlx5's format
} gn_ring_conf;

typedef struct gn_object_conf {
    uint32_t kind;         // gn_object_kind
    uint32_t tx, rx;       // numbers of rings, from 1; 0: none
    uint64_t place;        // of buffers: the first one
    uint32_t bytes, count; // of each, and how many
} gn_object_conf;

typedef struct gn_context_conf {
    const gn_ring_conf *tx, *rx, *sems;
    uint32_t n_tx, n_rx, n_sems;
    const gn_region *regions;
    uint32_t n_regions;
    const gn_object_conf *objects;
    uint32_t n_objects;
    uint64_t limit_ns; // default limit of waits
    bool exits;        // gn_context.exits
    uint64_t start_ns; // the session's start in ns since 1970
    uint64_t epoch;    // life of the context, from 1: incremented each time a kernel is restarted
} gn_context_conf;

// Checks conf. INVALID_PARAMETER names the invalid ring, and what: "kernel echo".
int gn_context_check(const char *what, const gn_context_conf *conf, dq_diag *diag);
// Returns the size of the block for a checked conf, a multiple of 4096 bytes.
uint64_t gn_context_bytes(const gn_context_conf *conf);
// Initializes the whole block, aligned to 128 bytes, before a kernel uses it. To place words outside the
// block, a caller changes the rows' offsets afterwards, and keeps copies of the rows for itself.
void gn_context_make(void *block, const gn_context_conf *conf);

#endif
