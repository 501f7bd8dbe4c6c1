// socket_lanes.c: what waits for a peer that doesn't read, so that the queue's other connections go on.
//
// A burst that finds its socket full leaves the queue's front for its connection's lane, and what follows it
// on that connection queues up behind it: order is kept within a connection, not between connections. A lane
// that has had its share of the queue's descriptors and buffers is full: dq_tx_send refuses its connection
// until half of that has gone. Shares shrink as more lanes fill, so that connections that are read find room.
// What is in the queue's ring may all be a full lane's, so the ring takes no more than such a share either,
// where there is more than one connection.
// Waiting packets count as held by the queue. All but dqi_sock_lanes_refuse run on the queue's poller.
#include "socket_state.h"

#include <errno.h>

#define SHARE 2 // a lane has had its share when it has one part in so many of what other lanes left

int dqi_sock_lanes_open(dqi_sock_tx *t, const dq_queue *q) {
    dqi_sock_lanes *l = &t->lanes;
    l->cap = q->session->conf.tx_meta_buffers;
    l->packets_cap = q->conf.regions[0]->conf.num_bufs;
    l->waits = calloc(l->cap, sizeof *l->waits);
    l->lanes = calloc(l->cap, sizeof *l->lanes);
    for (uint32_t k = 0; l->waits && k < l->cap; k++)
        l->waits[k].next = k + 1;
    return l->waits && l->lanes ? DQ_OK : DQ_ESYS - ENOMEM;
}

void dqi_sock_lanes_close(dqi_sock_tx *t) {
    free(t->lanes.waits);
    free(t->lanes.lanes);
}

// The counts that senders look at.
static void count(dqi_sock_lanes *l, int waits, int64_t packets) {
    atomic_store_explicit(&l->n_waits, l->n_waits + (uint32_t)waits, memory_order_relaxed);
    atomic_store_explicit(&l->packets, l->packets + (uint64_t)packets, memory_order_relaxed);
}

static dqi_sock_lane *find(dqi_sock_lanes *l, uint32_t id, bool own) {
    for (uint32_t k = 0; k < l->n; k++)
        if (l->lanes[k].id == id || (own && l->lanes[k].own)) return &l->lanes[k];
    return NULL;
}

bool dqi_sock_lanes_has(dqi_sock_tx *t, uint32_t id, bool own) {
    return t->lanes.n > 0 && find(&t->lanes, id, own) != NULL;
}

// Tells senders whether the lane has had its share.
static void mark(dqi_sock_tx *t, const dqi_sock_lane *lane) {
    const dqi_sock_lanes *l = &t->lanes;
    dqi_sconn *c = dqi_conn_find(t->sock, lane->id);
    if (!c) return;
    uint32_t mine = 1u << t->index, bursts = l->cap - l->n_waits + lane->n;
    uint64_t packets = l->packets < l->packets_cap ? l->packets_cap - l->packets + lane->packets : 0;
    bool was = (atomic_load_explicit(&c->full, memory_order_relaxed) & mine) != 0;
    uint32_t part = was ? 2 * SHARE : SHARE;
    bool full = lane->n > bursts / part || lane->packets > packets / part;
    if (full && !was) atomic_fetch_or(&c->full, mine);
    if (!full && was) atomic_fetch_and(&c->full, ~mine);
}

static void note_lane(dqi_sock_tx *t, uint32_t id) {
    dqi_sconn *c = dqi_conn_find(t->sock, id);
    if (c) atomic_fetch_or(&c->laned, 1u << t->index);
}

static void unmark(dqi_sock_tx *t, uint32_t id) {
    dqi_sconn *c = dqi_conn_find(t->sock, id);
    if (!c) return;
    atomic_fetch_and(&c->full, ~(1u << t->index));
    atomic_fetch_and(&c->laned, ~(1u << t->index));
}

bool dqi_sock_lanes_add(dq_queue *q, uint32_t id, bool own, dq_burst *b, uint32_t first, uint32_t n) {
    dqi_sock_tx *t = q->engine;
    dqi_sock_lanes *l = &t->lanes;
    if (l->n_waits == l->cap) return false;
    dqi_sock_lane *lane = find(l, id, own);
    if (!lane) {
        lane = &l->lanes[l->n++];
        *lane = (dqi_sock_lane){.id = id, .fd = t->blocked_fd};
        note_lane(t, id);
    }
    uint32_t k = l->free;
    l->free = l->waits[k].next;
    l->waits[k] = (dqi_sock_wait){.b = b, .first = first, .n = n, .own = own};
    if (lane->n > 0)
        l->waits[lane->tail].next = k;
    else
        lane->head = k;
    lane->tail = k;
    lane->own |= own;
    lane->n++;
    lane->packets += n;
    count(l, 1, n);
    if (first + n < b->n) dq_burst_ref(b); // else it is the queue's own reference
    dqi_gauge_add(&q->held, n);            // the core takes it off, as the engine took them
    mark(t, lane);
    return true;
}

