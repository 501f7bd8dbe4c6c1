#include "pipeline/responder.h"
#include "core/err.h"
#include "core/region.h"
#include "neighbour/membership.h"
#include "neighbour/neighbours.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { TYPE_ARP = 0x0806, PROTO_IGMP = 2, HOP_BY_HOP = 0, MAX_TAGS = 2, TAG_LEN = 4 };
enum { LEAST_QUESTION = 42, LEAST_FRAME = 60 }; // bytes

struct dqi_responder {
    dq_iface *iface;
    dqi_spin lock; // protects me, near and groups
    dqi_station me;
    dqi_neighbours near;
    dqi_membership groups;
    _Atomic int64_t due; // session time of the next report
};

// ---- sending ----------------------------------------------------------------------------------------------

static bool put(dq_queue *q, const uint8_t *frame, uint32_t len) {
    dq_burst *b;
    uint32_t padded = len < LEAST_FRAME ? LEAST_FRAME : len;
    if (padded > q->conf.regions[0]->conf.buf_size || dq_tx_alloc(q, 1, &b) != DQ_OK) return false;
    uint8_t *to = dqi_bytes(b, 0, 0);
    memcpy(to, frame, len);
    memset(to + len, 0, padded - len);
    dq_burst_set_len(b, 0, -1, padded);
    if (dqi_tx_put(q, b) == DQ_OK) {
        dqi_queue_kick(q);
        return true;
    }
    dq_burst_unref(b);
    return false;
}

static void send_frame(dqi_responder *r, const uint8_t *frame, uint32_t len) {
    dq_queue *q = dqi_first_tx(r->iface);
    if (!q) return;
    dqi_add_shared(&q->c.extra[put(q, frame, len) ? DQ_EXTRA_ANSWERED : DQ_EXTRA_UNANSWERED], 1);
}

static bool ended(const dqi_responder *r) { return r->iface->session->state > DQI_STARTED; }

// Sends all due reports; returns their number.
static int say_what_is_due(dqi_responder *r) {
    uint8_t out[DQI_REPORT_MAX];
    const dq_queue *q = dqi_first_tx(r->iface);
    uint32_t size = q ? q->conf.regions[0]->conf.buf_size : sizeof out;
    uint32_t room = size < DQI_REPORT_LEAST ? DQI_REPORT_LEAST : size < sizeof out ? size : sizeof out, len;
    int n = -1;
    do {
        dqi_lock(&r->lock);
        len = dqi_membership_report(&r->groups, &r->me, dq_now(r->iface->session), out, room);
        atomic_store(&r->due, dqi_membership_due(&r->groups));
        dqi_unlock(&r->lock);
        if (len > 0) send_frame(r, out, len);
        n++;
    } while (len > 0);
    return n;
}

int dqi_responder_poll(dqi_responder *r, dq_queue *q) {
    int64_t due = atomic_load_explicit(&r->due, memory_order_relaxed);
    int n = 0;
    if (due == INT64_MAX || ended(r)) return 0;
    if (due <= dq_now(q->session)) {
        n = say_what_is_due(r);
        due = atomic_load_explicit(&r->due, memory_order_relaxed);
    }
    if (due < q->next_ns) q->next_ns = due;
    return n;
}

// ---- requests ---------------------------------------------------------------------------------------------

// Returns false if the frame is certainly not a request.
static bool may_ask(const uint8_t *p, uint32_t len) {
    if (len < LEAST_QUESTION + MAX_TAGS * TAG_LEN) return len >= LEAST_QUESTION;
    uint16_t type = dqi_be16(p + 12);
    for (int k = 0; k < MAX_TAGS && (type == DQI_TYPE_VLAN || type == DQI_TYPE_QINQ); k++)
        type = dqi_be16((p += TAG_LEN) + 12);
    if (type == DQI_TYPE_IPV4) return p[23] == PROTO_IGMP;
    if (type == DQI_TYPE_IPV6) return p[20] == DQI_PROTO_ICMPV6 || p[20] == HOP_BY_HOP;
    return type == TYPE_ARP;
}

static void answer(dqi_responder *r, const uint8_t *frame, uint32_t len) {
    uint8_t out[DQI_NEIGH_MAX];
    dqi_neighbour found;
    dqi_lock(&r->lock);
    if (r->near.n > 0 && dqi_neigh_hear(frame, len, &found))
        dqi_neighbours_update(&r->near, &found, dq_now(r->iface->session));
    uint32_t n = dqi_neigh_answer(&r->me, frame, len, out);
    if (n == 0 && r->groups.n > 0 && dqi_membership_query(&r->groups, frame, len, dq_now(r->iface->session)))
        atomic_store(&r->due, dqi_membership_due(&r->groups));
    dqi_unlock(&r->lock);
    if (n > 0) send_frame(r, out, n);
}

