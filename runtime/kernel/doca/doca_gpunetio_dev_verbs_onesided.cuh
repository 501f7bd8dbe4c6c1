// doca_gpunetio_dev_verbs_onesided.cuh: put, get, signals and waits. At warp scope each of the 32 threads
// posts its own operation. Functions that return nothing in the reference return a doca_error_t; ticket may
// be NULL.
#ifndef DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH
#define DOCA_GPUNETIO_DEV_VERBS_ONESIDED_CUH

#include "doca_gpunetio_dev_verbs_cq.cuh"
#include "doca_gpunetio_dev_verbs_qp.cuh"

#define DOCA_LARGEST DOCA_GPUNETIO_VERBS_MAX_TRANSFER_SIZE

DOCA_FN doca_error_t doca_post_qp(doca_gpu_dev_verbs_qp *qp, int scope, const gn_slot *slots, gn_u32 n,
                                  doca_gpu_dev_verbs_ticket_t *ticket) {
    gn_u64 index;
    int err = doca_post(qp, &qp->sq_rsvd_index, scope, slots, n, &index);
    if (ticket) *ticket = index;
    return doca_error_of(err);
}

// Posts a put or a get; of more than 1 GiB in parts, all but the last one by the thread alone.
DOCA_FN doca_error_t doca_move(doca_gpu_dev_verbs_qp *qp, int scope, gn_u32 op, doca_gpu_dev_verbs_addr raddr,
                               doca_gpu_dev_verbs_addr laddr, size_t size, const gn_slot *then,
                               doca_gpu_dev_verbs_ticket_t *ticket) {
    gn_side s = doca_side(qp);
    doca_error_t err = DOCA_SUCCESS;
    for (; size > DOCA_LARGEST && err == DOCA_SUCCESS; size -= DOCA_LARGEST) {
        gn_slot part = doca_fill_move(op, doca_at(&s, laddr, 0), doca_at(&s, raddr, GN_REMOTE), DOCA_LARGEST);
        err = doca_post_qp(qp, GN_BY_THREAD, &part, 1, ticket);
        raddr.addr += DOCA_LARGEST;
        laddr.addr += DOCA_LARGEST;
    }
    gn_slot last[2];
    last[0] = doca_fill_move(op, doca_at(&s, laddr, 0), doca_at(&s, raddr, GN_REMOTE), size);
    if (then) last[1] = *then;
    doca_error_t status = doca_post_qp(qp, scope, last, then ? 2 : 1, ticket);
    return err == DOCA_SUCCESS ? status : err;
}

// Writes a value, inline.
template <typename T>
GN_FN doca_error_t doca_value(doca_gpu_dev_verbs_qp *qp, int scope, doca_gpu_dev_verbs_addr raddr, T value,
                              const gn_slot *then, doca_gpu_dev_verbs_ticket_t *ticket) {
    static_assert(sizeof(T) <= DOCA_GPUNETIO_VERBS_MAX_INLINE_SIZE, "an inline put has up to 28 bytes");
    gn_side s = doca_side(qp);
    gn_slot slots[2];
    slots[0] = doca_fill_inline(doca_at(&s, raddr, GN_REMOTE), (const uint8_t *)&value, sizeof(T));
    if (then) slots[1] = *then;
    return doca_post_qp(qp, scope, slots, then ? 2 : 1, ticket);
}

// With 0 bytes it is a nop with a ticket.
template <DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_put(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                          doca_gpu_dev_verbs_addr laddr, size_t size,
                                          doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_move(qp, (int)exec_scope, GN_OP_PUT, raddr, laddr, size, 0, out_ticket);
}
template <DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_put(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                          doca_gpu_dev_verbs_addr laddr, size_t size, DOCA_OPT) {
    return doca_move(qp, (int)exec_scope, GN_OP_PUT, raddr, laddr, size, 0, 0);
}

template <DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_put_thread(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                                 doca_gpu_dev_verbs_addr laddr, size_t size,
                                                 doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_move(qp, GN_BY_THREAD, GN_OP_PUT, raddr, laddr, size, 0, out_ticket);
}

template <DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_put_warp(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                               doca_gpu_dev_verbs_addr laddr, size_t size,
                                               doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_move(qp, GN_BY_WARP, GN_OP_PUT, raddr, laddr, size, 0, out_ticket);
}

template <typename T, DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_p(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr, T value,
                                        doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_value(qp, (int)exec_scope, raddr, value, 0, out_ticket);
}
template <typename T, DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_p(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr, T value,
                                        DOCA_OPT) {
    return doca_value(qp, (int)exec_scope, raddr, value, 0, 0);
}

template <typename T, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_p_thread(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                               T value, doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_value(qp, GN_BY_THREAD, raddr, value, 0, out_ticket);
}

template <typename T, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_p_warp(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                             T value, doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_value(qp, GN_BY_WARP, raddr, value, 0, out_ticket);
}

