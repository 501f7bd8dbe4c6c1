// rma.c: operations that name their memory, on their way to an engine that has them: every one is checked, so
// that engines find what they are given in order.
#include "pipeline/dq_rma.h"
#include "core/err.h"
#include "core/region.h"
#include "core/session.h"
#include "pipeline/conn_table.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"

static bool is_atomic(const dq_rma *m) {
    return m->kind == DQ_RMA_FETCH_ADD || m->kind == DQ_RMA_COMPARE_SWAP;
}

static bool is_message(const dq_rma *m) { return m->kind == DQ_RMA_SEND || m->kind == DQ_RMA_RECV; }

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
        if (err != DQ_OK) return err;
    }
    *begun = ops->post(q, list, n);
    return DQ_OK;
}
