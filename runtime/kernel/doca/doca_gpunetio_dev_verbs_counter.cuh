// doca_gpunetio_dev_verbs_counter.cuh: operations that add to a counter over a companion queue pair once they
// are complete: the companion's ring waits for that, no thread does.
#ifndef DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH
#define DOCA_GPUNETIO_DEV_VERBS_COUNTER_CUH

#include "doca_gpunetio_dev_verbs_onesided.cuh"

DOCA_FN doca_error_t doca_count(doca_gpu_dev_verbs_qp *qp, doca_error_t err,
                                doca_gpu_dev_verbs_ticket_t ticket, int scope,
                                doca_gpu_dev_verbs_qp *companion_qp, doca_gpu_dev_verbs_addr counter_raddr,
                                doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val) {
    doca_tx t = doca_open_tx(qp);
    gn_slot slots[2] = {gn_fill_nop(), gn_fill_nop()}; // a warp's threads post together, also after an error
    if (err == DOCA_SUCCESS) {
        slots[0] = gn_fill_wait(qp->sq_num - 1, t.first + ticket);
        slots[1] = doca_fill_signal(&t.q.s, counter_raddr, counter_laddr, counter_val);
    }
    doca_error_t status = doca_post_qp(companion_qp, scope, slots, 2, &ticket);
    return err == DOCA_SUCCESS ? status : err;
}

template <DOCA_SHARING, DOCA_NIC, DOCA_SCOPE>
GN_FN doca_error_t doca_gpu_dev_verbs_put_counter(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                                  doca_gpu_dev_verbs_addr laddr, size_t size,
                                                  doca_gpu_dev_verbs_qp *companion_qp,
                                                  doca_gpu_dev_verbs_addr counter_raddr,
                                                  doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val,
                                                  DOCA_OPT) {
    doca_gpu_dev_verbs_ticket_t ticket;
    doca_error_t err = doca_move(qp, (int)exec_scope, GN_OP_PUT, raddr, laddr, size, 0, &ticket);
    return doca_count(qp, err, ticket, (int)exec_scope, companion_qp, counter_raddr, counter_laddr,
                      counter_val);
}
template <DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_put_counter_thread(
    doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr, doca_gpu_dev_verbs_addr laddr, size_t size,
    doca_gpu_dev_verbs_qp *companion_qp, doca_gpu_dev_verbs_addr counter_raddr,
    doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val, DOCA_OPT) {
    doca_gpu_dev_verbs_ticket_t ticket;
    doca_error_t err = doca_move(qp, GN_BY_THREAD, GN_OP_PUT, raddr, laddr, size, 0, &ticket);
    return doca_count(qp, err, ticket, GN_BY_THREAD, companion_qp, counter_raddr, counter_laddr, counter_val);
}
template <DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_put_counter_warp(
    doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr, doca_gpu_dev_verbs_addr laddr, size_t size,
    doca_gpu_dev_verbs_qp *companion_qp, doca_gpu_dev_verbs_addr counter_raddr,
    doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val, DOCA_OPT) {
    doca_gpu_dev_verbs_ticket_t ticket;
    doca_error_t err = doca_move(qp, GN_BY_WARP, GN_OP_PUT, raddr, laddr, size, 0, &ticket);
    return doca_count(qp, err, ticket, GN_BY_WARP, companion_qp, counter_raddr, counter_laddr, counter_val);
}

template <DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_get_counter(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                                  doca_gpu_dev_verbs_addr laddr, size_t size,
                                                  doca_gpu_dev_verbs_qp *companion_qp,
                                                  doca_gpu_dev_verbs_addr counter_raddr,
                                                  doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val,
                                                  DOCA_OPT) {
    doca_gpu_dev_verbs_ticket_t ticket;
    doca_error_t err = doca_move(qp, GN_BY_THREAD, GN_OP_GET, raddr, laddr, size, 0, &ticket);
    return doca_count(qp, err, ticket, GN_BY_THREAD, companion_qp, counter_raddr, counter_laddr, counter_val);
}

