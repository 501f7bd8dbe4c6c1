// doca_gpunetio_dev_eth_txq.cuh: Ethernet transmit queues. A packet has one index, also with a time to wait
// for.
#ifndef DOCA_GPUNETIO_DEV_ETH_TXQ_CUH
#define DOCA_GPUNETIO_DEV_ETH_TXQ_CUH

#include "doca_gpunetio_eth_def.h"

// Converts ns since 1970 to the time of doca_gpu_dev_eth_txq_wait_send: seconds and ns, big endian.
GN_FN doca_error_t doca_gpu_dev_eth_txq_calculate_timestamp(doca_gpu_eth_txq *, uint64_t timestamp_ns,
                                                            uint64_t *wait_on_time) {
    *wait_on_time = doca_swap64(timestamp_ns / 1000000000 << 32 | timestamp_ns % 1000000000);
    return DOCA_SUCCESS;
}

// Converts it to a time of a send: ns since the session's start; 0: now, also for a time before that.
DOCA_FN gn_u64 doca_send_time(const gn_side *s, uint64_t wait_on_time) {
    uint64_t t = doca_swap64(wait_on_time), ns = (t >> 32) * 1000000000 + (uint32_t)t;
    gn_u64 start = ((const gn_context *)s->context)->start_ns;
    return wait_on_time && ns > start ? ns - start : 0;
}

// ---- completions that were asked for (SEND_FLAG_NOTIFY) ---------------------------------------------------

// Completion k has a word with its lap in the table and the low 48 bits of its index.
GN_FN gn_u64 doca_notice(const doca_gpu_eth_txq *txq, gn_u64 k) { return k / txq->wqe_num + 1; }

DOCA_FN void doca_notify(doca_gpu_eth_txq *txq, gn_u64 index) {
    gn_u64 k = doca_fetch_add(&txq->gn_notified, 1);
    gn_store_near(doca_table(txq, k, GN_TX_TABLE_WORDS),
                  doca_notice(txq, k) << 48 | (index & 0xffffffffffffull));
}

// Polls completion k. GN_AGAIN: also one that no send has asked for yet.
DOCA_FN int doca_poll_notice(const doca_tx *t, const doca_gpu_eth_txq *txq, gn_u64 k) {
    gn_u64 is = gn_load(doca_table(txq, k, GN_TX_TABLE_WORDS)), lap = doca_notice(txq, k) & 0xffff;
    if (is >> 48 != lap) return is >> 48 > lap ? GN_OK : GN_AGAIN; // a later one has its word
    return doca_poll(t, is & 0xffffffffffffull);
}

DOCA_FN int doca_wait_notice(const doca_tx *t, const doca_gpu_eth_txq *txq, gn_u64 k) {
    gn_timer timer = gn_timer_start(&t->q.s, GN_LIMIT);
    for (;;) {
        int status = doca_poll_notice(t, txq, k);
        if (status != GN_AGAIN) return status;
        int err = gn_tx_pause(&t->q, &timer, gn_next(&t->q));
        if (err != GN_OK) return err;
    }
}

GN_FN doca_error_t doca_completed(int status) {
    return status == GN_FAILED  ? DOCA_ERROR_UNEXPECTED
           : status == GN_AGAIN ? DOCA_SUCCESS
                                : doca_error_of(status);
}

GN_FN uint64_t doca_gpu_dev_eth_txq_reserve_cq_slots(doca_gpu_eth_txq *txq, uint32_t count) {
    return doca_fetch_add((gn_u64 *)&txq->cq_rsvd_index, count);
}

// Polls the completion with this index, from 0, of those asked for. NB: AGAIN if it is not there.
template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
          doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
