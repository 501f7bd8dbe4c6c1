// gn_rig.h: host threads play the warps and blocks of a kernel over the header that kernels include, and a
// thread plays the proxy and the wire.
#ifndef GN_RIG_H
#define GN_RIG_H

#include "dqtest.h"

#include <pthread.h>
#include <sched.h>

typedef struct rig_block {
    pthread_barrier_t block, warp[2];
    uint64_t words[64];
    unsigned long long share[3];
} rig_block;

static __thread rig_block *rig_of;
static __thread uint32_t rig_thread; // of the block
static __thread uint64_t rig_time, rig_seed;

static inline uint64_t rig_shuffle(uint64_t v, uint32_t lane) {
    uint32_t warp = rig_thread / 32;
    rig_of->words[rig_thread] = v;
    pthread_barrier_wait(&rig_of->warp[warp]);
    v = rig_of->words[warp * 32 + lane % 32];
    pthread_barrier_wait(&rig_of->warp[warp]);
    return v;
}

static inline uint32_t rig_ballot(int b) {
    uint32_t warp = rig_thread / 32, mask = 0;
    rig_of->words[rig_thread] = b != 0;
    pthread_barrier_wait(&rig_of->warp[warp]);
    for (uint32_t k = 0; k < 32; k++)
        mask |= (uint32_t)rig_of->words[warp * 32 + k] << k;
    pthread_barrier_wait(&rig_of->warp[warp]);
    return mask;
}

// A thread's time advances where it waits: limits are reached after as many tries, however fast the machine
// is.
static inline void rig_pause(void) {
    rig_time += 1000;
    sched_yield();
}

// Some time, at random.
static inline void rig_delay(void) {
    for (volatile uint32_t n = dq_below(&rig_seed, 64); n > 0; n--) {
    }
    if (dq_below(&rig_seed, 64) == 0) sched_yield();
}

#define GN_LANE()           (rig_thread % 32)
#define GN_THREAD()         rig_thread
#define GN_WARP_SYNC()      pthread_barrier_wait(&rig_of->warp[rig_thread / 32])
#define GN_BLOCK_SYNC()     pthread_barrier_wait(&rig_of->block)
#define GN_SHUFFLE(v, lane) rig_shuffle(v, lane)
#define GN_BALLOT(b)        rig_ballot(b)
#define GN_NOW()            rig_time
#define GN_PAUSE()          rig_pause()
#include "gpunetio/device/gn.h"
#include "gpunetio/device/gn_check.h"
#include "gpunetio/device/gn_context.h"

typedef struct rig_entry {
    rig_block *block;
    uint32_t thread;
    void (*kernel)(void *);
    void *arg;
} rig_entry;

typedef struct rig_launch {
    rig_block block;
    uint32_t threads;
    pthread_t t[64];
    rig_entry entry[64];
} rig_launch;

static void *rig_enter(void *arg) {
    rig_entry *e = arg;
    rig_of = e->block;
    rig_thread = e->thread;
    rig_time = 1;
    rig_seed = e->thread + 1;
    e->kernel(e->arg);
    return NULL;
}

// A block of 32 or 64 threads begins.
static inline void rig_start(rig_launch *l, uint32_t threads, void (*kernel)(void *), void *arg) {
    pthread_barrier_init(&l->block.block, NULL, threads);
    for (uint32_t w = 0; w < 2; w++)
        pthread_barrier_init(&l->block.warp[w], NULL, 32);
    l->threads = threads;
    for (uint32_t k = 0; k < threads; k++) {
        l->entry[k] = (rig_entry){&l->block, k, kernel, arg};
        DQ_EQ(pthread_create(&l->t[k], NULL, rig_enter, &l->entry[k]), 0);
    }
}

static inline void rig_end(rig_launch *l) {
    for (uint32_t k = 0; k < l->threads; k++)
        pthread_join(l->t[k], NULL);
    pthread_barrier_destroy(&l->block.block);
    for (uint32_t w = 0; w < 2; w++)
        pthread_barrier_destroy(&l->block.warp[w]);
}

// Limits that no test reaches unless it means to: 10^9 tries, or none.
#define RIG_FOREVER 1000000000000ull

// ---- a context, as the proxy has it -----------------------------------------------------------------------

typedef struct rig_context {
    void *block;
    gn_context head; // the proxy's own copies
    gn_tx_row tx[2];
    gn_rx_row rx[2];
    gn_sem_row sem[2];
} rig_context;

static inline void rig_open(rig_context *p, const gn_context_conf *conf) {
    dq_diag diag;
    memset(p, 0, sizeof *p);
    DQ_EQ(gn_context_check("kernel test", conf, &diag), DQ_OK);
    p->block = aligned_alloc(4096, gn_context_bytes(conf));
    gn_context_make(p->block, conf);
    memcpy(&p->head, p->block, sizeof p->head);
    memcpy(p->tx, gn_at(p->block, p->head.tx), conf->n_tx * sizeof *p->tx);
    memcpy(p->rx, gn_at(p->block, p->head.rx), conf->n_rx * sizeof *p->rx);
    memcpy(p->sem, gn_at(p->block, p->head.sems), conf->n_sems * sizeof *p->sem);
}

static inline gn_tx_state *rig_tx_state(rig_context *p, uint32_t k) {
    return gn_at(p->block, p->tx[k].source);
}
static inline gn_rx_state *rig_rx_state(rig_context *p, uint32_t k) {
    return gn_at(p->block, p->rx[k].source);
}

// The next slot of a ring, if it is there.
static inline bool rig_take(rig_context *p, uint32_t ring, uint64_t ticket, gn_u64 w[GN_TX_WORDS]) {
    const gn_tx_row *r = &p->tx[ring];
    return gn_read(gn_tx_slot(p->block, r, ticket)->w, GN_TX_WORDS, gn_lap(ticket, r->log2), w);
}

// Whether the receive slot of a ticket is free.
static inline bool rig_free(rig_context *p, uint32_t ring, uint64_t ticket) {
    const gn_rx_row *r = &p->rx[ring];
    uint64_t size = 1ull << r->log2;
    const gn_u64 *marks = gn_at(p->block, r->released);
    return ticket - r->first < size || gn_load(&marks[gn_index(ticket, r->log2)]) == ticket - size + 1;
}

static inline void rig_give(rig_context *p, uint32_t ring, uint64_t ticket, uint64_t place, uint32_t bytes) {
    const gn_rx_row *r = &p->rx[ring];
    gn_u64 w[GN_RX_WORDS] = {place, (uint64_t)bytes << 32 | 7, ticket & 0xffff, gn_rx_word(3, 0, 0)};
    gn_write(gn_rx_slot_of(p->block, r, ticket)->w, GN_RX_WORDS, gn_lap(ticket, r->log2), w);
    gn_store(&rig_rx_state(p, ring)->filled, ticket + 1);
}

#endif
