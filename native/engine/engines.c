// engines.c: the table of all engines.
#include "pipeline/engine.h"

extern const dqi_engine_ops dqi_engine_loop, dqi_engine_socket, dqi_engine_xdp, dqi_engine_dpdk,
    dqi_engine_pcap, dqi_engine_packet, dqi_engine_rdma, dqi_engine_ibverbs;

const dqi_engine_ops *const dqi_engines[] = {
    &dqi_engine_loop, &dqi_engine_socket,  &dqi_engine_xdp,
    &dqi_engine_dpdk, &dqi_engine_pcap,    &dqi_engine_packet,
    &dqi_engine_rdma, &dqi_engine_ibverbs, NULL,
};
