// doca_gpu.h: everything with DOCA's names. Each header can be included by its own name, too.
//
// A kernel gets queues, queue pairs, buffers and semaphores as pointers, from the arguments of k:start.
// Differences from the reference:
// - a received packet stays valid until half a ring of further packets has been received;
// - every wait ends at the context's limit, with DOCA_ERROR_TIME_OUT or -EIO;
// - what concerns a NIC alone is accepted without effect: sharing modes, doorbell handlers, memory
// consistency.
#ifndef DOCA_GPU_H
#define DOCA_GPU_H

#include "doca_gpunetio_dev_buf.cuh"
#include "doca_gpunetio_dev_comch.cuh"
#include "doca_gpunetio_dev_dma.cuh"
#include "doca_gpunetio_dev_eth_rxq.cuh"
#include "doca_gpunetio_dev_eth_txq.cuh"
#include "doca_gpunetio_dev_rdma.cuh"
#include "doca_gpunetio_dev_sem.cuh"
#include "doca_gpunetio_dev_verbs_counter.cuh"
#include "doca_gpunetio_dev_verbs_twosided.cuh"
#include "doca_log.h"

#endif
