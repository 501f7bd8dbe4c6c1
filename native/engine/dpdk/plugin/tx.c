// tx.c: bursts to a device's queue. A buffer without other references is passed by reference and returns to
// its region when the device has sent it; other packets are copied into a buffer of the engine.
#include "dpdk.h"

#include <string.h>

#define LINK_LOOK_NS 1000000
#define STUCK_NS     1000000 // time for which a device that accepts no packets is retried continuously

// Packets of a burst in one call to the device.
typedef struct chunk {
    dq_burst *b;
    uint32_t first, n; // packets first .. first + n of b are frames[0..n)
    bool own;          // the burst's buffers may be passed by reference
    bool plain;        // all are passed by reference, and b->bufs is not yet updated
    uint32_t copied;   // number of copied frames
    bool too_long;     // the next packet must be copied, and is longer than the engine's buffers
    struct rte_mbuf *frames[BURST_MAX];
} chunk;

static uint32_t frame_len(const dq_burst *b, uint32_t i) {
    uint32_t len = b->len[0][i];
    for (uint32_t s = 1; s < b->nseg; s++)
        len += b->len[s][i];
    return len;
}

// Returns the pool of a buffer; NULL: its region has none.
static pool *find_pool(bound *all, tx_state *t, uint32_t id) {
    pool *pl = t->pool;
    if (pl && id - pl->region->first_id < pl->region->conf.num_bufs) return pl;
    for (uint32_t i = 0; i < all->n; i++) {
        pl = &all->pools[i];
        if (pl->mp && id - pl->region->first_id < pl->region->conf.num_bufs) return t->pool = pl;
    }
    return NULL;
}

// Sets up the mbuf of the buffer of segment s of packet i; NULL: it has none.
static struct rte_mbuf *header_of(bound *all, tx_state *t, const dq_burst *b, uint32_t s, uint32_t i) {
    uint32_t id = b->bufs[s][i];
    pool *pl = find_pool(all, t, id);
    if (!pl) return NULL;
    struct rte_mbuf *m = pl->headers[id - pl->region->first_id];
    m->data_off = (uint16_t)(dqi_bytes(b, s, i) - (uint8_t *)m->buf_addr);
    m->data_len = (uint16_t)b->len[s][i];
    m->pkt_len = b->len[s][i];
    return m;
}

static void unlink_parts(struct rte_mbuf *m) {
    m->nb_segs = 1;
    while (m) {
        struct rte_mbuf *next = m->next;
        m->next = NULL;
        m = next;
    }
}

// Returns packet i as a chain of the burst's own buffers; NULL: it must be copied.
static struct rte_mbuf *own_frame(const dpdk_port *d, tx_state *t, const dq_burst *b, uint32_t i) {
    struct rte_mbuf *first = header_of(d->bound, t, b, 0, i), *last = first;
    for (uint32_t s = 1; first && s < b->nseg; s++) {
        if (b->len[s][i] == 0) continue;
        struct rte_mbuf *m = header_of(d->bound, t, b, s, i);
        if (!m) {
            unlink_parts(first);
            return NULL;
        }
        last->next = m;
        last = m;
        first->nb_segs++;
        first->pkt_len += m->data_len;
    }
    return first;
}

// Returns a copy of packet i in a buffer of the engine; NULL: none is free.
static struct rte_mbuf *copied_frame(const tx_state *t, const dq_burst *b, uint32_t i) {
    struct rte_mbuf *m = rte_pktmbuf_alloc(t->copies);
    for (uint32_t s = 0; m && s < b->nseg; s++) {
        char *to = rte_pktmbuf_append(m, (uint16_t)b->len[s][i]);
        memcpy(to, dqi_bytes(b, s, i), b->len[s][i]);
    }
    return m;
}

// Returns why a frame of this length cannot be sent; DQ_REASONS: it can.
static dq_reason refusal(const dpdk_port *d, uint32_t len) {
    if (len < RTE_ETHER_HDR_LEN) return DQ_DROP_SEND_ERROR; // for example, its buffer was freed
    return len > atomic_load_explicit(&d->max_frame, memory_order_relaxed) ? DQ_DROP_TOO_LONG : DQ_REASONS;
}

