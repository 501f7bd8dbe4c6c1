// region.h: regions of packet buffers in the session's arena (arena.h).
#ifndef DQI_REGION_H
#define DQI_REGION_H

#include "core/atomics.h"
#include "core/dq_core.h"

typedef struct dqi_pool dqi_pool;
typedef struct dqi_peer dqi_peer; // peers.h
typedef struct dqi_target dqi_target;
typedef struct dqi_gpu dqi_gpu; // cuda/gpu.h

// A group whose buffers are allocated one by one; the spare holds one reference of it.
typedef struct dqi_spare {
    uint32_t id, used; // id DQI_NO_BUF: no group
} dqi_spare;

// Memory of the application that a region uses in place of the session's own (binding/binding.h). The control
// thread calls its functions.
struct dqi_bound {
    // Compares the memory with the region's size and place (r->cpu), and sets the fields below. After the
    // region's size is known, before the arena is laid out. INVALID_PARAMETER: it does not fit.
    int (*check)(dq_region *r, dq_diag *diag);
    // Maps the memory of a region that the CPU can access at `to`, in whole pages.
    int (*map)(dq_region *r, uint8_t *to, dq_diag *diag);
    // Releases the session's hold on the memory, which is no longer in use. The memory itself stays.
    void (*release)(dqi_bound *b);
    int fd;          // file with the memory; -1: GPU memory
    uint64_t at;     // offset of the region in the file
    bool huge;       // the file lies on huge pages
    bool own;        // the file is the session's, for this region only
    dqi_gpu *gpu;    // GPU memory: the GPU that has it,
    uint8_t *device; // its address there,
    uint64_t bytes;  // and its size, in whole pages
};

// A fixed pool of packet buffers. Buffer ids are unique in the session: first_id .. first_id + num_bufs - 1.
struct dq_region {
    dq_region_conf conf;
    dq_session *session;
    uint8_t *base;   // base of the arena
    uint64_t offset; // arena offset of the region
    uint32_t stride;
    uint32_t headroom; // bytes before each packet: DQ_HEADROOM where queues use it, else 0
    uint32_t first_id;
    uint32_t n_ids;    // ids reserved from first_id on; does not change while the session is open
    uint64_t space;    // bytes reserved at offset, likewise
    _Atomic bool gone; // deleted; a later region may take its ids and its space
    uint32_t want_bytes, want_least; // dqi_region_want_groups
    bool huge;                       // lies on huge pages
    bool cpu;                        // the CPU can access it, at base + offset
    dqi_bound *bound;                // memory of the application; NULL: the session's own
    dqi_pool *pool;
    // Reference counts of super-buffers (UDP GRO, framed TCP); NULL where each buffer has one user. Kept
    // outside packet memory.
    _Atomic uint32_t *holders;
    // Groups: the pool allocates `group` adjacent buffers under the first one's id, so that packets may cross
    // buffers; 1: no groups. across[k]: the packets of group k cross buffers and have one peer.
    uint32_t group, n_groups;
    uint8_t *across;
    _Atomic(dqi_peer *) peers;     // one per buffer; NULL: not recorded
    _Atomic(dqi_target *) targets; // likewise
    _Atomic(uint32_t *) loops;     // likewise
    uint8_t *device;               // device address of the region, or of its emulation; NULL: the CPU address
    dqi_gpu *gpu;                  // the GPU that has the memory; NULL: host memory
    bool nic;                      // a network device writes to its GPU memory
    bool whole;                    // a queue receives whole packets into GPU memory
    uint8_t *heads; // if whole: host memory for the first DQ_HEAD bytes of each buffer's packet
    dqi_spin spare_lock;
    dqi_spare spare; // destination of compacted packets
};

#define DQI_NO_BUF UINT32_MAX

