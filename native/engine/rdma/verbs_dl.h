// verbs_dl.h: the RDMA libraries, loaded at run time.
#ifndef DQI_VERBS_DL_H
#define DQI_VERBS_DL_H

#include "core/dq_core.h"
#include "engine/rdma/cm_abi.h"

// Functions of libibverbs: X(result, name, parameters), without their prefix ibv_.
#define DQI_VERBS_ROWS(X)                                                                                    \
    X(vb_device **, get_device_list, (int *n))                                                               \
    X(void, free_device_list, (vb_device * *list))                                                           \
    X(vb_context *, open_device, (vb_device * device))                                                       \
    X(int, close_device, (vb_context * ctx))                                                                 \
    X(int, query_device, (vb_context * ctx, vb_device_attr * out))                                           \
    X(int, query_port, (vb_context * ctx, uint8_t port, vb_port_attr * out))                                 \
    X(int, query_gid, (vb_context * ctx, uint8_t port, int index, vb_gid *out))                              \
    X(vb_pd *, alloc_pd, (vb_context * ctx))                                                                 \
    X(int, dealloc_pd, (vb_pd * pd))                                                                         \
    X(vb_mr *, reg_mr, (vb_pd * pd, void *addr, size_t length, int access))                                  \
    X(int, dereg_mr, (vb_mr * mr))                                                                           \
    X(vb_comp_channel *, create_comp_channel, (vb_context * ctx))                                            \
    X(int, destroy_comp_channel, (vb_comp_channel * channel))                                                \
    X(vb_cq *, create_cq,                                                                                    \
      (vb_context * ctx, int cqe, void *cq_context, vb_comp_channel *channel, int vector))                   \
    X(int, resize_cq, (vb_cq * cq, int cqe))                                                                 \
    X(int, destroy_cq, (vb_cq * cq))                                                                         \
    X(int, get_cq_event, (vb_comp_channel * channel, vb_cq * *cq, void **cq_context))                        \
    X(void, ack_cq_events, (vb_cq * cq, unsigned int n))                                                     \
    X(vb_qp *, create_qp, (vb_pd * pd, vb_qp_init_attr * attr))                                              \
    X(int, modify_qp, (vb_qp * qp, vb_qp_attr * attr, int mask))                                             \
    X(int, query_qp, (vb_qp * qp, vb_qp_attr * attr, int mask, vb_qp_init_attr *init))                       \
    X(int, destroy_qp, (vb_qp * qp))                                                                         \
    X(vb_ah *, create_ah, (vb_pd * pd, vb_ah_attr * attr))                                                   \
    X(vb_ah *, create_ah_from_wc, (vb_pd * pd, vb_wc * wc, void *grh, uint8_t port))                         \
    X(int, destroy_ah, (vb_ah * ah))                                                                         \
    X(int, get_async_event, (vb_context * ctx, vb_async_event * event))                                      \
    X(void, ack_async_event, (vb_async_event * event))

// Functions of librdmacm, without the prefix rdma_.
#define DQI_CM_ROWS(X)                                                                                       \
    X(cm_channel *, create_event_channel, (void))                                                            \
    X(void, destroy_event_channel, (cm_channel * channel))                                                   \
    X(int, create_id, (cm_channel * channel, cm_id * *id, void *context, int port_space))                    \
    X(int, destroy_id, (cm_id * id))                                                                         \
    X(int, bind_addr, (cm_id * id, struct sockaddr * addr))                                                  \
    X(int, resolve_addr, (cm_id * id, struct sockaddr * src, struct sockaddr * dst, int timeout_ms))         \
    X(int, resolve_route, (cm_id * id, int timeout_ms))                                                      \
    X(int, init_qp_attr, (cm_id * id, vb_qp_attr * attr, int *mask))                                         \
    X(int, establish, (cm_id * id))                                                                          \
    X(int, connect, (cm_id * id, cm_conn_param * param))                                                     \
    X(int, listen, (cm_id * id, int backlog))                                                                \
    X(int, accept, (cm_id * id, cm_conn_param * param))                                                      \
    X(int, reject, (cm_id * id, const void *private_data, uint8_t len))                                      \
    X(int, disconnect, (cm_id * id))                                                                         \
    X(int, get_cm_event, (cm_channel * channel, cm_event * *event))                                          \
    X(int, ack_cm_event, (cm_event * event))                                                                 \
    X(uint16_t, get_src_port, (cm_id * id))                                                                  \
    X(int, set_option, (cm_id * id, int level, int name, void *value, size_t len))

typedef struct dqi_verbs {
#define X(result, name, params) result(*name) params;
    DQI_VERBS_ROWS(X)
#undef X
    // Since rdma-core 34; NULL: the library is older.
    vb_mr *(*reg_dmabuf_mr)(vb_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access);
} dqi_verbs;

typedef struct dqi_cm {
#define X(result, name, params) result(*name) params;
    DQI_CM_ROWS(X)
#undef X
} dqi_cm;

// The libraries, loaded for the life of the process.
extern dqi_verbs vb;
extern dqi_cm cm;

// Load libibverbs (or the library named by DAQIRI_VERBS), and both libraries. Later calls return at once
// after a success. NOT_SUPPORTED names what is missing and the interface that needs it. Control thread.
int dqi_verbs_load(const char *iface, dq_diag *diag);
int dqi_cm_load(const char *iface, dq_diag *diag);

static inline int vb_poll_cq(vb_cq *cq, int n, vb_wc *wc) { return cq->context->ops.poll_cq(cq, n, wc); }
static inline int vb_req_notify(vb_cq *cq) { return cq->context->ops.req_notify_cq(cq, 0); }
static inline int vb_post_send(vb_qp *qp, vb_send_wr *wr, vb_send_wr **bad) {
    return qp->context->ops.post_send(qp, wr, bad);
}
static inline int vb_post_recv(vb_qp *qp, vb_recv_wr *wr, vb_recv_wr **bad) {
    return qp->context->ops.post_recv(qp, wr, bad);
}
// Reads and acknowledges the pending events of a channel, which is non-blocking and has a single reader.
void vb_take_events(vb_comp_channel *channel);
// Returns the status of a completion in the terms of the InfiniBand specification. Static text.
const char *vb_status_text(int status);

#endif
