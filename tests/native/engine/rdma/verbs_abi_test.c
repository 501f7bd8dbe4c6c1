// verbs_abi_test.c: our declarations of libibverbs and librdmacm against their own headers, field by field.
#include "dqtest.h"

#if __has_include(<infiniband/verbs.h>) && __has_include(<rdma/rdma_cma.h>)
#include "engine/rdma/cm_abi.h"

#include <infiniband/verbs.h>
#include <rdma/rdma_cma.h>

#define SIZE(ours, theirs) DQ_CHECK(sizeof(ours) == sizeof(theirs))
// The same field: its place and its width.
#define FIELD2(ours, a, theirs, b)                                                                           \
    DQ_CHECK(offsetof(ours, a) == offsetof(theirs, b) && sizeof(((ours *)0)->a) == sizeof(((theirs *)0)->b))
#define FIELD(ours, theirs, a) FIELD2(ours, a, theirs, a)
#define SAME(ours, theirs)     DQ_CHECK((long)(ours) == (long)(theirs))

static void check_contexts(void) {
    FIELD(vb_device, struct ibv_device, name);
    FIELD(vb_device, struct ibv_device, node_type);
    FIELD(vb_context, struct ibv_context, device);
    FIELD(vb_context, struct ibv_context, ops.poll_cq);
    FIELD(vb_context, struct ibv_context, ops.req_notify_cq);
    FIELD(vb_context, struct ibv_context, ops.post_send);
    FIELD(vb_context, struct ibv_context, ops.post_recv);
    FIELD(vb_context, struct ibv_context, async_fd);
    FIELD(vb_context, struct ibv_context, num_comp_vectors);
    SIZE(vb_pd, struct ibv_pd);
    SIZE(vb_mr, struct ibv_mr);
    FIELD(vb_mr, struct ibv_mr, lkey);
    FIELD(vb_mr, struct ibv_mr, rkey);
    FIELD(vb_comp_channel, struct ibv_comp_channel, fd);
    FIELD(vb_cq, struct ibv_cq, channel);
    FIELD(vb_cq, struct ibv_cq, cqe);
    FIELD(vb_qp, struct ibv_qp, qp_context);
    FIELD(vb_qp, struct ibv_qp, qp_num);
    FIELD(vb_qp, struct ibv_qp, qp_type);
    SIZE(vb_device_attr, struct ibv_device_attr);
    FIELD(vb_device_attr, struct ibv_device_attr, max_qp_wr);
    FIELD(vb_device_attr, struct ibv_device_attr, max_sge);
    FIELD(vb_device_attr, struct ibv_device_attr, max_cqe);
    FIELD(vb_device_attr, struct ibv_device_attr, max_qp_rd_atom);
    FIELD(vb_device_attr, struct ibv_device_attr, max_qp_init_rd_atom);
    FIELD(vb_device_attr, struct ibv_device_attr, atomic_cap);
    FIELD(vb_device_attr, struct ibv_device_attr, phys_port_cnt);
    SIZE(vb_port_attr, struct ibv_port_attr);
    FIELD(vb_port_attr, struct ibv_port_attr, active_mtu);
    FIELD(vb_port_attr, struct ibv_port_attr, max_msg_sz);
    FIELD(vb_port_attr, struct ibv_port_attr, lid);
    FIELD(vb_port_attr, struct ibv_port_attr, link_layer);
}

