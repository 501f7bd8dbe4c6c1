// ethernet_rx.c: receive path of raw Ethernet (ethernet.h): reads device queues, classifies by flows and
// fills the queues' buffers.
//
// A read returns up to 256 pieces of a device queue. Each step processes all of them: restoring VLAN tags,
// classification and, for each destination queue, buffer allocation and copies. Each step updates the
// counters once.
#include "engine/ethernet/ethernet_rx.h"
#include "core/burst.h"
#include "core/clock.h"
#include "core/dq_burst.h"
#include "core/peers.h"
#include "cuda/mover.h"
#include "engine/ethernet/heads.h"
#include "packet/packet.h"
#include "pipeline/actions.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <string.h>

#define LEAST_READ 32 // pieces: at least one frame of maximum length, and few enough for the queue's inbox
#define ROUNDS     4  // limit of reads of a device queue that contains only frames of other queues
#define VLAN_TAG   4  // bytes

// ---- frames of a read -------------------------------------------------------------------------------------

// Reinserts a stripped VLAN tag behind the addresses, which move 4 bytes towards the front.
static void restore_tag(const dqi_eth_batch *d, dqi_piece *p) {
    if (p->vlan_tpid == 0 || p->len < DQI_ETH_LEN || dqi_on_gpu(d)) return;
    p->data -= VLAN_TAG;
    p->len += VLAN_TAG;
    memmove(p->data, p->data + VLAN_TAG, 12);
    dqi_put_be16(p->data + 12, p->vlan_tpid);
    dqi_put_be16(p->data + 14, p->vlan_tci);
}

// Groups n pieces into frames; returns the number of frames and their total bytes in *bytes.
static uint32_t frames(dqi_eth_batch *d, uint32_t n, uint64_t *bytes) {
    uint32_t m = 0;
    *bytes = 0;
    for (uint32_t i = 0; i < n; m++) {
        d->first[m] = i;
        restore_tag(d, &d->pieces[i]);
        uint32_t total = d->pieces[i].len;
        while (d->pieces[i++].more && i < n)
            total += d->pieces[i].len;
        d->total[m] = total;
        *bytes += total;
    }
    d->first[m] = n;
    return m;
}

// Fills the classifier's columns; returns the base address of their offsets.
static const uint8_t *line_up(dqi_eth_batch *d, uint32_t m) {
    uintptr_t base = UINTPTR_MAX;
    const bool far = dqi_on_gpu(d);
    for (uint32_t k = 0; k < m; k++) {
        const dqi_piece *p = &d->pieces[d->first[k]];
        d->off[k] = (uintptr_t)(far ? dqi_head_of(d->region, p->buf) : p->data);
        d->len[k] = far ? dqi_head_len(p->len) : p->len;
        base = d->off[k] < base ? d->off[k] : base;
    }
    for (uint32_t k = 0; k < m; k++)
        d->off[k] -= base;
    return (const uint8_t *)base;
}

static bool all_marked(const dqi_eth_batch *d, uint32_t m) {
    uint32_t k = 0;
    while (k < m && d->pieces[d->first[k]].flow != 0)
        k++;
    return k == m;
}

// Applies the device's classification to the frames that it marked. Software cannot classify frames whose
// headers the device has already rewritten.
static void take_marks(const dqi_port_queue *l, dqi_eth_batch *d, uint32_t m) {
    for (uint32_t k = 0; k < m; k++) {
        const dqi_piece *p = &d->pieces[d->first[k]];
        if (p->flow == 0 || !(l->port->marks || p->done)) continue;
        d->flow[k] = p->flow;
        d->queue[k] = (uint16_t)l->port->iface->rx[l->index]->conf.id;
    }
}

