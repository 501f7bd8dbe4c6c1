// gn_doca_host.cc: kernels in the shape of DOCA's samples (gn_doca.cu), by one thread of the host; another one is
// the proxy. For TestGnDoca.
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <sched.h>
#include <thread>
#include <vector>

static thread_local uint64_t now = 1;
#define GN_LANES   1
#define GN_NOW()   now
#define GN_PAUSE() (now += 1000, sched_yield())
#define KERNEL     static
#define SHARED
#include "gn_doca.cu"
extern "C" {
#include "gpunetio/device/gn_check.h"
#include "gpunetio/device/gn_context.h"
}

static int failures;
#define EQ(got, want)                                                                                        \
    do {                                                                                                     \
        unsigned long long g = (unsigned long long)(got), w = (unsigned long long)(want);                    \
        if (g != w && ++failures) std::printf("line %d: %s is %llu, want %llu\n", __LINE__, #got, g, w);     \
    } while (0)

static uint8_t bytes[4096];
static gn_region regions[3] = {{0, 0, 0, GN_READ, 0}, {0, sizeof bytes, 0, GN_READ | GN_WRITE, 0},
                               {0, 4096, 0, GN_REMOTE | GN_READ | GN_WRITE | GN_ADD, 0}};
static const uint64_t first = (1ull << 32) - 3;

struct Port {
    void *block;
    gn_context *head;
    gn_tx_row *tx;
    gn_rx_row *rx;
    doca_gpu_eth_txq *txq;
    doca_gpu_dev_verbs_qp *qp;
    doca_gpu_eth_rxq *rxq;
    uint64_t next;
    Port(uint64_t from) : next(from) {
        gn_ring_conf ring = {4, (1u << GN_OPS) - 1, 0, from, false, false};
        regions[1].base = (uint64_t)bytes;
        gn_object_conf objects[2] = {{GN_OBJECT_TX, 1, 1, 0, 0, 0}, {GN_OBJECT_RX, 0, 1, 0, 0, 0}};
        gn_context_conf conf = {&ring, &ring, &ring, 1, 1, 1, regions, 3, objects, 2, 1000000000000, false, 0, 1};
        block = std::aligned_alloc(4096, gn_context_bytes(&conf));
        gn_context_make(block, &conf);
        head = (gn_context *)block;
        tx = (gn_tx_row *)gn_at(block, head->tx);
        rx = (gn_rx_row *)gn_at(block, head->rx);
        txq = (doca_gpu_eth_txq *)gn_at(block, head->objects);
        qp = (doca_gpu_dev_verbs_qp *)txq;
        rxq = (doca_gpu_eth_rxq *)(txq + 1);
    }
    ~Port() { std::free(block); }

    // The descriptors of n slots, as a proxy takes and completes them.
    std::vector<gn_desc> proxy(int n) {
        std::vector<gn_desc> all;
        gn_tx_state *state = (gn_tx_state *)gn_at(block, tx->source);
        gn_given given = {regions, 3, tx->ops, 9000};
        for (uint64_t end = next + n; next < end; next++) {
            uint64_t t = next;
            gn_u64 w[GN_TX_WORDS];
            gn_desc d;
            while (!gn_read(gn_tx_slot(block, tx, t)->w, GN_TX_WORDS, gn_lap(t, tx->log2), w))
                sched_yield();
            int fault = gn_check(w, t, &given, &d);
            if (fault) std::printf("ticket %llu: %s\n", (unsigned long long)t, gn_fault_name(fault));
            failures += fault != GN_FAULT_NONE;
            all.push_back(d);
            gn_store(&state->accepted, t + 1);
            gn_store(&state->completed, t + 1);
        }
        return all;
    }
};

static void low_level(uint64_t from, int shared) {
    Port p(from);
    send_low(p.txq, (uint64_t)bytes + 256, 1, shared);
    std::vector<gn_desc> d = p.proxy(2);
    for (int k = 0; k < 2; k++) {
        EQ(d[k].op, GN_OP_SEND);
        EQ(d[k].from, gn_place(1, 256));
        EQ(d[k].bytes, 64 + k);
    }
    doca_tx t = doca_open_tx(p.txq);
    EQ(gn_next(&t.q), from + 2);
    EQ(p.txq->sq_rsvd_index, 2);
    EQ(p.txq->wqe_pi, 2);
}

static void verbs() {
    Port p(first);
    std::vector<gn_desc> d;
    std::thread t([&] { d = p.proxy(7); });
    one_sided(p.qp, (uint64_t)bytes + 8, 1, doca_swap32(2)); // a key in the other byte order
    t.join();
    static const unsigned ops[] = {GN_OP_PUT, GN_OP_PUT, GN_OP_ADD, GN_OP_ADD, GN_OP_PUT, GN_OP_GET, GN_OP_NOP};
    static const unsigned flags[] = {0, 0, GN_RESULT, 0, GN_INLINE, 0, 0};
    for (int k = 0; k < 7; k++) {
        EQ(d[k].op, ops[k]);
        EQ(d[k].flags, flags[k]);
        if (ops[k] == GN_OP_PUT || ops[k] == GN_OP_GET) EQ(d[k].to, gn_place(2, 128));
        if (k < 2 || k == 5) EQ(d[k].from, gn_place(1, 8));
    }
    EQ(d[2].signal, gn_place(2, 0));
    EQ(d[2].result, gn_place(1, 8));
    EQ(d[3].operand, 1);
    EQ(d[4].data[0], 42);
    EQ(d[4].bytes, 4);
    EQ(p.qp->sq_rsvd_index, 7);
}

// From the first failed index on, completions are in error; before it they are not.
static void failures_of_indices() {
    Port p(first);
    gn_tx_state *state = (gn_tx_state *)gn_at(p.block, p.tx->source);
    EQ(doca_gpu_dev_verbs_poll_one_cq_at(&p.qp->cq_sq, 0), EBUSY);
    state->failed = first + 1 + 1;
    state->error = gn_error(1, first + 2);
    gn_store(&state->completed, (first + 3) | GN_SOME_FAILED);
    EQ(doca_gpu_dev_verbs_poll_one_cq_at(&p.qp->cq_sq, 0), 0);
    EQ(p.qp->cq_sq.cqe_ci, 1);
    EQ(doca_gpu_dev_verbs_poll_cq_at(&p.qp->cq_sq, 1), -EIO);
    EQ(doca_gpu_dev_verbs_poll_cq_at(&p.qp->cq_sq, 2), -EIO);
    EQ(doca_gpu_dev_verbs_poll_one_cq_at(&p.qp->cq_sq, 3), EBUSY);
}

// Completions that were asked for count, and no others.
static void notices() {
    Port p(first);
    uint32_t done;
    for (uint64_t k = 0; k < 12; k++) {
        std::thread t([&] { p.proxy(1); });
        uint64_t index;
        EQ(doca_gpu_dev_eth_txq_send(p.txq, (uint64_t)bytes, 1, 60, (doca_gpu_eth_send_flags)(k % 3 == 0), &index), DOCA_SUCCESS);
        EQ(index, k);
        t.join();
        EQ(doca_gpu_dev_eth_txq_poll_completion_at(p.txq, k / 3, DOCA_GPUNETIO_ETH_WAIT_FLAG_NB), DOCA_SUCCESS);
        EQ(doca_gpu_dev_eth_txq_poll_completion_at(p.txq, k / 3 + 1, DOCA_GPUNETIO_ETH_WAIT_FLAG_NB), DOCA_ERROR_AGAIN);
        EQ(doca_gpu_dev_eth_txq_poll_completion(p.txq, 2, DOCA_GPUNETIO_ETH_WAIT_FLAG_NB, &done), DOCA_SUCCESS);
        EQ(done, k % 3 == 0);
    }
}

static void receive() {
    Port p(first);
    const gn_u64 *marks = (const gn_u64 *)gn_at(p.block, p.rx->released);
    uint64_t from = 0;
    uint32_t n = 0, size = 0;
    doca_gpu_dev_eth_rxq_attr attr[32];
    EQ(doca_gpu_dev_eth_rxq_recv(p.rxq, 32, 1, &from, &n, attr), DOCA_SUCCESS);
    EQ(n, 0);
    for (uint64_t t = first; t < first + 9; t++) {
        gn_u64 w[GN_RX_WORDS] = {gn_place(1, t % 8 * 64), (t - first + 60) << 32, 5000 + t, 0};
        gn_write(gn_rx_slot_of(p.block, p.rx, t)->w, GN_RX_WORDS, gn_lap(t, 2), w);
        attr[0].bytes = 7;
        attr[0].timestamp_ns = 7;
        if (t % 2) // no attributes by default, and none where there is no place for them
            EQ(doca_gpu_dev_eth_rxq_recv(p.rxq, 0, 0, &from, &n, t % 4 == 1 ? attr : NULL), DOCA_SUCCESS);
        else
            EQ((doca_gpu_dev_eth_rxq_recv<DOCA_GPUNETIO_ETH_EXEC_SCOPE_THREAD, DOCA_GPUNETIO_ETH_MCST_AUTO, DOCA_GPUNETIO_ETH_NIC_HANDLER_AUTO,
                                          DOCA_GPUNETIO_ETH_RX_ATTR_ALL>(p.rxq, 1, 1000, &from, &n, attr)), DOCA_SUCCESS);
        EQ(n, 1);
        EQ(from, t);
        EQ(attr[0].bytes, t % 2 ? 7 : t - first + 60);
        EQ(attr[0].timestamp_ns, t % 2 ? 7 : 5000 + t);
        EQ(doca_gpu_dev_eth_rxq_get_pkt_addr(p.rxq, t), (gn_u64)bytes + t % 8 * 64);
        EQ(doca_gpu_dev_eth_rxq_get_pkt_bytes(p.rxq, t, &size), DOCA_SUCCESS);
        EQ(size, t - first + 60);
        if (t >= first + 2) EQ(marks[gn_index(t - 2, 2)], t - 1); // half a ring before
        EQ(marks[gn_index(t, 2)] == t + 1, false);
    }
}

// Two-sided: the thread that waits for a receive has its bytes where it was posted, in the order of packets.
static void posted_receives() {
    Port p(first);
    static uint8_t to[2][64];
    const gn_u64 *marks = (const gn_u64 *)gn_at(p.block, p.rx->released);
    const gn_rx_local *local = (const gn_rx_local *)gn_at(p.block, p.rx->local);
    doca_gpu_dev_verbs_ticket_t t[2];
    doca_gpu_dev_verbs_addr none = {0, 0};
    mlx5_cqe64 *cqe;
    for (int k = 0; k < 2; k++)
        EQ(doca_gpu_dev_verbs_recv(p.qp, doca_gpu_dev_verbs_addr{(uint64_t)to[k], 1}, 64, &t[k]), DOCA_SUCCESS);
    EQ((doca_gpu_dev_verbs_recv_wait<DOCA_GPUNETIO_VERBS_RESOURCE_SHARING_MODE_GPU, DOCA_GPUNETIO_VERBS_NIC_HANDLER_AUTO, DOCA_GPUNETIO_VERBS_MCST_DISABLED,
                                     DOCA_GPUNETIO_VERBS_BLOCKING_MODE_DISABLED>(p.qp, none, &cqe)), DOCA_SUCCESS);
    EQ(cqe, NULL);
    for (uint64_t k = 0; k < 2; k++) {
        bytes[1024 + k * 64] = 70 + k;
        gn_u64 w[GN_RX_WORDS] = {gn_place(1, 1024 + k * 64), (20 + 20 * k) << 32, 1, 0};
        gn_write(gn_rx_slot_of(p.block, p.rx, first + k)->w, GN_RX_WORDS, gn_lap(first + k, 2), w);
    }
    for (int k = 1; k >= 0; k--) {
        EQ(doca_gpu_dev_verbs_recv_wait(p.qp, none, &t[k], &cqe), DOCA_SUCCESS);
        EQ(to[k][0], 70 + k);
        EQ(doca_gpu_dev_verbs_cqe_get_bytes(cqe), 20 + 20 * k);
        EQ(doca_gpu_dev_verbs_cqe_is_inline(cqe), k == 0);
        EQ(*doca_gpu_dev_verbs_cqe_get_inl_data(cqe), 70 + k);
        EQ(marks[gn_index(first + k, 2)], first + k + 1);
    }
    EQ(local->taken, first + 2);
}

// Items are used in any order.
static void semaphores() {
    static uint64_t words[5][8] = {{64, 4}};
    doca_gpu_semaphore_gpu *sem = (doca_gpu_semaphore_gpu *)words;
    doca_gpu_semaphore_status status = DOCA_GPU_SEMAPHORE_STATUS_FREE;
    const auto READY = DOCA_GPU_SEMAPHORE_STATUS_READY, FREE = DOCA_GPU_SEMAPHORE_STATUS_FREE;
    uint64_t from = 0;
    uint32_t n = 0;
    void *info = NULL;
    for (uint32_t item : {2, 0, 3, 1}) {
        EQ(doca_gpu_dev_semaphore_get_packet_info_status(sem, item, READY, &n, &from), DOCA_ERROR_NOT_FOUND);
        EQ(doca_gpu_dev_semaphore_set_packet_info(sem, item, READY, 7 + item, 100 + item), DOCA_SUCCESS);
        EQ(doca_gpu_dev_semaphore_get_packet_info_status(sem, item, READY, &n, &from), DOCA_SUCCESS);
        EQ(n, 7 + item);
        EQ(from, 100 + item);
        EQ(words[1 + item][0], 1);
        EQ(doca_gpu_dev_semaphore_set_status_cas(sem, item, FREE, READY), DOCA_ERROR_NOT_PERMITTED);
        EQ(doca_gpu_dev_semaphore_set_status_cas(sem, item, READY, DOCA_GPU_SEMAPHORE_STATUS_HOLD), DOCA_SUCCESS);
        EQ(words[1 + item][0], 3);
        EQ(doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_DONE), DOCA_SUCCESS);
        EQ(doca_gpu_dev_semaphore_get_status(sem, item, &status), DOCA_SUCCESS);
        EQ(status, 2);
        EQ(doca_gpu_dev_semaphore_get_custom_info_addr(sem, item, &info), DOCA_SUCCESS);
        EQ(info, &words[1 + item][3]);
    }
    EQ(doca_gpu_dev_semaphore_get_status(sem, 4, &status), DOCA_ERROR_INVALID_VALUE);
}

