// dq_queue_pair.h: queue pairs of RDMA that are connected by hand: each end is told the other's, by a file or
// a control channel, where the peer has no connection manager (an FPGA).
#ifndef DQ_QUEUE_PAIR_H
#define DQ_QUEUE_PAIR_H

#include "core/dq_core.h"

typedef struct dq_iface dq_iface;

// One end, as its other end has to know it.
typedef struct dq_queue_pair {
    uint32_t qpn;      // its number, 24 bits
    uint32_t psn;      // the number of the first packet that it sends, 24 bits
    uint32_t qkey;     // of datagrams (UD)
    uint16_t lid;      // in an InfiniBand subnet; 0: none, as on Ethernet
    uint8_t gid[16];   // an IPv6 address, or an IPv4 address mapped into one, on Ethernet; zeros: none
    int32_t gid_index; // ours: the gid's place in the port's table; -1: it has none
    uint32_t mtu;      // bytes of a packet on the wire, at most; 0: not known
} dq_queue_pair;

// Makes a queue pair, which waits for its peer: *conn is its connection's id. Control thread.
int dq_queue_pair_open(dq_iface *i, uint32_t *conn, dq_diag *diag);
// Tells it who its peer is: the connection is open, which an event says, and may send at once. Control
// thread; blocks while the peer's Ethernet address is looked for.
int dq_queue_pair_join(dq_iface *i, uint32_t conn, const dq_queue_pair *peer, dq_diag *diag);
// Our end. NOT_SUPPORTED: the connection manager made it; INVALID_PARAMETER: there is no such connection.
int dq_queue_pair_read(dq_iface *i, uint32_t conn, dq_queue_pair *ours);

#endif
