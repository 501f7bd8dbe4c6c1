// rx.c: receives frames from a device's queue, as pieces for the common part or directly into a burst's
// columns.
#include "dpdk.h"
#include "rx_summary.h"

#include <string.h>

// Returns true when, after the stop, the frames that the device's ring contained have been read.
static bool ended(const dpdk_port *d, const rx_state *s) { return d->stopping && s->last_frames == 0; }

// Reads at most max (not more than d->most) frames from the device; returns their number.
static uint32_t fetch(const dpdk_port *d, rx_state *s, struct rte_mbuf **to, uint32_t max) {
    if (ended(d, s)) return 0;
    eal_join();
    uint32_t n = rte_eth_rx_burst(d->id, s->queue, to, (uint16_t)max);
    if (d->stopping) s->last_frames = n == 0 || n > s->last_frames ? 0 : s->last_frames - n;
    return n;
}

// Returns a frame's time from the device's clock or from the file that the driver plays; 0: none. Some of
// those drivers count microseconds, others nanoseconds.
static int64_t time_of(const dpdk_port *d, const rx_state *s, const struct rte_mbuf *m) {
    if (d->ts_offset < 0 || !(m->ol_flags & d->ts_flag)) return 0;
    if (d->stamps)
        return clock_time(&s->clock, *RTE_MBUF_DYNFIELD(m, d->ts_offset, const rte_mbuf_timestamp_t *));
    int64_t t = (int64_t)*RTE_MBUF_DYNFIELD(m, d->ts_offset, const rte_mbuf_timestamp_t *);
    return t < INT64_C(100000000000000000) ? t * 1000 : t;
}

static void piece_of(const struct rte_mbuf *m, dqi_piece *out) {
    *out = (dqi_piece){
        .data = rte_pktmbuf_mtod(m, uint8_t *),
        .len = m->data_len,
        .buf = DQI_NO_BUF,
        .more = m->next != NULL,
    };
}

// Extracts the flow id and the executed actions from the device's mark (rule.c).
static void take_mark(const struct rte_mbuf *m, dqi_piece *out) {
    const uint64_t l4 = m->ol_flags & RTE_MBUF_F_RX_OUTER_L4_CKSUM_MASK;
    out->flow = m->hash.fdir.hi & ~MARK_DONE;
    out->done = m->hash.fdir.hi & MARK_DONE;
    out->broken = out->done && ((m->ol_flags & RTE_MBUF_F_RX_OUTER_IP_CKSUM_BAD) ||
                                l4 == RTE_MBUF_F_RX_OUTER_L4_CKSUM_BAD);
}

// Writes the pieces of one frame; returns their number.
static uint32_t pieces_of(const dpdk_port *d, const rx_state *s, const struct rte_mbuf *m, dqi_piece *out) {
    uint32_t n = 0;
    for (const struct rte_mbuf *part = m; part; part = part->next)
        piece_of(part, &out[n++]);
    out->ts = time_of(d, s, m);
    if (m->ol_flags & RTE_MBUF_F_RX_FDIR_ID) take_mark(m, out);
    if (m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED && !out->done) {
        out->vlan_tci = m->vlan_tci;
        out->vlan_tpid = RTE_ETHER_TYPE_VLAN;
    }
    return n;
}

// Returns true if each part of the frame is in a buffer of its receive region.
static inline bool is_ours(const dpdk_port *d, const struct rte_mbuf *m) {
    if (m->nb_segs > d->n_parts) return false;
    uint32_t k = 0;
    for (; m && m->pool == d->parts[k]->mp; m = m->next)
        k++;
    return m == NULL;
}

// Transfers the buffers of the frame's parts to the reader and resets their mbufs to single segments without
// flags, as net_ring passes them to the next receiver unchanged.
static void hand_over(const dpdk_port *d, struct rte_mbuf *m, dqi_piece *pieces) {
    m->nb_segs = 1;
    m->ol_flags &= RTE_MBUF_F_EXTERNAL;
    for (uint32_t k = 0; m; k++) {
        struct rte_mbuf *next = m->next;
        const dq_region *r = d->parts[k]->region;
        pieces[k].buf = pool_id(d->parts[k], m);
        pieces[k].data += r->base + r->offset - d->parts[k]->start; // 0 except in GPU memory
        m->next = NULL;
        m = next;
    }
}

uint32_t rx_read(dqi_port_queue *l, dqi_piece *out, uint32_t max) {
    const dpdk_port *d = dpdk_of(l->port);
    rx_state *s = l->state;
    const dq_session *session = l->port->iface->session;
    uint32_t n = 0;
    if (d->stamps) clock_follow(d, session, &s->clock, host->now(session));
    if (s->first == s->n && d->started) { // a session that never started is flushed, too
        s->first = 0;
        s->n = fetch(d, s, s->got, RTE_MIN(max, d->most));
    }
    while (s->first < s->n) {
        struct rte_mbuf *m = s->got[s->first];
        if (n + m->nb_segs > max) break;
        s->first++;
        dqi_piece *head = &out[n];
        n += pieces_of(d, s, m, head);
        if (is_ours(d, m))
            hand_over(d, m, head);
        else
            s->lent[s->n_lent++] = m;
    }
    return n;
}

void rx_release(dqi_port_queue *l) {
    rx_state *s = l->state;
    if (s->n_lent > 0) rte_pktmbuf_free_bulk(s->lent, s->n_lent);
    s->n_lent = 0;
}

