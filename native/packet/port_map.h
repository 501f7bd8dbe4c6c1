// port_map.h: maps a port to the first matching range by a two-level table of 256 entries each.
#ifndef DQI_PORT_MAP_H
#define DQI_PORT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define DQI_NO_RANK INT32_MAX

typedef struct dqi_port_page {
    struct dqi_port_page *next;
    uint32_t rank[256];
} dqi_port_page;

// Every upper byte of a port has a page, so that a lookup has no branch; upper bytes whose ports all have one
// rank share pages.
typedef struct dqi_port_map {
    uint32_t *page[256];
    bool own[256];        // page is not shared
    dqi_port_page *pages; // all allocated pages
    dqi_port_page *empty;
} dqi_port_map;

// Allocates an empty map; NULL: no memory.
dqi_port_map *dqi_port_map_new(void);
void dqi_port_map_free(dqi_port_map *m);

// Assigns a rank to the ports lo..hi that have none so far. False: no memory. *hidden: some had one.
bool dqi_port_map_add(dqi_port_map *m, uint16_t lo, uint16_t hi, uint32_t rank, bool *hidden);

// Returns the rank of a port, or DQI_NO_RANK.
static inline uint32_t dqi_port_map_get(const dqi_port_map *m, uint16_t port) {
    return m->page[port >> 8][port & 0xff];
}

#endif
