// port_map.h: which of many ranges of ports a port lies in: two levels of 256, so that a lookup is two loads.
#ifndef DQI_PORT_MAP_H
#define DQI_PORT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#define DQI_NO_RANK INT32_MAX

typedef struct dqi_port_page {
    struct dqi_port_page *next;
    uint32_t rank[256];
} dqi_port_page;

// Every upper byte of a port has a page, so that a lookup has no branch; those whose ports have all one rank
// share pages.
typedef struct dqi_port_map {
    uint32_t *page[256];
    bool own[256];        // it is no other's page
    dqi_port_page *pages; // all there are
    dqi_port_page *empty;
} dqi_port_map;

// An empty map; NULL: no memory.
dqi_port_map *dqi_port_map_new(void);
void dqi_port_map_free(dqi_port_map *m);

// Gives the ports lo..hi a rank, those that have none so far. False: no memory. *hidden: some had one.
bool dqi_port_map_add(dqi_port_map *m, uint16_t lo, uint16_t hi, uint32_t rank, bool *hidden);

// The rank of a port, or DQI_NO_RANK.
static inline uint32_t dqi_port_map_get(const dqi_port_map *m, uint16_t port) {
    return m->page[port >> 8][port & 0xff];
}

#endif
