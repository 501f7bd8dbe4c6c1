// rdma_cm.c: connection manager events, handled by the keeper's poller.
//
// All calls are non-blocking: address and route resolution and connection setup proceed by events. An event
// is acknowledged before an id is freed, because freeing waits for that.
#include "core/err.h"
#include "engine/rdma/rdma_hello.h"
#include "engine/rdma/rdma_ops.h"

#include <errno.h>
#include <string.h>

#define RESOLVE_MS 2000
#define BACKLOG    128
#define LOOK_NS    1000000 // interval between checks for events, unless the keeper is woken
#define PAUSE_NS   INT64_C(100000000)

static dqi_sockaddr address_of(const struct sockaddr_storage *s) {
    dqi_sockaddr a = {0};
    memcpy(&a, s, sizeof a);
    return a;
}

static uint8_t at_most(int n, int limit) { return (uint8_t)(n < limit ? n : limit); }

static cm_conn_param params(const dqi_rconn *c, const cm_conn_param *asked, dqi_rdma_hello *hello) {
    const dqi_rdma *r = c->r;
    int accepts = asked ? asked->responder_resources : 255, begins = asked ? asked->initiator_depth : 255;
    int most = r->device->attr.max_qp_rd_atom, init = r->device->attr.max_qp_init_rd_atom;
    dqi_rdma_say_hello(c, hello);
    return (cm_conn_param){.private_data = hello,
                           .private_data_len = sizeof *hello,
                           .responder_resources = at_most(accepts, most < 16 ? most : 16),
                           .initiator_depth = at_most(begins, init < 16 ? init : 16),
                           .retry_count = DQI_RDMA_RETRIES,
                           .rnr_retry_count = DQI_RDMA_RETRIES,
                           .qp_num = c->qp->qp_num};
}

static void hear(dqi_rconn *c, const cm_event *e) {
    const cm_conn_param *p = &e->param.conn;
    const cm_ud_param *ud = &e->param.ud;
    if (dqi_rdma_is_ud(c->r))
        dqi_rdma_hear_hello(c, ud->private_data, ud->private_data_len);
    else
        dqi_rdma_hear_hello(c, p->private_data, p->private_data_len);
}

// ---- states of queue pairs --------------------------------------------------------------------------------

// Attributes of reliable connections only.
#define RC_ONLY                                                                                              \
    (VB_QP_MAX_QP_RD_ATOMIC | VB_QP_MAX_DEST_RD_ATOMIC | VB_QP_MIN_RNR_TIMER | VB_QP_TIMEOUT |               \
     VB_QP_RETRY_CNT | VB_QP_RNR_RETRY)
#define KNOWN ((1 << 21) - 1) // the kernel sets further bits, which the libraries reject

int dqi_rconn_step(dqi_rconn *c, int state) {
    if (c->by_hand) return dqi_rconn_step_by_hand(c, state);
    const dq_roce_conf *conf = &c->r->iface->conf.socket.roce;
    vb_qp_attr a = {.qp_state = state};
    int mask = 0;
    if (cm.init_qp_attr(c->id, &a, &mask) != 0) return DQ_ESYS - errno;
    mask &= KNOWN;
    if (conf->transport != DQ_TRANSPORT_RC) mask &= ~RC_ONLY;
    if (mask & VB_QP_ACCESS_FLAGS) {
        a.qp_access_flags |= VB_ACCESS_REMOTE_WRITE;
        if (conf->transport == DQ_TRANSPORT_RC)
            a.qp_access_flags |= VB_ACCESS_REMOTE_READ | VB_ACCESS_REMOTE_ATOMIC;
    }
    if ((mask & VB_QP_PATH_MTU) && conf->mtu > 0 && dqi_rdma_mtu(conf->mtu) < a.path_mtu)
        a.path_mtu = dqi_rdma_mtu(conf->mtu);
    if (mask & VB_QP_MIN_RNR_TIMER) a.min_rnr_timer = DQI_RDMA_RNR_TIMER; // the kernel's 0 is 655 ms
    int err = vb.modify_qp(c->qp, &a, mask);
    return err == 0 ? DQ_OK : DQ_ESYS - (err > 0 ? err : errno);
}

