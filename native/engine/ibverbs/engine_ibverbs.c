// engine_ibverbs.c: raw Ethernet over verbs: raw packet queue pairs of a device that its driver shares with
// the kernel (mlx5, mlx4). A driver of the common part (ethernet.h); raw.h lists the parts.
#include "core/err.h"
#include "engine/ibverbs/raw.h"

#include <errno.h>
#include <string.h>

static int port_open(dqi_port *p, dq_diag *diag) {
    const dq_iface *i = p->iface;
    vraw_port *v = calloc(1, sizeof *v);
    if (!v) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    p->state = v;
    v->isolates = i->conf.flow_isolation;
    v->rules = calloc(VRAW_FLOWS, sizeof *v->rules);
    if (!v->rules) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    int err = vraw_device_open(p, diag);
    for (uint32_t k = 0; err == DQ_OK && k < i->n_rx; k++) {
        p->n_queues = k + 1;
        err = vraw_rx_open(&p->queues[k], i->rx[k], diag);
    }
    for (uint32_t k = 0; err == DQ_OK && k < i->n_tx; k++)
        err = vraw_tx_open(p, i->tx[k], diag);
    if (err != DQ_OK) return err;
    p->pollable = true;
    if (!p->direct) p->copy = "queues have several regions, which the device can't split frames over";
    dqi_note(i->session, "interface %s: device %s, port %u%s%s, frames of at most %u bytes", i->conf.name,
             v->ctx->device->name, v->port_num, v->netdev[0] ? ", behind " : "", v->netdev, v->frame);
    if (v->mtu > 0) dqi_eth_note_mtu(p, v->mtu);
    return DQ_OK;
}

static int port_start(dqi_port *p, dq_diag *diag) {
    for (uint32_t k = 0; k < DQ_MAX_QUEUES; k++)
        if (p->queues[k].state) vraw_fill(&p->queues[k]);
    return vraw_steer_start(p, diag);
}

static void port_close(dqi_port *p) {
    vraw_port *v = p->state;
    if (!v) return;
    if (v->calls) vraw_steer_stop(p);
    for (uint32_t k = 0; k < DQ_MAX_QUEUES; k++)
        vraw_rx_close(&p->queues[k]);
    for (uint32_t k = 0; k < p->iface->n_tx; k++)
        vraw_tx_close(p->iface->tx[k]);
    vraw_device_close(v);
    free(v->rules);
    free(v);
    p->state = NULL;
}

// Opens a device queue for a receive queue that is added; a started interface receives at once.
static int rx_open(dqi_port_queue *l, dq_queue *q, dq_diag *diag) {
    const vraw_port *v = l->port->state;
    int err = vraw_rx_open(l, q, diag);
    if (err == DQ_OK && v->started) vraw_fill(l);
    return err;
}

static int tx_open(dq_queue *q, dq_diag *diag) {
    int err = vraw_tx_open(dqi_port_of(q->iface), q, diag);
    if (err != DQ_OK) vraw_tx_close(q);
    return err;
}

static int mac(const dqi_port *p, uint8_t out[6]) {
    memcpy(out, ((const vraw_port *)p->state)->mac, 6);
    return DQ_OK;
}

static uint32_t mtu(const dqi_port *p) { return ((const vraw_port *)p->state)->mtu; }

static const dqi_port_driver driver = {
    .name = "raw packets over verbs",
    .open = port_open,
    .start = port_start,
    .stop = vraw_steer_stop,
    .close = port_close,
    .read = vraw_read,
    .release = vraw_release,
    .tx = vraw_send,
    .tx_open = tx_open,
    .tx_close = vraw_tx_close,
    .rx_open = rx_open,
    .rx_close = vraw_rx_close,
    .rx_added = vraw_share,
    .regions = &vraw_regions,
    .reap = vraw_reap,
    .drop_rest = vraw_drop_rest,
    .held = vraw_held,
    .arm_rx = vraw_arm_rx,
    .refresh = vraw_refresh,
    .steer = vraw_steer,
    .mac = mac,
    .mtu = mtu,
};

static int open_ibverbs(dq_iface *i, dq_diag *diag) { return dqi_eth_open(i, &driver, diag); }

const dqi_engine_ops dqi_engine_ibverbs = {
    .name = "ibverbs",
    .reaches_gpu = vraw_reaches_gpu,
    .open = open_ibverbs,
    .rx = dqi_eth_rx,
    DQI_DEVICE_OPS,
};
