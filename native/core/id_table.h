// id_table.h: gives the keys that are seen (numbers, socket addresses) small ids in the order in which they
// come: for counters of each of them. Bounded: the keys after the first DQI_KEYS share one id. Nothing is
// allocated and no key is given back.
#ifndef DQI_ID_TABLE_H
#define DQI_ID_TABLE_H

#include "core/atomics.h"
#include "core/dq_ledger.h"

#define DQI_KEYS      DQ_SOURCES
#define DQI_KEY_SLOTS (2 * DQI_KEYS) // a power of two

// Ids: of no key, of the keys that found no room, and the first of a key.
enum { DQI_KEY_NONE, DQI_KEY_OTHER, DQI_KEY_FIRST, DQI_KEY_IDS = DQI_KEY_FIRST + DQI_KEYS };

// A number is {number, 0, 0}.
typedef struct dqi_key {
    uint64_t a, b, c;
} dqi_key;

typedef struct dqi_id_table {
    dqi_spin lock; // of additions
    _Atomic uint32_t used;
    _Atomic uint16_t ids[DQI_KEY_SLOTS]; // an open hash; 0: free
    dqi_key keys[DQI_KEYS];              // of id DQI_KEY_FIRST + k, from when the id can be read on
} dqi_id_table;

// The key's id, a new one where there was none. Any thread.
uint32_t dqi_key_id(dqi_id_table *t, dqi_key key);
// Ids below this have been given. Any thread.
static inline uint32_t dqi_key_end(const dqi_id_table *t) { return DQI_KEY_FIRST + dqi_load_acq32(&t->used); }
static inline bool dqi_key_same(dqi_key x, dqi_key y) { return x.a == y.a && x.b == y.b && x.c == y.c; }

// The peer of packet i as a key, whatever its family; false: it has none.
bool dqi_key_of_peer(const dq_burst *b, uint32_t i, dqi_key *out);
// Writes such a key as "host:port".
void dqi_key_peer_text(dqi_key key, char *buf, size_t len);

#endif
