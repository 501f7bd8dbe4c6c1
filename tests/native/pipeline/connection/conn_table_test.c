// conn_table_test.c: connections of interfaces: ids that reach no other connection, wrapped round too, slots
// that are used again, and the one made last.
#include "dqtest.h"

#include "pipeline/connection/conn_table.h"
#include "pipeline/iface.h"

#include <stdlib.h>

#define LAST_SEQ ((1u << DQI_CONN_ID_BITS) - 1)

// What a made-up engine knows of a connection.
typedef struct line {
    dqi_conn conn;
    uint32_t peer; // where it leads; 0: nowhere any more
} line;

typedef struct exchange {
    dq_iface iface;
    dqi_conn_table t;
    uint32_t live[DQI_CONNS], n; // ids that are in use
} exchange;

static exchange *open_exchange(uint32_t index, uint32_t seq) {
    exchange *x = calloc(1, sizeof *x);
    if (!x) exit(1);
    x->iface.index = index;
    dqi_conn_table_init(&x->t, &x->iface, sizeof(line));
    x->t.seq = seq;
    return x;
}

static void close_exchange(exchange *x) {
    for (uint32_t k = 0; k < DQI_CONNS; k++)
        free(dqi_conn_at(&x->t, k));
    free(x);
}

// A new connection; 0: there is no room.
static uint32_t begin(exchange *x) {
    uint32_t id = 0;
    bool fresh;
    line *l = (line *)dqi_conn_reserve(&x->t, &id, &fresh);
    if (!l) return 0;
    DQ_CHECK(dqi_conn_look_up(&x->t, id) == NULL); // not before it is entered
    DQ_EQ(fresh, l->peer == 0 && dqi_conn_id_of(&l->conn) == 0);
    l->peer = id;
    dqi_conn_enter(&x->t, &l->conn, id);
    x->live[x->n++] = id;
    return id;
}

static void end(exchange *x, uint32_t k) {
    dqi_conn *c = dqi_conn_look_up(&x->t, x->live[k]);
    DQ_CHECK(c != NULL);
    if (c) dqi_conn_leave(&x->t, c);
    x->live[k] = x->live[--x->n];
}

static bool is_live(const exchange *x, uint32_t id) {
    for (uint32_t k = 0; k < x->n; k++)
        if (x->live[k] == id) return true;
    return false;
}

static void ids_and_slots(void) {
    exchange *x = open_exchange(3, LAST_SEQ - 1);
    uint32_t last = begin(x), first = begin(x); // the counter goes round and leaves 0 out
    DQ_EQ(last, 3u << DQI_CONN_ID_BITS | LAST_SEQ);
    DQ_EQ(first, 3u << DQI_CONN_ID_BITS | 1);
    DQ_EQ(x->t.n, 2);
    dqi_conn *c = dqi_conn_look_up(&x->t, first);
    DQ_EQ(dqi_conn_state_of(c), DQI_CONN_CONNECTING);
    dqi_conn_take_back(&x->t, c); // its id was never passed on: it is used again
    DQ_CHECK(dqi_conn_look_up(&x->t, first) == NULL);
    x->n--;
    DQ_EQ(begin(x), first);
    DQ_CHECK(dqi_conn_look_up(&x->t, 0) == NULL);
    DQ_CHECK(dqi_conn_look_up(&x->t, 2u << DQI_CONN_ID_BITS | 1) == NULL);
    end(x, 0);
    DQ_EQ(x->t.n, 1);
    close_exchange(x);
}

static void full(void) {
    exchange *x = open_exchange(0, 0);
    for (uint32_t k = 0; k < DQI_CONNS; k++)
        DQ_CHECK(begin(x) != 0);
    DQ_EQ(begin(x), 0);
    end(x, 17);
    uint32_t id = begin(x);
    DQ_CHECK(id > DQI_CONNS); // the same slot, another id
    DQ_EQ(begin(x), 0);
    DQ_EQ(x->t.n, DQI_CONNS);
    close_exchange(x);
}

// The open one made last, also where the counter went round between them; then those that are ending.
static void newest(void) {
    exchange *x = open_exchange(1, LAST_SEQ - 2);
    uint32_t ids[4];
    DQ_EQ(dqi_conn_newest(&x->t), 0);
    for (int k = 0; k < 4; k++)
        ids[k] = begin(x);
    DQ_EQ(dqi_conn_newest(&x->t), 0); // none is open yet
    for (int k = 0; k < 4; k++) {
        atomic_store(&dqi_conn_look_up(&x->t, ids[k])->state, DQI_CONN_OPEN);
        DQ_EQ(dqi_conn_newest(&x->t), ids[k]);
    }
    atomic_store(&dqi_conn_look_up(&x->t, ids[3])->state, DQI_CONN_ENDING);
    DQ_EQ(dqi_conn_newest(&x->t), ids[2]);
    for (int k = 0; k < 3; k++)
        dqi_conn_leave(&x->t, dqi_conn_look_up(&x->t, ids[k]));
    DQ_EQ(dqi_conn_newest(&x->t), ids[3]);
    close_exchange(x);
}

// Two interfaces, both just before their counters go round, and ids out of the blue: an id leads to the
// connection that has it, on its own interface, or to none.
static void strangers(void) {
    exchange *x[2] = {open_exchange(0, LAST_SEQ - 3000), open_exchange(63, LAST_SEQ - 5000)};
    uint64_t seed = 11;
    uint32_t gone[256] = {0};
    for (uint32_t r = 0; r < 200000; r++) {
        exchange *mine = x[r & 1], *other = x[~r & 1];
        if (mine->n < 200 && dq_below(&seed, 2) == 0) {
            uint32_t id = begin(mine);
            DQ_CHECK(id != 0 && dqi_conn_look_up(&other->t, id) == NULL);
        } else if (mine->n > 0) {
            uint32_t k = dq_below(&seed, mine->n);
            gone[r & 255] = mine->live[k];
            end(mine, k);
        }
        uint32_t asked = dq_below(&seed, 3) == 0 ? (uint32_t)dq_rand(&seed) : gone[dq_below(&seed, 256)];
        for (int k = 0; k < 2; k++) {
            const line *l = (const line *)dqi_conn_look_up(&x[k]->t, asked);
            bool reached = l && dqi_conn_state_of(&l->conn) != DQI_CONN_FREE;
            if (l) DQ_EQ(l->peer, asked);
            DQ_EQ(reached, is_live(x[k], asked));
        }
    }
    close_exchange(x[0]);
    close_exchange(x[1]);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(ids_and_slots);
    DQ_RUN(full);
    DQ_RUN(newest);
    DQ_RUN(strangers);
    return dq_done();
}