static int make_ready_ud(dqi_rconn *c) {
    vb_qp_attr a = {.qp_state = VB_QPS_RTR};
    int err = vb.modify_qp(c->qp, &a, VB_QP_STATE);
    a.qp_state = VB_QPS_RTS;
    if (err == 0) err = vb.modify_qp(c->qp, &a, VB_QP_STATE | VB_QP_SQ_PSN);
    return err == 0 ? DQ_OK : DQ_ESYS - (err > 0 ? err : errno);
}

static int make_ready(dqi_rconn *c) {
    if (dqi_rdma_is_ud(c->r)) return make_ready_ud(c);
    int err = dqi_rconn_step(c, VB_QPS_RTR);
    return err == DQ_OK ? dqi_rconn_step(c, VB_QPS_RTS) : err;
}

// ---- server -----------------------------------------------------------------------------------------------

// Accepts a connection request; returns false if it was rejected. *out: the connection created for it, NULL:
// none, and the caller frees the id.
static bool take_request(dqi_rdma *r, const cm_event *e, dqi_rconn **out) {
    dqi_rconn *c = *out = dqi_rdma_stopped(r) ? NULL : dqi_rconn_new(r);
    if (!c) {
        cm.reject(e->id, NULL, 0);
        return false;
    }
    c->id = e->id;
    c->id->context = c;
    c->local = address_of(&c->id->src);
    c->peer = address_of(&c->id->dst);
    int err = dqi_rconn_make_qp(c);
    if (err == DQ_OK) {
        hear(c, e);
        dqi_rconn_post_recv(c);
        dqi_rdma_hello hello;
        cm_conn_param p = params(c, &e->param.conn, &hello);
        err = make_ready(c);
        if (err == DQ_OK && cm.accept(c->id, &p) == 0) return true;
        if (err == DQ_OK) err = DQ_ESYS - errno;
    }
    dqi_note(r->iface->session, "interface %s: a connection was refused: %s", r->iface->conf.name,
             dq_err_name(err));
    cm.reject(c->id, NULL, 0);
    return false;
}

// ---- client -----------------------------------------------------------------------------------------------

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
    if (cm.resolve_addr(c->id, &src.sa, &dst.sa, RESOLVE_MS) != 0) return DQ_ESYS - errno;
    return DQ_OK;
}

int dqi_rdma_dial(dqi_rconn *c, const dqi_sockaddr *from, const dqi_sockaddr *to) {
    dqi_rdma *r = c->r;
    c->peer = *to;
    c->local = *from;
    pthread_mutex_lock(&r->dialling);
    int err = resolve(c, *from, *to);
    pthread_mutex_unlock(&r->dialling);
    return err;
}

void dqi_rdma_await_dial(dqi_rdma *r) {
    pthread_mutex_lock(&r->dialling);
    pthread_mutex_unlock(&r->dialling);
}

static int find_route(dqi_rconn *c) {
    if (c->id->verbs != c->r->device->verbs) return DQ_ESYS - ENODEV;
    int err = dqi_rconn_make_qp(c);
    if (err != DQ_OK) return err;
    return cm.resolve_route(c->id, RESOLVE_MS) == 0 ? DQ_OK : DQ_ESYS - errno;
}

static int ask(dqi_rconn *c) {
    dqi_rdma_hello hello;
    cm_conn_param p = params(c, NULL, &hello);
    int err = dqi_rdma_is_ud(c->r) ? make_ready_ud(c) : DQ_OK;
    if (err != DQ_OK) return err;
    dqi_rconn_post_recv(c);
    return cm.connect(c->id, &p) == 0 ? DQ_OK : DQ_ESYS - errno;
}

