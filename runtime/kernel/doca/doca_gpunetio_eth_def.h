// doca_gpunetio_eth_def.h: types and constants of Ethernet queues.
#ifndef DOCA_GPUNETIO_ETH_DEF_H
#define DOCA_GPUNETIO_ETH_DEF_H

#include "doca_base.cuh"

#define DOCA_GPUNETIO_ETH_WARP_SIZE      32
#define DOCA_GPUNETIO_ETH_WARP_FULL_MASK 0xffffffff

enum doca_gpu_dev_eth_exec_scope {
    DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD = 0,
    DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP = 1,
    DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK = 2
};
enum doca_gpu_dev_eth_resource_sharing_mode {
    DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE = 0,
    DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA = 1,
    DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU = 2
};
enum doca_gpu_dev_eth_sync_scope {
    DOCA_GPUNETIO_ETH_SYNC_SCOPE_SYS = 0,
    DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU = 1,
    DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA = 2
};
enum doca_gpu_dev_eth_nic_handler {
    DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO = 0,
    DOCA_GPUNETIO_ETH_NIC_HANDLER_CPU_PROXY = 1,
    DOCA_GPUNETIO_ETH_NIC_HANDLER_GPU_SM_DB = 2
};
enum doca_gpu_dev_eth_mcst_mode {
    DOCA_GPUNETIO_ETH_MCST_DISABLED = 0,
    DOCA_GPUNETIO_ETH_MCST_ENABLED = 1,
    DOCA_GPUNETIO_ETH_MCST_AUTO = 2
};
enum doca_gpu_dev_eth_rxq_attr_type {
    DOCA_GPUNETIO_ETH_RX_ATTR_NONE = 0,
    DOCA_GPUNETIO_ETH_RX_ATTR_TS = 1,
    DOCA_GPUNETIO_ETH_RX_ATTR_ALL = 2
};
enum doca_gpu_dev_eth_wait_flags { DOCA_GPUNETIO_ETH_WAIT_FLAG_NB = 0, DOCA_GPUNETIO_ETH_WAIT_FLAG_B = 1 };
enum doca_gpu_dev_eth_cq_poll_mode { DOCA_GPUNETIO_ETH_CQ_POLL_ALL = 0, DOCA_GPUNETIO_ETH_CQ_POLL_LAST = 1 };
enum doca_gpu_eth_send_flags { DOCA_GPUNETIO_ETH_SEND_FLAG_NONE = 0, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY = 1 };

typedef uint64_t doca_gpu_dev_eth_ticket_t;

struct doca_gpu_dev_eth_rxq_attr {
    uint64_t timestamp_ns; // since 1970
    uint32_t bytes;
    uint32_t reserved;
};

struct doca_gpu_eth_rxq { // part 0 of a gn_object
    gn_u64 gn_back, gn_row;
    uint32_t rq_num, pkt_num, gn_mask, max_pkt_sz;
    gn_u64 gn_table, gn_words[11];
    gn_part gn_more[3];
};

struct doca_gpu_eth_txq { // part 0
    gn_u64 gn_back, gn_row;
    uint32_t sq_num, wqe_num, wqe_mask, nic_handler;
    gn_u64 gn_table; // per index of a completion: gn_notice
    uint64_t sq_rsvd_index, sq_ready_index, wqe_pi, cqe_ci, cq_rsvd_index;
    gn_u64 gn_notified;            // completions asked for
    gn_u64 gn_wait_at, gn_wait_ns; // of wqe_prepare_wait_time: index + 1, and the time for sends behind it
    uint32_t sq_num_shift8, cqe_mask;
    int lock, cq_lock;
    uint16_t enable_l3_cs_offload, enable_l4_cs_offload;
    uint32_t cqe_num;
    gn_part gn_more[3];
};

struct doca_gpu_dev_eth_txq_wqe {
    gn_slot slot;
};

static_assert(sizeof(doca_gpu_eth_txq) == sizeof(gn_object) && sizeof(doca_gpu_eth_rxq) == sizeof(gn_object),
              "an object's layout");

GN_FN unsigned int doca_gpu_dev_eth_get_lane_id(void) { return gn_lane(); }

#endif
