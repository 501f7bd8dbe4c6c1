// kernels_bodies.h: the kernels as they are on a GPU, built for the host: their bodies, warp after warp.
#ifndef KERNELS_BODIES_H
#define KERNELS_BODIES_H

#include "kernels/k_stream.h"
#include "kernels/k_sum.h"

// A GPU's kernel has its types as constants. Here all share a body that gets them as arguments: built for
// each pair, one unit would take a compiler minutes under a sanitizer.
#define BODY_TYPES(input, output, more) {K_TYPE_##input, K_TYPE_##output, 0},
#define K_TYPE_int16_swapped            K_TYPE_int16
#define K_TYPE_int32_swapped            K_TYPE_int32
static const k_types body_types[] = {BODY_TYPES(bytes, bytes, ) K_OUTPUTS(BODY_TYPES, int4, )
                                         K_WHOLE_BYTES(BODY_TYPES, ) K_PACKED_OUTPUTS(BODY_TYPES, )};

// Does a list as a launch of so many warps.
static inline void bodies_run(const dqk_list *l, uint32_t warps) {
    for (uint32_t w = 0; w < warps; w++)
        if (l->conversion == DQK_SUMS)
            k_sums(l, w, warps);
        else
            k_list(l,
                   (k_types){body_types[l->conversion].from, body_types[l->conversion].to,
                             l->conversion > DQK_SWAPPED},
                   w, warps);
}

#endif
