// doca_gpunetio_verbs_def.h: types and constants of queue pairs, of the open library and of the SDK.
#ifndef DOCA_GPUNETIO_VERBS_DEF_H
#define DOCA_GPUNETIO_VERBS_DEF_H

#include "doca_base.cuh"

#define DOCA_GPUNETIO_VERSION_MAJOR 2
#define DOCA_GPUNETIO_VERSION_MINOR 0
#define DOCA_GPUNETIO_VERSION_PATCH 0
#define DOCA_GPUNETIO_VERSION       (DOCA_GPUNETIO_VERSION_MAJOR << 16)

#define DOCA_GPUNETIO_VERBS_VOLATILE(x)             DOCA_GPUNETIO_VOLATILE(x)
#define DOCA_GPUNETIO_VERBS_WARP_SIZE               32
#define DOCA_GPUNETIO_VERBS_WARP_FULL_MASK          0xffffffff
#define DOCA_GPUNETIO_VERBS_PAGE_SIZE               65536
#define DOCA_GPUNETIO_VERBS_CQE_CI_MASK             0xFFFFFF
#define DOCA_GPUNETIO_VERBS_WQE_PI_MASK             0xFFFF
#define DOCA_GPUNETIO_VERBS_MKEY_SWAPPED            1
#define DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE         28
#define DOCA_GPUNETIO_VERBS_CQE_SIZE                64
#define DOCA_GPUNETIO_VERBS_WQE_IDX_SHIFT           8
#define DOCA_GPUNETIO_VERBS_MLX5_CQE_OPCODE_SHIFT   4
#define DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT 30
#define DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE       (1ULL << DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE_SHIFT)
#define DOCA_GPUNETIO_IB_MLX5_WQE_SQ_SHIFT          6
#define DOCA_GPUNETIO_VERBS_ASSERT(x)               ((void)0)