// Fast path without branches for whole bursts of one segment in buffers of one region. Returns false if any
// packet needs another path.
static bool fill_plain(const dpdk_port *d, tx_state *t, chunk *c, uint32_t max) {
    const dq_burst *b = c->b;
    const uint32_t n = max < d->chunk ? max : d->chunk, i = c->first;
    const pool *pl = find_pool(d->bound, t, b->bufs[0][i]);
    if (!pl) return false;
    const uint32_t *ids = b->bufs[0] + i, *len = b->len[0] + i;
    const uint64_t *off = b->off[0] + i;
    const uint32_t first = pl->region->first_id, num = pl->region->conf.num_bufs,
                   span = atomic_load_explicit(&d->max_frame, memory_order_relaxed) - RTE_ETHER_HDR_LEN;
    uint32_t odd = 0;
    for (uint32_t k = 0; k < n; k++)
        odd |= (uint32_t)(ids[k] - first >= num) | (uint32_t)(len[k] - RTE_ETHER_HDR_LEN > span);
    if (odd) return false;
    const uint64_t start = pl->region->offset;
    const uint32_t stride = pl->region->stride;
    struct rte_mbuf *const *headers = pl->headers;
    for (uint32_t k = 0; k < n; k++) {
        uint32_t at = ids[k] - first;
        struct rte_mbuf *m = headers[at];
        m->data_off = (uint16_t)(off[k] - start - (uint64_t)at * stride);
        m->pkt_len = len[k];
        m->data_len = (uint16_t)len[k];
        c->frames[k] = m;
    }
    c->n = n;
    c->copied = 0;
    return true;
}

// Prepares at most max packets, up to the first that cannot be sent or has no buffer.
static void fill(const dpdk_port *d, tx_state *t, chunk *c, uint32_t max) {
    const dq_burst *b = c->b;
    c->n = c->copied = 0;
    c->too_long = false;
    for (; c->n < max && c->n < d->chunk; c->n++) {
        uint32_t i = c->first + c->n;
        if (refusal(d, frame_len(b, i)) != DQ_REASONS) break;
        struct rte_mbuf *m = c->own ? own_frame(d, t, b, i) : NULL;
        c->too_long = !m && frame_len(b, i) > d->own_room;
        if (c->too_long) break;
        if (!m) {
            m = copied_frame(t, b, i);
            c->copied++;
        }
        if (!m) {
            c->copied--;
            break;
        }
        c->frames[c->n] = m;
    }
}

// Removes the buffers of frames sent by reference from the burst and restores unsent frames. Returns the
// number of copies sent.
static uint32_t settle(const tx_state *t, chunk *c, uint32_t sent) {
    dq_burst *b = c->b;
    uint32_t copies = 0;
    for (uint32_t i = 0; i < c->n; i++) {
        bool copy = c->copied > 0 && c->frames[i]->pool == t->copies;
        if (i < sent && copy) {
            copies++;
        } else if (i < sent) {
            for (uint32_t s = 0; s < b->nseg; s++)
                if (s == 0 || b->len[s][c->first + i] > 0) b->bufs[s][c->first + i] = DQI_NO_BUF;
        } else if (copy) {
            rte_pktmbuf_free(c->frames[i]);
        } else if (b->nseg > 1) {
            unlink_parts(c->frames[i]);
        }
    }
    return copies;
}

// Returns true if the device may take the burst's own buffers.
static bool goes_itself(const dpdk_port *d, const dq_burst *b) {
    return !d->own_only && dqi_burst_detachable(b) && (b->nseg == 1 || d->links);
}

// Removes the buffers of packets [from, to) from the burst, which has one segment.
static void disown(dq_burst *b, uint32_t from, uint32_t to) {
    for (uint32_t i = from; i < to; i++)
        b->bufs[0][i] = DQI_NO_BUF;
}

