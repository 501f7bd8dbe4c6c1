// rss.c: the Toeplitz hash: key, table, and its input bytes.
#include "packet/rss.h"
#include "packet/dq_rules.h"

#include <pthread.h>

const uint8_t dqi_rss_key[DQI_RSS_KEY_LEN] = {
    0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3,
    0x8f, 0xb0, 0xd0, 0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3,
    0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42, 0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
};

// Returns the 32 bits of the key that start at a bit offset; bits past its end are 0.
static uint32_t key_window(const uint8_t *key, uint32_t bit) {
    uint64_t w = 0;
    for (uint32_t i = 0; i < 5; i++)
        w = w << 8 | (bit / 8 + i < DQI_RSS_KEY_LEN ? key[bit / 8 + i] : 0);
    return (uint32_t)(w >> (8 - bit % 8));
}

uint32_t dqi_rss_slow(const uint8_t key[DQI_RSS_KEY_LEN], const uint8_t *in, uint32_t n) {
    uint32_t hash = 0;
    for (uint32_t bit = 0; bit < n * 8; bit++)
        if (in[bit / 8] >> (7 - bit % 8) & 1) hash ^= key_window(key, bit);
    return hash;
}

void dqi_rss_init(dqi_rss *r, const uint8_t key[DQI_RSS_KEY_LEN]) {
    uint8_t in[DQI_RSS_INPUT_MAX] = {0};
    for (uint32_t i = 0; i < DQI_RSS_INPUT_MAX; i++) {
        for (uint32_t v = 0; v < 256; v++) {
            in[i] = (uint8_t)v;
            r->word[i][v] = dqi_rss_slow(key, in, i + 1);
        }
        in[i] = 0;
    }
}

static dqi_rss default_table;
static void make_default(void) { dqi_rss_init(&default_table, dqi_rss_key); }

const dqi_rss *dqi_rss_default(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_default);
    return &default_table;
}

// Hashes the stream of an eCPRI message over Ethernet: its id and type.
static uint32_t ecpri_hash(const dqi_rss *r, const uint8_t *p, const dqi_pkt *pkt) {
    if (pkt->ethertype != DQI_TYPE_ECPRI || pkt->payload == DQI_NONE || pkt->payload_len < 6) return 0;
    const uint8_t *e = p + pkt->payload, in[] = {e[4], e[5], e[1]};
    return dqi_rss_bytes(r, in, sizeof in);
}

uint32_t dqi_rss_hash(const dqi_rss *r, const uint8_t *p, const dqi_pkt *pkt) {
    uint8_t in[DQI_RSS_INPUT_MAX];
    uint32_t n;
    if (pkt->has & DQ_HAS_IPV4)
        memcpy(in, p + pkt->l3 + 12, n = 8);
    else if (pkt->has & DQ_HAS_IPV6)
        memcpy(in, p + pkt->l3 + 8, n = 32);
    else
        return ecpri_hash(r, p, pkt);
    if (pkt->has & (DQ_HAS_UDP | DQ_HAS_TCP) && !(pkt->has & DQ_HAS_FRAGMENT)) {
        memcpy(in + n, p + pkt->l4, 4);
        n += 4;
    }
    return dqi_rss_bytes(r, in, n);
}
