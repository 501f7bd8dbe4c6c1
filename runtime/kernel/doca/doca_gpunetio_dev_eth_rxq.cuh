// doca_gpunetio_dev_eth_rxq.cuh: Ethernet receive queues. One thread, warp or block receives from a queue. A
// packet stays valid until half a ring of further packets has been received; an index is a ticket of the
// ring.
#ifndef DOCA_GPUNETIO_DEV_ETH_RXQ_CUH
#define DOCA_GPUNETIO_DEV_ETH_RXQ_CUH

#include "doca_gpunetio_eth_def.h"

DOCA_FN bool doca_packet(const doca_gpu_eth_rxq *rxq, gn_u64 index, gn_packet *p, gn_side *s) {
    doca_rx r = doca_open_rx(rxq);
    *s = r.q.s;
    return gn_rx_read(&r.q, index, p) == GN_OK;
}

// Returns the address of the packet with this index; 0: not accessible.
GN_FN uint64_t doca_gpu_dev_eth_rxq_get_pkt_addr(const doca_gpu_eth_rxq *rxq, uint64_t pkt_idx) {
    gn_packet p;
    gn_side s;
    return doca_packet(rxq, pkt_idx, &p, &s) ? (uint64_t)gn_pointer(&s, p.place) : 0;
}

// Packets may be in several regions: the key means the one with the address.
GN_FN uint32_t doca_gpu_dev_eth_rxq_get_pkt_mkey(const doca_gpu_eth_rxq *) { return DOCA_ANY_KEY; }

GN_FN doca_error_t doca_gpu_dev_eth_rxq_get_pkt_bytes(const doca_gpu_eth_rxq *rxq, uint64_t pkt_idx,
                                                      uint32_t *bytes) {
    gn_packet p;
    gn_side s;
    if (!doca_packet(rxq, pkt_idx, &p, &s)) return DOCA_ERROR_NOT_FOUND;
    *bytes = p.bytes;
    return DOCA_SUCCESS;
}

GN_FN doca_error_t doca_gpu_dev_eth_rxq_get_pkt_ts(const doca_gpu_eth_rxq *rxq, uint64_t pkt_idx,
                                                   uint64_t *timestamp_ns) {
    gn_packet p;
    gn_side s;
    if (!doca_packet(rxq, pkt_idx, &p, &s)) return DOCA_ERROR_NOT_FOUND;
    *timestamp_ns = p.time + ((const gn_context *)s.context)->start_ns;
    return DOCA_SUCCESS;
}

// Returns the packet's descriptor (gn_rx_slot), in place of a completion queue entry.
GN_FN void *doca_gpu_dev_eth_rxq_get_pkt_cqe(const doca_gpu_eth_rxq *rxq, uint64_t pkt_idx) {
    doca_rx r = doca_open_rx(rxq);
    return (void *)&r.q.slots[gn_index(pkt_idx, r.q.log2)];
}

// Nothing to do: a packet's bytes are visible before its descriptor.
GN_FN void doca_gpu_dev_eth_rxq_mcst(doca_gpu_eth_rxq *) {}

// Nothing to do: the packets of a call are given back by later calls.
GN_FN void doca_gpu_dev_eth_rxq_submit_dbr(doca_gpu_eth_rxq *, uint64_t = 0) {}
GN_FN void doca_gpu_dev_eth_rxq_submit_cq_dbr(doca_gpu_eth_rxq *, uint64_t = 0) {}

// Takes packets until there are `most`, or none for now; waits for the first.
DOCA_FN int doca_take(const gn_rx *q, int scope, gn_u32 most, gn_u64 limit, gn_u64 *first, gn_u32 *n,
                      gn_u64 *share) {
    gn_u64 at;
    gn_u32 got;
    int err = gn_recv(q, scope, most, limit, first, n, share);
    for (got = *n; got == 32 && *n < most; *n += got) // the only receiver: the next tickets follow
        if (gn_recv(q, scope, most - *n, 0, &at, &got, share) != GN_OK) break;
    return err;
}

