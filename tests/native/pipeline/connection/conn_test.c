// conn_test.c: when a client connects again, which of its failures are reported, and which connection a burst
// names.
#include "dqtest.h"

#include "pipeline/connection/conn.h"
#include "pipeline/iface.h"
#include "pipeline/session.h"

#include <stdlib.h>

#define S INT64_C(1000000000)

static dq_session session;
static dq_iface iface = {.session = &session, .conf.socket.retry_connect_s = 2};
static dqi_conn_table table;
static dqi_redial own;

// A connection of the client's own.
static dqi_conn *dial(void) {
    uint32_t id = 0;
    bool fresh;
    dqi_conn *c = dqi_conn_reserve(&table, &id, &fresh);
    if (!c) exit(1);
    DQ_CHECK(c->redial == NULL && !atomic_load(&c->closing) && !atomic_load(&c->broken));
    dqi_conn_enter(&table, c, id);
    c->redial = &own;
    atomic_store(&own.conn, c);
    return c;
}

// Ends c, and checks the delay before the next attempt, in s, and after that.
static void end(dqi_conn *c, int code, bool reported, bool named, int64_t due, int64_t then) {
    uint32_t id, was = dqi_conn_id_of(c);
    int64_t before = dq_now(&session);
    DQ_EQ(dqi_conn_ended(&table, c, code, &id), reported);
    int64_t after = dq_now(&session);
    DQ_EQ(id, named ? was : 0);
    DQ_CHECK(own.due_ns >= before + due * S && own.due_ns <= after + due * S);
    DQ_EQ(own.wait_ns, then * S);
    DQ_CHECK(atomic_load(&own.conn) == NULL);
}

static void redial(void) {
    dqi_redial_init(&own, &iface);
    end(dial(), -5, true, false, 2, 4);
    end(dial(), -5, false, false, 4, 8); // an unreachable server is reported once
    end(dial(), -6, true, false, 8, 16);
    end(dial(), -6, false, false, 16, 30);
    end(dial(), -6, false, false, 30, 30);
    dqi_conn *c = dial();
    dqi_conn_set_open(&table, c);
    own.since_ns = dq_now(&session);
    DQ_EQ(table.newest, dqi_conn_id_of(c));
    end(c, -6, true, true, 2, 2); // it lasted a moment
    DQ_EQ(table.newest, 0);
    c = dial();
    dqi_conn_set_open(&table, c);
    own.since_ns = dq_now(&session) - 3 * S;
    end(c, 0, true, true, 0, 2);
    DQ_CHECK(!own.retired);
    c = dial();
    DQ_CHECK(dqi_conn_request_end(&table, dqi_conn_id_of(c)) == c);
    DQ_CHECK(dqi_conn_request_end(&table, dqi_conn_id_of(c)) == NULL);
    end(c, 0, true, false, 2, 4);
    DQ_CHECK(own.retired);
}

static void idle(void) {
    dqi_conn *c = dial();
    c->redial = NULL;
    dqi_conn_set_open(&table, c);
    dqi_conn_begin_end(&table, c, 7, 100);
    DQ_EQ(dqi_conn_state_of(c), DQI_CONN_ENDING);
    DQ_EQ(dqi_conn_idle_ns(c, 7, 130), 30);
    DQ_EQ(dqi_conn_idle_ns(c, 8, 150), 0);
    DQ_EQ(dqi_conn_idle_ns(c, 8, 170), 20);
    uint32_t id;
    DQ_CHECK(dqi_conn_ended(&table, c, 0, &id));
    DQ_EQ(id, dqi_conn_id_of(c));
}

static void named(void) {
    dq_iface other = {.index = 5};
    dq_queue tx = {.iface = &iface, .conf.dir = DQ_TX}, rx = {.iface = &other, .conf.dir = DQ_RX};
    dq_burst b = {.queue = &rx, .conn = 5u << DQI_CONN_ID_BITS | 9};
    DQ_EQ(dqi_conn_named(&tx, &b), 0); // of the interface that received it
    b.conn = 9;
    DQ_EQ(dqi_conn_named(&tx, &b), 9);
    b.queue = NULL;
    DQ_EQ(dqi_conn_named(&tx, &b), 9);
}

// Positions of a transmit queue continue when the queue is deleted and added again, with a new ring.
static void positions(void) {
    dqi_conn_tx x = {0};
    dq_queue tx = {.iface = &iface, .conf.dir = DQ_TX, .engine = &x};
    dqi_conn *c = dial();
    iface.tx[iface.n_tx++] = &tx;
    atomic_store(&tx.tx.ring.tail, 500);
    dqi_conn_mark(&table, c);
    DQ_CHECK(!dqi_conn_passed(&table, c));
    atomic_store(&tx.tx.ring.head, 500);
    dqi_conn_settle(&tx);
    DQ_CHECK(dqi_conn_passed(&table, c));
    atomic_store(&x.base, atomic_load(&x.settled));
    tx.tx.ring = (dqi_ring){0};
    dqi_conn_settle(&tx);
    DQ_CHECK(dqi_conn_passed(&table, c));
    atomic_store(&tx.tx.ring.tail, 3);
    dqi_conn_mark(&table, c);
    DQ_CHECK(!dqi_conn_passed(&table, c));
    atomic_store(&tx.tx.ring.head, 3);
    dqi_conn_settle(&tx);
    DQ_CHECK(dqi_conn_passed(&table, c));
    iface.n_tx = 0;
    uint32_t id;
    dqi_conn_ended(&table, c, 0, &id);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    dqi_conn_table_init(&table, &iface, sizeof(dqi_conn));
    DQ_RUN(redial);
    DQ_RUN(idle);
    DQ_RUN(named);
    DQ_RUN(positions);
    for (uint32_t k = 0; k < DQI_CONNS; k++)
        free(dqi_conn_at(&table, k));
    return dq_done();
}
