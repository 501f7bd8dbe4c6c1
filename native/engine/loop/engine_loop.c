// engine_loop.c: the loop engine: interfaces connected by a simulated wire; needs no NIC and no privileges.
//
// A single interface receives its own packets, two form a cable, more form a hub. The sender's poller passes
// packets through the wire (wire.c: injected faults, rate, delay), classifies them by the receiver's rules
// and pushes them into the inbox of a receive queue, which the receiver's poller empties. If both regions
// have the same kind and size and the burst has no other reference, it is passed by reference with its
// buffers; otherwise the receiver copies the packets into its own region.
#include "core/err.h"
#include "core/region.h"
#include "engine/loop/loop.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/responder.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// ---- rules ------------------------------------------------------------------------------------------------

static int loop_change_rules(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                             uint32_t n_add, dq_diag *diag) {
    return dqi_flows_change(&((loop_iface *)i->engine)->flows, i, gone, n_gone, add, n_add, diag);
}

static int loop_drop_all(dq_iface *i, bool drop) {
    dqi_flows_drop_all(&((loop_iface *)i->engine)->flows, drop);
    return DQ_OK;
}

static int loop_mac(const dq_iface *i, uint8_t mac[6]) {
    const uint8_t m[6] = {0x02, 0, 0, 0, (uint8_t)((i->index + 1) >> 8), (uint8_t)(i->index + 1)};
    memcpy(mac, m, sizeof m);
    return DQ_OK;
}

// ---- receive ----------------------------------------------------------------------------------------------

// Whether buffers of one region may be received in place of the other's. Packets for memory of the
// application go into it.
static bool alike(const dq_region *from, const dq_region *to) {
    return from->conf.kind == to->conf.kind && from->conf.buf_size == to->conf.buf_size &&
           (from == to || (!from->bound && !to->bound));
}

static bool same_shape(const dq_queue *q, const dq_burst *b) {
    if (b->nseg != q->conf.n_regions || b->grown || !dqi_burst_detachable(b)) return false;
    for (uint32_t s = 0; s < b->nseg; s++) {
        const dq_region *from = dqi_buf_region(q->session, b->bufs[s][0]), *to = q->conf.regions[s];
        if (!from || !alike(from, to)) return false;
    }
    return true;
}

static bool next_head(dq_queue *q, loop_rx *lr) {
    if (!lr->box.head) {
        if (!dqi_inbox_next(&lr->box)) return false;
        lr->by_reference = same_shape(q, lr->box.head);
    }
    int64_t due = lr->box.head->due_ns;
    if (due != 0 && due > dq_now(q->session)) {
        if (due < q->next_ns) q->next_ns = due;
        return false;
    }
    return true;
}

static uint32_t lead_of(const dq_queue *q) { return atomic_load_explicit(&q->rx.lead, memory_order_acquire); }

// Returns the capacity of a packet's first buffer, including lead_of bytes in front of the buffer's start.
static uint32_t first_size(const dq_queue *q) { return q->conf.regions[0]->conf.buf_size + lead_of(q); }

// Copies packet i of `in` into the buffers at the end of b, filling its segments by their sizes. Returns
// false if the packet is too long.
static bool copy_packet(dq_queue *q, dq_burst *b, const dq_burst *in, uint32_t i) {
    uint32_t d = 0, at = 0, k = b->n, size = first_size(q);
    b->off[0][k] -= lead_of(q);
    for (uint32_t s = 0; s < b->nseg; s++)
        b->len[s][k] = 0;
    for (uint32_t s = 0; s < in->nseg; s++) {
        const uint8_t *p = dqi_device_bytes(in, s, i);
        for (uint32_t left = in->len[s][i]; left > 0;) {
            if (d == b->nseg) return false;
            uint32_t n = left < size - at ? left : size - at;
            memcpy(dqi_device_bytes(b, d, k) + at, p, n);
            b->len[d][k] += n;
            p += n;
            left -= n;
            at += n;
            if (at < size) continue;
            at = 0;
            if (++d < b->nseg) size = q->conf.regions[d]->conf.buf_size;
        }
    }
    return true;
}

// Returns true if packets [from, from + n) have a single segment on both sides and fit into the buffers.
static bool fits_flat(const dq_queue *q, const dq_burst *in, uint32_t from, uint32_t n) {
    uint32_t longest = 0;
    for (uint32_t i = 0; i < n; i++)
        longest = in->len[0][from + i] > longest ? in->len[0][from + i] : longest;
    return in->nseg == 1 && q->conf.n_regions == 1 && longest <= first_size(q) && !in->device_only;
}

