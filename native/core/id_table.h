// id_table.h: assigns small ids to keys (numbers, socket addresses) in order of appearance, as indices of
// per-key counters. Bounded: all keys after the first DQI_KEYS share one id. Nothing is allocated and keys
// are never removed.
#ifndef DQI_ID_TABLE_H
#define DQI_ID_TABLE_H

#include "core/atomics.h"
#include "core/dq_ledger.h"

#define DQI_KEYS      DQ_SOURCES
#define DQI_KEY_SLOTS (2 * DQI_KEYS) // a power of two

// Ids: no key, keys beyond the capacity, and the first regular id.
enum { DQI_KEY_NONE, DQI_KEY_OTHER, DQI_KEY_FIRST, DQI_KEY_IDS = DQI_KEY_FIRST + DQI_KEYS };

// A number n is stored as {n, 0, 0}.
typedef struct dqi_key {
    uint64_t a, b, c;
} dqi_key;

typedef struct dqi_id_table {
    dqi_spin lock; // protects additions
    _Atomic uint32_t used;
    _Atomic uint16_t ids[DQI_KEY_SLOTS]; // open-addressing hash; 0: free
    dqi_key keys[DQI_KEYS];              // key of id DQI_KEY_FIRST + k, valid once the id is visible
} dqi_id_table;

// Returns the key's id, which it adds if it is new. Any thread.
uint32_t dqi_key_id(dqi_id_table *t, dqi_key key);
// Returns the end of the assigned ids (exclusive). Any thread.
static inline uint32_t dqi_key_end(const dqi_id_table *t) { return DQI_KEY_FIRST + dqi_load_acq32(&t->used); }
static inline bool dqi_key_same(dqi_key x, dqi_key y) { return x.a == y.a && x.b == y.b && x.c == y.c; }

// Stores the peer of packet i, of any address family, as a key; false: no peer is recorded.
bool dqi_key_of_peer(const dq_burst *b, uint32_t i, dqi_key *out);
// Formats a peer key as "host:port".
void dqi_key_peer_text(dqi_key key, char *buf, size_t len);

#endif
