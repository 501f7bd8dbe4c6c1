// atomics.h: the atomic counter and lock types of the engine.
//
// A count has one writer and any number of readers: a relaxed load and store, no locked instruction on the
// packet path. A gauge is incremented on one thread and decremented on another.
#ifndef DQI_ATOMICS_H
#define DQI_ATOMICS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef _Atomic uint64_t dqi_count;
typedef _Atomic int64_t dqi_gauge;

static inline void dqi_add(dqi_count *c, uint64_t n) {
    atomic_store_explicit(c, atomic_load_explicit(c, memory_order_relaxed) + n, memory_order_relaxed);
}
static inline uint64_t dqi_get(const dqi_count *c) { return atomic_load_explicit(c, memory_order_relaxed); }

static inline void dqi_gauge_add(dqi_gauge *g, int64_t n) {
    atomic_fetch_add_explicit(g, n, memory_order_relaxed);
}
static inline int64_t dqi_gauge_get(const dqi_gauge *g) {
    return atomic_load_explicit(g, memory_order_relaxed);
}

static inline uint32_t dqi_load_acq32(const _Atomic uint32_t *v) {
    return atomic_load_explicit(v, memory_order_acquire);
}

// A spinlock for critical sections of a few instructions (a pool's stack of ids).
typedef struct dqi_spin {
    _Atomic uint32_t taken;
} dqi_spin;

static inline void dqi_pause(void) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}
void dqi_yield(void);
static inline void dqi_lock(dqi_spin *l) {
    uint32_t tries = 0;
    while (atomic_exchange_explicit(&l->taken, 1, memory_order_acquire) != 0) {
        while (atomic_load_explicit(&l->taken, memory_order_relaxed) != 0) {
            if (++tries % 64 == 0)
                dqi_yield(); // the holder may have been preempted
            else
                dqi_pause();
        }
    }
}
// Tries to take the lock; false: it is taken.
static inline bool dqi_try_lock(dqi_spin *l) {
    return atomic_exchange_explicit(&l->taken, 1, memory_order_acquire) == 0;
}
static inline void dqi_unlock(dqi_spin *l) { atomic_store_explicit(&l->taken, 0, memory_order_release); }

#endif
