// doca_gpunetio_dev_verbs_twosided.cuh: sends and posted receives of a queue pair with a receive ring. The
// kernel's thread that waits for a receive copies its packet to the posted place.
#ifndef DOCA_GPUNETIO_DEV_VERBS_TWOSIDED_CUH
#define DOCA_GPUNETIO_DEV_VERBS_TWOSIDED_CUH

#include "doca_gpunetio_dev_verbs_onesided.cuh"

#define DOCA_INLINE_32 4u // of op_own: the bytes are in the completion, too

DOCA_FN doca_error_t doca_send_qp(doca_gpu_dev_verbs_qp *qp, int scope, doca_gpu_dev_verbs_addr laddr,
                                  size_t size, doca_gpu_dev_verbs_ticket_t *ticket) {
    gn_side s = doca_side(qp);
    gn_slot slot = gn_fill_send(doca_at(&s, laddr, 0), size >> 32 ? 0 : (gn_u32)size, 0, 0);
    return doca_post_qp(qp, scope, &slot, 1, ticket);
}

// ---- posted receives --------------------------------------------------------------------------------------

#define DOCA_RECV_BUSY (1ull << 62) // a thread copies its packet
#define DOCA_RECV_DONE (1ull << 63)

// Writes the place and the bytes of a receive into its entry of the table.
GN_FN void doca_post_receive(doca_gpu_dev_verbs_qp *qp, gn_u64 index, uint64_t addr, uint32_t bytes) {
    gn_u64 *entry = doca_table(&qp->gn_rq_back, index, GN_RX_TABLE_WORDS);
    gn_poke(&entry[0], addr);
    gn_store_near(&entry[1], bytes);
}

GN_FN mlx5_cqe64 *doca_receive_cqe(doca_gpu_dev_verbs_qp *qp, gn_u64 index) {
    return (mlx5_cqe64 *)(doca_table(&qp->gn_rq_back, index, GN_RX_TABLE_WORDS) + 2);
}

// The completion's opcode for a packet: by what its immediate value came with.
GN_FN uint8_t doca_receive_opcode(const gn_packet *p, bool cut) {
    if (cut) return (uint8_t)DOCA_GPUNETIO_MLX5_CQE_RESP_ERR;
    if (p->imm_of == GN_IMM_NONE) return (uint8_t)DOCA_GPUNETIO_MLX5_CQE_RESP_SEND;
    return p->imm_of == GN_IMM_PUT ? (uint8_t)DOCA_GPUNETIO_MLX5_CQE_RESP_WR_IMM
                                   : (uint8_t)DOCA_GPUNETIO_MLX5_CQE_RESP_SEND_IMM;
}

// Copies a packet to where its receive was posted, fills the completion, and releases the packet.
DOCA_FN void doca_receive(const doca_rx *r, doca_gpu_dev_verbs_qp *qp, gn_u64 index, const gn_packet *p) {
    const gn_u64 *entry = doca_table(&qp->gn_rq_back, index, GN_RX_TABLE_WORDS);
    mlx5_cqe64 *cqe = doca_receive_cqe(qp, index);
    const uint8_t *from = (const uint8_t *)gn_pointer(&r->q.s, p->place);
    uint8_t *to = (uint8_t *)(uintptr_t)gn_peek(&entry[0]);
    gn_u64 room = gn_peek(&entry[1]) & 0xffffffff;
    uint32_t n = from ? p->bytes : 0;
    for (uint32_t k = 0; k < n; k++) {
        if (to && k < room) to[k] = from[k];
        if (k < sizeof cqe->inline_data) cqe->inline_data[k] = from[k];
    }
    cqe->byte_cnt = doca_swap32(n);
    cqe->sop_drop_qpn = doca_swap32(qp->rq_num);
    cqe->wqe_counter = doca_gpu_dev_verbs_bswap16((uint16_t)index);
    cqe->imm_inval_pkey = doca_swap32(p->imm);
    uint8_t opcode = doca_receive_opcode(p, to && n > room);
    cqe->op_own =
        (uint8_t)(opcode << DOCA_GPUNETIO_VERBS_MLX5_CQE_OPCODE_SHIFT | (n <= 32 ? DOCA_INLINE_32 : 0));
    gn_fence();
    gn_store_fenced(&r->q.released[gn_index(r->first + index, r->q.log2)], r->first + index + 1);
    doca_raise(&r->q.local->taken, r->first + index + 1);
}

