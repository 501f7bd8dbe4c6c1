// neighbours.h: the neighbours that an interface resolves, and their answers. The caller locks.
#ifndef DQI_NEIGHBOURS_H
#define DQI_NEIGHBOURS_H

#include "neighbour/neigh.h"

enum { DQI_NEIGHBOURS = 64 }; // when full, the oldest entry is replaced

typedef struct dqi_neighbours {
    uint32_t n; // entries requested so far
    struct {
        dqi_neighbour who;
        bool known;
        int64_t known_ns; // session time of the last answer
    } list[DQI_NEIGHBOURS];
} dqi_neighbours;

// Adds a neighbour whose answers are to be stored.
void dqi_neighbours_want(dqi_neighbours *t, const dq_ip *ip, uint16_t vlan);
// Stores an answer of an added neighbour. vlan 0 matches any: a device may have stripped the tag.
void dqi_neighbours_update(dqi_neighbours *t, const dqi_neighbour *found, int64_t now_ns);
// Finds a neighbour's Ethernet address; false: unknown, or not confirmed for a minute.
bool dqi_neighbours_find(const dqi_neighbours *t, const dq_ip *ip, uint16_t vlan, int64_t now_ns,
                         uint8_t mac[6]);

#endif
