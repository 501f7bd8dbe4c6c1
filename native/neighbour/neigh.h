// neigh.h: what a station on an Ethernet has to answer, and to ask, when no kernel does it: who has this
// address (ARP, RFC 826; IPv6 neighbour discovery, RFC 4861).
#ifndef DQI_NEIGH_H
#define DQI_NEIGH_H

#include "core/dq_core.h"
#include "packet/packet.h"

enum { DQI_NEIGH_ADDRS = 64 };
enum { DQI_NEIGH_MAX = DQI_ETH_LEN + 8 + DQI_IPV6_LEN + 32 }; // bytes of the longest answer: two tags

// The station's own addresses, at most DQI_NEIGH_ADDRS of a kind.
typedef struct dqi_station {
    uint8_t mac[6];
    uint32_t n_ip4, n_ip6;
    uint8_t ip4[DQI_NEIGH_ADDRS][4];
    uint8_t ip6[DQI_NEIGH_ADDRS][16];
} dqi_station;

// Writes to out the answer to a received frame of len bytes, with the frame's VLAN tags, and returns its
// length, at most DQI_NEIGH_MAX, which may be below Ethernet's 60. 0: the frame asks for nothing that is the
// station's, or is malformed. Any thread, never blocks.
uint32_t dqi_neigh_answer(const dqi_station *me, const uint8_t *frame, uint32_t len, uint8_t *out);

// What a frame says of a neighbour; vlan 0: it has no tag.
typedef struct dqi_neighbour {
    dq_ip ip;
    uint16_t vlan;
    uint8_t mac[6];
} dqi_neighbour;

// Writes to out the question for an address, of the station mac with the address from (len 0, or of another
// family: it has none), with the tag of a VLAN (0: none); its length, at most DQI_NEIGH_MAX. Any thread.
uint32_t dqi_neigh_ask(const uint8_t mac[6], const dq_ip *from, const dq_ip *addr, uint16_t vlan,
                       uint8_t *out);
// Whether a received frame says which Ethernet address a neighbour has: any ARP of it, or an advertisement.
bool dqi_neigh_hear(const uint8_t *frame, uint32_t len, dqi_neighbour *out);

#endif
