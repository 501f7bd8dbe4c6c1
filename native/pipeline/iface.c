// iface.c: interfaces, and dispatch of calls to their engines, with errors for unsupported ones.
#include "core/err.h"
#include "core/region.h"
#include "pipeline/actions.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/responder.h"
#include "pipeline/session.h"
#include "pipeline/waiter.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

const dqi_engine_ops *dqi_engine_find(const char *name) {
    const dqi_engine_ops *const *e = dqi_engines;
    while (*e && strcmp((*e)->name, name) != 0)
        e++;
    return *e;
}

bool dq_engine(uint32_t i, dq_engine_info *out) {
    for (uint32_t k = 0; k <= i; k++)
        if (!dqi_engines[k]) return false;
    *out = (dq_engine_info){.virtual_clock = dqi_engines[i]->virtual_clock};
    snprintf(out->name, sizeof out->name, "%s", dqi_engines[i]->name);
    return true;
}

static int no_engine(const dq_iface_conf *conf, dq_diag *diag) {
    char names[128] = "";
    size_t n = 0;
    for (const dqi_engine_ops *const *e = dqi_engines; *e && n < sizeof names; e++)
        n += (size_t)snprintf(names + n, sizeof names - n, "%s%s", n > 0 ? ", " : "", (*e)->name);
    return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: engine %s is not in this version (there are %s)",
                    conf->name, conf->engine, names);
}

int dq_iface_add(dq_session *s, const dq_iface_conf *conf, dq_iface **out, dq_diag *diag) {
    if (s->state != DQI_NEW)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: the session is open already", conf->name);
    const dqi_engine_ops *ops = dqi_engine_find(conf->engine);
    if (!ops) return no_engine(conf, diag);
    if (ops->sockets && conf->socket.proto != DQ_PROTO_NONE) ops = ops->sockets;
    if (dqi_virtual(s) && !ops->virtual_clock)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: engine %s can't run on the virtual clock",
                        conf->name, ops->name);
    if (s->n_ifaces == DQI_MAX_IFACES)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "interface %s: more than %d interfaces", conf->name,
                        DQI_MAX_IFACES);
    dq_iface *i = calloc(1, sizeof *i);
    if (!i) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", conf->name);
    i->conf = *conf;
    i->session = s;
    i->ops = ops;
    i->index = s->n_ifaces;
    s->ifaces[s->n_ifaces++] = i;
    *out = i;
    return DQ_OK;
}

// ---- events -----------------------------------------------------------------------------------------------

#define EVENT_DEPTH   16384
#define EVENT_MARGIN  DQ_MAX_QUEUES // for connections ending concurrently, one per thread
#define EVENTS_OF_ONE 2             // connect and disconnect

int dq_iface_events(dq_iface *i, dq_waiter *w, uint64_t tag, dq_diag *diag) {
    if (!i->ops->conns)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: engine %s has no connections", i->conf.name,
                        i->ops->name);
    if (atomic_load(&i->events))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: another listener already accepts its connections", i->conf.name);
    dqi_tap *t = calloc(1, sizeof *t);
    if (!t || !dqi_ring_init(&t->in.ring, EVENT_DEPTH)) {
        free(t);
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    }
    t->waiter = w;
    t->tag = tag;
    int err = dqi_waiter_add(w, t);
    if (err != DQ_OK) {
        dqi_ring_free(&t->in.ring);
        free(t);
        return dqi_fail(diag, err, "interface %s: no memory", i->conf.name);
    }
    atomic_store(&i->events, t);
    return DQ_OK;
}

bool dqi_iface_event(dq_iface *i, int kind, uint32_t conn, int code) {
    dqi_tap *t = atomic_load(&i->events);
    if (!t) return false;
    uint64_t packed = (uint64_t)(uint32_t)code << 32 | conn;
    bool ok = dqi_ring_push(&t->in.ring, (void *)(uintptr_t)packed, (uint32_t)kind);
    if (t->waiter) dqi_waiter_kick(t->waiter);
    return ok;
}

bool dqi_iface_event_room(const dq_iface *i, uint32_t n_conns) {
    const dqi_tap *t = atomic_load(&i->events);
    if (!t || !t->waiter) return true;
    return dqi_ring_level(&t->in.ring) + EVENTS_OF_ONE * n_conns + EVENT_MARGIN <= t->in.ring.mask + 1;
}

