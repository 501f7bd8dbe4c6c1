// socket_addr.h: socket addresses as values and as text.
#ifndef DQI_SOCKET_ADDR_H
#define DQI_SOCKET_ADDR_H

#include "core/dq_core.h"

#include <netinet/in.h>
#include <sys/socket.h>

// An IPv4 or IPv6 socket address; family AF_UNSPEC (0): none. As long as the slot in a packet's headroom.
typedef union dqi_sockaddr {
    struct sockaddr sa;
    struct sockaddr_in in4;
    struct sockaddr_in6 in6;
} dqi_sockaddr;

// Bytes of a that system calls want.
socklen_t dqi_addr_len(const dqi_sockaddr *a);
// "192.0.2.1:80" or "[2001:db8::1]:80"; empty for none. IPv4 addresses mapped into IPv6 are written as IPv4.
void dqi_addr_text(const dqi_sockaddr *a, char *buf, size_t len);
// Splits "host", "host:port", "[v6]", "[v6]:port" or a bare IPv6 address; a leading "udp://" or "tcp://" is
// returned in *proto (else DQ_PROTO_NONE). *port is -1 where there is none. False: not of this form.
bool dqi_addr_split(const char *text, char *host, size_t host_len, int32_t *port, dq_proto *proto);
// Addresses of a host (name or address; "" is every local address, IPv6 with IPv4 first), at most max, in the
// order in which to try them. Their number, or a negative error with *why (static text) in words. Blocks.
int dqi_addr_resolve(const char *host, uint16_t port, dqi_sockaddr *out, int max, const char **why);
// The address that text (no name) stands for. False: it is none.
bool dqi_addr_parse(const char *host, dqi_sockaddr *out);
// Turns an IPv4 address mapped into IPv6 into a plain one.
void dqi_addr_unmap(dqi_sockaddr *a);
// *out = a as a socket of this family wants it (IPv4 is mapped for AF_INET6; "every address" fits
// both). False: it can't be reached from there.
bool dqi_addr_fit(const dqi_sockaddr *a, int family, dqi_sockaddr *out);
bool dqi_addr_is_multicast(const dqi_sockaddr *a);
// In the range of source-specific multicast (232/8, ff3x::/32).
bool dqi_addr_is_ssm(const dqi_sockaddr *a);
bool dqi_addr_is_any(const dqi_sockaddr *a);
uint16_t dqi_addr_port(const dqi_sockaddr *a);
void dqi_addr_set_port(dqi_sockaddr *a, uint16_t port);
// Index of the network interface that has address a; 0: none.
unsigned dqi_addr_nic(const dqi_sockaddr *a);
// Same host address, whatever the ports.
bool dqi_addr_same_host(const dqi_sockaddr *a, const dqi_sockaddr *b);

#endif
