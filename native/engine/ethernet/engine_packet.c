// engine_packet.c: frames of a Linux interface beside its kernel, which goes on with them: AF_PACKET alone,
// as tcpdump has it. Engine xdp takes frames from the kernel where it can; what only looks on, such as a
// recording on the interface that one is logged in by, must not.
#include "core/ptp.h"
#include "engine/ethernet/afpacket_port.h"
#include "pipeline/engine.h"

static int open_packet(dq_iface *i, dq_diag *diag) {
    int err = dqi_eth_open(i, &dqi_driver_packet, diag);
    if (err == DQ_OK) dqi_ptp_note(i->session, i->conf.name, i->conf.address);
    return err;
}

const dqi_engine_ops dqi_engine_packet = {
    .name = "packet",
    .open = open_packet,
    .rx = dqi_eth_rx,
    DQI_DEVICE_OPS,
};
