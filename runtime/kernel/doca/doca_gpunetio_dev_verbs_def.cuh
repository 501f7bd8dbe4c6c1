// doca_gpunetio_dev_verbs_def.cuh: types and constants of queue pairs, under the SDK's name of the header.
#ifndef DOCA_GPUNETIO_DEV_VERBS_DEF_CUH
#define DOCA_GPUNETIO_DEV_VERBS_DEF_CUH

#include "doca_gpunetio_verbs_def.h"

#endif
