// rdma_ops.h: operations besides messages: access to a peer's memory, lent memory, connections without
// connection manager.
#ifndef DQI_RDMA_OPS_H
#define DQI_RDMA_OPS_H

#include "engine/rdma/rdma_conn.h"

// ---- rdma_ops.c, rdma_lend.c ------------------------------------------------------------------------------

uint32_t dqi_rdma_post(dq_queue *q, const dq_rma *list, uint32_t n);
const char *dqi_rdma_refuses(dq_queue *q, const dq_rma *m);
int dqi_rdma_lend(dq_iface *i, uint32_t conn, const dq_loan *loan, dq_lease *out, dq_diag *diag);
int dqi_rdma_revoke(dq_iface *i, dq_lease *lease);
void dqi_rdma_revoke_all(dqi_rdma *r);
bool dqi_rdma_lent(dq_iface *i, uint32_t conn, uint32_t k, dq_remote *out);
int dqi_rdma_declare(dq_iface *i, uint32_t conn, const dq_remote *remote, dq_diag *diag);
// Handles a note from the peer. Under the connection's lock.
void dqi_rconn_take_note(dqi_rconn *c, const uint8_t *bytes, uint32_t len);

// ---- rdma_pair.c: connections without connection manager; control thread ----------------------------------

int dqi_rdma_pair_open(dq_iface *i, uint32_t *conn, dq_diag *diag);
int dqi_rdma_pair_join(dq_iface *i, uint32_t conn, const dq_queue_pair *peer, dq_diag *diag);
int dqi_rdma_pair_read(dq_iface *i, uint32_t conn, dq_queue_pair *ours);

#endif
