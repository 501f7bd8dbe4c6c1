// rdma_pair.c: connections without connection manager: the queue pair is created first, so that its number
// can be sent to the peer by other means, and connected when the peer's is known.
//
// All calls run on the control thread and return the device's errors; the keeper reports that the connection
// is open.
#include "core/err.h"
#include "engine/rdma/rdma_ops.h"
#include "pipeline/dq_pipeline.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

#define ROCE_V2   "RoCE v2"
#define ROCE_PORT 4791 // of UDP

// ---- local end --------------------------------------------------------------------------------------------

// Returns true if GID entry k of the port is RoCE v2 in the kernel's list, or if there is no list.
static bool is_v2(const dqi_rdma *r, int k) {
    char path[256], type[32] = "";
    const dqi_rdma_device *d = r->device;
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/gid_attrs/types/%d",
             d->verbs->device->name, d->port_num, k);
    FILE *f = fopen(path, "re");
    if (!f) return true;
    bool v2 = !fgets(type, sizeof type, f) || strncmp(type, ROCE_V2, sizeof ROCE_V2 - 1) == 0;
    fclose(f);
    return v2;
}

// Converts an address to a GID: IPv4 as an IPv4-mapped IPv6 address.
static void gid_of(const dqi_sockaddr *a, uint8_t gid[16]) {
    dqi_sockaddr six = {0};
    dqi_addr_fit(a, AF_INET6, &six);
    memcpy(gid, &six.in6.sin6_addr, 16);
}

static dqi_sockaddr address_of(const uint8_t gid[16]) {
    dqi_sockaddr a = {.in6 = {.sin6_family = AF_INET6}};
    memcpy(&a.in6.sin6_addr, gid, 16);
    dqi_addr_unmap(&a);
    return a;
}

// Reads entry k of the GID table; returns false for an empty one (zeros).
static bool has_gid(const dqi_rdma_device *d, int k, vb_gid *g) {
    return vb.query_gid(d->verbs, d->port_num, k, g) == 0 && (g->halves[0] | g->halves[1]) != 0;
}

// Finds the GID that is configured, or that of the interface's address. Returns DQ_OK or an error.
static int find_gid(const dqi_rdma *r, dq_queue_pair *ours, dq_diag *diag) {
    const dqi_rdma_device *d = r->device;
    int named = r->iface->conf.socket.roce.gid_index, n = d->port.gid_tbl_len;
    uint8_t want[16];
    vb_gid g;
    gid_of(&r->local, want);
    ours->gid_index = -1;
    if (named >= n || (named >= 0 && !has_gid(d, named, &g)))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: gid_index %d: port %u of device %s has no such GID; hint: "
                        "/sys/class/infiniband/%s/ports/%u/gids",
                        r->iface->conf.name, named, d->port_num, d->verbs->device->name,
                        d->verbs->device->name, d->port_num);
    if (named >= 0) {
        ours->gid_index = named;
        memcpy(ours->gid, g.raw, 16);
        return DQ_OK;
    }
    for (int k = 0; k < n && ours->gid_index < 0; k++) {
        bool same = vb.query_gid(d->verbs, d->port_num, k, &g) == 0 && memcmp(g.raw, want, 16) == 0;
        if (!same || !is_v2(r, k)) continue;
        ours->gid_index = k;
        memcpy(ours->gid, g.raw, 16);
    }
    if (ours->gid_index >= 0 || d->port.link_layer != VB_LINK_LAYER_ETHERNET) return DQ_OK;
    return dqi_fail(
        diag, DQ_ESYS - ENODEV,
        "interface %s: port %u of device %s has no GID of its address; hint: gid_index in roce_config",
        r->iface->conf.name, d->port_num, d->verbs->device->name);
}

static int describe(const dqi_rdma *r, dq_queue_pair *ours, dq_diag *diag) {
    const vb_port_attr *port = &r->device->port;
    int mtu = r->iface->conf.socket.roce.mtu, most = 128 << port->active_mtu;
    int err = find_gid(r, ours, diag);
    if (err != DQ_OK) return err;
    if (getrandom(&ours->psn, sizeof ours->psn, 0) != sizeof ours->psn)
        return dqi_fail(diag, DQ_ESYS - errno, "interface %s: cannot obtain a random number: %s",
                        r->iface->conf.name, strerror(errno));
    ours->psn &= 0xffffff;
    ours->lid = port->lid;
    ours->mtu = (uint32_t)(mtu > 0 && mtu < most ? mtu : most);
    ours->qkey = dqi_rdma_is_ud(r) ? DQI_RDMA_QKEY : 0;
    return DQ_OK;
}

