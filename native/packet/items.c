#include "packet/items.h"
#include "packet/packet.h"

static uint64_t load(const uint8_t *p, uint32_t bytes) {
    uint64_t v = 0;
    for (uint32_t i = 0; i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

bool dqi_item_find(const uint8_t *p, uint64_t len, uint64_t n, const dqi_item_key *k, uint64_t *v) {
    if (n > len / k->bytes) n = len / k->bytes;
    for (; n > 0; n--, p += k->bytes) {
        uint64_t item = k->bytes == 8 ? dqi_be64(p) : load(p, k->bytes);
        if (item >> k->value_bits != k->key) continue;
        *v = item & ((UINT64_C(1) << k->value_bits) - 1);
        return true;
    }
    return false;
}
