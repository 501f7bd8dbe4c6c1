// pinned.h: pages of the host that GPUs reach, for what isn't a session's.
#ifndef DQI_CUDA_PINNED_H
#define DQI_CUDA_PINNED_H

#include "cuda/gpu.h"

// Pages of the host's memory, registered with the GPU's driver where gpu is not NULL. *bytes: rounded up.
int dqi_pinned_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag);
void dqi_pinned_free(dqi_gpu *gpu, uint8_t *p, size_t bytes);
// The same, in reach of a process that has the file, too: each page at the offset that is its address. The
// file is -1 where ulimit -f limits files; then nobody else reaches them.
int dqi_shared_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag);
void dqi_shared_free(dqi_gpu *gpu, uint8_t *p, size_t bytes);
int dqi_shared_file(void);
// Registers whole pages that are there already, which have one address for the CPU and the GPU then.
int dqi_pinned_reach(dqi_gpu *gpu, uint8_t *at, size_t bytes, const char *what, dq_diag *diag);

#endif
