// memory.h: GPU memory of a session: regions on GPUs, and the arena, which GPUs access in place.
#ifndef DQI_CUDA_MEMORY_H
#define DQI_CUDA_MEMORY_H

#include "core/core.h"
#include "cuda/cufile.h"
#include "cuda/gpu_memory.h"

// Places regions of kind device on an integrated GPU in pinned host memory. Before the arena is laid out.
void dqi_cuda_share_regions(dq_session *s);
// Allocates GPU memory for device-only regions of kind device, and makes the arena accessible to GPUs if a
// region is of kind host_pinned or device. No effect otherwise. After the arena's layout. Control thread.
int dqi_cuda_open_regions(dq_session *s, dq_diag *diag);
// Returns the GPU of this number (-1: the session's first, or number 0) for a stage of the session, with
// access to the arena. `what` names the stage. NULL: the reason is in diag. Control thread.
dqi_gpu *dqi_cuda_use(dq_session *s, int32_t number, const char *what, dq_diag *diag);
// Calls trial with temporary memory of that GPU and returns its result; false: diag has the reason, set by
// trial or because devices cannot access the GPU's memory. `what` names the object in errors. Control thread.
typedef bool dqi_cuda_trial(void *arg, uint8_t *at, uint64_t bytes, dq_diag *diag);
bool dqi_cuda_try(int32_t number, const char *what, dqi_cuda_trial *trial, void *arg, dq_diag *diag);
// Frees all GPU memory and registrations. No GPU may be using them.
void dqi_cuda_close_regions(dq_session *s);

// Registers the region's GPU memory with cuFile, once, so that writes need no copy. False: the reason is in
// why. Control thread.
bool dqi_cuda_file_memory(const dq_region *r, const dqi_cufile *lib, char *why, size_t len);

// Returns the region's GPU memory, or NULL.
const dqi_gpu_memory *dqi_cuda_memory_of(const dq_region *r);

// Export whole pages of GPU memory as a DMA-BUF for another device: memory passed to a trial, or a region's,
// of *bytes. `what` names the object in errors. The caller closes the descriptor. DQ_NOT_SUPPORTED if the
// driver cannot export. Control thread.
int dqi_cuda_dmabuf(uint8_t *at, uint64_t bytes, const char *what, int *fd, dq_diag *diag);
int dqi_cuda_region_dmabuf(const dq_region *r, int *fd, uint64_t *bytes, dq_diag *diag);

#endif
