// doca_gpunetio_dev_rdma.cuh: the RDMA library's functions. Strong: the next position; an operation begins
// when it is posted. Weak: the caller's position; operations begin with the commit. There is one connection.
// Immediate values have the byte order of the wire.
#ifndef DOCA_GPUNETIO_DEV_RDMA_CUH
#define DOCA_GPUNETIO_DEV_RDMA_CUH

#include "doca_gpunetio_dev_buf.cuh"
#include "doca_gpunetio_dev_verbs_twosided.cuh"

enum doca_gpu_dev_rdma_write_flags { DOCA_GPU_RDMA_WRITE_FLAG_NONE = 0, DOCA_GPU_RDMA_WRITE_FLAG_IMM = 1 };
enum doca_gpu_dev_rdma_send_flags { DOCA_GPU_RDMA_SEND_FLAG_NONE = 0, DOCA_GPU_RDMA_SEND_FLAG_IMM = 1 };
enum doca_gpu_dev_rdma_recv_wait_flags {
    DOCA_GPU_RDMA_RECV_WAIT_FLAG_NB = 0,
    DOCA_GPU_RDMA_RECV_WAIT_FLAG_B = 1
};

struct doca_gpu_dev_rdma {
    doca_gpu_dev_verbs_qp gn_qp; // sq_ready_index: commits since the last wait
};
struct doca_gpu_dev_rdma_r {
    doca_gpu_dev_verbs_qp gn_qp;
};

#define DOCA_POSITION_NONE 0xffffffffu
#define DOCA_RDMA_INLINE   44 // bytes: two entries of a ring, one with a position

// Posts a slot at the next position, or prepares it at the caller's.
DOCA_FN doca_error_t doca_rdma_post(doca_gpu_dev_rdma *rdma, const gn_slot *slot, uint32_t position) {
    if (position != DOCA_POSITION_NONE) return doca_error_of(doca_prepare(&rdma->gn_qp, position, slot));
    return doca_post_qp(&rdma->gn_qp, GN_BY_THREAD, slot, 1, 0);
}

DOCA_FN doca_error_t doca_rdma_move(doca_gpu_dev_rdma *rdma, gn_u32 op, doca_gpu_buf *remote, uint64_t roff,
                                    doca_gpu_buf *local, uint64_t loff, size_t len, const uint32_t *imm,
                                    uint32_t position) {
    gn_side s = doca_side(&rdma->gn_qp);
    gn_u64 to = doca_buf_place(&s, remote, roff, GN_REMOTE);
    if (len > DOCA_LARGEST) return DOCA_ERROR_TOO_BIG;
    gn_slot slot = imm ? gn_fill_move(op, doca_buf_place(&s, local, loff, 0), to, (gn_u32)len)
                       : doca_fill_move(op, doca_buf_place(&s, local, loff, 0), to, len);
    if (imm) doca_fill_imm(&slot, *imm);
    return doca_rdma_post(rdma, &slot, position);
}

DOCA_FN doca_error_t doca_rdma_write_inline(doca_gpu_dev_rdma *rdma, doca_gpu_buf *remote, uint64_t roff,
                                            const uint8_t *data, size_t len, const uint32_t *imm,
                                            uint32_t position) {
    gn_side s = doca_side(&rdma->gn_qp);
    const gn_u32 most = imm ? GN_INLINE_IMM : GN_INLINE_BYTES;
    gn_u32 first = len < most ? (gn_u32)len : most, more = (gn_u32)len - first;
    if (len == 0 || len > DOCA_RDMA_INLINE || (more && position != DOCA_POSITION_NONE))
        return DOCA_ERROR_TOO_BIG;
    gn_u64 to = doca_buf_place(&s, remote, roff, GN_REMOTE);
    gn_slot slots[2] = {doca_fill_inline(to, data, first), gn_fill_nop()};
    if (more) slots[1] = doca_fill_inline(to + first, data + first, more);
    if (imm) doca_fill_imm(&slots[more > 0], *imm);
    if (more) return doca_post_qp(&rdma->gn_qp, GN_BY_THREAD, slots, 2, 0);
    return doca_rdma_post(rdma, slots, position);
}

DOCA_FN doca_error_t doca_rdma_send(doca_gpu_dev_rdma *rdma, gn_u64 place, size_t len, const uint32_t *imm,
                                    uint32_t position) {
    if (len > DOCA_LARGEST) return DOCA_ERROR_TOO_BIG;
    gn_slot slot = gn_fill_send(place, (gn_u32)len, 0, 0);
    if (imm) doca_fill_imm(&slot, *imm);
    return doca_rdma_post(rdma, &slot, position);
}

