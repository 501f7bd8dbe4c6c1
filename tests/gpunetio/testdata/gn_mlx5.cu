// gn_mlx5.cu: work queue entries in mlx5's format for TestGnMLX5 (gn_mlx5.lua): written by hand, by functions of DOCA's names, and invalid ones.
#include <doca_gpunetio_dev_verbs_onesided.cuh>

#define CHECK(what, holds)                                                                                                                                             \
    if (!(holds)) bad[0] |= 1ull << what

typedef struct doca_gpunetio_ib_mlx5_wqe_ctrl_seg ctrl_seg;
typedef struct doca_gpunetio_ib_mlx5_wqe_raddr_seg raddr_seg;
typedef struct doca_gpunetio_ib_mlx5_wqe_data_seg data_seg;
typedef struct doca_gpunetio_ib_mlx5_wqe_atomic_seg atomic_seg;

__device__ static uint32_t be32(uint32_t x) { return doca_gpu_dev_verbs_bswap32(x); }
__device__ static uint64_t be64(uint64_t x) { return doca_gpu_dev_verbs_bswap64(x); }

// What follows up to doorbell and completion uses the queue's memory alone.
__device__ static uint8_t *entry(struct doca_gpu_dev_verbs_qp *qp, uint64_t index, uint32_t opcode, uint32_t segments, uint8_t flags) {
    uint8_t *e = qp->sq_wqe_daddr + (index & qp->sq_wqe_mask) * 64;
    ctrl_seg *c = (ctrl_seg *)e;
    c->opmod_idx_opcode = be32((uint32_t)(index & 0xffff) << 8 | opcode);
    c->qpn_ds = be32(qp->sq_num_shift8 | segments);
    c->signature = 0;
    c->dci_stream_channel_id = 0;
    c->fm_ce_se = flags;
    c->imm = 0;
    return e;
}

__device__ static void remote_at(uint8_t *e, uint64_t address, uint32_t key) {
    raddr_seg *r = (raddr_seg *)(e + 16);
    r->raddr = be64(address);
    r->rkey = be32(key);
    r->reserved = 0;
}

__device__ static void data_at(uint8_t *segment, uint64_t address, uint32_t key, uint32_t bytes) {
    data_seg *d = (data_seg *)segment;
    d->byte_count = be32(bytes);
    d->lkey = be32(key);
    d->addr = be64(address);
}

// Stores the doorbell record, after the entries, and rings.
__device__ static void ring(struct doca_gpu_dev_verbs_qp *qp, uint64_t end) {
    doca_gpu_dev_verbs_fence_release<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
    *(volatile uint32_t *)qp->sq_dbrec = be32((uint32_t)end & 0xffff);
    doca_gpu_dev_verbs_fence_release<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
    *(volatile uint64_t *)qp->sq_db = *(uint64_t *)(qp->sq_wqe_daddr + ((end - 1) & qp->sq_wqe_mask) * 64);
}

// Waits for completion entry k, whose owner bit is that of its pass.
__device__ static mlx5_cqe64 *completion(struct doca_gpu_dev_verbs_qp *qp, uint64_t k) {
    mlx5_cqe64 *c = (mlx5_cqe64 *)qp->cq_sq.cqe_daddr + (k & qp->cq_sq.cqe_mask);
    for (;;) {
        uint8_t is = DOCA_GPUNETIO_VOLATILE(c->op_own);
        if ((is & 1) == ((k / qp->cq_sq.cqe_num) & 1) && is >> 4 != DOCA_GPUNETIO_IB_MLX5_CQE_INVALID) break;
    }
    doca_gpu_dev_verbs_fence_acquire<DOCA_GPUNETIO_VERBS_SYNC_SCOPE_SYS>();
    return c;
}

#define UPDATE DOCA_GPUNETIO_IB_MLX5_WQE_CTRL_CQ_UPDATE

