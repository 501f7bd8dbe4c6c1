// gn_doca_imm.cu: for TestGnDocaImm (gn_doca_imm.lua): a kernel sends immediate values in every way that DOCA's names have, another one receives them.
#include <doca_gpunetio_dev_rdma.cuh>

#define FLAGS DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE
#define CHECK(what, holds)                                                                                                                                             \
    if (!(holds)) bad[0] |= 1ull << what

enum { WAYS = 7 };

// The immediate value of operation k, in the byte order of the wire: all four bytes differ.
__device__ static uint32_t value(uint32_t k) { return doca_gpu_dev_verbs_bswap32(0x01020304u + k * 0x01010101u); }
__device__ static int is_write(uint32_t k) { return k % WAYS == 0 || k % WAYS == 2 || k % WAYS == 4 || k % WAYS == 5; }

// Operation k puts, or sends, the 8 bytes k + 1 from place k of local; a put goes to place k of remote.
__device__ static void by_entry(struct doca_gpu_dev_verbs_qp *qp, uint32_t k, uint32_t way, uint64_t l, uint32_t lkey, uint64_t r, uint32_t rkey) {
    uint64_t at = doca_gpu_dev_verbs_reserve_wq_slots(qp, 1);
    struct doca_gpu_dev_verbs_wqe *wqe = doca_gpu_dev_verbs_get_wqe_ptr(qp, at);
    if (way == 0) doca_gpu_dev_verbs_wqe_prepare_write(qp, wqe, at, MLX5_OPCODE_RDMA_WRITE_IMM, FLAGS, value(k), r, rkey, l, lkey, 8);
    if (way == 1) doca_gpu_dev_verbs_wqe_prepare_send(qp, wqe, at, MLX5_OPCODE_SEND_IMM, FLAGS, value(k), l, lkey, 8);
    if (way == 2) doca_gpu_dev_verbs_wqe_prepare_write(qp, wqe, at, MLX5_OPCODE_RDMA_WRITE_IMM, FLAGS, value(k), r, rkey, l, lkey, 3, l + 3, lkey, 5);
    doca_gpu_dev_verbs_mark_wqes_ready(qp, at, at);
    doca_gpu_dev_verbs_submit(qp, at + 1);
}

__device__ static doca_error_t by_library(struct doca_gpu_dev_rdma *rdma, uint32_t k, doca_gpu_buf *local, doca_gpu_buf *remote, uint8_t *bytes) {
    uint32_t position, mask;
    doca_error_t err;
    switch (k % WAYS) {
    case 3:
        return doca_gpu_dev_rdma_send_strong(rdma, 0, local, 8 * k, 8, value(k), DOCA_GPU_RDMA_SEND_FLAG_IMM);
    case 4:
        return doca_gpu_dev_rdma_write_inline_strong(rdma, 0, remote, 8 * k, bytes, 8, value(k), DOCA_GPU_RDMA_WRITE_FLAG_IMM);
    case 5:
        doca_gpu_dev_rdma_get_info(rdma, 0, &position, &mask);
        err = doca_gpu_dev_rdma_write_weak(rdma, 0, remote, 8 * k, local, 8 * k, 8, value(k), DOCA_GPU_RDMA_WRITE_FLAG_IMM, position);
        break;
    default:
        doca_gpu_dev_rdma_get_info(rdma, 0, &position, &mask);
        err = doca_gpu_dev_rdma_send_inline_weak(rdma, 0, bytes, 8, value(k), DOCA_GPU_RDMA_SEND_FLAG_IMM, position);
    }
    doca_gpu_dev_rdma_commit_weak(rdma, 0, 1);
    return err;
}

// Then `plain` sends a packet without an immediate value.
__global__ void sender(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_rdma *rdma, uint32_t n, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey,
                       uint64_t *bad) {
    doca_gpu_buf *from, *to;
    uint32_t commits;
    doca_gpu_dev_buf_create((uint64_t)local, lkey, &from);
    doca_gpu_dev_buf_create((uint64_t)remote, rkey, &to);
    for (uint32_t k = 0; k < n; k++) {
        ((uint64_t *)local)[k] = k + 1;
        if (k % WAYS < 3)
            by_entry(qp, k, k % WAYS, (uint64_t)local + 8 * k, lkey, (uint64_t)remote + 8 * k, rkey);
        else
            CHECK(0, by_library(rdma, k, from, to, local + 8 * k) == DOCA_SUCCESS);
    }
    CHECK(1, doca_gpu_dev_rdma_send_strong(rdma, 0, from, 0, 8, 77, DOCA_GPU_RDMA_SEND_FLAG_NONE) == DOCA_SUCCESS);
    CHECK(2, doca_gpu_dev_rdma_wait_all(rdma, &commits) == DOCA_SUCCESS);
}

