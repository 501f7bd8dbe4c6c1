// rdma_control.c: control calls: open, close and read connections.
#include "core/err.h"
#include "engine/rdma/rdma_conn.h"
#include "engine/rdma/rdma_hello.h"

#include <string.h>

static int resolve(const dq_iface *i, const char *text, bool need_port, dqi_sockaddr *out, dq_diag *diag) {
    int n = dqi_conn_addresses(i, text, need_port, out, 1, diag);
    return n > 0 ? DQ_OK : n;
}

int dqi_rconn_open_op(dq_iface *i, const dq_connect *asked, uint32_t *conn, dq_diag *diag) {
    dqi_rdma *r = i->engine;
    dqi_sockaddr to, from = r->local;
    dqi_addr_set_port(&from, 0);
    const char *local = asked->local ? asked->local : "";
    int err = dqi_conn_check_client(i, diag);
    if (err == DQ_OK) err = resolve(i, asked->address, true, &to, diag);
    if (err == DQ_OK && local[0]) err = resolve(i, local, false, &from, diag);
    if (err == DQ_OK) err = dqi_rdma_check_private(r, asked, diag);
    if (err != DQ_OK) return err;
    if (!dqi_addr_same_host(&from, &r->local))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: '%s' is not its address: it connects from the address that it is bound to",
            i->conf.name, local);
    dqi_rconn *c = dqi_rconn_new(r);
    if (!c) return dqi_conn_full(i, diag);
    *conn = dqi_rconn_id(c);
    c->private_out_bytes = (uint8_t)asked->private_bytes;
    if (c->private_out_bytes > 0) memcpy(c->private_out, asked->private_data, c->private_out_bytes);
    err = dqi_rdma_dial(c, &from, &to);
    if (err == DQ_OK) return DQ_OK;
    dqi_rconn_give_up(c);
    return dqi_fail(diag, err, "interface %s: cannot connect to %s: %s", i->conf.name, asked->address,
                    dq_err_name(err));
}

int dqi_rconn_close_op(dq_iface *i, uint32_t conn) {
    dqi_rdma *r = i->engine;
    pthread_mutex_lock(&r->conns.lock);
    const dqi_conn *c = dqi_conn_request_end(&r->conns, conn);
    pthread_mutex_unlock(&r->conns.lock);
    if (c) dqi_rdma_wake(r);
    return c ? DQ_OK : DQ_INVALID_PARAMETER;
}

int dqi_rconn_read_op(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    dqi_rdma *r = i->engine;
    pthread_mutex_lock(&r->conns.lock);
    dqi_rconn *c = dqi_rconn_find(r, conn ? conn : atomic_load(&r->conns.newest));
    *out = (dq_conn_info){0};
    if (conn == 0) {
        dqi_addr_text(&r->local, out->local, sizeof out->local);
        dqi_addr_text(&r->remote, out->peer, sizeof out->peer);
        out->open = i->conf.socket.server;
        out->rx = i->n_rx ? i->rx[0] : NULL;
        out->tx = i->n_tx ? i->tx[0] : NULL;
    }
    if (c) {
        dqi_conn_describe(&c->conn, out);
        out->private_bytes = out->open ? c->private_in_bytes : 0;
        memcpy(out->private_data, c->private_in, out->private_bytes);
    }
    pthread_mutex_unlock(&r->conns.lock);
    return c || conn == 0 ? DQ_OK : DQ_INVALID_PARAMETER;
}
