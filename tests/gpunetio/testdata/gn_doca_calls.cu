// gn_doca_calls.cu: calls every function with DOCA's names, in every instance of its template, for the compile
// tests (TestDocaCalls, TestGnDevice). Nothing of it is run.
#include <doca_gpunetio_dev_buf.cuh>
#include <doca_gpunetio_dev_comch.cuh>
#include <doca_gpunetio_dev_dma.cuh>
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_eth_txq.cuh>
#include <doca_gpunetio_dev_rdma.cuh>
#include <doca_gpunetio_dev_sem.cuh>
#include <doca_gpunetio_dev_verbs_common.cuh>
#include <doca_gpunetio_dev_verbs_counter.cuh>
#include <doca_gpunetio_dev_verbs_cq.cuh>
#include <doca_gpunetio_dev_verbs_def.cuh>
#include <doca_gpunetio_dev_verbs_onesided.cuh>
#include <doca_gpunetio_dev_verbs_qp.cuh>
#include <doca_gpunetio_dev_verbs_twosided.cuh>
#include <doca_gpunetio_device.h>
#include <doca_gpunetio_eth_def.h>
#include <doca_gpunetio_verbs_def.h>
#include <doca_error.h>
#include <doca_log.h>

DOCA_LOG_REGISTER(GN_DOCA_CALLS);

#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#endif

#define SHARING(s) DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_##s
#define NIC(n)     DOCA_GPUNETIO_VERBS_NIC_HANDLER_##n
#define SCOPE(s)   DOCA_GPUNETIO_VERBS_EXEC_SCOPE_##s
#define SYNC(s)    DOCA_GPUNETIO_VERBS_SYNC_SCOPE_##s
#define ADD        DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD
#define FLAGS      DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE

struct value28 { uint32_t words[7]; };

// ---- Ethernet ---------------------------------------------------------------------------------------------

template <enum doca_gpu_dev_eth_mcst_mode mcst, enum doca_gpu_dev_eth_rxq_attr_type attr>
__device__ void receive(struct doca_gpu_eth_rxq *rxq, uint64_t *first, uint32_t *n, struct doca_gpu_dev_eth_rxq_attr *a) {
    const enum doca_gpu_dev_eth_nic_handler nic = DOCA_GPUNETIO_ETH_NIC_HANDLER_GPU_SM_DB;
    doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD, mcst, nic, attr>(rxq, 0, 0, first, n, a);
    doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP, mcst, nic, attr>(rxq, 0, 0, first, n, a);
    doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK, mcst, nic, attr>(rxq, 0, 0, first, n, a);
    doca_gpu_dev_eth_rxq_recv_thread<mcst, nic, attr>(rxq, 1, 2, first, n, a);
    doca_gpu_dev_eth_rxq_recv_warp<mcst, nic, attr>(rxq, 1, 2, first, n, a);
    doca_gpu_dev_eth_rxq_recv_block<mcst, nic, attr>(rxq, 1, 2, first, n, a);
}

__global__ void eth_receive(struct doca_gpu_eth_rxq *rxq, uint64_t *out, uint32_t *n, struct doca_gpu_dev_eth_rxq_attr *a) {
    doca_error_t err = doca_gpu_dev_eth_rxq_recv(rxq, 0, 0, out, n, NULL);
    receive<DOCA_GPUNETIO_ETH_MCST_DISABLED, DOCA_GPUNETIO_ETH_RX_ATTR_NONE>(rxq, out, n, a);
    receive<DOCA_GPUNETIO_ETH_MCST_ENABLED, DOCA_GPUNETIO_ETH_RX_ATTR_TS>(rxq, out, n, a);
    receive<DOCA_GPUNETIO_ETH_MCST_AUTO, DOCA_GPUNETIO_ETH_RX_ATTR_ALL>(rxq, out, n, a);
    out[1] = doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, *out);
    *n = doca_gpu_dev_eth_rxq_get_pkt_mkey(rxq);
    doca_gpu_dev_eth_rxq_get_pkt_ts(rxq, *out, out + 2);
    doca_gpu_dev_eth_rxq_get_pkt_bytes(rxq, *out, n);
    out[3] = doca_gpu_dev_eth_rxq_get_pkt_cqe(rxq, *out) != NULL && err == DOCA_SUCCESS;
    doca_gpu_dev_eth_rxq_mcst(rxq);
    doca_gpu_dev_eth_rxq_submit_dbr(rxq, 1);
    doca_gpu_dev_eth_rxq_submit_cq_dbr(rxq, 1);
}

