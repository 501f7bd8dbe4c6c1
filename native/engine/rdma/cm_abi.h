// cm_abi.h: the used part of librdmacm's interface, redeclared as in verbs_abi.h.
#ifndef DQI_CM_ABI_H
#define DQI_CM_ABI_H

#include "engine/rdma/verbs_abi.h"

#include <sys/socket.h>

enum { CM_PS_TCP = 0x0106, CM_PS_UDP = 0x0111 };
enum { CM_OPTION_ID = 0, CM_OPTION_ID_TOS = 0, CM_OPTION_ID_AFONLY = 2 };

typedef enum cm_event_type {
    CM_ADDR_RESOLVED,
    CM_ADDR_ERROR,
    CM_ROUTE_RESOLVED,
    CM_ROUTE_ERROR,
    CM_CONNECT_REQUEST,
    CM_CONNECT_RESPONSE,
    CM_CONNECT_ERROR,
    CM_UNREACHABLE,
    CM_REJECTED,
    CM_ESTABLISHED,
    CM_DISCONNECTED,
    CM_DEVICE_REMOVAL,
    CM_MULTICAST_JOIN,
    CM_MULTICAST_ERROR,
    CM_ADDR_CHANGE,
    CM_TIMEWAIT_EXIT,
} cm_event_type;

typedef struct cm_channel {
    int fd;
} cm_channel;

typedef struct cm_id {
    vb_context *verbs;
    cm_channel *channel;
    void *context;
    vb_qp *qp;
    struct sockaddr_storage src, dst;
    struct {
        uint8_t sgid[16], dgid[16];
        uint16_t pkey;
    } ib;
    struct {
        void *path_rec;
        int num_paths;
    } route;
    int port_space;
    uint8_t port_num;
} cm_id;

typedef struct cm_conn_param {
    const void *private_data;
    uint8_t private_data_len, responder_resources, initiator_depth, flow_control, retry_count,
        rnr_retry_count;
    uint8_t srq;
    uint32_t qp_num;
} cm_conn_param;

typedef struct cm_ud_param {
    const void *private_data;
    uint8_t private_data_len;
    vb_ah_attr ah_attr;
    uint32_t qp_num, qkey;
} cm_ud_param;

typedef struct cm_event {
    cm_id *id, *listen_id;
    int event, status;
    union {
        cm_conn_param conn;
        cm_ud_param ud;
    } param;
} cm_event;

#endif
