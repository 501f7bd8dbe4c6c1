// rdma_control.c: control calls: open, close and read connections.
#include "core/err.h"
#include "engine/rdma/rdma.h"
#include "engine/rdma/rdma_hello.h"

#include <string.h>

// Resolves "host:port" into *out. Returns DQ_OK or an error.
static int address(const dqi_rdma *r, const char *text, bool need_port, dqi_sockaddr *out, dq_diag *diag) {
    char host[256];
    int32_t port;
    dq_proto proto;
    const char *why = "", *name = r->iface->conf.name,
               *bare = strstr(text, "roce://") == text ? text + 7 : text;
    if (!dqi_addr_split(bare, host, sizeof host, &port, &proto) || (need_port && (port <= 0 || !host[0])))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: '%s' is not an address; hint: \"host:port\" or \"[IPv6]:port\"", name,
                        text);
    if (proto != DQ_PROTO_NONE)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: '%s': this interface speaks roce", name,
                        text);
    int n = dqi_addr_resolve(host, port > 0 ? (uint16_t)port : 0, out, 1, &why);
    return n > 0 ? DQ_OK : dqi_fail(diag, n, "interface %s: %s: %s", name, text, why);
}

int dqi_rconn_open_op(dq_iface *i, const dq_connect *asked, uint32_t *conn, dq_diag *diag) {
    dqi_rdma *r = i->engine;
    dqi_sockaddr to, from = r->local;
    dqi_addr_set_port(&from, 0);
    if (i->conf.socket.server)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "interface %s: a server waits for its peers; hint: connect from a client",
                        i->conf.name);
    const char *local = asked->local ? asked->local : "";
    int err = address(r, asked->address, true, &to, diag);
    if (err == DQ_OK && local[0]) err = address(r, local, false, &from, diag);
    if (err == DQ_OK) err = dqi_rdma_check_private(r, asked, diag);
    if (err != DQ_OK) return err;
    if (!dqi_addr_same_host(&from, &r->local))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: '%s' is not its address: it connects from the address that it is bound to",
            i->conf.name, local);
    dqi_rconn *c = dqi_rconn_new(r);
    if (!c)
        return dqi_fail(
            diag, DQ_NO_SPACE_AVAILABLE,
            "interface %s: it has %u connections, or as many have come and gone unseen; hint: close "
            "some, and let the connection handlers run",
            i->conf.name, DQI_CONNS);
    *conn = dqi_rconn_id(c);
    c->given_bytes = (uint8_t)asked->private_bytes;
    if (c->given_bytes > 0) memcpy(c->given, asked->private_data, c->given_bytes);
    err = dqi_rdma_dial(c, &from, &to);
    if (err == DQ_OK) return DQ_OK;
    dqi_rconn_give_up(c);
    return dqi_fail(diag, err, "interface %s: connection to %s: %s", i->conf.name, asked->address,
                    dq_err_name(err));
}

int dqi_rconn_close_op(dq_iface *i, uint32_t conn) {
    dqi_rdma *r = i->engine;
    pthread_mutex_lock(&r->lock);
    dqi_rconn *c = dqi_rconn_find(r, conn);
    bool live = c && dqi_rconn_state(c) != DQI_CONN_FREE && !atomic_exchange(&c->closing, true);
    pthread_mutex_unlock(&r->lock);
    if (live) dqi_rdma_wake(r);
    return live ? DQ_OK : DQ_INVALID_PARAMETER;
}

int dqi_rconn_read_op(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    dqi_rdma *r = i->engine;
    pthread_mutex_lock(&r->lock);
    dqi_rconn *c = dqi_rconn_find(r, conn ? conn : atomic_load(&r->newest));
    *out = (dq_conn_info){0};
    if (conn == 0) {
        dqi_addr_text(&r->local, out->local, sizeof out->local);
        dqi_addr_text(&r->remote, out->peer, sizeof out->peer);
        out->open = i->conf.socket.server;
        out->rx = i->n_rx ? i->rx[0] : NULL;
        out->tx = i->n_tx ? i->tx[0] : NULL;
    }
    if (c) {
        dqi_addr_text(&c->local, out->local, sizeof out->local);
        dqi_addr_text(&c->peer, out->peer, sizeof out->peer);
        out->open = dqi_rconn_state(c) == DQI_CONN_OPEN && !atomic_load(&c->closing);
        out->private_bytes = out->open ? c->heard_bytes : 0;
        memcpy(out->private_data, c->heard, out->private_bytes);
        out->rx = c->rx;
        out->tx = c->tx;
    }
    pthread_mutex_unlock(&r->lock);
    return c || conn == 0 ? DQ_OK : DQ_INVALID_PARAMETER;
}
