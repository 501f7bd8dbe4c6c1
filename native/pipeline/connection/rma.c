// rma.c: checks operations that name their memory before the engine gets them, so that engines need not.
#include "core/burst.h"
#include "core/err.h"
#include "core/region.h"
#include "pipeline/connection/conn_table.h"
#include "pipeline/connection/dq_rma.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/op.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <errno.h>
#include <string.h>

static bool is_atomic(const dq_rma *m) {
    return m->kind == DQ_RMA_FETCH_ADD || m->kind == DQ_RMA_COMPARE_SWAP;
}

static bool is_message(const dq_rma *m) { return m->kind == DQ_RMA_SEND || m->kind == DQ_RMA_RECV; }

// Whether an operation of this kind writes to its burst.
static bool is_written(const dq_rma *m) {
    return m->kind == DQ_RMA_READ || m->kind == DQ_RMA_RECV || is_atomic(m);
}

static int refuse(const dq_queue *q, uint32_t k, dq_diag *diag, const char *what) {
    return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: operation %u: %s", q->conf.name, k, what);
}

static int check_memory(const dq_queue *q, const dq_rma *m, uint32_t k, dq_diag *diag) {
    const dq_region *r = m->region;
    if (!r) return m->length == 0 ? DQ_OK : refuse(q, k, diag, "it names no region");
    if (r->session != q->session) return refuse(q, k, diag, "its region belongs to another session");
    uint64_t size = dqi_region_bytes(r);
    if (m->offset <= size && m->length <= size - m->offset) return DQ_OK;
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "queue %s: operation %u: %u bytes at %llu are beyond region %s, which has %llu",
                    q->conf.name, k, m->length, (unsigned long long)m->offset, r->conf.name,
                    (unsigned long long)size);
}

static int check(const dq_queue *q, const dq_rma *m, uint32_t k, dq_diag *diag) {
    if (m->kind < 0 || m->kind >= DQ_RMA_KINDS) return refuse(q, k, diag, "there is no such kind");
    if (!dqi_conn_is_of(m->conn, q->iface->index))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "queue %s: operation %u: connection %u is none of %s",
                        q->conf.name, k, m->conn, q->iface->conf.name);
    if (is_atomic(m) && (m->length != 8 || m->remote % 8 != 0 || m->offset % 8 != 0))
        return refuse(q, k, diag, "an atomic has 8 bytes at multiples of 8, here and there");
    if (m->has_imm && m->kind != DQ_RMA_SEND && m->kind != DQ_RMA_WRITE)
        return refuse(q, k, diag, "an immediate goes with a SEND or a WRITE");
    if (m->length == 0 && !is_message(m) && !m->has_imm) return refuse(q, k, diag, "it moves no byte");
    return check_memory(q, m, k, diag);
}

int dq_rma_post(dq_queue *q, const dq_rma *list, uint32_t n, uint32_t *begun, dq_diag *diag) {
    const dqi_rma_ops *ops = q->iface->ops->rma;
    *begun = 0;
    if (!ops)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "queue %s: engine %s has no operations that name their memory", q->conf.name,
                        q->iface->ops->name);
    if (q->session->state != DQI_STARTED)
        return dqi_fail(diag, DQ_NOT_READY, "queue %s: its session does not run", q->conf.name);
    for (uint32_t k = 0; k < n; k++) {
        int err = check(q, &list[k], k, diag);
        const char *why = err == DQ_OK && ops->refuses ? ops->refuses(q, &list[k]) : NULL;
        if (why) err = refuse(q, k, diag, why);
        if (err != DQ_OK) return err;
    }
    *begun = ops->post(q, list, n);
    return DQ_OK;
}

// ---- bursts -----------------------------------------------------------------------------------------------

#define PIECES 128u // of a burst, the largest batch an engine posts

// Splits b into one operation per non-empty segment; returns their number, or 0 if there are too many.
static uint32_t pieces(const dq_burst *b, const dq_rma *at, dq_op *op, dq_rma *list) {
    uint32_t n = 0;
    uint64_t remote = at->remote;
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t s = 0; s < b->nseg; s++) {
            if (b->len[s][i] == 0) continue;
            if (n == PIECES) return 0;
            const dq_region *r = dqi_off_region(b->session, b->off[s][i]);
            list[n++] = (dq_rma){.kind = at->kind,
                                 .conn = at->conn,
                                 .region = r,
                                 .offset = r ? b->off[s][i] - r->offset : 0,
                                 .length = b->len[s][i],
                                 .remote = remote,
                                 .key = at->key,
                                 .got = at->kind == DQ_RMA_RECV ? &b->len[s][i] : NULL,
                                 .op = op};
            remote += b->len[s][i];
        }
    return n;
}

static uint32_t count_pieces(const dq_burst *b) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++)
        for (uint32_t s = 0; s < b->nseg; s++)
            n += b->len[s][i] > 0;
    return n;
}

// Builds the operation of an atomic; returns 1, or 0 if b has no suitable packet.
static uint32_t atomic_piece(const dq_burst *b, const dq_rma *at, dq_op *op, dq_rma *list) {
    const dq_region *r = b->n > 0 ? dqi_off_region(b->session, b->off[0][0]) : NULL;
    *list = *at;
    list->region = r;
    list->offset = r ? b->off[0][0] - r->offset : 0;
    list->length = 8;
    list->op = op;
    return r && b->len[0][0] >= 8 ? 1 : 0;
}