// Stores the address of a datagram server that has responded.
static int meet(dqi_rconn *c, const cm_ud_param *p) {
    vb_ah_attr a = p->ah_attr;
    vb_ah *ah = vb.create_ah(c->r->device->pd, &a);
    if (!ah) return DQ_ESYS - errno;
    dqi_rconn_lock(c);
    c->ah = ah;
    c->qpn = p->qp_num;
    c->qkey = p->qkey;
    dqi_rconn_unlock(c);
    return DQ_OK;
}

// Completes the connection after the server's response.
static int answered(dqi_rconn *c) {
    int err = make_ready(c);
    if (err != DQ_OK) return err;
    dqi_rconn_post_recv(c); // also for notes
    return cm.establish(c->id) == 0 ? DQ_OK : DQ_ESYS - errno;
}

// Starts a client's own connection when it is due.
static void dial_again(dqi_rdma *r) {
    int64_t now = dq_now(r->iface->session);
    if (!r->dials || r->retired || dqi_rdma_stopped(r)) return;
    if (r->dial_ns > now) {
        if (r->dial_ns < r->next_ns) r->next_ns = r->dial_ns;
        return;
    }
    dqi_rconn *c = dqi_rconn_new(r);
    if (!c) {
        r->dial_ns = now + PAUSE_NS;
        r->next_ns = r->dial_ns;
        return;
    }
    r->dials = false;
    c->primary = true;
    int err = dqi_rdma_dial(c, &r->local, &r->remote);
    if (err != DQ_OK) dqi_rconn_end(c, err);
    if (r->dials && r->dial_ns < r->next_ns) r->next_ns = r->dial_ns;
}

// ---- events -----------------------------------------------------------------------------------------------

// Converts a failure to a system error. status: a negative errno, or a reason code of the InfiniBand
// specification.
static int failure(const cm_event *e) {
    if (e->event == CM_REJECTED) return DQ_ESYS - ECONNREFUSED;
    if (e->status < 0) return DQ_ESYS + e->status;
    return e->event == CM_UNREACHABLE ? DQ_ESYS - ETIMEDOUT : DQ_CONNECT_FAILURE;
}

static int of_connection(dqi_rconn *c, const cm_event *e) {
    int err;
    switch (e->event) {
    case CM_ADDR_RESOLVED:
        return find_route(c);
    case CM_ROUTE_RESOLVED:
        return ask(c);
    case CM_CONNECT_RESPONSE:
        hear(c, e);
        err = answered(c);
        if (err != DQ_OK) return err; // else it is open; no further event follows
        // fall through
    case CM_ESTABLISHED:
        if (dqi_rdma_is_ud(c->r)) {
            hear(c, e);
            if ((err = meet(c, &e->param.ud)) != DQ_OK) return err;
        }
        c->local = address_of(&c->id->src);
        c->peer = address_of(&c->id->dst);
        dqi_rconn_opened(c);
        return DQ_OK;
    case CM_ADDR_ERROR:
    case CM_ROUTE_ERROR:
    case CM_CONNECT_ERROR:
    case CM_UNREACHABLE:
    case CM_REJECTED:
        return failure(e);
    case CM_DISCONNECTED:
        c->gone = true;
        atomic_store(&c->r->attention, true);
        return DQ_OK;
    case CM_DEVICE_REMOVAL:
        return DQ_ESYS - ENODEV;
    }
    return DQ_OK;
}

// Handles one event; returns false if there is none.
static bool take_event(dqi_rdma *r) {
    cm_event *e;
    if (cm.get_cm_event(r->channel, &e) != 0) return false;
    dqi_rdma_await_dial(r);
    cm_id *id = e->id;
    dqi_rconn *c = NULL;
    int err = DQ_OK;
    bool asks = e->event == CM_CONNECT_REQUEST, refused = asks && !take_request(r, e, &c);
    if (e->event != CM_CONNECT_REQUEST && id != r->listener) {
        c = id->context;
        if (c && c->id == e->id) err = of_connection(c, e);
    }
    cm.ack_cm_event(e);
    if (asks && !refused && dqi_rdma_is_ud(r)) dqi_rconn_opened(c); // no further event follows
    if (refused && c) dqi_rconn_give_up(c);
    if (refused && !c) cm.destroy_id(id);
    if (err != DQ_OK) {
        c->gone = true;
        dqi_rconn_end(c, err);
    }
    return true;
}

