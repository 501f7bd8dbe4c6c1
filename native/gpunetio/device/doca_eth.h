// doca_eth.h: Ethernet queues with DOCA's names (doca_gpu.h).
#ifndef DOCA_ETH_H
#define DOCA_ETH_H

enum doca_gpu_dev_eth_resource_sharing_mode {
    DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_EXCLUSIVE,
    DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_CTA,
    DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU
};
enum doca_gpu_dev_eth_sync_scope { DOCA_GPUNETIO_ETH_SYNC_SCOPE_CTA, DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU };
enum doca_gpu_dev_eth_nic_handler {
    DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
    DOCA_GPUNETIO_ETH_NIC_HANDLER_CPU_PROXY,
    DOCA_GPUNETIO_ETH_NIC_HANDLER_GPU_SM_DB
};
enum doca_gpu_dev_eth_exec_scope {
    DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD = GN_BY_THREAD,
    DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP = GN_BY_WARP,
    DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK = GN_BY_BLOCK
};
enum doca_gpu_dev_eth_mcst_mode {
    DOCA_GPUNETIO_ETH_MCST_AUTO,
    DOCA_GPUNETIO_ETH_MCST_ENABLED,
    DOCA_GPUNETIO_ETH_MCST_DISABLED
};
enum doca_gpu_dev_eth_rx_attr {
    DOCA_GPUNETIO_ETH_RX_ATTR_NONE,
    DOCA_GPUNETIO_ETH_RX_ATTR_BYTES,
    DOCA_GPUNETIO_ETH_RX_ATTR_ALL
};
enum doca_gpu_eth_send_flags { DOCA_GPUNETIO_ETH_SEND_FLAG_NONE, DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY };
enum doca_gpu_dev_eth_wait_flag { DOCA_GPUNETIO_ETH_WAIT_FLAG_NB, DOCA_GPUNETIO_ETH_WAIT_FLAG_B };
enum doca_gpu_dev_eth_cq_poll { DOCA_GPUNETIO_ETH_CQ_POLL_ALL, DOCA_GPUNETIO_ETH_CQ_POLL_LAST };

typedef gn_u64 doca_gpu_dev_eth_ticket_t;

struct doca_gpu_eth_rxq {
    gn_rx_row row;
};
struct doca_gpu_eth_txq {
    gn_tx_row row;
};
struct doca_gpu_dev_eth_txq_wqe {
    gn_slot slot;
};
struct doca_gpu_dev_eth_rxq_attr {
    gn_u32 bytes;
    gn_u64 timestamp_ns; // since the session's start
};

GN_FN gn_rx doca_rxq(const doca_gpu_eth_rxq *rxq) {
    gn_side s = doca_side(rxq, rxq->row.back);
    gn_rx q;
    gn_rx_open_row(&q, &s, &rxq->row);
    return q;
}
GN_FN gn_tx doca_txq(const doca_gpu_eth_txq *txq) {
    gn_side s = doca_side(txq, txq->row.back);
    gn_tx q;
    gn_tx_open_row(&q, &s, &txq->row);
    return q;
}

// ---- receive ----------------------------------------------------------------------------------------------

// Returns the address of the packet with this index; 0: not accessible.
GN_FN gn_u64 doca_gpu_dev_eth_rxq_get_pkt_addr(const doca_gpu_eth_rxq *rxq, gn_u64 index) {
    gn_rx q = doca_rxq(rxq);
    gn_packet p;
    if (gn_rx_read(&q, index, &p) != GN_OK) return 0;
    return (gn_u64)gn_pointer(&q.s, p.place);
}

// Receives up to `most` packets, at most 32; on timeout returns SUCCESS with *count 0. Releases packets taken
// half a ring earlier.
template <doca_gpu_dev_eth_exec_scope scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD,
          doca_gpu_dev_eth_mcst_mode mcst = DOCA_GPUNETIO_ETH_MCST_AUTO,
          doca_gpu_dev_eth_nic_handler handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
          doca_gpu_dev_eth_rx_attr attributes = DOCA_GPUNETIO_ETH_RX_ATTR_ALL>
GN_FN doca_error_t doca_gpu_dev_eth_rxq_recv(doca_gpu_eth_rxq *rxq, gn_u32 most, gn_u64 timeout_ns,
                                             gn_u64 *first, gn_u32 *count, doca_gpu_dev_eth_rxq_attr *attr) {
    GN_SHARED gn_u64 share[3];
    gn_rx q = doca_rxq(rxq);
    gn_u64 from, half = 1ull << (q.log2 - 1);
    gn_u32 n;
    if (most > half) most = (gn_u32)half;
    int err = gn_recv(&q, scope, most, timeout_ns, &from, &n, share);
    gn_u32 step = scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD ? 1 : 32;
    for (gn_u32 k = scope == DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD ? 0 : gn_lane(); k < n; k += step) {
        gn_packet p;
        if (attributes != DOCA_GPUNETIO_ETH_RX_ATTR_NONE && gn_rx_read(&q, from + k, &p) == GN_OK) {
            attr[k].bytes = p.bytes;
            attr[k].timestamp_ns = p.time;
        }
    }
    gn_u64 since = from - rxq->row.first, skip = n && since < half ? half - since : 0; // first half ring
    if (skip < n) gn_release(&q, scope, from + skip - half, n - (gn_u32)skip);
    *first = from;
    *count = n;
    gn_sync(scope);
    return err == GN_TIMEOUT || err == GN_AGAIN ? DOCA_SUCCESS : doca_said(err);
}

// ---- send, high level -------------------------------------------------------------------------------------