// The same by entries alone, which a queue pair in mlx5's format has in its own layout.
__global__ void formatted(struct doca_gpu_dev_verbs_qp *qp, uint32_t n, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey, uint64_t *bad) {
    for (uint32_t k = 0; k < n; k++) {
        ((uint64_t *)local)[k] = k + 1;
        by_entry(qp, k, k % 3, (uint64_t)local + 8 * k, lkey, (uint64_t)remote + 8 * k, rkey);
    }
    uint64_t at = doca_gpu_dev_verbs_reserve_wq_slots(qp, 1);
    doca_gpu_dev_verbs_wqe_prepare_send(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at), at, MLX5_OPCODE_SEND, FLAGS, 0, (uint64_t)local, lkey, 8);
    doca_gpu_dev_verbs_mark_wqes_ready(qp, at, at);
    doca_gpu_dev_verbs_submit(qp, at + 1);
    CHECK(0, doca_gpu_dev_verbs_wait(qp) == 0);
    for (uint32_t k = 0; k < n; k++)
        CHECK(1, k % 3 == 1 || ((uint64_t *)remote)[k] == k + 1);
}

// Receives n immediates by completions, then a packet without one. memory: what the peer writes to; place: where its packets go.
__global__ void by_completion(struct doca_gpu_dev_verbs_qp *qp, uint32_t n, uint64_t *memory, uint64_t *place, uint32_t key, uint64_t *bad, uint64_t *count) {
    struct doca_gpu_dev_verbs_addr at = {(uint64_t)place, key}, none = {0, 0};
    struct mlx5_cqe64 *cqe;
    doca_gpu_dev_verbs_ticket_t ticket;
    for (uint32_t k = 0; k <= n; k++) {
        doca_gpu_dev_verbs_recv(qp, at, 8, &ticket);
        CHECK(3, doca_gpu_dev_verbs_recv_wait(qp, none, &ticket, &cqe) == DOCA_SUCCESS && cqe != 0);
        if (bad[0]) return;
        uint32_t opcode = cqe->op_own >> DOCA_GPUNETIO_VERBS_MLX5_CQE_OPCODE_SHIFT, bytes = doca_gpu_dev_verbs_cqe_get_bytes(cqe);
        if (k == n) {
            CHECK(4, opcode == DOCA_GPUNETIO_MLX5_CQE_RESP_SEND && bytes == 8 && *place == 1);
        } else if (is_write(k)) {
            CHECK(5, opcode == DOCA_GPUNETIO_MLX5_CQE_RESP_WR_IMM && bytes == 0 && memory[k] == k + 1);
        } else {
            CHECK(6, opcode == DOCA_GPUNETIO_MLX5_CQE_RESP_SEND_IMM && bytes == 8 && *place == k + 1);
        }
        CHECK(7, k == n || cqe->imm_inval_pkey == value(k));
        count[0]++;
    }
}

// The same by the library: 64 receives are posted at a time.
__global__ void by_waiting(struct doca_gpu_dev_rdma *rdma, uint32_t n, uint64_t *memory, uint64_t *place, uint32_t key, uint64_t *bad, uint64_t *count) {
    doca_gpu_dev_rdma_r *receives;
    doca_gpu_buf *at;
    uint32_t imm[64], conn[64];
    doca_gpu_dev_buf_create((uint64_t)place, key, &at);
    CHECK(3, doca_gpu_dev_rdma_get_recv(rdma, &receives) == DOCA_SUCCESS);
    for (uint32_t first = 0, got; first <= n; first += got) {
        uint32_t most = n + 1 - first < 64 ? n + 1 - first : 64;
        for (uint32_t k = 0; k < most; k++)
            doca_gpu_dev_rdma_recv_strong(receives, at, 8, 8 * (first + k), 0);
        doca_gpu_dev_rdma_recv_commit_strong(receives);
        CHECK(4, doca_gpu_dev_rdma_recv_wait_all(receives, DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, &got, imm, conn) == DOCA_SUCCESS && got == most);
        if (bad[0]) return;
        for (uint32_t k = first; k < first + got; k++) {
            CHECK(5, imm[k - first] == (k == n ? 0 : value(k)) && conn[k - first] == 0);
            CHECK(6, k == n || (is_write(k) ? memory[k] : place[k]) == k + 1);
        }
        count[0] += got;
    }
}

// It fails, and nothing is sent: the queue's engine carries no immediates. The next packet is sent.
__global__ void refused(void *context, unsigned int mine, uint64_t *bad) {
    gn_side side;
    gn_tx tx;
    gn_u64 ticket;
    CHECK(0, gn_open(&side, context) == GN_OK && gn_tx_open(&tx, &side, 0) == GN_OK);
    CHECK(1, gn_send_imm(&tx, GN_BY_THREAD, gn_place(mine, 0), 8, 7, 0, GN_LIMIT, &ticket) == GN_OK && gn_wait(&tx, ticket, GN_LIMIT) == GN_FAILED);
    CHECK(2, gn_send(&tx, GN_BY_THREAD, gn_place(mine, 0), 8, 0, 0, GN_LIMIT, &ticket) == GN_OK && gn_wait(&tx, ticket, GN_LIMIT) == GN_OK);
}
