// pseudo_header.c: generated headers, so that standard tools can open captures of sockets.
//
// The kernel delivers payloads only. Headers are rebuilt from the peer's address of each packet (or of the
// connection) and the local one, which for a socket bound to any address is stored with each datagram.
// Unknown addresses are 0.0.0.0 (or ::) and port 0. MAC addresses are locally administered, 02:00 followed by
// the last four bytes of the IP address. TCP sequence numbers start at 1 and count the written bytes, so that
// readers can follow the stream. Lengths and checksums are correct. Writer's thread.
#include "writer/pseudo_header.h"
#include "core/peers.h"
#include "packet/packet.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#define TALKS     4096 // a power of two
#define FIRST_SEQ 1
#define HOP_LIMIT 64
#define TCP_FLAGS 0x18 // PSH, ACK

struct dqi_talks {
    dqi_talk *last;
    dqi_talk slots[TALKS];
};

// ---- addresses --------------------------------------------------------------------------------------------

dqi_endpoint dqi_endpoint_of(const dqi_sockaddr *a) {
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    dqi_endpoint e = {0};
    if (a && a->sa.sa_family == AF_INET) {
        e.family = AF_INET;
        e.port = ntohs(a->in4.sin_port);
        memcpy(e.ip, &a->in4.sin_addr, 4);
    } else if (a && a->sa.sa_family == AF_INET6) {
        e.family = AF_INET6;
        e.port = ntohs(a->in6.sin6_port);
        memcpy(e.ip, &a->in6.sin6_addr, 16);
        if (memcmp(e.ip, mapped, sizeof mapped) == 0) {
            e.family = AF_INET;
            memmove(e.ip, e.ip + 12, 4);
            memset(e.ip + 4, 0, 12);
        }
    }
    return e;
}

// Parses a numeric address in the first len bytes of text; a zone (%eth0) is ignored. Other text yields only
// the port.
static dqi_endpoint parse_host(const char *text, size_t len, uint16_t port) {
    dqi_sockaddr a6 = {.in6.sin6_family = AF_INET6}, a4 = {.in4.sin_family = AF_INET};
    dqi_endpoint e = {0};
    char host[INET6_ADDRSTRLEN] = "";
    size_t n = strcspn(text, "%");
    if (n > len) n = len;
    if (n < sizeof host) memcpy(host, text, n);
    if (inet_pton(AF_INET6, host, &a6.in6.sin6_addr) == 1)
        e = dqi_endpoint_of(&a6);
    else if (inet_pton(AF_INET, host, &a4.in4.sin_addr) == 1)
        e = dqi_endpoint_of(&a4);
    e.port = port;
    return e;
}

dqi_endpoint dqi_endpoint_parse(const char *text) {
    const char *colon = strrchr(text, ':');
    unsigned port;
    if (!colon || sscanf(colon + 1, "%u", &port) != 1 || port > UINT16_MAX) return (dqi_endpoint){0};
    size_t len = (size_t)(colon - text);
    if (len >= 2 && text[0] == '[' && text[len - 1] == ']') {
        text++;
        len -= 2;
    }
    return parse_host(text, len, (uint16_t)port);
}

// ---- conversations ----------------------------------------------------------------------------------------

dqi_talks *dqi_talks_new(void) { return calloc(1, sizeof(dqi_talks)); }

void dqi_talks_free(dqi_talks *t) { free(t); }

// Updates the addresses from the engine; a closed connection keeps the known ones.
static void look_up(dqi_talk *talk, dq_iface *i) {
    dq_conn_info info = {0};
    if (dq_conn_read(i, talk->conn, &info) == DQ_OK) {
        dqi_endpoint local = dqi_endpoint_parse(info.local), peer = dqi_endpoint_parse(info.peer);
        if (local.family != 0) talk->local = local;
        if (peer.family != 0) talk->peer = peer;
    }
    if (talk->local.family == 0)
        talk->local = parse_host(i->conf.socket.local_host, sizeof i->conf.socket.local_host,
                                 i->conf.socket.local_port);
}

dqi_talk *dqi_talks_of(dqi_talks *t, const dq_burst *b) {
    dq_iface *i = b->queue->iface;
    if (t->last && t->last->iface == i && t->last->conn == b->conn) return t->last;
    dqi_talk *talk = &t->slots[(b->conn + i->index * 977u) % TALKS];
    if (talk->iface != i || talk->conn != b->conn)
        *talk = (dqi_talk){
            .iface = i, .conn = b->conn, .seq = FIRST_SEQ, .tcp = i->conf.socket.proto == DQ_PROTO_TCP};
    look_up(talk, i);
    return t->last = talk;
}

// ---- headers ----------------------------------------------------------------------------------------------

