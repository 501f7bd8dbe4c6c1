// items.h: lists of items of equal size, as SPEAD's item pointers: bits that say what an item is, in front of
// its value.
#ifndef DQI_ITEMS_H
#define DQI_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

// What is looked for in a list.
typedef struct dqi_item_key {
    uint32_t bytes;      // of an item: 1..8
    uint32_t value_bits; // the low ones of it: 1 .. 8 * bytes - 1
    uint64_t key;        // what the bits before them are
} dqi_item_key;

// The value of the first of n items at p with that key; false: there is none within len bytes. The order of
// items is the sender's choice and may change from packet to packet, so each is looked for. Any thread.
bool dqi_item_find(const uint8_t *p, uint64_t len, uint64_t n, const dqi_item_key *k, uint64_t *v);

#endif
