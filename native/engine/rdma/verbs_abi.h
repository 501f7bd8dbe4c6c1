// verbs_abi.h: the used part of libibverbs' interface, redeclared so that the program is built without its
// headers (cm_abi.h: of librdmacm). The layout is that of <infiniband/verbs.h> and <rdma/rdma_cma.h>
// (rdma-core, symbol versions IBVERBS_1.1 and RDMACM_1.0), which does not change; a C unit compares the two.
//
// Structures allocated by the libraries contain only the fields that are read, at their offsets; structures
// allocated by a caller are complete.
#ifndef DQI_VERBS_ABI_H
#define DQI_VERBS_ABI_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>

enum { VB_QPT_RC = 2, VB_QPT_UC = 3, VB_QPT_UD = 4, VB_QPT_RAW_PACKET = 8 };
enum { VB_QPS_RESET, VB_QPS_INIT, VB_QPS_RTR, VB_QPS_RTS, VB_QPS_SQD, VB_QPS_SQE, VB_QPS_ERR };
enum { VB_MTU_256 = 1, VB_MTU_512, VB_MTU_1024, VB_MTU_2048, VB_MTU_4096 };
enum { VB_ATOMIC_NONE, VB_ATOMIC_HCA, VB_ATOMIC_GLOB };

enum {
    VB_ACCESS_LOCAL_WRITE = 1 << 0,
    VB_ACCESS_REMOTE_WRITE = 1 << 1,
    VB_ACCESS_REMOTE_READ = 1 << 2,
    VB_ACCESS_REMOTE_ATOMIC = 1 << 3,
};

enum {
    VB_WR_RDMA_WRITE,
    VB_WR_RDMA_WRITE_WITH_IMM,
    VB_WR_SEND,
    VB_WR_SEND_WITH_IMM,
    VB_WR_RDMA_READ,
    VB_WR_ATOMIC_CMP_AND_SWP,
    VB_WR_ATOMIC_FETCH_AND_ADD,
};
enum {
    VB_SEND_FENCE = 1 << 0,
    VB_SEND_SIGNALED = 1 << 1,
    VB_SEND_SOLICITED = 1 << 2,
    VB_SEND_INLINE = 1 << 3
};

enum {
    VB_WC_SUCCESS,
    VB_WC_LOC_LEN_ERR,
    VB_WC_LOC_QP_OP_ERR,
    VB_WC_LOC_EEC_OP_ERR,
    VB_WC_LOC_PROT_ERR,
    VB_WC_WR_FLUSH_ERR,
    VB_WC_MW_BIND_ERR,
    VB_WC_BAD_RESP_ERR,
    VB_WC_LOC_ACCESS_ERR,
    VB_WC_REM_INV_REQ_ERR,
    VB_WC_REM_ACCESS_ERR,
    VB_WC_REM_OP_ERR,
    VB_WC_RETRY_EXC_ERR,
    VB_WC_RNR_RETRY_EXC_ERR,
};
enum { VB_WC_RECV = 1 << 7, VB_WC_RECV_RDMA_WITH_IMM };
enum { VB_WC_GRH = 1 << 0, VB_WC_WITH_IMM = 1 << 1 };

enum {
    VB_QP_STATE = 1 << 0,
    VB_QP_ACCESS_FLAGS = 1 << 3,
    VB_QP_PKEY_INDEX = 1 << 4,
    VB_QP_PORT = 1 << 5,
    VB_QP_QKEY = 1 << 6,
    VB_QP_AV = 1 << 7,
    VB_QP_PATH_MTU = 1 << 8,
    VB_QP_TIMEOUT = 1 << 9,
    VB_QP_RETRY_CNT = 1 << 10,
    VB_QP_RNR_RETRY = 1 << 11,
    VB_QP_RQ_PSN = 1 << 12,
    VB_QP_MAX_QP_RD_ATOMIC = 1 << 13,
    VB_QP_MIN_RNR_TIMER = 1 << 15,
    VB_QP_SQ_PSN = 1 << 16,
    VB_QP_MAX_DEST_RD_ATOMIC = 1 << 17,
    VB_QP_DEST_QPN = 1 << 20,
};

enum {
    VB_EVENT_QP_FATAL = 1,
    VB_EVENT_QP_REQ_ERR,
    VB_EVENT_QP_ACCESS_ERR,
    VB_EVENT_DEVICE_FATAL = 8,
    VB_EVENT_PORT_ERR = 10
};
enum { VB_LINK_LAYER_INFINIBAND = 1, VB_LINK_LAYER_ETHERNET };

typedef union vb_gid {
    uint8_t raw[16];
    uint64_t halves[2];
} vb_gid;

typedef struct vb_device {
    void *ops[2];
    int node_type, transport_type;
    char name[64];
} vb_device;

typedef struct vb_context vb_context;
typedef struct vb_comp_channel vb_comp_channel;
typedef struct vb_cq vb_cq;
typedef struct vb_qp vb_qp;
typedef struct vb_ah vb_ah;
typedef struct vb_wc vb_wc;
typedef struct vb_send_wr vb_send_wr;
typedef struct vb_recv_wr vb_recv_wr;

