// replay_udp.c: a server receives datagrams sent to its port: at its local address (any, if unspecified) and
// at the groups that it joined. A client receives those from its remote address, sent to its local address if
// it has one. A capture does not contain the addresses of its host.
#include "engine/replay/replay_udp.h"
#include "core/dq_core.h"
#include "core/dq_ledger.h"
#include "core/err.h"
#include "packet/packet.h"
#include "pipeline/iface.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

// ---- open -------------------------------------------------------------------------------------------------

static int resolve(const dq_iface *i, const char *host, uint16_t port, dqi_sockaddr *out, dq_diag *diag) {
    const char *why;
    int n = dqi_addr_resolve(host, port, out, DQI_REPLAY_ADDRS, &why);
    return n > 0 ? n : dqi_fail(diag, DQ_CONNECT_FAILURE, "interface %s: %s: %s", i->conf.name, host, why);
}

int dqi_replay_udp_open(dqi_replay_udp *u, const dq_iface *i, dq_diag *diag) {
    const dq_socket_conf *c = &i->conf.socket;
    u->longest = c->max_payload ? c->max_payload : UINT32_MAX;
    u->local_port = c->local_port;
    if (c->server || c->local_host[0]) u->n_local = resolve(i, c->local_host, c->local_port, u->local, diag);
    if (u->n_local < 0) return u->n_local;
    if (!c->server) u->n_remote = resolve(i, c->remote_host, c->remote_port, u->remote, diag);
    if (u->n_remote < 0) return u->n_remote;
    if (u->n_remote > 0 && dqi_addr_is_multicast(&u->remote[0])) u->n_remote = 0; // members answer
    if (u->n_local == 1 && dqi_addr_is_multicast(&u->local[0]) && !dqi_addr_is_ssm(&u->local[0])) {
        u->groups[u->n_groups++] = (dqi_group){.group = u->local[0]};
        u->own = true;
    }
    return DQ_OK;
}

// ---- groups -----------------------------------------------------------------------------------------------

static int join_group(dqi_replay_udp *u, const dqi_group *g) {
    if (u->own && dqi_addr_same_host(&u->groups[0].group, &g->group)) { // replaced by an explicit join
        u->groups[0] = *g;
        u->own = false;
        return 0;
    }
    for (uint32_t k = 0; k < u->n_groups; k++) {
        if (dqi_group_same(&u->groups[k], g)) return 0;
        if (dqi_group_clash(&u->groups[k], g)) return EINVAL;
    }
    if (u->n_groups == DQI_REPLAY_GROUPS) return ENOBUFS;
    u->groups[u->n_groups++] = *g;
    return 0;
}

static int leave_group(dqi_replay_udp *u, const dqi_group *g) {
    for (uint32_t k = 0; k < u->n_groups; k++) {
        if (!dqi_group_same(&u->groups[k], g)) continue;
        u->n_groups--;
        if (k == 0) u->own = false;
        memmove(u->groups + k, u->groups + k + 1, (u->n_groups - k) * sizeof *u->groups);
        return 0;
    }
    return EADDRNOTAVAIL;
}

int dqi_replay_udp_join(dqi_replay_udp *u, const dq_iface *i, const char *group, const char *source,
                        bool join, dq_diag *diag) {
    char host[256];
    int32_t port;
    dq_proto proto;
    dqi_group g;
    if (!dqi_addr_split(group, host, sizeof host, &port, &proto)) snprintf(host, sizeof host, "%s", group);
    int err = dqi_group_parse(i->conf.name, host, source, &g, diag);
    if (err != DQ_OK) return err;
    dqi_lock(&u->lock);
    err = join ? join_group(u, &g) : leave_group(u, &g);
    dqi_unlock(&u->lock);
    if (err == ENOBUFS)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "interface %s: group %s: more than %d groups",
                        i->conf.name, group, DQI_REPLAY_GROUPS);
    return err == 0 ? DQ_OK : dqi_group_fail(i->conf.name, group, err, diag);
}