// Several passes of writes, of which each eighth requests a completion entry.
__global__ void by_hand(struct doca_gpu_dev_verbs_qp *qp, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey, uint64_t *bad) {
    uint64_t l = (uint64_t)local, r = (uint64_t)remote, index = 0, done = 0;
    CHECK(0, qp->sq_wqe_num == 16 && qp->cq_sq.cqe_size == 64);
    for (uint32_t k = 0; k < 400; k++)
        local[k] = (uint8_t)(k * 7 + 1);
    for (uint32_t round = 0; round < 50; round++) {
        for (uint32_t k = 0; k < 8; k++, index++) {
            uint8_t *e = entry(qp, index, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, 3, k == 7 ? UPDATE : 0);
            remote_at(e, r + index, rkey);
            data_at(e + 32, l + index, lkey, 1);
        }
        ring(qp, index);
        mlx5_cqe64 *c = completion(qp, done++);
        CHECK(1, c->op_own >> 4 == DOCA_GPUNETIO_IB_MLX5_CQE_REQ && be32((uint32_t)c->wqe_counter << 16) == ((index - 1) & 0xffff));
        CHECK(1, c->sop_drop_qpn == be32(DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE << 24 | qp->sq_num));
    }
    for (uint32_t k = 0; k < 400; k++)
        CHECK(2, remote[k] == (uint8_t)(k * 7 + 1));
    // the other operations
    uint64_t *word = (uint64_t *)(remote + 1024), *was = (uint64_t *)(local + 1024);
    *word = 5;
    uint8_t *e = entry(qp, index++, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_READ, 4, UPDATE);
    remote_at(e, r, rkey);
    data_at(e + 32, l + 2000, lkey, 100);
    data_at(e + 48, l + 3000, lkey, 50);
    for (uint32_t k = 0; k < 2; k++) {
        e = entry(qp, index++, k ? DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_CS : DOCA_GPUNETIO_IB_MLX5_OPCODE_ATOMIC_FA, 4, UPDATE);
        remote_at(e, r + 1024, rkey);
        ((atomic_seg *)(e + 32))->swap_add = be64(k ? 40 : 3);
        ((atomic_seg *)(e + 32))->compare = be64(8);
        data_at(e + 48, l + 1024 + 8 * k, lkey, 8);
    }
    e = entry(qp, index++, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, 4, UPDATE);
    remote_at(e, r + 1100, rkey);
    *(uint32_t *)(e + 32) = be32((uint32_t)DOCA_GPUNETIO_IB_MLX5_INLINE_SEG | 28);
    for (uint32_t k = 0; k < 28; k++)
        e[36 + k] = (uint8_t)(k + 3);
    ring(qp, index);
    for (uint32_t k = 0; k < 4; k++)
        CHECK(3, completion(qp, done++)->op_own >> 4 == DOCA_GPUNETIO_IB_MLX5_CQE_REQ);
    for (uint32_t k = 0; k < 150; k++)
        CHECK(4, local[k < 100 ? 2000 + k : 2900 + k] == remote[k]);
    CHECK(5, *word == 40 && was[0] == 5 && was[1] == 8);
    for (uint32_t k = 0; k < 28; k++)
        CHECK(6, remote[1100 + k] == k + 3);
}

