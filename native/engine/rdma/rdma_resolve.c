// rdma_resolve.c: addresses: that of the interface, and those of peers to connect to.
#include "core/err.h"
#include "engine/rdma/rdma_conn.h"

#include <errno.h>
#include <string.h>

#define BACKLOG 128

// ---- interface --------------------------------------------------------------------------------------------

static int cant_bind(const dqi_rdma *r, int err, dq_diag *diag) {
    char text[64], names[256] = "";
    const char *name = r->iface->conf.name;
    dqi_addr_text(&r->local, text, sizeof text);
    int n = 0;
    vb_device **list = vb.get_device_list(&n);
    for (int k = 0; list && k < n && strlen(names) + 80 < sizeof names; k++) {
        strcat(names, k ? ", " : "");
        strcat(names, list[k]->name);
    }
    if (list) vb.free_device_list(list);
    if (n == 0)
        return dqi_fail(
            diag, DQ_ESYS - ENODEV,
            "interface %s: there is no RDMA device; hint: a driver for the card, or soft-RoCE: modprobe "
            "rdma_rxe && rdma link add rxe0 type rxe netdev DEVICE",
            name);
    return dqi_fail(
        diag, DQ_ESYS - err,
        "interface %s: %s: %s; hint: an address of the network device behind %s (rdma link)", name, text,
        err == ENODEV || err == EADDRNOTAVAIL ? "not the address of an RDMA device" : strerror(err), names);
}

int dqi_rdma_bind(dqi_rdma *r, dq_diag *diag) {
    const dq_socket_conf *conf = &r->iface->conf.socket;
    dqi_sockaddr at = r->local;
    if (!conf->server) dqi_addr_set_port(&at, 0);
    r->channel = cm.create_event_channel();
    if (!r->channel && errno == ENODEV) return cant_bind(r, ENODEV, diag);
    if (!r->channel)
        return dqi_fail(diag, DQ_ESYS - errno,
                        "interface %s: cannot open the connection manager: %s; hint: modprobe rdma_ucm, and "
                        "the right to open /dev/infiniband/rdma_cm",
                        r->iface->conf.name, strerror(errno));
    int err = dqi_rdma_nonblocking(r->channel->fd);
    if (err != DQ_OK) return dqi_fail(diag, err, "interface %s: %s", r->iface->conf.name, dq_err_name(err));
    if (cm.create_id(r->channel, &r->listener, NULL, dqi_rdma_is_ud(r) ? CM_PS_UDP : CM_PS_TCP) != 0 ||
        cm.bind_addr(r->listener, &at.sa) != 0 || !r->listener->verbs)
        return cant_bind(r, r->listener && r->listener->verbs ? errno : errno ? errno : ENODEV, diag);
    if (conf->server) {
        r->local = dqi_rdma_address(&r->listener->src);
        if (cm.listen(r->listener, BACKLOG) != 0)
            return dqi_fail(diag, DQ_ESYS - errno, "interface %s: cannot listen: %s", r->iface->conf.name,
                            strerror(errno));
    }
    return DQ_OK;
}

// ---- peers ------------------------------------------------------------------------------------------------

static bool set_class(const dqi_rdma *r, cm_id *id) {
    int32_t tc = r->iface->conf.socket.roce.traffic_class;
    uint8_t tos = (uint8_t)tc;
    return tc < 0 || cm.set_option(id, CM_OPTION_ID, CM_OPTION_ID_TOS, &tos, sizeof tos) == 0;
}

static int resolve(dqi_rconn *c, dqi_sockaddr src, dqi_sockaddr dst) {
    dqi_rdma *r = c->r;
    if (cm.create_id(r->channel, &c->id, c, dqi_rdma_is_ud(r) ? CM_PS_UDP : CM_PS_TCP) != 0)
        return DQ_ESYS - errno;
    if (!set_class(r, c->id)) return DQ_ESYS - errno;
    if (cm.resolve_addr(c->id, &src.sa, &dst.sa, DQI_RDMA_RESOLVE_MS) != 0) return DQ_ESYS - errno;
    return DQ_OK;
}

int dqi_rdma_dial(dqi_rconn *c, const dqi_sockaddr *from, const dqi_sockaddr *to) {
    dqi_rdma *r = c->r;
    c->conn.peer = *to;
    c->conn.local = *from;
    pthread_mutex_lock(&r->dialling);
    int err = resolve(c, *from, *to);
    pthread_mutex_unlock(&r->dialling);
    return err;
}

void dqi_rdma_await_dial(dqi_rdma *r) {
    pthread_mutex_lock(&r->dialling);
    pthread_mutex_unlock(&r->dialling);
}
