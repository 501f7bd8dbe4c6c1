// neigh.h: ARP (RFC 826) and IPv6 neighbour discovery (RFC 4861) of Ethernet stations without a kernel.
#ifndef DQI_NEIGH_H
#define DQI_NEIGH_H

#include "core/dq_core.h"
#include "packet/packet.h"

enum { DQI_NEIGH_ADDRS = 64 };
enum { DQI_NEIGH_MAX = DQI_ETH_LEN + 8 + DQI_IPV6_LEN + 32 }; // bytes of the longest answer, with two tags

// The station's addresses, at most DQI_NEIGH_ADDRS of each kind.
typedef struct dqi_station {
    uint8_t mac[6];
    uint32_t n_ip4, n_ip6;
    uint8_t ip4[DQI_NEIGH_ADDRS][4];
    uint8_t ip6[DQI_NEIGH_ADDRS][16];
} dqi_station;

// Writes the answer to a received frame of len bytes, with the frame's VLAN tags, to out and returns its
// length, at most DQI_NEIGH_MAX, possibly below Ethernet's minimum of 60. 0: the frame requests none of the
// station's addresses, or is malformed. Any thread, never blocks.
uint32_t dqi_neigh_answer(const dqi_station *me, const uint8_t *frame, uint32_t len, uint8_t *out);

// A neighbour's addresses from a frame; vlan 0: untagged.
typedef struct dqi_neighbour {
    dq_ip ip;
    uint16_t vlan;
    uint8_t mac[6];
} dqi_neighbour;

// Writes a request for an address to out, from the station mac with the address from (len 0, or of another
// family: none), with a tag of vlan (0: none). Returns its length, at most DQI_NEIGH_MAX. Any thread.
uint32_t dqi_neigh_ask(const uint8_t mac[6], const dq_ip *from, const dq_ip *addr, uint16_t vlan,
                       uint8_t *out);
// Reports whether a frame has a neighbour's Ethernet address: any ARP of it, or an advertisement.
bool dqi_neigh_hear(const uint8_t *frame, uint32_t len, dqi_neighbour *out);

#endif
