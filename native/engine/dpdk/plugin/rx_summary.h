// rx_summary.h: summary of received frames, computed without branches.
#ifndef DAQIRI_DPDK_RX_SUMMARY_H
#define DAQIRI_DPDK_RX_SUMMARY_H

#include "dpdk.h"

// Summary of a received batch.
typedef struct look {
    bool plain; // all frames are single-segment, in buffers of the pool, with their VLAN tags in place
    uint32_t shortest, longest;
    uint64_t bytes;
} look;

#ifdef __SSE4_1__
#include <smmintrin.h>

// Bytes [16, 32) of an mbuf hold nb_segs in the third 16-bit word and the flags in the upper half; bytes [32,
// 48) hold the frame's length twice, in the second 32-bit and the fifth 16-bit word.
_Static_assert(offsetof(struct rte_mbuf, nb_segs) == 16 + 4 &&
                   offsetof(struct rte_mbuf, ol_flags) == 16 + 8 &&
                   offsetof(struct rte_mbuf, pkt_len) == 32 + 4 &&
                   offsetof(struct rte_mbuf, data_len) == 32 + 8,
               "the layout of DPDK's headers is another");

static inline __m128i look_words(const struct rte_mbuf *m, size_t at) {
    return _mm_load_si128((const __m128i *)(const void *)((const uint8_t *)m + at));
}

// Summarizes n frames, at most 65536. Uses SSE4.1, which DPDK requires on x86.
static inline look look_at(const struct rte_mempool *mp, struct rte_mbuf *const *frames, uint32_t n) {
    const __m128i one = _mm_set_epi64x(0, (int64_t)1 << 32),
                  mask = _mm_set_epi64x(RTE_MBUF_F_RX_VLAN_STRIPPED, (int64_t)0xffff << 32);
    __m128i differ = _mm_setzero_si128(), longest = differ, bytes = differ, shortest = _mm_set1_epi16(-1);
    uintptr_t other = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct rte_mbuf *m = frames[i];
        const __m128i lengths = look_words(m, 32);
        other |= (uintptr_t)m->pool ^ (uintptr_t)mp;
        differ = _mm_or_si128(differ, _mm_xor_si128(look_words(m, 16), one));
        bytes = _mm_add_epi32(bytes, lengths);
        shortest = _mm_min_epu16(shortest, lengths);
        longest = _mm_max_epu16(longest, lengths);
    }
    return (look){
        .plain = other == 0 && _mm_testz_si128(differ, mask),
        .shortest = (uint32_t)_mm_extract_epi16(shortest, 4),
        .longest = (uint32_t)_mm_extract_epi16(longest, 4),
        .bytes = (uint32_t)_mm_extract_epi32(bytes, 1),
    };
}

#else

static inline look look_at(const struct rte_mempool *mp, struct rte_mbuf *const *frames, uint32_t n) {
    uint64_t differ = 0, shortest = UINT16_MAX, longest = 0, bytes = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct rte_mbuf *m = frames[i];
        uint64_t len = m->data_len;
        differ |= ((uintptr_t)m->pool ^ (uintptr_t)mp) | (m->nb_segs ^ 1u) |
                  (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED);
        bytes += len;
        shortest = len < shortest ? len : shortest;
        longest = len > longest ? len : longest;
    }
    return (look){differ == 0, (uint32_t)shortest, (uint32_t)longest, bytes};
}

#endif

#endif
