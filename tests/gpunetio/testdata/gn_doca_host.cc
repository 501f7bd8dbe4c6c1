// gn_doca_host.cc: kernels in the shape of DOCA's samples (gn_doca.cu), by one thread of the host; another one is
// the proxy. For TestGnDoca.
#include <atomic>
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
    gn_sem_row *sem;
    Port(uint64_t from) {
        gn_ring_conf ring = {4, (1u << GN_OPS) - 1, 0, from, false};
        regions[1].base = (uint64_t)bytes;
        gn_context_conf conf = {&ring, &ring, &ring, 1, 1, 1, regions, 3, 1000000000000, 1};
        block = std::aligned_alloc(4096, gn_context_bytes(&conf));
        gn_context_make(block, &conf);
        head = (gn_context *)block;
        tx = (gn_tx_row *)gn_at(block, head->tx);
        rx = (gn_rx_row *)gn_at(block, head->rx);
        sem = (gn_sem_row *)gn_at(block, head->sems);
    }
    ~Port() { std::free(block); }

    // The descriptors of n slots, as a proxy takes and completes them.
    std::vector<gn_desc> proxy(int n) {
        std::vector<gn_desc> all;
        gn_tx_state *state = (gn_tx_state *)gn_at(block, tx->source);
        gn_given given = {regions, 3, tx->ops, 9000};
        for (uint64_t t = tx->first; t < tx->first + n; t++) {
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
    send_low((doca_gpu_eth_txq *)p.tx, (gn_u64)bytes + 256, 1, shared);
    std::vector<gn_desc> d = p.proxy(2);
    for (int k = 0; k < 2; k++) {
        EQ(d[k].op, GN_OP_SEND);
        EQ(d[k].from, gn_place(1, 256));
        EQ(d[k].bytes, 64 + k);
    }
    gn_tx q = doca_txq((doca_gpu_eth_txq *)p.tx);
    EQ(gn_next(&q), from + 2);
}

static void verbs() {
    Port p(first);
    std::vector<gn_desc> d;
    std::thread t([&] { d = p.proxy(5); });
    one_sided((doca_gpu_dev_verbs_qp *)p.tx, (gn_u64)bytes + 8, 1, 2);
    t.join();
    static const unsigned ops[] = {GN_OP_PUT, GN_OP_PUT, GN_OP_ADD, GN_OP_PUT, GN_OP_GET};
    static const unsigned flags[] = {0, GN_SIGNAL, 0, GN_INLINE, 0};
    for (int k = 0; k < 5; k++) {
        EQ(d[k].op, ops[k]);
        EQ(d[k].flags, flags[k]);
        if (k != 2) EQ(d[k].to, gn_place(2, 128));
        if (k < 2 || k == 4) EQ(d[k].from, gn_place(1, 8));
    }
    EQ(d[1].signal, gn_place(2, 0));
    EQ(d[2].operand, 1);
    EQ(d[3].data[0], 42);
    EQ(d[3].bytes, 4);
}

static void receive() {
    Port p(first);
    doca_gpu_eth_rxq *rxq = (doca_gpu_eth_rxq *)p.rx;
    const gn_u64 *marks = (const gn_u64 *)gn_at(p.block, p.rx->released);
    gn_u64 from = 0;
    gn_u32 n = 0;
    doca_gpu_dev_eth_rxq_attr attr[32];
    EQ(doca_gpu_dev_eth_rxq_recv<>(rxq, 32, 0, &from, &n, attr), DOCA_SUCCESS);
    EQ(n, 0);
    for (uint64_t t = first; t < first + 9; t++) {
        gn_u64 w[GN_RX_WORDS] = {gn_place(1, t % 8 * 64), (t - first + 60) << 32, 5000 + t, 0};
        gn_write(gn_rx_slot_of(p.block, p.rx, t)->w, GN_RX_WORDS, gn_lap(t, 2), w);
        EQ(doca_gpu_dev_eth_rxq_recv<>(rxq, 32, 1000, &from, &n, attr), DOCA_SUCCESS);
        EQ(n, 1);
        EQ(from, t);
        EQ(attr[0].bytes, t - first + 60);
        EQ(attr[0].timestamp_ns, 5000 + t);
        EQ(doca_gpu_dev_eth_rxq_get_pkt_addr(rxq, t), (gn_u64)bytes + t % 8 * 64);
        if (t >= first + 2) EQ(marks[gn_index(t - 2, 2)], t - 1); // half a ring before
        EQ(marks[gn_index(t, 2)] == t + 1, false);
    }
}

static void semaphores() {
    Port p(first);
    doca_gpu_semaphore_gpu *sem = (doca_gpu_semaphore_gpu *)p.sem;
    doca_gpu_semaphore_status status;
    const auto READY = DOCA_GPU_SEMAPHORE_STATUS_READY;
    gn_u64 from = 0;
    gn_u32 n = 0;
    for (uint64_t k = 0; k < 9; k++) {
        gn_u32 item = (first + k) % 4;
        EQ(doca_gpu_dev_semaphore_get_packet_info_status(sem, item, READY, &n, &from), DOCA_ERROR_NOT_FOUND);
        EQ(doca_gpu_dev_semaphore_set_packet_info(sem, (item + 1) % 4, READY, 1, 1), DOCA_ERROR_INVALID_VALUE);
        EQ(doca_gpu_dev_semaphore_set_packet_info(sem, item, READY, 7 + k, 100 + k), DOCA_SUCCESS);
        EQ(doca_gpu_dev_semaphore_get_packet_info_status(sem, item, READY, &n, &from), DOCA_SUCCESS);
        EQ(n, 7 + k);
        EQ(from, 100 + k);
        if (k % 2) EQ(doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_HOLD), DOCA_SUCCESS);
        EQ(doca_gpu_dev_semaphore_get_status(sem, item, &status), DOCA_SUCCESS);
        EQ(status, k % 2 ? DOCA_GPU_SEMAPHORE_STATUS_HOLD : READY);
        EQ(doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_DONE), DOCA_SUCCESS);
        EQ(doca_gpu_dev_semaphore_set_status(sem, item, DOCA_GPU_SEMAPHORE_STATUS_FREE), DOCA_SUCCESS);
        doca_gpu_dev_semaphore_get_status(sem, item, &status);
        EQ(status, DOCA_GPU_SEMAPHORE_STATUS_FREE);
    }
    doca_gpu_dev_semaphore_set_status(sem, 0, DOCA_GPU_SEMAPHORE_STATUS_EXIT);
    doca_gpu_dev_semaphore_get_status(sem, 0, &status);
    EQ(status, DOCA_GPU_SEMAPHORE_STATUS_EXIT);
    doca_gpu_dev_semaphore_set_status(sem, 0, DOCA_GPU_SEMAPHORE_STATUS_ERROR);
    doca_gpu_dev_semaphore_get_status(sem, 0, &status);
    EQ(status, DOCA_GPU_SEMAPHORE_STATUS_ERROR);
}

// Two kernels: one receives and passes on, the other answers.
static void two_kernels() {
    Port p(0);
    gn_u32 exit = 0;
    std::atomic<bool> answered{false};
    std::thread a([&] { receive_and_pass_on((doca_gpu_eth_rxq *)p.rx, (doca_gpu_semaphore_gpu *)p.sem, 4, &exit); });
    std::thread b([&] {
        answer((doca_gpu_eth_rxq *)p.rx, (doca_gpu_eth_txq *)p.tx, (doca_gpu_semaphore_gpu *)p.sem, 4, 1);
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
    doca_gpu_dev_semaphore_set_status((doca_gpu_semaphore_gpu *)p.sem, 0, DOCA_GPU_SEMAPHORE_STATUS_EXIT);
    b.join();
    EQ(answered, true);
}

int main() {
    for (uint64_t from : {(uint64_t)0, first, (uint64_t)1 << 62})
        low_level(from, 1);
    low_level(0, 0); // tickets of its own begin at 0
    verbs();
    receive();
    semaphores();
    two_kernels();
    return failures != 0;
}
