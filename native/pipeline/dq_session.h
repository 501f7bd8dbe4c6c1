// dq_session.h: session lifecycle, interfaces and queues, flows, connections.
//
// A session owns regions (pools of packet buffers in one arena), interfaces with receive and transmit queues,
// stages joined into pipes, and the worker threads that serve them. Packets travel as bursts. C never calls
// Go; Go keeps C pointers only inside handles.
#ifndef DQ_SESSION_H
#define DQ_SESSION_H

#include "core/dq_core.h"
#include "packet/dq_rules.h"

typedef enum dq_framing { DQ_FRAMING_NONE, DQ_FRAMING_FIXED, DQ_FRAMING_PREFIX } dq_framing;

typedef enum dq_transport { DQ_TRANSPORT_RC, DQ_TRANSPORT_UC, DQ_TRANSPORT_UD } dq_transport;

// RDMA settings.
typedef struct dq_roce_conf {
    int32_t transport;     // dq_transport
    int32_t gid_index;     // of manually connected queue pairs; -1: that of the address
    int32_t traffic_class; // -1: system default
    int32_t mtu;           // maximum bytes of a packet on the wire; 0: that of the port
} dq_roce_conf;

// Settings of a socket interface. Hosts are names or addresses, resolved at open; local port 0: any free
// port.
typedef struct dq_socket_conf {
    int32_t proto;  // dq_proto
    int32_t server; // 1: bind (and listen)
    char local_host[256];
    char remote_host[256];
    uint16_t local_port, remote_port;
    uint32_t max_payload; // bytes; 0: the buffer size
    int32_t retry_connect_s;
    int32_t framing;        // dq_framing, TCP only
    uint32_t framing_bytes; // FIXED: message bytes; PREFIX: width of the length, 1, 2, 4 or 8
    int32_t framing_le;     // PREFIX: little endian
    int32_t framing_incl;   // PREFIX: the length counts the prefix itself
    dq_roce_conf roce;      // of roce:// endpoints
} dq_socket_conf;

// Replay of a capture (engine pcap): original gaps divided by speed, or bps (of frames, without FCS), or pps;
// unpaced if all are 0.
typedef struct dq_replay_conf {
    double speed, bps, pps;
    uint64_t loops; // 0: endless
} dq_replay_conf;

typedef struct dq_iface_conf {
    char name[DQ_NAME_LEN];
    char engine[16];
    char address[DQ_ADDRESS_LEN];
    int32_t flow_isolation;
    int32_t outgoing;  // engine packet: also receive what this machine sends
    dq_region *joined; // engine packet: also receive joined frames (GRO, TSO); those longer than a queue's
                       // buffers go to this region, which the host can access. NULL: neither
    int32_t hardware_timestamps, accurate_send; // request the device's clock, if available
    dq_socket_conf socket;
    dq_replay_conf replay;
} dq_iface_conf;

typedef enum dq_dir { DQ_RX, DQ_TX } dq_dir;

// The numbers from id on have the names of the configuration's keys (runtime/spec/schema), by which
// native.QueueConf sets them; each word of a list of choices has a flag.
typedef struct dq_queue_conf {
    char name[DQ_NAME_LEN];
    int32_t dir;    // dq_dir
    int32_t direct; // 1: polled by the task that adopts it, 0: by a worker
    int32_t core;   // worker's core, -1: not pinned
    uint32_t n_regions;
    dq_region *regions[DQ_MAX_SEGS];
    uint32_t id;
    uint32_t batch_size;
    uint64_t timeout_us; // 0: deliver full bursts only (loop); sockets deliver immediately
    double pacing_mbps;  // 0: unpaced
    int32_t tx_eth_src;  // 1: set the source of each frame to the interface's MAC (unless a tee reads it)
} dq_queue_conf;

// An engine of this build.
typedef struct dq_engine_info {
    char name[16];
    bool virtual_clock; // can run on the virtual clock
} dq_engine_info;
// Returns the i-th engine in listing order; false past the end.
bool dq_engine(uint32_t i, dq_engine_info *out);

// Creates an empty session. The caller owns it until dq_session_close. Control thread.
int dq_session_new(const dq_session_conf *conf, dq_session **out, dq_diag *diag);
// The add calls configure the session before dq_session_open; the objects they return live as long as it.

int dq_iface_add(dq_session *s, const dq_iface_conf *conf, dq_iface **out, dq_diag *diag);
int dq_queue_add(dq_iface *i, const dq_queue_conf *conf, dq_queue **out, dq_diag *diag);
// Computes the sizes and places of the regions as dq_session_open does, and checks the memory that they are
// bound to, without allocating memory. dq_region_read returns them. The session must be closed afterwards.
int dq_session_measure(dq_session *s, dq_diag *diag);
// Allocates the arena and opens the engines (sockets are bound); no packet moves yet. May resolve host names:
// blocks.
int dq_session_open(dq_session *s, dq_diag *diag);
// Starts workers and writers. Direct queues are served while their task waits.
int dq_session_start(dq_session *s, dq_diag *diag);
// Ends generation, drains the transmit rings for up to drain_ns after the first call, and ends reception for
// all queues at one moment: earlier packets are delivered, later ones are not part of the session. Hands
// partial bursts to their consumers and ends the workers; writers continue until dq_session_finish. Returns
// the packets waiting for tasks: serve the taps (dq_wait with timeout 0) and repeat until 0;
// dq_session_finish drops the rest. No task may be in dq_wait on a direct queue of this session meanwhile.
// Idempotent.
uint64_t dq_session_stop(dq_session *s, int64_t drain_ns);
// Returns the session time at which reception had ended and the last packet had left; 0: before
// dq_session_stop.
int64_t dq_session_quiesced(const dq_session *s);
// Drops the contents of taps and rings (counted as stopped) and ends the writers after they have written
// their data and closed their files. A stage without progress for 5 s is abandoned and its packets count as
// stopped. Idempotent. Blocks.
void dq_session_finish(dq_session *s);
// Whether the stage has failed because of a device; writes the reason to buf. Any thread.
bool dq_stage_failure(const dq_stage *st, char *buf, size_t len);
// Returns the name of the first queue that failed because of a device, and the reason in buf; NULL: none. Any
// thread, before the close.
const char *dq_session_failure(const dq_session *s, char *buf, size_t len);
// Whether dq_session_finish has abandoned the stage.
bool dq_stage_abandoned(const dq_stage *st);
// Marks the session's memory as permanently in use by others, as with an abandoned stage.
void dq_session_leak_memory(dq_session *s);
// Frees everything; with an abandoned stage only the engines, as its thread may never end. Accepts a
// partially built session and NULL. Bursts still referenced become invalid. Returns the number of packet
// buffers not in their pools.
uint64_t dq_session_close(dq_session *s);

