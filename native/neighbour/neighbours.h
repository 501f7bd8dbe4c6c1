// neighbours.h: the neighbours that an interface asked for, and what they answered. The caller locks.
#ifndef DQI_NEIGHBOURS_H
#define DQI_NEIGHBOURS_H

#include "neighbour/neigh.h"

enum { DQI_NEIGHBOURS = 64 }; // the one asked for first makes room

typedef struct dqi_neighbours {
    uint32_t n; // asked for so far
    struct {
        dqi_neighbour who;
        bool known;
        int64_t known_ns; // session time of the last answer
    } list[DQI_NEIGHBOURS];
} dqi_neighbours;

// From now on what is heard of the neighbour is kept.
void dqi_neighbours_want(dqi_neighbours *t, const dq_ip *ip, uint16_t vlan);
// Keeps what was heard, if it was asked for. A device may have taken the tag out.
void dqi_neighbours_heard(dqi_neighbours *t, const dqi_neighbour *said, int64_t now_ns);
// False: not known, or not any more: nothing was heard for a minute.
bool dqi_neighbours_find(const dqi_neighbours *t, const dq_ip *ip, uint16_t vlan, int64_t now_ns,
                         uint8_t mac[6]);

#endif
