// conn_table.h: connections of an interface: ids, slots and states, shared by all engines that have
// connections.
//
// An id consists of the interface's index above a counter whose low bits select the slot. A lookup is one
// load, an id repeats only after 2^26 connections, and a burst forwarded from another interface, of any
// engine, can't match a foreign id. Slots are freed only at close, so a pointer to one stays valid; the id
// shows whether it still is the same connection. Unless noted otherwise, the caller holds the table's lock,
// which control calls and the creation and removal of connections take; lookups take no lock.
#ifndef DQI_CONN_TABLE_H
#define DQI_CONN_TABLE_H

#include "core/atomics.h"
#include "core/dq_core.h"
#include "core/socket_addr.h"

#include <pthread.h>

#define DQI_CONNS        4096u // of an interface at a time; a power of two
#define DQI_CONN_ID_BITS 26    // below the interface's index

// ENDING: no longer read; queued data is still being sent.
enum { DQI_CONN_FREE, DQI_CONN_CONNECTING, DQI_CONN_OPEN, DQI_CONN_ENDING };

typedef struct dqi_redial dqi_redial;

// Common first part of an engine's connection structure.
typedef struct dqi_conn {
    _Atomic uint32_t id; // 0: none
    _Atomic int32_t state;
    _Atomic bool closing; // its end was requested
    _Atomic bool broken;  // it failed; the engine ends it
    dq_queue *rx, *tx;    // NULL: the interface has none
    dqi_redial *redial;   // NULL: accepted, or opened by the user
    dqi_sockaddr local, peer;
    // ENDING (conn.h)
    int64_t ending_ns;            // session time of the start, or of the last progress
    uint64_t ending_moved;        // progress at that time
    uint32_t mark[DQ_MAX_QUEUES]; // positions of the transmit rings up to which packets are still sent
} dqi_conn;

typedef struct dqi_conn_table {
    dq_iface *iface;
    size_t bytes;            // of an engine's connection structure
    pthread_mutex_t lock;    // see above
    uint32_t seq;            // counter, as in the last id
    uint32_t n_placed;       // connections assigned to queues in turn
    _Atomic uint32_t n;      // slots in use
    _Atomic uint32_t newest; // connection for unaddressed packets: dqi_conn_newest; 0: none
    _Atomic(dqi_conn *) slots[DQI_CONNS];
} dqi_conn_table;

void dqi_conn_table_init(dqi_conn_table *t, dq_iface *i, size_t bytes);
// Reserves a free slot, zeroed if it is new (*fresh), for connection *id; lookups find it after
// dqi_conn_enter. NULL: the table is full, the event ring is nearly full, or no memory.
dqi_conn *dqi_conn_reserve(dqi_conn_table *t, uint32_t *id, bool *fresh);
// Assigns the pair-th receive and transmit queue (modulo their numbers; -1: the next in turn).
void dqi_conn_place(dqi_conn_table *t, dqi_conn *c, int pair);
// Enters the connection into the table, in state CONNECTING.
void dqi_conn_enter(dqi_conn_table *t, dqi_conn *c, uint32_t id);
// Changes its state to OPEN, or to ENDING, and the table's newest connection.
void dqi_conn_set_open(dqi_conn_table *t, dqi_conn *c);
void dqi_conn_set_ending(dqi_conn_table *t, dqi_conn *c);
// Frees the slot. dqi_conn_take_back is for connections not yet visible outside: their id, and their turn,
// may be reused.
void dqi_conn_take_back(dqi_conn_table *t, dqi_conn *c);
void dqi_conn_leave(dqi_conn_table *t, dqi_conn *c);
// Returns the connection of this id in any state, or NULL. Any thread; no lock.
dqi_conn *dqi_conn_look_up(const dqi_conn_table *t, uint32_t id);
// Returns the id of the newest open connection, otherwise of the newest one in state ENDING; 0: none.
uint32_t dqi_conn_newest(const dqi_conn_table *t);
// Returns slot k < DQI_CONNS, which may be free, or NULL. Any thread; no lock.
static inline dqi_conn *dqi_conn_at(const dqi_conn_table *t, uint32_t k) { return atomic_load(&t->slots[k]); }

static inline int dqi_conn_state_of(const dqi_conn *c) {
    return atomic_load_explicit(&c->state, memory_order_acquire);
}
static inline uint32_t dqi_conn_id_of(const dqi_conn *c) {
    return atomic_load_explicit(&c->id, memory_order_acquire);
}
// Whether the connection accepts sends.
static inline bool dqi_conn_takes(const dqi_conn *c) {
    int state = dqi_conn_state_of(c);
    return state == DQI_CONN_OPEN || state == DQI_CONN_ENDING;
}
// Whether an id is, or was, of this interface.
static inline bool dqi_conn_is_of(uint32_t id, uint32_t index) { return id >> DQI_CONN_ID_BITS == index; }

#endif
