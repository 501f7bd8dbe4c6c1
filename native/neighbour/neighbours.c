#include "neighbour/neighbours.h"

#define KEPT_NS 60000000000 // later the host may have changed its network card

static bool same_ip(const dq_ip *a, const dq_ip *b) {
    return a->len == b->len && memcmp(a->bytes, b->bytes, a->len) == 0;
}

// Returns the index of a neighbour, or DQI_NEIGHBOURS.
static uint32_t place(const dqi_neighbours *t, const dq_ip *ip, uint16_t vlan) {
    for (uint32_t k = 0; k < t->n && k < DQI_NEIGHBOURS; k++)
        if (t->list[k].who.vlan == vlan && same_ip(&t->list[k].who.ip, ip)) return k;
    return DQI_NEIGHBOURS;
}

void dqi_neighbours_want(dqi_neighbours *t, const dq_ip *ip, uint16_t vlan) {
    if (place(t, ip, vlan) < DQI_NEIGHBOURS) return;
    uint32_t k = t->n++ % DQI_NEIGHBOURS;
    if (t->n == 2 * DQI_NEIGHBOURS) t->n = DQI_NEIGHBOURS;
    t->list[k].who = (dqi_neighbour){.ip = *ip, .vlan = vlan};
    t->list[k].known = false;
}

void dqi_neighbours_update(dqi_neighbours *t, const dqi_neighbour *found, int64_t now_ns) {
    for (uint32_t k = 0; k < t->n && k < DQI_NEIGHBOURS; k++) {
        dqi_neighbour *who = &t->list[k].who;
        if ((found->vlan != 0 && found->vlan != who->vlan) || !same_ip(&who->ip, &found->ip)) continue;
        memcpy(who->mac, found->mac, 6);
        t->list[k].known = true;
        t->list[k].known_ns = now_ns;
    }
}

bool dqi_neighbours_find(const dqi_neighbours *t, const dq_ip *ip, uint16_t vlan, int64_t now_ns,
                         uint8_t mac[6]) {
    uint32_t k = place(t, ip, vlan);
    if (k == DQI_NEIGHBOURS || !t->list[k].known || now_ns - t->list[k].known_ns > KEPT_NS) return false;
    memcpy(mac, t->list[k].who.mac, 6);
    return true;
}
