// region.h: the arena's life, for session.c.
#ifndef DQI_REGION_H
#define DQI_REGION_H

#include "dqi.h"

#define DQI_MIN_ALIGN 64 // bytes: a cache line

// Lays out and maps all regions, buffers a multiple of align bytes apart, and fills their pools.
int dqi_arena_open(dq_session *s, uint32_t align, dq_diag *diag);
// Unmaps and frees the regions; the number of buffers that were not in their pools.
uint64_t dqi_arena_close(dq_session *s);
// The buffers, or groups, in the region's pool. Any thread.
uint32_t dqi_region_level(const dq_region *r);
// Bytes that the region takes in the arena.
static inline uint64_t dqi_region_bytes(const dq_region *r) {
    return (uint64_t)r->stride * r->group * r->n_groups;
}
// Whether this arena offset lies in the region.
static inline bool dqi_region_has(const dq_region *r, uint64_t off) {
    return off - r->offset < dqi_region_bytes(r);
}
// The region that holds this arena offset, or NULL.
dq_region *dqi_off_region(const dq_session *s, uint64_t off);
// The name of a queue that takes buffers of the region, or NULL.
const char *dqi_region_queue(const dq_session *s, const dq_region *r);

#endif
