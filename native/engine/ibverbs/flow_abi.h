// flow_abi.h: flow steering of libibverbs, redeclared as in ../rdma/verbs_abi.h. Its functions are not
// exported: they are stored by the provider in front of a context.
#ifndef DQI_FLOW_ABI_H
#define DQI_FLOW_ABI_H

#include "engine/rdma/verbs_abi.h"

enum { VB_FLOW_NORMAL, VB_FLOW_ALL_DEFAULT };
enum { VB_SPEC_ETH = 0x20, VB_SPEC_IPV4 = 0x30, VB_SPEC_IPV6 = 0x31, VB_SPEC_TCP = 0x40, VB_SPEC_UDP = 0x41 };

typedef struct vb_flow vb_flow;

typedef struct vb_flow_attr {
    uint32_t comp_mask;
    int type;
    uint16_t size, priority; // size: includes the specs behind it
    uint8_t num_of_specs, port;
    uint32_t flags;
} vb_flow_attr;

// Values and masks, in network byte order.
typedef struct vb_eth {
    uint8_t dst[6], src[6];
    uint16_t type, vlan_tag;
} vb_eth;

typedef struct vb_spec_eth {
    int type;
    uint16_t size;
    vb_eth val, mask;
} vb_spec_eth;

typedef struct vb_ipv4 {
    uint32_t src, dst;
} vb_ipv4;

typedef struct vb_spec_ipv4 {
    int type;
    uint16_t size;
    vb_ipv4 val, mask;
} vb_spec_ipv4;

typedef struct vb_ipv6 {
    uint8_t src[16], dst[16];
    uint32_t flow_label;
    uint8_t next_header, traffic_class, hop_limit;
} vb_ipv6;

typedef struct vb_spec_ipv6 {
    int type;
    uint16_t size;
    vb_ipv6 val, mask;
} vb_spec_ipv6;

typedef struct vb_ports {
    uint16_t dst, src;
} vb_ports;

typedef struct vb_spec_ports {
    int type;
    uint16_t size;
    vb_ports val, mask;
} vb_spec_ports;

// Precedes a context whose abi_compat indicates it; size includes the context.
typedef struct vb_context_ex {
    int (*destroy_flow)(vb_flow *flow);
    void *hole;
    vb_flow *(*create_flow)(vb_qp *qp, vb_flow_attr *attr);
    void *between[7];
    uint64_t hole2;
    size_t size;
    vb_context context;
} vb_context_ex;

#endif