static uint64_t bytes_of(const dq_burst *b, uint32_t first, uint32_t n) {
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < b->nseg; s++)
        for (uint32_t i = first; i < first + n; i++)
            bytes += b->len[s][i];
    return bytes;
}

// Drops the first frame, which the driver cannot send; returns 1.
static uint32_t refused(dq_queue *q, chunk *c) {
    if (!c->plain) settle(q->engine, c, 0);
    c->plain = false; // the burst still has its buffers
    host->drop(&q->c, DQ_DROP_SEND_ERROR, 1);
    return 1;
}

// Sends at most a chunk of packets [first, first + n); returns the number sent or dropped. Sets *stuck if the
// device accepts no more for now.
static uint32_t send_some(dq_queue *q, chunk *c, uint32_t n, bool *stuck) {
    const dpdk_port *d = dpdk_of(dqi_port_of(q->iface));
    tx_state *t = q->engine;
    c->plain = c->own && c->b->nseg == 1 && fill_plain(d, t, c, n);
    if (!c->plain) fill(d, t, c, n);
    if (c->n == 0) {
        dq_reason why = c->too_long ? DQ_DROP_TOO_LONG : refusal(d, frame_len(c->b, c->first));
        *stuck = why == DQ_REASONS;
        if (!*stuck) host->drop(&q->c, why, 1);
        return *stuck ? 0 : 1;
    }
    if (d->waits)
        clock_ask(d, t, c->frames, c->n, c->b->timed ? c->b->tx_time + c->first : NULL, q->tx.now_ns);
    uint32_t ready = d->sums ? sums_ask(d, t, c->frames, c->n, c->b->sums) : c->n;
    *stuck = false;
    if (ready == 0) return refused(q, c);
    uint64_t bytes = c->n == c->b->n ? c->b->bytes : bytes_of(c->b, c->first, c->n);
    uint32_t sent = rte_eth_tx_burst(d->id, t->queue, c->frames, (uint16_t)ready);
    *stuck = sent < c->n;
    if (*stuck) bytes = bytes_of(c->b, c->first, sent);
    dqi_add(&q->c.out, sent);
    dqi_add(&q->c.out_bytes, bytes);
    if (!c->plain) dqi_add(&q->c.extra[DQ_EXTRA_COPIED], settle(t, c, sent));
    return sent;
}

