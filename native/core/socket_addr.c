// socket_addr.c: socket addresses as values and as text. Nothing here runs on the packet path except
// dqi_addr_unmap, dqi_addr_fit and dqi_addr_len.
#include "core/socket_addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

socklen_t dqi_addr_len(const dqi_sockaddr *a) {
    return a->sa.sa_family == AF_INET6 ? sizeof a->in6 : sizeof a->in4;
}

void dqi_addr_unmap(dqi_sockaddr *a) {
    if (a->sa.sa_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&a->in6.sin6_addr)) return;
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = a->in6.sin6_port};
    memcpy(&v4.sin_addr, a->in6.sin6_addr.s6_addr + 12, 4);
    a->in4 = v4;
}

bool dqi_addr_fit(const dqi_sockaddr *a, int family, dqi_sockaddr *out) {
    *out = *a;
    if (a->sa.sa_family == family) return true;
    if (dqi_addr_is_any(a)) {
        uint16_t port = dqi_addr_port(a);
        *out = (dqi_sockaddr){.sa.sa_family = (sa_family_t)family};
        dqi_addr_set_port(out, port);
        return true;
    }
    if (a->sa.sa_family != AF_INET || family != AF_INET6) return false;
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = a->in4.sin_port};
    v6.sin6_addr.s6_addr[10] = v6.sin6_addr.s6_addr[11] = 0xff;
    memcpy(v6.sin6_addr.s6_addr + 12, &a->in4.sin_addr, 4);
    out->in6 = v6;
    return true;
}

void dqi_addr_text(const dqi_sockaddr *a, char *buf, size_t len) {
    char host[INET6_ADDRSTRLEN + 1 + IF_NAMESIZE] = "", nic[IF_NAMESIZE];
    dqi_sockaddr plain = *a;
    dqi_addr_unmap(&plain);
    buf[0] = 0;
    if (plain.sa.sa_family == AF_INET && inet_ntop(AF_INET, &plain.in4.sin_addr, host, sizeof host)) {
        snprintf(buf, len, "%s:%u", host, ntohs(plain.in4.sin_port));
    } else if (plain.sa.sa_family == AF_INET6 &&
               inet_ntop(AF_INET6, &plain.in6.sin6_addr, host, sizeof host)) {
        const char *scope = plain.in6.sin6_scope_id ? if_indextoname(plain.in6.sin6_scope_id, nic) : NULL;
        snprintf(buf, len, "[%s%s%s]:%u", host, scope ? "%" : "", scope ? scope : "",
                 ntohs(plain.in6.sin6_port));
    }
}

static bool parse_port(const char *text, int32_t *port) {
    size_t n = strspn(text, "0123456789");
    if (n == 0 || n > 5 || text[n] != 0) return false;
    *port = atoi(text);
    return *port <= 65535;
}

bool dqi_addr_split(const char *text, char *host, size_t host_len, int32_t *port, dq_proto *proto) {
    *port = -1;
    *proto = strncmp(text, "udp://", 6) == 0   ? DQ_PROTO_UDP
             : strncmp(text, "tcp://", 6) == 0 ? DQ_PROTO_TCP
                                               : DQ_PROTO_NONE;
    if (*proto != DQ_PROTO_NONE) text += 6;
    const char *end, *colon;
    if (text[0] == '[') {
        end = strchr(++text, ']');
        if (!end || (end[1] != 0 && end[1] != ':')) return false;
        colon = end[1] ? end + 1 : NULL;
    } else {
        colon = strchr(text, ':');
        if (colon && strchr(colon + 1, ':')) colon = NULL; // a plain IPv6 address
        end = colon ? colon : text + strlen(text);
    }
    size_t n = (size_t)(end - text);
    if (n >= host_len || (colon && !parse_port(colon + 1, port))) return false;
    memcpy(host, text, n);
    host[n] = 0;
    return strspn(host, " \t/?#@[]") == 0 && host[strcspn(host, " \t/?#@[]")] == 0;
}