// Operations, with the prefixes of the open library, of the SDK and of rdma-core.
enum {
    DOCA_GPUNETIO_IB_MLX5_OPCODE_NOP = 0,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_INVAL = 1,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE = 8,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE_IMM = 9,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND = 0xa,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_SEND_IMM = 0xb,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_TSO = 0xe,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_WAIT = 0xf,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ = 0x10,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS = 0x11,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA = 0x12,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_CS = 0x14,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_MASKED_FA = 0x15,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_DUMP = 0x23,
    DOCA_GPUNETIO_IB_MLX5_OPCODE_UMR = 0x25,
    DOCA_GPUNETIO_MLX5_OPCODE_NOP = 0,
    DOCA_GPUNETIO_MLX5_OPCODE_SEND_INVAL = 1,
    DOCA_GPUNETIO_MLX5_OPCODE_RDMA_WRITE = 8,
    DOCA_GPUNETIO_MLX5_OPCODE_RDMA_WRITE_IMM = 9,
    DOCA_GPUNETIO_MLX5_OPCODE_SEND = 0xa,
    DOCA_GPUNETIO_MLX5_OPCODE_SEND_IMM = 0xb,
    DOCA_GPUNETIO_MLX5_OPCODE_TSO = 0xe,
    DOCA_GPUNETIO_MLX5_OPCODE_WAIT = 0xf,
    DOCA_GPUNETIO_MLX5_OPCODE_RDMA_READ = 0x10,
    DOCA_GPUNETIO_MLX5_OPCODE_ATOMIC_CS = 0x11,
    DOCA_GPUNETIO_MLX5_OPCODE_ATOMIC_FA = 0x12,
    DOCA_GPUNETIO_MLX5_OPCODE_ATOMIC_MASKED_CS = 0x14,
    DOCA_GPUNETIO_MLX5_OPCODE_ATOMIC_MASKED_FA = 0x15,
    DOCA_GPUNETIO_MLX5_OPCODE_DUMP = 0x23,
    DOCA_GPUNETIO_MLX5_OPCODE_UMR = 0x25,
    MLX5_OPCODE_NOP = 0,
    MLX5_OPCODE_SEND_INVAL = 1,
    MLX5_OPCODE_RDMA_WRITE = 8,
    MLX5_OPCODE_RDMA_WRITE_IMM = 9,
    MLX5_OPCODE_SEND = 0xa,
    MLX5_OPCODE_SEND_IMM = 0xb,
    MLX5_OPCODE_TSO = 0xe,
    MLX5_OPCODE_WAIT = 0xf,
    MLX5_OPCODE_RDMA_READ = 0x10,
    MLX5_OPCODE_ATOMIC_CS = 0x11,
    MLX5_OPCODE_ATOMIC_FA = 0x12,
    MLX5_OPCODE_ATOMIC_MASKED_CS = 0x14,
    MLX5_OPCODE_ATOMIC_MASKED_FA = 0x15,
    MLX5_OPCODE_DUMP = 0x23,
    MLX5_OPCODE_UMR = 0x25
};
enum doca_gpu_dev_verbs_wqe_ctrl_flags {
    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_ERROR_UPDATE = 0,
    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_SOLICITED = 2,
    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_FIRST_CQE_ERROR = 4,
    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE = 8,
    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE = 0x20,
    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_STRONG_ORDERING = 0x60,
    DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_FENCE = 0x40,
    DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_ERROR_UPDATE = 0,
    DOCA_GPUNETIO_MLX5_WQE_CTRL_SOLICITED = 2,
    DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_FIRST_CQE_ERROR = 4,
    DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE = 8,
    DOCA_GPUNETIO_MLX5_WQE_CTRL_INITIATOR_SMALL_FENCE = 0x20,
    DOCA_GPUNETIO_MLX5_WQE_CTRL_STRONG_ORDERING = 0x60,
    DOCA_GPUNETIO_MLX5_WQE_CTRL_FENCE = 0x80
};
enum {
    DOCA_GPUNETIO_IB_MLX5_CQE_OWNER_MASK = 1,
    DOCA_GPUNETIO_IB_MLX5_CQE_REQ = 0,
    DOCA_GPUNETIO_IB_MLX5_CQE_RESP_WR_IMM = 1,
    DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND = 2,
    DOCA_GPUNETIO_IB_MLX5_CQE_RESP_SEND_IMM = 3,
    DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR = 0xd,
    DOCA_GPUNETIO_IB_MLX5_CQE_RESP_ERR = 0xe,
    DOCA_GPUNETIO_IB_MLX5_CQE_INVALID = 0xf,
    DOCA_GPUNETIO_MLX5_CQE_OWNER_MASK = 1,
    DOCA_GPUNETIO_MLX5_CQE_REQ = 0,
    DOCA_GPUNETIO_MLX5_CQE_RESP_WR_IMM = 1,
    DOCA_GPUNETIO_MLX5_CQE_RESP_SEND = 2,
    DOCA_GPUNETIO_MLX5_CQE_RESP_SEND_IMM = 3,
    DOCA_GPUNETIO_MLX5_CQE_REQ_ERR = 0xd,
    DOCA_GPUNETIO_MLX5_CQE_RESP_ERR = 0xe,
    DOCA_GPUNETIO_MLX5_CQE_INVALID = 0xf,
    DOCA_GPUNETIO_IB_MLX5_INLINE_SEG = (int)0x80000000,
    DOCA_GPUNETIO_IB_MLX5_RCV_DBR = 0,
    DOCA_GPUNETIO_IB_MLX5_SND_DBR = 1
};
enum doca_gpu_dev_verbs_exec_scope {
    DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD = 0,
    DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP = 1
};
enum doca_gpu_dev_verbs_resource_sharing_mode {
    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE = 0,
    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA = 1,
    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU = 2
};
enum doca_gpu_dev_verbs_sync_scope {
    DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS = 0,
    DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU = 1,
    DOCA_GPUNETIO_VERBS_SYNC_SCOPE_CTA = 2,
    DOCA_GPUNETIO_VERBS_SYNC_SCOPE_THREAD = 3
};
enum doca_gpu_dev_verbs_nic_handler {
    DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO = 0,
    DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY = 1,
    DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB = 2,
    DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_BF = 6,
    DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_NO_DBR = 0xa
};
enum doca_gpu_dev_verbs_signal_op { DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD = 0 };
enum doca_gpu_dev_verbs_qp_type { DOCA_GPUNETIO_VERBS_QP_SQ = 0, DOCA_GPUNETIO_VERBS_QP_RQ = 1 };
enum doca_gpu_dev_verbs_mcst_mode {
    DOCA_GPUNETIO_VERBS_MCST_DISABLED = 0,
    DOCA_GPUNETIO_VERBS_MCST_ENABLED = 1
};
enum doca_gpu_dev_verbs_blocking_mode {
    DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED = 0,
    DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED = 1
};
enum doca_gpu_dev_verbs_qp_ready_mode {
    DOCA_GPUNETIO_VERBS_READY_MODE_DEFAULT = 0,
    DOCA_GPUNETIO_VERBS_READY_MODE_ATOMIC_CAS = 1,
    DOCA_GPUNETIO_VERBS_READY_MODE_LD_ST = 2
};
enum doca_gpu_dev_verbs_mem_type {
    DOCA_GPUNETIO_VERBS_MEM_TYPE_AUTO = 0,
    DOCA_GPUNETIO_VERBS_MEM_TYPE_HOST = 1,
    DOCA_GPUNETIO_VERBS_MEM_TYPE_GPU = 2
};
enum doca_gpu_dev_verbs_gpu_code_opt {
    DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_DEFAULT = 0,
    DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_ASYNC_STORE_RELEASE = 1,
    DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK = 2,
    DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING = 4,
    DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_CPU_PROXY_UPDATE_PI = 8
};
enum doca_gpu_dev_verbs_dump_mode {
    DOCA_GPUNETIO_VERBS_DUMP = 0,
    DOCA_GPUNETIO_VERBS_NODUMP = 1,
    DOCA_GPUNETIO_VERBS_DUMP_AUTO = 2
};
enum doca_gpu_dev_verbs_atomic_ext_bytes {
    DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_4 = 4,
    DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_8 = 8
};
enum doca_gpu_verbs_send_dbr_mode_ext {
    DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_VALID_DBR = 0,
    DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_HW = 1,
    DOCA_GPUNETIO_VERBS_SEND_DBR_MODE_EXT_NO_DBR_SW_EMULATED = 2
};

