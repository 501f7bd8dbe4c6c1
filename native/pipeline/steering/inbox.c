#include "pipeline/steering/inbox.h"
#include "core/region.h"
#include "pipeline/actions.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#define UNREAD_BATCHES 4  // limit of a queue without a consumer, in batches
#define UNREAD_BURSTS  64 // and in bursts

bool dqi_inbox_init(dqi_inbox *x, uint32_t n) { return dqi_ring_init(&x->in, n); }

void dqi_inbox_free(dqi_inbox *x) { dqi_ring_free(&x->in); }

static bool is_read(const dq_queue *rx) {
    return atomic_load_explicit(&rx->rx.consumed, memory_order_relaxed);
}

// Unread packets must not exhaust the senders' buffers.
bool dqi_inbox_full(const dq_queue *rx, const dqi_inbox *x, uint32_t num_bufs) {
    if (is_read(rx)) return false;
    int64_t most = UNREAD_BATCHES * (int64_t)rx->conf.batch_size;
    if (num_bufs / 4 < most) most = num_bufs / 4;
    return dqi_ring_level(&x->in) >= UNREAD_BURSTS || dqi_gauge_get(&x->packets) >= most;
}

bool dqi_inbox_push(dq_queue *rx, dqi_inbox *x, dq_burst *b) {
    if (!is_read(rx)) {
        const dq_region *from = dqi_off_region(b->session, b->off[0][0] & ~DQI_OFF_FLAGS);
        if (dqi_inbox_full(rx, x, from ? from->conf.num_bufs : UINT32_MAX)) return false;
    }
    uint32_t n = b->n;
    uint64_t bytes = b->bytes;
    dqi_gauge_add(&x->packets, n);
    if (!dqi_ring_push(&x->in, b, 0)) {
        dqi_gauge_add(&x->packets, -(int64_t)n);
        return false;
    }
    dqi_add_shared(&rx->c.in, n); // shared: several senders may feed one queue
    dqi_add_shared(&rx->c.in_bytes, bytes);
    dqi_queue_kick(rx);
    return true;
}

bool dqi_inbox_next(dqi_inbox *x) {
    void *p;
    if (!dqi_ring_pop(&x->in, &p, NULL)) return false;
    x->head = p;
    x->pos = 0;
    return true;
}

void dqi_inbox_advance(dqi_inbox *x, uint32_t n) {
    dqi_gauge_add(&x->packets, -(int64_t)n);
    x->pos += n;
    if (x->pos < x->head->n) return;
    dq_burst_unref(x->head);
    x->head = NULL;
}

// Replaces the empty current burst with the whole head.
static int exchange(dqi_inbox *x, dq_burst **b) {
    dq_burst *in = x->head;
    dqi_burst_take_clock(in, *b);
    dq_burst_unref(*b);
    in->timed = false;
    in->flags = in->conn = 0;
    in->aggregate = NULL;
    in->due_ns = 0;
    *b = in;
    x->head = NULL;
    dqi_gauge_add(&x->packets, -(int64_t)in->n);
    return (int)in->n;
}

int dqi_inbox_take(dq_queue *q, dqi_inbox *x, dq_burst **b, uint32_t room) {
    dq_burst *in = x->head;
    if ((*b)->n == 0 && x->pos == 0 && in->n <= room && (in->n == room || in->cap >= q->conf.batch_size))
        return exchange(x, b);
    uint32_t n = in->n - x->pos < room ? in->n - x->pos : room;
    dqi_burst_move(*b, in, x->pos, n);
    dqi_inbox_advance(x, n);
    return (int)n;
}

int64_t dqi_inbox_flush(dq_queue *q, dqi_inbox *x) {
    int64_t n = 0;
    while (x->head || dqi_inbox_next(x)) {
        uint32_t left = x->head->n - x->pos;
        dqi_drop(&q->c, q->session->state < DQI_STOPPED ? DQ_DROP_FLUSHED : DQ_DROP_STOPPED, left);
        n += left;
        dqi_inbox_advance(x, left);
    }
    return n;
}

uint32_t dqi_inbox_holds(const dqi_inbox *x, const dq_burst *of) {
    uint32_t n = x->head && dqi_burst_owner(x->head) == of;
    const dq_burst *b;
    for (uint32_t k = 0; (b = dqi_ring_peek(&x->in, k)) != NULL; k++)
        n += dqi_burst_owner(b) == of;
    return n;
}
