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
    bool again = c->primary && !atomic_load(&c->closing); // pending packets go to the next connection
    if (code != DQ_OK || again || dqi_sock_is_udp(s) || s->iface->n_tx == 0) {
        dqi_sconn_end(c, code);
        return;
    }
    dqi_reactor *r = c->reactor;
    dqi_sconn_stop_reading(c);
    c->ending_ns = dq_now(s->iface->session);
    c->ending_moved = atomic_load(&c->moved);
    c->marked = false;
    c->next_ending = r->ending;
    r->ending = c;
}

// Returns true if no consumer can answer packets of c's queue: only the burst being filled is in use.
static bool nobody_answers(const dqi_sconn *c) {
    if (atomic_load(&c->closing) || !c->rx) return true;
    const dqi_sock_rx *r = c->rx->engine;
    return !atomic_load(&c->sock->iface->events) && dqi_burst_pool_level(c->rx->bursts) + 1 >= r->n_bursts;
}

// Records the rings' tails; only packets up to these are waited for.
static void mark(dqi_sconn *c) {
    const dq_iface *i = c->sock->iface;
    for (uint32_t k = 0; k < i->n_tx; k++)
        c->mark[k] = atomic_load(&i->tx[k]->ring.tail);
    c->marked = true;
}

static bool drained(const dqi_sconn *c) {
    const dq_iface *i = c->sock->iface;
    for (uint32_t k = 0; k < i->n_tx; k++) {
        const dqi_sock_tx *t = i->tx[k]->engine;
        if ((int32_t)(atomic_load(&t->settled) - c->mark[k]) < 0) return false;
    }
    return atomic_load(&c->backlogged) == 0;
}

// Returns true when c has no further packets to send.
static bool is_over(dqi_sconn *c, int64_t now) {
    if (atomic_load(&c->broken)) return true;
    uint64_t moved = atomic_load(&c->moved);
    if (moved != c->ending_moved) {
        c->ending_moved = moved;
        c->ending_ns = now;
    }
    int64_t waited = now - c->ending_ns;
    if (!c->marked && (nobody_answers(c) || waited > GRACE_NS)) mark(c);
    return waited > PATIENCE_NS || (c->marked && drained(c));
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
        int64_t due = now + (now - c->ending_ns < LATER_NS ? SOON_NS : LATER_NS);
        if (due < next) next = due;
        at = &c->next_ending;
    }
    return next;
}

void dqi_ending_look(dqi_sconn *c) {
    int err = 0;
    socklen_t len = sizeof err;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &err, &len) != 0 || err != 0) atomic_store(&c->broken, true);
}
