// udp_rig.h: UDP servers in a session, and what this kernel can do for them.
#ifndef UDP_RIG_H
#define UDP_RIG_H

#include "socket_rig.h"

#include <netinet/udp.h>

// One server with one receive and one transmit queue.
typedef struct server {
    rig r;
    dq_iface *i;
    dq_region *in; // of the receive queue
    dq_queue *rx, *tx;
    uint16_t port;
} server;

// Its queues share a region, so that the kernel joins no datagrams; started.
static inline server udp_server(const char *host, uint32_t n_bufs, uint32_t buf_size) {
    server s = {.r = rig_new(n_bufs, buf_size)};
    dq_iface_conf c = rig_conf("udp_server", DQ_PROTO_UDP, 1, host, 0, "", 0);
    s.i = rig_iface(&s.r, &c);
    s.in = s.r.region;
    s.rx = rig_rx(&s.r, s.i);
    s.tx = rig_tx(&s.r, s.i);
    rig_need(rig_open(&s.r) == DQ_OK, s.r.error);
    rig_start(&s.r, &s.rx, 1);
    s.port = rig_port(s.i);
    return s;
}

static inline void send_text(int fd, const char *text) {
    DQ_EQ(send(fd, text, strlen(text), 0), strlen(text));
}

// Opens and starts a server of three receive queues, each on a worker, and connects n plain sockets to it.
static inline rig wide_server(uint32_t n_bufs, uint32_t buf_size, int *fds, uint32_t n) {
    rig r = rig_new(n_bufs, buf_size);
    r.workers = 1;
    dq_iface_conf c = rig_conf("wide", DQ_PROTO_UDP, 1, "127.0.0.1", 0, "", 0);
    dq_iface *i = rig_iface(&r, &c);
    for (int k = 0; k < 3; k++)
        rig_rx(&r, i);
    rig_need(rig_open(&r) == DQ_OK, r.error);
    rig_start(&r, r.queues, 3);
    for (uint32_t k = 0; k < n; k++)
        fds[k] = peer_connect(SOCK_DGRAM, "127.0.0.1", rig_port(i));
    return r;
}

// Skips the unit where the kernel neither joins datagrams nor cuts them.
static inline void need_runs(void) {
    int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
    if (fd >= 0) close(fd);
    if (!ok) dq_lack("udp-gro", "this kernel has no UDP_GRO");
}

#endif