DOCA_FN doca_error_t doca_signal(doca_gpu_dev_verbs_qp *qp, int scope, doca_gpu_dev_verbs_addr sig_raddr,
                                 doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                 doca_gpu_dev_verbs_ticket_t *ticket) {
    gn_side s = doca_side(qp);
    gn_slot slot = doca_fill_signal(&s, sig_raddr, sig_laddr, sig_val);
    return doca_post_qp(qp, scope, &slot, 1, ticket);
}
DOCA_FN doca_error_t doca_put_signal(doca_gpu_dev_verbs_qp *qp, int scope, doca_gpu_dev_verbs_addr raddr,
                                     doca_gpu_dev_verbs_addr laddr, size_t size,
                                     doca_gpu_dev_verbs_addr sig_raddr, doca_gpu_dev_verbs_addr sig_laddr,
                                     uint64_t sig_val, doca_gpu_dev_verbs_ticket_t *ticket) {
    gn_side s = doca_side(qp);
    gn_slot then = doca_fill_signal(&s, sig_raddr, sig_laddr, sig_val);
    return doca_move(qp, scope, GN_OP_PUT, raddr, laddr, size, &then, ticket);
}
template <typename T>
GN_FN doca_error_t doca_value_signal(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr, T value,
                                     doca_gpu_dev_verbs_addr sig_raddr, doca_gpu_dev_verbs_addr sig_laddr,
                                     uint64_t sig_val, doca_gpu_dev_verbs_ticket_t *ticket) {
    gn_side s = doca_side(qp);
    gn_slot then = doca_fill_signal(&s, sig_raddr, sig_laddr, sig_val);
    return doca_value(qp, GN_BY_THREAD, raddr, value, &then, ticket);
}

// Adds to 8 bytes of the peer; sig_laddr gets the previous value.
template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_signal(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr sig_raddr,
                                             doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                             doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_signal(qp, (int)exec_scope, sig_raddr, sig_laddr, sig_val, out_ticket);
}
template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_signal(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr sig_raddr,
                                             doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val, DOCA_OPT) {
    return doca_signal(qp, (int)exec_scope, sig_raddr, sig_laddr, sig_val, 0);
}

template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_signal_thread(doca_gpu_dev_verbs_qp *qp,
                                                    doca_gpu_dev_verbs_addr sig_raddr,
                                                    doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                                    doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_signal(qp, GN_BY_THREAD, sig_raddr, sig_laddr, sig_val, out_ticket);
}

template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_signal_warp(doca_gpu_dev_verbs_qp *qp,
                                                  doca_gpu_dev_verbs_addr sig_raddr,
                                                  doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                                  doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_signal(qp, GN_BY_WARP, sig_raddr, sig_laddr, sig_val, out_ticket);
}

// The signal follows the bytes; the ticket is that of the signal.
template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_put_signal(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                                 doca_gpu_dev_verbs_addr laddr, size_t size,
                                                 doca_gpu_dev_verbs_addr sig_raddr,
                                                 doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                                 doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_put_signal(qp, (int)exec_scope, raddr, laddr, size, sig_raddr, sig_laddr, sig_val,
                           out_ticket);
}
template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_put_signal(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                                 doca_gpu_dev_verbs_addr laddr, size_t size,
                                                 doca_gpu_dev_verbs_addr sig_raddr,
                                                 doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                                 DOCA_OPT) {
    return doca_put_signal(qp, (int)exec_scope, raddr, laddr, size, sig_raddr, sig_laddr, sig_val, 0);
}

template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_put_signal_thread(doca_gpu_dev_verbs_qp *qp,
                                                        doca_gpu_dev_verbs_addr raddr,
                                                        doca_gpu_dev_verbs_addr laddr, size_t size,
                                                        doca_gpu_dev_verbs_addr sig_raddr,
                                                        doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                                        doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_put_signal(qp, GN_BY_THREAD, raddr, laddr, size, sig_raddr, sig_laddr, sig_val, out_ticket);
}

template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_put_signal_warp(doca_gpu_dev_verbs_qp *qp,
                                                      doca_gpu_dev_verbs_addr raddr,
                                                      doca_gpu_dev_verbs_addr laddr, size_t size,
                                                      doca_gpu_dev_verbs_addr sig_raddr,
                                                      doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                                      doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_put_signal(qp, GN_BY_WARP, raddr, laddr, size, sig_raddr, sig_laddr, sig_val, out_ticket);
}

template <typename T, doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_p_signal(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                               T value, doca_gpu_dev_verbs_addr sig_raddr,
                                               doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                               doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_value_signal(qp, raddr, value, sig_raddr, sig_laddr, sig_val, out_ticket);
}
template <typename T, doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_p_signal(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                               T value, doca_gpu_dev_verbs_addr sig_raddr,
                                               doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
                                               DOCA_OPT) {
    return doca_value_signal(qp, raddr, value, sig_raddr, sig_laddr, sig_val, 0);
}

