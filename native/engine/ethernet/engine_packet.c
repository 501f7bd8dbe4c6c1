// engine_packet.c: passive capture of frames of a Linux interface through AF_PACKET, as tcpdump does; the
// kernel still receives them. Engine xdp takes frames away from the kernel where it can, which a recording on
// the interface of a remote login must not do.
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