void dqi_responder_look(dqi_responder *r, const uint8_t *base, const uint64_t *off, const uint32_t *len,
                        uint32_t n) {
    if (ended(r)) return;
    for (uint32_t k = 0; k < n; k++)
        if (may_ask(base + off[k], len[k])) answer(r, base + off[k], len[k]);
}

// ---- lifecycle --------------------------------------------------------------------------------------------

static int get(dq_iface *i, dqi_responder **out, dq_diag *diag) {
    *out = dqi_responder_of(i);
    if (*out) return DQ_OK;
    dqi_responder *r = calloc(1, sizeof *r);
    if (!r) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    r->iface = i;
    atomic_init(&r->due, INT64_MAX);
    uint64_t seed = i->session->core.conf.seed + i->index + 1;
    if (dq_iface_mac(i, r->me.mac) == DQ_OK)
        for (int k = 0; k < 6; k++)
            seed = seed * 257 + r->me.mac[k];
    dqi_membership_init(&r->groups, seed);
    atomic_store_explicit(&i->responder, r, memory_order_release);
    *out = r;
    return DQ_OK;
}

void dqi_responder_stop(dq_iface *i) {
    dqi_responder *r = dqi_responder_of(i);
    if (!r) return;
    dqi_lock(&r->lock);
    dqi_membership_leave_all(&r->groups, dq_now(i->session));
    dqi_unlock(&r->lock);
    say_what_is_due(r);
}

void dqi_responder_free(dq_iface *i) {
    dqi_responder *r = dqi_responder_of(i);
    if (!r) return;
    dqi_membership_free(&r->groups);
    free(r);
    atomic_store(&i->responder, NULL);
}

// ---- groups -----------------------------------------------------------------------------------------------

int dqi_responder_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag) {
    dqi_group g;
    dqi_responder *r;
    int err = dqi_group_parse(i->conf.name, group, source, &g, diag);
    if (err == DQ_OK) err = get(i, &r, diag);
    if (err != DQ_OK) return err;
    dqi_lock(&r->lock);
    bool first = r->groups.cap == 0;
    err = dqi_membership_change(&r->groups, &g, join, dq_now(i->session));
    dqi_unlock(&r->lock);
    if (err != 0) return dqi_group_fail(i->conf.name, group, err, diag);
    if (first && !dqi_first_tx(i))
        dqi_note(i->session,
                 "interface %s: no report of its multicast groups is sent: it has no transmit queue",
                 i->conf.name);
    say_what_is_due(r);
    for (uint32_t k = 0; k < i->n_rx; k++) // reports are repeated
        dqi_queue_kick(i->rx[k]);
    return DQ_OK;
}

uint32_t dqi_responder_macs(const dq_iface *i, uint8_t (*macs)[6], uint32_t max) {
    dqi_responder *r = dqi_responder_of(i);
    if (!r) return 0;
    dqi_lock(&r->lock);
    uint32_t n = dqi_membership_macs(&r->groups, macs, max);
    dqi_unlock(&r->lock);
    return n;
}

// ---- addresses --------------------------------------------------------------------------------------------

static int family_of(const dq_ip *a) { return a->len == 4 ? AF_INET : AF_INET6; }

static int check(const dq_iface *i, const dq_ip *addrs, uint32_t n, dq_diag *diag) {
    uint32_t four = 0, six = 0;
    if (n > 0 && (!dqi_first_tx(i) || !dqi_first_rx(i)))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: it answers through a transmit queue what a receive queue sees: it has no "
            "%s queue",
            i->conf.name, !dqi_first_tx(i) ? "transmit" : "receive");
    for (uint32_t k = 0; k < n; k++) {
        const uint8_t *b = addrs[k].bytes;
        if (addrs[k].len == 4 ? b[0] == 0 || b[0] >= 224 : b[0] == 0xff)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: address %u is not a host's",
                            i->conf.name, k + 1);
        *(addrs[k].len == 4 ? &four : &six) += 1;
    }
    if (four <= DQI_NEIGH_ADDRS && six <= DQI_NEIGH_ADDRS) return DQ_OK;
    return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "interface %s: more than %d addresses of a kind",
                    i->conf.name, DQI_NEIGH_ADDRS);
}

// Solicitations for an IPv6 address go to its solicited-node multicast group (RFC 4291, 2.7.1).
static void solicited_node(dq_iface *i, const uint8_t *ip6, bool join) {
    uint8_t group[16] = {0xff, 2, [11] = 1, [12] = 0xff};
    char text[INET6_ADDRSTRLEN];
    dq_diag diag = {{0}};
    memcpy(group + 13, ip6 + 13, 3);
    inet_ntop(AF_INET6, group, text, sizeof text);
    if (dq_iface_multicast(i, text, "", join, &diag) != DQ_OK && join) dqi_note(i->session, "%s", diag.text);
}

