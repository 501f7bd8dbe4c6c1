// arena.h: creation and release of the arena that holds a session's regions.
#ifndef DQI_ARENA_H
#define DQI_ARENA_H

#include "core/dq_core.h"

// Computes the sizes of all regions, buffers a multiple of align bytes apart, and checks memory that regions
// are bound to.
int dqi_arena_measure(dq_session *s, uint32_t align, dq_diag *diag);
// Lays out and maps all regions, buffers a multiple of align bytes apart, and fills their pools.
int dqi_arena_open(dq_session *s, uint32_t align, dq_diag *diag);
// Prefaults all pages of the arena, so that packets take no page faults. May block for long, see
// dqi_populate.
int dqi_arena_touch(dq_session *s, dq_diag *diag);
// Asks the kernel to place the region on its NUMA node. Before its pages are touched.
void dqi_region_prefer_node(const dq_region *r);
// Unmaps and frees the regions; returns the number of buffers that were not in their pools.
uint64_t dqi_arena_close(dq_session *s);
// Alternative to dqi_arena_close: closes the memfds and leaves the memory mapped until the process exits.
void dqi_arena_detach(dq_session *s);

#endif
