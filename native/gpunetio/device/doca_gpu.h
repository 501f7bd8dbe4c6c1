// doca_gpu.h: the functions of gn.h under the names of DOCA GPUNetIO's device functions
// (docs.nvidia.com/doca/sdk, guide and reference of versions 2.9 to 3.2), so that kernels are ported by
// changing includes. C++.
//
// A queue, a queue pair or a semaphore is a pointer to its row in the context, passed by the launcher. A
// memory key is the number of a region. NIC-specific parameters (sharing modes, doorbell handler, memory
// consistency, completion requests) are ignored. Differences:
// - a received packet stays valid until half a ring of further packets has been received;
// - completions are not counted individually: polling waits for everything reserved;
// - every wait ends at the context's limit, with DOCA_ERROR_TIME_OUT.
#ifndef DOCA_GPU_H
#define DOCA_GPU_H

#ifndef __cplusplus
#error "doca_gpu.h has templates: a kernel in C includes gn.h"
#endif

#include "gpunetio/device/gn.h"

#define DOCA_GPUNETIO_VOLATILE(x) (*(volatile __typeof__(x) *)&(x))

enum doca_error_t {
    DOCA_SUCCESS = 0,
    DOCA_ERROR_AGAIN = 5,
    DOCA_ERROR_INVALID_VALUE = 6,
    DOCA_ERROR_TIME_OUT = 9,
    DOCA_ERROR_NOT_FOUND = 16,
    DOCA_ERROR_IO_FAILED = 17,
    DOCA_ERROR_BAD_STATE = 18
};

GN_FN doca_error_t doca_said(int result) {
    switch (result) {
    case GN_OK:
        return DOCA_SUCCESS;
    case GN_AGAIN:
        return DOCA_ERROR_AGAIN;
    case GN_TIMEOUT:
        return DOCA_ERROR_TIME_OUT;
    case GN_FAILED:
        return DOCA_ERROR_IO_FAILED;
    case GN_INVALID:
        return DOCA_ERROR_INVALID_VALUE;
    }
    return DOCA_ERROR_BAD_STATE;
}

// Returns the context of a row.
GN_FN gn_side doca_side(const void *row, gn_u64 back) {
    gn_side s;
    gn_open(&s, (gn_u8 *)row - back);
    return s;
}

// Converts an address and its region's key to a place. A peer's region begins at address 0.
GN_FN gn_u64 doca_place(const gn_side *s, gn_u64 address, gn_u32 key) {
    const gn_context *p = (const gn_context *)s->context;
    const gn_region *r = (const gn_region *)gn_at(p, p->regions) + key;
    return key < p->n_regions ? gn_place(key, address - r->base) : gn_place(GN_REGIONS - 1, 0);
}

#include "gpunetio/device/doca_eth.h"
#include "gpunetio/device/doca_semaphore.h"
#include "gpunetio/device/doca_verbs.h"

#endif
