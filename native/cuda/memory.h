// memory.h: what GPUs have of a session: regions in their memory, and the arena, which they reach in place.
#ifndef DQI_CUDA_MEMORY_H
#define DQI_CUDA_MEMORY_H

#include "core/session.h"
#include "cuda/cufile.h"
#include "cuda/gpu_memory.h"

// Regions of kind device on a GPU that shares the host's memory are to lie in pinned memory. Before the arena
// is laid out.
void dqi_cuda_share_regions(dq_session *s);
// Gives regions of kind device that the CPU doesn't have memory of their GPU, and lets GPUs reach the arena
// where a region is of kind host_pinned or device. No effect where no region is. The arena is laid out.
// Control thread.
int dqi_cuda_open_regions(dq_session *s, dq_diag *diag);
// The GPU of this number (-1: the session's first, or number 0), for a stage of the session: from now on it
// reaches the arena. `what` names the stage. NULL: diag says why. Control thread.
dqi_gpu *dqi_cuda_use(dq_session *s, int32_t number, const char *what, dq_diag *diag);
// Whether trial, which is given some of that GPU's memory for the call, likes it; false: diag says why, by
// trial or because there is no such memory for devices. `what` names who asks. Control thread.
typedef bool dqi_cuda_trial(void *arg, uint8_t *at, uint64_t bytes, dq_diag *diag);
bool dqi_cuda_try(int32_t number, const char *what, dqi_cuda_trial *trial, void *arg, dq_diag *diag);
// Takes it all back. Nothing on a GPU uses it any more.
void dqi_cuda_close_regions(dq_session *s);

// Lets cuFile write from the region, which lies in a GPU's memory, without copying it first; once. False: it
// won't, and why. Control thread.
bool dqi_cuda_file_memory(const dq_region *r, const dqi_cufile *lib, char *why, size_t len);

// What the region has of a GPU's memory; NULL: nothing.
const dqi_gpu_memory *dqi_cuda_memory_of(const dq_region *r);

// Whole pages of a GPU's memory as a DMA-BUF, by which another device reaches them: what a trial was given,
// or a region's, of which *bytes are in it. `what` names who asks. The caller closes the descriptor.
// DQ_NOT_SUPPORTED where the driver makes none. Control thread.
int dqi_cuda_dmabuf(uint8_t *at, uint64_t bytes, const char *what, int *fd, dq_diag *diag);
int dqi_cuda_region_dmabuf(const dq_region *r, int *fd, uint64_t *bytes, dq_diag *diag);

#endif