// Copies n packets checked by fits_flat into the buffers taken for b: first the columns, then the bytes.
static void copy_flat(dq_queue *q, dq_burst *b, const dq_burst *in, uint32_t from, uint32_t n) {
    const dq_region *r = q->conf.regions[0];
    const uint32_t k = b->n, *len = in->len[0] + from;
    const uint64_t *src = in->off[0] + from;
    uint64_t *dst = b->off[0] + k, bytes = 0;
    uint8_t *base = b->session->core.base;
    const uint32_t first = r->first_id, stride = r->stride, *ids = b->bufs[0] + k;
    const uint64_t start = dqi_buf_off(r, first) - lead_of(q);
    for (uint32_t i = 0; i < n; i++)
        dst[i] = start + (uint64_t)(ids[i] - first) * stride;
    memcpy(b->len[0] + k, len, n * sizeof *len);
    memcpy(b->flow + k, in->flow + from, n * sizeof *b->flow);
    memcpy(b->ts + k, in->ts + from, n * sizeof *b->ts);
    dqi_burst_copy_imms(b, k, in, from, n);
    for (uint32_t i = 0; i < n; i++) {
        bytes += len[i];
        dqi_copy_bytes(base + dst[i], base + src[i], len[i]);
    }
    b->bytes += bytes;
    b->n += n;
}

// Copies packet by packet: several segments or oversized packets. Returns the number of buffers used.
static uint32_t copy_each(dq_queue *q, dq_burst *b, const dq_burst *in, uint32_t first, uint32_t n,
                          uint32_t bufs) {
    uint32_t used = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t from = first + i, k = b->n;
        if (used == bufs) {
            dqi_drop(&q->c, DQ_DROP_NO_PACKET_BUFFER, 1);
            continue;
        }
        for (uint32_t s = 0; s < b->nseg; s++)
            b->off[s][k] = dqi_buf_off(q->conf.regions[s], b->bufs[s][k]);
        if (!copy_packet(q, b, in, from)) {
            dqi_drop(&q->c, DQ_DROP_TOO_LONG, 1);
            continue;
        }
        b->flow[k] = in->flow[from];
        b->ts[k] = in->ts[from];
        dqi_burst_copy_imms(b, k, in, from, 1);
        for (uint32_t s = 0; s < b->nseg; s++)
            b->bytes += b->len[s][k];
        b->n++;
        used++;
    }
    return used;
}

static int take_by_copy(dq_queue *q, loop_rx *lr, dq_burst *b, uint32_t room) {
    const dq_burst *in = lr->box.head;
    const uint32_t at = lr->box.pos, n = in->n - at < room ? in->n - at : room;
    uint32_t bufs = dqi_burst_take(b, q->conf.regions, n), start = b->n, used = bufs;
    if (bufs == n && fits_flat(q, in, at, n))
        copy_flat(q, b, in, at, n);
    else
        used = copy_each(q, b, in, at, n, bufs);
    for (uint32_t s = 0; s < b->nseg; s++)
        dqi_bufs_free(q->session, b->bufs[s] + b->n, bufs - used);
    b->n_bufs = b->n;
    dqi_add(&q->c.extra[DQ_EXTRA_COPIED], b->n - start);
    dqi_inbox_advance(&lr->box, n);
    return (int)(b->n - start);
}

static int loop_rx_poll(dq_queue *q, dq_burst **b, uint32_t room) {
    loop_rx *lr = q->engine;
    int total = 0;
    while (room > 0 && next_head(q, lr)) {
        int n = lr->by_reference ? dqi_inbox_take(q, &lr->box, b, room) : take_by_copy(q, lr, *b, room);
        total += n;
        room -= (uint32_t)n;
    }
    return total;
}

static uint64_t loop_held(dq_queue *q) {
    if (!q->engine || q->conf.dir != DQ_RX) return 0;
    return dqi_inbox_held(&((loop_rx *)q->engine)->box);
}

static uint32_t loop_holds(const dq_queue *q, const dq_burst *of) {
    return q->engine ? dqi_inbox_holds(&((const loop_rx *)q->engine)->box, of) : 0;
}

static int64_t loop_flush(dq_queue *q) { return dqi_inbox_flush(q, &((loop_rx *)q->engine)->box); }

// ---- open and close ---------------------------------------------------------------------------------------

// Writes the interfaces that receive from `i` (itself if it is the only one); returns their number.
static uint32_t find_peers(dq_iface *i, dq_iface **peers) {
    uint32_t n = 0;
    for (uint32_t k = 0; k < i->session->n_ifaces; k++) {
        dq_iface *o = i->session->ifaces[k];
        if (o->ops == i->ops && o != i) peers[n++] = o;
    }
    if (n == 0) peers[n++] = i;
    return n;
}

