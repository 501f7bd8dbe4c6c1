// doca_gpunetio_dev_verbs_qp.cuh: queue pairs, low level: entries are filled, marked and submitted. An entry
// is a slot of the ring; its kind is checked by the proxy.
#ifndef DOCA_GPUNETIO_DEV_VERBS_QP_CUH
#define DOCA_GPUNETIO_DEV_VERBS_QP_CUH

#include "doca_gpunetio_dev_verbs_common.cuh"

// ---- slots ------------------------------------------------------------------------------------------------

GN_FN gn_u64 doca_at(const gn_side *s, doca_gpu_dev_verbs_addr a, gn_u32 remote) {
    return doca_place(s, a.addr, a.key, remote);
}

// With 0 bytes it is a nop.
GN_FN gn_slot doca_fill_move(gn_u32 op, gn_u64 local, gn_u64 remote, gn_u64 bytes) {
    return bytes ? gn_fill_move(op, local, remote, (gn_u32)bytes) : gn_fill_nop();
}

// Inline bytes from memory of the thread: up to GN_INLINE_BYTES.
DOCA_FN gn_slot doca_fill_inline(gn_u64 to, const uint8_t *data, gn_u32 bytes) {
    gn_slot s = gn_fill(GN_OP_PUT, GN_INLINE, bytes);
    const int words[5] = {1, 2, 6, 5, 4};
    for (gn_u32 k = 0; k < bytes && k < GN_INLINE_BYTES; k++)
        s.w[words[k / 7]] |= (gn_u64)data[k] << k % 7 * 8;
    s.w[3] = to;
    return s;
}

// The second local segment of a put or get, if it has bytes.
GN_FN void doca_fill_second(gn_slot *s, gn_u64 local, gn_u32 bytes) {
    if (bytes) gn_fill_second(s, local, bytes);
}

// The previous value is written to laddr, if there is an address.
DOCA_FN gn_slot doca_fill_signal(const gn_side *s, doca_gpu_dev_verbs_addr raddr,
                                 doca_gpu_dev_verbs_addr laddr, gn_u64 val) {
    gn_u64 at = doca_at(s, raddr, GN_REMOTE);
    return laddr.addr ? gn_fill_fetch_add(at, val, doca_at(s, laddr, 0)) : gn_fill_add(at, val);
}

DOCA_FN gn_slot doca_fill_swap(const gn_side *s, doca_gpu_dev_verbs_addr raddr, doca_gpu_dev_verbs_addr laddr,
                               gn_u64 compare, gn_u64 val) {
    gn_u64 result = doca_at(s, laddr, 0);
    return gn_fill_cas(doca_at(s, raddr, GN_REMOTE), compare, val, laddr.addr ? &result : 0);
}

GN_FN doca_gpu_dev_verbs_addr doca_addr(uint64_t addr, uint32_t key) {
    doca_gpu_dev_verbs_addr a = {addr, key};
    return a;
}

GN_FN doca_gpu_dev_verbs_wqe *doca_gpu_dev_verbs_get_wqe_ptr(doca_gpu_dev_verbs_qp *qp, uint16_t wqe_idx) {
    doca_tx t = doca_open_tx(qp);
    return (doca_gpu_dev_verbs_wqe *)&t.q.slots[gn_index(t.cq ? wqe_idx : t.first + wqe_idx, t.q.log2)];
}

template <DOCA_SHARING, DOCA_TYPE>
GN_FN void doca_gpu_dev_verbs_wait_until_slot_available(doca_gpu_dev_verbs_qp *qp, uint64_t wqe_idx) {
    doca_tx t = doca_open_tx(qp);
    gn_room(&t.q, t.first + wqe_idx, 1, GN_LIMIT);
}

// Waits for space, also where the reference does not. ~0: there was none within the context's limit.
template <DOCA_SHARING, DOCA_TYPE>
GN_FN uint64_t doca_gpu_dev_verbs_reserve_wq_slots(doca_gpu_dev_verbs_qp *qp, uint32_t count, DOCA_OPT) {
    if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ) return doca_fetch_add((gn_u64 *)&qp->rq_rsvd_index, count);
    return doca_reserve(qp, &qp->sq_rsvd_index, count);
}

template <DOCA_SHARING, doca_gpu_dev_verbs_qp_ready_mode ready_mode = DOCA_GPUNETIO_VERBS_READY_MODE_DEFAULT>
GN_FN void doca_gpu_dev_common_mark_wqes_ready(uint64_t &ready_index, uint64_t, uint64_t to_wqe_idx) {
    doca_raise((gn_u64 *)&ready_index, to_wqe_idx + 1);
}

