// math.h: kernels of NVIDIA's libraries.
#ifndef DQI_COMPUTE_MATH_H
#define DQI_COMPUTE_MATH_H

#include "compute/compute.h"

typedef struct dqi_math dqi_math;

// Creates the library's state for one of its kernels (number as in dq_math_at), running in the stream.
int dqi_math_new(uint32_t number, const uint32_t *shape, cu_stream stream, const char *what, dqi_math **out,
                 dq_diag *diag);
// Frees m; its context must be current. NULL is allowed.
void dqi_math_free(dqi_math *m);
// Launches the kernel on the stream; args has the addresses of its arguments. Any thread.
cu_result dqi_math_run(dqi_math *m, void **args);
// Returns the name of the library call that launches it.
const char *dqi_math_call(const dqi_math *m);
// Checks that the arguments are memory of at least the size the kernel accesses. b: the stage's burst, or
// NULL.
int dqi_math_check(const dqi_math *m, const char *what, const dq_kernel_arg *args, uint32_t n,
                   const dq_burst *b, dq_diag *diag);

#endif
