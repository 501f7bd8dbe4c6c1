// allocations.h: counts what a unit allocates, on all its threads. Sanitizers tell of each allocation;
// without one the unit has functions of its own in front of glibc's. Elsewhere nothing is counted.
#ifndef ALLOCATIONS_H
#define ALLOCATIONS_H

#include "dqtest.h"

static _Atomic uint64_t allocations;

#if DQ_SANITIZED

int __sanitizer_install_malloc_and_free_hooks(void (*made)(const volatile void *, size_t),
                                              void (*freed)(const volatile void *));

static void allocations_made(const volatile void *at, size_t bytes) {
    (void)at, (void)bytes;
    atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed);
}

static void allocations_freed(const volatile void *at) { (void)at; }

// Begins to count; false: it can't be done here.
static inline bool allocations_count(void) {
    return __sanitizer_install_malloc_and_free_hooks(allocations_made, allocations_freed) != 0;
}

#elif defined __x86_64__ && defined __GLIBC__

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t n, size_t bytes);
void *__libc_realloc(void *at, size_t bytes);
void *__libc_memalign(size_t align, size_t bytes);

static inline void allocations_one(void) { atomic_fetch_add_explicit(&allocations, 1, memory_order_relaxed); }

void *malloc(size_t bytes) {
    allocations_one();
    return __libc_malloc(bytes);
}

void *calloc(size_t n, size_t bytes) {
    allocations_one();
    return __libc_calloc(n, bytes);
}

void *realloc(void *at, size_t bytes) {
    allocations_one();
    return __libc_realloc(at, bytes);
}

void *aligned_alloc(size_t align, size_t bytes) {
    allocations_one();
    return __libc_memalign(align, bytes);
}

static inline bool allocations_count(void) { return true; }

#else

static inline bool allocations_count(void) { return false; }

#endif

#endif
