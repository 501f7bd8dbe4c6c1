// socket_backlog.c: packets waiting for peers that do not read, so that the queue's other connections
// proceed.
//
// A burst that finds its socket full moves from the queue's front to its connection's backlog, and later
// bursts of that connection follow it: order is kept within a connection, not between connections. A backlog
// that exceeds its share of the queue's descriptors and buffers is full: dq_tx_send refuses its connection
// until half of the share is free. Shares shrink as more backlogs fill, so that connections of reading peers
// find room. The ring's content may all belong to a full backlog, so with several connections the ring is
// limited to such a share too. Waiting packets count as held by the queue. All functions but
// dqi_backlog_refuse run on the queue's poller.
#include "core/dq_burst.h"
#include "engine/socket/socket_conn.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"

#include <errno.h>

#define SHARE 2 // a backlog's share is this fraction (1/SHARE) of what other backlogs left

int dqi_backlog_open(dqi_sock_tx *t, const dq_queue *q) {
    dqi_backlogs *l = &t->backlogs;
    l->cap = q->session->core.conf.tx_meta_buffers;
    l->packets_cap = q->conf.regions[0]->conf.num_bufs;
    l->waits = calloc(l->cap, sizeof *l->waits);
    l->backlogs = calloc(l->cap, sizeof *l->backlogs);
    for (uint32_t k = 0; l->waits && k < l->cap; k++)
        l->waits[k].next = k + 1;
    return l->waits && l->backlogs ? DQ_OK : DQ_ESYS - ENOMEM;
}

void dqi_backlog_close(dqi_sock_tx *t) {
    free(t->backlogs.waits);
    free(t->backlogs.backlogs);
}

// Updates the counts that senders read.
static void count(dqi_backlogs *l, int waits, int64_t packets) {
    atomic_store_explicit(&l->n_waits, l->n_waits + (uint32_t)waits, memory_order_relaxed);
    atomic_store_explicit(&l->packets, l->packets + (uint64_t)packets, memory_order_relaxed);
}

static dqi_backlog *find(dqi_backlogs *l, uint32_t id, bool own) {
    for (uint32_t k = 0; k < l->n; k++)
        if (l->backlogs[k].id == id || (own && l->backlogs[k].own)) return &l->backlogs[k];
    return NULL;
}

bool dqi_backlog_has(dqi_sock_tx *t, uint32_t id, bool own) {
    return t->backlogs.n > 0 && find(&t->backlogs, id, own) != NULL;
}

// Marks for senders whether the backlog exceeds its share.
static void mark(dqi_sock_tx *t, const dqi_backlog *backlog) {
    const dqi_backlogs *l = &t->backlogs;
    dqi_sconn *c = dqi_sconn_find(t->sock, backlog->id);
    if (!c) return;
    uint32_t mine = 1u << t->index, bursts = l->cap - l->n_waits + backlog->n;
    uint64_t packets = l->packets < l->packets_cap ? l->packets_cap - l->packets + backlog->packets : 0;
    bool was = (atomic_load_explicit(&c->full, memory_order_relaxed) & mine) != 0;
    uint32_t part = was ? 2 * SHARE : SHARE;
    bool full = backlog->n > bursts / part || backlog->packets > packets / part;
    if (full && !was) atomic_fetch_or(&c->full, mine);
    if (!full && was) atomic_fetch_and(&c->full, ~mine);
}

static void note_backlog(dqi_sock_tx *t, uint32_t id) {
    dqi_sconn *c = dqi_sconn_find(t->sock, id);
    if (c) atomic_fetch_or(&c->backlogged, 1u << t->index);
}

static void unmark(dqi_sock_tx *t, uint32_t id) {
    dqi_sconn *c = dqi_sconn_find(t->sock, id);
    if (!c) return;
    atomic_fetch_and(&c->full, ~(1u << t->index));
    atomic_fetch_and(&c->backlogged, ~(1u << t->index));
}

bool dqi_backlog_add(dq_queue *q, uint32_t id, bool own, dq_burst *b, uint32_t first, uint32_t n) {
    dqi_sock_tx *t = q->engine;
    dqi_backlogs *l = &t->backlogs;
    if (l->n_waits == l->cap) return false;
    dqi_backlog *backlog = find(l, id, own);
    if (!backlog) {
        backlog = &l->backlogs[l->n++];
        *backlog = (dqi_backlog){.id = id, .fd = t->blocked_fd};
        note_backlog(t, id);
    }
    uint32_t k = l->free;
    l->free = l->waits[k].next;
    l->waits[k] = (dqi_sock_wait){.b = b, .first = first, .n = n, .own = own};
    if (backlog->n > 0)
        l->waits[backlog->tail].next = k;
    else
        backlog->head = k;
    backlog->tail = k;
    backlog->own |= own;
    backlog->n++;
    backlog->packets += n;
    count(l, 1, n);
    if (first + n < b->n) dq_burst_ref(b); // else the queue's own reference is passed on
    dqi_gauge_add(&q->held, n);            // the core subtracts them, as the engine took them
    mark(t, backlog);
    return true;
}

