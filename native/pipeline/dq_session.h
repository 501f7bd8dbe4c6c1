// dq_session.h: a session's life, its interfaces and queues, flows, connections.
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

// What only RDMA has.
typedef struct dq_roce_conf {
    int32_t transport;     // dq_transport
    int32_t gid_index;     // of queue pairs that are connected by hand, -1: the address's own
    int32_t traffic_class; // -1: the system's
    int32_t mtu;           // bytes of a packet on the wire, at most; 0: the port's
} dq_roce_conf;

// What a socket interface needs. Hosts are names or addresses, resolved at open; port 0 local = any free
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

// How a capture is replayed (engine pcap): with its own gaps divided by speed, or at bps (of frames, without
// FCS), or at pps; flat out where all are 0.
typedef struct dq_replay_conf {
    double speed, bps, pps;
    uint64_t loops; // 0: without end
} dq_replay_conf;

typedef struct dq_iface_conf {
    char name[DQ_NAME_LEN];
    char engine[16];
    char address[DQ_ADDRESS_LEN];
    int32_t flow_isolation;
    int32_t hardware_timestamps, accurate_send; // the device's clock is asked for, where it has one
    dq_socket_conf socket;
    dq_replay_conf replay;
} dq_iface_conf;

typedef enum dq_dir { DQ_RX, DQ_TX } dq_dir;

typedef struct dq_queue_conf {
    char name[DQ_NAME_LEN];
    uint32_t id;
    int32_t dir;    // dq_dir
    int32_t direct; // 1: polled by the task that adopts it, 0: by a worker
    int32_t core;   // worker's core, -1: not pinned
    uint32_t batch_size;
    uint64_t timeout_us; // 0: deliver full bursts only (loop); sockets deliver what is there
    uint32_t n_regions;
    dq_region *regions[DQ_MAX_SEGS];
    double pace_bps;    // 0: unpaced
    int32_t tx_eth_src; // 1: the interface's MAC becomes the source of each frame (not where a tee still
                        // reads it)
} dq_queue_conf;

// An engine of this version.
typedef struct dq_engine_info {
    char name[16];
    bool virtual_clock; // it can run on the virtual clock
} dq_engine_info;
// The i-th, in the order in which they are listed; false past the end.
bool dq_engine(uint32_t i, dq_engine_info *out);

// Makes an empty session. The caller owns it until dq_session_close. Control thread.
int dq_session_new(const dq_session_conf *conf, dq_session **out, dq_diag *diag);
// The add calls fill the session before dq_session_open; what they return lives as long as the session.

int dq_iface_add(dq_session *s, const dq_iface_conf *conf, dq_iface **out, dq_diag *diag);
int dq_queue_add(dq_iface *i, const dq_queue_conf *conf, dq_queue **out, dq_diag *diag);
// Allocates the arena, opens the engines (sockets are bound). Nothing moves yet. May resolve host names:
// blocks.
int dq_session_open(dq_session *s, dq_diag *diag);
// Starts workers and writers. Direct queues move when their task waits.
int dq_session_start(dq_session *s, dq_diag *diag);
// Ends generation, sends what the transmit rings hold, for at most drain_ns of the first call, and ends
// receiving, at one moment for all queues: what came before is delivered, what comes later is nobody's and in
// no account. Hands partial bursts to their consumers, ends the workers. Writers go on until
// dq_session_finish. Returns the packets that wait for tasks to take some: serve the taps (dq_wait with
// timeout 0) and call it again until 0; dq_session_finish drops what is left. No task may be in dq_wait on a
// direct queue of this session meanwhile. Idempotent.
uint64_t dq_session_stop(dq_session *s, int64_t drain_ns);
// Session time at which receiving had ended and the last packet had left; 0: before dq_session_stop.
int64_t dq_session_quiesced(const dq_session *s);
// Drops what waits in taps and rings (counted as stopped) and ends the writers: what they hold is written and
// files are closed. A stage that gets nowhere for 5 s is abandoned: its packets count as stopped. Idempotent.
// Blocks.
void dq_session_finish(dq_session *s);
// Whether the stage does no more work, as a device failed, and why in words. Any thread.
bool dq_stage_failure(const dq_stage *st, char *buf, size_t len);
// The name of the queue that a device failed first, and why in words; NULL: none. Any thread, before the
// close.
const char *dq_session_failure(const dq_session *s, char *buf, size_t len);
// Whether the finish has abandoned the stage.
bool dq_stage_abandoned(const dq_stage *st);
// As if a stage were: something else may touch the session's memory for ever.
void dq_session_leak_memory(dq_session *s);
// Frees everything; of a session with an abandoned stage the engines alone: that one may go on for ever.
// Works on a half-built session and on NULL. Bursts still held outside stay readable no longer. Returns the
// number of packet buffers that were not in their pools.
uint64_t dq_session_close(dq_session *s);

