// math.h: kernels that NVIDIA's libraries bring.
#ifndef DQI_COMPUTE_MATH_H
#define DQI_COMPUTE_MATH_H

#include "compute/compute.h"

typedef struct dqi_math dqi_math;

// Makes what a library needs for one of its kernels (dq_math's numbers), and has it run in the stream.
int dqi_math_new(uint32_t number, const uint32_t *shape, cu_stream stream, const char *what, dqi_math **out,
                 dq_diag *diag);
// Its context is the thread's. NULL is fine.
void dqi_math_free(dqi_math *m);
// Puts a run on the stream; args are the addresses of its arguments. Any thread.
cu_result dqi_math_run(dqi_math *m, void **args);
// The call that runs it, in the library's words.
const char *dqi_math_call(const dqi_math *m);
// Whether what the arguments name is memory of the size that it reads and writes. b: the stage's burst, or
// NULL.
int dqi_math_check(const dqi_math *m, const char *what, const dq_kernel_arg *args, uint32_t n,
                   const dq_burst *b, dq_diag *diag);

#endif