// Returns true for a frame that a burst can use unchanged: one segment in a buffer of the region.
static inline bool is_plain(const struct rte_mempool *mp, const struct rte_mbuf *m) {
    return (m->pool == mp) & (m->nb_segs == 1) & !(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED);
}

// Appends frames to b, up to the first that is not plain; returns their number.
static uint32_t append(const pool *pl, struct rte_mbuf *const *frames, uint32_t n, dq_burst *b) {
    const uint8_t *const base = b->session->core.base, *const start = base + pl->region->offset;
    const struct rte_mempool *const mp = pl->mp;
    const uint64_t inverse = pl->inverse;
    const uint32_t first = pl->region->first_id, k = b->n;
    uint64_t *restrict off = b->off[0] + k;
    uint32_t *restrict len = b->len[0] + k, *restrict bufs = b->bufs[0] + k, i = 0;
    uint64_t bytes = 0;
    for (; i < n; i++) {
        const struct rte_mbuf *m = frames[i];
        if (!is_plain(mp, m)) break;
        const uint8_t *buf = m->buf_addr;
        off[i] = (uint64_t)(buf - base) + m->data_off;
        len[i] = m->data_len;
        bufs[i] = first + (uint32_t)(((unsigned __int128)(uint64_t)(buf - start) * inverse) >> 64);
        bytes += m->data_len;
    }
    memset(b->flow + k, 0, i * sizeof *b->flow);
    b->n = b->n_bufs = k + i;
    b->bytes += bytes;
    return i;
}

// Returns the number of plain frames before the first that is not.
static uint32_t count_plain(const struct rte_mempool *mp, struct rte_mbuf *const *frames, uint32_t n) {
    uint32_t k = 0;
    while (k < n && is_plain(mp, frames[k]))
        k++;
    return k;
}

// Appends n frames whose handles are already in b, behind its own, up to the first that is not plain.
static uint32_t append_handles(const pool *pl, uint32_t n, dq_burst *b) {
    struct rte_mbuf *const *frames = frames_of(b) + b->n;
    look of = look_at(pl->mp, frames, n);
    if (!of.plain) {
        n = count_plain(pl->mp, frames, n);
        of = look_at(pl->mp, frames, n);
    }
    b->shortest = RTE_MIN(b->shortest, of.shortest);
    b->longest = RTE_MAX(b->longest, of.longest);
    b->n = b->n_bufs = b->n + n;
    b->bytes += of.bytes;
    return n;
}

void rx_columns(dq_burst *b) {
    const dpdk_port *d = dpdk_of(dqi_port_of(b->queue->iface));
    struct rte_mbuf **frames = frames_of(b);
    const uint8_t *base = b->session->core.base;
    for (uint32_t i = 0; i < b->n; i++) {
        const struct rte_mbuf *m = frames[i];
        b->off[0][i] = m ? (uint64_t)((const uint8_t *)m->buf_addr - base) + m->data_off : 0;
        b->len[0][i] = m ? m->data_len : 0;
        b->bufs[0][i] = m ? pool_id(d->rx_pool, m) : DQI_NO_BUF;
    }
    memset(b->flow, 0, b->n * sizeof *b->flow);
    for (uint32_t i = 1; i < RTE_MIN(b->same_ts, b->n); i++)
        b->ts[i] = b->ts[0];
    b->to_columns = NULL;
}

// Reads frames of one call into b, at most max; returns the number read. Frames that b cannot use unchanged
// are left to rx_read.
static uint32_t read_into(const dpdk_port *d, rx_state *s, dq_burst *b, uint32_t max) {
    struct rte_mbuf **to = b->to_columns ? frames_of(b) + b->n : s->got;
    uint32_t n = fetch(d, s, to, max), k;
    if (!b->to_columns) {
        s->n = n;
        s->first = append(d->rx_pool, s->got, n, b);
        return n;
    }
    k = append_handles(d->rx_pool, n, b);
    if (k < n) memcpy(s->got, to + k, (n - k) * sizeof *to);
    s->first = 0;
    s->n = n - k;
    return n;
}

// Sets the time of the packets from start on. The first handles share one value until they get columns.
static void note_time(dq_burst *b, uint32_t start, int64_t now) {
    const uint32_t end = b->to_columns && start == 0 ? 1 : b->n;
    if (start == 0) b->same_ts = b->n;
    for (uint32_t i = start; i < end; i++)
        b->ts[i] = now;
}

uint32_t rx_receive(dqi_port *p, dq_burst *b, uint32_t room) {
    const dpdk_port *d = dpdk_of(p);
    rx_state *s = p->queues[0].state;
    if (d->ts_offset >= 0) return 0; // only rx_read reads timestamps
    const uint32_t start = b->n;
    if (start == 0) {
        b->to_columns = b->queue->rx.handles ? rx_columns : NULL;
        b->shortest = UINT32_MAX;
        b->longest = 0;
    }
    while (b->n - start < room && s->first == s->n) { // remaining frames are left to rx_read
        uint32_t left = room - (b->n - start), ask = RTE_MIN(RTE_MIN(left, d->chunk), d->most);
        if (read_into(d, s, b, ask) < ask) break;
    }
    uint32_t got = b->n - start;
    if (got == 0) return 0;
    note_time(b, start, host->now(b->session));
    return got;
}