// GN_AGAIN: its packet is not there, or another thread copies it.
DOCA_FN int doca_try_receive(const doca_rx *r, doca_gpu_dev_verbs_qp *qp, gn_u64 index) {
    gn_u64 *state = doca_table(&qp->gn_rq_back, index, GN_RX_TABLE_WORDS) + 1, is = gn_load(state);
    gn_packet p;
    if (is & DOCA_RECV_DONE) return GN_OK;
    if (is & DOCA_RECV_BUSY || gn_rx_read(&r->q, r->first + index, &p) != GN_OK) return GN_AGAIN;
    if (!gn_swap(state, is, is | DOCA_RECV_BUSY)) return GN_AGAIN;
    doca_receive(r, qp, index, &p);
    gn_store_near(state, is | DOCA_RECV_DONE);
    doca_raise((gn_u64 *)&qp->cq_rq.cqe_ci, index + 1);
    return GN_OK;
}

DOCA_FN int doca_wait_receive(const doca_rx *r, doca_gpu_dev_verbs_qp *qp, gn_u64 index, bool blocks) {
    gn_timer timer = gn_timer_start(&r->q.s, blocks ? GN_LIMIT : 0);
    for (;;) {
        int status = doca_try_receive(r, qp, index);
        if (status != GN_AGAIN) return status;
        int err = gn_go_on(&r->q.s, &timer, &r->q.state->epoch, r->q.epoch);
        if (err != GN_OK) return err;
    }
}

// Waits for the receives from `from` to before `to`; *cqe: of the last one, NULL: not all came.
DOCA_FN doca_error_t doca_wait_receives(doca_gpu_dev_verbs_qp *qp, gn_u64 from, gn_u64 to, bool blocks,
                                        mlx5_cqe64 **cqe) {
    doca_rx r = doca_open_rx(&qp->gn_rq_back);
    int status = from == to ? GN_AGAIN : GN_OK;
    for (gn_u64 k = from; k < to && status == GN_OK; k++)
        status = doca_wait_receive(&r, qp, k, blocks);
    if (cqe) *cqe = status == GN_OK ? doca_receive_cqe(qp, to - 1) : 0;
    return status == GN_AGAIN ? DOCA_SUCCESS : doca_error_of(status);
}

// The lanes of a warp post in their order.
DOCA_FN doca_error_t doca_recv_qp(doca_gpu_dev_verbs_qp *qp, int scope, doca_gpu_dev_verbs_addr laddr,
                                  size_t size, doca_gpu_dev_verbs_ticket_t *ticket) {
    gn_u64 index;
    if (scope == GN_BY_WARP) {
        gn_u32 lanes = gn_ones(gn_ballot(1));
        index = gn_lane() == 0 ? doca_fetch_add((gn_u64 *)&qp->rq_rsvd_index, lanes) : 0;
        index = gn_shuffle(index, 0) + gn_lane();
    } else {
        index = doca_fetch_add((gn_u64 *)&qp->rq_rsvd_index, 1);
    }
    doca_post_receive(qp, index, laddr.addr, (uint32_t)size);
    doca_raise((gn_u64 *)&qp->rq_wqe_pi, index + 1);
    if (ticket) *ticket = index;
    gn_sync(scope);
    return DOCA_SUCCESS;
}

