// pinned.h: host pages accessible to GPUs outside of sessions' arenas.
#ifndef DQI_CUDA_PINNED_H
#define DQI_CUDA_PINNED_H

#include "cuda/gpu.h"

// Allocates host pages, registered with the driver if gpu is not NULL. *bytes: rounded up to whole pages.
// They are freed once no persistent kernel runs in the program (resident.h).
int dqi_pinned_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag);
void dqi_pinned_free(dqi_gpu *gpu, uint8_t *p, size_t bytes);
// Does the same for pages that a process with the shared file can map: each page at the offset that is its
// address. The file is -1 if ulimit -f limits files; then the pages are private.
int dqi_shared_new(dqi_gpu *gpu, size_t *bytes, uint8_t **out, const char *what, dq_diag *diag);
void dqi_shared_free(dqi_gpu *gpu, uint8_t *p, size_t bytes);
int dqi_shared_file(void);
// Registers existing whole pages; fails unless they have one address for the CPU and the GPU.
int dqi_pinned_reach(dqi_gpu *gpu, uint8_t *at, size_t bytes, const char *what, dq_diag *diag);

#endif
