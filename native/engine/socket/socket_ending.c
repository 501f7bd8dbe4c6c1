// socket_ending.c: connections that are no longer read while pending packets are still sent.
//
// A peer that has ended its stream may wait for answers, and a script often closes a connection right after
// sending. So an ending connection still accepts sends: first until the consumers of its packets are done (no
// burst of its queue is in use, or the event consumer has seen the end and closes it), then until each
// transmit queue has processed what its ring contained by then. Both waits are limited: GRACE_NS for answers,
// PATIENCE_NS for a peer that does not read.
#include "engine/socket/socket_conn.h"
#include "engine/socket/socket_state.h"

#include <errno.h>

#define GRACE_NS    INT64_C(1000000000)
#define PATIENCE_NS INT64_C(5000000000)
#define SOON_NS     200000  // interval between checks of a connection that has just ended
#define LATER_NS    2000000 // interval for one that takes longer

void dqi_ending_begin(dqi_sconn *c, int code) {
    dqi_sock *s = c->sock;
    // Pending packets of a client's own connection go to the next one.
    bool again = c->conn.redial && !atomic_load(&c->conn.closing);
    if (code != DQ_OK || again || dqi_sock_is_udp(s) || s->iface->n_tx == 0) {
        dqi_sconn_end(c, code);
        return;
    }
    dqi_reactor *r = c->reactor;
    dqi_sconn_stop_reading(c);
    c->marked = false;
    c->next_ending = r->ending;
    r->ending = c;
}

// Returns true if no consumer can answer packets of c's queue: only the burst being filled is in use.
static bool nobody_answers(const dqi_sconn *c) {
    if (atomic_load(&c->conn.closing) || !c->conn.rx) return true;
    const dqi_sock_rx *r = c->conn.rx->engine;
    return !atomic_load(&c->sock->iface->events) &&
           dqi_burst_pool_level(c->conn.rx->bursts) + 1 >= r->n_bursts;
}

// Returns true when c has no further packets to send.
static bool is_over(dqi_sconn *c, int64_t now) {
    if (atomic_load(&c->conn.broken)) return true;
    const dqi_conn_table *t = &c->sock->conns;
    int64_t waited = dqi_conn_idle_ns(&c->conn, atomic_load(&c->moved), now);
    if (!c->marked && (nobody_answers(c) || waited > GRACE_NS)) { // only packets queued by now are waited for
        dqi_conn_mark(t, &c->conn);
        c->marked = true;
    }
    bool sent = c->marked && dqi_conn_passed(t, &c->conn) && atomic_load(&c->backlogged) == 0;
    return waited > PATIENCE_NS || sent;
}

int64_t dqi_ending_serve(dqi_reactor *r) {
    int64_t now = dq_now(r->sock->iface->session), next = INT64_MAX;
    for (dqi_sconn **at = &r->ending; *at;) {
        dqi_sconn *c = *at;
        if (is_over(c, now)) {
            *at = c->next_ending;
            dqi_sconn_end(c, DQ_OK);
            continue;
        }
        int64_t due = now + (now - c->conn.ending_ns < LATER_NS ? SOON_NS : LATER_NS);
        if (due < next) next = due;
        at = &c->next_ending;
    }
    return next;
}

void dqi_ending_look(dqi_sconn *c) {
    int err = 0;
    socklen_t len = sizeof err;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0 || err != 0)
        atomic_store(&c->conn.broken, true);
}