// Returns all local addresses: an IPv6 socket that also takes IPv4, then IPv4 for kernels without IPv6.
static int any_address(uint16_t port, dqi_sockaddr *out, int max) {
    dqi_sockaddr any[2] = {{.in6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)}},
                           {.in4 = {.sin_family = AF_INET, .sin_port = htons(port)}}};
    int n = max < 2 ? max : 2;
    memcpy(out, any, (size_t)n * sizeof *out);
    return n;
}

static int lookup(const char *host, uint16_t port, int flags, dqi_sockaddr *out, int max, const char **why) {
    char service[8];
    snprintf(service, sizeof service, "%u", port);
    struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICSERV | flags}, *list;
    int err = getaddrinfo(host, service, &hints, &list);
    if (err != 0) {
        *why = err == EAI_SYSTEM ? strerror(errno) : gai_strerror(err);
        return DQ_CONNECT_FAILURE;
    }
    int n = 0;
    for (const struct addrinfo *i = list; i && n < max; i = i->ai_next) {
        if (i->ai_addrlen > sizeof *out || (i->ai_family != AF_INET && i->ai_family != AF_INET6)) continue;
        memset(&out[n], 0, sizeof *out);
        memcpy(&out[n++], i->ai_addr, i->ai_addrlen);
    }
    freeaddrinfo(list);
    if (n == 0) *why = "no IPv4 or IPv6 address";
    return n > 0 ? n : DQ_CONNECT_FAILURE;
}

int dqi_addr_resolve(const char *host, uint16_t port, dqi_sockaddr *out, int max, const char **why) {
    return host[0] == 0 ? any_address(port, out, max) : lookup(host, port, 0, out, max, why);
}

bool dqi_addr_parse(const char *host, dqi_sockaddr *out) {
    const char *why;
    return host[0] != 0 && lookup(host, 0, AI_NUMERICHOST, out, 1, &why) == 1;
}

bool dqi_addr_is_multicast(const dqi_sockaddr *a) {
    if (a->sa.sa_family == AF_INET) return IN_MULTICAST(ntohl(a->in4.sin_addr.s_addr));
    return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_MULTICAST(&a->in6.sin6_addr);
}

bool dqi_addr_is_ssm(const dqi_sockaddr *a) {
    if (a->sa.sa_family == AF_INET) return ntohl(a->in4.sin_addr.s_addr) >> 24 == 232;
    const uint8_t *b = a->in6.sin6_addr.s6_addr;
    return a->sa.sa_family == AF_INET6 && b[0] == 0xff && b[1] >> 4 == 3 && b[2] == 0 && b[3] == 0;
}

bool dqi_addr_is_any(const dqi_sockaddr *a) {
    if (a->sa.sa_family == AF_INET) return a->in4.sin_addr.s_addr == htonl(INADDR_ANY);
    return a->sa.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
}

uint16_t dqi_addr_port(const dqi_sockaddr *a) {
    return ntohs(a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in4.sin_port);
}

void dqi_addr_set_port(dqi_sockaddr *a, uint16_t port) {
    if (a->sa.sa_family == AF_INET6)
        a->in6.sin6_port = htons(port);
    else
        a->in4.sin_port = htons(port);
}

bool dqi_addr_same_host(const dqi_sockaddr *a, const dqi_sockaddr *b) {
    if (a->sa.sa_family != b->sa.sa_family) return false;
    if (a->sa.sa_family == AF_INET) return a->in4.sin_addr.s_addr == b->in4.sin_addr.s_addr;
    return memcmp(&a->in6.sin6_addr, &b->in6.sin6_addr, sizeof a->in6.sin6_addr) == 0;
}

unsigned dqi_addr_nic(const dqi_sockaddr *a) {
    if (a->sa.sa_family == AF_INET6 && a->in6.sin6_scope_id) return a->in6.sin6_scope_id;
    struct ifaddrs *list;
    if (getifaddrs(&list) != 0) return 0;
    unsigned nic = 0;
    for (const struct ifaddrs *i = list; i && nic == 0; i = i->ifa_next)
        if (i->ifa_addr && (i->ifa_addr->sa_family == AF_INET || i->ifa_addr->sa_family == AF_INET6) &&
            dqi_addr_same_host(a, (const dqi_sockaddr *)(const void *)i->ifa_addr))
            nic = if_nametoindex(i->ifa_name);
    freeifaddrs(list);
    return nic;
}