// Handles the device's events for queue pairs, including those of other sessions, which share the context.
static void take_async(dqi_rdma *r) {
    vb_async_event e;
    while (vb.get_async_event(r->device->verbs, &e) == 0) {
        bool of_qp = e.event_type >= VB_EVENT_QP_FATAL && e.event_type <= VB_EVENT_QP_ACCESS_ERR;
        if (of_qp) dqi_rconn_in_error(e.element.qp->qp_context);
        if (e.event_type == VB_EVENT_DEVICE_FATAL)
            dqi_note(r->iface->session, "interface %s: device %s has failed", r->iface->conf.name,
                     r->device->verbs->device->name);
        vb.ack_async_event(&e);
    }
}

void dqi_rdma_serve(dqi_rdma *r) {
    int64_t now = dq_now(r->iface->session);
    bool asked = atomic_exchange(&r->attention, false);
    if (!asked && now < r->next_ns && now < r->looked_ns + LOOK_NS) return;
    bool due = asked || now >= r->next_ns;
    r->looked_ns = now;
    while (take_event(r)) {
    }
    take_async(r);
    // Starting an end requests attention, so idle connections are not scanned.
    if (!atomic_exchange(&r->attention, false) && !due) return;
    r->next_ns = dqi_rconn_ending_serve(r);
    dial_again(r);
}

void dqi_rdma_refuse_rest(dqi_rdma *r) {
    cm_event *e;
    while (cm.get_cm_event(r->channel, &e) == 0) {
        cm_id *id = e->event == CM_CONNECT_REQUEST ? e->id : NULL;
        cm.ack_cm_event(e);
        if (id) cm.destroy_id(id);
    }
}

// ---- address of the interface -----------------------------------------------------------------------------

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
        err == ENODEV || err == EADDRNOTAVAIL ? "it is the address of no RDMA device" : strerror(err), names);
}

int dqi_rdma_bind(dqi_rdma *r, dq_diag *diag) {
    const dq_socket_conf *conf = &r->iface->conf.socket;
    dqi_sockaddr at = r->local;
    if (!conf->server) dqi_addr_set_port(&at, 0);
    r->channel = cm.create_event_channel();
    if (!r->channel && errno == ENODEV) return cant_bind(r, ENODEV, diag);
    if (!r->channel)
        return dqi_fail(
            diag, DQ_ESYS - errno,
            "interface %s: the connection manager can't be reached: %s; hint: modprobe rdma_ucm, and "
            "the right to open /dev/infiniband/rdma_cm",
            r->iface->conf.name, strerror(errno));
    int err = dqi_rdma_nonblocking(r->channel->fd);
    if (err != DQ_OK) return dqi_fail(diag, err, "interface %s: %s", r->iface->conf.name, dq_err_name(err));
    if (cm.create_id(r->channel, &r->listener, NULL, dqi_rdma_is_ud(r) ? CM_PS_UDP : CM_PS_TCP) != 0 ||
        cm.bind_addr(r->listener, &at.sa) != 0 || !r->listener->verbs)
        return cant_bind(r, r->listener && r->listener->verbs ? errno : errno ? errno : ENODEV, diag);
    if (conf->server) {
        r->local = address_of(&r->listener->src);
        if (cm.listen(r->listener, BACKLOG) != 0)
            return dqi_fail(diag, DQ_ESYS - errno, "interface %s: listen: %s", r->iface->conf.name,
                            strerror(errno));
    }
    return DQ_OK;
}