#define DOCA_GET                                                                                             \
    doca_gpu_dev_verbs_mcst_mode mcst_mode = DOCA_GPUNETIO_VERBS_MCST_DISABLED,                              \
                                 doca_gpu_dev_verbs_blocking_mode blocking_mode =                            \
                                     DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED

DOCA_FN doca_error_t doca_get(doca_gpu_dev_verbs_qp *qp, int scope, bool waits, doca_gpu_dev_verbs_addr raddr,
                              doca_gpu_dev_verbs_addr laddr, size_t size,
                              doca_gpu_dev_verbs_ticket_t *ticket) {
    doca_gpu_dev_verbs_ticket_t index = 0;
    doca_error_t err = doca_move(qp, scope, GN_OP_GET, raddr, laddr, size, 0, &index);
    if (ticket) *ticket = index;
    if (!waits || err != DOCA_SUCCESS) return err;
    doca_tx t = doca_open_tx(qp);
    return doca_error_of(doca_wait(&t, index));
}

// Nothing is posted to daddr: the bytes are visible before the completion.
template <DOCA_SHARING, DOCA_NIC, DOCA_SCOPE, DOCA_GET>
GN_FN doca_error_t doca_gpu_dev_verbs_get(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                          doca_gpu_dev_verbs_addr laddr, size_t size, doca_gpu_dev_verbs_addr,
                                          doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_get(qp, (int)exec_scope, blocking_mode == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED, raddr,
                    laddr, size, out_ticket);
}

template <DOCA_SHARING, DOCA_NIC, DOCA_GET>
GN_FN doca_error_t doca_gpu_dev_verbs_get_thread(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                                 doca_gpu_dev_verbs_addr laddr, size_t size,
                                                 doca_gpu_dev_verbs_addr,
                                                 doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_get(qp, GN_BY_THREAD, blocking_mode == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED, raddr,
                    laddr, size, out_ticket);
}

template <DOCA_SHARING, DOCA_NIC, DOCA_GET>
GN_FN doca_error_t doca_gpu_dev_verbs_get_warp(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                               doca_gpu_dev_verbs_addr laddr, size_t size,
                                               doca_gpu_dev_verbs_addr,
                                               doca_gpu_dev_verbs_ticket_t *out_ticket, DOCA_OPT) {
    return doca_get(qp, GN_BY_WARP, blocking_mode == DOCA_GPUNETIO_VERBS_BLOCKING_MODE_ENABLED, raddr, laddr,
                    size, out_ticket);
}

#undef DOCA_GET

// ---- waits ------------------------------------------------------------------------------------------------

// Waits for a ticket, at most the context's limit; without one, for all reserved.
template <DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_wait(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t ticket) {
    doca_tx t = doca_open_tx(qp);
    return doca_error_of(doca_wait(&t, ticket));
}
template <DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_wait(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_ticket_t *ticket) {
    return doca_gpu_dev_verbs_wait<resource_sharing_mode, nic_handler>(qp, *ticket);
}
template <DOCA_SHARING, DOCA_NIC> GN_FN doca_error_t doca_gpu_dev_verbs_wait(doca_gpu_dev_verbs_qp *qp) {
    doca_tx t = doca_open_tx(qp);
    return doca_error_of(doca_wait_all(&t));
}

#define DOCA_MCST doca_gpu_dev_verbs_mcst_mode mcst_mode = DOCA_GPUNETIO_VERBS_MCST_DISABLED
template <DOCA_SHARING, DOCA_NIC, DOCA_MCST>
GN_FN doca_error_t doca_priv_gpu_dev_verbs_get_wait(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr,
                                                    doca_gpu_dev_verbs_ticket_t ticket) {
    return doca_gpu_dev_verbs_wait<resource_sharing_mode, nic_handler>(qp, ticket);
}
template <DOCA_SHARING, DOCA_NIC, DOCA_MCST>
GN_FN doca_error_t doca_gpu_dev_verbs_get_wait(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr,
                                               doca_gpu_dev_verbs_ticket_t ticket) {
    return doca_gpu_dev_verbs_wait<resource_sharing_mode, nic_handler>(qp, ticket);
}
template <DOCA_SHARING, DOCA_NIC, DOCA_MCST>
GN_FN doca_error_t doca_gpu_dev_verbs_get_wait(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr) {
    return doca_gpu_dev_verbs_wait<resource_sharing_mode, nic_handler>(qp);
}
#undef DOCA_MCST

// Nothing to do, as in the reference: operations of one queue pair keep their order.
template <DOCA_SHARING, DOCA_NIC> GN_FN void doca_gpu_dev_verbs_fence(doca_gpu_dev_verbs_qp *) {}

#endif
