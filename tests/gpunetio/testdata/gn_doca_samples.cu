// gn_doca_samples.cu: kernels with the shapes of DOCA's public samples, for TestGnDocaSamples (gn_doca_samples.lua).
#include <doca_gpunetio_dev_eth_rxq.cuh>
#include <doca_gpunetio_dev_eth_txq.cuh>
#include <doca_gpunetio_dev_verbs_counter.cuh>
#include <doca_gpunetio_dev_verbs_twosided.cuh>
#include <doca_log.h>

#define SHARED DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
#define NIC    DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO
#define AT(buf, size, i, mkey) doca_gpu_dev_verbs_addr{.addr = (uint64_t)((buf) + (size) * (i)), .key = (uint32_t)(mkey)}

// Each thread moves its own bytes; how: 0 put, 1 get, 2 put with signal, 3 put with counter.
template <enum doca_gpu_dev_verbs_exec_scope scope, int how>
__global__ void bandwidth(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *companion, uint32_t rounds, uint32_t size, uint8_t *local,
                          uint32_t lkey, uint64_t *prev, uint32_t prev_key, uint8_t *remote, uint32_t rkey, uint64_t *flag, uint32_t flag_key, uint64_t *bad) {
    uint32_t t = threadIdx.x + blockIdx.x * blockDim.x;
    doca_gpu_dev_verbs_ticket_t ticket;
    uint8_t *from = (how == 1 ? remote : local) + size * t, *to = (how == 1 ? local : remote) + size * t;
    for (uint32_t k = 0; k < size; k++) {
        from[k] = (uint8_t)(t + 1 + how);
        to[k] = 0;
    }
    for (uint32_t k = 0; k < rounds; k++) {
        if (how == 0) doca_gpu_dev_verbs_put<SHARED, NIC, scope>(qp, AT(remote, size, t, rkey), AT(local, size, t, lkey), size, &ticket);
        if (how == 1)
            doca_gpu_dev_verbs_get<SHARED, NIC, scope>(qp, AT(remote, size, t, rkey), AT(local, size, t, lkey), size, AT((uint8_t *)0, 0, 0, 0), &ticket);
        if (how == 2)
            doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD, SHARED, NIC, scope>(
                qp, AT(remote, size, t, rkey), AT(local, size, t, lkey), size, AT(flag, 1, t, flag_key), AT(prev, 1, t, prev_key), 1, &ticket);
        if (how == 3)
            doca_gpu_dev_verbs_put_counter<SHARED, NIC, scope>(qp, AT(remote, size, t, rkey), AT(local, size, t, lkey), size, companion,
                                                               AT(flag, 1, t, flag_key), AT(prev, 1, t, prev_key), 1);
        if (how < 3 && doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), ticket) != 0) bad[0] = 1;
    }
    while (how >= 2 && doca_gpu_dev_verbs_atomic_read<uint64_t, SHARED>(&prev[t]) != rounds - 1) // the previous value of the last one
        doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
    for (uint32_t k = 0; k < size; k++)
        if (DOCA_GPUNETIO_VOLATILE(to[k]) != (uint8_t)(t + 1 + how)) bad[0] = 2; // over loop a peer's memory is the kernel's own, too
    __syncthreads();
    if (threadIdx.x == 0) doca_gpu_dev_verbs_wait<SHARED, NIC>(qp);
}

// Entries by hand, without reserving: each thread's behind the producer index.
__global__ void write_bw(struct doca_gpu_dev_verbs_qp *qp, uint32_t rounds, uint32_t size, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey, uint64_t *bad) {
    uint64_t at = 0;
    for (uint32_t k = 0; k < rounds; k++) {
        at = doca_gpu_dev_verbs_atomic_read<uint64_t, SHARED>(&qp->sq_wqe_pi) + threadIdx.x;
        struct doca_gpu_dev_verbs_wqe *wqe = doca_gpu_dev_verbs_get_wqe_ptr(qp, at & qp->sq_wqe_mask);
        doca_gpu_dev_verbs_wqe_prepare_write(qp, wqe, at, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE, 0,
                                             (uint64_t)(remote + size * threadIdx.x), rkey, (uint64_t)(local + size * threadIdx.x), lkey, size);
        __syncthreads();
        if (threadIdx.x == blockDim.x - 1) doca_gpu_dev_verbs_submit<SHARED>(qp, at + 1);
        __syncthreads();
    }
    if (threadIdx.x == blockDim.x - 1 && doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), at) != 0) bad[0] = 1;
}

template <bool is_client>
__global__ void write_lat(struct doca_gpu_dev_verbs_qp *qp, uint32_t rounds, uint8_t *poll, uint8_t *post, uint32_t post_key, uint8_t *remote, uint32_t rkey) {
    for (uint32_t k = 1; k <= rounds; k++) {
        for (int turn = 0; turn < 2; turn++) {
            if ((turn == 0) == is_client) {
                DOCA_GPUNETIO_VOLATILE(*post) = (uint8_t)k;
                doca_gpu_dev_verbs_put(qp, AT(remote, 0, 0, rkey), AT(post, 0, 0, post_key), 1);
            } else {
                while (DOCA_GPUNETIO_VOLATILE(*poll) != (uint8_t)k) continue;
            }
        }
    }
    doca_gpu_dev_verbs_wait(qp);
}

template <enum doca_gpu_dev_eth_exec_scope scope>
__global__ void send(struct doca_gpu_eth_txq *txq, uint8_t *buf, uint32_t mkey, uint32_t size, uint32_t rounds, uint64_t *bad) {
    doca_gpu_dev_eth_ticket_t ticket;
    uint32_t done;
    bool last = threadIdx.x == blockDim.x - 1;
    for (uint32_t k = 0; k < rounds; k++) {
        doca_gpu_dev_eth_txq_send<DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU, DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU, DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO, scope>(
            txq, (uint64_t)(buf + size * threadIdx.x), mkey, size, last ? DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY : DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, &ticket);
        if (last && doca_gpu_dev_eth_txq_poll_completion<DOCA_GPUNETIO_ETH_CQ_POLL_LAST>(txq, 1, DOCA_GPUNETIO_ETH_WAIT_FLAG_B, &done) != DOCA_SUCCESS) bad[0] = 1;
        __syncthreads();
    }
}

template <enum doca_gpu_dev_eth_exec_scope scope>
__global__ void receive(struct doca_gpu_eth_rxq *rxq, uint32_t *exit_flag, uint64_t *packets) {
    __shared__ uint64_t first;
    __shared__ uint32_t n;
    while (DOCA_GPUNETIO_VOLATILE(*exit_flag) == 0) {
        doca_error_t result = doca_gpu_dev_eth_rxq_recv<scope>(rxq, 0, 500000, &first, &n, NULL);
        if (threadIdx.x == 0) packets[0] += result == DOCA_SUCCESS ? n : 1000000;
        __syncthreads();
    }
}
