// rss.h: receive-side scaling in software: the Toeplitz hash of a packet's addresses and ports, and the queue
// that it selects. Matches NIC hardware with the same key.
#ifndef DQI_RSS_H
#define DQI_RSS_H

#include "packet/packet.h"

#define DQI_RSS_KEY_LEN   40
#define DQI_RSS_INPUT_MAX 36 // two IPv6 addresses and two ports, bytes
#define DQI_RSS_ENTRIES   128

// The key of Microsoft's RSS specification, the default of most drivers.
extern const uint8_t dqi_rss_key[DQI_RSS_KEY_LEN];

// The hash is linear over XOR, so it is the XOR of one precomputed word per input byte.
typedef struct dqi_rss {
    uint32_t word[DQI_RSS_INPUT_MAX][256];
} dqi_rss;

// Fills the table for a key; 36 KiB. The caller owns both. Any thread.
void dqi_rss_init(dqi_rss *r, const uint8_t key[DQI_RSS_KEY_LEN]);

// Returns the table of dqi_rss_key, built by the first call. Static, read-only; any thread.
const dqi_rss *dqi_rss_default(void);

// Returns the Toeplitz hash of n <= DQI_RSS_INPUT_MAX bytes in wire order: source and destination address,
// source and destination port. Never blocks.
static inline uint32_t dqi_rss_bytes(const dqi_rss *r, const uint8_t *in, uint32_t n) {
    uint32_t hash = 0;
    for (uint32_t i = 0; i < n; i++)
        hash ^= r->word[i][in[i]];
    return hash;
}

// Computes the same bit by bit from the definition: builds the table and serves as its test reference.
uint32_t dqi_rss_slow(const uint8_t key[DQI_RSS_KEY_LEN], const uint8_t *in, uint32_t n);

// Hashes a parsed frame: addresses and ports for UDP and TCP; addresses only for other IP packets and for
// fragments, so that all fragments of a datagram select one queue; id and type for eCPRI over Ethernet; 0 for
// other frames that are not IP. Never blocks.
uint32_t dqi_rss_hash(const dqi_rss *r, const uint8_t *p, const dqi_pkt *pkt);

// Returns the index of the queue among n > 0: an indirection table of 128 entries that lists the queues
// cyclically, indexed by the low bits.
static inline uint32_t dqi_rss_queue(uint32_t hash, uint32_t n) { return hash % DQI_RSS_ENTRIES % n; }

#endif
