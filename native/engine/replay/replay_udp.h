// replay_udp.h: the datagrams of a capture that a UDP interface would receive.
#ifndef DQI_REPLAY_UDP_H
#define DQI_REPLAY_UDP_H

#include "core/dq_ledger.h"
#include "core/dq_core.h"
#include "core/atomics.h"
#include "neighbour/group.h"

#define DQI_REPLAY_ADDRS  4 // addresses of a host
#define DQI_REPLAY_GROUPS 256

// Whose datagrams are taken. Set at open; groups by control threads, the rest does not change.
typedef struct dqi_replay_udp {
    dqi_sockaddr local[DQI_REPLAY_ADDRS], remote[DQI_REPLAY_ADDRS];
    int n_local, n_remote; // 0: any
    uint16_t local_port;   // 0: any
    uint32_t longest;      // bytes of a payload
    dqi_spin lock;         // of what follows; dqi_replay_udp_take is called with it
    uint32_t n_groups;
    dqi_group groups[DQI_REPLAY_GROUPS]; // what was joined
    bool own;                            // groups[0] is the local address, which nobody has joined by name
} dqi_replay_udp;

typedef struct dqi_datagram {
    const uint8_t *payload;
    uint32_t len;
    uint32_t spread; // the same for all datagrams of a sender
    dqi_sockaddr peer;
} dqi_datagram;

// Resolves the interface's addresses. Blocks.
int dqi_replay_udp_open(dqi_replay_udp *u, const dq_iface *i, dq_diag *diag);
// Takes the datagram of a frame that is `len` bytes long, all the bytes that it had; true: *out. Else *why is
// the reason for which it is dropped. The caller holds u->lock.
bool dqi_replay_udp_take(const dqi_replay_udp *u, const uint8_t *frame, uint32_t len, dqi_datagram *out,
                         dq_reason *why);
// Joins or leaves a group, of any source where it is NULL or "", by the rules of a socket.
int dqi_replay_udp_join(dqi_replay_udp *u, const dq_iface *i, const char *group, const char *source,
                        bool join, dq_diag *diag);

#endif