// Returns true if the group was joined for this sender.
static bool hears(const dqi_replay_udp *u, const dqi_sockaddr *group, const dqi_sockaddr *from) {
    for (uint32_t k = 0; k < u->n_groups; k++)
        if (dqi_addr_same_host(&u->groups[k].group, group) &&
            (u->groups[k].source.sa.sa_family == AF_UNSPEC || dqi_addr_same_host(&u->groups[k].source, from)))
            return true;
    return false;
}

// ---- frames -----------------------------------------------------------------------------------------------

static dqi_sockaddr address_of(const uint8_t *ip, bool v6, uint16_t port) {
    dqi_sockaddr a = {0};
    if (v6) {
        a.in6.sin6_family = AF_INET6;
        memcpy(&a.in6.sin6_addr, ip, 16);
    } else {
        a.in4.sin_family = AF_INET;
        memcpy(&a.in4.sin_addr, ip, 4);
    }
    dqi_addr_set_port(&a, port);
    return a;
}

// An unspecified IPv6 address also matches IPv4.
static bool fits(const dqi_sockaddr *mine, const dqi_sockaddr *a) {
    if (dqi_addr_is_any(mine)) return mine->sa.sa_family == AF_INET6 || mine->sa.sa_family == a->sa.sa_family;
    return dqi_addr_same_host(mine, a);
}

static bool one_fits(const dqi_sockaddr *mine, int n, const dqi_sockaddr *a) {
    for (int k = 0; k < n; k++)
        if (fits(&mine[k], a)) return true;
    return n == 0;
}

// ports: the ports of the addresses are known.
static bool is_ours(const dqi_replay_udp *u, const dqi_sockaddr *from, const dqi_sockaddr *to, bool ports) {
    if (ports && u->local_port != 0 && dqi_addr_port(to) != u->local_port) return false;
    if (ports && u->n_remote > 0 && dqi_addr_port(from) != dqi_addr_port(&u->remote[0])) return false;
    if (!one_fits(u->remote, u->n_remote, from)) return false;
    return dqi_addr_is_multicast(to) ? hears(u, to, from) : one_fits(u->local, u->n_local, to);
}

static uint32_t hash(const uint8_t *p, uint32_t n, uint32_t h) {
    for (uint32_t k = 0; k < n; k++)
        h = (h ^ p[k]) * 16777619u;
    return h;
}

bool dqi_replay_udp_take(const dqi_replay_udp *u, const uint8_t *frame, uint32_t len, dqi_datagram *out,
                         dq_reason *why) {
    dqi_pkt k;
    *why = DQ_DROP_NO_FLOW;
    if (!dqi_parse(frame, len, &k) || !(k.has & (DQ_HAS_IPV4 | DQ_HAS_IPV6)) || k.ip_proto != DQI_PROTO_UDP)
        return false;
    bool v6 = (k.has & DQ_HAS_IPV6) != 0, ports = k.l4 != DQI_NONE && k.end - k.l4 >= DQI_UDP_LEN;
    const uint8_t *ip = frame + k.l3, *udp = ports ? frame + k.l4 : NULL;
    dqi_sockaddr from = address_of(ip + (v6 ? 8 : 12), v6, udp ? dqi_be16(udp) : 0);
    dqi_sockaddr to = address_of(ip + (v6 ? 24 : 16), v6, udp ? dqi_be16(udp + 2) : 0);
    if (!is_ours(u, &from, &to, ports)) return false;
    uint32_t length = udp ? dqi_be16(udp + 4) : 0; // 0: up to the end, as left by segmentation offload
    if (udp && length == 0) length = k.end - k.l4;
    *why = DQ_DROP_CUT;
    if (k.has & DQ_HAS_FRAGMENT) *why = DQ_DROP_FRAGMENT;
    if ((k.has & DQ_HAS_FRAGMENT) || length < DQI_UDP_LEN || length > k.end - k.l4) return false;
    *why = DQ_DROP_TOO_LONG;
    if (length - DQI_UDP_LEN > u->longest) return false;
    *out = (dqi_datagram){.payload = udp + DQI_UDP_LEN, .len = length - DQI_UDP_LEN, .peer = from};
    out->spread = hash(udp, 2, hash(ip + (v6 ? 8 : 12), v6 ? 16 : 4, 2166136261u));
    return true;
}
