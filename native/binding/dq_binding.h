// dq_binding.h: regions in memory of the application, which outlives the session.
#ifndef DQ_BINDING_H
#define DQ_BINDING_H

#include "compute/dq_compute.h"
#include "core/dq_core.h"

// Source of the memory.
typedef enum dq_binding_source {
    DQ_BINDING_FILE,  // a file with memory: memfd, shared memory, hugetlbfs, DMA-BUF; or, for a region on a
                      // GPU, a descriptor of cuMemExportToShareableHandle
    DQ_BINDING_ARRAY, // an array
    DQ_BINDING_IPC,   // a handle of cuIpcGetMemHandle
    DQ_BINDING_OWN,   // a memfd of the session that contains only this region (dq_region_lend)
} dq_binding_source;

#define DQ_BINDING_REST  UINT64_MAX
#define DQ_BINDING_IPC_N 64 // bytes of a handle

typedef struct dq_binding {
    int32_t source;   // dq_binding_source
    int32_t fd;       // FILE: its descriptor, which the caller keeps; -1: path names it
    const char *path; // not read after the call
    dq_array *array;
    uint8_t handle[DQ_BINDING_IPC_N];
    uint64_t offset; // of the memory in its source, bytes
    uint64_t bytes;  // of the memory; DQ_BINDING_REST: to the end of the source
} dq_binding;

// Binds the region to the memory, in place of memory of its session. Before the open. The session references
// the memory until it is closed and never frees it. dq_session_open and dq_session_measure check the memory
// and return INVALID_PARAMETER if it does not fit the region, or overlaps another region's.
int dq_region_bind(dq_region *r, const dq_binding *b, dq_diag *diag);
// Makes such a binding for a region that is added to an open session (dq_region_join). INVALID_PARAMETER: the
// source; NOT_SUPPORTED: memory of its own (OWN).
int dq_bound_new(dq_session *s, const dq_region_conf *conf, const dq_binding *b, dqi_bound **out,
                 dq_diag *diag);
// Reports whether the file of the region was made shorter after the open, with a description in why. The
// missing part has been replaced by private memory, so that its users continue. Control thread.
bool dq_region_lost(const dq_region *r, char *why, size_t len);

// Returns a new read-only descriptor of the file of a region that is bound to DQ_BINDING_OWN, which the
// caller closes and may pass to other processes. NOT_SUPPORTED: another region; DQ_ESYS - errno. After the
// open.
int dq_region_lend(const dq_region *r);
// Creates a memfd of this size, which is sealed against changes of its size, for passing to other processes.
// Returns its descriptor, or -errno.
int dq_shared_file(const char *name, uint64_t bytes);

#endif