static void report_how(const dq_queue *tx, const dq_iface *to) {
    for (uint32_t k = 0; k < to->n_rx; k++) {
        const dq_queue *rx = to->rx[k];
        bool same = rx->conf.n_regions == tx->conf.n_regions;
        for (uint32_t s = 0; same && s < rx->conf.n_regions; s++)
            same = alike(tx->conf.regions[s], rx->conf.regions[s]);
        dqi_note(tx->session, "%s.%s to %s.%s: %s", tx->iface->conf.name, tx->conf.name, to->conf.name,
                 rx->conf.name,
                 same ? "by reference" : "copy: the memory regions differ in kind, size or owner");
    }
}

// Returns the number of bursts that can be in flight to a receive queue; its ring overflows only when
// forwarded bursts accumulate.
static uint32_t ring_size(const dq_session *s) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        n += 2 * s->ifaces[i]->n_tx * s->core.conf.tx_meta_buffers +
             s->ifaces[i]->n_rx * s->core.conf.rx_meta_buffers;
    return n > 65536 ? 65536 : n;
}

// Makes the ring of a receive queue, or the wire of a transmit queue; a queue opened again keeps them.
static int open_queue(dq_queue *q, dq_diag *diag) {
    if (q->conf.dir == DQ_TX) {
        bool again = q->engine != NULL;
        if (again ? dqi_wire_reopen(q->engine) == 0 : (q->engine = dqi_wire_new(q)) != NULL) return DQ_OK;
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "queue %s: no memory for its wire", q->conf.name);
    }
    if (q->engine) return DQ_OK;
    loop_rx *lr = calloc(1, sizeof *lr);
    if (!lr || !dqi_inbox_init(&lr->box, ring_size(q->session))) {
        free(lr);
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "queue %s: no memory for its ring", q->conf.name);
    }
    q->engine = lr;
    return DQ_OK;
}

static int open_queues(dq_iface *i, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t k = 0; err == DQ_OK && k < i->n_rx; k++)
        err = open_queue(i->rx[k], diag);
    for (uint32_t k = 0; err == DQ_OK && k < i->n_tx; k++)
        err = open_queue(i->tx[k], diag);
    return err;
}

static bool loop_queue_empty(const dq_queue *q) { return q->conf.dir == DQ_RX || dqi_wire_empty(q->engine); }

static int loop_open(dq_iface *i, dq_diag *diag) {
    loop_iface *li = calloc(1, sizeof *li);
    if (!li) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    i->engine = li;
    li->n_peers = find_peers(i, li->peers);
    int err = open_queues(i, diag);
    for (uint32_t k = 0; err == DQ_OK && k < i->n_tx; k++)
        for (uint32_t p = 0; p < li->n_peers; p++)
            report_how(i->tx[k], li->peers[p]);
    return err;
}

static int loop_answers(const dq_iface *i, dq_diag *diag) {
    (void)i, (void)diag;
    return DQ_OK;
}

// The wire carries each packet's immediate value beside its bytes.
static bool loop_carries_imm(const dq_queue *q, uint32_t value) {
    (void)q, (void)value;
    return true;
}

// Packets already on the wire still arrive, so stopping needs no action.
static void loop_stop(dq_iface *i) { (void)i; }

static void loop_close(dq_iface *i) {
    loop_iface *li = i->engine;
    for (uint32_t k = 0; k < i->n_rx; k++) {
        loop_rx *lr = i->rx[k]->engine;
        if (!lr) continue;
        loop_flush(i->rx[k]);
        dqi_inbox_free(&lr->box);
        free(lr);
        i->rx[k]->engine = NULL;
    }
    for (uint32_t k = 0; k < i->n_tx; k++)
        dqi_wire_free(i->tx[k]->engine);
    dqi_flows_free(&li->flows);
    free(li);
    i->engine = NULL;
}

static const dqi_flow_ops loop_flows = {.change_rules = loop_change_rules, .drop_all = loop_drop_all};

static const dqi_link_ops loop_link = {
    .mac = loop_mac, .multicast = dqi_responder_multicast, .answers = loop_answers};

const dqi_engine_ops dqi_engine_loop = {
    .name = "loop",
    .waits = true,
    .virtual_clock = true,
    .reaches_device_only = true,
    .carries_imm = loop_carries_imm,
    .queue_open = open_queue,
    .queue_empty = loop_queue_empty,
    .open = loop_open,
    .stop = loop_stop,
    .close = loop_close,
    .rx = loop_rx_poll,
    .tx = dqi_wire_send,
    .reap = dqi_wire_reap,
    .drop_rest = dqi_wire_drop_rest,
    .held = loop_held,
    .holds = loop_holds,
    .flush = loop_flush,
    .lines = dqi_wire_lines,
    .flows = &loop_flows,
    .link = &loop_link,
};