static void put_mac(uint8_t *p, const dqi_endpoint *e, uint32_t ip_len) {
    p[0] = 0x02;
    p[1] = 0x00;
    memcpy(p + 2, e->ip + ip_len - 4, 4);
}

// Writes an IP header for n following bytes; returns its length.
static uint32_t put_ip(uint8_t *p, const dqi_endpoint *src, const dqi_endpoint *dst, bool v6, uint8_t proto,
                       uint32_t n) {
    if (v6) {
        memset(p, 0, 8);
        p[0] = 0x60;
        dqi_put_be16(p + 4, n);
        p[6] = proto;
        p[7] = HOP_LIMIT;
        memcpy(p + 8, src->ip, 16);
        memcpy(p + 24, dst->ip, 16);
        return DQI_IPV6_LEN;
    }
    memset(p, 0, 12);
    p[0] = 0x45;
    dqi_put_be16(p + 2, DQI_IPV4_LEN + n);
    p[6] = 0x40; // don't fragment
    p[8] = HOP_LIMIT;
    p[9] = proto;
    memcpy(p + 12, src->ip, 4);
    memcpy(p + 16, dst->ip, 4);
    return DQI_IPV4_LEN;
}

// Writes a UDP or TCP header for n following bytes, checksum 0; returns its length.
static uint32_t put_transport(uint8_t *p, dqi_talk *talk, uint16_t src_port, uint16_t dst_port, uint32_t n) {
    dqi_put_be16(p, src_port);
    dqi_put_be16(p + 2, dst_port);
    if (!talk->tcp) {
        dqi_put_be16(p + 4, DQI_UDP_LEN + n);
        dqi_put_be16(p + 6, 0);
        return DQI_UDP_LEN;
    }
    memset(p + 4, 0, DQI_TCP_LEN - 4);
    dqi_put_be32(p + 4, talk->seq);
    dqi_put_be32(p + 8, FIRST_SEQ);
    p[12] = DQI_TCP_LEN / 4 << 4;
    p[13] = TCP_FLAGS;
    dqi_put_be16(p + 14, UINT16_MAX);
    talk->seq += n;
    return DQI_TCP_LEN;
}

dqi_endpoint dqi_talk_to(const dqi_talk *talk, const dq_burst *b, uint32_t i) {
    static const uint8_t any[16] = {0};
    dqi_endpoint to = talk->local;
    const dqi_conn_ops *conns = b->queue->iface->ops->conns;
    if (talk->tcp || !conns || !conns->captured || b->queue->conf.dir != DQ_RX ||
        memcmp(to.ip, any, sizeof any) != 0)
        return to;
    const dqi_target *own = dqi_burst_target(b, i);
    if (!own || own->family == 0) return to;
    dqi_sockaddr a6 = {.in6 = {.sin6_family = AF_INET6, .sin6_port = htons(to.port)}};
    dqi_sockaddr a4 = {.in4 = {.sin_family = AF_INET, .sin_port = htons(to.port)}};
    memcpy(&a6.in6.sin6_addr, own->ip, 16);
    memcpy(&a4.in4.sin_addr, own->ip, 4);
    return dqi_endpoint_of(own->family == AF_INET6 ? &a6 : &a4);
}

uint32_t dqi_pseudo_put(dqi_talk *talk, const dqi_endpoint *from, const dqi_endpoint *to, uint8_t *dst,
                        uint32_t n) {
    static const dqi_endpoint none = {0};
    const dqi_endpoint *src = from;
    int32_t family = src->family ? src->family : to->family;
    bool v6 = family == AF_INET6;
    uint16_t src_port = src->port, dst_port = to->port;
    // A socket bound to any address of the other family still has its port.
    if (src->family != family) src = &none;
    if (to->family != family) to = &none;
    put_mac(dst, to, v6 ? 16 : 4);
    put_mac(dst + 6, src, v6 ? 16 : 4);
    dqi_put_be16(dst + 12, v6 ? DQI_TYPE_IPV6 : DQI_TYPE_IPV4);
    uint8_t *ip = dst + DQI_ETH_LEN;
    uint32_t transport = talk->tcp ? DQI_TCP_LEN : DQI_UDP_LEN;
    uint32_t ip_len = put_ip(ip, src, to, v6, talk->tcp ? DQI_PROTO_TCP : DQI_PROTO_UDP, transport + n);
    return DQI_ETH_LEN + ip_len + put_transport(ip + ip_len, talk, src_port, dst_port, n);
}

void dqi_pseudo_seal(uint8_t *frame, uint32_t len) {
    dqi_pkt pkt;
    dqi_parse(frame, len, &pkt);
    dqi_csum_fill(frame, &pkt);
}
