// rdma_qp.c: queue pairs: creation, states and end. The attributes of a state are the connection manager's,
// or, without it, those that it would negotiate: initial packet sequence numbers, path, retries.
#include "core/err.h"
#include "engine/rdma/rdma_conn.h"

#include <errno.h>
#include <string.h>

#define HOPS        64
#define TIMEOUT     18 // 4.096 us * 2^18 = 1.07 s, timeout for an answer
#define DEPTH_READS 16 // reads and atomics in flight, if the device supports as many

// ---- attributes without connection manager ----------------------------------------------------------------

vb_ah_attr dqi_rconn_path(const dqi_rconn *c) {
    int32_t tc = c->r->iface->conf.socket.roce.traffic_class;
    vb_ah_attr a = {.dlid = c->pair_peer.lid, .port_num = c->r->device->port_num};
    static const uint8_t none[16];
    a.is_global = memcmp(c->pair_peer.gid, none, 16) != 0;
    if (!a.is_global) return a;
    memcpy(a.grh.dgid.raw, c->pair_peer.gid, 16);
    a.grh.sgid_index = (uint8_t)c->pair.gid_index;
    a.grh.hop_limit = HOPS;
    a.grh.traffic_class = tc > 0 ? (uint8_t)tc : 0;
    return a;
}

static uint8_t reads(int most) { return (uint8_t)(most < DEPTH_READS ? most : DEPTH_READS); }

static int init(const dqi_rconn *c, vb_qp_attr *a) {
    bool rc = dqi_rdma_transport(c->r) == DQ_TRANSPORT_RC;
    a->port_num = c->r->device->port_num;
    a->qkey = c->pair.qkey;
    a->qp_access_flags = VB_ACCESS_REMOTE_WRITE | (rc ? VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC : 0);
    return VB_QP_PKEY_INDEX | VB_QP_PORT | (dqi_rdma_is_ud(c->r) ? VB_QP_QKEY : VB_QP_ACCESS_FLAGS);
}

static int ready_to_receive(const dqi_rconn *c, vb_qp_attr *a) {
    if (dqi_rdma_is_ud(c->r)) return 0;
    a->ah_attr = dqi_rconn_path(c);
    uint32_t theirs = c->pair_peer.mtu;
    a->path_mtu = dqi_rdma_mtu((int)(theirs > 0 && theirs < c->pair.mtu ? theirs : c->pair.mtu));
    a->dest_qp_num = c->pair_peer.qpn;
    a->rq_psn = c->pair_peer.psn;
    a->max_dest_rd_atomic = reads(c->r->device->attr.max_qp_rd_atom);
    a->min_rnr_timer = DQI_RDMA_RNR_TIMER;
    int mask = VB_QP_AV | VB_QP_PATH_MTU | VB_QP_DEST_QPN | VB_QP_RQ_PSN;
    bool rc = dqi_rdma_transport(c->r) == DQ_TRANSPORT_RC;
    return rc ? mask | VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER : mask;
}

static int ready_to_send(const dqi_rconn *c, vb_qp_attr *a) {
    a->sq_psn = c->pair.psn;
    a->timeout = TIMEOUT;
    a->retry_cnt = a->rnr_retry = DQI_RDMA_RETRIES;
    a->max_rd_atomic = reads(c->r->device->attr.max_qp_init_rd_atom);
    if (dqi_rdma_transport(c->r) != DQ_TRANSPORT_RC) return VB_QP_SQ_PSN;
    return VB_QP_SQ_PSN | VB_QP_TIMEOUT | VB_QP_RETRY_CNT | VB_QP_RNR_RETRY | VB_QP_MAX_QP_RD_ATOMIC;
}

static int step_by_hand(dqi_rconn *c, int state) {
    vb_qp_attr a = {.qp_state = state};
    int mask = state == VB_QPS_INIT  ? init(c, &a)
               : state == VB_QPS_RTR ? ready_to_receive(c, &a)
                                     : ready_to_send(c, &a);
    int err = vb.modify_qp(c->qp, &a, VB_QP_STATE | mask);
    return err == 0 ? DQ_OK : DQ_ESYS - (err > 0 ? err : errno);
}

// ---- states -----------------------------------------------------------------------------------------------

// Attributes of reliable connections only.
#define RC_ONLY                                                                                              \
    (VB_QP_MAX_QP_RD_ATOMIC | VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER | VB_QP_TIMEOUT |               \
     VB_QP_RETRY_CNT | VB_QP_RNR_RETRY)
#define KNOWN ((1 << 21) - 1) // the kernel sets further bits, which the libraries reject

int dqi_rconn_step(dqi_rconn *c, int state) {
    if (c->by_hand) return step_by_hand(c, state);
    const dq_roce_conf *conf = &c->r->iface->conf.socket.roce;
    vb_qp_attr a = {.qp_state = state};
    int mask = 0;
    if (cm.init_qp_attr(c->id, &a, &mask) != 0) return DQ_ESYS - errno;
    mask &= KNOWN;
    if (conf->transport != DQ_TRANSPORT_RC) mask &= ~RC_ONLY;
    if (mask & VB_QP_ACCESS_FLAGS) {
        a.qp_access_flags |= VB_ACCESS_REMOTE_WRITE;
        if (conf->transport == DQ_TRANSPORT_RC)
            a.qp_access_flags |= VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC;
    }
    if ((mask & VB_QP_PATH_MTU) && conf->mtu > 0 && dqi_rdma_mtu(conf->mtu) < a.path_mtu)
        a.path_mtu = dqi_rdma_mtu(conf->mtu);
    if (mask & VB_QP_MIN_RNR_TIMER) a.min_rnr_timer = DQI_RDMA_RNR_TIMER; // the kernel's 0 is 655 ms
    int err = vb.modify_qp(c->qp, &a, mask);
    return err == 0 ? DQ_OK : DQ_ESYS - (err > 0 ? err : errno);
}

