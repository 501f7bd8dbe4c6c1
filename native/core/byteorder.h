// byteorder.h: little-endian encoding of file fields.
#ifndef DQI_BYTEORDER_H
#define DQI_BYTEORDER_H

#include <stdint.h>

static inline void dqi_put_le16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)v;
    p[1] = (uint8_t)(v >> 8);
}

static inline void dqi_put_le32(uint8_t *p, uint32_t v) {
    dqi_put_le16(p, v & 0xffff);
    dqi_put_le16(p + 2, v >> 16);
}

static inline void dqi_put_le64(uint8_t *p, uint64_t v) {
    dqi_put_le32(p, (uint32_t)v);
    dqi_put_le32(p + 4, (uint32_t)(v >> 32));
}

#endif
