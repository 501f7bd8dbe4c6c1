// k_ring.h: lists for a resident mover, which takes them one after the other without a launch for each.
#ifndef K_RING_H
#define K_RING_H

#include "kernels/k_move.h"

// Slot i % n has list i once seq is i + 1, which the host writes last (release).
typedef struct dqk_slot {
    dqk_list list; // without a conversion
    uint64_t seq;
} dqk_slot;

// The mover leaves when no list came for idle_ns: it writes its launch's number at `left`, looks once more,
// and takes that back where a list came. The host, having written seq, and behind a full fence, reads `left`:
// where it is the number of the last launch it launches the next one, which goes on where the last stopped.
typedef struct dqk_ring {
    uint64_t slots;      // address of n slots of host memory
    uint64_t state;      // address of 32 bytes of device memory, 0 before the first launch
    uint64_t left;       // address of 8 bytes of host memory, 0 before the first launch
    uint64_t launch;     // from 1
    uint64_t n, idle_ns; // n: a power of 2
} dqk_ring;

#endif