typedef uint64_t doca_gpu_dev_verbs_ticket_t;

struct doca_gpu_dev_verbs_addr {
    uint64_t addr;
    uint32_t key;
};

struct doca_gpu_dev_verbs_cq { // part 1 or 3 of a gn_object
    gn_u64 gn_back, gn_row;
    uint32_t cq_num, cqe_num, cqe_mask, cqe_size;
    gn_u64 gn_table;
    uint64_t cqe_ci, cqe_rsvd;
    uint8_t *cqe_daddr;
    uint32_t *dbrec;
    doca_gpu_dev_verbs_mem_type mem_type;
    uint32_t gn_spare;
    gn_u64 gn_words[6];
};

struct doca_gpu_dev_verbs_qp { // parts 0 and 2, and the queues of their completions
    gn_u64 gn_back, gn_row;
    uint32_t sq_num, sq_wqe_num, sq_wqe_mask;
    doca_gpu_dev_verbs_nic_handler nic_handler;
    gn_u64 gn_table;
    uint64_t sq_rsvd_index, sq_ready_index, sq_wqe_pi;
    int sq_lock;
    doca_gpu_dev_verbs_mem_type mem_type;
    uint8_t *sq_wqe_daddr;
    uint32_t *sq_dbrec;
    uint64_t *sq_db;
    uint32_t sq_num_shift8, sq_num_shift8_be;
    uint32_t sq_num_shift8_be_1ds, sq_num_shift8_be_2ds, sq_num_shift8_be_3ds, sq_num_shift8_be_4ds;
    uint32_t sq_num_shift8_be_5ds, gn_spare;

    doca_gpu_dev_verbs_cq cq_sq;

    gn_u64 gn_rq_back, gn_rq_row;
    uint32_t rq_num, rq_wqe_num, rq_wqe_mask, rcv_wqe_size;
    gn_u64 gn_rq_table; // of an index: place and bytes of a posted receive, and its completion
    uint64_t rq_rsvd_index, rq_ready_index, rq_wqe_pi;
    int rq_lock, gn_rq_spare;
    uint8_t *rq_wqe_daddr;
    uint32_t *rq_dbrec;
    gn_u64 gn_rq_words[5];

