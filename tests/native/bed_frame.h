// bed_frame.h: numbered UDP frames whose every byte follows from their number and ports, so that a receiver
// can tell whether one arrived whole.
#ifndef BED_FRAME_H
#define BED_FRAME_H

#include "dqtest.h"

#include "dq.h"

#define BED_HEAD 42             // Ethernet, IPv4 and UDP headers
#define BED_MIN  (BED_HEAD + 8) // with the sequence number

// A UDP frame of len bytes (at least BED_MIN) that carries its number and bytes that follow from it.
static inline void bed_frame(uint8_t *p, uint32_t len, uint16_t sport, uint16_t dport, uint64_t seq) {
    static const uint8_t head[26] = {2, 0, 0,    0, 0, 1, 2, 0, 0, 0, 0,  2,
                                     8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17};
    static const uint8_t addr[8] = {10, 0, 0, 1, 10, 0, 0, 2};
    uint32_t ip = len - 14, udp = len - 34;
    const uint8_t l4[8] = {(uint8_t)(sport >> 8), (uint8_t)sport,      (uint8_t)(dport >> 8),
                           (uint8_t)dport,        (uint8_t)(udp >> 8), (uint8_t)udp};
    memcpy(p, head, sizeof head);
    p[16] = (uint8_t)(ip >> 8);
    p[17] = (uint8_t)ip;
    memcpy(p + 26, addr, sizeof addr);
    memcpy(p + 34, l4, sizeof l4);
    for (int k = 0; k < 8; k++)
        p[BED_HEAD + k] = (uint8_t)(seq >> (56 - 8 * k));
    uint64_t state = seq ^ (uint64_t)sport << 48 ^ (uint64_t)dport << 32, word = 0;
    for (uint32_t k = BED_MIN; k < len; k++, word >>= 8) {
        if ((k - BED_MIN) % 8 == 0) word = dq_rand(&state);
        p[k] = (uint8_t)word;
    }
}

static inline uint8_t *bed_bytes(const dq_view *v, uint32_t seg, uint32_t i) {
    return v->base + v->off[seg][i];
}

#endif
