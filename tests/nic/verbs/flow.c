// flow.c: flow steering of the library that stands in for libibverbs: rules by their priority and age,
// and behind them those for everything. A field that a mask leaves open may be anything; headers lie behind
// whatever tags there are.
#include "verbs.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

// ---- rules ------------------------------------------------------------------------------------------------

static size_t size_of(int type) {
    return type == IBV_FLOW_SPEC_ETH                                ? sizeof(struct ibv_flow_spec_eth)
           : type == IBV_FLOW_SPEC_IPV4                             ? sizeof(struct ibv_flow_spec_ipv4)
           : type == IBV_FLOW_SPEC_IPV6                             ? sizeof(struct ibv_flow_spec_ipv6)
           : type == IBV_FLOW_SPEC_TCP || type == IBV_FLOW_SPEC_UDP ? sizeof(struct ibv_flow_spec_tcp_udp)
                                                                    : 0;
}

// The specs fill the rule's size exactly, and stand from the outer header to the inner.
static bool sound(const struct ibv_flow_attr *a) {
    size_t at = sizeof *a;
    uint32_t last = 0;
    for (int k = 0; k < a->num_of_specs; k++) {
        const struct ibv_flow_spec *s = (const void *)((const char *)a + at);
        if (at + sizeof s->hdr > a->size || size_of((int)s->hdr.type) != s->hdr.size) return false;
        if ((uint32_t)s->hdr.type < last) return false;
        last = s->hdr.type;
        at += s->hdr.size;
    }
    return at == a->size && a->port == 1 && a->comp_mask == 0;
}

struct ibv_flow *nic_create_flow(struct ibv_qp *qp, struct ibv_flow_attr *a) {
    const char *how = getenv("DAQIRI_FAKE_VERBS");
    nic_device *d = nic_of(qp->context);
    bool all = a->type == IBV_FLOW_ATTR_ALL_DEFAULT;
    if (!sound(a) || (all && a->num_of_specs) || (!all && a->type != IBV_FLOW_ATTR_NORMAL) ||
        qp->state == IBV_QPS_RESET) {
        errno = EINVAL;
        return NULL;
    }
    if (!all && how && strncmp(how, "noflows", 7) == 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    nic_flow *f = calloc(1, sizeof *f);
    f->flow.context = qp->context;
    f->qp = (nic_qp *)qp;
    f->attr = malloc(a->size);
    memcpy(f->attr, a, a->size);
    pthread_mutex_lock(&nic_lock);
    nic_flow **at = &d->flows;
    while (*at &&
           (all || ((*at)->attr->type == IBV_FLOW_ATTR_NORMAL && (*at)->attr->priority <= a->priority)))
        at = &(*at)->next;
    f->next = *at;
    *at = f;
    f->qp->flows++;
    pthread_mutex_unlock(&nic_lock);
    return &f->flow;
}

int nic_destroy_flow(struct ibv_flow *flow) {
    nic_device *d = nic_of(flow->context);
    pthread_mutex_lock(&nic_lock);
    nic_flow **at = &d->flows;
    while (*at && &(*at)->flow != flow)
        at = &(*at)->next;
    nic_flow *f = *at;
    if (!f) nic_broken("a rule is destroyed that isn't there");
    *at = f->next;
    f->qp->flows--;
    pthread_mutex_unlock(&nic_lock);
    free(f->attr);
    free(f);
    return 0;
}

// ---- frames -----------------------------------------------------------------------------------------------

// What a frame has of what specs ask for, in network byte order.
typedef struct seen {
    struct ibv_flow_eth_filter eth;
    struct ibv_flow_ipv4_filter ip4;
    struct ibv_flow_ipv6_filter ip6;
    struct ibv_flow_tcp_udp_filter ports;
    bool is4, is6;
    int proto; // of a transport header that is there; -1
} seen;

static uint16_t word(const uint8_t *p) { return (uint16_t)(p[0] << 8 | p[1]); }

static void see_ports(seen *s, const uint8_t *p, uint32_t left, int proto) {
    if ((proto != 17 && proto != 6) || left < 4) return;
    s->proto = proto;
    s->ports.src_port = htons(word(p));
    s->ports.dst_port = htons(word(p + 2));
}

static seen look(const uint8_t *f, uint32_t len) {
    seen s = {.proto = -1};
    uint32_t at = 12;
    memcpy(s.eth.dst_mac, f, 6);
    memcpy(s.eth.src_mac, f + 6, 6);
    for (bool first = true; at + 6 <= len && (word(f + at) == 0x8100 || word(f + at) == 0x88a8);
         at += 4, first = false)
        if (first) s.eth.vlan_tag = htons(word(f + at + 2));
    uint16_t type = word(f + at);
    s.eth.ether_type = htons(type);
    at += 2;
    const uint8_t *p = f + at;
    uint32_t left = len > at ? len - at : 0;
    if (type == 0x0800 && left >= 20 && p[0] >> 4 == 4) {
        uint32_t header = (p[0] & 15u) * 4;
        s.is4 = true;
        memcpy(&s.ip4.src_ip, p + 12, 4);
        memcpy(&s.ip4.dst_ip, p + 16, 4);
        if ((word(p + 6) & 0x1fff) == 0 && left > header) see_ports(&s, p + header, left - header, p[9]);
    } else if (type == 0x86dd && left >= 40 && p[0] >> 4 == 6) {
        s.is6 = true;
        memcpy(s.ip6.src_ip, p + 8, 16);
        memcpy(s.ip6.dst_ip, p + 24, 16);
        see_ports(&s, p + 40, left - 40, p[6]);
    }
    return s;
}

static bool same(const void *seen_, const void *val, const void *mask, size_t n) {
    const uint8_t *a = seen_, *b = val, *m = mask;
    bool ok = true;
    for (size_t k = 0; k < n && ok; k++)
        ok = ((a[k] ^ b[k]) & m[k]) == 0;
    return ok;
}

static bool fits(const seen *s, const struct ibv_flow_spec *r) {
    switch ((int)r->hdr.type) {
    case IBV_FLOW_SPEC_ETH:
        return same(&s->eth, &r->eth.val, &r->eth.mask, sizeof s->eth);
    case IBV_FLOW_SPEC_IPV4:
        return s->is4 && same(&s->ip4, &r->ipv4.val, &r->ipv4.mask, sizeof s->ip4);
    case IBV_FLOW_SPEC_IPV6:
        return s->is6 && same(&s->ip6, &r->ipv6.val, &r->ipv6.mask, 32);
    }
    int proto = r->hdr.type == IBV_FLOW_SPEC_UDP ? 17 : 6;
    return s->proto == proto && same(&s->ports, &r->tcp_udp.val, &r->tcp_udp.mask, sizeof s->ports);
}

nic_flow *nic_match(const nic_device *d, const uint8_t *frame, uint32_t len) {
    seen s = look(frame, len);
    nic_flow *f = d->flows;
    for (; f; f = f->next) {
        size_t at = sizeof *f->attr;
        bool ok = true;
        for (int k = 0; k < f->attr->num_of_specs && ok; k++) {
            const struct ibv_flow_spec *r = (const void *)((const char *)f->attr + at);
            ok = fits(&s, r);
            at += r->hdr.size;
        }
        if (ok) break;
    }
    return f;
}
