// k_sum.h: CRC-32C of pages, for the manifest of a writer that writes from a GPU to disk without the host.
//
// A warp processes a page: each lane 128 bytes of it, bit by bit, then lanes combine their remainders
// pairwise. The remainder of A followed by B is A's times x^(8 * bytes of B), modulo the polynomial
// 0x82f63b78 (reflected: bit 31 is x^0), plus B's.
#ifndef K_SUM_H
#define K_SUM_H

#include "kernels/k_lanes.h"
#include "kernels/k_move.h"

#define K_SUM_POLYNOMIAL 0x82f63b78u

// Returns the product of two remainders.
K_FN uint32_t k_sum_times(uint32_t a, uint32_t b) {
    uint32_t p = 0;
    for (uint32_t i = 0; i < 32; i++) {
        p ^= b & (uint32_t) - (int32_t)(a >> 31);
        a <<= 1;
        b = b >> 1 ^ (K_SUM_POLYNOMIAL & (uint32_t) - (int32_t)(b & 1));
    }
    return p;
}

// Returns x^(8 * 128 * 2^step): for one lane's bytes, two lanes', ... 32 lanes', a page.
K_FN uint32_t k_sum_power(uint32_t step) {
    return step == 0   ? 0xb8fdb1e7u
           : step == 1 ? 0x88e56f72u
           : step == 2 ? 0x74c360a4u
           : step == 3 ? 0xe4172b16u
           : step == 4 ? 0x0d65762au
                       : 0x35d73a62u;
}

// Returns the checksum of data ending in a page, from crc of the data before it and the page's checksum.
K_FN uint32_t k_sum_join(uint32_t crc, uint32_t page) { return k_sum_times(crc, k_sum_power(5)) ^ page; }

// Continues the remainder over the next 128 bytes.
K_FN uint32_t k_sum_bytes(uint32_t crc, uint64_t at) {
    for (uint32_t i = 0; i < DQK_PAGE / 32; i += 16) {
        k_word v = k_load(at + i, 16);
        K_UNROLL
        for (uint32_t w = 0; w < 4; w++) {
            crc ^= v.w[w];
            for (uint32_t b = 0; b < 32; b++)
                crc = crc >> 1 ^ (K_SUM_POLYNOMIAL & (uint32_t) - (int32_t)(crc & 1));
        }
    }
    return crc;
}

// Writes a page's checksum, equal to that of the host's dqi_crc32c; called by a whole warp.
K_FN void k_sum_page(uint64_t src, uint64_t dst) {
    uint32_t crc[K_LANES], joined[K_LANES];
    K_EACH(k) {
        uint32_t lane = k_lane(k);
        crc[k] = k_sum_bytes(lane == 0 ? ~0u : 0, src + lane * (DQK_PAGE / 32));
    }
    for (uint32_t step = 0; step < 5; step++) {
        K_EACH(k)
        joined[k] =
            k_sum_times(crc[k], k_sum_power(step)) ^ k_shuffle_one(crc, k, (k_lane(k) + (1u << step)) % 32);
        K_EACH(k) crc[k] = joined[k];
    }
    K_EACH(k) {
        k_word v = {{~crc[k], 0, 0, 0}};
        if (k_lane(k) == 0) k_store(dst, v, 4);
    }
}

// Executes the share of warp `warp` of `warps` of a list whose moves are all DQK_SUM.
K_FN void k_sums(const dqk_list *l, uint32_t warp, uint32_t warps) {
    for (uint32_t i = warp; i < l->n; i += warps)
        k_sum_page((K_AT(const dqk_move, l->moves) + i)->src, (K_AT(const dqk_move, l->moves) + i)->dst);
}

#endif