// Publishes reserved and prepared slots, from the first to the last.
template <DOCA_SHARING, DOCA_TYPE,
          doca_gpu_dev_verbs_qp_ready_mode ready_mode = DOCA_GPUNETIO_VERBS_READY_MODE_ATOMIC_CAS>
GN_FN void doca_gpu_dev_verbs_mark_wqes_ready(doca_gpu_dev_verbs_qp *qp, uint64_t from_wqe_idx,
                                              uint64_t to_wqe_idx) {
    if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ)
        doca_raise((gn_u64 *)&qp->rq_ready_index, to_wqe_idx + 1);
    else
        doca_ready(qp, &qp->sq_ready_index, from_wqe_idx, to_wqe_idx);
}

// ---- submitting: all ways do the same ---------------------------------------------------------------------

DOCA_FN void doca_submit_qp(doca_gpu_dev_verbs_qp *qp, int rq, uint64_t prod_index) {
    if (rq)
        doca_raise((gn_u64 *)&qp->rq_wqe_pi, prod_index);
    else
        doca_submit(qp, &qp->sq_rsvd_index, &qp->sq_wqe_pi, prod_index);
}

template <DOCA_SHARING, DOCA_SYNC, DOCA_NIC, DOCA_TYPE>
GN_FN void doca_gpu_dev_verbs_submit(doca_gpu_dev_verbs_qp *qp, uint64_t prod_index, DOCA_OPT) {
    doca_submit_qp(qp, qp_type, prod_index);
}
template <DOCA_SHARING, DOCA_SYNC, DOCA_TYPE>
GN_FN void doca_gpu_dev_verbs_submit_db(doca_gpu_dev_verbs_qp *qp, uint64_t prod_index, DOCA_OPT) {
    doca_submit_qp(qp, qp_type, prod_index);
}
template <DOCA_SHARING, DOCA_SYNC, DOCA_TYPE>
GN_FN void doca_gpu_dev_verbs_submit_db_no_dbr(doca_gpu_dev_verbs_qp *qp, uint64_t prod_index, DOCA_OPT) {
    doca_submit_qp(qp, qp_type, prod_index);
}
template <DOCA_SHARING, DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_submit_bf(doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
                                        doca_gpu_dev_verbs_wqe *, DOCA_OPT) {
    doca_submit_qp(qp, 0, prod_index);
}
template <DOCA_SHARING, DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_submit_bf_warp(doca_gpu_dev_verbs_qp *qp, uint64_t prod_index,
                                             doca_gpu_dev_verbs_wqe *, DOCA_OPT) {
    gn_warp_sync();
    if (gn_lane() == 0) doca_submit_qp(qp, 0, prod_index);
    gn_warp_sync();
}
template <DOCA_SHARING, DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_submit_proxy(doca_gpu_dev_verbs_qp *qp, uint64_t prod_index, DOCA_OPT) {
    doca_submit_qp(qp, 0, prod_index);
}
template <doca_gpu_dev_verbs_resource_sharing_mode resource_sharing_mode>
GN_FN void doca_gpu_dev_verbs_ring_proxy(doca_gpu_dev_verbs_qp *qp, uint64_t prod_idx) {
    doca_submit_qp(qp, 0, prod_idx);
}
template <DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_ring_db(doca_gpu_dev_verbs_qp *qp, uint64_t prod_index, DOCA_OPT) {
    doca_submit_qp(qp, 0, prod_index);
}

// Stores a doorbell record of entries in mlx5's format; slots have none.
GN_FN void doca_gpu_dev_common_update_dbr(uint32_t *dbrec, uint32_t prod_index) {
    if (dbrec) doca_gpu_dev_verbs_async_store_release(dbrec, doca_swap32(prod_index & 0xffff));
}

