// gn_doca_ops.cu: entries by hand for TestGnDocaOps (gn_doca_ops.lua): two segments, inline bytes, compare-and-swap, a wait for another queue pair.
#include <doca_gpunetio_dev_rdma.cuh>
#include <doca_gpunetio_dev_verbs_counter.cuh>

#define FLAGS DOCA_GPUNETIO_MLX5_WQE_CTRL_CQ_UPDATE
#define CHECK(what, holds)                                                                                                                                             \
    if (!(holds)) bad[0] |= 1ull << what

// One thread. remote is a peer's memory, which over loop the kernel can read.
__global__ void operations(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *companion, struct doca_gpu_dev_rdma *rdma, uint8_t *local, uint32_t lkey,
                           uint8_t *remote, uint32_t rkey, uint64_t *bad) {
    uint64_t l = (uint64_t)local, r = (uint64_t)remote, *word = (uint64_t *)(remote + 1024), *was = (uint64_t *)(local + 1024);
    for (uint32_t k = 0; k < 256; k++)
        local[k] = (uint8_t)(k + 1);
    *word = 5;
    // two segments, apart
    uint64_t at = doca_gpu_dev_verbs_reserve_wq_slots(qp, 6);
    doca_gpu_dev_verbs_wqe_prepare_write(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at), at, MLX5_OPCODE_RDMA_WRITE, FLAGS, 0, r, rkey, l, lkey, 10, l + 100, lkey, 7);
    doca_gpu_dev_verbs_wqe_prepare_read(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at + 1), at + 1, FLAGS, r, rkey, l + 300, lkey, 4, l + 400, lkey, 13);
    doca_gpu_dev_verbs_wqe_prepare_write_inl(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at + 2), at + 2, FLAGS, r + 64, rkey, l, 28);
    doca_gpu_dev_verbs_wqe_prepare_atomic(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at + 3), at + 3, MLX5_OPCODE_ATOMIC_CS, FLAGS, r + 1024, rkey, l + 1024, lkey, 8, 4, 8);
    doca_gpu_dev_verbs_wqe_prepare_atomic(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at + 4), at + 4, MLX5_OPCODE_ATOMIC_CS, FLAGS, r + 1024, rkey, l + 1032, lkey, 8, 5, 9);
    doca_gpu_dev_verbs_wqe_prepare_nop(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, at + 5), at + 5, FLAGS);
    doca_gpu_dev_verbs_mark_wqes_ready(qp, at, at + 5);
    doca_gpu_dev_verbs_submit(qp, at + 6);
    CHECK(0, doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(qp), at + 5) == 0);
    for (uint32_t k = 0; k < 17; k++) {
        uint8_t want = k < 10 ? k + 1 : 101 + (k - 10);
        CHECK(1, remote[k] == want && (k < 4 ? local[300 + k] : local[400 + k - 4]) == want);
    }
    for (uint32_t k = 0; k < 28; k++)
        CHECK(2, remote[64 + k] == k + 1);
    CHECK(3, *word == 9 && was[0] == 5 && was[1] == 5);
    // the RDMA library's inline bytes
    doca_gpu_buf *buf;
    doca_gpu_dev_buf_create(r + 128, rkey, &buf);
    uint32_t commits;
    CHECK(4, doca_gpu_dev_rdma_write_inline_strong(rdma, 0, buf, 0, local, 44, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE) == DOCA_SUCCESS);
    CHECK(4, doca_gpu_dev_rdma_write_inline_strong(rdma, 0, buf, 0, local, 45, 0, DOCA_GPU_RDMA_WRITE_FLAG_NONE) == DOCA_ERROR_TOO_BIG);
    CHECK(4, doca_gpu_dev_rdma_wait_all(rdma, &commits) == DOCA_SUCCESS);
    for (uint32_t k = 0; k < 44; k++)
        CHECK(4, remote[128 + k] == k + 1);
    // the companion waits for the next index, which comes later
    uint64_t next = doca_gpu_dev_verbs_reserve_wq_slots(qp, 1), wait = doca_gpu_dev_verbs_reserve_wq_slots(companion, 2);
    doca_gpu_dev_verbs_wqe_prepare_wait(companion, doca_gpu_dev_verbs_get_wqe_ptr(companion, wait), wait, FLAGS, next, qp->cq_sq.cq_num);
    doca_gpu_dev_verbs_wqe_prepare_atomic(companion, doca_gpu_dev_verbs_get_wqe_ptr(companion, wait + 1), wait + 1, MLX5_OPCODE_ATOMIC_FA, FLAGS, r + 1024, rkey, l + 1024,
                                          lkey, 8, 1, 0);
    doca_gpu_dev_verbs_mark_wqes_ready(companion, wait, wait + 1);
    doca_gpu_dev_verbs_submit(companion, wait + 2);
    CHECK(5, doca_gpu_dev_verbs_poll_one_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(companion), wait) == EBUSY);
    doca_gpu_dev_verbs_wqe_prepare_atomic(qp, doca_gpu_dev_verbs_get_wqe_ptr(qp, next), next, MLX5_OPCODE_ATOMIC_CS, FLAGS, r + 1024, rkey, l + 1032, lkey, 8, 9, 20);
    doca_gpu_dev_verbs_mark_wqes_ready(qp, next, next);
    doca_gpu_dev_verbs_submit(qp, next + 1);
    CHECK(5, doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(companion), wait + 1) == 0);
    CHECK(5, was[0] == 20 && *word == 21);
    // the same with gn.h
    gn_side side = doca_side(qp);
    gn_tx tx;
    gn_u64 old = 0;
    CHECK(6, gn_tx_open(&tx, &side, 0) == GN_OK);
    CHECK(6, gn_compare_swap(&tx, doca_place(&side, r + 1024, rkey, GN_REMOTE), 21, 1, doca_place(&side, l + 1024, lkey, 0), GN_LIMIT, &old) == GN_OK);
    CHECK(6, old == 21 && *word == 1);
}

// A counter does not move for an operation that failed: its place is not a peer's.
__global__ void failing(struct doca_gpu_dev_verbs_qp *qp, struct doca_gpu_dev_verbs_qp *companion, uint8_t *local, uint32_t lkey, uint8_t *remote, uint32_t rkey,
                        uint64_t *bad) {
    struct doca_gpu_dev_verbs_addr l = {(uint64_t)local, lkey}, r = {(uint64_t)remote, rkey}, word = {(uint64_t)remote + 2048, rkey}, old = {(uint64_t)local + 2048, lkey};
    uint64_t *count = (uint64_t *)(remote + 2048);
    *count = 0;
    doca_gpu_dev_verbs_put_counter(qp, r, l, 64, companion, word, old, 1);
    doca_gpu_dev_verbs_put_counter(qp, l, l, 64, companion, word, old, 1);
    CHECK(0, doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(companion), 1) == 0);
    CHECK(1, doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_qp_get_cq_sq(companion), 3) == -EIO);
    CHECK(2, *count == 1);
}
