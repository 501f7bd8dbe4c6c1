// arena.h: the life of the memory that a session's regions are slices of.
#ifndef DQI_ARENA_H
#define DQI_ARENA_H

#include "core/dq_core.h"

// Lays out and maps all regions, buffers a multiple of align bytes apart, and fills their pools.
int dqi_arena_open(dq_session *s, uint32_t align, dq_diag *diag);
// Sees to it that no packet is the first to touch its page. May block for long, see dqi_populate.
int dqi_arena_touch(dq_session *s, dq_diag *diag);
// Unmaps and frees the regions; the number of buffers that were not in their pools.
uint64_t dqi_arena_close(dq_session *s);
// Instead: the memory stays mapped for good, in no descriptor's name.
void dqi_arena_detach(dq_session *s);

#endif
