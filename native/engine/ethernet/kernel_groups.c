// kernel_groups.c: each membership is an unbound socket that is never read, because the kernel allows 20
// groups per socket by default. A socket without a port receives no datagrams.
#include "engine/ethernet/kernel_groups.h"
#include "neighbour/group.h"

#include <errno.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct member {
    dqi_group g;
    int fd;
} member;

struct dqi_kernel_groups {
    uint32_t n, cap;
    member *all;
};

static int join_on(int fd, unsigned index, const dqi_group *g) {
    int level = g->group.sa.sa_family == AF_INET ? IPPROTO_IP : IPPROTO_IPV6, err;
    if (g->source.sa.sa_family == AF_UNSPEC) {
        struct group_req req = {.gr_interface = index};
        memcpy(&req.gr_group, &g->group, sizeof g->group);
        err = setsockopt(fd, level, MCAST_JOIN_GROUP, &req, sizeof req);
    } else {
        struct group_source_req req = {.gsr_interface = index};
        memcpy(&req.gsr_group, &g->group, sizeof g->group);
        memcpy(&req.gsr_source, &g->source, sizeof g->source);
        err = setsockopt(fd, level, MCAST_JOIN_SOURCE_GROUP, &req, sizeof req);
    }
    return err == 0 ? 0 : errno;
}

static bool grow(dqi_kernel_groups *k) {
    if (k->n < k->cap) return true;
    uint32_t cap = 2 * k->cap + 16;
    member *all = realloc(k->all, cap * sizeof *all);
    if (!all) return false;
    k->all = all;
    k->cap = cap;
    return true;
}

static int join_group(dqi_port *p, dqi_kernel_groups *k, const dqi_group *g) {
    for (uint32_t m = 0; m < k->n; m++) {
        if (dqi_group_same(&k->all[m].g, g)) return 0;
        if (dqi_group_clash(&k->all[m].g, g)) return EINVAL;
    }
    unsigned index = if_nametoindex(p->iface->conf.address);
    if (index == 0) return ENODEV;
    if (!grow(k)) return ENOMEM;
    int fd = socket(g->group.sa.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return errno;
    int err = join_on(fd, index, g);
    if (err != 0)
        close(fd);
    else
        k->all[k->n++] = (member){*g, fd};
    return err;
}

static int leave_group(dqi_kernel_groups *k, const dqi_group *g) {
    for (uint32_t m = 0; m < k->n; m++) {
        if (!dqi_group_same(&k->all[m].g, g)) continue;
        close(k->all[m].fd);
        k->all[m] = k->all[--k->n];
        return 0;
    }
    return EADDRNOTAVAIL;
}

int dqi_kernel_multicast(dqi_port *p, const char *group, const char *source, bool join, dq_diag *diag) {
    dqi_group g;
    int err = dqi_group_parse(p->iface->conf.name, group, source, &g, diag);
    if (err != DQ_OK) return err;
    if (!p->kernel_groups && !(p->kernel_groups = calloc(1, sizeof *p->kernel_groups)))
        return dqi_group_fail(p->iface->conf.name, group, ENOMEM, diag);
    err = join ? join_group(p, p->kernel_groups, &g) : leave_group(p->kernel_groups, &g);
    return err == 0 ? DQ_OK : dqi_group_fail(p->iface->conf.name, group, err, diag);
}

void dqi_kernel_groups_free(dqi_port *p) {
    dqi_kernel_groups *k = p->kernel_groups;
    if (!k) return;
    for (uint32_t m = 0; m < k->n; m++)
        close(k->all[m].fd);
    free(k->all);
    free(k);
    p->kernel_groups = NULL;
}