GN_FN doca_error_t doca_gpu_dev_eth_txq_poll_completion_at(doca_gpu_eth_txq *txq, uint64_t cqe_idx,
                                                           doca_gpu_dev_eth_wait_flags wait) {
    doca_tx t = doca_open_tx(txq);
    int status = wait == DOCA_GPUNETIO_ETH_WAIT_FLAG_B ? doca_wait_notice(&t, txq, cqe_idx)
                                                       : doca_poll_notice(&t, txq, cqe_idx);
    if (status == GN_OK) doca_raise((gn_u64 *)&txq->cqe_ci, cqe_idx + 1);
    return status == GN_AGAIN ? DOCA_ERROR_AGAIN : doca_completed(status);
}

// Polls the next `count` completions of those asked for; *out_num_completed: how many there were. B waits for
// all of them.
template <doca_gpu_dev_eth_cq_poll_mode cqe_poll = DOCA_GPUNETIO_ETH_CQ_POLL_ALL,
          doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
          doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
GN_FN doca_error_t doca_gpu_dev_eth_txq_poll_completion(doca_gpu_eth_txq *txq, uint32_t count,
                                                        doca_gpu_dev_eth_wait_flags wait,
                                                        uint32_t *out_num_completed) {
    doca_tx t = doca_open_tx(txq);
    gn_u64 *rsvd = (gn_u64 *)&txq->cq_rsvd_index, from;
    bool blocks = wait == DOCA_GPUNETIO_ETH_WAIT_FLAG_B;
    int status;
    uint32_t n;
    do {
        status = GN_OK;
        from = blocks ? doca_fetch_add(rsvd, count) : gn_peek(rsvd);
        for (n = 0; n < count && status == GN_OK; n += status == GN_OK)
            status = blocks ? doca_wait_notice(&t, txq, from + n) : doca_poll_notice(&t, txq, from + n);
    } while (!blocks && n && !gn_swap(rsvd, from, from + n)); // another thread took some of them
    if (n) doca_raise((gn_u64 *)&txq->cqe_ci, from + n);
    *out_num_completed = n;
    return doca_completed(status);
}

// ---- high level -------------------------------------------------------------------------------------------

#define DOCA_ETH_TX                                                                                          \
    template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,  \
              doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,                     \
              doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO

DOCA_FN doca_error_t doca_send(doca_gpu_eth_txq *txq, int scope, uint64_t wait_on_time, uint64_t addr,
                               uint32_t mkey, size_t nbytes, doca_gpu_eth_send_flags flags,
                               doca_gpu_dev_eth_ticket_t *ticket) {
    gn_side s = doca_side(txq);
    gn_u64 index;
    gn_slot slot = gn_fill_send(doca_place(&s, addr, mkey, 0), nbytes >> 32 ? 0 : (gn_u32)nbytes,
                                doca_send_time(&s, wait_on_time), 0);
    int err = doca_post(txq, &txq->sq_rsvd_index, scope, &slot, 1, &index);
    if (err == GN_OK && flags & DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY) doca_notify(txq, index);
    if (ticket) *ticket = index;
    gn_sync(scope);
    return doca_error_of(err);
}

// Sends one packet of each thread.
DOCA_ETH_TX, doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD >
                                                      GN_FN doca_error_t doca_gpu_dev_eth_txq_send(
                                                          doca_gpu_eth_txq *txq, uint64_t addr, uint32_t mkey,
                                                          size_t nbytes, doca_gpu_eth_send_flags flags,
                                                          doca_gpu_dev_eth_ticket_t *ticket) {
    return doca_send(txq, (int)exec_scope, 0, addr, mkey, nbytes, flags, ticket);
}

// Sends at a time of doca_gpu_dev_eth_txq_calculate_timestamp.
DOCA_ETH_TX,
    doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD >
                                             GN_FN doca_error_t doca_gpu_dev_eth_txq_wait_send(
                                                 doca_gpu_eth_txq *txq, uint64_t wait_ts, uint64_t addr,
                                                 uint32_t mkey, size_t nbytes, doca_gpu_eth_send_flags flags,
                                                 doca_gpu_dev_eth_ticket_t *ticket) {
    return doca_send(txq, (int)exec_scope, wait_ts, addr, mkey, nbytes, flags, ticket);
}

