// dq_queue_pair.h: manually connected RDMA queue pairs, for peers without a connection manager (an FPGA):
// each end is configured with the other's parameters, exchanged by file or control channel.
#ifndef DQ_QUEUE_PAIR_H
#define DQ_QUEUE_PAIR_H

#include "core/dq_core.h"

typedef struct dq_iface dq_iface;

// Connection parameters of one end.
typedef struct dq_queue_pair {
    uint32_t qpn;      // queue pair number, 24 bits
    uint32_t psn;      // initial packet sequence number, 24 bits
    uint32_t qkey;     // of datagrams (UD)
    uint16_t lid;      // InfiniBand LID; 0: none, as on Ethernet
    uint8_t gid[16];   // Ethernet: an IPv6 address or an IPv4-mapped one; zeros: none
    int32_t gid_index; // local only: index of the gid in the port's table; -1: none
    uint32_t mtu;      // maximum bytes of a packet on the wire; 0: unknown
} dq_queue_pair;

// Creates a queue pair that waits for its peer; *conn is its connection id. Control thread.
int dq_queue_pair_open(dq_iface *i, uint32_t *conn, dq_diag *diag);
// Connects the queue pair to its peer: the connection is open, an event reports it, and it may send. Control
// thread; blocks while the peer's Ethernet address is resolved.
int dq_queue_pair_join(dq_iface *i, uint32_t conn, const dq_queue_pair *peer, dq_diag *diag);
// Reads the local end. NOT_SUPPORTED: created by the connection manager; INVALID_PARAMETER: no such
// connection.
int dq_queue_pair_read(dq_iface *i, uint32_t conn, dq_queue_pair *ours);

#endif