static int make_ready_ud(dqi_rconn *c) {
    vb_qp_attr a = {.qp_state = VB_QPS_RTR};
    int err = vb.modify_qp(c->qp, &a, VB_QP_STATE);
    a.qp_state = VB_QPS_RTS;
    if (err == 0) err = vb.modify_qp(c->qp, &a, VB_QP_STATE | VB_QP_SQ_PSN);
    return err == 0 ? DQ_OK : DQ_ESYS - (err > 0 ? err : errno);
}

int dqi_rconn_make_ready(dqi_rconn *c) {
    if (dqi_rdma_is_ud(c->r)) return make_ready_ud(c);
    int err = dqi_rconn_step(c, VB_QPS_RTR);
    return err == DQ_OK ? dqi_rconn_step(c, VB_QPS_RTS) : err;
}

// ---- creation and end -------------------------------------------------------------------------------------

// Reserves completion queue entries in the connection's queues; a missing direction uses the other's.
static int take_cqs(dqi_rconn *c) {
    dqi_rdma *r = c->r;
    int err;
    pthread_mutex_lock(&r->conns.lock);
    c->recv_cq =
        dqi_rdma_cq_for(dqi_rdma_queue_of(c->conn.rx ? c->conn.rx : c->conn.tx), DQI_RDMA_DEPTH, &err);
    if (c->recv_cq)
        c->send_cq =
            dqi_rdma_cq_for(dqi_rdma_queue_of(c->conn.tx ? c->conn.tx : c->conn.rx), DQI_RDMA_DEPTH, &err);
    if (err != DQ_OK && c->recv_cq) c->recv_cq->used -= DQI_RDMA_DEPTH;
    pthread_mutex_unlock(&r->conns.lock);
    return err;
}

static void leave_cqs(const dqi_rconn *c) {
    pthread_mutex_lock(&c->r->conns.lock);
    c->recv_cq->used -= DQI_RDMA_DEPTH;
    c->send_cq->used -= DQI_RDMA_DEPTH;
    pthread_mutex_unlock(&c->r->conns.lock);
}

static uint32_t segments(const dqi_rconn *c, bool rx) {
    const dq_queue *q = rx ? c->conn.rx : c->conn.tx;
    uint32_t most = (uint32_t)c->r->device->attr.max_sge, n = q ? q->conf.n_regions : 1;
    if (!rx) n = DQ_MAX_SEGS; // forwarded bursts may have more
    return n == 0 ? 1 : n < most ? n : most;
}

static int qp_type(const dqi_rconn *c) {
    static const int types[] = {
        [DQ_TRANSPORT_RC] = VB_QPT_RC, [DQ_TRANSPORT_UC] = VB_QPT_UC, [DQ_TRANSPORT_UD] = VB_QPT_UD};
    return types[dqi_rdma_transport(c->r)];
}

int dqi_rconn_make_qp(dqi_rconn *c) {
    int err = take_cqs(c);
    if (err != DQ_OK) return err;
    vb_qp_init_attr a = {.qp_context = c,
                         .send_cq = c->send_cq->cq,
                         .recv_cq = c->recv_cq->cq,
                         .cap = {.max_send_wr = DQI_RDMA_DEPTH,
                                 .max_recv_wr = DQI_RDMA_DEPTH,
                                 .max_send_sge = segments(c, false),
                                 .max_recv_sge = segments(c, true),
                                 .max_inline_data = DQI_RDMA_NOTE_BYTES},
                         .qp_type = qp_type(c)};
    vb_qp *qp = vb.create_qp(c->r->device->pd, &a);
    err = errno;
    a.cap.max_inline_data = qp ? a.cap.max_inline_data : 0; // not supported by every device
    if (!qp) qp = vb.create_qp(c->r->device->pd, &a);
    if (!qp) {
        leave_cqs(c);
        return DQ_ESYS - err;
    }
    c->inline_bytes = a.cap.max_inline_data;
    dqi_rconn_lock(c);
    c->qp = qp;
    dqi_rconn_unlock(c);
    return dqi_rconn_step(c, VB_QPS_INIT);
}

void dqi_rconn_stop_qp(dqi_rconn *c) {
    vb_qp_attr a = {.qp_state = VB_QPS_ERR};
    if (c->id && !dqi_rdma_is_ud(c->r)) cm.disconnect(c->id); // notifies the peer
    dqi_rconn_lock(c);
    if (c->qp) vb.modify_qp(c->qp, &a, VB_QP_STATE);
    dqi_rconn_unlock(c);
}

int dqi_rconn_meet(dqi_rconn *c, vb_ah_attr at, uint32_t qpn, uint32_t qkey) {
    vb_ah *ah = vb.create_ah(c->r->device->pd, &at);
    if (!ah) return DQ_ESYS - errno;
    dqi_rconn_lock(c);
    c->ah = ah;
    c->qpn = qpn;
    c->qkey = qkey;
    dqi_rconn_unlock(c);
    return DQ_OK;
}

void dqi_rconn_drop_qp(dqi_rconn *c) {
    dqi_rconn_lock(c);
    vb_qp *qp = c->qp;
    vb_ah *ah = c->ah;
    c->qp = NULL;
    c->ah = NULL;
    dqi_rconn_unlock(c);
    if (ah) vb.destroy_ah(ah);
    if (!qp) return;
    vb.destroy_qp(qp); // ends all access through it
    leave_cqs(c);
}