// Virtual clock: polls everything once; the number of objects that made progress, 0 before the start. One
// thread.
int dq_step(dq_session *s);
// Virtual clock: the next time at which something of this session is due; INT64_MAX: nothing.
int64_t dq_next_time(const dq_session *s);

// The stride that an engine (by its name) asks for buffers of buf_size bytes, of a region that some queue
// names (queued) or none does; 0: the engine is not in this version. A session takes the largest of its
// engines'.
uint32_t dq_stride(uint32_t buf_size, bool queued, const char *engine);

// ---- flows ------------------------------------------------------------------------------------------------

// Takes out an interface's receive rules of these orders and adds others, between two bursts: all of it or
// nothing. Each rule of the interface needs an order of its own. The cost hardly depends on the number of
// rules there are. An interface that never had rules sends everything to its first queue. With none to take
// out or to add, packets are looked up faster after it: changes leave traces, and it takes them out.
// INVALID_PARAMETER for an order that is not there; NOT_SUPPORTED on engines without flows. Rules name their
// actions in `actions`; a rule with some needs a flow id of its own. A frame that isn't what they are for is
// dropped (bad_tunnel).
int dq_iface_change_rules(dq_iface *i, const uint64_t *gone, uint32_t n_gone, const dq_rule *add,
                          uint32_t n_add, const dq_action *actions, dq_diag *diag);
// Sets an interface's transmit rules, between two bursts and instead of those that it has: the frames that
// match get their actions, with the actions' headers in front, before they are sent. All of it or nothing;
// n 0: none any more. Queues of the rules are not looked at. Control thread, after the open.
int dq_iface_set_tx_rules(dq_iface *i, const dq_rule *rules, uint32_t n, const dq_action *actions,
                          dq_diag *diag);
int dq_iface_drop_all(dq_iface *i, bool drop, dq_diag *diag);
// The interface's MAC address; NOT_SUPPORTED where it has none.
int dq_iface_mac(const dq_iface *i, uint8_t mac[6]);
// Joins or leaves a multicast group (text address), of any source when source is empty. The kernel reports
// it; where there is none, the interface does, through its first transmit queue. Control thread, after the
// open.
int dq_iface_multicast(dq_iface *i, const char *group, const char *source, bool join, dq_diag *diag);

// Has the interface answer ARP requests and neighbour solicitations for these addresses, instead of those of
// the last call; n 0: for none. Answers leave through its first transmit queue. NOT_SUPPORTED where the
// kernel does that; INVALID_PARAMETER names what is wrong. Control thread, after the open.
int dq_iface_answer(dq_iface *i, const dq_ip *addrs, uint32_t n, dq_diag *diag);
// Asks the interface's network, or a VLAN of it (0: none), once which Ethernet address addr has, by ARP or
// neighbour discovery, through its first transmit queue. As from, len 0: as the first of the addresses that
// it answers for, or as nobody. NOT_READY before the start; NOT_SUPPORTED where its answer would go to the
// kernel, or there are no frames; INVALID_PARAMETER without a queue of each direction. Control thread.
int dq_iface_ask(dq_iface *i, const dq_ip *addr, uint16_t vlan, const dq_ip *from, dq_diag *diag);
// What was answered within the last minute; false: nothing yet. Any thread, after the open.
bool dq_iface_neighbour(const dq_iface *i, const dq_ip *addr, uint16_t vlan, uint8_t mac[6]);

// ---- connections ------------------------------------------------------------------------------------------

#define DQ_MAX_PRIVATE_DATA 196 // bytes that a peer may give when a connection is made (roce://)

typedef struct dq_conn_info {
    char local[64], peer[64]; // "address:port"
    int32_t open;
    dq_queue *rx, *tx;
    uint8_t private_data[DQ_MAX_PRIVATE_DATA]; // that the peer gave
    uint32_t private_bytes;                    // of it; 0: none
} dq_conn_info;

// What a connection is made to.
typedef struct dq_connect {
    const char *address, *local; // "host:port"; from where, empty: by default
    const void *private_data;    // that the peer is given with the request; of roce:// alone
    uint32_t private_bytes;
} dq_connect;

// Delivers connect and disconnect events of i to w with this tag.
int dq_iface_events(dq_iface *i, dq_waiter *w, uint64_t tag, dq_diag *diag);
// Starts a connection from a client interface; the outcome comes as an event. *conn: its id.
int dq_conn_open(dq_iface *i, const dq_connect *to, uint32_t *conn, dq_diag *diag);
int dq_conn_close(dq_iface *i, uint32_t conn);
int dq_conn_read(dq_iface *i, uint32_t conn, dq_conn_info *out);

// setsockopt(2) with an opaque value; conn 0: the interface's own socket. System errors as DQ_ESYS - errno.
int dq_conn_setsockopt(dq_iface *i, uint32_t conn, int level, int option, const void *value, uint32_t len);

#endif
