// pseudo_header.h: Ethernet, IP and UDP or TCP headers for payloads, whose own headers the kernel has taken
// off.
#ifndef DQI_PSEUDO_HEADER_H
#define DQI_PSEUDO_HEADER_H

#include "core/socket_addr.h"
#include "pipeline/iface.h"

#define DQI_PSEUDO_MAX_HEADER  74    // Ethernet 14, IPv6 40, TCP 20
#define DQI_PSEUDO_MAX_PAYLOAD 65495 // what fits behind an IPv4 and a TCP header

// One end of a conversation. Unknown: family 0.
typedef struct dqi_endpoint {
    int32_t family; // AF_INET, AF_INET6 or 0
    uint16_t port;  // host order
    uint8_t ip[16];
} dqi_endpoint;

// The conversation of one connection (or of a socket that has none) as a file shows it.
typedef struct dqi_talk {
    const dq_iface *iface;
    uint32_t conn;
    uint32_t seq; // TCP: of the next byte
    bool tcp;
    dqi_endpoint local, peer;
} dqi_talk;

// The conversations that a file has seen: one of each connection, until another, 4096 ids away, takes its
// place.
typedef struct dqi_talks dqi_talks;

// NULL: no memory. The caller frees it. One thread.
dqi_talks *dqi_talks_new(void);
void dqi_talks_free(dqi_talks *t);
// The conversation that b belongs to; addresses are asked for when it differs from the last call's. Valid
// until the next call.
dqi_talk *dqi_talks_of(dqi_talks *t, const dq_burst *b);

// Writes the headers of a packet from `from` (family 0: unknown) to `to` with n <= MAX_PAYLOAD bytes of
// payload to dst, without checksums; TCP moves on by n. Their length: at most MAX_HEADER.
uint32_t dqi_pseudo_put(dqi_talk *talk, const dqi_endpoint *from, const dqi_endpoint *to, uint8_t *dst,
                        uint32_t n);
// Where packet i of b was sent to: the talk's local address, and the datagram's own where that is any
// address.
dqi_endpoint dqi_talk_to(const dqi_talk *talk, const dq_burst *b, uint32_t i);
// Sets the checksums of a frame of len bytes, once the payload lies behind its headers.
void dqi_pseudo_seal(uint8_t *frame, uint32_t len);
// NULL: unknown. IPv4 in IPv6 counts as IPv4.
dqi_endpoint dqi_endpoint_of(const dqi_sockaddr *a);
// From "192.0.2.1:7148" or "[2001:db8::1]:7148"; anything else is unknown.
dqi_endpoint dqi_endpoint_parse(const char *text);

#endif