// Virtual clock: polls every object once; returns the number that made progress, 0 before the start. One
// thread.
int dq_step(dq_session *s);
// Virtual clock: returns the time of the session's next scheduled work; INT64_MAX: none.
int64_t dq_next_time(const dq_session *s);

// Returns the stride that an engine (by name) requires for buffers of buf_size bytes in a region that is used
// by a queue (queued) or by none; 0: unknown engine. A session uses the maximum over its engines.
uint32_t dq_stride(uint32_t buf_size, bool queued, const char *engine);

// ---- flows ------------------------------------------------------------------------------------------------

// Atomically removes an interface's receive rules with these orders and adds others, between two bursts; on
// error nothing changes. Orders are unique per interface. The cost is nearly independent of the number of
// existing rules. An interface that never had rules sends everything to its first queue. A call with n_gone =
// n_add = 0 compacts the tables, which speeds up lookups after many changes. INVALID_PARAMETER: unknown
// order; NOT_SUPPORTED: the engine has no flows. Rules index into `actions`; a rule with actions needs a
// unique flow id. Frames to which the actions do not apply are dropped (bad_tunnel).
int dq_iface_change_rules(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                          uint32_t n_add, const dq_action *actions, dq_diag *diag);
// Replaces an interface's transmit rules between two bursts: matching frames get their actions, with the
// actions' headers in front, before they are sent. On error nothing changes; n 0 removes all. The rules'
// queues are ignored. Control thread, after the open.
int dq_iface_set_tx_rules(dq_iface *i, const dq_rule *rules, uint32_t n, const dq_action *actions,
                          dq_diag *diag);
int dq_iface_drop_all(dq_iface *i, bool drop, dq_diag *diag);
// Reads the interface's MAC address; NOT_SUPPORTED if it has none.
int dq_iface_mac(const dq_iface *i, uint8_t mac[6]);
// Joins or leaves a multicast group (text address), for any source if source is empty. Membership is reported
// by the kernel, or without one by the interface through its first transmit queue. Control thread, after the
// open.
int dq_iface_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);

// Sets the addresses for which the interface answers ARP requests and neighbour solicitations, replacing
// those of the last call; n 0: none. Replies leave through its first transmit queue. NOT_SUPPORTED if the
// kernel answers; INVALID_PARAMETER names the error. Control thread, after the open.
int dq_iface_answer(dq_iface *i, const dq_ip *addrs, uint32_t n, dq_diag *diag);
// Sends one ARP request or neighbour solicitation for addr to the interface's network, or to a VLAN of it (0:
// none), through its first transmit queue. Its sender is `from`; with len 0 the first answered address, or
// the unspecified one. NOT_READY before the start; NOT_SUPPORTED if the kernel would receive the reply, or
// without frames; INVALID_PARAMETER without a queue of each direction. Control thread.
int dq_iface_ask(dq_iface *i, const dq_ip *addr, uint16_t vlan, const dq_ip *from, dq_diag *diag);
// Returns the Ethernet address learned within the last minute; false: none yet. Any thread, after the open.
bool dq_iface_neighbour(const dq_iface *i, const dq_ip *addr, uint16_t vlan, uint8_t mac[6]);

// ---- connections ------------------------------------------------------------------------------------------

#define DQ_MAX_PRIVATE_DATA 196 // bytes of private data in a connection request (roce://)

typedef struct dq_conn_info {
    char local[64], peer[64]; // "address:port"
    int32_t open;
    dq_queue *rx, *tx;
    uint8_t private_data[DQ_MAX_PRIVATE_DATA]; // as received from the peer
    uint32_t private_bytes;                    // length; 0: none
} dq_conn_info;

// Parameters of a new connection.
typedef struct dq_connect {
    const char *address, *local; // "host:port"; local empty: default
    const void *private_data;    // sent to the peer with the request; roce:// only
    uint32_t private_bytes;
} dq_connect;

// Delivers the connect and disconnect events of i to w with this tag.
int dq_iface_events(dq_iface *i, dq_waiter *w, uint64_t tag, dq_diag *diag);
// Starts a connection from a client interface; an event reports the result. *conn: its id.
int dq_conn_open(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
int dq_conn_close(dq_iface *i, uint32_t conn);
int dq_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out);

// setsockopt(2) with an opaque value; conn 0: the interface's own socket. System errors are DQ_ESYS - errno.
int dq_conn_setsockopt(dq_iface *i, uint32_t conn, int level, int option, const void *value, uint32_t len);

#endif