// Determines the destination queue of each of m frames. Returns false if all of them are dropped.
static bool classify(dqi_port_queue *l, dqi_eth_batch *d, uint32_t m) {
    dqi_port *p = l->port;
    if (dqi_flows_drops(&p->flows)) {
        dqi_port_drop(p, DQ_DROP_DROP_ALL, m);
        return false;
    }
    if (p->iface->ops->payload) {
        for (uint32_t k = 0; k < m; k++) {
            d->flow[k] = 0;
            d->queue[k] = d->pieces[d->first[k]].queue;
        }
        return true;
    }
    if (!p->marks || !all_marked(d, m)) {
        const uint8_t *base = line_up(d, m);
        dqi_flows_classify(&p->flows, p->iface, &l->rules, base, d->off, d->len, m, d->flow, d->queue);
    }
    if (p->marks || p->transforms) take_marks(l, d, m);
    return true;
}

// ---- into the buffers of a queue --------------------------------------------------------------------------

// Returns true if the device stored each part of frame k in the queue's region for it. A frame that ends in
// the first part has no buffers for the others and is copied; so is one that an action may shorten, because
// its parts would end at other offsets. Frames in GPU memory are never copied.
static bool is_split(const dq_queue *rx, const dqi_eth_batch *d, uint32_t k) {
    if (rx != d->split || (d->lead > 0 && !rx->device_only) ||
        d->first[k + 1] - d->first[k] != rx->conf.n_regions)
        return false;
    bool all = true;
    for (uint32_t j = d->first[k]; j < d->first[k + 1]; j++)
        all &= d->pieces[j].buf != DQI_NO_BUF;
    return all;
}

// Returns true if frame k already lies in the queue's buffers.
static bool is_in_place(const dq_queue *rx, const dqi_eth_batch *d, uint32_t k) {
    if (d->split) return is_split(rx, d, k);
    return d->pieces[d->first[k]].buf != DQI_NO_BUF && rx->conf.regions[0] == d->region &&
           rx->conf.n_regions == 1 && d->first[k + 1] - d->first[k] == 1;
}

// Returns the bytes that the queue's buffers provide for a packet.
static uint32_t space_of(const dq_queue *rx) {
    uint32_t space = 0;
    for (uint32_t s = 0; s < rx->conf.n_regions; s++)
        space += rx->conf.regions[s]->conf.buf_size;
    return space;
}

// Copies frame k into the buffers of packet i of b, filling its segments by their sizes.
static void copy_frame(const dq_queue *rx, dq_burst *b, uint32_t i, const dqi_eth_batch *d, uint32_t k) {
    uint8_t *base = b->session->core.base;
    uint32_t s = 0, at = 0, size = rx->conf.regions[0]->conf.buf_size + d->lead;
    for (uint32_t t = 0; t < b->nseg; t++)
        b->len[t][i] = 0;
    for (uint32_t j = d->first[k]; j < d->first[k + 1]; j++) {
        const dqi_piece *p = &d->pieces[j];
        for (uint32_t done = 0; done < p->len;) {
            uint32_t n = p->len - done < size - at ? p->len - done : size - at;
            dqi_copy_bytes(base + b->off[s][i] + at, p->data + done, n);
            b->len[s][i] += n;
            done += n;
            at += n;
            if (at < size) continue;
            at = 0;
            if (++s < b->nseg) size = rx->conf.regions[s]->conf.buf_size;
        }
    }
}

static void describe_frame(dq_burst *b, uint32_t i, const dqi_eth_batch *d, uint32_t k) {
    const dqi_piece *p = &d->pieces[d->first[k]];
    b->flow[i] = d->flow[k];
    b->ts[i] = p->ts != 0 ? p->ts : d->now;
    if (b->origins || p->origin.cut > 0 || p->origin.remark) dqi_burst_set_origin(b, i, &p->origin);
}

// Returns the region for frame k, which is longer than the queue's buffers; NULL: none is large enough.
static dq_region *long_region(const dq_queue *rx, const dqi_eth_batch *d, uint32_t k) {
    dq_region *r = rx->iface->conf.joined;
    return r && rx->conf.n_regions == 1 && d->total[k] <= r->conf.buf_size ? r : NULL;
}