// The position is an index, of which 16 bits are enough.
GN_FN doca_error_t doca_gpu_dev_rdma_get_info(doca_gpu_dev_rdma *rdma, uint32_t, uint32_t *position,
                                              uint32_t *mask) {
    doca_tx t = doca_open_tx(&rdma->gn_qp);
    *position = (uint32_t)(gn_next(&t.q) - t.first) & 0xffff;
    *mask = 0xffff;
    return DOCA_SUCCESS;
}

#define DOCA_IMM_WRITE (flags & DOCA_GPU_RDMA_WRITE_FLAG_IMM ? &imm : 0)
#define DOCA_IMM_SEND  (flags & DOCA_GPU_RDMA_SEND_FLAG_IMM ? &imm : 0)

#define DOCA_RDMA(mode, more, position)                                                                      \
    GN_FN doca_error_t doca_gpu_dev_rdma_write_##mode(                                                       \
        doca_gpu_dev_rdma *rdma, uint32_t, doca_gpu_buf *remote_buf, uint64_t remote_offset,                 \
        doca_gpu_buf *local_buf, uint64_t local_offset, size_t length, uint32_t imm,                         \
        doca_gpu_dev_rdma_write_flags flags more) {                                                          \
        return doca_rdma_move(rdma, GN_OP_PUT, remote_buf, remote_offset, local_buf, local_offset, length,   \
                              DOCA_IMM_WRITE, position);                                                     \
    }                                                                                                        \
    GN_FN doca_error_t doca_gpu_dev_rdma_write_inline_##mode(                                                \
        doca_gpu_dev_rdma *rdma, uint32_t, doca_gpu_buf *remote_buf, uint64_t remote_offset, uint8_t *data,  \
        size_t length, uint32_t imm, doca_gpu_dev_rdma_write_flags flags more) {                             \
        return doca_rdma_write_inline(rdma, remote_buf, remote_offset, data, length, DOCA_IMM_WRITE,         \
                                      position);                                                             \
    }                                                                                                        \
    GN_FN doca_error_t doca_gpu_dev_rdma_read_##mode(                                                        \
        doca_gpu_dev_rdma *rdma, uint32_t, doca_gpu_buf *remote_buf, uint64_t remote_offset,                 \
        doca_gpu_buf *local_buf, uint64_t local_offset, size_t length more) {                                \
        return doca_rdma_move(rdma, GN_OP_GET, remote_buf, remote_offset, local_buf, local_offset, length,   \
                              0, position);                                                                  \
    }                                                                                                        \
    GN_FN doca_error_t doca_gpu_dev_rdma_send_##mode(                                                        \
        doca_gpu_dev_rdma *rdma, uint32_t, doca_gpu_buf *local_buf, uint64_t local_offset, size_t length,    \
        uint32_t imm, doca_gpu_dev_rdma_send_flags flags more) {                                             \
        gn_side s = doca_side(&rdma->gn_qp);                                                                 \
        return doca_rdma_send(rdma, doca_buf_place(&s, local_buf, local_offset, 0), length, DOCA_IMM_SEND,   \
                              position);                                                                     \
    }                                                                                                        \
    /* data: memory of the kernel's regions, which must stay until it is done */                             \
    GN_FN doca_error_t doca_gpu_dev_rdma_send_inline_##mode(doca_gpu_dev_rdma *rdma, uint32_t,               \
                                                            uint8_t *data, size_t length, uint32_t imm,      \
                                                            doca_gpu_dev_rdma_send_flags flags more) {       \
        gn_side s = doca_side(&rdma->gn_qp);                                                                 \
        return doca_rdma_send(rdma, doca_place(&s, (uintptr_t)data, DOCA_ANY_KEY, 0), length, DOCA_IMM_SEND, \
                              position);                                                                     \
    }
#define DOCA_COMMA_POSITION , uint32_t position
DOCA_RDMA(strong, , DOCA_POSITION_NONE)
DOCA_RDMA(weak, DOCA_COMMA_POSITION, position)
#undef DOCA_COMMA_POSITION
#undef DOCA_RDMA

