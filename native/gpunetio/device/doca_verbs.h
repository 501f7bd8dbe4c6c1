// doca_verbs.h: one-sided operations with DOCA's names (doca_gpu.h).
#ifndef DOCA_VERBS_H
#define DOCA_VERBS_H

enum doca_gpu_dev_verbs_resource_sharing_mode {
    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_EXCLUSIVE,
    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_CTA,
    DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU
};
enum doca_gpu_dev_verbs_nic_handler {
    DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
    DOCA_GPUNETIO_VERBS_NIC_HANDLER_CPU_PROXY,
    DOCA_GPUNETIO_VERBS_NIC_HANDLER_GPU_SM_DB
};
enum doca_gpu_dev_verbs_exec_scope {
    DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD = GN_BY_THREAD,
    DOCA_GPUNETIO_VERBS_EXEC_SCOPE_WARP = GN_BY_WARP
};
enum doca_gpu_dev_verbs_signal_op { DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD };

typedef gn_u64 doca_gpu_dev_verbs_ticket_t;

struct doca_gpu_dev_verbs_addr {
    gn_u64 addr;
    gn_u32 key;
};

struct doca_gpu_dev_verbs_qp {
    gn_tx_row row;
};

#define DOCA_VERBS                                                                                           \
    template <doca_gpu_dev_verbs_resource_sharing_mode sharing =                                             \
                  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,                                             \
              doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,                 \
              doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>                   \
    GN_FN
#define DOCA_VERBS_SIGNAL                                                                                    \
    template <doca_gpu_dev_verbs_signal_op op,                                                               \
              doca_gpu_dev_verbs_resource_sharing_mode sharing =                                             \
                  DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,                                             \
              doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,                 \
              doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>                   \
    GN_FN

GN_FN gn_tx doca_qp(const doca_gpu_dev_verbs_qp *qp) {
    gn_side s = doca_side(qp, qp->row.back);
    gn_tx q;
    gn_tx_open_row(&q, &s, &qp->row);
    return q;
}

GN_FN gn_u64 doca_at(const gn_tx *q, doca_gpu_dev_verbs_addr a) { return doca_place(&q->s, a.addr, a.key); }

DOCA_VERBS doca_error_t doca_gpu_dev_verbs_put(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr remote,
                                               doca_gpu_dev_verbs_addr local, gn_u64 size,
                                               doca_gpu_dev_verbs_ticket_t *ticket = 0) {
    gn_tx q = doca_qp(qp);
    if (size >> 32) return DOCA_ERROR_INVALID_VALUE;
    return doca_said(
        gn_put(&q, scope, doca_at(&q, remote), doca_at(&q, local), (gn_u32)size, GN_LIMIT, ticket));
}

// Puts a value of up to 8 bytes, inline.
template <typename T,
          doca_gpu_dev_verbs_resource_sharing_mode sharing = DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU,
          doca_gpu_dev_verbs_nic_handler handler = DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO,
          doca_gpu_dev_verbs_exec_scope scope = DOCA_GPUNETIO_VERBS_EXEC_SCOPE_THREAD>
GN_FN doca_error_t doca_gpu_dev_verbs_p(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr remote, T value,
                                        doca_gpu_dev_verbs_ticket_t *ticket = 0) {
    static_assert(sizeof(T) <= 8, "an inline put has up to 8 bytes");
    gn_tx q = doca_qp(qp);
    gn_u64 word = 0;
    __builtin_memcpy(&word, &value, sizeof value);
    return doca_said(gn_put_inline(&q, scope, doca_at(&q, remote), word, sizeof value, GN_LIMIT, ticket));
}

DOCA_VERBS doca_error_t doca_gpu_dev_verbs_get(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr remote,
                                               doca_gpu_dev_verbs_addr local, gn_u64 size,
                                               doca_gpu_dev_verbs_ticket_t *ticket = 0) {
    gn_tx q = doca_qp(qp);
    if (size >> 32) return DOCA_ERROR_INVALID_VALUE;
    return doca_said(
        gn_get(&q, scope, doca_at(&q, local), doca_at(&q, remote), (gn_u32)size, GN_LIMIT, ticket));
}

// The previous value (DOCA's local address of a signal) is not written.
DOCA_VERBS_SIGNAL doca_error_t doca_gpu_dev_verbs_signal(doca_gpu_dev_verbs_qp *qp,
                                                         doca_gpu_dev_verbs_addr remote,
                                                         doca_gpu_dev_verbs_addr, gn_u64 value,
                                                         doca_gpu_dev_verbs_ticket_t *ticket = 0) {
    gn_tx q = doca_qp(qp);
    return doca_said(gn_signal(&q, scope, doca_at(&q, remote), value, GN_LIMIT, ticket));
}

// With size 0 only the signal is sent.
DOCA_VERBS_SIGNAL doca_error_t doca_gpu_dev_verbs_put_signal(doca_gpu_dev_verbs_qp *qp,
                                                             doca_gpu_dev_verbs_addr remote,
                                                             doca_gpu_dev_verbs_addr local, gn_u64 size,
                                                             doca_gpu_dev_verbs_addr signal,
                                                             doca_gpu_dev_verbs_addr unused, gn_u64 value,
                                                             doca_gpu_dev_verbs_ticket_t *ticket = 0) {
    gn_tx q = doca_qp(qp);
    if (size >> 32) return DOCA_ERROR_INVALID_VALUE;
    if (size == 0)
        return doca_gpu_dev_verbs_signal<op, sharing, handler, scope>(qp, signal, unused, value, ticket);
    return doca_said(gn_put_signal(&q, scope, doca_at(&q, remote), doca_at(&q, local), (gn_u32)size,
                                   doca_at(&q, signal), value, GN_LIMIT, ticket));
}

// Waits for a ticket; without one, for all reserved tickets.
DOCA_VERBS doca_error_t doca_gpu_dev_verbs_wait(doca_gpu_dev_verbs_qp *qp,
                                                doca_gpu_dev_verbs_ticket_t ticket) {
    gn_tx q = doca_qp(qp);
    return doca_said(gn_wait(&q, ticket, GN_LIMIT));
}
DOCA_VERBS doca_error_t doca_gpu_dev_verbs_wait(doca_gpu_dev_verbs_qp *qp,
                                                doca_gpu_dev_verbs_ticket_t *ticket) {
    return doca_gpu_dev_verbs_wait<sharing, handler, scope>(qp, *ticket);
}
DOCA_VERBS doca_error_t doca_gpu_dev_verbs_wait(doca_gpu_dev_verbs_qp *qp) {
    gn_tx q = doca_qp(qp);
    return doca_said(gn_flush(&q, GN_LIMIT));
}

#endif