// Stores frame k as packet i of b, in a buffer of the region for long frames. Returns false if none is free.
static bool put_long(dq_region *r, dq_burst *b, uint32_t i, const dqi_eth_batch *d, uint32_t k) {
    if (dqi_bufs_some(r, &b->bufs[0][i], 1) == 0) return false;
    describe_frame(b, i, d, k);
    b->off[0][i] = dqi_buf_off(r, b->bufs[0][i]);
    b->len[0][i] = d->total[k];
    uint8_t *to = b->session->core.base + b->off[0][i];
    for (uint32_t j = d->first[k]; j < d->first[k + 1]; to += d->pieces[j++].len)
        dqi_copy_bytes(to, d->pieces[j].data, d->pieces[j].len);
    return true;
}

// Stores frame k as packet i of b, in place or in the j-th of the batch's buffers.
static void put_frame(const dq_queue *rx, dq_burst *b, uint32_t i, dqi_eth_batch *d, uint32_t k,
                      bool in_place, uint32_t j) {
    dqi_piece *p = &d->pieces[d->first[k]];
    const uint64_t flags = (p->done ? DQI_OFF_DONE : 0) | (p->broken ? DQI_OFF_BROKEN : 0);
    describe_frame(b, i, d, k);
    for (uint32_t s = 0; in_place && s < b->nseg; s++, p++) {
        b->off[s][i] = (uint64_t)(p->data - b->session->core.base);
        b->len[s][i] = p->len;
        b->bufs[s][i] = p->buf;
        p->buf = DQI_NO_BUF;
    }
    if (in_place) {
        if (b->heads) {
            b->head[i] = (uint64_t)(dqi_head_of(rx->conf.regions[0], b->bufs[0][i]) - b->session->core.base);
            b->head_len[i] = dqi_head_len(b->len[0][i]);
        }
        b->off[0][i] |= flags;
        return;
    }
    for (uint32_t s = 0; s < b->nseg; s++) {
        b->bufs[s][i] = d->ids[s][j];
        b->off[s][i] = dqi_buf_off(rx->conf.regions[s], d->ids[s][j]);
    }
    if (p->peer) *dqi_buf_peer(rx->conf.regions[0], b->bufs[0][i]) = *p->peer;
    uint32_t *loop = dqi_buf_loop(rx->conf.regions[0], b->bufs[0][i]);
    if (loop) *loop = p->loop;
    b->off[0][i] -= d->lead;
    copy_frame(rx, b, i, d, k);
    b->off[0][i] |= flags;
}

// Allocates buffers for n copies into the batch; returns the number allocated.
static uint32_t take_buffers(const dq_queue *rx, dqi_eth_batch *d, uint32_t n) {
    uint32_t got = n;
    for (uint32_t s = 0; s < rx->conf.n_regions; s++) {
        uint32_t k = dqi_bufs_some(rx->conf.regions[s], d->ids[s], got);
        for (uint32_t t = 0; k < got && t < s; t++)
            dqi_bufs_free(rx->session, d->ids[t] + k, got - k);
        got = k;
    }
    return got;
}

// Counts n packets of rx, with their total bytes, as received and dropped.
static void drop_of(dq_queue *rx, dq_reason why, uint64_t n, uint64_t bytes) {
    if (n == 0) return;
    dqi_add_shared(&rx->c.in, n);
    dqi_add_shared(&rx->c.in_bytes, bytes);
    dqi_add_shared(&rx->c.dropped[why], n);
}