struct vb_context {
    vb_device *device;
    struct { // functions that the headers call through the context
        void *before[11];
        int (*poll_cq)(vb_cq *cq, int n, vb_wc *wc);
        int (*req_notify_cq)(vb_cq *cq, int solicited_only);
        void *between[12];
        int (*post_send)(vb_qp *qp, vb_send_wr *wr, vb_send_wr **bad);
        int (*post_recv)(vb_qp *qp, vb_recv_wr *wr, vb_recv_wr **bad);
        void *behind[5];
    } ops;
    int cmd_fd, async_fd, num_comp_vectors;
    pthread_mutex_t mutex;
    void *abi_compat; // all ones: the extended context is present (ibverbs/flow_abi.h)
};

typedef struct vb_pd {
    vb_context *context;
    uint32_t handle;
} vb_pd;

typedef struct vb_mr {
    vb_context *context;
    vb_pd *pd;
    void *addr;
    size_t length;
    uint32_t handle, lkey, rkey;
} vb_mr;

struct vb_comp_channel {
    vb_context *context;
    int fd, refcnt;
};

struct vb_cq {
    vb_context *context;
    vb_comp_channel *channel;
    void *cq_context;
    uint32_t handle;
    int cqe;
};

struct vb_qp {
    vb_context *context;
    void *qp_context;
    vb_pd *pd;
    vb_cq *send_cq, *recv_cq;
    void *srq;
    uint32_t handle, qp_num;
    int state, qp_type;
};

typedef struct vb_device_attr {
    char fw_ver[64];
    uint64_t node_guid, sys_image_guid, max_mr_size, page_size_cap;
    uint32_t vendor_id, vendor_part_id, hw_ver;
    int max_qp, max_qp_wr;
    unsigned int device_cap_flags;
    int max_sge, max_sge_rd, max_cq, max_cqe, max_mr, max_pd;
    int max_qp_rd_atom, max_ee_rd_atom, max_res_rd_atom, max_qp_init_rd_atom, max_ee_init_rd_atom;
    int atomic_cap;
    int max_ee, max_rdd, max_mw, max_raw_ipv6_qp, max_raw_ethy_qp;
    int max_mcast_grp, max_mcast_qp_attach, max_total_mcast_qp_attach;
    int max_ah, max_fmr, max_map_per_fmr, max_srq, max_srq_wr, max_srq_sge;
    uint16_t max_pkeys;
    uint8_t local_ca_ack_delay, phys_port_cnt;
} vb_device_attr;

typedef struct vb_port_attr {
    int state, max_mtu, active_mtu, gid_tbl_len;
    uint32_t port_cap_flags, max_msg_sz, bad_pkey_cntr, qkey_viol_cntr;
    uint16_t pkey_tbl_len, lid, sm_lid;
    uint8_t lmc, max_vl_num, sm_sl, subnet_timeout, init_type_reply, active_width, active_speed, phys_state;
    uint8_t link_layer, flags;
    uint16_t port_cap_flags2;
} vb_port_attr;

typedef struct vb_ah_attr {
    struct {
        vb_gid dgid;
        uint32_t flow_label;
        uint8_t sgid_index, hop_limit, traffic_class;
    } grh;
    uint16_t dlid;
    uint8_t sl, src_path_bits, static_rate, is_global, port_num;
} vb_ah_attr;

typedef struct vb_qp_cap {
    uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline_data;
} vb_qp_cap;

typedef struct vb_qp_init_attr {
    void *qp_context;
    vb_cq *send_cq, *recv_cq;
    void *srq;
    vb_qp_cap cap;
    int qp_type, sq_sig_all;
} vb_qp_init_attr;

typedef struct vb_qp_attr {
    int qp_state, cur_qp_state, path_mtu, path_mig_state;
    uint32_t qkey, rq_psn, sq_psn, dest_qp_num;
    unsigned int qp_access_flags;
    vb_qp_cap cap;
    vb_ah_attr ah_attr, alt_ah_attr;
    uint16_t pkey_index, alt_pkey_index;
    uint8_t en_sqd_async_notify, sq_draining, max_rd_atomic, max_dest_rd_atomic, min_rnr_timer, port_num;
    uint8_t timeout, retry_cnt, rnr_retry, alt_port_num, alt_timeout;
    uint32_t rate_limit;
} vb_qp_attr;

typedef struct vb_sge {
    uint64_t addr;
    uint32_t length, lkey;
} vb_sge;

struct vb_send_wr {
    uint64_t wr_id;
    vb_send_wr *next;
    vb_sge *sg_list;
    int num_sge, opcode;
    unsigned int send_flags;
    uint32_t imm_data; // network byte order
    union {
        struct {
            uint64_t remote_addr;
            uint32_t rkey;
        } rdma;
        struct {
            uint64_t remote_addr, compare_add, swap;
            uint32_t rkey;
        } atomic;
        struct {
            vb_ah *ah;
            uint32_t remote_qpn, remote_qkey;
        } ud;
    } wr;
    uint32_t xrc;
    void *rest[6]; // memory windows, segmentation: unused
};

struct vb_recv_wr {
    uint64_t wr_id;
    vb_recv_wr *next;
    vb_sge *sg_list;
    int num_sge;
};

struct vb_wc {
    uint64_t wr_id;
    int status, opcode;
    uint32_t vendor_err, byte_len;
    uint32_t imm_data; // network byte order
    uint32_t qp_num, src_qp;
    unsigned int wc_flags;
    uint16_t pkey_index, slid;
    uint8_t sl, dlid_path_bits;
};

typedef struct vb_async_event {
    union {
        vb_cq *cq;
        vb_qp *qp;
        int port_num;
    } element;
    int event_type;
} vb_async_event;

#endif