// Allocates n buffer ids from the region; returns n or 0, never fewer. Any thread.
uint32_t dqi_bufs_alloc(dq_region *r, uint32_t *ids, uint32_t n);
// Allocates up to n buffer ids; returns the number obtained.
uint32_t dqi_bufs_some(dq_region *r, uint32_t *ids, uint32_t n);
// Frees buffers of any regions; skips DQI_NO_BUF; drops one reference of a super-buffer. Any thread.
void dqi_bufs_free(dq_session *s, const uint32_t *ids, uint32_t n);
dq_region *dqi_buf_region(const dq_session *s, uint32_t id);
// Adds a reference to a buffer of a region with reference counts. The caller must hold one already.
void dqi_buf_hold(dq_region *r, uint32_t id);
// Allocates the region's reference counts; before open.
int dqi_region_share(dq_region *r, dq_diag *diag);
// Requests at least `least` groups, each with at least this many bytes behind one headroom; a region that has
// room for fewer remains ungrouped. Before the arena is laid out.
void dqi_region_want_groups(dq_region *r, uint32_t bytes, uint32_t least);
// Returns the next buffer of *s, from a new group if that one is used up, or DQI_NO_BUF. The caller adds a
// reference to its group. One caller at a time.
uint32_t dqi_spare_take(dq_region *r, dqi_spare *s);
// Returns the first buffer of the buffer's group.
static inline uint32_t dqi_group_of(const dq_region *r, uint32_t id) {
    return id - (id - r->first_id) % r->group;
}
// Returns the arena offset of the packet in buffer id, just after the headroom.
static inline uint64_t dqi_buf_off(const dq_region *r, uint32_t id) {
    return r->offset + (uint64_t)(id - r->first_id) * r->stride + r->headroom;
}

#define DQI_MIN_ALIGN 64 // bytes: a cache line

// Rounds v up to a multiple of `to`.
static inline uint64_t dqi_round_up(uint64_t v, uint64_t to) { return (v + to - 1) / to * to; }
// Returns the size of a small page in bytes.
uint32_t dqi_page_size(void);
#define DQI_HUGE_PAGE (2u << 20) // bytes of the huge pages in use
// Returns the stride of buffers: headroom + buf_size, rounded up to align. Without headroom, buffers are also
// aligned to the largest power of two that divides buf_size, at most a page.
uint32_t dqi_stride(uint32_t buf_size, uint32_t headroom, uint32_t align);
// Computes the stride and the groups of a region, before the arena is laid out.
int dqi_region_size(dq_region *r, uint32_t align, dq_diag *diag);
// Fills the pools of all regions, after the arena is laid out.
int dqi_pools_fill(dq_session *s, dq_diag *diag);
// Frees all regions; returns the number of buffers that were not in their pools.
uint64_t dqi_regions_free(dq_session *s);
// Reverses the pool, so that buffers allocated together are adjacent in ascending order. Once, at the open.
void dqi_region_ascend(dq_region *r);
// Returns the number of buffers, or groups, in the region's pool. Any thread.
uint32_t dqi_region_level(const dq_region *r);
// Returns the region's size in the arena in bytes.
static inline uint64_t dqi_region_bytes(const dq_region *r) {
    return (uint64_t)r->stride * r->group * r->n_groups;
}
// Returns the file that backs a region that the CPU can access, and the region's offset in it.
int dqi_region_file(const dq_region *r, uint64_t *at);
// Reports whether the arena offset lies in the region.
static inline bool dqi_region_has(const dq_region *r, uint64_t off) { return off - r->offset < r->space; }
// Checks the configuration of a new region. Returns DQ_OK, or DQ_INVALID_PARAMETER with a diag.
int dqi_region_check(const dq_region_conf *conf, dq_diag *diag);
// Appends an empty region with conf.num_bufs ids to the session's list. Control thread.
int dqi_region_append(dq_session *s, const dq_region_conf *conf, dq_region **out, dq_diag *diag);
// Fills the region's pool, with all of its buffers free. Returns 0 or -ENOMEM.
int dqi_pool_fill(dq_region *r);
// Returns the number of buffers, or groups, that are neither in the pool nor the spare. Any thread.
uint32_t dqi_region_out(dq_region *r);
// Frees what is recorded for each of the region's buffers. None of them may be in use.
void dqi_region_forget(dq_region *r);
// Returns the region that contains the arena offset, or NULL.
dq_region *dqi_off_region(const dq_session *s, uint64_t off);

#endif