// Nothing to do: there are no doorbells to ring.
template <DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_ring_bf(doca_gpu_dev_verbs_qp *, doca_gpu_dev_verbs_wqe *) {}
template <DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_ring_bf_warp(doca_gpu_dev_verbs_qp *, doca_gpu_dev_verbs_wqe *) {}
GN_FN uint32_t doca_gpu_dev_verbs_prepare_dbr(uint32_t prod_index) {
    return doca_swap32(prod_index & DOCA_GPUNETIO_VERBS_WQE_PI_MASK);
}
GN_FN uint64_t doca_gpu_dev_verbs_prepare_db(doca_gpu_dev_verbs_qp *, uint64_t prod_index) {
    return prod_index;
}
template <DOCA_SYNC, DOCA_TYPE>
GN_FN void doca_gpu_dev_verbs_update_dbr(doca_gpu_dev_verbs_qp *, uint32_t, DOCA_OPT) {}
template <DOCA_TYPE> GN_FN void doca_priv_gpu_dev_verbs_update_dbr(doca_gpu_dev_verbs_qp *, uint32_t) {}
GN_FN uint64_t doca_gpu_dev_common_prepare_db(uint32_t, uint64_t prod_index) { return prod_index; }
template <DOCA_SYNC> GN_FN void doca_gpu_dev_common_write_db(uint64_t *, uint64_t, DOCA_OPT) {}
template <DOCA_SYNC> GN_FN void doca_gpu_dev_common_ring_db(uint64_t *, uint32_t, uint64_t, DOCA_OPT) {}

// ---- filling ----------------------------------------------------------------------------------------------

GN_FN void doca_gpu_dev_verbs_wqe_prepare_nop(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                              const uint16_t wqe_idx, doca_gpu_dev_verbs_wqe_ctrl_flags) {
    gn_slot slot = gn_fill_nop();
    doca_prepare(qp, wqe_idx, &slot);
}

// An operation that rings do not have is refused by the proxy, and fails.
GN_FN gn_slot doca_no_operation(void) { return gn_fill(127, 0, 0); }

// An immediate value has the byte order of the wire, in a kernel as in a completion.
GN_FN void doca_fill_imm(gn_slot *s, uint32_t imm) { gn_fill_imm(s, doca_swap32(imm)); }

// The slot of opcode RDMA_WRITE, or of RDMA_WRITE_IMM, which may have 0 bytes.
DOCA_FN gn_slot doca_fill_write(gn_u64 local, gn_u64 remote, uint32_t bytes, uint32_t opcode, uint32_t imm) {
    if (opcode == MLX5_OPCODE_RDMA_WRITE) return doca_fill_move(GN_OP_PUT, local, remote, bytes);
    gn_slot slot = gn_fill_move(GN_OP_PUT, local, remote, bytes);
    doca_fill_imm(&slot, imm);
    return opcode == MLX5_OPCODE_RDMA_WRITE_IMM ? slot : doca_no_operation();
}

GN_FN void doca_gpu_dev_verbs_wqe_prepare_write(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                                const uint16_t wqe_idx, const uint32_t opcode,
                                                doca_gpu_dev_verbs_wqe_ctrl_flags, const uint32_t imm,
                                                const uint64_t raddr, const uint32_t rkey,
                                                const uint64_t laddr0, const uint32_t lkey0,
                                                const uint32_t bytes0) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_write(doca_place(&s, laddr0, lkey0, 0), doca_place(&s, raddr, rkey, GN_REMOTE),
                                   bytes0, opcode, imm);
    doca_prepare(qp, wqe_idx, &slot);
}
GN_FN void doca_gpu_dev_verbs_wqe_prepare_read(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                               const uint16_t wqe_idx, doca_gpu_dev_verbs_wqe_ctrl_flags,
                                               const uint64_t raddr, const uint32_t rkey,
                                               const uint64_t laddr0, const uint32_t lkey0,
                                               const uint32_t bytes0) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_move(GN_OP_GET, doca_place(&s, laddr0, lkey0, 0),
                                  doca_place(&s, raddr, rkey, GN_REMOTE), bytes0);
    doca_prepare(qp, wqe_idx, &slot);
}

GN_FN void doca_gpu_dev_verbs_wqe_prepare_write(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                                const uint16_t wqe_idx, const uint32_t opcode,
                                                doca_gpu_dev_verbs_wqe_ctrl_flags, const uint32_t imm,
                                                const uint64_t raddr, const uint32_t rkey,
                                                const uint64_t laddr0, const uint32_t lkey0,
                                                const uint32_t bytes0, const uint64_t laddr1,
                                                const uint32_t lkey1, const uint32_t bytes1) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_write(doca_place(&s, laddr0, lkey0, 0), doca_place(&s, raddr, rkey, GN_REMOTE),
                                   bytes0, opcode, imm);
    doca_fill_second(&slot, doca_place(&s, laddr1, lkey1, 0), bytes1);
    doca_prepare(qp, wqe_idx, &slot);
}
GN_FN void doca_gpu_dev_verbs_wqe_prepare_read(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                               const uint16_t wqe_idx, doca_gpu_dev_verbs_wqe_ctrl_flags,
                                               const uint64_t raddr, const uint32_t rkey,
                                               const uint64_t laddr0, const uint32_t lkey0,
                                               const uint32_t bytes0, const uint64_t laddr1,
                                               const uint32_t lkey1, const uint32_t bytes1) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_move(GN_OP_GET, doca_place(&s, laddr0, lkey0, 0),
                                  doca_place(&s, raddr, rkey, GN_REMOTE), bytes0);
    doca_fill_second(&slot, doca_place(&s, laddr1, lkey1, 0), bytes1);
    doca_prepare(qp, wqe_idx, &slot);
}

