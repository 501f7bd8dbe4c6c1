// kernels_bodies.h: the kernels as they are on a GPU, built for the host: their bodies, warp after warp.
#ifndef KERNELS_BODIES_H
#define KERNELS_BODIES_H

#include "kernels/k_stream.h"
#include "kernels/k_sum.h"

typedef void body_fn(const dqk_list *l, uint32_t warp, uint32_t warps);

#define BODY(input, output, swapped)                                                                         \
    static void body_##input##_##output(const dqk_list *l, uint32_t warp, uint32_t warps) {                  \
        k_list(l, (k_types){K_TYPE_##input, K_TYPE_##output, swapped}, warp, warps);                         \
    }
BODY(bytes, bytes, 0)
K_OUTPUTS(BODY, int4, 0)
K_OUTPUTS(BODY, int8, 0)
K_OUTPUTS(BODY, int16, 0)
K_OUTPUTS(BODY, int32, 0)
K_OUTPUTS(BODY, int16_swapped, 1)
K_OUTPUTS(BODY, int32_swapped, 1)

#define BODY_NAME(input, output, more) body_##input##_##output,
static body_fn *const bodies[] = {body_bytes_bytes,
                                  K_OUTPUTS(BODY_NAME, int4, ) K_WHOLE_BYTES(BODY_NAME, ) k_sums};

// Does a list as a launch of so many warps.
static inline void bodies_run(const dqk_list *l, uint32_t warps) {
    for (uint32_t w = 0; w < warps; w++)
        bodies[l->conversion](l, w, warps);
}

#endif
