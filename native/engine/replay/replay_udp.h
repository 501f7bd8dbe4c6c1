// replay_udp.h: selects the datagrams of a capture that a UDP interface would receive.
#ifndef DQI_REPLAY_UDP_H
#define DQI_REPLAY_UDP_H

#include "core/atomics.h"
#include "core/dq_core.h"
#include "core/dq_ledger.h"
#include "neighbour/group.h"

#define DQI_REPLAY_ADDRS  4 // addresses of a host
#define DQI_REPLAY_GROUPS 256

// Filter of datagrams, set at open; groups are changed by control threads.
typedef struct dqi_replay_udp {
    dqi_sockaddr local[DQI_REPLAY_ADDRS], remote[DQI_REPLAY_ADDRS];
    int n_local, n_remote; // 0: any
    uint16_t local_port;   // 0: any
    uint32_t longest;      // limit of the payload, bytes
    dqi_spin lock;         // protects the fields below; held by callers of dqi_replay_udp_take
    uint32_t n_groups;
    dqi_group groups[DQI_REPLAY_GROUPS]; // joined groups
    bool own;                            // groups[0] is the local address, not explicitly joined
} dqi_replay_udp;

typedef struct dqi_datagram {
    const uint8_t *payload;
    uint32_t len;
    uint32_t spread; // hash of the sender, equal for all its datagrams
    dqi_sockaddr peer;
} dqi_datagram;

// Resolves the interface's addresses. Blocks.
int dqi_replay_udp_open(dqi_replay_udp *u, const dq_iface *i, dq_diag *diag);
// Extracts the datagram of a frame of len bytes. Returns true and fills *out, or returns false with the drop
// reason in *why. The caller holds u->lock.
bool dqi_replay_udp_take(const dqi_replay_udp *u, const uint8_t *frame, uint32_t len, dqi_datagram *out,
                         dq_reason *why);
// Joins or leaves a group, for any source if source is NULL or "", by the rules of sockets.
int dqi_replay_udp_join(dqi_replay_udp *u, const dq_iface *i, const char *group, const char *source,
                        bool join, dq_diag *diag);

#endif
