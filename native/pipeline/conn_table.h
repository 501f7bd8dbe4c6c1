// conn_table.h: the connections of an interface: ids, slots and states, for every engine that has some.
//
// An id is the interface's index above a counter, and the counter's low bits are the slot: so looking one up
// is one load, an id comes back only after 2^26 connections, and a burst forwarded from another interface, of
// whatever engine, can't meet a stranger's id. Slots are never freed before the close, so a pointer to one
// stays good; the id tells whether it still is the same connection. Where nothing else is said the caller has
// the engine's lock of the table, which control calls and the making and ending of connections take; lookups
// take none.
#ifndef DQI_CONN_TABLE_H
#define DQI_CONN_TABLE_H

#include "core/atomics.h"
#include "core/dq_core.h"

#define DQI_CONNS        4096u // of an interface at a time; a power of two
#define DQI_CONN_ID_BITS 26    // below the interface's index

// ENDING: not read any more, while what is queued for it goes.
enum { DQI_CONN_FREE, DQI_CONN_CONNECTING, DQI_CONN_OPEN, DQI_CONN_ENDING };

// The front of what an engine knows of a connection.
typedef struct dqi_conn {
    _Atomic uint32_t id; // 0: none
    _Atomic int32_t state;
} dqi_conn;

typedef struct dqi_conn_table {
    const dq_iface *iface;
    size_t bytes;       // of an engine's connection
    uint32_t seq;       // the counter, as of the last id
    _Atomic uint32_t n; // slots in use
    _Atomic(dqi_conn *) slots[DQI_CONNS];
} dqi_conn_table;

void dqi_conn_table_init(dqi_conn_table *t, const dq_iface *i, size_t bytes);
// A free slot, zeroed if it is new (*anew), for the connection *id, which nobody finds before dqi_conn_enter.
// NULL: the table is full, or the listener to the interface's events far behind, or there is no memory.
dqi_conn *dqi_conn_reserve(dqi_conn_table *t, uint32_t *id, bool *anew);
// The connection is in the table from now on, CONNECTING.
void dqi_conn_enter(dqi_conn_table *t, dqi_conn *c, uint32_t id);
// The slot is free. The first takes back one that nobody has heard of: its id may be given again.
void dqi_conn_take_back(dqi_conn_table *t, dqi_conn *c);
void dqi_conn_leave(dqi_conn_table *t, dqi_conn *c);
// The connection of this id, in whatever state, or NULL. Any thread; no lock.
dqi_conn *dqi_conn_look_up(const dqi_conn_table *t, uint32_t id);
// The id of the open connection made last, else of the last of those that are ending; 0: none.
uint32_t dqi_conn_newest(const dqi_conn_table *t);
// Slot k < DQI_CONNS, which may be free, or NULL. Any thread; no lock.
static inline dqi_conn *dqi_conn_at(const dqi_conn_table *t, uint32_t k) { return atomic_load(&t->slots[k]); }

static inline int dqi_conn_state_of(const dqi_conn *c) {
    return atomic_load_explicit(&c->state, memory_order_acquire);
}
static inline uint32_t dqi_conn_id_of(const dqi_conn *c) {
    return atomic_load_explicit(&c->id, memory_order_acquire);
}
// Whether an id is, or was, one of this interface's.
static inline bool dqi_conn_is_of(uint32_t id, uint32_t index) { return id >> DQI_CONN_ID_BITS == index; }

#endif
