// spead.h: SPEAD-64-48 headers, by which a payload says itself where its fields are: 8 bytes, the last two of
// them the number of items; then items of 8 bytes: a mode bit (1: the value is here), 15 bits of id, 48 of
// value.
#ifndef DQI_SPEAD_H
#define DQI_SPEAD_H

#include <stdbool.h>
#include <stdint.h>

// Bytes of the header with its items in a payload of len bytes at p; 0: it is no such packet, or it ends in
// them.
uint32_t dqi_spead_header(const uint8_t *p, uint32_t len);
// The value of the first item with this id that has it here; false: there is none.
bool dqi_spead_item(const uint8_t *p, uint32_t len, uint32_t id, uint64_t *v);

#endif
