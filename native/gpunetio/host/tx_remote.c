// tx_remote.c: put, get and add over a connection (RDMA): a descriptor becomes operations of the connection,
// in the order of tickets; a signal is an atomic after the bytes, ordered by the reliable connection.
//
// Inline bytes and discarded results of atomics need registered memory: words in a buffer of the queue, a
// part per pending operation.
#include "gpunetio/host/tx_remote.h"
#include "core/region.h"
#include "pipeline/op.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <string.h>

#define PART 40u // bytes of a part: inline bytes, or with a signal fewer, and from WORD on 8 of an atomic
#define WORD 32u

bool dqi_gn_is_remote(const dqi_gn_tx *t, const gn_desc *d) {
    const uint32_t ops = 1u << GN_OP_PUT | 1u << GN_OP_GET | 1u << GN_OP_ADD | 1u << GN_OP_CAS;
    return t->gn->conn && ops >> d->op & 1;
}

bool dqi_gn_remote_fits(const dq_queue *q) {
    const dq_region *r = q->conf.regions[0];
    return r->cpu && r->conf.buf_size >= 2 * PART;
}

static bool needs_part(const gn_desc *d) {
    bool atomic = d->op == GN_OP_ADD || d->op == GN_OP_CAS;
    return d->flags & (GN_INLINE | GN_SIGNAL) || (atomic && !(d->flags & GN_RESULT));
}

// Returns the offset of the next operation's part in the scratch buffer's region; false: all are in use.
static bool part_of(dqi_gn_tx *t, uint64_t *offset) {
    dq_region *r = t->queue->conf.regions[0];
    if (!t->scratch && dq_rma_alloc(t->queue, r, 1, &t->scratch) != DQ_OK) return false;
    uint64_t at = (t->scratch->off[0][0] - r->offset + 7) & ~UINT64_C(7);
    uint64_t n = (r->conf.buf_size - 7) / PART;
    if (t->n_flights - t->first_flight >= n) return false;
    *offset = at + t->n_flights % n * PART;
    return true;
}

static uint8_t *bytes_of(const dqi_gn_tx *t, uint64_t offset) {
    return t->gn->session->core.base + t->queue->conf.regions[0]->offset + offset;
}

// Builds an operation between a place of the kernel and one of the peer.
static dq_rma between(const dqi_gn_tx *t, int32_t kind, gn_u64 local, gn_u64 remote, uint32_t bytes) {
    const dq_gn *g = t->gn;
    const dq_remote *peer = &g->peers[gn_place_region(remote) - (g->n_regions - g->n_peers)];
    return (dq_rma){.kind = kind,
                    .conn = g->conn,
                    .region = g->bound[gn_place_region(local)],
                    .offset = gn_place_offset(local),
                    .length = bytes,
                    .remote = peer->addr + gn_place_offset(remote),
                    .key = peer->key};
}

// Builds the same with the queue's memory.
static dq_rma with_part(const dqi_gn_tx *t, int32_t kind, uint64_t offset, gn_u64 remote, uint32_t bytes) {
    dq_rma m = between(t, kind, 0, remote, bytes);
    m.region = t->queue->conf.regions[0];
    m.offset = offset;
    return m;
}

static uint32_t describe_move(const dqi_gn_tx *t, const gn_desc *d, uint64_t part, dq_rma *list) {
    const int32_t kind = d->op == GN_OP_GET ? DQ_RMA_READ : DQ_RMA_WRITE;
    if (d->flags & GN_INLINE) {
        memcpy(bytes_of(t, part), d->data, d->bytes);
        list[0] = with_part(t, kind, part, d->to, d->bytes);
        return 1;
    }
    list[0] = between(t, kind, d->from, d->to, d->bytes);
    if (!(d->flags & GN_SPLIT)) return 1;
    list[1] = between(t, kind, d->from2, d->to + d->bytes, d->bytes2);
    return 2;
}

// Writes the operations of a descriptor to list; returns how many.
static uint32_t describe(const dqi_gn_tx *t, const gn_desc *d, uint64_t part, dq_rma list[3]) {
    const int32_t kind = d->op == GN_OP_CAS ? DQ_RMA_COMPARE_SWAP : DQ_RMA_FETCH_ADD;
    uint32_t n = d->op == GN_OP_GET || d->op == GN_OP_PUT ? describe_move(t, d, part, list) : 0;
    if (d->flags & GN_IMM) {
        list[n - 1].has_imm = true;
        list[n - 1].imm = d->imm;
    }
    if (n == 0 || d->flags & GN_SIGNAL) {
        list[n] = d->flags & GN_RESULT ? between(t, kind, d->result, d->signal, 8)
                                       : with_part(t, kind, part + WORD, d->signal, 8);
        list[n].compare = d->compare;
        list[n++].operand = d->operand;
    }
    return n;
}

int dqi_gn_remote(dqi_gn_tx *t, const gn_desc *d, dq_op **op) {
    dq_rma list[3];
    uint64_t part = 0;
    uint32_t begun = 0;
    *op = NULL;
    if (needs_part(d) && !part_of(t, &part)) return GN_FAULT_NONE;
    uint32_t n = describe(t, d, part, list);
    dq_op *made = dqi_op_take(t->pool, n);
    if (!made) return GN_FAULT_NONE;
    for (uint32_t k = 0; k < n; k++)
        list[k].op = made;
    if (t->scratch) dqi_op_hold(made, t->scratch);
    int err = dq_rma_post(t->queue, list, n, &begun, NULL);
    if (err == DQ_OK && begun > 0) { // a list for one connection is posted completely
        *op = made;
        return GN_FAULT_NONE;
    }
    dq_op_lost(made, n, "not begun");
    dq_op_free(made);
    return err == DQ_OK || err == DQ_NO_SPACE_AVAILABLE || err == DQ_NOT_READY ? GN_FAULT_NONE
                                                                               : GN_FAULT_FAILED;
}
