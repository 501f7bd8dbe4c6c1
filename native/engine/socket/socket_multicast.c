// socket_multicast.c: joins and leaves groups. Control threads.
//
// The kernel delivers a group's datagrams to every socket that joined it, so each group is joined on a single
// socket: that of the receive queue with the fewest groups. IP_MULTICAST_ALL is off, so other groups are not
// received.
#include "core/err.h"
#include "engine/socket/socket_open.h"
#include "engine/socket/socket_state.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>

void dqi_sock_choose_nic(dqi_sock *s) {
    s->nic = if_nametoindex(s->iface->conf.address);
    if (s->nic == 0 && s->local.sa.sa_family != AF_UNSPEC && !dqi_addr_is_any(&s->local) &&
        !dqi_addr_is_multicast(&s->local))
        s->nic = dqi_addr_nic(&s->local);
}

void dqi_sock_multicast_out(dqi_sock *s, int fd, int family) {
    if (s->nic == 0) return;
    int index = (int)s->nic;
    struct ip_mreqn to = {.imr_ifindex = index};
    setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &to, sizeof to);
    if (family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_IF, &index, sizeof index);
}

// Joins or leaves on c's socket; returns 0 or an errno.
static int change(dqi_sock *s, const dqi_sconn *c, const dqi_sockaddr *group, const dqi_sockaddr *source,
                  bool join) {
    int level = group->sa.sa_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, err;
    if (source->sa.sa_family != AF_UNSPEC) {
        struct group_source_req req = {.gsr_interface = s->nic};
        memcpy(&req.gsr_group, group, sizeof *group);
        memcpy(&req.gsr_source, source, sizeof *source);
        err = setsockopt(c->fd, level, join ? MCAST_JOIN_SOURCE_GROUP : MCAST_LEAVE_SOURCE_GROUP, &req,
                         sizeof req);
    } else {
        struct group_req req = {.gr_interface = s->nic};
        memcpy(&req.gr_group, group, sizeof *group);
        err = setsockopt(c->fd, level, join ? MCAST_JOIN_GROUP : MCAST_LEAVE_GROUP, &req, sizeof req);
    }
    return err == 0 ? 0 : errno;
}

static bool same_source(const dqi_sockaddr *a, const dqi_sockaddr *b) {
    return a->sa.sa_family == b->sa.sa_family && (a->sa.sa_family == AF_UNSPEC || dqi_addr_same_host(a, b));
}

// Finds the membership of this group and source; source NULL: any membership of the group.
static dqi_sock_group *find(dqi_sock *s, const dqi_sockaddr *group, const dqi_sockaddr *source) {
    for (uint32_t k = 0; k < s->n_groups; k++)
        if (dqi_addr_same_host(&s->groups[k].group, group) &&
            (!source || same_source(&s->groups[k].source, source)))
            return &s->groups[k];
    return NULL;
}

// Selects the socket for a group: that of its other sources, else the one with the fewest memberships.
static dqi_sconn *choose_base(dqi_sock *s, const dqi_sockaddr *group) {
    const dqi_sock_group *g = find(s, group, NULL);
    if (g) return g->base;
    uint32_t best = 0, least = UINT32_MAX;
    for (uint32_t k = 0; k < s->n_base; k++) {
        uint32_t n = 0;
        for (uint32_t j = 0; j < s->n_groups; j++)
            n += s->groups[j].base == s->base[k];
        if (n >= least) continue;
        least = n;
        best = k;
    }
    return s->base[best];
}

static void forget(dqi_sock *s, dqi_sock_group *g) { *g = s->groups[--s->n_groups]; }

static int join_group(dqi_sock *s, const dqi_sockaddr *group, const dqi_sockaddr *source) {
    if (find(s, group, source)) return 0;
    dqi_sock_group *g = find(s, group, NULL);
    if (g && g->own) { // explicit sources replace the implicit membership
        change(s, g->base, group, &g->source, false);
        forget(s, g);
    } else if (g && (g->source.sa.sa_family == AF_UNSPEC || source->sa.sa_family == AF_UNSPEC)) {
        return EINVAL; // the kernel would convert one into the other
    }
    if (s->n_groups == DQI_SOCK_GROUPS) return ENOBUFS;
    dqi_sconn *base = choose_base(s, group);
    int err = change(s, base, group, source, true);
    if (err == 0)
        s->groups[s->n_groups++] = (dqi_sock_group){.group = *group, .source = *source, .base = base};
    return err;
}

static int leave_group(dqi_sock *s, const dqi_sockaddr *group, const dqi_sockaddr *source) {
    dqi_sock_group *g = find(s, group, source);
    if (!g) return EADDRNOTAVAIL;
    int err = change(s, g->base, group, source, false);
    forget(s, g);
    return err;
}

int dqi_sock_join_own(dqi_sock *s, dq_diag *diag) {
    const dqi_sockaddr any = {0};
    char text[80];
    if (!dqi_addr_is_multicast(&s->local) || dqi_addr_is_ssm(&s->local)) return DQ_OK;
    int err = join_group(s, &s->local, &any);
    if (err == 0) {
        s->groups[s->n_groups - 1].own = true;
        return DQ_OK;
    }
    dqi_addr_text(&s->local, text, sizeof text);
    return dqi_fail(diag, DQ_ESYS - err,
                    "interface %s: group %s: %s; hint: name a network interface as its address",
                    s->iface->conf.name, text, dq_err_name(DQ_ESYS - err));
}

static const char *advice(int err) {
    switch (err) {
    case ENODEV:
        return "no route leads to the group: name a network interface as the interface's address";
    case ENOBUFS:
        return "raise net.ipv4.igmp_max_memberships";
    case EINVAL:
        return "a group is joined either for any source or for chosen ones: leave it first";
    case EADDRNOTAVAIL:
        return "it was not joined";
    }
    return "check the address";
}

// Parses a group; its port, if given, must be that of the interface.
static int parse_group(dqi_sock *s, const char *text, dqi_sockaddr *group, dq_diag *diag) {
    char host[256];
    int32_t port;
    dq_proto proto;
    uint16_t mine = dqi_addr_port(&s->base[0]->conn.local);
    const char *name = s->iface->conf.name;
    if (!dqi_addr_split(text, host, sizeof host, &port, &proto) || !dqi_addr_parse(host, group) ||
        !dqi_addr_is_multicast(group))
        return dqi_fail(
            diag, DQ_INVALID_PARAMETER,
            "interface %s: '%s' is not a multicast group; hint: 224.0.0.0 to 239.255.255.255, or ff00::/8",
            name, text);
    if (port >= 0 && port != mine)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: group %s: this interface receives on port %u", name, text, mine);
    return DQ_OK;
}

int dqi_sock_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag) {
    dqi_sock *s = i->engine;
    dqi_sockaddr g, from = {0};
    if (!dqi_sock_is_udp(s))
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: multicast is for udp:// interfaces",
                        i->conf.name);
    int err = parse_group(s, group, &g, diag);
    if (err != DQ_OK) return err;
    if (source && source[0] && (!dqi_addr_parse(source, &from) || from.sa.sa_family != g.sa.sa_family))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: group %s: source '%s' is not an address of the group's family",
                        i->conf.name, group, source);
    pthread_mutex_lock(&s->conns.lock);
    int e = join ? join_group(s, &g, &from) : leave_group(s, &g, &from);
    pthread_mutex_unlock(&s->conns.lock);
    if (e == 0) return DQ_OK;
    return dqi_fail(diag, DQ_ESYS - e, "interface %s: group %s: %s: %s", i->conf.name, group,
                    dq_err_name(DQ_ESYS - e), advice(e));
}