#define DOCA_SEND(name, scope)                                                                               \
    DOCA_ETH_TX > GN_FN doca_error_t doca_gpu_dev_eth_txq_send_##name(                                       \
                      doca_gpu_eth_txq *txq, uint64_t addr, uint32_t mkey, size_t nbytes,                    \
                      doca_gpu_eth_send_flags flags, doca_gpu_dev_eth_ticket_t *ticket) {                    \
        return doca_send(txq, scope, 0, addr, mkey, nbytes, flags, ticket);                                  \
    }                                                                                                        \
    DOCA_ETH_TX > GN_FN doca_error_t doca_gpu_dev_eth_txq_wait_send_##name(                                  \
                      doca_gpu_eth_txq *txq, uint64_t wait_ts, uint64_t addr, uint32_t mkey, size_t nbytes,  \
                      doca_gpu_eth_send_flags flags, doca_gpu_dev_eth_ticket_t *ticket) {                    \
        return doca_send(txq, scope, wait_ts, addr, mkey, nbytes, flags, ticket);                            \
    }
DOCA_SEND(thread, GN_BY_THREAD)
DOCA_SEND(warp, GN_BY_WARP)
DOCA_SEND(block, GN_BY_BLOCK)
#undef DOCA_SEND

// ---- low level --------------------------------------------------------------------------------------------

// ~0: there was no space within the context's limit.
template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU>
GN_FN uint64_t doca_gpu_dev_eth_txq_reserve_wq_slots(doca_gpu_eth_txq *txq, uint32_t count) {
    return doca_reserve(txq, &txq->sq_rsvd_index, count);
}

GN_FN doca_gpu_dev_eth_txq_wqe *doca_gpu_dev_eth_txq_get_wqe_ptr(doca_gpu_eth_txq *txq, uint16_t wqe_idx) {
    doca_tx t = doca_open_tx(txq);
    return (doca_gpu_dev_eth_txq_wqe *)&t.q.slots[gn_index(t.first + wqe_idx, t.q.log2)];
}

DOCA_FN doca_error_t doca_prepare_send(doca_gpu_eth_txq *txq, uint16_t wqe_idx, gn_slot *slot,
                                       doca_gpu_eth_send_flags flags) {
    doca_tx t = doca_open_tx(txq);
    gn_u64 index = doca_ticket(&t, wqe_idx) - t.first, from = gn_load(&txq->gn_wait_at);
    if (from && index + 1 > from) slot->w[2] = gn_peek(&txq->gn_wait_ns);
    int err = doca_prepare(txq, wqe_idx, slot);
    if (err == GN_OK && flags & DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY) doca_notify(txq, index);
    return doca_error_of(err);
}

// For a reserved index, or one chosen by the caller, whose slot it waits for.
GN_FN doca_error_t doca_gpu_dev_eth_txq_wqe_prepare_send(doca_gpu_eth_txq *txq, doca_gpu_dev_eth_txq_wqe *,
                                                         uint16_t wqe_idx, uint64_t addr, uint32_t mkey,
                                                         uint32_t nbytes, doca_gpu_eth_send_flags flags) {
    gn_side s = doca_side(txq);
    gn_slot slot = gn_fill_send(doca_place(&s, addr, mkey, 0), nbytes, 0, 0);
    return doca_prepare_send(txq, wqe_idx, &slot, flags);
}
GN_FN doca_error_t doca_gpu_dev_eth_txq_wqe_prepare_send(doca_gpu_eth_txq *txq, doca_gpu_dev_eth_txq_wqe *,
                                                         uint16_t wqe_idx, uint64_t addr0, uint32_t mkey0,
                                                         uint32_t nbytes0, uint64_t addr1, uint32_t mkey1,
                                                         uint32_t nbytes1, doca_gpu_eth_send_flags flags) {
    gn_side s = doca_side(txq);
    gn_slot slot = gn_fill_send(doca_place(&s, addr0, mkey0, 0), nbytes0, 0, 0);
    gn_fill_split(&slot, doca_place(&s, addr1, mkey1, 0), nbytes1);
    return doca_prepare_send(txq, wqe_idx, &slot, flags);
}