static void check_queue_pairs(void) {
    SIZE(vb_gid, union ibv_gid);
    SIZE(vb_ah_attr, struct ibv_ah_attr);
    FIELD(vb_ah_attr, struct ibv_ah_attr, grh.dgid);
    FIELD(vb_ah_attr, struct ibv_ah_attr, grh.sgid_index);
    FIELD(vb_ah_attr, struct ibv_ah_attr, grh.traffic_class);
    FIELD(vb_ah_attr, struct ibv_ah_attr, dlid);
    FIELD(vb_ah_attr, struct ibv_ah_attr, is_global);
    FIELD(vb_ah_attr, struct ibv_ah_attr, port_num);
    SIZE(vb_qp_init_attr, struct ibv_qp_init_attr);
    FIELD(vb_qp_init_attr, struct ibv_qp_init_attr, send_cq);
    FIELD(vb_qp_init_attr, struct ibv_qp_init_attr, cap.max_inline_data);
    FIELD(vb_qp_init_attr, struct ibv_qp_init_attr, qp_type);
    FIELD(vb_qp_init_attr, struct ibv_qp_init_attr, sq_sig_all);
    SIZE(vb_qp_attr, struct ibv_qp_attr);
    FIELD(vb_qp_attr, struct ibv_qp_attr, qp_state);
    FIELD(vb_qp_attr, struct ibv_qp_attr, path_mtu);
    FIELD(vb_qp_attr, struct ibv_qp_attr, dest_qp_num);
    FIELD(vb_qp_attr, struct ibv_qp_attr, qp_access_flags);
    FIELD(vb_qp_attr, struct ibv_qp_attr, ah_attr);
    FIELD(vb_qp_attr, struct ibv_qp_attr, pkey_index);
    FIELD(vb_qp_attr, struct ibv_qp_attr, max_dest_rd_atomic);
    FIELD(vb_qp_attr, struct ibv_qp_attr, port_num);
    FIELD(vb_qp_attr, struct ibv_qp_attr, rnr_retry);
}

static void check_requests(void) {
    SIZE(vb_sge, struct ibv_sge);
    FIELD(vb_sge, struct ibv_sge, lkey);
    SIZE(vb_send_wr, struct ibv_send_wr);
    FIELD(vb_send_wr, struct ibv_send_wr, sg_list);
    FIELD(vb_send_wr, struct ibv_send_wr, num_sge);
    FIELD(vb_send_wr, struct ibv_send_wr, opcode);
    FIELD(vb_send_wr, struct ibv_send_wr, send_flags);
    FIELD(vb_send_wr, struct ibv_send_wr, imm_data);
    FIELD(vb_send_wr, struct ibv_send_wr, wr.rdma.remote_addr);
    FIELD(vb_send_wr, struct ibv_send_wr, wr.rdma.rkey);
    FIELD(vb_send_wr, struct ibv_send_wr, wr.atomic.compare_add);
    FIELD(vb_send_wr, struct ibv_send_wr, wr.atomic.swap);
    FIELD(vb_send_wr, struct ibv_send_wr, wr.atomic.rkey);
    FIELD(vb_send_wr, struct ibv_send_wr, wr.ud.ah);
    FIELD(vb_send_wr, struct ibv_send_wr, wr.ud.remote_qpn);
    FIELD(vb_send_wr, struct ibv_send_wr, wr.ud.remote_qkey);
    SIZE(vb_recv_wr, struct ibv_recv_wr);
    FIELD(vb_recv_wr, struct ibv_recv_wr, sg_list);
    FIELD(vb_recv_wr, struct ibv_recv_wr, num_sge);
    SIZE(vb_wc, struct ibv_wc);
    FIELD(vb_wc, struct ibv_wc, status);
    FIELD(vb_wc, struct ibv_wc, opcode);
    FIELD(vb_wc, struct ibv_wc, byte_len);
    FIELD(vb_wc, struct ibv_wc, imm_data);
    FIELD(vb_wc, struct ibv_wc, qp_num);
    FIELD(vb_wc, struct ibv_wc, src_qp);
    FIELD(vb_wc, struct ibv_wc, wc_flags);
    FIELD(vb_wc, struct ibv_wc, slid);
    SIZE(vb_async_event, struct ibv_async_event);
    FIELD(vb_async_event, struct ibv_async_event, event_type);
}

