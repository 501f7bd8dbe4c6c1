#include "core/peers.h"
#include "core/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(sizeof(dqi_peer) == 32, "what a buffer costs more");

// The last group is padded: its ids extend beyond num_bufs.
static uint32_t places(const dq_region *r) { return r->n_groups * r->group; }

static int keep_targets(dq_region *r) {
    if (atomic_load(&r->targets) || !atomic_load(&r->peers)) return DQ_OK;
    dqi_target *t = calloc(places(r), sizeof *t);
    if (!t) return DQ_ESYS - ENOMEM;
    atomic_store(&r->targets, t);
    return DQ_OK;
}

int dqi_region_keep_peers(dq_region *r, dq_diag *diag) {
    if (!atomic_load(&r->peers)) {
        size_t bytes = places(r) * sizeof(dqi_peer);
        dqi_peer *p = aligned_alloc(sizeof *p, bytes);
        if (p) memset(p, 0, bytes); // prefaulted here rather than on the packet path
        atomic_store(&r->peers, p);
    }
    if (atomic_load(&r->peers) && (!dqi_core_of(r->session)->targets || keep_targets(r) == DQ_OK))
        return DQ_OK;
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory for peers' addresses", r->conf.name);
}

int dqi_region_keep_loops(dq_region *r, dq_diag *diag) {
    if (!atomic_load(&r->loops)) atomic_store(&r->loops, calloc(places(r), sizeof(uint32_t)));
    if (atomic_load(&r->loops)) return DQ_OK;
    return dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory for loops", r->conf.name);
}

int dqi_session_keep_targets(dq_session *s) {
    dqi_core *core = dqi_core_of(s);
    int err = DQ_OK;
    core->targets = true;
    for (uint32_t k = 0; k < core->n_regions && err == DQ_OK; k++)
        err = keep_targets(core->regions[k]);
    return err;
}

void dqi_buf_copy_peer(const dq_region *r, uint32_t to, const dq_region *of, uint32_t from) {
    dqi_sockaddr *peer = dqi_buf_peer(r, to);
    const dqi_sockaddr *known = dqi_buf_peer(of, from);
    if (peer) *peer = known ? *known : (dqi_sockaddr){0};
    dqi_target *target = dqi_buf_target(r, to);
    const dqi_target *where = dqi_buf_target(of, from);
    if (target) *target = where ? *where : (dqi_target){0};
}

// Returns the region and, in *id, the buffer under which packet i's peer is recorded: the first of its group
// where packets cross buffers. NULL: the packet lies in no region.
static const dq_region *buffer_of(const dq_burst *b, uint32_t i, uint32_t *id) {
    const dq_region *r =
        i < b->n && !dqi_burst_hole(b, 0, i) ? dqi_off_region(b->session, b->off[0][i]) : NULL;
    if (!r) return NULL;
    uint32_t k = (uint32_t)((b->off[0][i] - r->offset) / r->stride);
    if (r->across && r->across[k / r->group]) k -= k % r->group;
    *id = r->first_id + k;
    return r;
}

dqi_sockaddr *dqi_burst_peer_addr(const dq_burst *b, uint32_t i) {
    uint32_t id;
    const dq_region *r = buffer_of(b, i, &id);
    return r ? dqi_buf_peer(r, id) : NULL;
}

const dqi_target *dqi_burst_target(const dq_burst *b, uint32_t i) {
    uint32_t id;
    const dq_region *r = buffer_of(b, i, &id);
    return r ? dqi_buf_target(r, id) : NULL;
}

uint32_t dqi_burst_loop(const dq_burst *b, uint32_t i) {
    uint32_t id;
    const dq_region *r = buffer_of(b, i, &id);
    const uint32_t *n = r ? dqi_buf_loop(r, id) : NULL;
    return n ? *n : 0;
}

void dqi_burst_copy_peer(const dq_burst *to, uint32_t k, const dq_burst *from, uint32_t i) {
    uint32_t id, of_id;
    const dq_region *r = buffer_of(to, k, &id), *of = buffer_of(from, i, &of_id);
    if (r && of) dqi_buf_copy_peer(r, id, of, of_id);
}

void dq_burst_peer(const dq_burst *b, uint32_t i, char *buf, size_t len) {
    const dqi_sockaddr *a = b->payload ? dqi_burst_peer_addr(b, i) : NULL;
    buf[0] = 0;
    if (a) dqi_addr_text(a, buf, len);
}