// Its slot is a nop: the sends that are prepared later, with higher indices, get the time.
GN_FN doca_error_t doca_gpu_dev_eth_txq_wqe_prepare_wait_time(doca_gpu_eth_txq *txq,
                                                              doca_gpu_dev_eth_txq_wqe *, uint16_t wqe_idx,
                                                              uint64_t wait_ts,
                                                              doca_gpu_eth_send_flags flags) {
    doca_tx t = doca_open_tx(txq);
    gn_u64 index = doca_ticket(&t, wqe_idx) - t.first;
    gn_slot slot = gn_fill_nop();
    gn_poke(&txq->gn_wait_ns, doca_send_time(&t.q.s, wait_ts));
    gn_store_near(&txq->gn_wait_at, index + 1);
    int err = doca_prepare(txq, wqe_idx, &slot);
    if (err == GN_OK && flags & DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY) doca_notify(txq, index);
    return doca_error_of(err);
}

DOCA_IMPOSSIBLE(void, doca_gpu_dev_eth_txq_wqe_prepare_send_empw,
                "several packets in one entry are a NIC's format; hint: an index for each packet")

// Publishes reserved and prepared slots, from the first to the last.
template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU>
GN_FN void doca_gpu_dev_eth_txq_mark_wqes_ready(doca_gpu_eth_txq *txq, uint64_t from_wqe_idx,
                                                uint64_t to_wqe_idx) {
    doca_ready(txq, &txq->sq_ready_index, from_wqe_idx, to_wqe_idx);
}

#define DOCA_SUBMIT(name)                                                                                    \
    DOCA_ETH_TX > GN_FN void doca_gpu_dev_eth_txq_##name(doca_gpu_eth_txq *txq, uint64_t prod_index) {       \
        doca_submit(txq, &txq->sq_rsvd_index, &txq->wqe_pi, prod_index);                                     \
    }
DOCA_SUBMIT(submit)
#undef DOCA_SUBMIT

#define DOCA_SUBMIT(name)                                                                                    \
    template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,  \
              doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>                     \
    GN_FN void doca_gpu_dev_eth_txq_##name(doca_gpu_eth_txq *txq, uint64_t prod_index) {                     \
        doca_submit(txq, &txq->sq_rsvd_index, &txq->wqe_pi, prod_index);                                     \
    }
DOCA_SUBMIT(submit_proxy)
DOCA_SUBMIT(submit_db)
#undef DOCA_SUBMIT

template <doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
GN_FN void doca_gpu_dev_eth_txq_ring_db(doca_gpu_eth_txq *txq, uint64_t prod_index) {
    doca_submit(txq, &txq->sq_rsvd_index, &txq->wqe_pi, prod_index);
}

// Nothing to do: there are no doorbell records.
GN_FN void doca_priv_gpu_dev_eth_txq_update_dbr(doca_gpu_eth_txq *, uint64_t) {}
template <doca_gpu_dev_eth_sync_scope sync_scope = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU>
GN_FN void doca_gpu_dev_eth_txq_update_dbr(doca_gpu_eth_txq *, uint64_t) {}
GN_FN uint64_t doca_gpu_dev_eth_txq_prepare_db(doca_gpu_eth_txq *, uint64_t prod_index) { return prod_index; }
GN_FN void doca_gpu_dev_eth_txq_submit_cq_dbr(doca_gpu_eth_txq *, uint64_t = 0) {}

#undef DOCA_ETH_TX

#endif
