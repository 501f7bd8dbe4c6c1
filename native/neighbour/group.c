#include "neighbour/group.h"
#include "core/err.h"

#include <errno.h>
#include <string.h>

int dqi_group_parse(const char *iface, const char *group, const char *source, dqi_group *out, dq_diag *diag) {
    memset(out, 0, sizeof *out);
    if (!dqi_addr_parse(group, &out->group) || !dqi_addr_is_multicast(&out->group))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: '%s' is not a multicast group; hint: 224.0.0.0 to 239.255.255.255, or "
                        "ff00::/8",
                        iface, group);
    if (!source || !source[0]) return DQ_OK;
    if (dqi_addr_parse(source, &out->source) && out->source.sa.sa_family == out->group.sa.sa_family)
        return DQ_OK;
    return dqi_fail(diag, DQ_INVALID_PARAMETER,
                    "interface %s: group %s: source '%s' is not an address of the group's family", iface,
                    group, source);
}

static bool is_any(const dqi_group *g) { return g->source.sa.sa_family == AF_UNSPEC; }

bool dqi_group_same(const dqi_group *a, const dqi_group *b) {
    return dqi_addr_same_host(&a->group, &b->group) && is_any(a) == is_any(b) &&
           (is_any(a) || dqi_addr_same_host(&a->source, &b->source));
}

bool dqi_group_clash(const dqi_group *a, const dqi_group *b) {
    return dqi_addr_same_host(&a->group, &b->group) && is_any(a) != is_any(b);
}

const uint8_t *dqi_group_bytes(const dqi_sockaddr *a) {
    return a->sa.sa_family == AF_INET ? (const uint8_t *)&a->in4.sin_addr
                                      : (const uint8_t *)&a->in6.sin6_addr;
}

void dqi_group_mac(int family, const uint8_t *group, uint8_t mac[6]) {
    static const uint8_t four[] = {0x01, 0x00, 0x5e}, six[] = {0x33, 0x33};
    if (family == AF_INET) {
        memcpy(mac, four, sizeof four);
        memcpy(mac + 3, group + 1, 3);
        mac[3] &= 0x7f;
    } else {
        memcpy(mac, six, sizeof six);
        memcpy(mac + 2, group + 12, 4);
    }
}

static const char *advice(int err) {
    switch (err) {
    case ENODEV:
        return "the interface does not take part in the group's protocol; hint: is it up?";
    case EINVAL:
        return "a group is joined either for any source or for chosen ones: leave it first";
    case EADDRNOTAVAIL:
        return "it was not joined";
    case EMFILE:
        return "raise the number of open files (ulimit -n)";
    }
    return "check the address";
}

int dqi_group_fail(const char *iface, const char *group, int err, dq_diag *diag) {
    return dqi_fail(diag, DQ_ESYS - err, "interface %s: group %s: %s: %s", iface, group,
                    dq_err_name(DQ_ESYS - err), advice(err));
}