template <typename T, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_p_counter(doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr,
                                                T value, doca_gpu_dev_verbs_qp *companion_qp,
                                                doca_gpu_dev_verbs_addr counter_raddr,
                                                doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val,
                                                DOCA_OPT) {
    doca_gpu_dev_verbs_ticket_t ticket;
    doca_error_t err = doca_value(qp, GN_BY_THREAD, raddr, value, 0, &ticket);
    return doca_count(qp, err, ticket, GN_BY_THREAD, companion_qp, counter_raddr, counter_laddr, counter_val);
}

template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_signal_counter(
    doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr sig_raddr, doca_gpu_dev_verbs_addr sig_laddr,
    uint64_t sig_val, doca_gpu_dev_verbs_qp *companion_qp, doca_gpu_dev_verbs_addr counter_raddr,
    doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val, DOCA_OPT) {
    doca_gpu_dev_verbs_ticket_t ticket;
    doca_error_t err = doca_signal(qp, GN_BY_THREAD, sig_raddr, sig_laddr, sig_val, &ticket);
    return doca_count(qp, err, ticket, GN_BY_THREAD, companion_qp, counter_raddr, counter_laddr, counter_val);
}

template <doca_gpu_dev_verbs_signal_op sig_op, DOCA_SHARING, DOCA_NIC>
GN_FN doca_error_t doca_gpu_dev_verbs_put_signal_counter(
    doca_gpu_dev_verbs_qp *qp, doca_gpu_dev_verbs_addr raddr, doca_gpu_dev_verbs_addr laddr, size_t size,
    doca_gpu_dev_verbs_addr sig_raddr, doca_gpu_dev_verbs_addr sig_laddr, uint64_t sig_val,
    doca_gpu_dev_verbs_qp *companion_qp, doca_gpu_dev_verbs_addr counter_raddr,
    doca_gpu_dev_verbs_addr counter_laddr, uint64_t counter_val, DOCA_OPT) {
    doca_gpu_dev_verbs_ticket_t ticket;
    doca_error_t err =
        doca_put_signal(qp, GN_BY_THREAD, raddr, laddr, size, sig_raddr, sig_laddr, sig_val, &ticket);
    return doca_count(qp, err, ticket, GN_BY_THREAD, companion_qp, counter_raddr, counter_laddr, counter_val);
}

template <unsigned int num_qps, DOCA_SHARING, DOCA_SYNC, DOCA_NIC>
GN_FN void doca_gpu_dev_verbs_submit_multi_qps(doca_gpu_dev_verbs_qp **qps, uint64_t *prod_indices,
                                               DOCA_OPT) {
    for (unsigned int k = 0; k < num_qps; k++)
        doca_submit_qp(qps[k], 0, prod_indices[k]);
}
template <unsigned int num_qps, DOCA_SHARING, DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_submit_db_multi_qps(doca_gpu_dev_verbs_qp **qps, uint64_t *prod_indices,
                                                  DOCA_OPT) {
    for (unsigned int k = 0; k < num_qps; k++)
        doca_submit_qp(qps[k], 0, prod_indices[k]);
}
template <unsigned int num_qps, DOCA_SHARING, DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_submit_db_multi_qps_no_dbr(doca_gpu_dev_verbs_qp **qps, uint64_t *prod_indices,
                                                         DOCA_OPT) {
    for (unsigned int k = 0; k < num_qps; k++)
        doca_submit_qp(qps[k], 0, prod_indices[k]);
}
template <unsigned int num_qps, DOCA_SHARING, DOCA_SYNC>
GN_FN void doca_gpu_dev_verbs_submit_proxy_multi_qps(doca_gpu_dev_verbs_qp **qps, uint64_t *prod_indices,
                                                     DOCA_OPT) {
    for (unsigned int k = 0; k < num_qps; k++)
        doca_submit_qp(qps[k], 0, prod_indices[k]);
}

#endif