// Removes k packets, sent or dropped, from the backlog's first burst.
static void advance(dq_queue *q, dqi_backlog *backlog, uint32_t k) {
    dqi_backlogs *l = &((dqi_sock_tx *)q->engine)->backlogs;
    uint32_t at = backlog->head;
    dqi_sock_wait *w = &l->waits[at];
    w->first += k;
    w->n -= k;
    backlog->packets -= k;
    count(l, w->n == 0 ? -1 : 0, -(int64_t)k);
    dqi_gauge_add(&q->held, -(int64_t)k);
    if (w->n > 0) return;
    dq_burst_unref(w->b);
    backlog->head = w->next;
    backlog->n--;
    w->next = l->free;
    l->free = at;
}

// Determines where the backlog's first burst goes now; a client's own connection may have been replaced.
static dqi_way aim(dq_queue *q, dqi_backlog *backlog, dqi_sconn **c) {
    dqi_sock_tx *t = q->engine;
    const dqi_sock_wait *w = &t->backlogs.waits[backlog->head];
    uint32_t id = backlog->id;
    dqi_way way = w->own ? dqi_sock_route(q, w->b, c, &id) : dqi_sock_look_up(t->sock, id, c);
    if (way == DQI_WAY_OPEN && id != backlog->id) {
        unmark(t, backlog->id);
        note_backlog(t, id);
        backlog->id = id;
    }
    return way;
}

// Sends what the backlog's connection accepts; returns the packets sent or dropped.
static uint32_t serve(dq_queue *q, dqi_backlog *backlog) {
    dqi_sock_tx *t = q->engine;
    uint32_t total = 0;
    while (backlog->n > 0) {
        dqi_sock_wait *w = &t->backlogs.waits[backlog->head];
        dqi_sconn *c = NULL;
        uint32_t k = w->n;
        bool full = false;
        dqi_way way = aim(q, backlog, &c);
        t->blocked_fd = -1;
        if (way == DQI_WAY_OPEN)
            k = (uint32_t)dqi_tcp_send(q, c, backlog->id, w->b, w->first, w->n, &full);
        else if (way == DQI_WAY_LATER)
            k = 0;
        else
            dqi_drop(&q->c, DQ_DROP_NO_PEER, k);
        backlog->fd = t->blocked_fd;
        t->blocked_fd = -1;
        if (k > 0) advance(q, backlog, k);
        total += k;
        if (full || k == 0) break;
    }
    return total;
}

int dqi_backlog_serve(dq_queue *q) {
    dqi_sock_tx *t = q->engine;
    dqi_backlogs *l = &t->backlogs;
    uint32_t total = 0;
    for (uint32_t k = 0; k < l->n;) {
        dqi_backlog *backlog = &l->backlogs[k];
        uint32_t n = serve(q, backlog);
        total += n;
        if (backlog->n > 0) {
            if (n > 0) mark(t, backlog);
            k++;
            continue;
        }
        unmark(t, backlog->id);
        *backlog = l->backlogs[--l->n];
    }
    return total > 0;
}

int dqi_backlog_arm(const dqi_sock_tx *t, struct pollfd *fds, int max) {
    int n = 0;
    for (uint32_t k = 0; k < t->backlogs.n && n < max; k++)
        fds[n++] = (struct pollfd){.fd = t->backlogs.backlogs[k].fd, .events = POLLOUT};
    return n;
}

void dqi_backlog_drop(dq_queue *q) {
    dqi_backlogs *l = &((dqi_sock_tx *)q->engine)->backlogs;
    for (; l->n > 0; l->n--)
        for (dqi_backlog *backlog = &l->backlogs[l->n - 1]; backlog->n > 0;) {
            uint32_t k = l->waits[backlog->head].n;
            dqi_drop(&q->c, DQ_DROP_STOPPED, k);
            advance(q, backlog, k);
        }
}

// Returns true if the bursts still in the ring amount to a backlog's share.
static bool ring_full(const dq_queue *q, const dqi_backlogs *l) {
    uint32_t waits = atomic_load_explicit(&l->n_waits, memory_order_relaxed);
    uint64_t packets = atomic_load_explicit(&l->packets, memory_order_relaxed);
    uint64_t left = packets < l->packets_cap ? l->packets_cap - packets : 0;
    return dqi_ring_level(&q->tx.ring) > (l->cap - waits) / SHARE ||
           dqi_gauge_get(&q->held) - (int64_t)packets > (int64_t)(left / SHARE);
}

bool dqi_backlog_refuse(dq_queue *q, const dq_burst *b) {
    const dqi_sock_tx *t = q->engine;
    uint32_t id;
    if (dqi_sock_is_udp(t->sock)) return false;
    const dqi_sconn *c = dqi_sock_target(q, b, &id);
    if (c && (atomic_load_explicit(&c->full, memory_order_relaxed) & 1u << t->index) != 0) {
        dqi_add_shared(&q->c.extra[DQ_EXTRA_REFUSED], b->n);
        return true;
    }
    return atomic_load_explicit(&t->sock->conns.n, memory_order_relaxed) > 1 && ring_full(q, &t->backlogs);
}
