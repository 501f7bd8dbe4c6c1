// gn_doca.cu: kernels in the shape of DOCA's own samples, by doca_gpu.h, for TestGnDevice and the host's units.
#include "doca_gpu.h"

#ifndef KERNEL
#define KERNEL extern "C" __attribute__((global))
#define SHARED __attribute__((shared))
#endif

KERNEL void receive_and_pass_on(doca_gpu_eth_rxq *rxq, doca_gpu_semaphore_gpu *sem, uint32_t items, uint32_t *exit) {
    SHARED uint64_t first;
    SHARED uint32_t count;
    SHARED doca_gpu_dev_eth_rxq_attr attr[32];
    uint32_t item = 0;
    while (DOCA_GPUNETIO_VOLATILE(*exit) == 0) {
        doca_error_t err = doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_BLOCK, DOCA_GPUNETIO_ETH_MCST_AUTO,
                                                     DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO, DOCA_GPUNETIO_ETH_RX_ATTR_ALL>(
            rxq, 32, 1000000, &first, &count, attr);
        if (err != DOCA_SUCCESS) break;
        if (gn_thread() == 0 && count > 0) {
            doca_gpu_dev_semaphore_set_packet_info(sem, item, DOCA_GPU_SEMAPHORE_STATUS_READY, count, first);
            item = (item + 1) % items;
        }
        gn_block_sync();
    }
}

KERNEL void answer(doca_gpu_eth_rxq *rxq, doca_gpu_eth_txq *txq, doca_gpu_semaphore_gpu *sem, uint32_t items, uint32_t key) {
    doca_gpu_semaphore_status status = DOCA_GPU_SEMAPHORE_STATUS_FREE;
    doca_gpu_dev_eth_ticket_t ticket;
    for (uint32_t item = 0;; item = (item + 1) % items) {
        uint64_t first = 0;
        uint32_t count = 0, done;
        while (doca_gpu_dev_semaphore_get_packet_info_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_READY, &count, &first) ==
               DOCA_ERROR_NOT_FOUND) {
            doca_gpu_dev_semaphore_get_status(sem, item, &status);
            if (status == DOCA_GPU_SEMAPHORE_STATUS_EXIT) return;
        }
        doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_HOLD);
        for (uint32_t k = 0; k < count; k++)
            doca_gpu_dev_eth_txq_send(txq, doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, first + k), key, 60,
                                      DOCA_GPUNETIO_ETH_SEND_FLAG_NOTIFY, &ticket);
        doca_gpu_dev_eth_txq_poll_completion<DOCA_GPUNETIO_ETH_CQ_POLL_LAST>(txq, count, DOCA_GPUNETIO_ETH_WAIT_FLAG_B, &done);
        doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_FREE);
    }
}

KERNEL void send_low(doca_gpu_eth_txq *txq, uint64_t address, uint32_t key, int shared) {
    uint64_t index = shared ? doca_gpu_dev_eth_txq_reserve_wq_slots(txq, 2) : 0;
    for (uint32_t k = 0; k < 2; k++)
        doca_gpu_dev_eth_txq_wqe_prepare_send(txq, doca_gpu_dev_eth_txq_get_wqe_ptr(txq, index + k), (uint16_t)(index + k), address,
                                              key, 64 + k, DOCA_GPUNETIO_ETH_SEND_FLAG_NONE);
    if (shared) doca_gpu_dev_eth_txq_mark_wqes_ready(txq, index, index + 1);
    doca_gpu_dev_eth_txq_submit(txq, index + 2);
}

KERNEL void one_sided(doca_gpu_dev_verbs_qp *qp, uint64_t local, uint32_t key, uint32_t peer) {
    doca_gpu_dev_verbs_ticket_t ticket;
    doca_gpu_dev_verbs_addr from = {local, key}, to = {128, peer}, flag = {0, peer}, none = {0, 0};
    doca_gpu_dev_verbs_put(qp, to, from, 64, &ticket);
    doca_gpu_dev_verbs_wait(qp, ticket);
    doca_gpu_dev_verbs_put_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD>(qp, to, from, 64, flag, from, 1, &ticket);
    doca_gpu_dev_verbs_signal<DOCA_GPUNETIO_VERBS_SIGNAL_OP_ADD>(qp, flag, none, 1, &ticket);
    doca_gpu_dev_verbs_p<uint32_t>(qp, to, 42, &ticket);
    doca_gpu_dev_verbs_get(qp, to, from, 64, none, &ticket);
    doca_gpu_dev_verbs_put(qp, to, from, 0);
    doca_gpu_dev_verbs_wait(qp);
}