// Writes bytes of the thread's memory: up to GN_INLINE_BYTES; more from memory of the kernel's regions.
GN_FN void doca_gpu_dev_verbs_wqe_prepare_write_inl(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                                    const uint16_t wqe_idx, doca_gpu_dev_verbs_wqe_ctrl_flags,
                                                    const uint64_t raddr, const uint32_t rkey,
                                                    const uint64_t laddr, const uint32_t bytes) {
    gn_side s = doca_side(qp);
    gn_u64 to = doca_place(&s, raddr, rkey, GN_REMOTE);
    gn_slot slot = bytes && bytes <= GN_INLINE_BYTES
                       ? doca_fill_inline(to, (const uint8_t *)(uintptr_t)laddr, bytes)
                       : doca_fill_move(GN_OP_PUT, doca_place(&s, laddr, DOCA_ANY_KEY, 0), to, bytes);
    doca_prepare(qp, wqe_idx, &slot);
}

// The header, then the data into the same entry.
GN_FN void doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_header(
    doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *, const uint16_t wqe_idx,
    doca_gpu_dev_verbs_wqe_ctrl_flags, const uint64_t raddr, const uint32_t rkey, const uint32_t bytes) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_inline(doca_place(&s, raddr, rkey, GN_REMOTE), 0, 0);
    slot.w[0] |= bytes;
    doca_prepare(qp, wqe_idx, &slot);
}
template <typename T>
GN_FN void doca_gpu_dev_verbs_prepare_inl_rdma_write_wqe_data(doca_gpu_dev_verbs_qp *qp,
                                                              doca_gpu_dev_verbs_wqe *wqe_ptr, T data) {
    static_assert(sizeof(T) <= GN_INLINE_BYTES, "an entry holds 35 bytes");
    doca_tx t = doca_open_tx(qp);
    if (t.cq) return doca_gpu_dev_verbs_memcpy_data((gn_u8 *)wqe_ptr + 36, &data, sizeof data);
    gn_u64 accepted = gn_load(&t.q.state->accepted), at = (gn_u64)((gn_slot *)wqe_ptr - t.q.slots);
    gn_slot slot = doca_fill_inline(wqe_ptr->slot.w[3] & ~GN_LAP, (const uint8_t *)&data, sizeof data);
    gn_commit(&t.q, accepted + gn_index(at - accepted, t.q.log2), &slot);
}

// opcode ATOMIC_FA or ATOMIC_CS, of 8 bytes; others are refused.
GN_FN void doca_gpu_dev_verbs_wqe_prepare_atomic(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                                 const uint16_t wqe_idx, const uint32_t opcode,
                                                 doca_gpu_dev_verbs_wqe_ctrl_flags, const uint64_t raddr,
                                                 const uint32_t rkey, const uint64_t laddr,
                                                 const uint32_t lkey, const uint32_t bytes,
                                                 const uint64_t compare_add, const uint64_t swap_add) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_no_operation();
    doca_gpu_dev_verbs_addr at = doca_addr(raddr, rkey), to = doca_addr(laddr, lkey);
    if (opcode == MLX5_OPCODE_ATOMIC_FA && bytes == 8) slot = doca_fill_signal(&s, at, to, compare_add);
    if (opcode == MLX5_OPCODE_ATOMIC_CS && bytes == 8)
        slot = doca_fill_swap(&s, at, to, compare_add, swap_add);
    doca_prepare(qp, wqe_idx, &slot);
}