    doca_gpu_dev_verbs_cq cq_rq;
};

struct doca_gpu_dev_verbs_wqe {
    gn_slot slot;
};

// Completion of a receive: the reference's layout, big endian.
struct mlx5_cqe64 {
    uint8_t inline_data[32];
    uint32_t srqn_uidx, imm_inval_pkey;
    uint32_t app, byte_cnt;
    uint64_t timestamp;
    uint32_t sop_drop_qpn;
    uint16_t wqe_counter;
    uint8_t signature, op_own;
};
#define doca_gpunetio_ib_mlx5_cqe64 mlx5_cqe64
#define doca_gpunetio_mlx5_cqe64    mlx5_cqe64

// Completion in error, and the segments of an entry, for kernels that write them by hand: big endian.
struct mlx5_err_cqe {
    uint8_t rsvd0[32];
    uint32_t srqn;
    uint8_t rsvd1[18], vendor_err_synd, syndrome;
    uint32_t s_wqe_opcode_qpn;
    uint16_t wqe_counter;
    uint8_t signature, op_own;
};
struct __attribute__((packed, aligned(4))) mlx5_wqe_ctrl_seg { // NVRTC ignores attributes behind the members
    uint32_t opmod_idx_opcode, qpn_ds;
    uint8_t signature;
    uint16_t dci_stream_channel_id;
    uint8_t fm_ce_se;
    uint32_t imm;
};
struct mlx5_wqe_raddr_seg {
    uint64_t raddr;
    uint32_t rkey, reserved;
};
struct mlx5_wqe_data_seg {
    uint32_t byte_count, lkey;
    uint64_t addr;
};
struct mlx5_wqe_inl_data_seg {
    uint32_t byte_count;
};
struct mlx5_wqe_atomic_seg {
    uint64_t swap_add, compare;
};
#define doca_gpunetio_ib_mlx5_err_cqe          mlx5_err_cqe
#define doca_gpunetio_mlx5_err_cqe             mlx5_err_cqe
#define doca_gpunetio_ib_mlx5_wqe_ctrl_seg     mlx5_wqe_ctrl_seg
#define doca_gpunetio_mlx5_wqe_ctrl_seg        mlx5_wqe_ctrl_seg
#define doca_gpunetio_ib_mlx5_wqe_raddr_seg    mlx5_wqe_raddr_seg
#define doca_gpunetio_mlx5_wqe_raddr_seg       mlx5_wqe_raddr_seg
#define doca_gpunetio_ib_mlx5_wqe_data_seg     mlx5_wqe_data_seg
#define doca_gpunetio_mlx5_wqe_data_seg        mlx5_wqe_data_seg
#define doca_gpunetio_ib_mlx5_wqe_inl_data_seg mlx5_wqe_inl_data_seg
#define doca_gpunetio_mlx5_wqe_inl_data_seg    mlx5_wqe_inl_data_seg
#define doca_gpunetio_ib_mlx5_wqe_atomic_seg   mlx5_wqe_atomic_seg
#define doca_gpunetio_mlx5_wqe_atomic_seg      mlx5_wqe_atomic_seg

static_assert(sizeof(doca_gpu_dev_verbs_qp) == sizeof(gn_object) && sizeof(doca_gpu_dev_verbs_wqe) == 64 &&
                  sizeof(mlx5_cqe64) == 64 && sizeof(mlx5_err_cqe) == 64 && sizeof(mlx5_wqe_ctrl_seg) == 16,
              "an object's layout");

// Template parameters that functions of queue pairs have in common.
#define DOCA_SHARING                                                                                         \
    doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode =                                         \
        DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define DOCA_NIC   doca_gpu_dev_verbs_nic_handler nic_handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define DOCA_SCOPE doca_gpu_dev_verbs_exec_scope exec_scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD
#define DOCA_SYNC  doca_gpu_dev_verbs_sync_scope sync_scope = DOCA_GPUNETIO_VERBS_SYNC_SCOPE_GPU
#define DOCA_TYPE  doca_gpu_dev_verbs_qp_type qp_type = DOCA_GPUNETIO_VERBS_QP_SQ
#define DOCA_OPT   uint32_t = DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_DEFAULT

#endif