#define DOCA_TWO_SIDED(name, call)                                                                           \
    template <DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>                                                            \
    GN_FN doca_error_t doca_gpu_dev_verbs_##name(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr laddr,   \
                                                 size_t size, doca_gpu_dev_verbs_ticket_t *out_ticket) {     \
        return call(qp, (int)exec_scope, laddr, size, out_ticket);                                           \
    }                                                                                                        \
    template <DOCA_SHARING, DOCA_NIC>                                                                        \
    GN_FN doca_error_t doca_gpu_dev_verbs_##name##_thread(doca_gpu_dev_verbs_qp *qp,                         \
                                                          doca_gpu_dev_verbs_addr laddr, size_t size,        \
                                                          doca_gpu_dev_verbs_ticket_t *out_ticket) {         \
        return call(qp, GN_BY_THREAD, laddr, size, out_ticket);                                              \
    }                                                                                                        \
    template <DOCA_SHARING, DOCA_NIC>                                                                        \
    GN_FN doca_error_t doca_gpu_dev_verbs_##name##_warp(doca_gpu_dev_verbs_qp *qp,                           \
                                                        doca_gpu_dev_verbs_addr laddr, size_t size,          \
                                                        doca_gpu_dev_verbs_ticket_t *out_ticket) {           \
        return call(qp, GN_BY_WARP, laddr, size, out_ticket);                                                \
    }
DOCA_TWO_SIDED(send, doca_send_qp)
DOCA_TWO_SIDED(recv, doca_recv_qp)
#undef DOCA_TWO_SIDED

// Waits for a receive, or for all that were posted; *cqe: its completion, or that of the last one.
#define DOCA_RECV_WAIT                                                                                       \
    template <DOCA_SHARING, DOCA_NIC,                                                                        \
              doca_gpu_dev_verbs_mcst_mode mcst_mode = DOCA_GPUNETIO_VERBS_MCST_DISABLED,                    \
              doca_gpu_dev_verbs_blocking_mode blocking_mode = DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED>    \
    GN_FN doca_error_t
DOCA_RECV_WAIT doca_gpu_dev_verbs_recv_wait(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr,
                                            doca_gpu_dev_verbs_ticket_t *ticket, mlx5_cqe64 **cqe) {
    return doca_wait_receives(qp, *ticket, *ticket + 1,
                              blocking_mode == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED, cqe);
}
DOCA_RECV_WAIT doca_gpu_dev_verbs_recv_wait(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr,
                                            mlx5_cqe64 **cqe) {
    return doca_wait_receives(qp, gn_peek((gn_u64 *)&qp->cq_rq.cqe_ci), gn_peek((gn_u64 *)&qp->rq_rsvd_index),
                              blocking_mode == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED, cqe);
}
#undef DOCA_RECV_WAIT

// An entry of a receive queue, to be filled by hand: a place of its index in the table.
struct doca_gpu_dev_verbs_recv_seg {
    gn_u64 addr, bytes;
};
GN_FN void doca_gpu_dev_verbs_wqe_prepare_recv(doca_gpu_dev_verbs_qp *, doca_gpu_dev_verbs_recv_seg *seg,
                                               uint64_t addr, uint32_t, uint32_t bytes) {
    gn_poke(&seg->addr, addr);
    gn_store_near(&seg->bytes, bytes);
}
GN_FN doca_gpu_dev_verbs_recv_seg *doca_gpu_dev_verbs_get_rwqe_ptr(doca_gpu_dev_verbs_qp *qp, uint16_t idx) {
    return (doca_gpu_dev_verbs_recv_seg *)doca_table(&qp->gn_rq_back, idx, GN_RX_TABLE_WORDS);
}

// ---- completions of receives ------------------------------------------------------------------------------

GN_FN int doca_gpu_dev_verbs_cqe_is_inline(mlx5_cqe64 *cqe) { return (cqe->op_own & DOCA_INLINE_32) != 0; }
GN_FN uint32_t doca_gpu_dev_verbs_cqe_get_bytes(mlx5_cqe64 *cqe) { return doca_swap32(cqe->byte_cnt); }
GN_FN uint8_t *doca_gpu_dev_verbs_cqe_get_inl_data(mlx5_cqe64 *cqe) { return cqe->inline_data; }

#endif