static void check_manager(void) {
    FIELD(cm_id, struct rdma_cm_id, verbs);
    FIELD(cm_id, struct rdma_cm_id, context);
    FIELD(cm_id, struct rdma_cm_id, qp);
    FIELD2(cm_id, src, struct rdma_cm_id, route.addr.src_storage);
    FIELD2(cm_id, dst, struct rdma_cm_id, route.addr.dst_storage);
    FIELD(cm_id, struct rdma_cm_id, port_num);
    SIZE(cm_conn_param, struct rdma_conn_param);
    FIELD(cm_conn_param, struct rdma_conn_param, private_data_len);
    FIELD(cm_conn_param, struct rdma_conn_param, responder_resources);
    FIELD(cm_conn_param, struct rdma_conn_param, initiator_depth);
    FIELD(cm_conn_param, struct rdma_conn_param, rnr_retry_count);
    FIELD(cm_conn_param, struct rdma_conn_param, qp_num);
    SIZE(cm_ud_param, struct rdma_ud_param);
    FIELD(cm_ud_param, struct rdma_ud_param, ah_attr);
    FIELD(cm_ud_param, struct rdma_ud_param, qkey);
    SIZE(cm_event, struct rdma_cm_event);
    FIELD(cm_event, struct rdma_cm_event, event);
    FIELD(cm_event, struct rdma_cm_event, status);
    FIELD(cm_event, struct rdma_cm_event, param);
    FIELD(cm_channel, struct rdma_event_channel, fd);
}

static void check_numbers(void) {
    SAME(VB_QPT_UD, IBV_QPT_UD);
    SAME(VB_QPS_ERR, IBV_QPS_ERR);
    SAME(VB_MTU_4096, IBV_MTU_4096);
    SAME(VB_ATOMIC_GLOB, IBV_ATOMIC_GLOB);
    SAME(VB_ACCESS_REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC);
    SAME(VB_WR_ATOMIC_FETCH_AND_ADD, IBV_WR_ATOMIC_FETCH_AND_ADD);
    SAME(VB_WR_RDMA_READ, IBV_WR_RDMA_READ);
    SAME(VB_SEND_INLINE, IBV_SEND_INLINE);
    SAME(VB_WC_WR_FLUSH_ERR, IBV_WC_WR_FLUSH_ERR);
    SAME(VB_WC_RNR_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR);
    SAME(VB_WC_REM_ACCESS_ERR, IBV_WC_REM_ACCESS_ERR);
    SAME(VB_WC_RECV_RDMA_WITH_IMM, IBV_WC_RECV_RDMA_WITH_IMM);
    SAME(VB_WC_WITH_IMM, IBV_WC_WITH_IMM);
    SAME(VB_QP_DEST_QPN, IBV_QP_DEST_QPN);
    SAME(VB_QP_MIN_RNR_TIMER, IBV_QP_MIN_RNR_TIMER);
    SAME(VB_QP_SQ_PSN, IBV_QP_SQ_PSN);
    SAME(VB_EVENT_QP_ACCESS_ERR, IBV_EVENT_QP_ACCESS_ERR);
    SAME(VB_EVENT_DEVICE_FATAL, IBV_EVENT_DEVICE_FATAL);
    SAME(VB_LINK_LAYER_ETHERNET, IBV_LINK_LAYER_ETHERNET);
    SAME(CM_TIMEWAIT_EXIT, RDMA_CM_EVENT_TIMEWAIT_EXIT);
    SAME(CM_REJECTED, RDMA_CM_EVENT_REJECTED);
    SAME(CM_PS_UDP, RDMA_PS_UDP);
    SAME(CM_OPTION_ID_AFONLY, RDMA_OPTION_ID_AFONLY);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(check_contexts);
    DQ_RUN(check_queue_pairs);
    DQ_RUN(check_requests);
    DQ_RUN(check_manager);
    DQ_RUN(check_numbers);
    return dq_done();
}
#else
int main(void) { dq_lack("rdma", "no <infiniband/verbs.h> and <rdma/rdma_cma.h>"); }
#endif
