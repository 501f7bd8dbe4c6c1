// k_sum.h: CRC-32C of pages, which a writer's manifest has of what goes from a GPU to a disk past the host.
//
// A warp takes a page: each lane 128 bytes of it, bit by bit, then lanes join their remainders pairwise. What
// A has in front of B is worth A * x^(8 * bytes of B), modulo the polynomial 0x82f63b78 (reflected: bit 31 is
// x^0), plus B's.
#ifndef K_SUM_H
#define K_SUM_H

#include "kernels/k_lanes.h"
#include "kernels/k_move.h"

#define K_SUM_POLYNOMIAL 0x82f63b78u

// The product of two remainders.
K_FN uint32_t k_sum_times(uint32_t a, uint32_t b) {
    uint32_t p = 0;
    for (uint32_t i = 0; i < 32; i++) {
        p ^= b & (uint32_t) - (int32_t)(a >> 31);
        a <<= 1;
        b = b >> 1 ^ (K_SUM_POLYNOMIAL & (uint32_t) - (int32_t)(b & 1));
    }
    return p;
}

// x^(8 * 128 * 2^step): of a lane, of two, … of 32, a page.
K_FN uint32_t k_sum_power(uint32_t step) {
    return step == 0   ? 0xb8fdb1e7u
           : step == 1 ? 0x88e56f72u
           : step == 2 ? 0x74c360a4u
           : step == 3 ? 0xe4172b16u
           : step == 4 ? 0x0d65762au
                       : 0x35d73a62u;
}

// The checksum of bytes of which crc is that of all before the last page, and page that of it.
K_FN uint32_t k_sum_join(uint32_t crc, uint32_t page) { return k_sum_times(crc, k_sum_power(5)) ^ page; }

// The remainder of 128 bytes behind what left this one.
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

// A page's checksum, as the host's dqi_crc32c has it, by the warp.
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

// What warp `warp` of `warps` does of a list whose moves are all DQK_SUM.
K_FN void k_sums(const dqk_list *l, uint32_t warp, uint32_t warps) {
    for (uint32_t i = warp; i < l->n; i += warps)
        k_sum_page((K_AT(const dqk_move, l->moves) + i)->src, (K_AT(const dqk_move, l->moves) + i)->dst);
}

#endif