// Appends frames idx[0..n) to b, a burst of rx with room; drops those that have no buffer or do not fit.
// Returns the number appended, which the caller adds to c.in.
static uint32_t add_frames(dq_queue *rx, dq_burst *b, dqi_eth_batch *d, const uint32_t *idx, uint32_t n) {
    d->lead = atomic_load_explicit(&rx->rx.lead, memory_order_acquire);
    const uint32_t start = b->n, space = space_of(rx) + d->lead;
    uint32_t copies = 0, used = 0, far = 0, none = 0, cut = 0;
    uint64_t none_bytes = 0, cut_bytes = 0;
    b->device_only = rx->device_only;
    b->heads = rx->heads;
    for (uint32_t i = 0; i < n; i++)
        copies += !is_in_place(rx, d, idx[i]) && d->total[idx[i]] <= space;
    uint32_t have = copies > 0 ? take_buffers(rx, d, copies) : 0;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t k = idx[i];
        const bool in_place = is_in_place(rx, d, k);
        dq_region *more = in_place || d->total[k] <= space ? NULL : long_region(rx, d, k);
        if (more && put_long(more, b, b->n, d, k)) {
            far++;
            b->bytes += d->total[k];
            b->n++;
        } else if (!in_place && d->total[k] > space && !more) {
            cut++;
            cut_bytes += d->total[k];
        } else if (more || (!in_place && used == have)) {
            none++;
            none_bytes += d->total[k];
        } else {
            put_frame(rx, b, b->n, d, k, in_place, used);
            used += !in_place;
            b->bytes += d->total[k];
            b->n++;
        }
    }
    b->n_bufs = b->n;
    drop_of(rx, DQ_DROP_TOO_LONG, cut, cut_bytes);
    drop_of(rx, DQ_DROP_NO_PACKET_BUFFER, none, none_bytes);
    if (used + far > 0) dqi_add_shared(&rx->c.extra[DQ_EXTRA_COPIED], used + far);
    return b->n - start;
}

static uint64_t sum(const dqi_eth_batch *d, const uint32_t *idx, uint32_t n) {
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < n; i++)
        bytes += d->total[idx[i]];
    return bytes;
}

static void count_out(dqi_port *p, uint64_t n, uint64_t bytes) {
    dqi_add_shared(&p->c.out, n);
    dqi_add_shared(&p->c.out_bytes, bytes);
}

// Returns a descriptor of rx for packets read by other pollers, or NULL if rx needs the rest for its own.
static dq_burst *spare_burst(dq_queue *rx) {
    if (dqi_burst_pool_level(rx->bursts) <= rx->iface->n_rx + 1) return NULL;
    return dqi_burst_get(rx->bursts);
}

// Pushes at most batch_size frames into the inbox of rx.
static void push(dq_queue *rx, dqi_eth_batch *d, const uint32_t *idx, uint32_t n) {
    dqi_port *p = dqi_port_of(rx->iface);
    dqi_eth_queue *r = rx->engine;
    uint64_t bytes = sum(d, idx, n);
    if (dqi_inbox_full(rx, &r->box, rx->conf.regions[0]->conf.num_bufs)) {
        dqi_port_drop(p, DQ_DROP_QUEUE_FULL, n);
        return;
    }
    dq_burst *b = spare_burst(rx);
    if (!b) {
        drop_of(rx, DQ_DROP_NO_BURST_BUFFER, n, bytes);
        count_out(p, n, bytes);
        return;
    }
    uint32_t put = add_frames(rx, b, d, idx, n);
    uint64_t put_bytes = b->bytes;
    if (put > 0 && dqi_inbox_push(rx, &r->box, b)) {
        count_out(p, n, bytes);
        return;
    }
    dq_burst_unref(b);
    dqi_port_drop(p, DQ_DROP_QUEUE_FULL, put);
    count_out(p, n - put, bytes - put_bytes);
}