#define DOCA_ETH_SEND                                                                                        \
    template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,  \
              doca_gpu_dev_eth_sync_scope sync = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,                           \
              doca_gpu_dev_eth_nic_handler handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,                     \
              doca_gpu_dev_eth_exec_scope scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD>                       \
    GN_FN

// Sends at a time in ns since the session's start.
DOCA_ETH_SEND doca_error_t doca_gpu_dev_eth_txq_wait_send(doca_gpu_eth_txq *txq, gn_u64 time, gn_u64 address,
                                                          gn_u32 key, gn_u64 bytes, doca_gpu_eth_send_flags,
                                                          doca_gpu_dev_eth_ticket_t *ticket) {
    gn_tx q = doca_txq(txq);
    if (bytes >> 32) return DOCA_ERROR_INVALID_VALUE;
    return doca_said(
        gn_send(&q, scope, doca_place(&q.s, address, key), (gn_u32)bytes, time, 0, GN_LIMIT, ticket));
}
DOCA_ETH_SEND doca_error_t doca_gpu_dev_eth_txq_send(doca_gpu_eth_txq *txq, gn_u64 address, gn_u32 key,
                                                     gn_u64 bytes, doca_gpu_eth_send_flags flags,
                                                     doca_gpu_dev_eth_ticket_t *ticket) {
    return doca_gpu_dev_eth_txq_wait_send<sharing, sync, handler, scope>(txq, 0, address, key, bytes, flags,
                                                                         ticket);
}

// ---- send, low level --------------------------------------------------------------------------------------

// Returns the full ticket for an index of which the caller keeps 16 bits: the one currently valid in the
// ring.
GN_FN gn_u64 doca_ticket(const gn_tx *q, gn_u64 index) {
    gn_u64 accepted = gn_load(&q->state->accepted);
    return accepted + ((index - accepted) & 0xffff);
}

// Returns ~0 if there was no space within the context's limit.
template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU>
GN_FN gn_u64 doca_gpu_dev_eth_txq_reserve_wq_slots(doca_gpu_eth_txq *txq, gn_u32 n) {
    gn_tx q = doca_txq(txq);
    gn_u64 first;
    return gn_reserve(&q, n, GN_LIMIT, &first) == GN_OK ? first : ~0ull;
}

GN_FN doca_gpu_dev_eth_txq_wqe *doca_gpu_dev_eth_txq_get_wqe_ptr(doca_gpu_eth_txq *txq, gn_u64 index) {
    gn_tx q = doca_txq(txq);
    return (doca_gpu_dev_eth_txq_wqe *)&q.slots[gn_index(index, q.log2)];
}

// For a reserved ticket, or one chosen by the caller (weak mode), whose slot it waits for.
GN_FN doca_error_t doca_gpu_dev_eth_txq_wqe_prepare_send(const doca_gpu_eth_txq *txq,
                                                         doca_gpu_dev_eth_txq_wqe *, gn_u64 index,
                                                         gn_u64 address, gn_u32 key, gn_u32 bytes,
                                                         doca_gpu_eth_send_flags) {
    gn_tx q = doca_txq(txq);
    gn_u64 ticket = doca_ticket(&q, index);
    int err = ticket < gn_next(&q) ? GN_OK : gn_room(&q, ticket, 1, GN_LIMIT);
    if (err != GN_OK) return doca_said(err);
    gn_slot slot = gn_fill_send(doca_place(&q.s, address, key), bytes, 0, 0);
    gn_commit(&q, ticket, &slot);
    return DOCA_SUCCESS;
}

// Publishes reserved and prepared slots, from the first ticket to the last.
template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU>
GN_FN void doca_gpu_dev_eth_txq_mark_wqes_ready(doca_gpu_eth_txq *txq, gn_u64 first, gn_u64 last) {
    gn_tx q = doca_txq(txq);
    gn_publish(&q, doca_ticket(&q, first), (gn_u32)((last - first) & 0xffff) + 1);
}

// Publishes prepared slots with tickets of the caller, below `end`; reserved ones are published by
// mark_wqes_ready.
template <doca_gpu_dev_eth_resource_sharing_mode sharing = DOCA_GPUNETIO_ETH_RESOURCE_SHARING_MODE_GPU,
          doca_gpu_dev_eth_sync_scope sync = DOCA_GPUNETIO_ETH_SYNC_SCOPE_GPU,
          doca_gpu_dev_eth_nic_handler handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO>
GN_FN void doca_gpu_dev_eth_txq_submit(doca_gpu_eth_txq *txq, gn_u64 end) {
    gn_tx q = doca_txq(txq);
    gn_u64 next = gn_next(&q), n = (end - next) & 0xffff;
    if (n == 0 || n > 1ull << q.log2) return; // already published
    gn_set_next(&q, next + n);
    gn_publish(&q, next, (gn_u32)n);
}

template <doca_gpu_dev_eth_cq_poll mode = DOCA_GPUNETIO_ETH_CQ_POLL_ALL>
GN_FN doca_error_t doca_gpu_dev_eth_txq_poll_completion(doca_gpu_eth_txq *txq, gn_u32 count,
                                                        doca_gpu_dev_eth_wait_flag flag, gn_u32 *done) {
    gn_tx q = doca_txq(txq);
    int err = gn_flush(&q, flag == DOCA_GPUNETIO_ETH_WAIT_FLAG_B ? GN_LIMIT : 0);
    *done = err == GN_OK || err == GN_FAILED ? count : 0;
    return err == GN_AGAIN ? DOCA_SUCCESS : doca_said(err);
}

#endif
