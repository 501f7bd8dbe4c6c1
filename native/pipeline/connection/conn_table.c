#include "pipeline/connection/conn_table.h"
#include "pipeline/iface.h"
#include "pipeline/session.h"

#include <stdlib.h>

#define ID_MASK ((1u << DQI_CONN_ID_BITS) - 1)

_Static_assert(DQI_MAX_IFACES <= 1u << (32 - DQI_CONN_ID_BITS), "an id has the interface's index");

void dqi_conn_table_init(dqi_conn_table *t, dq_iface *i, size_t bytes) {
    t->iface = i;
    t->bytes = bytes;
    pthread_mutex_init(&t->lock, NULL);
}

// Returns the slot of the next id, allocating it if necessary; NULL if it is in use.
static dqi_conn *next_slot(dqi_conn_table *t, uint32_t *id, bool *fresh) {
    t->seq = (t->seq + 1) & ID_MASK;
    if (t->seq == 0) t->seq = 1;
    *id = t->iface->index << DQI_CONN_ID_BITS | t->seq;
    dqi_conn *c = dqi_conn_at(t, t->seq % DQI_CONNS);
    *fresh = c == NULL;
    if (c) return dqi_conn_state_of(c) == DQI_CONN_FREE ? c : NULL;
    return calloc(1, t->bytes);
}

dqi_conn *dqi_conn_reserve(dqi_conn_table *t, uint32_t *id, bool *fresh) {
    uint32_t n = atomic_load(&t->n), tries = dqi_iface_event_room(t->iface, n + 1) ? DQI_CONNS : 0;
    dqi_conn *c = NULL;
    for (uint32_t k = 0; k < tries && !c && n < DQI_CONNS; k++)
        c = next_slot(t, id, fresh);
    if (!c) return NULL;
    atomic_store(&t->n, n + 1);
    atomic_store(&c->closing, false);
    atomic_store(&c->broken, false);
    c->redial = NULL;
    c->local = c->peer = (dqi_sockaddr){0};
    return c;
}

void dqi_conn_place(dqi_conn_table *t, dqi_conn *c, int pair) {
    const dq_iface *i = t->iface;
    uint32_t k = pair >= 0 ? (uint32_t)pair : t->n_placed++;
    c->rx = i->n_rx ? i->rx[k % i->n_rx] : NULL;
    c->tx = i->n_tx ? i->tx[k % i->n_tx] : NULL;
}

void dqi_conn_enter(dqi_conn_table *t, dqi_conn *c, uint32_t id) {
    atomic_store(&c->state, DQI_CONN_CONNECTING);
    atomic_store(&c->id, id);
    atomic_store(&t->slots[id % DQI_CONNS], c);
}

void dqi_conn_set_open(dqi_conn_table *t, dqi_conn *c) {
    atomic_store(&c->state, DQI_CONN_OPEN);
    atomic_store(&t->newest, dqi_conn_id_of(c));
}

// Selects another newest connection if it was c, whose state has changed.
static void replace_newest(dqi_conn_table *t, const dqi_conn *c) {
    uint32_t id = dqi_conn_id_of(c);
    if (id != 0 && atomic_load(&t->newest) == id) atomic_store(&t->newest, dqi_conn_newest(t));
}

void dqi_conn_set_ending(dqi_conn_table *t, dqi_conn *c) {
    atomic_store(&c->state, DQI_CONN_ENDING);
    replace_newest(t, c);
}

void dqi_conn_take_back(dqi_conn_table *t, dqi_conn *c) {
    if ((dqi_conn_id_of(c) & ID_MASK) == t->seq) t->seq--;
    t->n_placed--;
    atomic_store(&c->id, 0);
    dqi_conn_leave(t, c);
}

void dqi_conn_leave(dqi_conn_table *t, dqi_conn *c) {
    atomic_store(&c->state, DQI_CONN_FREE);
    atomic_fetch_sub(&t->n, 1);
    replace_newest(t, c);
}

dqi_conn *dqi_conn_look_up(const dqi_conn_table *t, uint32_t id) {
    if (id == 0 || !dqi_conn_is_of(id, t->iface->index)) return NULL;
    dqi_conn *c = atomic_load_explicit(&t->slots[id % DQI_CONNS], memory_order_acquire);
    return c && dqi_conn_id_of(c) == id ? c : NULL;
}

uint32_t dqi_conn_newest(const dqi_conn_table *t) {
    uint32_t best = 0, age = 0;
    for (uint32_t k = 0; k < DQI_CONNS; k++) {
        const dqi_conn *c = dqi_conn_at(t, k);
        int state = c ? dqi_conn_state_of(c) : DQI_CONN_FREE;
        if (state != DQI_CONN_OPEN && state != DQI_CONN_ENDING) continue;
        uint32_t a = (t->seq - dqi_conn_id_of(c)) & ID_MASK;
        if (state == DQI_CONN_ENDING) a += ID_MASK;
        if (best != 0 && a >= age) continue;
        best = dqi_conn_id_of(c);
        age = a;
    }
    return best;
}