// The functions with DOCA's names, by all threads of a block on one queue.
__global__ void by_name(struct doca_gpu_dev_verbs_qp *qp, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey, uint64_t *bad) {
    uint64_t l = (uint64_t)local, r = (uint64_t)remote;
    doca_gpu_dev_verbs_cq *cq = doca_gpu_dev_verbs_qp_get_cq_sq(qp);
    if (threadIdx.x == 0) {
        // an entry of stored segments
        uint64_t at = doca_gpu_dev_verbs_reserve_wq_slots(qp, 3);
        uint64_t segments[6] = {(uint64_t)be32((uint32_t)at << 8 | MLX5_OPCODE_RDMA_WRITE) | (uint64_t)qp->sq_num_shift8_be_3ds << 32,
                                (uint64_t)UPDATE << 24, be64(r + 512), be32(rkey), be32(16) | (uint64_t)be32(lkey) << 32, be64(l)};
        uint64_t *e = (uint64_t *)doca_gpu_dev_verbs_get_wqe_ptr(qp, at);
        for (uint32_t k = 0; k < 6; k += 2)
            doca_gpu_dev_verbs_store_wqe_seg(e + k, segments + k);
        doca_gpu_dev_verbs_wqe_prepare_read(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at + 1), at + 1, UPDATE, r + 512, rkey, l + 600, lkey, 5, l + 700, lkey, 11);
        doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_header(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at + 2), at + 2, UPDATE, r + 1200, rkey, 8);
        doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_data(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at + 2), (uint64_t)0x1122334455667788);
        doca_gpu_dev_verbs_mark_wqes_ready(qp, at, at + 2);
        CHECK(0, doca_gpu_dev_verbs_poll_one_cq_at(cq, 0) == EBUSY);
        doca_gpu_dev_verbs_submit(qp, at + 3);
        CHECK(0, doca_gpu_dev_verbs_poll_cq_at(cq, 2) == 0);
        for (uint32_t k = 0; k < 16; k++)
            CHECK(1, remote[512 + k] == local[k] && local[k < 5 ? 600 + k : 695 + k] == local[k]);
        CHECK(2, *(uint64_t *)(remote + 1200) == 0x1122334455667788);
    }
    __syncthreads();
    uint32_t me = threadIdx.x;
    doca_gpu_dev_verbs_addr word = {r + 2048, rkey}, to = {r + 2056 + me, rkey}, from = {l + me, lkey}, old = {l + 1040 + 8 * me, lkey};
    uint64_t ticket;
    for (uint32_t round = 0; round < 20; round++)
        doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD>(qp, to, from, 1, word, old, 2, &ticket);
    doca_gpu_dev_verbs_wait(qp, ticket);
    __syncthreads();
    if (me == 0) {
        doca_gpu_dev_verbs_wait(qp);
        CHECK(3, *(uint64_t *)(remote + 2048) == 20 * 2 * blockDim.x);
        for (uint32_t k = 0; k < blockDim.x; k++)
            CHECK(4, remote[2056 + k] == local[k]);
    }
}

// An entry with a key that is not a peer's fails, and stops the queue: nothing after it is executed.
__global__ void invalid(struct doca_gpu_dev_verbs_qp *qp, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey, uint64_t *bad) {
    uint64_t l = (uint64_t)local, r = (uint64_t)remote;
    remote[3000] = 1;
    for (uint32_t k = 0; k < 4; k++) {
        uint8_t *e = entry(qp, k, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, 3, 0);
        remote_at(e, k == 1 ? l : r + 3000, k == 1 ? lkey : rkey);
        data_at(e + 32, l + 10 + k, lkey, 1);
        local[10 + k] = (uint8_t)(50 + k);
    }
    ring(qp, 4);
    const uint8_t syndromes[3] = {0x13, 0x05, 0x05};
    for (uint32_t k = 0; k < 3; k++) {
        mlx5_err_cqe *c = (mlx5_err_cqe *)completion(qp, k);
        CHECK(0, c->op_own >> 4 == DOCA_GPUNETIO_IB_MLX5_CQE_REQ_ERR);
        CHECK(1, c->syndrome == syndromes[k] && be32((uint32_t)c->wqe_counter << 16) == k + 1);
    }
    CHECK(2, doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), 2) == -EIO);
    CHECK(3, remote[3000] == 50 && local[0] != 51);
    gn_side side = doca_side(qp);
    gn_tx tx;
    CHECK(4, gn_tx_open(&tx, &side, 0) == GN_INVALID);
}

// A kernel that dies and is started again has an empty queue, whose first index is 0.
__global__ void again(struct doca_gpu_dev_verbs_qp *qp, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey, uint64_t *bad) {
    CHECK(0, qp->sq_rsvd_index == 0 && *qp->sq_dbrec == 0);
    for (uint32_t k = 0; k < 5; k++) {
        uint8_t *e = entry(qp, k, DOCA_GPUNETIO_IB_MLX5_OPCODE_RDMA_WRITE, 3, UPDATE);
        remote_at(e, (uint64_t)remote + 3100 + k, rkey);
        data_at(e + 32, (uint64_t)local + k, lkey, 1);
        local[k] = (uint8_t)(bad[1] * 10 + k);
    }
    ring(qp, 5);
    for (uint32_t k = 0; k < 5; k++)
        CHECK(1, completion(qp, k)->op_own >> 4 == DOCA_GPUNETIO_IB_MLX5_CQE_REQ && remote[3100 + k] == bad[1] * 10 + k);
    if (++bad[1] < 3) *(volatile uint64_t *)8 = 0;
}
