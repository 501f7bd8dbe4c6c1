// copy_nontemporal.h: copies with non-temporal stores, which bypass the caches, for amounts of data that
// exceed the caches before they are read: such a store saves reading each destination line first.
#ifndef DQI_COPY_NONTEMPORAL_H
#define DQI_COPY_NONTEMPORAL_H

#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>

// Copies one cache line; to is aligned to it.
static inline void dqi_copy_line_nontemporal(uint8_t *to, const uint8_t *from) {
    for (uint32_t i = 0; i < 64; i += 16)
        _mm_stream_si128((__m128i *)(void *)(to + i),
                         _mm_loadu_si128((const __m128i *)(const void *)(from + i)));
}

// Copies n bytes, whole lines past the caches; other threads may read them only after dqi_nontemporal_fence
// and a release by the same thread.
static inline void dqi_copy_nontemporal(uint8_t *to, const uint8_t *from, uint32_t n) {
    uint32_t head = (uint32_t)(-(uintptr_t)to & 63);
    if (n < head + 64) {
        memcpy(to, from, n);
        return;
    }
    if (head > 0) memcpy(to, from, head);
    uint32_t i = head;
    for (; i + 64 <= n; i += 64)
        dqi_copy_line_nontemporal(to + i, from + i);
    if (i < n) memcpy(to + i, from + i, n - i);
}

static inline void dqi_nontemporal_fence(void) { _mm_sfence(); }

#else

static inline void dqi_copy_nontemporal(uint8_t *to, const uint8_t *from, uint32_t n) { memcpy(to, from, n); }
static inline void dqi_nontemporal_fence(void) {}

#endif

#endif