// k packets of the lane's first burst have gone, or were dropped.
static void advance(dq_queue *q, dqi_sock_lane *lane, uint32_t k) {
    dqi_sock_lanes *l = &((dqi_sock_tx *)q->engine)->lanes;
    uint32_t at = lane->head;
    dqi_sock_wait *w = &l->waits[at];
    w->first += k;
    w->n -= k;
    lane->packets -= k;
    count(l, w->n == 0 ? -1 : 0, -(int64_t)k);
    dqi_gauge_add(&q->held, -(int64_t)k);
    if (w->n > 0) return;
    dq_burst_unref(w->b);
    lane->head = w->next;
    lane->n--;
    w->next = l->free;
    l->free = at;
}

// Where the lane's first burst goes by now: a client's own connection may have been made again.
static dqi_way aim(dq_queue *q, dqi_sock_lane *lane, dqi_sconn **c) {
    dqi_sock_tx *t = q->engine;
    const dqi_sock_wait *w = &t->lanes.waits[lane->head];
    uint32_t id = lane->id;
    dqi_way way = w->own ? dqi_sock_route(q, w->b, c, &id) : dqi_sock_look_up(t->sock, id, c);
    if (way == DQI_WAY_OPEN && id != lane->id) {
        unmark(t, lane->id);
        note_lane(t, id);
        lane->id = id;
    }
    return way;
}

// Sends what the lane's connection takes; packets gone or dropped.
static uint32_t serve(dq_queue *q, dqi_sock_lane *lane) {
    dqi_sock_tx *t = q->engine;
    uint32_t total = 0;
    while (lane->n > 0) {
        dqi_sock_wait *w = &t->lanes.waits[lane->head];
        dqi_sconn *c = NULL;
        uint32_t k = w->n;
        bool full = false;
        dqi_way way = aim(q, lane, &c);
        t->blocked_fd = -1;
        if (way == DQI_WAY_OPEN)
            k = (uint32_t)dqi_tcp_send(q, c, lane->id, w->b, w->first, w->n, &full);
        else if (way == DQI_WAY_LATER)
            k = 0;
        else
            dqi_drop(&q->c, DQ_DROP_NO_PEER, k);
        lane->fd = t->blocked_fd;
        t->blocked_fd = -1;
        if (k > 0) advance(q, lane, k);
        total += k;
        if (full || k == 0) break;
    }
    return total;
}

int dqi_sock_lanes_serve(dq_queue *q) {
    dqi_sock_tx *t = q->engine;
    dqi_sock_lanes *l = &t->lanes;
    uint32_t total = 0;
    for (uint32_t k = 0; k < l->n;) {
        dqi_sock_lane *lane = &l->lanes[k];
        uint32_t n = serve(q, lane);
        total += n;
        if (lane->n > 0) {
            if (n > 0) mark(t, lane);
            k++;
            continue;
        }
        unmark(t, lane->id);
        *lane = l->lanes[--l->n];
    }
    return total > 0;
}

int dqi_sock_lanes_arm(const dqi_sock_tx *t, struct pollfd *fds, int max) {
    int n = 0;
    for (uint32_t k = 0; k < t->lanes.n && n < max; k++)
        fds[n++] = (struct pollfd){.fd = t->lanes.lanes[k].fd, .events = POLLOUT};
    return n;
}

void dqi_sock_lanes_drop(dq_queue *q) {
    dqi_sock_lanes *l = &((dqi_sock_tx *)q->engine)->lanes;
    for (; l->n > 0; l->n--)
        for (dqi_sock_lane *lane = &l->lanes[l->n - 1]; lane->n > 0;) {
            uint32_t k = l->waits[lane->head].n;
            dqi_drop(&q->c, DQ_DROP_STOPPED, k);
            advance(q, lane, k);
        }
}

// True when what the poller has not looked at yet is a lane's share.
static bool ring_full(const dq_queue *q, const dqi_sock_lanes *l) {
    uint32_t waits = atomic_load_explicit(&l->n_waits, memory_order_relaxed);
    uint64_t packets = atomic_load_explicit(&l->packets, memory_order_relaxed);
    uint64_t left = packets < l->packets_cap ? l->packets_cap - packets : 0;
    return dqi_ring_level(&q->ring) > (l->cap - waits) / SHARE ||
           dqi_gauge_get(&q->held) - (int64_t)packets > (int64_t)(left / SHARE);
}

bool dqi_sock_lanes_refuse(dq_queue *q, const dq_burst *b) {
    const dqi_sock_tx *t = q->engine;
    uint32_t id;
    if (dqi_sock_is_udp(t->sock)) return false;
    const dqi_sconn *c = dqi_sock_target(q, b, &id);
    if (c && (atomic_load_explicit(&c->full, memory_order_relaxed) & 1u << t->index) != 0) {
        dqi_add_shared(&q->c.extra[DQ_EXTRA_REFUSED], b->n);
        return true;
    }
    return atomic_load_explicit(&t->sock->n_conns, memory_order_relaxed) > 1 && ring_full(q, &t->lanes);
}
