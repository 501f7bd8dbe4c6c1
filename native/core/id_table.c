#include "core/id_table.h"
#include "core/peers.h"

#include <string.h>

static uint32_t slot_of(dqi_key key) {
    uint64_t h = (key.a ^ (key.b + 0x9e3779b97f4a7c15u) ^ key.c << 17) * 0xff51afd7ed558ccdu;
    return (uint32_t)(h >> 40) % DQI_KEY_SLOTS;
}

// Returns the slot of the key, or the free slot for it; *id is its id, 0 if it has none.
static uint32_t look(const dqi_id_table *t, dqi_key key, uint32_t *id) {
    uint32_t k = slot_of(key);
    for (;; k = (k + 1) % DQI_KEY_SLOTS) {
        *id = atomic_load_explicit(&t->ids[k], memory_order_acquire);
        if (*id == 0 || dqi_key_same(t->keys[*id - DQI_KEY_FIRST], key)) return k;
    }
}

static uint32_t add(dqi_id_table *t, dqi_key key) {
    uint32_t id, k = look(t, key, &id), n = atomic_load_explicit(&t->used, memory_order_relaxed);
    if (id != 0) return id; // another thread added it first
    if (n == DQI_KEYS) return DQI_KEY_OTHER;
    t->keys[n] = key;
    id = DQI_KEY_FIRST + n;
    atomic_store_explicit(&t->ids[k], (uint16_t)id, memory_order_release);
    atomic_store_explicit(&t->used, n + 1, memory_order_release);
    return id;
}

uint32_t dqi_key_id(dqi_id_table *t, dqi_key key) {
    uint32_t id;
    look(t, key, &id);
    if (id != 0) return id;
    if (dqi_load_acq32(&t->used) == DQI_KEYS) return DQI_KEY_OTHER;
    dqi_lock(&t->lock);
    id = add(t, key);
    dqi_unlock(&t->lock);
    return id;
}

// ---- peers ------------------------------------------------------------------------------------------------

// Key word c holds the family, the port and the scope.
bool dqi_key_of_peer(const dq_burst *b, uint32_t i, dqi_key *out) {
    const dqi_sockaddr *p = dqi_burst_peer_addr(b, i);
    if (!p) return false;
    if (p->sa.sa_family == AF_INET) {
        *out = (dqi_key){.a = p->in4.sin_addr.s_addr, .c = (uint64_t)AF_INET << 16 | p->in4.sin_port};
        return true;
    }
    if (p->sa.sa_family != AF_INET6) return false;
    memcpy(&out->a, &p->in6.sin6_addr, 8);
    memcpy(&out->b, (const uint8_t *)&p->in6.sin6_addr + 8, 8);
    out->c = (uint64_t)p->in6.sin6_scope_id << 32 | (uint64_t)AF_INET6 << 16 | p->in6.sin6_port;
    return true;
}

void dqi_key_peer_text(dqi_key key, char *buf, size_t len) {
    dqi_sockaddr p = {.sa.sa_family = (sa_family_t)(key.c >> 16 & 0xffff)};
    if (p.sa.sa_family == AF_INET) {
        p.in4.sin_addr.s_addr = (uint32_t)key.a;
        p.in4.sin_port = (uint16_t)key.c;
    } else {
        memcpy(&p.in6.sin6_addr, &key.a, 8);
        memcpy((uint8_t *)&p.in6.sin6_addr + 8, &key.b, 8);
        p.in6.sin6_port = (uint16_t)key.c;
        p.in6.sin6_scope_id = (uint32_t)(key.c >> 32);
    }
    dqi_addr_text(&p, buf, len);
}
