// ring.h: a bounded lock-free queue of pointers with many producers and many consumers.
//
// Each slot has a sequence number that determines whether it can be filled or emptied (the bounded queue of
// D. Vyukov, 1024cores.net): a producer claims a slot by advancing the tail, fills it and publishes its
// sequence number; a consumer does the same at the head. Pushing to a full ring and popping an empty one
// fail.
#ifndef DQI_RING_H
#define DQI_RING_H

#include "core/atomics.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

typedef struct dqi_slot {
    _Atomic uint32_t seq;
    uint32_t aux; // passed along with the pointer
    void *ptr;
} dqi_slot;

typedef struct dqi_ring {
    dqi_slot *slots;
    uint32_t mask;
    uint8_t apart1[64]; // keeps producers, consumers and neighbours on separate cache lines
    _Atomic uint32_t tail;
    uint8_t apart2[64];
    _Atomic uint32_t head;
    uint8_t apart3[64];
} dqi_ring;

// Allocates room for at least n entries, rounded up to a power of two. False: no memory.
static inline bool dqi_ring_init(dqi_ring *r, uint32_t n) {
    uint32_t size = 2;
    while (size < n)
        size *= 2;
    r->slots = calloc(size, sizeof *r->slots);
    r->mask = size - 1;
    for (uint32_t i = 0; r->slots && i < size; i++)
        atomic_init(&r->slots[i].seq, i);
    atomic_init(&r->tail, 0);
    atomic_init(&r->head, 0);
    return r->slots != NULL;
}

// Frees the slots, not the entries. Valid on a zeroed ring.
static inline void dqi_ring_free(dqi_ring *r) {
    free(r->slots);
    r->slots = NULL;
}

static inline bool dqi_ring_push(dqi_ring *r, void *ptr, uint32_t aux) {
    uint32_t pos = atomic_load_explicit(&r->tail, memory_order_relaxed);
    for (;;) {
        dqi_slot *s = &r->slots[pos & r->mask];
        int32_t lag = (int32_t)(atomic_load_explicit(&s->seq, memory_order_acquire) - pos);
        if (lag < 0) return false;
        if (lag > 0) {
            pos = atomic_load_explicit(&r->tail, memory_order_relaxed);
            continue;
        }
        if (atomic_compare_exchange_weak_explicit(&r->tail, &pos, pos + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            s->ptr = ptr;
            s->aux = aux;
            atomic_store_explicit(&s->seq, pos + 1, memory_order_release);
            return true;
        }
    }
}

static inline bool dqi_ring_pop(dqi_ring *r, void **ptr, uint32_t *aux) {
    uint32_t pos = atomic_load_explicit(&r->head, memory_order_relaxed);
    for (;;) {
        dqi_slot *s = &r->slots[pos & r->mask];
        int32_t lag = (int32_t)(atomic_load_explicit(&s->seq, memory_order_acquire) - (pos + 1));
        if (lag < 0) return false;
        if (lag > 0) {
            pos = atomic_load_explicit(&r->head, memory_order_relaxed);
            continue;
        }
        if (atomic_compare_exchange_weak_explicit(&r->head, &pos, pos + 1, memory_order_relaxed,
                                                  memory_order_relaxed)) {
            *ptr = s->ptr;
            if (aux) *aux = s->aux;
            atomic_store_explicit(&s->seq, pos + r->mask + 1, memory_order_release);
            return true;
        }
    }
}

// Returns the k-th entry from the head without removing it, or NULL. No consumer may run concurrently.
static inline void *dqi_ring_peek(const dqi_ring *r, uint32_t k) {
    uint32_t pos = atomic_load_explicit(&r->head, memory_order_acquire) + k;
    const dqi_slot *s = &r->slots[pos & r->mask];
    return atomic_load_explicit(&s->seq, memory_order_acquire) == pos + 1 ? s->ptr : NULL;
}

static inline uint32_t dqi_ring_level(const dqi_ring *r) {
    return atomic_load_explicit(&r->tail, memory_order_acquire) -
           atomic_load_explicit(&r->head, memory_order_acquire);
}

#endif