template <doca_gpu_dev_eth_rxq_attr_type type>
GN_FN void doca_attributes(const gn_rx *q, gn_u64 start_ns, gn_u64 first, gn_u32 n, gn_u32 from, gn_u32 step,
                           doca_gpu_dev_eth_rxq_attr *attr) {
    const bool wanted = type != DOCA_GPUNETIO_ETH_RX_ATTR_NONE && attr;
    for (gn_u32 k = from; wanted && k < n; k += step) {
        gn_packet p;
        if (gn_rx_read(q, first + k, &p) != GN_OK) continue;
        attr[k].timestamp_ns = p.time + start_ns;
        if (type == DOCA_GPUNETIO_ETH_RX_ATTR_ALL) attr[k].bytes = p.bytes;
    }
}

// Receives up to max_pkt_num packets, at most half a ring; 0: half a ring. timeout_ns 0: the context's limit.
// On timeout returns SUCCESS with *out_pkt_num 0, and so it does in a kernel with an exit flag when that is
// set: the kernel reads it next. out_attr may be NULL.
template <doca_gpu_dev_eth_exec_scope exec_scope = DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD,
          doca_gpu_dev_eth_mcst_mode mcst_mode = DOCA_GPUNETIO_ETH_MCST_DISABLED,
          doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
          doca_gpu_dev_eth_rxq_attr_type attr_type = DOCA_GPUNETIO_ETH_RX_ATTR_NONE>
GN_FN doca_error_t doca_gpu_dev_eth_rxq_recv(doca_gpu_eth_rxq *rxq, uint32_t max_pkt_num, uint64_t timeout_ns,
                                             uint64_t *out_first_pkt_idx, uint32_t *out_pkt_num,
                                             doca_gpu_dev_eth_rxq_attr *out_attr) {
    GN_SHARED gn_u64 share[3];
    const int scope = (int)exec_scope;
    doca_rx r = doca_open_rx(rxq);
    gn_u64 first, half = 1ull << (r.q.log2 - 1);
    gn_u32 n, most = max_pkt_num == 0 || max_pkt_num > half ? (gn_u32)half : max_pkt_num;
    int err = doca_take(&r.q, scope, most, timeout_ns ? timeout_ns : GN_LIMIT, &first, &n, share);
    gn_u64 start_ns = ((const gn_context *)r.q.s.context)->start_ns;
    if (scope == GN_BY_THREAD)
        doca_attributes<attr_type>(&r.q, start_ns, first, n, 0, 1, out_attr);
    else if (scope == GN_BY_WARP || gn_thread() < 32)
        doca_attributes<attr_type>(&r.q, start_ns, first, n, gn_lane(), 32, out_attr);
    gn_u64 since = first - r.first, skip = n && since < half ? half - since : 0; // the first half ring
    if (skip < n) gn_release(&r.q, scope, first + skip - half, n - (gn_u32)skip);
    *out_first_pkt_idx = first;
    *out_pkt_num = n;
    gn_sync(scope);
    const bool leaves = err == GN_ABORTED && ((const gn_context *)r.q.s.context)->exits;
    return err == GN_TIMEOUT || err == GN_AGAIN || leaves ? DOCA_SUCCESS : doca_error_of(err);
}

#define DOCA_RECV(name, scope)                                                                               \
    template <doca_gpu_dev_eth_mcst_mode mcst_mode = DOCA_GPUNETIO_ETH_MCST_DISABLED,                        \
              doca_gpu_dev_eth_nic_handler nic_handler = DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,                 \
              doca_gpu_dev_eth_rxq_attr_type attr_type = DOCA_GPUNETIO_ETH_RX_ATTR_NONE>                     \
    GN_FN doca_error_t doca_gpu_dev_eth_rxq_recv_##name(                                                     \
        doca_gpu_eth_rxq *rxq, uint32_t max_pkt_num, uint64_t timeout_ns, uint64_t *out_first_pkt_idx,       \
        uint32_t *out_pkt_num, doca_gpu_dev_eth_rxq_attr *out_attr) {                                        \
        return doca_gpu_dev_eth_rxq_recv<scope, mcst_mode, nic_handler, attr_type>(                          \
            rxq, max_pkt_num, timeout_ns, out_first_pkt_idx, out_pkt_num, out_attr);                         \
    }
DOCA_RECV(thread, DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD)
DOCA_RECV(warp, DOCA_GPUNETIO_ETH_EXEC_SCOPE_WARP)
DOCA_RECV(block, DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK)
#undef DOCA_RECV

#endif