// Waits for index max_index of the ring with this number (cq_num) of the context. The index has 24 bits: it
// is the nearest one to what that ring has completed.
DOCA_FN gn_slot doca_fill_wait(const gn_side *s, gn_u32 number, gn_u32 max_index) {
    const gn_context *p = (const gn_context *)s->context;
    if (number == 0 || number > p->n_tx) return gn_fill_wait(number - 1, 0); // the proxy refuses it
    const gn_tx_row *row = (const gn_tx_row *)gn_at(p, p->tx) + (number - 1);
    gn_u64 done = gn_load(&((const gn_tx_state *)gn_at(p, row->state))->completed) & ~GN_SOME_FAILED;
    gn_u64 near = done - row->first, ahead = (max_index - near) & DOCA_GPUNETIO_VERBS_CQE_CI_MASK;
    bool behind = ahead >> 23 && near >= 0x1000000 - ahead;
    return gn_fill_wait(number - 1, row->first + near + ahead - (behind ? 0x1000000 : 0));
}
GN_FN void doca_gpu_dev_verbs_wqe_prepare_wait(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                               const uint16_t wqe_idx, doca_gpu_dev_verbs_wqe_ctrl_flags,
                                               const uint32_t max_index, const uint32_t qpn_cqn) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_wait(&s, qpn_cqn, max_index);
    doca_prepare(qp, wqe_idx, &slot);
}

// A nop: bytes of a get are visible before its completion.
GN_FN void doca_gpu_dev_verbs_wqe_prepare_dump(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *wqe_ptr,
                                               const uint16_t wqe_idx,
                                               doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags, const uint64_t,
                                               const uint32_t, const uint32_t) {
    doca_gpu_dev_verbs_wqe_prepare_nop(qp, wqe_ptr, wqe_idx, ctrl_flags);
}

// Stores a segment of an entry in mlx5's format.
GN_FN void doca_gpu_dev_verbs_store_wqe_seg(uint64_t *ptr, uint64_t *val) {
    gn_poke((gn_u64 *)ptr, val[0]);
    gn_poke((gn_u64 *)ptr + 1, val[1]);
}
template <doca_gpu_dev_verbs_atomic_ext_bytes bytes = DOCA_GPUNETIO_VERBS_ATOMIC_EXT_BYTES_4,
          bool possible = false, typename... Args>
GN_FN void doca_gpu_dev_verbs_wqe_prepare_atomic_ext(Args...) {
    static_assert(possible, "doca_gpu_dev_verbs_wqe_prepare_atomic_ext: masked atomics are those of a NIC");
}

// ---- SDK: sends -------------------------------------------------------------------------------------------

// The slot of opcode SEND or SEND_IMM.
DOCA_FN gn_slot doca_fill_packet(gn_u64 place, uint32_t bytes, uint32_t opcode, uint32_t imm) {
    gn_slot slot = gn_fill_send(place, bytes, 0, 0);
    if (opcode == MLX5_OPCODE_SEND_IMM) doca_fill_imm(&slot, imm);
    return opcode == MLX5_OPCODE_SEND || opcode == MLX5_OPCODE_SEND_IMM ? slot : doca_no_operation();
}

GN_FN void doca_gpu_dev_verbs_wqe_prepare_send(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                               const uint16_t wqe_idx, const uint32_t opcode,
                                               doca_gpu_dev_verbs_wqe_ctrl_flags, const uint32_t imm,
                                               const uint64_t laddr0, const uint32_t lkey0,
                                               const uint32_t bytes0) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_packet(doca_place(&s, laddr0, lkey0, 0), bytes0, opcode, imm);
    doca_prepare(qp, wqe_idx, &slot);
}
GN_FN void doca_gpu_dev_verbs_wqe_prepare_send(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *,
                                               const uint16_t wqe_idx, const uint32_t opcode,
                                               doca_gpu_dev_verbs_wqe_ctrl_flags, const uint32_t imm,
                                               const uint64_t laddr0, const uint32_t lkey0,
                                               const uint32_t bytes0, const uint64_t laddr1,
                                               const uint32_t lkey1, const uint32_t bytes1) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_packet(doca_place(&s, laddr0, lkey0, 0), bytes0, opcode, imm);
    gn_fill_split(&slot, doca_place(&s, laddr1, lkey1, 0), bytes1);
    doca_prepare(qp, wqe_idx, &slot);
}
// Sends from memory of the kernel's regions, which must stay until it is done.
GN_FN void doca_gpu_dev_verbs_wqe_prepare_send_inl(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_wqe *wqe_ptr,
                                                   const uint16_t wqe_idx,
                                                   doca_gpu_dev_verbs_wqe_ctrl_flags ctrl_flags,
                                                   const uint64_t laddr, const uint32_t bytes) {
    doca_gpu_dev_verbs_wqe_prepare_send(qp, wqe_ptr, wqe_idx, MLX5_OPCODE_SEND, ctrl_flags, 0, laddr,
                                        DOCA_ANY_KEY, bytes);
}

#endif