template <enum doca_gpu_dev_eth_resource_sharing_mode share, enum doca_gpu_dev_eth_sync_scope sync, enum doca_gpu_dev_eth_nic_handler nic>
__device__ void send(struct doca_gpu_eth_txq *txq, uint64_t addr, uint32_t key, doca_gpu_dev_eth_ticket_t *t) {
    const enum doca_gpu_eth_send_flags none = DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, notify = DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY;
    const enum doca_gpu_dev_eth_wait_flags waits = DOCA_GPUNETIO_ETH_WAIT_FLAG_B;
    uint32_t n;
    uint64_t at;
    doca_gpu_dev_eth_txq_send<share, sync, nic>(txq, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_send<share, sync, nic, DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP>(txq, addr, key, 60, notify, t);
    doca_gpu_dev_eth_txq_send<share, sync, nic, DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>(txq, addr, key, 60, notify, t);
    doca_gpu_dev_eth_txq_calculate_timestamp(txq, 1, &at);
    doca_gpu_dev_eth_txq_wait_send<share, sync, nic>(txq, at, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_wait_send<share, sync, nic, DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP>(txq, at, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_wait_send<share, sync, nic, DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK>(txq, at, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_send_thread<share, sync, nic>(txq, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_send_warp<share, sync, nic>(txq, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_send_block<share, sync, nic>(txq, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_wait_send_thread<share, sync, nic>(txq, at, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_wait_send_warp<share, sync, nic>(txq, at, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_wait_send_block<share, sync, nic>(txq, at, addr, key, 60, none, t);
    doca_gpu_dev_eth_txq_poll_completion<DOCA_GPUNETIO_ETH_CQ_POLL_ALL, share, sync>(txq, 1, waits, &n);
    doca_gpu_dev_eth_txq_poll_completion<DOCA_GPUNETIO_ETH_CQ_POLL_LAST, share, sync>(txq, 1, DOCA_GPUNETIO_ETH_WAIT_FLAG_NB, &n);
    doca_gpu_dev_eth_txq_poll_completion_at<share, sync>(txq, 0, waits);
    at = doca_gpu_dev_eth_txq_reserve_wq_slots<share>(txq, 3);
    struct doca_gpu_dev_eth_txq_wqe *wqe = doca_gpu_dev_eth_txq_get_wqe_ptr(txq, at);
    doca_gpu_dev_eth_txq_wqe_prepare_wait_time(txq, wqe, at, 1, none);
    doca_gpu_dev_eth_txq_wqe_prepare_send(txq, wqe, at + 1, addr, key, 60, none);
    doca_gpu_dev_eth_txq_wqe_prepare_send(txq, wqe, at + 2, addr, key, 60, addr, key, 60, notify);
    doca_gpu_dev_eth_txq_mark_wqes_ready<share>(txq, at, at + 2);
    doca_gpu_dev_eth_txq_submit<share, sync, nic>(txq, at + 3);
    doca_gpu_dev_eth_txq_submit_proxy<share, sync>(txq, at + 3);
    doca_gpu_dev_eth_txq_submit_db<share, sync>(txq, at + 3);
    doca_gpu_dev_eth_txq_ring_db<sync>(txq, at + 3);
    doca_gpu_dev_eth_txq_update_dbr<sync>(txq, at + 3);
    doca_priv_gpu_dev_eth_txq_update_dbr(txq, at + 3);
    at = doca_gpu_dev_eth_txq_prepare_db(txq, at + 3) + doca_gpu_dev_eth_txq_reserve_cq_slots(txq, 1);
    doca_gpu_dev_eth_txq_submit_cq_dbr(txq);
}

__global__ void eth_send(struct doca_gpu_eth_txq *txq, uint64_t addr, uint32_t key, uint64_t *t) {
    if (doca_gpu_dev_eth_get_lane_id() == DOCA_GPUNETIO_ETH_WARP_SIZE - 1) doca_gpu_dev_eth_txq_submit(txq, 0);
    send<DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE, DOCA_GPUNETIO_ETH_SYNC_SCOPE_SYS, DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO>(txq, addr, key, t);
    send<DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA, DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA, DOCA_GPUNETIO_ETH_NIC_HANDLER_CPU_PROXY>(txq, addr, key, t);
    send<DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU, DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU, DOCA_GPUNETIO_ETH_NIC_HANDLER_GPU_SM_DB>(txq, addr, key, t);
}

// ---- one-sided verbs and counters -------------------------------------------------------------------------

template <enum doca_gpu_dev_verbs_resource_sharing_mode share, enum doca_gpu_dev_verbs_nic_handler nic, enum doca_gpu_dev_verbs_exec_scope scope>
__device__ void one_sided(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr r, struct doca_gpu_dev_verbs_addr l) {
    const enum doca_gpu_dev_verbs_mcst_mode mcst = DOCA_GPUNETIO_VERBS_MCST_ENABLED;
    const enum doca_gpu_dev_verbs_blocking_mode blocks = DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED;
    const uint32_t opt = DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_DB_RINGING;
    doca_gpu_dev_verbs_ticket_t t;
    doca_gpu_dev_verbs_put<share, nic, scope>(qp, r, l, 64, &t);
    doca_gpu_dev_verbs_put<share, nic, scope>(qp, r, l, 64, &t, opt);
    doca_gpu_dev_verbs_put<share, nic, scope>(qp, r, l, 64);
    doca_gpu_dev_verbs_p<uint64_t, share, nic, scope>(qp, r, 1ul, &t, opt);
    doca_gpu_dev_verbs_p<uint8_t, share, nic, scope>(qp, r, 1);
    doca_gpu_dev_verbs_p<value28, share, nic, scope>(qp, r, value28(), &t);
    doca_gpu_dev_verbs_get<share, nic, scope>(qp, r, l, 64, l, &t);
    doca_gpu_dev_verbs_get<share, nic, scope, mcst, blocks>(qp, r, l, 64, l, &t, opt);
    doca_gpu_dev_verbs_signal<ADD, share, nic, scope>(qp, r, l, 1, &t, opt);
    doca_gpu_dev_verbs_signal<ADD, share, nic, scope>(qp, r, l, 1);
    doca_gpu_dev_verbs_put_signal<ADD, share, nic, scope>(qp, r, l, 64, r, l, 1, &t, opt);
    doca_gpu_dev_verbs_put_signal<ADD, share, nic, scope>(qp, r, l, 64, r, l, 1);
    doca_gpu_dev_verbs_send<share, nic, scope>(qp, l, 64, &t);
    doca_gpu_dev_verbs_recv<share, nic, scope>(qp, l, 64, &t);
    doca_gpu_dev_verbs_put_counter<share, nic, scope>(qp, r, l, 64, qp, r, l, 1);
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode share, enum doca_gpu_dev_verbs_nic_handler nic>
__device__ void one_sided_each(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_addr r, struct doca_gpu_dev_verbs_addr l) {
    doca_gpu_dev_verbs_ticket_t t;
    struct mlx5_cqe64 *cqe;
    one_sided<share, nic, SCOPE(THREAD)>(qp, r, l);
    one_sided<share, nic, SCOPE(WARP)>(qp, r, l);
    doca_gpu_dev_verbs_put_thread<share, nic>(qp, r, l, 64, &t, 0);
    doca_gpu_dev_verbs_put_warp<share, nic>(qp, r, l, 64, &t);
    doca_gpu_dev_verbs_p_thread<uint32_t, share, nic>(qp, r, 1, &t);
    doca_gpu_dev_verbs_p_warp<uint32_t, share, nic>(qp, r, 1, &t);
    doca_gpu_dev_verbs_get_thread<share, nic>(qp, r, l, 64, l, &t);
    doca_gpu_dev_verbs_get_warp<share, nic>(qp, r, l, 64, l, &t);
    doca_gpu_dev_verbs_get_wait<share, nic, DOCA_GPUNETIO_VERBS_MCST_ENABLED>(qp, l, t);
    doca_gpu_dev_verbs_get_wait<share, nic>(qp, l);
    doca_priv_gpu_dev_verbs_get_wait<share, nic>(qp, l, t);
    doca_gpu_dev_verbs_signal_thread<ADD, share, nic>(qp, r, l, 1, &t);
    doca_gpu_dev_verbs_signal_warp<ADD, share, nic>(qp, r, l, 1, &t);
    doca_gpu_dev_verbs_put_signal_thread<ADD, share, nic>(qp, r, l, 64, r, l, 1, &t);
    doca_gpu_dev_verbs_put_signal_warp<ADD, share, nic>(qp, r, l, 64, r, l, 1, &t);
    doca_gpu_dev_verbs_p_signal<uint64_t, ADD, share, nic>(qp, r, 1ul, r, l, 1, &t);
    doca_gpu_dev_verbs_p_signal<uint64_t, ADD, share, nic>(qp, r, 1ul, r, l, 1);
    doca_gpu_dev_verbs_wait<share, nic>(qp, t);
    doca_gpu_dev_verbs_wait<share, nic>(qp, &t);
    doca_gpu_dev_verbs_wait<share, nic>(qp);
    doca_gpu_dev_verbs_fence<share, nic>(qp);
    doca_gpu_dev_verbs_put_counter_thread<share, nic>(qp, r, l, 64, qp, r, l, 1);
    doca_gpu_dev_verbs_put_counter_warp<share, nic>(qp, r, l, 64, qp, r, l, 1, 0);
    doca_gpu_dev_verbs_get_counter<share, nic>(qp, r, l, 64, qp, r, l, 1);
    doca_gpu_dev_verbs_p_counter<uint64_t, share, nic>(qp, r, 1ul, qp, r, l, 1);
    doca_gpu_dev_verbs_signal_counter<ADD, share, nic>(qp, r, l, 1, qp, r, l, 1);
    doca_gpu_dev_verbs_put_signal_counter<ADD, share, nic>(qp, r, l, 64, r, l, 1, qp, r, l, 1);
    doca_gpu_dev_verbs_send_thread<share, nic>(qp, l, 64, &t);
    doca_gpu_dev_verbs_send_warp<share, nic>(qp, l, 64, &t);
    doca_gpu_dev_verbs_recv_thread<share, nic>(qp, l, 64, &t);
    doca_gpu_dev_verbs_recv_warp<share, nic>(qp, l, 64, &t);
    doca_gpu_dev_verbs_recv_wait<share, nic>(qp, l, &t, &cqe);
    doca_gpu_dev_verbs_recv_wait<share, nic, DOCA_GPUNETIO_VERBS_MCST_ENABLED, DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED>(qp, l, &cqe);
}

__global__ void verbs(struct doca_gpu_dev_verbs_qp *qp, uint64_t addr, uint32_t key, uint64_t *out) {
    struct doca_gpu_dev_verbs_addr r = {.addr = addr, .key = key}, l = {.addr = (uint64_t)out, .key = key};
    one_sided_each<SHARING(EXCLUSIVE), NIC(AUTO)>(qp, r, l);
    one_sided_each<SHARING(CTA), NIC(CPU_PROXY)>(qp, r, l);
    one_sided_each<SHARING(GPU), NIC(GPU_SM_DB)>(qp, r, l);
    one_sided_each<SHARING(GPU), NIC(GPU_SM_BF)>(qp, r, l);
    one_sided_each<SHARING(GPU), NIC(GPU_SM_NO_DBR)>(qp, r, l);
}

// ---- queue pairs and completions --------------------------------------------------------------------------

template <enum doca_gpu_dev_verbs_resource_sharing_mode share, enum doca_gpu_dev_verbs_sync_scope sync, enum doca_gpu_dev_verbs_nic_handler nic>
__device__ void low_level(struct doca_gpu_dev_verbs_qp *qp, uint64_t r, uint64_t l, uint32_t key) {
    struct doca_gpu_dev_verbs_qp *two[2] = {qp, qp};
    uint64_t at = doca_gpu_dev_verbs_reserve_wq_slots<share>(qp, 8, DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_SKIP_AVAILABILITY_CHECK), ends[2] = {at, at};
    struct doca_gpu_dev_verbs_wqe *wqe = doca_gpu_dev_verbs_get_wqe_ptr(qp, at & qp->sq_wqe_mask);
    doca_gpu_dev_verbs_wait_until_slot_available<share>(qp, at);
    doca_gpu_dev_verbs_wqe_prepare_nop(qp, wqe, at, FLAGS);
    uint64_t segment[2] = {0, 0};
    doca_gpu_dev_verbs_store_wqe_seg(segment, segment);
    doca_gpu_dev_verbs_wqe_prepare_write(qp, wqe, at, MLX5_OPCODE_RDMA_WRITE, FLAGS, 0, r, key, l, key, 64);
    doca_gpu_dev_verbs_wqe_prepare_write(qp, wqe, at, DOCA_GPUNETIO_MLX5_OPCODE_RDMA_WRITE, FLAGS, 0, r, key, l, key, 64, l + 64, key, 64);
    doca_gpu_dev_verbs_wqe_prepare_write_inl(qp, wqe, at, FLAGS, r, key, (uint64_t)two, 8);
    doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_header(qp, wqe, at, FLAGS, r, key, 8);
    doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_data<uint64_t>(qp, wqe, at);
    doca_gpu_dev_verbs_wqe_prepare_read(qp, wqe, at, FLAGS, r, key, l, key, 64);
    doca_gpu_dev_verbs_wqe_prepare_read(qp, wqe, at, FLAGS, r, key, l, key, 64, l + 64, key, 64);
    doca_gpu_dev_verbs_wqe_prepare_atomic(qp, wqe, at, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA, FLAGS, r, key, l, key, 8, 1, 0);
    doca_gpu_dev_verbs_wqe_prepare_atomic(qp, wqe, at, DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS, FLAGS, r, key, l, key, 8, 1, 2);
    doca_gpu_dev_verbs_wqe_prepare_wait(qp, wqe, at, FLAGS, at, qp->cq_sq.cq_num);
    doca_gpu_dev_verbs_wqe_prepare_dump(qp, wqe, at, FLAGS, l, key, 64);
    doca_gpu_dev_verbs_wqe_prepare_send(qp, wqe, at, MLX5_OPCODE_SEND, FLAGS, 0, l, key, 64);
    doca_gpu_dev_verbs_wqe_prepare_send(qp, wqe, at, MLX5_OPCODE_SEND, FLAGS, 0, l, key, 64, l, key, 64);
    doca_gpu_dev_verbs_wqe_prepare_send_inl(qp, wqe, at, FLAGS, l, 8);
    doca_gpu_dev_verbs_wqe_prepare_recv(qp, doca_gpu_dev_verbs_get_rwqe_ptr(qp, 0), l, key, 64);
    doca_gpu_dev_verbs_mark_wqes_ready<share>(qp, at, at + 7);
    doca_gpu_dev_verbs_mark_wqes_ready<share, DOCA_GPUNETIO_VERBS_QP_RQ, DOCA_GPUNETIO_VERBS_READY_MODE_LD_ST>(qp, at, at + 7);
    doca_gpu_dev_common_mark_wqes_ready<share>(qp->sq_ready_index, at, at + 7);
    doca_gpu_dev_verbs_submit<share, sync, nic>(qp, at + 8, DOCA_GPUNETIO_VERBS_GPU_CODE_OPT_CPU_PROXY_UPDATE_PI);
    doca_gpu_dev_verbs_submit<share, sync, nic, DOCA_GPUNETIO_VERBS_QP_RQ>(qp, at + 8);
    doca_gpu_dev_verbs_submit_db<share, sync>(qp, at + 8);
    doca_gpu_dev_verbs_submit_db_no_dbr<share, sync>(qp, at + 8);
    doca_gpu_dev_verbs_submit_bf<share, sync>(qp, at + 8, wqe);
    doca_gpu_dev_verbs_submit_bf_warp<share, sync>(qp, at + 8, wqe);
    doca_gpu_dev_verbs_submit_proxy<share, sync>(qp, at + 8);
    doca_gpu_dev_verbs_ring_proxy<share>(qp, at + 8);
    doca_gpu_dev_verbs_ring_db<sync>(qp, at + 8);
    doca_gpu_dev_verbs_ring_bf<sync>(qp, wqe);
    doca_gpu_dev_verbs_ring_bf_warp<sync>(qp, wqe);
    doca_gpu_dev_verbs_update_dbr<sync>(qp, doca_gpu_dev_verbs_prepare_dbr(1));
    doca_priv_gpu_dev_verbs_update_dbr(qp, 1);
    doca_gpu_dev_common_update_dbr(qp->sq_dbrec, 1);
    doca_gpu_dev_common_write_db<sync>(qp->sq_db, doca_gpu_dev_verbs_prepare_db(qp, at));
    doca_gpu_dev_common_ring_db<sync>(qp->sq_db, 1, doca_gpu_dev_common_prepare_db(1, at));
    doca_gpu_dev_verbs_submit_multi_qps<2, share, sync, nic>(two, ends);
    doca_gpu_dev_verbs_submit_db_multi_qps<2, share, sync>(two, ends);
    doca_gpu_dev_verbs_submit_db_multi_qps_no_dbr<2, share, sync>(two, ends, 0);
    doca_gpu_dev_verbs_submit_proxy_multi_qps<2, share, sync>(two, ends);
}

template <enum doca_gpu_dev_verbs_resource_sharing_mode share, enum doca_gpu_dev_verbs_qp_type type>
__device__ int completions(struct doca_gpu_dev_verbs_qp *qp, uint64_t at) {
    struct doca_gpu_dev_verbs_cq *cq = type == DOCA_GPUNETIO_VERBS_QP_RQ ? doca_gpu_dev_verbs_qp_get_cq_rq(qp) : doca_gpu_dev_verbs_qp_get_cq_sq(qp);
    uint64_t next;
    return doca_gpu_dev_verbs_poll_one_cq_at<share, type>(cq, at) + doca_gpu_dev_verbs_poll_cq_at<share, type>(cq, at) +
           doca_gpu_dev_verbs_poll_cq_collapsed_at<share, type>(qp, at) + doca_gpu_dev_verbs_poll_cq<share, type>(cq, 1) +
           doca_priv_gpu_dev_verbs_poll_one_cq_at<share, type>(cq, at) + doca_priv_gpu_dev_verbs_poll_cq_at<share, type>(cq, at) +
           doca_priv_gpu_dev_verbs_poll_cq_collapsed_at<share, type>(qp, cq, at, &next);
}

__global__ void queue_pairs(struct doca_gpu_dev_verbs_qp *qp, uint64_t r, uint64_t l, uint32_t key, struct doca_gpunetio_ib_mlx5_cqe64 *cqe, int *out) {
    low_level<SHARING(EXCLUSIVE), SYNC(SYS), NIC(AUTO)>(qp, r, l, key);
    low_level<SHARING(CTA), SYNC(CTA), NIC(CPU_PROXY)>(qp, r, l, key);
    low_level<SHARING(GPU), SYNC(GPU), NIC(GPU_SM_DB)>(qp, r, l, key);
    *out = completions<SHARING(EXCLUSIVE), DOCA_GPUNETIO_VERBS_QP_SQ>(qp, 0) + completions<SHARING(CTA), DOCA_GPUNETIO_VERBS_QP_SQ>(qp, 0) +
           completions<SHARING(GPU), DOCA_GPUNETIO_VERBS_QP_SQ>(qp, 0) + completions<SHARING(GPU), DOCA_GPUNETIO_VERBS_QP_RQ>(qp, 0);
    out[1] = (int)(doca_gpu_dev_verbs_cqe_idx_inc_mask(1, 2) + doca_gpu_dev_verbs_wqe_idx_inc_mask(1, 2) + doca_gpu_dev_verbs_cq_update_dbrec<true>(&qp->cq_sq, 1));
    out[2] = doca_gpu_dev_verbs_cqe_is_inline(cqe) + (int)doca_gpu_dev_verbs_cqe_get_bytes(cqe) + *doca_gpu_dev_verbs_cqe_get_inl_data(cqe);
    doca_gpu_dev_verbs_cq_print_cqe_err(cqe);
}

// ---- utilities --------------------------------------------------------------------------------------------

template <enum doca_gpu_dev_verbs_resource_sharing_mode share>
__device__ uint64_t words(uint64_t *p, uint32_t *q, int *lock) {
    doca_gpu_dev_verbs_lock<share>(lock);
    doca_gpu_dev_verbs_unlock<share>(lock);
    return doca_gpu_dev_verbs_atomic_max<uint64_t, share>(p, 1ul) + doca_gpu_dev_verbs_atomic_max<uint32_t, share, true>(q, 1) +
           doca_gpu_dev_verbs_atomic_add<uint64_t, share>(p, 1ul) + doca_gpu_dev_verbs_atomic_add<uint32_t, share>(q, 1) +
           doca_gpu_dev_verbs_atomic_read<uint64_t, share>(p) + doca_gpu_dev_verbs_atomic_read<uint32_t, share>(q) + doca_gpu_dev_verbs_load_relaxed<share>(p);
}

template <enum doca_gpu_dev_verbs_sync_scope sync>
__device__ void fences(void) {
    doca_gpu_dev_verbs_fence_acquire<sync>();
    doca_gpu_dev_verbs_fence_release<sync>();
}

__global__ void utilities(uint64_t *p, uint32_t *q, uint8_t *b, int *lock) {
    fences<SYNC(SYS)>();
    fences<SYNC(GPU)>();
    fences<SYNC(CTA)>();
    fences<SYNC(THREAD)>();
    p[0] = words<SHARING(EXCLUSIVE)>(p, q, lock) + words<SHARING(CTA)>(p, q, lock) + words<SHARING(GPU)>(p, q, lock);
    p[1] = doca_gpu_dev_verbs_query_globaltimer() + doca_gpu_dev_verbs_get_lane_id();
    p[2] = doca_gpu_dev_verbs_bswap64(p[2]) + doca_gpu_dev_verbs_bswap32(*q) + doca_gpu_dev_verbs_bswap16(*q);
    p[3] = doca_gpu_dev_verbs_load_relaxed_sys_global(b) + doca_gpu_dev_verbs_load_relaxed_sys_global(q) + doca_gpu_dev_verbs_load_relaxed_sys_global(p);
    p[4] = doca_gpu_dev_verbs_div_ceil_aligned_pow2(p[4], 30) + doca_gpu_dev_verbs_div_ceil_aligned_pow2_32bits(p[4], 30) + doca_gpu_dev_verbs_isaligned(p, 16);
    doca_gpu_dev_verbs_store_relaxed_mmio(p, 1);
    doca_gpu_dev_verbs_async_store_release(p, 1ul);
    doca_gpu_dev_verbs_async_store_release(q, 1u);
    doca_gpu_dev_verbs_memcpy_data(p, q, 8);
    doca_gpu_dev_verbs_memcpy_aligned_data(p, q, 8);
    doca_gpu_dev_verbs_memcpy_inl_aligned_data<uint64_t>(p, p + 1, 8);
    DOCA_GPUNETIO_VOLATILE(*q) = DOCA_GPUNETIO_VOLATILE(*b);
}

// ---- buffers, copies, semaphores --------------------------------------------------------------------------

__global__ void buffers(struct doca_gpu_buf_arr *arr, struct doca_gpu_dma *dma, struct doca_gpu_semaphore_gpu *sem, uint64_t *out) {
    struct doca_gpu_buf *buf, *other;
    uintptr_t addr;
    uint32_t key, n;
    void *info;
    enum doca_gpu_semaphore_status status;
    doca_gpu_dev_buf_get_buf(arr, 0, &buf);
    doca_gpu_dev_buf_get_addr(buf, &addr);
    doca_gpu_dev_buf_get_mkey(buf, &key);
    doca_gpu_dev_buf_create(addr, key, &other);
    if (doca_gpu_dev_dma_memcpy(dma, buf, 0, other, 8, 8) != DOCA_SUCCESS || doca_gpu_dev_dma_commit(dma) != DOCA_SUCCESS) return;
    doca_gpu_dev_semaphore_get_status(sem, 0, &status);
    doca_gpu_dev_semaphore_set_status(sem, 0, DOCA_GPU_SEMAPHORE_STATUS_HOLD);
    doca_gpu_dev_semaphore_set_status_cas(sem, 0, DOCA_GPU_SEMAPHORE_STATUS_HOLD, DOCA_GPU_SEMAPHORE_STATUS_DONE);
    doca_gpu_dev_semaphore_set_packet_info(sem, 0, DOCA_GPU_SEMAPHORE_STATUS_READY, 1, 2);
    doca_gpu_dev_semaphore_get_packet_info(sem, 0, &n, out);
    doca_gpu_dev_semaphore_get_packet_info_status(sem, 0, DOCA_GPU_SEMAPHORE_STATUS_READY, &n, out);
    doca_gpu_dev_semaphore_get_custom_info_addr(sem, 0, &info);
}

// ---- the RDMA library -------------------------------------------------------------------------------------

__global__ void rdma(struct doca_gpu_dev_rdma *rdma, struct doca_gpu_buf_arr *remote, struct doca_gpu_buf_arr *local, uint32_t *out) {
    struct doca_gpu_dev_rdma_r *r;
    struct doca_gpu_buf *there, *here;
    uint8_t data[8] = {0};
    uint32_t at, mask, imm[2], conn[2];
    doca_gpu_dev_buf_get_buf(remote, 0, &there);
    doca_gpu_dev_buf_get_buf(local, 0, &here);
    doca_gpu_dev_rdma_get_info(rdma, 0, &at, &mask);
    doca_gpu_dev_rdma_write_strong(rdma, 0, there, 0, here, 0, 64, 1, DOCA_GPU_RDMA_WRITE_FLAG_IMM);
    doca_gpu_dev_rdma_write_weak(rdma, 0, there, 0, here, 0, 64, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE, at & mask);
    doca_gpu_dev_rdma_write_inline_strong(rdma, 0, there, 0, data, 8, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE);
    doca_gpu_dev_rdma_write_inline_weak(rdma, 0, there, 0, data, 8, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE, at & mask);
    doca_gpu_dev_rdma_read_strong(rdma, 0, there, 0, here, 0, 64);
    doca_gpu_dev_rdma_read_weak(rdma, 0, there, 0, here, 0, 64, at & mask);
    doca_gpu_dev_rdma_send_strong(rdma, 0, here, 0, 64, 0, DOCA_GPU_RDMA_SEND_FLAG_NONE);
    doca_gpu_dev_rdma_send_weak(rdma, 0, here, 0, 64, 0, DOCA_GPU_RDMA_SEND_FLAG_IMM, at & mask);
    doca_gpu_dev_rdma_send_inline_strong(rdma, 0, data, 8, 0, DOCA_GPU_RDMA_SEND_FLAG_NONE);
    doca_gpu_dev_rdma_send_inline_weak(rdma, 0, data, 8, 0, DOCA_GPU_RDMA_SEND_FLAG_NONE, at & mask);
    doca_gpu_dev_rdma_commit_strong(rdma, 0);
    doca_gpu_dev_rdma_commit_weak(rdma, 0, 1);
    doca_gpu_dev_rdma_wait_all(rdma, out);
    doca_gpu_dev_rdma_get_recv(rdma, &r);
    doca_gpu_dev_rdma_recv_get_info(r, &at, &mask);
    doca_gpu_dev_rdma_recv_strong(r, here, 64, 0, 0);
    doca_gpu_dev_rdma_recv_weak(r, NULL, 0, 0, 0, at & mask);
    doca_gpu_dev_rdma_recv_commit_strong(r);
    doca_gpu_dev_rdma_recv_commit_weak(r, 1);
    doca_gpu_dev_rdma_recv_wait_all(r, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, out, imm, conn);
}
