// spead.c: the order of items is the sender's choice and may change from packet to packet, so each is looked
// for.
#include "packet/spead.h"
#include "packet/packet.h"

#define HEAD       8                    // bytes
#define MAGIC      UINT32_C(0x53040206) // version 4, ids of 2 bytes, values of 6
#define IMMEDIATE  UINT64_C(0x8000)
#define VALUE_BITS 48

uint32_t dqi_spead_header(const uint8_t *p, uint32_t len) {
    if (len < HEAD || dqi_be32(p) != MAGIC) return 0;
    uint32_t n = HEAD + 8u * dqi_be16(p + 6);
    return n <= len ? n : 0;
}

bool dqi_spead_item(const uint8_t *p, uint32_t len, uint32_t id, uint64_t *v) {
    uint32_t end = dqi_spead_header(p, len);
    for (uint32_t at = HEAD; at < end; at += 8) {
        uint64_t item = dqi_be64(p + at);
        if (item >> VALUE_BITS != (IMMEDIATE | id)) continue;
        *v = item & ((UINT64_C(1) << VALUE_BITS) - 1);
        return true;
    }
    return false;
}