GN_FN doca_error_t doca_gpu_dev_rdma_commit_strong(doca_gpu_dev_rdma *rdma, uint32_t) {
    doca_add((gn_u64 *)&rdma->gn_qp.sq_ready_index, 1);
    return DOCA_SUCCESS;
}
GN_FN doca_error_t doca_gpu_dev_rdma_commit_weak(doca_gpu_dev_rdma *rdma, uint32_t, uint32_t num_ops) {
    doca_tx t = doca_open_tx(&rdma->gn_qp);
    doca_submit_qp(&rdma->gn_qp, 0, gn_next(&t.q) - t.first + num_ops);
    return doca_gpu_dev_rdma_commit_strong(rdma, 0);
}
// Waits for all that was committed; *num_commits: since the last wait.
GN_FN doca_error_t doca_gpu_dev_rdma_wait_all(doca_gpu_dev_rdma *rdma, uint32_t *num_commits) {
    doca_tx t = doca_open_tx(&rdma->gn_qp);
    gn_u64 *commits = (gn_u64 *)&rdma->gn_qp.sq_ready_index, n = gn_peek(commits);
    int status = doca_wait_all(&t);
    doca_add(commits, 0 - n);
    *num_commits = (uint32_t)n;
    return doca_error_of(status);
}

// ---- receives ---------------------------------------------------------------------------------------------

GN_FN doca_error_t doca_gpu_dev_rdma_get_recv(doca_gpu_dev_rdma *rdma, doca_gpu_dev_rdma_r **rdma_r) {
    *rdma_r = (doca_gpu_dev_rdma_r *)rdma;
    return rdma->gn_qp.gn_rq_row ? DOCA_SUCCESS : DOCA_ERROR_NOT_FOUND;
}
GN_FN doca_error_t doca_gpu_dev_rdma_recv_get_info(doca_gpu_dev_rdma_r *rdma_r, uint32_t *position,
                                                   uint32_t *mask) {
    *position = (uint32_t)gn_peek((gn_u64 *)&rdma_r->gn_qp.rq_rsvd_index);
    *mask = rdma_r->gn_qp.rq_wqe_mask;
    return DOCA_SUCCESS;
}
GN_FN uint64_t doca_receive_at(const doca_gpu_buf *buf, uint64_t offset) {
    uintptr_t addr;
    doca_gpu_dev_buf_get_addr(buf, &addr);
    return buf ? addr + offset : 0;
}
// recv_buf NULL: the packet's bytes go nowhere.
GN_FN doca_error_t doca_gpu_dev_rdma_recv_strong(doca_gpu_dev_rdma_r *rdma_r, doca_gpu_buf *recv_buf,
                                                 size_t recv_length, uint64_t recv_offset, uint32_t) {
    return doca_recv_qp(&rdma_r->gn_qp, GN_BY_THREAD, doca_addr(doca_receive_at(recv_buf, recv_offset), 0),
                        recv_length, 0);
}
GN_FN doca_error_t doca_gpu_dev_rdma_recv_weak(doca_gpu_dev_rdma_r *rdma_r, doca_gpu_buf *recv_buf,
                                               size_t recv_length, uint64_t recv_offset, uint32_t,
                                               uint32_t position) {
    doca_post_receive(&rdma_r->gn_qp, position, doca_receive_at(recv_buf, recv_offset),
                      (uint32_t)recv_length);
    return DOCA_SUCCESS;
}
GN_FN doca_error_t doca_gpu_dev_rdma_recv_commit_strong(doca_gpu_dev_rdma_r *) { return DOCA_SUCCESS; }
GN_FN doca_error_t doca_gpu_dev_rdma_recv_commit_weak(doca_gpu_dev_rdma_r *rdma_r, uint32_t num_ops) {
    doca_add((gn_u64 *)&rdma_r->gn_qp.rq_rsvd_index, num_ops);
    return DOCA_SUCCESS;
}
// Waits for all that was posted. val_imm gets the immediate value of each, 0 of one without.
GN_FN doca_error_t doca_gpu_dev_rdma_recv_wait_all(doca_gpu_dev_rdma_r *rdma_r,
                                                   doca_gpu_dev_rdma_recv_wait_flags flags, uint32_t *num_ops,
                                                   uint32_t *val_imm, uint32_t *conn_idx) {
    doca_gpu_dev_verbs_qp *qp = &rdma_r->gn_qp;
    gn_u64 from = gn_peek((gn_u64 *)&qp->cq_rq.cqe_ci), to = gn_peek((gn_u64 *)&qp->rq_rsvd_index);
    doca_error_t err = doca_wait_receives(qp, from, to, flags == DOCA_GPU_RDMA_RECV_WAIT_FLAG_B, 0);
    *num_ops = (uint32_t)(gn_peek((gn_u64 *)&qp->cq_rq.cqe_ci) - from);
    for (uint32_t k = 0; k < *num_ops; k++) {
        if (val_imm) val_imm[k] = doca_receive_cqe(qp, from + k)->imm_inval_pkey;
        if (conn_idx) conn_idx[k] = 0;
    }
    return err;
}

#endif
