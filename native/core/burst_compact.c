// burst_compact.c: compaction of bursts that are kept for long. A packet that is a slice keeps its whole
// super-buffer out of the pool: a script that keeps one packet in a hundred would soon exhaust the region.
// Such packets are copied to separate buffers, in groups that kept packets share.
#include "core/burst.h"
#include "core/dq_burst.h"
#include "core/peers.h"

#include <string.h>

// Returns a buffer of the region's spare group with a new reference on the group, or DQI_NO_BUF.
static uint32_t spare_buf(dq_region *r) {
    dqi_lock(&r->spare_lock);
    uint32_t id = dqi_spare_take(r, &r->spare);
    if (id != DQI_NO_BUF) dqi_buf_hold(r, dqi_group_of(r, id));
    dqi_unlock(&r->spare_lock);
    return id;
}

// Copies packet i of b to the end of c; false: no buffer.
static bool copy_packet(dq_burst *c, const dq_burst *b, uint32_t i, dq_region *r) {
    uint32_t id = spare_buf(r), at = c->n;
    if (id == DQI_NO_BUF) return false;
    uint8_t *base = dqi_core_of(b->session)->base, *to = base + dqi_buf_off(r, id);
    memcpy(to, base + b->off[0][i], b->len[0][i]);
    c->off[0][at] = dqi_buf_off(r, id);
    c->len[0][at] = b->len[0][i];
    c->bufs[0][at] = dqi_group_of(r, id);
    c->flow[at] = b->flow[i];
    c->ts[at] = b->ts[i];
    if (b->origins) dqi_burst_set_origin(c, at, &b->origin[i]);
    if (b->timed) c->tx_time[at] = b->tx_time[i];
    dqi_burst_copy_imms(c, at, b, i, 1);
    c->bytes += b->len[0][i];
    c->n_bufs = ++c->n;
    dqi_burst_copy_peer(c, at, b, i);
    return true;
}

// Returns the region of which b uses less than a quarter of the groups that it keeps, or NULL.
static dq_region *wasted(const dq_burst *b) {
    const dq_burst *owner = b->parent ? b->parent : b;
    if (!owner->slices || owner->n_bufs == 0) return NULL;
    dq_region *r = dqi_buf_region(owner->session, owner->bufs[0][0]);
    return r && r->group > 1 && (uint64_t)b->n * 4 < (uint64_t)owner->n_bufs * r->group ? r : NULL;
}

void dq_burst_compact(dq_burst *b, dq_burst **out) {
    dq_region *r = wasted(b);
    dq_burst *c = r ? dqi_burst_get(b->home) : NULL;
    *out = b;
    if (!c) return;
    c->nseg = 1;
    c->conn = b->conn;
    c->flags = b->flags & ~DQ_BURST_SHARED;
    dqi_burst_take_clock(c, b);
    c->timed = b->timed;
    c->queue = b->queue;
    c->payload = b->payload;
    c->slices = true;
    for (uint32_t i = 0; i < b->n; i++)
        if (!copy_packet(c, b, i, r)) {
            dq_burst_unref(c);
            return;
        }
    dq_burst_unref(b);
    *out = c;
}
