// gn_context.h: a context's block: how large it is, and what it says before a kernel begins.
#ifndef GN_CONTEXT_H
#define GN_CONTEXT_H

#include "core/dq_core.h"
#include "gpunetio/device/gn_ring.h"

typedef struct gn_ring_conf {
    uint32_t slots; // a power of two, 2 to 65536
    uint32_t ops;   // of a transmit ring: bit k: it takes gn_op k
    uint32_t queue; // the number that it has in the row
    uint64_t first; // its first ticket, 0 but in tests; below 2^63
    bool single;    // of a receive ring: each packet has one descriptor
} gn_ring_conf;

typedef struct gn_context_conf {
    const gn_ring_conf *tx, *rx, *sems;
    uint32_t n_tx, n_rx, n_sems;
    const gn_region *regions;
    uint32_t n_regions;
    uint64_t limit_ns; // of waits that name none
    uint64_t epoch;    // the context's life, from 1: one more each time that a kernel is started anew
} gn_context_conf;

// INVALID_PARAMETER names the ring at fault, and what: "kernel echo".
int gn_context_check(const char *what, const gn_context_conf *conf, dq_diag *diag);
// Bytes of the block of a conf that was checked, a multiple of 4096.
uint64_t gn_context_bytes(const gn_context_conf *conf);
// Writes the whole block, at a multiple of 128, while no kernel has it. Whoever wants words elsewhere than in
// the block changes the rows' offsets then, and copies rows for itself.
void gn_context_make(void *block, const gn_context_conf *conf);

#endif