// Passes its frames idx[0..n) to rx: up to room of them into b (NULL if another queue's poller reads), the
// rest into the inbox. Returns the number added to b.
static uint32_t deliver(dq_queue *rx, dqi_eth_batch *d, uint32_t n, dq_burst *b, uint32_t room) {
    uint32_t at = 0, added = 0;
    if (b) {
        at = n < room ? n : room;
        uint64_t had = b->bytes;
        added = add_frames(rx, b, d, d->idx, at);
        dqi_add_shared(&rx->c.in, added);
        dqi_add_shared(&rx->c.in_bytes, b->bytes - had);
        count_out(dqi_port_of(rx->iface), at, sum(d, d->idx, at));
    }
    for (uint32_t k; at < n; at += k) {
        k = n - at < rx->conf.batch_size ? n - at : rx->conf.batch_size;
        push(rx, d, d->idx + at, k);
    }
    return added;
}

// ---- reading a device queue -------------------------------------------------------------------------------

static void deliver_all(dqi_port *p, dqi_eth_batch *d, uint32_t m, dq_queue *q, dq_burst *b, uint32_t room,
                        uint32_t *added) {
    const dq_iface *i = p->iface;
    uint32_t given = 0;
    for (uint32_t k = 0, left = m; k < i->n_rx && left > 0; k++) {
        dq_queue *rx = i->rx[k];
        uint32_t n = 0;
        for (uint32_t f = 0; f < m; f++) {
            d->idx[n] = f;
            n += d->queue[f] == rx->conf.id && !dqi_queue_gone(rx);
        }
        left -= n;
        given += n;
        if (n > 0) *added += deliver(rx, d, n, rx == q ? b : NULL, room);
    }
    dqi_port_drop(p, DQ_DROP_NO_FLOW, m - given);
}

// Frees the device's buffers that no queue took.
static void free_pieces(dqi_port *p, dqi_eth_batch *d, uint32_t n) {
    uint32_t left = 0, *ids = d->ids[0];
    for (uint32_t i = 0; i < n && d->region; i++) {
        ids[left] = d->pieces[i].buf;
        left += ids[left] != DQI_NO_BUF;
    }
    if (left > 0) dqi_bufs_free(p->iface->session, ids, left);
}

// Reads pieces into the batch of the device queue.
static dqi_eth_batch *take(dqi_port_queue *l, uint32_t most, uint32_t *n) {
    l->batch->region = l->region;
    l->batch->split = l->split;
    *n = l->port->driver->read(l, l->batch->pieces, most);
    return l->batch;
}

// Reads a device queue once on behalf of q, whose frames go to b. Returns the number of frames read. The
// caller holds the device queue lock.
static uint32_t read_once(dqi_port_queue *l, dq_queue *q, dq_burst *b, uint32_t room, uint32_t *added) {
    dqi_port *p = l->port;
    uint32_t most = room < LEAST_READ ? LEAST_READ : room, n;
    if (most > DQI_ETH_PIECES) most = DQI_ETH_PIECES;
    dqi_eth_batch *d = l->heads ? dqi_eth_heads_read(l, most, &n) : take(l, most, &n);
    if (n == 0) return 0;
    uint64_t bytes;
    d->now = p->stamps == DQ_STAMPS_FILE ? 0 : dq_now(q->session); // times of a file are used unchanged
    uint32_t m = frames(d, n, &bytes);
    dqi_add_shared(&p->c.in, m);
    dqi_add_shared(&p->c.in_bytes, bytes);
    if (l->heads && dqi_eth_heads_lost(l))
        dqi_port_drop(p, DQ_DROP_DEVICE_LOST, m);
    else if (classify(l, d, m))
        deliver_all(p, d, m, q, b, room, added);
    free_pieces(p, d, n);
    if (!l->heads) p->driver->release(l);
    return m;
}

// Receives from the inbox up to room packets.
static uint32_t take_inbox(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_inbox *x = &((dqi_eth_queue *)q->engine)->box;
    uint32_t total = 0;
    while (total < room && (x->head || dqi_inbox_next(x)))
        total += (uint32_t)dqi_inbox_take(q, x, b, room - total);
    return total;
}

