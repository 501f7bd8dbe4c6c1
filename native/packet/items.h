// items.h: lists of items of equal size, as SPEAD's item pointers: key bits followed by a value.
#ifndef DQI_ITEMS_H
#define DQI_ITEMS_H

#include <stdbool.h>
#include <stdint.h>

// Description of the item to find.
typedef struct dqi_item_key {
    uint32_t bytes;      // bytes of an item: 1..8
    uint32_t value_bits; // width of the value in the low bits: 1 .. 8 * bytes - 1
    uint64_t key;        // value of the remaining high bits
} dqi_item_key;

// Finds the value of the first of n items at p with that key; false: there is none within len bytes. Senders
// may change the order of items with each packet, so the list is searched. Any thread.
bool dqi_item_find(const uint8_t *p, uint64_t len, uint64_t n, const dqi_item_key *k, uint64_t *v);

#endif
