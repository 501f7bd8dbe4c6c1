// socket_addr.h: socket addresses as values and as text.
#ifndef DQI_SOCKET_ADDR_H
#define DQI_SOCKET_ADDR_H

#include "core/dq_core.h"

#include <netinet/in.h>
#include <sys/socket.h>

// An IPv4 or IPv6 socket address; family AF_UNSPEC (0): none. Fits the slot in a packet's headroom.
typedef union dqi_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;
} dqi_sockaddr;

// Returns the length of a to pass to system calls.
socklen_t dqi_addr_len(const dqi_sockaddr *a);
// Formats "192.0.2.1:80" or "[2001:db8::1]:80"; empty for none. IPv4-mapped IPv6 addresses become IPv4.
void dqi_addr_text(const dqi_sockaddr *a, char *buf, size_t len);
// Splits "host", "host:port", "[v6]", "[v6]:port" or a plain IPv6 address; a leading "udp://" or "tcp://" is
// returned in *proto (else DQ_PROTO_NONE). *port is -1 without a port. False: syntax error.
bool dqi_addr_split(const char *text, char *host, size_t host_len, int32_t *port, dq_proto *proto);
// Resolves a host (name or address; "" is every local address, IPv6 with IPv4 first) to at most max
// addresses, in order of preference. Returns their number, or a negative error with static text in *why.
// Blocks.
int dqi_addr_resolve(const char *host, uint16_t port, dqi_sockaddr *out, int max, const char **why);
// Parses a numeric address. False: not a valid address.
bool dqi_addr_parse(const char *host, dqi_sockaddr *out);
// Converts an IPv4-mapped IPv6 address to plain IPv4.
void dqi_addr_unmap(dqi_sockaddr *a);
// Converts a for a socket of this family (IPv4 is mapped for AF_INET6; "every address" fits both). False:
// unreachable from that family.
bool dqi_addr_fit(const dqi_sockaddr *a, int family, dqi_sockaddr *out);
bool dqi_addr_is_multicast(const dqi_sockaddr *a);
// Reports whether a is in the range of source-specific multicast (232/8, ff3x::/32).
bool dqi_addr_is_ssm(const dqi_sockaddr *a);
bool dqi_addr_is_any(const dqi_sockaddr *a);
uint16_t dqi_addr_port(const dqi_sockaddr *a);
void dqi_addr_set_port(dqi_sockaddr *a, uint16_t port);
// Returns the index of the network interface that has address a; 0: none.
unsigned dqi_addr_nic(const dqi_sockaddr *a);
// Reports whether the host addresses are equal; ports are ignored.
bool dqi_addr_same_host(const dqi_sockaddr *a, const dqi_sockaddr *b);

#endif
