// flow_abi_test.c: our declarations of flow steering against libibverbs' own header, field by field.
#include "dqtest.h"

#if __has_include(<infiniband/verbs.h>)
#include "engine/ibverbs/flow_abi.h"

#include <infiniband/verbs.h>

#define SIZE(ours, theirs) DQ_CHECK(sizeof(ours) == sizeof(theirs))
#define FIELD2(ours, a, theirs, b)                                                                           \
    DQ_CHECK(offsetof(ours, a) == offsetof(theirs, b) && sizeof(((ours *)0)->a) == sizeof(((theirs *)0)->b))
#define SAME(ours, theirs) DQ_CHECK((long)(ours) == (long)(theirs))
// How far in front of the context a call stands.
#define AHEAD(ours, theirs)                                                                                  \
    DQ_CHECK(offsetof(vb_context_ex, context) - offsetof(vb_context_ex, ours) ==                             \
             offsetof(struct verbs_context, context) - offsetof(struct verbs_context, theirs))

static void check_specs(void) {
    SIZE(vb_flow_attr, struct ibv_flow_attr);
    FIELD2(vb_flow_attr, size, struct ibv_flow_attr, size);
    FIELD2(vb_flow_attr, priority, struct ibv_flow_attr, priority);
    FIELD2(vb_flow_attr, num_of_specs, struct ibv_flow_attr, num_of_specs);
    FIELD2(vb_flow_attr, port, struct ibv_flow_attr, port);
    SIZE(vb_spec_eth, struct ibv_flow_spec_eth);
    FIELD2(vb_spec_eth, val.type, struct ibv_flow_spec_eth, val.ether_type);
    FIELD2(vb_spec_eth, mask.vlan_tag, struct ibv_flow_spec_eth, mask.vlan_tag);
    FIELD2(vb_eth, dst, struct ibv_flow_eth_filter, dst_mac);
    SIZE(vb_spec_ipv4, struct ibv_flow_spec_ipv4);
    FIELD2(vb_spec_ipv4, mask.src, struct ibv_flow_spec_ipv4, mask.src_ip);
    SIZE(vb_spec_ipv6, struct ibv_flow_spec_ipv6);
    FIELD2(vb_spec_ipv6, mask.dst, struct ibv_flow_spec_ipv6, mask.dst_ip);
    SIZE(vb_spec_ports, struct ibv_flow_spec_tcp_udp);
    FIELD2(vb_spec_ports, mask.src, struct ibv_flow_spec_tcp_udp, mask.src_port);
    SAME(VB_FLOW_NORMAL, IBV_FLOW_ATTR_NORMAL);
    SAME(VB_FLOW_ALL_DEFAULT, IBV_FLOW_ATTR_ALL_DEFAULT);
    SAME(VB_SPEC_ETH, IBV_FLOW_SPEC_ETH);
    SAME(VB_SPEC_IPV4, IBV_FLOW_SPEC_IPV4);
    SAME(VB_SPEC_IPV6, IBV_FLOW_SPEC_IPV6);
    SAME(VB_SPEC_TCP, IBV_FLOW_SPEC_TCP);
    SAME(VB_SPEC_UDP, IBV_FLOW_SPEC_UDP);
}

static void check_contexts(void) {
    AHEAD(create_flow, ibv_create_flow);
    AHEAD(destroy_flow, ibv_destroy_flow);
    AHEAD(size, sz);
    SIZE(vb_context, struct ibv_context);
    FIELD2(vb_context, abi_compat, struct ibv_context, abi_compat);
    SAME(VB_QPT_RAW_PACKET, IBV_QPT_RAW_PACKET);
    SAME(VB_EVENT_PORT_ERR, IBV_EVENT_PORT_ERR);
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    DQ_RUN(check_specs);
    DQ_RUN(check_contexts);
    return dq_done();
}
#else
int main(void) { dq_lack("rdma", "no <infiniband/verbs.h>"); }
#endif