// Two kernels: one receives and passes on, the other answers.
static void two_kernels() {
    Port p(0);
    static uint64_t words[5][8] = {{64, 4}};
    doca_gpu_semaphore_gpu *sem = (doca_gpu_semaphore_gpu *)words;
    uint32_t exit = 0;
    std::atomic<bool> answered{false};
    std::thread a([&] { receive_and_pass_on(p.rxq, sem, 4, &exit); });
    std::thread b([&] {
        answer(p.rxq, p.txq, sem, 4, 1);
        answered = true;
    });
    for (uint64_t t = 0; t < 2; t++) { // as many as stay without a proxy that looks at the marks
        gn_u64 w[GN_RX_WORDS] = {gn_place(1, t * 64), 60ull << 32, 1, 0};
        gn_write(gn_rx_slot_of(p.block, p.rx, t)->w, GN_RX_WORDS, gn_lap(t, 2), w);
    }
    std::vector<gn_desc> d = p.proxy(2);
    for (uint64_t k = 0; k < 2; k++)
        EQ(d[k].from, gn_place(1, k * 64));
    __atomic_store_n(&exit, 1, __ATOMIC_RELAXED);
    a.join();
    for (uint32_t item = 0; item < 4; item++) {
        doca_gpu_semaphore_status is;
        do
            doca_gpu_dev_semaphore_get_status(sem, item, &is);
        while (is != DOCA_GPU_SEMAPHORE_STATUS_FREE);
        doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_EXIT);
    }
    b.join();
    EQ(answered, true);
}

int main() {
    for (uint64_t from : {(uint64_t)0, first, (uint64_t)1 << 62})
        low_level(from, 1);
    for (uint64_t from : {(uint64_t)0, first}) // indices begin at 0, whatever the tickets
        low_level(from, 0);
    verbs();
    failures_of_indices();
    notices();
    receive();
    posted_receives();
    semaphores();
    two_kernels();
    return failures != 0;
}
