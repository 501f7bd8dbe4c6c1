// engine_xdp.c: raw Ethernet on any Linux interface: ethernet.h with the best driver that the interface
// supports.
#include "core/ptp.h"
#include "engine/ethernet/afpacket_port.h"
#include "engine/xdp/xsk_driver.h"
#include "pipeline/engine.h"

#include <string.h>

// In order of preference; the last works on every interface. A driver that returns DQ_NOT_SUPPORTED is
// reported and the next one is tried.
static const dqi_port_driver *const drivers[] = {&dqi_driver_xsk, &dqi_driver_packet};

static int open_driver(dq_iface *i, dq_diag *diag) {
    enum { N = sizeof drivers / sizeof *drivers };
    for (int k = 0; k < N - 1; k++) {
        dq_diag why = {{0}};
        int err = dqi_eth_open(i, drivers[k], &why);
        if (err == DQ_OK) return err;
        if (err != DQ_NOT_SUPPORTED) {
            if (diag) *diag = why;
            return err;
        }
        dqi_note(i->session, "%s; %s is tried", why.text, drivers[k + 1]->name);
        dqi_eth_close(i);
    }
    return dqi_eth_open(i, drivers[N - 1], diag);
}

static int open_xdp(dq_iface *i, dq_diag *diag) {
    int err = open_driver(i, diag);
    if (err == DQ_OK) dqi_ptp_note(i->session, i->conf.name, i->conf.address);
    return err;
}

const dqi_engine_ops dqi_engine_xdp = {
    .name = "xdp",
    .align = 2048, // AF_XDP chunk size
    .claim = dqi_xsk_claim,
    .open = open_xdp,
    .rx = dqi_eth_rx,
    DQI_DEVICE_OPS,
};
