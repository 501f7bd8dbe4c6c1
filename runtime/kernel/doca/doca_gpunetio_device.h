// doca_gpunetio_device.h: everything of queue pairs.
#ifndef DOCA_GPUNETIO_DEVICE_H
#define DOCA_GPUNETIO_DEVICE_H

#include "doca_gpunetio_dev_verbs_counter.cuh"
#include "doca_gpunetio_dev_verbs_twosided.cuh"

#endif