int dq_rma_alloc(dq_queue *q, dq_region *r, uint32_t n, dq_burst **out) {
    const dq_session *s = q->session;
    if (!q->iface->ops->rma || r->session != s || !r->cpu) return DQ_NOT_SUPPORTED;
    if (n == 0 || n > q->conf.batch_size || n > s->core.picks_cap) return DQ_INVALID_PARAMETER;
    dqi_tx_share_region(s, r);
    dq_burst *b = dqi_burst_get(s->core.picks);
    if (!b) return DQ_NO_FREE_BURST_BUFFERS;
    b->nseg = 1;
    int err = dqi_burst_fill(b, &r, 1, n);
    if (err != DQ_OK) {
        b->n = b->n_bufs = 0;
        dq_burst_unref(b);
        return err;
    }
    b->queue = q;
    b->payload = true;
    memset(b->len[0], 0, n * sizeof(uint32_t));
    memset(b->flow, 0, n * sizeof *b->flow);
    for (uint32_t i = 0; i < n; i++)
        b->ts[i] = DQ_NO_TIME;
    *out = b;
    return DQ_OK;
}

int dq_rma_burst(dq_queue *q, dq_burst *b, const dq_rma *at, dq_op **out, dq_diag *diag) {
    dq_rma list[PIECES];
    dqi_burst_columns(b);
    uint32_t n = is_atomic(at) ? 1 : count_pieces(b), begun = 0;
    bool note = n == 0 && at->has_imm; // only an immediate value
    if ((n == 0 && !note) || n > PIECES || b->session != q->session)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "queue %s: a burst of %u pieces: an operation has 1 to %u, of the queue's session",
                        q->conf.name, n, PIECES);
    if (is_written(at) && (!dqi_burst_exclusive(b) || b->parent || b->slices))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "queue %s: a burst whose packets others have, too, can't be written to: hint: a burst of "
            "its own (alloc), or a copy",
            q->conf.name);
    dq_op *op = dqi_op_new(note ? 1 : n, NULL, 0);
    if (!op) return dqi_fail(diag, DQ_ESYS - ENOMEM, "queue %s: no memory", q->conf.name);
    dqi_op_hold(op, b);
    uint32_t made = 1;
    if (note) {
        list[0] = *at;
        list[0].length = 0;
        list[0].region = NULL;
        list[0].op = op;
    } else {
        made = is_atomic(at) ? atomic_piece(b, at, op, list) : pieces(b, at, op, list);
    }
    if (is_message(at) && b->nseg > 1) made = 0;
    list[made > 0 ? made - 1 : 0].imm = at->imm;
    list[made > 0 ? made - 1 : 0].has_imm = at->has_imm;
    int err = made > 0 ? dq_rma_post(q, list, made, &begun, diag)
                       : dqi_fail(diag, DQ_INVALID_PARAMETER,
                                  "queue %s: an atomic needs a packet of 8 bytes, a message one segment",
                                  q->conf.name);
    if (err == DQ_OK && begun == made) {
        *out = op;
        return DQ_OK;
    }
    if (err == DQ_OK)
        err = dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "queue %s: its connection's send queue is full",
                       q->conf.name);
    dq_op_lost(op, (note ? 1 : n) - begun, "it was not begun");
    dq_op_free(op);
    return err;
}

void dq_rma_received(dq_burst *b) { b->bytes = dqi_burst_sum(b, 0, b->n); }

// ---- lent memory ------------------------------------------------------------------------------------------

static int lacks(const dq_iface *i, dq_diag *diag) {
    return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: engine %s lends no memory", i->conf.name,
                    i->ops->name);
}

int dq_lend(dq_iface *i, uint32_t conn, const dq_loan *loan, dq_lease *out, dq_diag *diag) {
    const dq_region *r = loan->region;
    const char *queue, *name = i->conf.name;
    if (!i->ops->rma) return lacks(i, diag);
    if (dqi_region_uses(i->session, r, &queue) > 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: region %s has the packets of queue %s: hint: lend a region of its own",
                        name, r->conf.name, queue);
    if (loan->access & ~r->conf.access)
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: region %s does not allow that: hint: access: [local, rdma_read, rdma_write] "
            "in its configuration",
            name, r->conf.name);
    if ((uint64_t)loan->slots * loan->slot_bytes > dqi_region_bytes(r))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: %u slots of %u bytes are more than region %s has", name, loan->slots,
                        loan->slot_bytes, r->conf.name);
    return i->ops->rma->lend(i, conn, loan, out, diag);
}

int dq_lease_revoke(dq_iface *i, dq_lease *lease) {
    return i->ops->rma && lease->engine ? i->ops->rma->revoke(i, lease) : DQ_OK;
}

bool dq_lent(dq_iface *i, uint32_t conn, uint32_t k, dq_remote *out) {
    return i->ops->rma && i->ops->rma->lent && i->ops->rma->lent(i, conn, k, out);
}

int dq_lent_named(dq_iface *i, uint32_t conn, const char *name, dq_remote *out, dq_diag *diag) {
    char names[256] = "";
    for (uint32_t k = 0; dq_lent(i, conn, k, out); k++) {
        if (strcmp(out->name, name) == 0) return DQ_OK;
        if (strlen(names) + DQ_NAME_LEN + 4 > sizeof names) continue;
        strcat(names, k > 0 ? ", " : "");
        strcat(names, out->name);
    }
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "interface %s: connection %u: its peer lends no \"%s\"; it lends %s", i->conf.name, conn,
                    name, names[0] ? names : "nothing");
}

int dq_lent_declare(dq_iface *i, uint32_t conn, const dq_remote *remote, dq_diag *diag) {
    return i->ops->rma ? i->ops->rma->declare(i, conn, remote, diag) : lacks(i, diag);
}