// ---- control calls ----------------------------------------------------------------------------------------

int dqi_rdma_pair_open(dq_iface *i, uint32_t *conn, dq_diag *diag) {
    dqi_rdma *r = i->engine;
    dq_queue_pair ours = {0};
    int err = describe(r, &ours, diag);
    if (err != DQ_OK) return err;
    dqi_rconn *c = dqi_rconn_new(r);
    if (!c) return dqi_conn_full(i, diag);
    c->by_hand = true;
    c->pair = ours;
    c->conn.local = r->local;
    err = dqi_rconn_make_qp(c);
    if (err != DQ_OK) {
        dqi_rconn_give_up(c);
        return dqi_fail(diag, err, "interface %s: cannot create a queue pair: %s", i->conf.name,
                        dq_err_name(err));
    }
    c->pair.qpn = c->qp->qp_num;
    *conn = dqi_rconn_id(c);
    char gid[INET6_ADDRSTRLEN];
    dqi_note(i->session, "interface %s: queue pair %u, PSN %u, GID %s (index %d), LID %u, MTU %u",
             i->conf.name, c->pair.qpn, ours.psn, inet_ntop(AF_INET6, ours.gid, gid, sizeof gid),
             ours.gid_index, ours.lid, ours.mtu);
    return DQ_OK;
}

static int cant_join(const dqi_rconn *c, int err, dq_diag *diag) {
    char to[INET6_ADDRSTRLEN];
    const dq_queue_pair *p = &c->pair_peer;
    return dqi_fail(diag, err,
                    "interface %s: connection %u: cannot connect to queue pair %u at %s, lid %u: %s",
                    c->r->iface->conf.name, dqi_rconn_id(c), p->qpn,
                    inet_ntop(AF_INET6, p->gid, to, sizeof to), p->lid, dq_err_name(err));
}

int dqi_rdma_pair_join(dq_iface *i, uint32_t conn, const dq_queue_pair *peer, dq_diag *diag) {
    dqi_rdma *r = i->engine;
    dqi_rconn *c = dqi_rconn_find(r, conn);
    if (!c || !c->by_hand || dqi_rconn_state(c) != DQI_CONN_CONNECTING || atomic_load(&c->joined))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: cannot join connection %u: it has a peer, or has ended", i->conf.name,
                        conn);
    c->pair_peer = *peer;
    c->conn.peer = address_of(peer->gid);
    if (r->device->port.link_layer == VB_LINK_LAYER_ETHERNET && dqi_addr_is_any(&c->conn.peer))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: queue pair %u: on Ethernet it has a gid or an addr, not a lid",
                        i->conf.name, peer->qpn);
    dqi_addr_set_port(&c->conn.peer, ROCE_PORT);
    int err = dqi_rconn_step(c, VB_QPS_RTR);
    if (err == DQ_OK) err = dqi_rconn_step(c, VB_QPS_RTS);
    if (err == DQ_OK && dqi_rdma_is_ud(r)) err = dqi_rconn_meet(c, dqi_rconn_path(c), peer->qpn, peer->qkey);
    if (err != DQ_OK) return cant_join(c, err, diag);
    atomic_fetch_add(&r->version, 1); // receives may be posted now
    atomic_store(&c->joined, true);
    dqi_rdma_wake(r);
    if (c->conn.rx) dqi_queue_kick(c->conn.rx);
    return DQ_OK;
}

int dqi_rdma_pair_read(dq_iface *i, uint32_t conn, dq_queue_pair *ours) {
    dqi_rdma *r = i->engine;
    pthread_mutex_lock(&r->conns.lock);
    const dqi_rconn *c = dqi_rconn_find(r, conn);
    if (c) *ours = c->pair;
    bool by_hand = c && c->by_hand;
    pthread_mutex_unlock(&r->conns.lock);
    return !c ? DQ_INVALID_PARAMETER : by_hand ? DQ_OK : DQ_NOT_SUPPORTED;
}
