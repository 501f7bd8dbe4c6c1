// pinned.h: pages of the host that GPUs reach, for what isn't a session's.
#ifndef DQI_CUDA_PINNED_H
#define DQI_CUDA_PINNED_H

#include "cuda/gpu.h"

// Pages of the host's memory, registered with the GPU's driver where gpu is not NULL. *bytes: rounded up.
int dqi_pinned_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag);
void dqi_pinned_free(dqi_gpu *gpu, uint8_t *p, size_t bytes);
// Pages that no GPU reaches, and a process that has the file: each at the offset that is its address. The
// file is -1 where ulimit -f limits files; then nobody else reaches them.
int dqi_shared_new(size_t *bytes, uint8_t **out, const char *what, dq_diag *diag);
void dqi_shared_free(uint8_t *p, size_t bytes);
int dqi_shared_file(void);

#endif
