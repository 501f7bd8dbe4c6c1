// doca_gpunetio_dev_comch.cuh: the channel to a DPU, which there is none to.
#ifndef DOCA_GPUNETIO_DEV_COMCH_CUH
#define DOCA_GPUNETIO_DEV_COMCH_CUH

#include "doca_base.cuh"

DOCA_IMPOSSIBLE(doca_error_t, doca_dev_gpu_comch_consumer_recv, "the channel to a DPU is its device's")
DOCA_IMPOSSIBLE(doca_error_t, doca_dev_gpu_comch_consumer_ack, "the channel to a DPU is its device's")
DOCA_IMPOSSIBLE(doca_error_t, doca_dev_gpu_comch_producer_send, "the channel to a DPU is its device's")
DOCA_IMPOSSIBLE(doca_error_t, doca_dev_gpu_comch_producer_poll, "the channel to a DPU is its device's")

#endif