void dqi_iface_free(dq_iface *i) {
    dqi_tap *t = atomic_load(&i->events);
    if (t) {
        if (t->waiter) dqi_waiter_remove(t->waiter, t);
        dqi_ring_free(&t->in.ring);
        free(t);
    }
    dqi_responder_free(i);
    dqi_rx_actions_free(i);
    dqi_tx_actions_free(i);
    free(i->given);
    free(i);
}

// ---- optional engine calls --------------------------------------------------------------------------------

static int lacks(const dq_iface *i, const char *what, dq_diag *diag) {
    return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: engine %s has no %s", i->conf.name, i->ops->name,
                    what);
}

int dq_iface_change_rules(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                          uint32_t n_add, const dq_action *actions, dq_diag *diag) {
    if (!i->ops->flows) return lacks(i, "flows", diag);
    int err = dqi_rx_actions_add(i, add, n_add, actions, diag);
    if (err != DQ_OK) return err;
    err = i->ops->flows->change_rules(i, gone, n_gone, add, n_add, diag);
    if (err == DQ_OK)
        dqi_rx_actions_retire(i, gone, n_gone);
    else
        dqi_rx_actions_take_back(i, add, n_add);
    return err;
}

int dq_iface_drop_all(dq_iface *i, bool drop, dq_diag *diag) {
    return i->ops->flows ? i->ops->flows->drop_all(i, drop) : lacks(i, "drop_all_traffic", diag);
}

int dq_iface_mac(const dq_iface *i, uint8_t mac[6]) {
    return i->ops->link && i->ops->link->mac ? i->ops->link->mac(i, mac) : DQ_NOT_SUPPORTED;
}

int dq_iface_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag) {
    const dqi_link_ops *link = i->ops->link;
    if (!link || !link->multicast) return lacks(i, "multicast membership", diag);
    return link->multicast(i, group, source, join, diag);
}

int dq_conn_open(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag) {
    const dqi_conn_ops *c = i->ops->conns;
    if (!c || !c->open) return lacks(i, "connections", diag);
    if (to->private_bytes > 0 && !i->ops->rma) return lacks(i, "private data", diag);
    return c->open(i, to, conn, diag);
}

int dq_conn_close(dq_iface *i, uint32_t conn) {
    const dqi_conn_ops *c = i->ops->conns;
    return c && c->close ? c->close(i, conn) : DQ_NOT_SUPPORTED;
}

int dq_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out) {
    if (!i->ops->conns) return DQ_NOT_SUPPORTED;
    pthread_mutex_lock(&i->session->engines);
    int err = i->session->closed ? DQ_NOT_READY : i->ops->conns->read(i, conn, out);
    pthread_mutex_unlock(&i->session->engines);
    return err;
}

int dq_conn_setsockopt(dq_iface *i, uint32_t conn, int level, int option, const void *value, uint32_t len) {
    const dqi_conn_ops *c = i->ops->conns;
    return c && c->setsockopt ? c->setsockopt(i, conn, level, option, value, len) : DQ_NOT_SUPPORTED;
}

uint32_t dq_stride(uint32_t buf_size, bool queued, const char *engine) {
    const dqi_engine_ops *ops = dqi_engine_find(engine);
    if (!ops) return 0;
    return dqi_stride(buf_size, queued ? DQ_HEADROOM : 0,
                      ops->align > DQI_MIN_ALIGN ? ops->align : DQI_MIN_ALIGN);
}

dq_queue *dqi_first_rx(const dq_iface *i) {
    for (uint32_t k = 0; k < i->n_rx; k++)
        if (dqi_queue_alive(i->rx[k])) return i->rx[k];
    return NULL;
}

dq_queue *dqi_first_tx(const dq_iface *i) {
    for (uint32_t k = 0; k < i->n_tx; k++)
        if (dqi_queue_alive(i->tx[k])) return i->tx[k];
    return NULL;
}

uint32_t dqi_region_uses(const dq_session *s, const dq_region *r, const char **queue) {
    const char *first = NULL;
    uint32_t uses = 0;
    for (uint32_t k = 0; k < s->n_ifaces; k++)
        for (uint32_t d = 0; d < s->ifaces[k]->n_rx + s->ifaces[k]->n_tx; d++) {
            const dq_iface *i = s->ifaces[k];
            if (d == 0 && i->conf.joined == r && uses++ == 0) first = i->conf.name;
            const dq_queue *q = d < i->n_rx ? i->rx[d] : i->tx[d - i->n_rx];
            for (uint32_t n = 0; n < q->conf.n_regions && !dqi_queue_gone(q); n++)
                if (q->conf.regions[n] == r && uses++ == 0) first = q->conf.name;
        }
    if (queue) *queue = first;
    return uses;
}
