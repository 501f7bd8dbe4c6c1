// rx.c: receive side of a queue: packets are collected in the current burst, which is dispatched to the pipes
// when it is full, when its first packet is timeout_us old, or, on sockets without a timeout, immediately.
#include "pipeline/actions.h"
#include "pipeline/engine.h"
#include "pipeline/pipe.h"
#include "pipeline/poller.h"
#include "pipeline/queue.h"
#include "pipeline/responder.h"
#include "pipeline/rx_count.h"

#include <errno.h>

#define LOOK_AGAIN_NS 100000 // retry interval of a blocked queue

// Whether the current burst is to be delivered: full ones immediately, others at their timeout, which is
// passed to the poller.
static bool is_due(dq_queue *q, bool arrived) {
    const dq_burst *b = q->rx.cur;
    if (b->n == 0) return false;
    if (q->rx.deliver_now) return true;
    if (b->n >= q->conf.batch_size || atomic_load_explicit(&q->stopping, memory_order_relaxed)) return true;
    if (q->conf.timeout_us == 0) return arrived ? q->rx.immediate : false;
    int64_t until = q->rx.since + (int64_t)q->conf.timeout_us * 1000;
    if (dq_now(q->session) >= until) return true;
    if (until < q->next_ns) q->next_ns = until;
    return false;
}

// Receives from the engine into the current burst; returns the packets added.
static int receive(dq_queue *q) {
    if (!q->bursts) return q->iface->ops->rx(q, NULL, 0); // it has no regions
    if (!q->rx.cur && !(q->rx.cur = dqi_burst_get(q->bursts))) {
        // All bursts are in use: the packets stay in the engine until one is freed. On the virtual clock only
        // other events free one.
        q->rx.blocked = true;
        if (!dqi_virtual(q->session)) q->next_ns = dq_now(q->session) + LOOK_AGAIN_NS;
        return 0;
    }
    // Without a consumer, packets stay in the engine, which only serves its connections.
    bool read = atomic_load_explicit(&q->rx.consumed, memory_order_relaxed);
    uint32_t room = read ? q->conf.batch_size - q->rx.cur->n : 0;
    bool empty = q->rx.cur->n == 0;
    uint64_t bytes = q->rx.cur->bytes;
    int n = q->iface->ops->rx(q, &q->rx.cur, room);
    if (n <= 0) return 0;
    q->rx.cur->queue = q;
    q->rx.cur->payload = q->iface->ops->payload;
    if (q->rx.flow_counts)
        dqi_flow_count(q->rx.flow_counts, q->rx.cur, q->rx.cur->n - (uint32_t)n, q->rx.cur->bytes - bytes);
    if (q->rx.peer_counts) dqi_peer_count(q->rx.peer_counts, q->rx.cur, q->rx.cur->n - (uint32_t)n);
    bool acts = atomic_load_explicit(&q->rx.lead, memory_order_acquire) > 0;
    dqi_gauge_add(&q->held,
                  n - (int64_t)(acts ? dqi_rx_actions(q, q->rx.cur, q->rx.cur->n - (uint32_t)n) : 0));
    bool gathers = q->rx.cur->n < q->conf.batch_size && q->conf.timeout_us > 0;
    if (empty && gathers) q->rx.since = dq_now(q->session);
    return n;
}

// Whether the queue rests: while a burst is being collected at a low rate, packets may accumulate in the
// kernel, as one read of several packets costs little more than a read of one.
static bool rests(dq_queue *q) {
    if (q->rx.rest_until == 0) return false;
    if (dq_now(q->session) >= q->rx.rest_until || atomic_load_explicit(&q->stopping, memory_order_relaxed)) {
        q->rx.rest_until = 0;
        return false;
    }
    q->rx.blocked = true;
    q->next_ns = q->rx.rest_until;
    return true;
}

static int look(dq_queue *q) {
    int n = receive(q);
    if (n > 0 && q->rx.rest_ns > 0 && (uint32_t)n < q->conf.batch_size / 4)
        q->rx.rest_until = dq_now(q->session) + q->rx.rest_ns;
    return n;
}

static int poll_queue(dq_queue *q) {
    q->next_ns = INT64_MAX;
    q->rx.blocked = !dqi_dispatch_run(q);
    if (q->rx.blocked) { // the stage kicks the queue, or it retries
        if (!dqi_virtual(q->session)) q->next_ns = dq_now(q->session) + LOOK_AGAIN_NS;
        return 0;
    }
    int n = rests(q) ? 0 : look(q);
    if (q->rx.cur && is_due(q, n > 0)) {
        dq_burst *b = q->rx.cur;
        q->rx.cur = NULL;
        q->rx.deliver_now = false;
        dqi_dispatch_start(q, b);
        dqi_dispatch_run(q);
        n++;
    }
    if (n > 0) q->next_ns = 0;
    return n;
}

// A stage's own queue must not delay its sources: each poll delivers all of its packets.
static int poll_behind(dq_queue *q) {
    int n = 0, more;
    while ((more = poll_queue(q)) > 0)
        n += more;
    atomic_store_explicit(&q->rx.stalled, q->rx.blocked, memory_order_relaxed);
    return n;
}

int dqi_rx_poll(dq_queue *q) {
    if (q->owner) return poll_behind(q);
    int n = poll_queue(q);
    dqi_responder *r = dqi_responder_of(q->iface);
    return r ? n + dqi_responder_poll(r, q) : n;
}

void dqi_rx_drop_rest(dq_queue *q) {
    dqi_dispatch_drop(q);
    if (!q->rx.cur) return;
    dqi_drop(&q->c, DQ_DROP_STOPPED, q->rx.cur->n);
    dqi_gauge_add(&q->held, -(int64_t)q->rx.cur->n);
    dq_burst_unref(q->rx.cur);
    q->rx.cur = NULL;
}

int dq_rx_stamps(const dq_queue *q) { return q->rx.stamping; }

int64_t dq_rx_flush(dq_queue *q) {
    if (q->conf.dir != DQ_RX) return DQ_INVALID_PARAMETER;
    dqi_poller_hold(q->poller);
    int64_t n = q->iface->ops->flush ? q->iface->ops->flush(q) : 0;
    if (q->rx.cur && n >= 0) {
        uint32_t k = q->rx.cur->n;
        dqi_drop(&q->c, DQ_DROP_FLUSHED, k);
        dqi_gauge_add(&q->held, -(int64_t)k);
        dq_burst_unref(q->rx.cur);
        q->rx.cur = NULL;
        n += k;
    }
    dqi_poller_release(q->poller);
    return n;
}
