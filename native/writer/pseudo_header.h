// pseudo_header.h: Ethernet, IP and UDP or TCP headers for payloads delivered without them by the kernel.
#ifndef DQI_PSEUDO_HEADER_H
#define DQI_PSEUDO_HEADER_H

#include "core/socket_addr.h"
#include "pipeline/iface.h"

#define DQI_PSEUDO_MAX_HEADER  74    // Ethernet 14, IPv6 40, TCP 20
#define DQI_PSEUDO_MAX_PAYLOAD 65495 // maximum after an IPv4 and a TCP header

// One end of a conversation. Family 0: unknown.
typedef struct dqi_endpoint {
    int32_t family; // AF_INET, AF_INET6 or 0
    uint16_t port;  // host order
    uint8_t ip[16];
} dqi_endpoint;

// Conversation of a connection (or of a socket without one) as represented in a file.
typedef struct dqi_talk {
    const dq_iface *iface;
    uint32_t conn;
    uint32_t seq; // TCP: sequence number of the next byte
    bool tcp;
    dqi_endpoint local, peer;
} dqi_talk;

// Table of a file's conversations: one per connection, until replaced by one whose id differs by a multiple
// of 4096.
typedef struct dqi_talks dqi_talks;

// Returns NULL without memory. The caller frees it. One thread.
dqi_talks *dqi_talks_new(void);
void dqi_talks_free(dqi_talks *t);
// Returns the conversation of b; its addresses are read when it differs from that of the last call. Valid
// until the next call.
dqi_talk *dqi_talks_of(dqi_talks *t, const dq_burst *b);

// Writes the headers of a packet from `from` (family 0: unknown) to `to` with n <= MAX_PAYLOAD bytes of
// payload to dst, without checksums; TCP advances by n. Returns their length, at most MAX_HEADER.
uint32_t dqi_pseudo_put(dqi_talk *talk, const dqi_endpoint *from, const dqi_endpoint *to, uint8_t *dst,
                        uint32_t n);
// Returns the destination of packet i of b: the talk's local address, or the datagram's own if that is the
// any address.
dqi_endpoint dqi_talk_to(const dqi_talk *talk, const dq_burst *b, uint32_t i);
// Sets the checksums of a frame of len bytes once its payload is in place.
void dqi_pseudo_seal(uint8_t *frame, uint32_t len);
// a NULL: unknown. An IPv4-mapped address counts as IPv4.
dqi_endpoint dqi_endpoint_of(const dqi_sockaddr *a);
// Parses "192.0.2.1:7148" or "[2001:db8::1]:7148"; anything else is unknown.
dqi_endpoint dqi_endpoint_parse(const char *text);

#endif
