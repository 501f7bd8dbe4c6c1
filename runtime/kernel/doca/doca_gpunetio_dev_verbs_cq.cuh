// doca_gpunetio_dev_verbs_cq.cuh: completions of queue pairs. Every index can be polled, also of an entry
// that asked for no completion. An index is in error if its operation failed, or one before it. With entries
// in mlx5's format an index is that of a completion entry, until a later one has its place.
#ifndef DOCA_GPUNETIO_DEV_VERBS_CQ_CUH
#define DOCA_GPUNETIO_DEV_VERBS_CQ_CUH

#include "doca_gpunetio_dev_verbs_common.cuh"

// What polls return, also for sources that include no errno.h.
#ifndef EIO
#define EIO 5
#endif
#ifndef EBUSY
#define EBUSY 16
#endif

GN_FN doca_gpu_dev_verbs_cq *doca_gpu_dev_verbs_qp_get_cq_sq(doca_gpu_dev_verbs_qp *qp) { return &qp->cq_sq; }
GN_FN doca_gpu_dev_verbs_cq *doca_gpu_dev_verbs_qp_get_cq_rq(doca_gpu_dev_verbs_qp *qp) { return &qp->cq_rq; }

GN_FN uint32_t doca_gpu_dev_verbs_cqe_idx_inc_mask(uint32_t cqe_idx, uint32_t increment) {
    return (cqe_idx + increment) & DOCA_GPUNETIO_VERBS_CQE_CI_MASK;
}
GN_FN uint32_t doca_gpu_dev_verbs_wqe_idx_inc_mask(uint32_t wqe_idx, uint32_t increment) {
    return (wqe_idx + increment) & DOCA_GPUNETIO_VERBS_WQE_PI_MASK;
}

// A receive is there when its packet is.
DOCA_FN int doca_poll_receive(doca_gpu_dev_verbs_cq *cq, uint64_t cons_index, bool wait) {
    doca_rx r = doca_open_rx(cq);
    gn_packet p;
    gn_timer timer = gn_timer_start(&r.q.s, wait ? GN_LIMIT : 0);
    while (gn_rx_read(&r.q, r.first + cons_index, &p) != GN_OK) {
        int err = gn_go_on(&r.q.s, &timer, &r.q.state->epoch, r.q.epoch);
        if (err != GN_OK) return err == GN_AGAIN ? EBUSY : -EIO;
    }
    return 0;
}

// Returns 0, EBUSY (not yet), or -EIO.
template <DOCA_SHARING, DOCA_TYPE>
GN_FN int doca_priv_gpu_dev_verbs_poll_one_cq_at(doca_gpu_dev_verbs_cq *cq, uint64_t cons_index) {
    doca_step();
    if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ) return doca_poll_receive(cq, cons_index, false);
    doca_tx t = doca_open_tx(cq);
    int status = doca_poll_cq(&t, cons_index);
    return status == GN_OK ? 0 : status == GN_AGAIN ? EBUSY : -EIO;
}
template <DOCA_SHARING, DOCA_TYPE>
GN_FN int doca_gpu_dev_verbs_poll_one_cq_at(doca_gpu_dev_verbs_cq *cq, uint64_t cons_index) {
    int status = doca_priv_gpu_dev_verbs_poll_one_cq_at<resource_sharing_mode, qp_type>(cq, cons_index);
    if (status == 0) doca_raise((gn_u64 *)&cq->cqe_ci, cons_index + 1);
    return status;
}

// Waits, at most the context's limit. Returns 0 or -EIO.
template <DOCA_SHARING, DOCA_TYPE>
GN_FN int doca_priv_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_cq *cq, uint64_t cons_index) {
    if (qp_type == DOCA_GPUNETIO_VERBS_QP_RQ) return doca_poll_receive(cq, cons_index, true);
    doca_tx t = doca_open_tx(cq);
    return doca_wait_cq(&t, cons_index, true) == GN_OK ? 0 : -EIO;
}
template <DOCA_SHARING, DOCA_TYPE>
GN_FN int doca_gpu_dev_verbs_poll_cq_at(doca_gpu_dev_verbs_cq *cq, uint64_t cons_index) {
    int status = doca_priv_gpu_dev_verbs_poll_cq_at<resource_sharing_mode, qp_type>(cq, cons_index);
    if (status == 0) doca_raise((gn_u64 *)&cq->cqe_ci, cons_index + 1);
    return status;
}
template <DOCA_SHARING, DOCA_TYPE>
GN_FN int doca_priv_gpu_dev_verbs_poll_cq_collapsed_at(doca_gpu_dev_verbs_qp *, doca_gpu_dev_verbs_cq *cq,
                                                       uint64_t cons_index, uint64_t *new_cqe_ci) {
    *new_cqe_ci = cons_index + 1;
    return doca_gpu_dev_verbs_poll_cq_at<resource_sharing_mode, qp_type>(cq, cons_index);
}
template <DOCA_SHARING, DOCA_TYPE>
GN_FN int doca_gpu_dev_verbs_poll_cq_collapsed_at(doca_gpu_dev_verbs_qp *qp, uint64_t cons_index) {
    return doca_gpu_dev_verbs_poll_cq_at<resource_sharing_mode, qp_type>(&qp->cq_sq, cons_index);
}

// Waits for the next `count`.
template <DOCA_SHARING, DOCA_TYPE>
GN_FN int doca_gpu_dev_verbs_poll_cq(doca_gpu_dev_verbs_cq *cq, uint32_t count) {
    if (count == 0) return 0;
    uint64_t last = gn_peek((gn_u64 *)&cq->cqe_ci) + count - 1;
    return doca_gpu_dev_verbs_poll_cq_at<resource_sharing_mode, qp_type>(cq, last);
}

// Nothing to do: there are no records.
template <bool is_overrun>
GN_FN uint32_t doca_gpu_dev_verbs_cq_update_dbrec(doca_gpu_dev_verbs_cq *, uint32_t cqe_num) {
    return cqe_num;
}
GN_FN void doca_gpu_dev_verbs_cq_print_cqe_err(mlx5_cqe64 *) {}

#endif