// Receives frames of the device queue, after those that other pollers have pushed into the inbox. Sets *busy
// if frames of other queues were read.
static uint32_t look(dqi_port_queue *l, dq_queue *q, dq_burst **b, uint32_t room, bool *busy) {
    if (atomic_load_explicit(&l->busy.taken, memory_order_relaxed) != 0 || !dqi_try_lock(&l->busy)) return 0;
    uint32_t total = take_inbox(q, b, room), m = 1;
    l->reader = q;
    for (int k = 0; k < ROUNDS && total == 0 && m > 0; k++) {
        m = read_once(l, q, *b, room, &total);
        *busy |= m > 0;
    }
    dqi_unlock(&l->busy);
    return total;
}

int dqi_eth_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_port *p = dqi_port_of(q->iface);
    const dqi_eth_queue *r = q->engine;
    bool busy = false;
    uint32_t total = take_inbox(q, b, room);
    if (r->own && total < room) total += look(r->own, q, b, room - total, &busy);
    for (uint32_t k = 0; k < p->n_queues && total < room; k++)
        total += look(&p->queues[r->order[k]], q, b, room - total, &busy);
    if (total == 0 && busy) q->next_ns = 0; // more frames may be waiting
    return (int)total;
}

// Empties the device queues on behalf of q, which has no free descriptor: its packets go into its inbox, or
// are dropped and counted. Returns true if there were any.
static bool drain(dq_queue *q) {
    dqi_port *p = dqi_port_of(q->iface);
    dq_burst *none = NULL;
    bool busy = false;
    dqi_port_queue *own = ((dqi_eth_queue *)q->engine)->own;
    if (own) look(own, q, &none, 0, &busy);
    for (uint32_t k = 0; k < p->n_queues; k++)
        look(&p->queues[k], q, &none, 0, &busy);
    return busy;
}

int64_t dqi_eth_flush_inbox(dq_queue *q) { return dqi_inbox_flush(q, &((dqi_eth_queue *)q->engine)->box); }

// Returns the remaining timeout for heads, measured from the stop.
static int64_t patience_of(const dq_session *s) {
    return dqi_receives(s) ? s->end_ns : s->end_ns - (dq_now(s) - dqi_stop_time(s));
}

// Waits briefly for heads in flight and subtracts the time from *patience. Returns false if there are none.
static bool await_heads(dqi_port *p, int64_t *patience) {
    bool coming = false;
    for (uint32_t l = 0; l < p->n_queues; l++) {
        if (!dqi_eth_heads_coming(&p->queues[l])) continue;
        coming = true;
        if (*patience <= 0) dqi_eth_heads_give_up(&p->queues[l], p->iface->session->end_ns);
    }
    int64_t from = dqi_mono_ns();
    if (coming && *patience > 0) dqi_mover_nap();
    *patience -= dqi_mono_ns() - from;
    return coming;
}

int64_t dqi_eth_flush(dq_queue *q) {
    enum { MOST = 4096 }; // reads; limits a flush while frames keep arriving
    dqi_eth_queue *r = q->engine;
    int64_t n = dqi_inbox_flush(q, &r->box), patience = patience_of(q->session);
    bool unread =
        !dqi_receives(q->session) && !atomic_load(&q->rx.consumed); // frames stay in the device's ring
    for (int k = 0; k < MOST && !unread;) {
        dq_burst *b = dqi_burst_get(q->bursts);
        if (!b && drain(q)) {
            k++;
            continue;
        }
        if (!b) break;
        q->next_ns = INT64_MAX;
        int got = dqi_eth_rx(q, &b, q->conf.batch_size);
        dqi_drop(&q->c, q->session->state < DQI_STOPPED ? DQ_DROP_FLUSHED : DQ_DROP_STOPPED, (uint64_t)got);
        dq_burst_unref(b);
        n += got;
        k += got > 0 || q->next_ns == 0;
        if (got == 0 && q->next_ns != 0 && !await_heads(dqi_port_of(q->iface), &patience)) break;
    }
    return n + dqi_inbox_flush(q, &r->box);
}
