// queue_pair.c: checks for manually connected queue pairs, before the engine is called.
#include "core/err.h"
#include "pipeline/connection/conn_table.h"
#include "pipeline/connection/dq_queue_pair.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/session.h"

#define LAST_24_BITS 0xffffffu

static int lacks(const dq_iface *i, dq_diag *diag) {
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "interface %s: engine %s has no queue pairs: they belong to roce:// endpoints",
                    i->conf.name, i->ops->name);
}

static bool has_gid(const dq_queue_pair *p) {
    bool some = false;
    for (int k = 0; k < 16 && !some; k++)
        some = p->gid[k] != 0;
    return some;
}

int dq_queue_pair_open(dq_iface *i, uint32_t *conn, dq_diag *diag) {
    return i->ops->pairs ? i->ops->pairs->open(i, conn, diag) : lacks(i, diag);
}

int dq_queue_pair_join(dq_iface *i, uint32_t conn, const dq_queue_pair *peer, dq_diag *diag) {
    if (!i->ops->pairs) return lacks(i, diag);
    if (!dqi_conn_is_of(conn, i->index))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: connection %u is none of it", i->conf.name,
                        conn);
    if (peer->qpn > LAST_24_BITS || peer->psn > LAST_24_BITS)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: queue pair %u, PSN %u: both have 24 bits, 0 to %u", i->conf.name,
                        peer->qpn, peer->psn, LAST_24_BITS);
    if (!has_gid(peer) && peer->lid == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: queue pair %u: its address is missing; hint: gid, addr (Ethernet) or "
                        "lid (InfiniBand)",
                        i->conf.name, peer->qpn);
    return i->ops->pairs->join(i, conn, peer, diag);
}

int dq_queue_pair_read(dq_iface *i, uint32_t conn, dq_queue_pair *ours) {
    if (!i->ops->pairs) return DQ_NOT_SUPPORTED;
    pthread_mutex_lock(&i->session->engines);
    int err = i->session->closed ? DQ_NOT_READY : i->ops->pairs->read(i, conn, ours);
    pthread_mutex_unlock(&i->session->engines);
    return err;
}
