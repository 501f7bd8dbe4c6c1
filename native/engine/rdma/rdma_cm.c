// rdma_cm.c: connection manager events, handled by the keeper's poller.
//
// All calls are non-blocking: address and route resolution and connection setup proceed by events. An event
// is acknowledged before an id is freed, because freeing waits for that.
#include "core/err.h"
#include "engine/rdma/rdma_conn.h"
#include "engine/rdma/rdma_hello.h"

#include <errno.h>
#include <string.h>

#define LOOK_NS  1000000 // interval between checks for events, unless the keeper is woken
#define PAUSE_NS INT64_C(100000000)

static uint8_t at_most(int n, int limit) { return (uint8_t)(n < limit ? n : limit); }

static cm_conn_param params(const dqi_rconn *c, const cm_conn_param *asked, dqi_rdma_hello *hello) {
    const dqi_rdma *r = c->r;
    int accepts = asked ? asked->responder_resources : 255, begins = asked ? asked->initiator_depth : 255;
    int most = r->device->attr.max_qp_rd_atom, init = r->device->attr.max_qp_init_rd_atom;
    dqi_rdma_write_hello(c, hello);
    return (cm_conn_param){.private_data = hello,
                           .private_data_len = sizeof *hello,
                           .responder_resources = at_most(accepts, most < 16 ? most : 16),
                           .initiator_depth = at_most(begins, init < 16 ? init : 16),
                           .retry_count = DQI_RDMA_RETRIES,
                           .rnr_retry_count = DQI_RDMA_RETRIES,
                           .qp_num = c->qp->qp_num};
}

static void read_hello(dqi_rconn *c, const cm_event *e) {
    const cm_conn_param *p = &e->param.conn;
    const cm_ud_param *ud = &e->param.ud;
    if (dqi_rdma_is_ud(c->r))
        dqi_rdma_read_hello(c, ud->private_data, ud->private_data_len);
    else
        dqi_rdma_read_hello(c, p->private_data, p->private_data_len);
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
    c->conn.local = dqi_rdma_address(&c->id->src);
    c->conn.peer = dqi_rdma_address(&c->id->dst);
    int err = dqi_rconn_make_qp(c);
    if (err == DQ_OK) {
        read_hello(c, e);
        dqi_rconn_post_recv(c);
        dqi_rdma_hello hello;
        cm_conn_param p = params(c, &e->param.conn, &hello);
        err = dqi_rconn_make_ready(c);
        if (err == DQ_OK && cm.accept(c->id, &p) == 0) return true;
        if (err == DQ_OK) err = DQ_ESYS - errno;
    }
    dqi_note(r->iface->session, "interface %s: rejected a connection request: %s", r->iface->conf.name,
             dq_err_name(err));
    cm.reject(c->id, NULL, 0);
    return false;
}

// ---- client -----------------------------------------------------------------------------------------------

static int find_route(dqi_rconn *c) {
    if (c->id->verbs != c->r->device->verbs) return DQ_ESYS - ENODEV;
    int err = dqi_rconn_make_qp(c);
    if (err != DQ_OK) return err;
    return cm.resolve_route(c->id, DQI_RDMA_RESOLVE_MS) == 0 ? DQ_OK : DQ_ESYS - errno;
}

static int ask(dqi_rconn *c) {
    dqi_rdma_hello hello;
    cm_conn_param p = params(c, NULL, &hello);
    int err = dqi_rdma_is_ud(c->r) ? dqi_rconn_make_ready(c) : DQ_OK;
    if (err != DQ_OK) return err;
    dqi_rconn_post_recv(c);
    return cm.connect(c->id, &p) == 0 ? DQ_OK : DQ_ESYS - errno;
}

// Completes the connection after the server's response.
static int answered(dqi_rconn *c) {
    int err = dqi_rconn_make_ready(c);
    if (err != DQ_OK) return err;
    dqi_rconn_post_recv(c); // also for notes
    return cm.establish(c->id) == 0 ? DQ_OK : DQ_ESYS - errno;
}

// Starts a client's own connection when it is due.
static void dial_again(dqi_rdma *r) {
    int64_t now = dq_now(r->iface->session);
    dqi_redial *own = &r->own;
    if (!r->dials || own->retired || atomic_load(&own->conn) || dqi_rdma_stopped(r)) return;
    dqi_rconn *c = own->due_ns <= now ? dqi_rconn_new(r) : NULL;
    if (c) {
        c->conn.redial = own;
        atomic_store(&own->conn, &c->conn);
        int err = dqi_rdma_dial(c, &r->local, &r->remote);
        if (err != DQ_OK) dqi_rconn_end(c, err);
    } else if (own->due_ns <= now) {
        own->due_ns = now + PAUSE_NS;
    }
    if (!atomic_load(&own->conn) && own->due_ns < r->next_ns) r->next_ns = own->due_ns;
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
        read_hello(c, e);
        err = answered(c);
        if (err != DQ_OK) return err; // else it is open; no further event follows
        // fall through
    case CM_ESTABLISHED:
        if (dqi_rdma_is_ud(c->r)) {
            read_hello(c, e);
            if ((err = dqi_rconn_meet(c, e->param.ud.ah_attr, e->param.ud.qp_num, e->param.ud.qkey)) != DQ_OK)
                return err;
        }
        c->conn.local = dqi_rdma_address(&c->id->src);
        c->conn.peer = dqi_rdma_address(&c->id->dst);
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
