// binding.h: types shared by the files of this folder.
#ifndef DQI_BINDING_H
#define DQI_BINDING_H

#include "binding/dq_binding.h"
#include "core/region.h"
#include "cuda/gpu_memory.h"

#define DQI_NO_GUARD UINT32_MAX

typedef struct dqi_binding {
    dqi_bound bound; // first: the region's pointer points to it
    dq_binding conf; // with an own descriptor and a reference to the array
    uint64_t need;   // bytes of the region in whole pages
    // of a file
    uint64_t device, inode; // identify it
    bool fixed;             // its size cannot change
    uint32_t guard;         // DQI_NO_GUARD: none
    // of GPU memory
    dqi_gpu_memory imported; // from a descriptor
    cu_ptr opened;           // from a handle; 0: none
} dqi_binding;

// Returns the region's binding, or NULL.
static inline dqi_binding *dqi_binding_of(const dq_region *r) { return (dqi_binding *)(void *)r->bound; }

// Returns INVALID_PARAMETER with the message "cannot bind memory region NAME: " and the reason.
int dqi_refuse(const dq_region *r, dq_diag *diag, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
// Checks offset and size of the memory within a source of `all` bytes, and against the region: its buffers in
// whole pages of this size. Sets need.
int dqi_binding_fits(dq_region *r, uint64_t all, uint64_t page, dq_diag *diag);
// Refuses a binding whose memory an earlier region of the session has.
int dqi_binding_alone(const dq_region *r, dq_diag *diag);

// Implement check, map and release of bindings to files and host arrays, and of those to GPU memory.
int dqi_file_check(dq_region *r, dq_diag *diag);
int dqi_file_map(dq_region *r, uint8_t *to, dq_diag *diag);
// Creates the file of a region with DQ_BINDING_OWN, and sets descriptor, place and *size.
int dqi_shared_region(dq_region *r, uint64_t *size, dq_diag *diag);
int dqi_gpu_check(dq_region *r, dq_diag *diag);
void dqi_gpu_release(dqi_binding *b);

// Guards pages mapped from a file: where the file no longer has a page, an access gets zeroed private memory
// from there to the end of the range instead of SIGBUS. Returns the guard's number, or DQI_NO_GUARD: too
// many.
uint32_t dqi_guard_add(uint8_t *at, uint64_t bytes, uint64_t page);
void dqi_guard_remove(uint32_t guard);
// Does the same for pages from byte `from` on, before they are accessed: the kernel's accesses raise no
// signal.
void dqi_guard_replace(uint32_t guard, uint64_t from);
// Reports whether pages were replaced. Any thread.
bool dqi_guard_hit(uint32_t guard);

#endif