// Packets wait until the link is up, because a NIC silently drops packets before that.
static bool has_link(dpdk_port *d, int64_t now) {
    if (atomic_load_explicit(&d->up, memory_order_relaxed)) return true;
    int64_t at = atomic_load_explicit(&d->link_looked, memory_order_relaxed);
    if (now - at < LINK_LOOK_NS || !atomic_compare_exchange_strong(&d->link_looked, &at, now)) return false;
    struct rte_eth_link link = {0};
    bool up = rte_eth_link_get_nowait(d->id, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
    atomic_store_explicit(&d->up, up, memory_order_relaxed);
    return up;
}

// Handles a device that accepts none of n packets: retries continuously for a while, then at growing
// intervals. If the kernel's interface is down or removed, the packets are dropped. Returns the number
// dropped.
static int wait(dq_queue *q, const dpdk_port *d, dq_burst *b, uint32_t first, uint32_t n) {
    tx_state *t = q->engine;
    if (t->stuck == 0) t->stuck = q->tx.now_ns;
    int64_t since = q->tx.now_ns - t->stuck;
    q->next_ns = q->tx.now_ns;
    if (since < STUCK_NS) return 0;
    q->next_ns += since / 8 < LINK_LOOK_NS ? since / 8 : LINK_LOOK_NS;
    if (q->tx.now_ns < t->next_look) return 0;
    t->next_look = q->tx.now_ns + LINK_LOOK_NS;
    int state = kernel_state(d);
    if (state == 0) return 0;
    host->drop(&q->c, DQ_DROP_SEND_ERROR, n);
    host->queue_error(q->errors, state, n);
    if (first + n == b->n) host->unref(b);
    return (int)n;
}

static uint64_t frame_bytes(struct rte_mbuf *const *frames, uint32_t n) {
    uint64_t bytes = 0;
    for (uint32_t k = 0; k < n; k++)
        bytes += frames[k]->data_len;
    return bytes;
}

// Returns true if the frames of a burst of handles can be sent without filling its columns.
static bool handles_go(const dpdk_port *d, const dq_burst *b) {
    return b->shortest >= RTE_ETHER_HDR_LEN &&
           b->longest <= atomic_load_explicit(&d->max_frame, memory_order_relaxed) && goes_itself(d, b);
}

// Sends packets of a burst of handles unchanged; returns the number sent.
static uint32_t send_handles(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n, bool *stuck) {
    const dpdk_port *d = dpdk_of(dqi_port_of(q->iface));
    tx_state *t = q->engine;
    uint64_t bytes = n == b->n ? b->bytes : frame_bytes(frames_of(b) + first, n);
    uint32_t done = 0;
    while (done < n && !*stuck) {
        struct rte_mbuf **frames = frames_of(b) + first + done;
        uint32_t k = n - done < d->chunk ? n - done : d->chunk;
        if (d->sums) sums_ask(d, t, frames, k, (dqi_sums){0});
        if (d->waits) clock_ask(d, t, frames, k, b->timed ? b->tx_time + first + done : NULL, q->tx.now_ns);
        uint32_t sent = rte_eth_tx_burst(d->id, t->queue, frames, (uint16_t)k);
        *stuck = sent < k;
        done += sent;
    }
    dqi_add(&q->c.out, done);
    dqi_add(&q->c.out_bytes, bytes - frame_bytes(frames_of(b) + first + done, n - done));
    if (first + done < b->n) {
        memset(frames_of(b) + first, 0, done * sizeof(struct rte_mbuf *));
    } else {
        b->to_columns = NULL;
        b->n_bufs = 0;
    }
    return done;
}

// Sends packets of a burst with columns; drops those that cannot be sent.
static uint32_t send_columns(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n, bool *stuck) {
    const dpdk_port *d = dpdk_of(dqi_port_of(q->iface));
    chunk c;
    c.b = b;
    c.own = goes_itself(d, b);
    uint32_t done = 0, from = first; // from: first sent packet whose buffer is still in the burst
    while (done < n && !*stuck) {
        c.first = first + done;
        uint32_t k = send_some(q, &c, n - done, stuck);
        if (!c.plain) {
            disown(b, from, c.first);
            from = c.first + k;
        }
        done += k;
    }
    if (from == 0 && done == b->n)
        b->n_bufs = 0;
    else
        disown(b, from, first + done);
    return done;
}

// Sends packets on the device queue, whose lock the caller holds.
static int send_locked(dq_queue *q, dpdk_port *d, dq_burst *b, uint32_t first, uint32_t n) {
    uint32_t done = 0;
    bool stuck = false;
    if (d->waits) clock_follow(d, q->session, &((tx_state *)q->engine)->clock, q->tx.now_ns);
    if (b->to_columns && handles_go(d, b)) done = send_handles(q, b, first, n, &stuck);
    if (done < n && !stuck) {
        if (b->to_columns) rx_columns(b);
        done += send_columns(q, b, first + done, n - done, &stuck);
    }
    if (first + done == b->n)
        host->unref(b);
    else if (done == 0)
        return wait(q, d, b, first, n);
    ((tx_state *)q->engine)->stuck = 0;
    return (int)done;
}

int tx_send(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    dpdk_port *d = dpdk_of(dqi_port_of(q->iface));
    tx_state *t = q->engine;
    if (!has_link(d, q->tx.now_ns)) {
        q->next_ns = q->tx.now_ns + LINK_LOOK_NS;
        return 0;
    }
    eal_join();
    if (!dqi_try_lock(&t->busy)) { // the queue that shares it sends
        q->next_ns = q->tx.now_ns;
        return 0;
    }
    int done = send_locked(q, d, b, first, n);
    dqi_unlock(&t->busy);
    return done;
}