static void set_station(dqi_responder *r, const dq_ip *addrs, uint32_t n) {
    dqi_lock(&r->lock);
    r->me.n_ip4 = r->me.n_ip6 = 0;
    for (uint32_t k = 0; k < n; k++)
        if (addrs[k].len == 4)
            memcpy(r->me.ip4[r->me.n_ip4++], addrs[k].bytes, 4);
        else
            memcpy(r->me.ip6[r->me.n_ip6++], addrs[k].bytes, 16);
    dqi_unlock(&r->lock);
}

static void note_addresses(const dq_iface *i, const dq_ip *addrs, uint32_t n) {
    char list[1024];
    size_t at = 0;
    for (uint32_t k = 0; k < n && at + INET6_ADDRSTRLEN + 2 < sizeof list; k++) {
        char text[INET6_ADDRSTRLEN];
        inet_ntop(family_of(&addrs[k]), addrs[k].bytes, text, sizeof text);
        at += (size_t)snprintf(list + at, sizeof list - at, "%s%s", k > 0 ? ", " : "", text);
    }
    if (n > 0)
        dqi_note(i->session, "interface %s: answers ARP and neighbour discovery for %s", i->conf.name, list);
}

int dq_iface_answer(dq_iface *i, const dq_ip *addrs, uint32_t n, dq_diag *diag) {
    dqi_responder *r;
    uint8_t mac[6];
    if (!i->ops->link || !i->ops->link->answers)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "interface %s: engine %s leaves answers for addresses to the kernel", i->conf.name,
                        i->ops->name);
    int err = i->ops->link->answers(i, diag);
    if (err == DQ_OK) err = check(i, addrs, n, diag);
    if (err == DQ_OK) err = get(i, &r, diag);
    if (err != DQ_OK) return err;
    if ((err = dq_iface_mac(i, mac)) != DQ_OK)
        return dqi_fail(diag, err, "interface %s: it has no Ethernet address to answer with", i->conf.name);
    dqi_station old = r->me; // only this thread changes it
    set_station(r, addrs, n);
    for (uint32_t k = 0; k < old.n_ip6; k++)
        solicited_node(i, old.ip6[k], false);
    for (uint32_t k = 0; k < r->me.n_ip6; k++)
        solicited_node(i, r->me.ip6[k], true);
    note_addresses(i, addrs, n);
    return DQ_OK;
}

// ---- neighbours -------------------------------------------------------------------------------------------

// Checks that the interface can send a request and receive its reply.
static int may_hear(const dq_iface *i, dq_diag *diag) {
    if (!i->ops->link || !i->ops->link->answers)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: engine %s asks for no Ethernet addresses",
                        i->conf.name, i->ops->name);
    int err = i->ops->link->answers(i, diag);
    if (err != DQ_OK) return err;
    if (!dqi_first_tx(i) || !dqi_first_rx(i))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: a question leaves through a transmit queue, and a receive queue sees "
                        "the answer: it has no %s queue",
                        i->conf.name, !dqi_first_tx(i) ? "transmit" : "receive");
    return i->session->state == DQI_STARTED
               ? DQ_OK
               : dqi_fail(diag, DQ_NOT_READY, "interface %s: asking needs a session that runs", i->conf.name);
}

// Returns the interface's first address of addr's family; len 0: none.
static dq_ip own_address(const dqi_station *me, const dq_ip *addr) {
    dq_ip own = {0};
    if (addr->len == 4 ? me->n_ip4 == 0 : me->n_ip6 == 0) return own;
    own.len = addr->len;
    memcpy(own.bytes, addr->len == 4 ? me->ip4[0] : me->ip6[0], own.len);
    return own;
}

int dq_iface_ask(dq_iface *i, const dq_ip *addr, uint16_t vlan, const dq_ip *from, dq_diag *diag) {
    dqi_responder *r;
    uint8_t mac[6], out[DQI_NEIGH_MAX];
    int err = may_hear(i, diag);
    if (err == DQ_OK) err = get(i, &r, diag);
    if (err != DQ_OK) return err;
    if ((err = dq_iface_mac(i, mac)) != DQ_OK)
        return dqi_fail(diag, err, "interface %s: it has no Ethernet address to ask with", i->conf.name);
    dqi_lock(&r->lock);
    dq_ip own = from->len == addr->len ? *from : own_address(&r->me, addr);
    dqi_neighbours_want(&r->near, addr, vlan);
    dqi_unlock(&r->lock);
    send_frame(r, out, dqi_neigh_ask(mac, &own, addr, vlan, out));
    return DQ_OK;
}

bool dq_iface_neighbour(const dq_iface *i, const dq_ip *addr, uint16_t vlan, uint8_t mac[6]) {
    dqi_responder *r = dqi_responder_of(i);
    if (!r) return false;
    dqi_lock(&r->lock);
    bool known = dqi_neighbours_find(&r->near, addr, vlan, dq_now(i->session), mac);
    dqi_unlock(&r->lock);
    return known;
}
