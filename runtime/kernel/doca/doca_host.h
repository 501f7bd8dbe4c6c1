// doca_host.h: types that a sample's headers name and its kernels do not use, in place of the headers of
// CUDA, rdma-core and DOCA for the host.
#ifndef DOCA_HOST_H
#define DOCA_HOST_H

#include "doca_base.cuh"
#include "doca_gpunetio_eth_def.h"
#include "doca_gpunetio_verbs_def.h"
#include "doca_log.h"

typedef struct CUstream_st *cudaStream_t;
#define cudaError_t int // NVRTC has a type of this name of its own
#define cudaSuccess 0

#define DOCA_DEVINFO_PCI_ADDR_SIZE   16
#define DOCA_DEVINFO_IBDEV_NAME_SIZE 64
#define DOCA_DEVINFO_IPV4_ADDR_SIZE  4
#define DOCA_DEVINFO_IPV6_ADDR_SIZE  16
#define DOCA_GID_BYTE_LENGTH         16
#define DOCA_FLOW_MAX_PORTS          128

enum doca_gpu_mem_type {
    DOCA_GPU_MEM_TYPE_GPU = 0,
    DOCA_GPU_MEM_TYPE_GPU_CPU = 1,
    DOCA_GPU_MEM_TYPE_CPU_GPU = 2
};
enum doca_rdma_addr_type { DOCA_RDMA_ADDR_TYPE_IPv4, DOCA_RDMA_ADDR_TYPE_IPv6, DOCA_RDMA_ADDR_TYPE_GID };

struct doca_verbs_gid {
    uint8_t raw[16];
};
union doca_data {
    void *ptr;
    uint64_t u64;
};
struct doca_eth_txq_gpu_event_error_send_packet;
struct doca_eth_txq_gpu_event_notify_send_packet;
typedef void (*doca_eth_txq_gpu_event_error_send_packet_cb_t)(
    struct doca_eth_txq_gpu_event_error_send_packet *, union doca_data);
typedef void (*doca_eth_txq_gpu_event_notify_send_packet_cb_t)(
    struct doca_eth_txq_gpu_event_notify_send_packet *, union doca_data);
struct doca_gpu_verbs_qp_hl;
struct doca_gpu_verbs_qp_group_hl;

#endif
