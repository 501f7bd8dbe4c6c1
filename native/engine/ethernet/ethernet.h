// ethernet.h: common part of the raw Ethernet engines and the interface of their drivers.
//
// A port is a network device with one or more device queues (its hardware queues). A driver (AF_PACKET,
// AF_XDP, DPDK) moves frames between device queues and memory. The common part (ethernet.c) implements the
// configuration whatever the device supports: flows, distribution over receive queues, isolation and
// drop-all, header split, counting.
//
// Receive: a queue's poller reads its own device queues, then the others; a try-lock admits one thread at a
// time to a device queue. Frames are classified: those of the queue go into its current burst, those of other
// queues into bursts of their regions, which are pushed into their inboxes before the device queue is
// unlocked, so the packets of one device queue stay in order. A piece in a buffer of the queue's own region
// (dqi_piece.buf) is passed on in place, any other is copied once; the report names the pieces copied and the
// reason.
//
// Transmit: the driver's tx implements the engine's tx.
#ifndef DQI_ETHERNET_H
#define DQI_ETHERNET_H

#include "core/counters.h"
#include "core/dq_burst.h"
#include "core/origin.h"
#include "core/socket_addr.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/steering/flows.h"

#include <netinet/in.h>

struct pollfd;

typedef struct dqi_port dqi_port;
typedef struct dqi_port_driver dqi_port_driver;
typedef struct dqi_kernel_groups dqi_kernel_groups;

// Part of a received frame, valid until the device queue is released. A frame's first piece contains all of
// its headers.
typedef struct dqi_piece {
    uint8_t *data; // writable, with the 4 bytes before it if there is a VLAN tag
    uint32_t len;
    uint32_t buf;  // id of the buffer that contains it, of its device queue's region, at least DQ_HEADROOM
                   // bytes behind the start; owned by the reader. DQI_NO_BUF: not in such a buffer.
    uint32_t flow; // flow id found by the device, where port->marks; 0: none
    bool done;     // the device has executed that flow's actions, whatever port->marks is now
    bool broken;   // the removed headers had a wrong checksum
    uint16_t vlan_tci, vlan_tpid; // tag stripped by the device, in the first piece; tpid 0: none
    bool more;                    // the next piece belongs to the same frame
    int64_t ts;                   // session time; 0: time of the read
    uint32_t loop;                // loop number of a capture
    dqi_origin origin;            // metadata from the capture; in the first piece
    // Only where queues hold payloads and flows do not apply:
    const dqi_sockaddr *peer; // source address
    uint16_t queue;           // id of the receive queue
} dqi_piece;

typedef struct dqi_port_queue {
    dqi_port *port;
    uint32_t index;
    dqi_spin busy;
    dq_queue *reader;  // queue whose poller reads, during read and release; driver errors are counted there
    void *state;       // owned by the driver
    dq_region *region; // of a receive queue: pieces may lie in its buffers (dqi_piece.buf); NULL: none do
    dq_queue *split;   // piece j of a frame may lie in a buffer of its region j; NULL: one piece
    struct dqi_eth_batch *batch; // private to ethernet.c
    struct dqi_eth_heads *heads; // private to ethernet.c: the region is on a GPU (heads.h); NULL: it is not
    dqi_flow_rules *rules;       // rules of the port at the last read
} dqi_port_queue;

struct dqi_port {
    dq_iface *iface;
    const dqi_port_driver *driver;
    void *state;       // owned by the driver
    uint32_t n_queues; // of the open; those of queues that are added follow, some of them closed (state NULL)
    dqi_port_queue queues[DQ_MAX_QUEUES];
    dqi_flows flows; // software classifier
    bool filters;    // on an isolated interface the driver returns no frame that no rule matches
    bool marks; // flow ids in pieces of device queue k all belong to queue k; software classifies the others
    bool transforms;                  // pieces may be `done`; set by the driver before the first, never reset
    bool pollable;                    // arm_rx has descriptors for all device queues
    bool direct;                      // some device queue has a region
    const char *copy;                 // which pieces are copied and why; NULL: none are
    dq_stamps stamps;                 // source of the timestamps of pieces
    dqi_kernel_groups *kernel_groups; // kernel_groups.h; NULL: none
    uint32_t netdev;                  // index of its kernel network device, set by the driver's open; 0: none
    struct {                          // pause frames of netdev (pause.h)
        bool counted;                 // the driver counts them, and the run has not ended
        uint64_t received, sent;      // counters at the start of the run
        int64_t read_ns;              // monotonic time of the last reading
    } pause;
    dqi_counters c; // in: frames read; out: frames passed to queues. Written by several threads with
                    // dqi_add_shared
};

struct dqi_port_driver {
    const char *name; // name in the report, such as "AF_XDP, zero-copy"; dqi_note adds details
    // Acquires the device: sets n_queues, direct or copy, filters, stamps. Regions are mapped and queues
    // known. An error names the interface and the remedy.
    int (*open)(dqi_port *p, dq_diag *diag);
    int (*start)(dqi_port *p, dq_diag *diag); // enables reception; optional
    void (*stop)(dqi_port *p);                // ends reception; received frames stay readable; optional
    void (*close)(dqi_port *p);               // works on a half-open port; restores the device's settings
    // Open and close the device's part of a transmit queue that is added and deleted after the open. tx_close
    // NULL: there is nothing to close.
    int (*tx_open)(dq_queue *q, dq_diag *diag);
    void (*tx_close)(dq_queue *q);
    // Open and close a device queue of its own for a receive queue that is added and deleted after the open.
    // Its index is that of the queue, its poller alone reads it. NULL: the queue reads those of the open
    // only.
    int (*rx_open)(dqi_port_queue *l, dq_queue *q, dq_diag *diag);
    void (*rx_close)(dqi_port_queue *l);
    // A receive queue was added after the open: buffers of the device queues may go to it. NULL: the driver
    // passes on none, or all of them return to it.
    void (*rx_added)(dqi_port *p);
    const dqi_region_ops *regions; // as in dqi_engine_ops
    // Reads at most max pieces (whole frames only) of a device queue; returns their number. The caller has
    // locked the device queue and calls release before the next read. Unusable frames (truncated or
    // coalesced) are counted here, in p->c.in and p->c.dropped, with dqi_add_shared. Never blocks.
    uint32_t (*read)(dqi_port_queue *l, dqi_piece *out, uint32_t max);
    // Returns the pieces of the last read that lie outside the region to the driver.
    void (*release)(dqi_port_queue *l);
    // As in dqi_engine_ops; `engine` of each transmit queue is owned by the driver.
    int (*tx)(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
    int (*reap)(dq_queue *q);       // optional
    void (*drop_rest)(dq_queue *q); // optional
    uint64_t (*held)(dq_queue *q);  // optional
    // Writes descriptors that become readable when a device queue has frames or a transmit queue has room, at
    // most max; returns their number. Called by q's poller before each sleep, without the device queue lock.
    int (*arm_rx)(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max);
    int (*arm_tx)(dq_queue *q, struct pollfd *fds, int max); // optional
    // Reads the counters of the device and the kernel into p->c.extra; optional. Any thread, one at a time.
    void (*refresh)(dqi_port *p);
    // Reports removed and added rules after the software classifier was updated. The driver may offload some
    // of them to the device; an error rejects the change. NULL: all rules are applied in software.
    int (*steer)(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
                 dq_diag *diag);
    void (*drop_all)(dqi_port *p, bool drop); // also drops received frames in the driver; optional
    int (*mac)(const dqi_port *p, uint8_t mac[6]);
    uint32_t (*mtu)(const dqi_port *p); // as in dqi_link_ops; NULL: no known limit
    // Joins or leaves a group through the kernel. NULL: the session sends the reports itself, and set_rx_macs
    // sets the n group addresses that the device receives, replacing those of the last call; it is also
    // called after the start. Without set_rx_macs the device receives all groups.
    int (*multicast)(dqi_port *p, const char *group, const char *source, bool join, dq_diag *diag);
    int (*set_rx_macs)(dqi_port *p, const uint8_t (*macs)[6], uint32_t n, dq_diag *diag);
};

// Implementations of dqi_engine_ops for an engine that selects its driver at open.
int dqi_eth_open(dq_iface *i, const dqi_port_driver *d, dq_diag *diag);
int dqi_eth_queue_open(dq_queue *q, dq_diag *diag);
void dqi_eth_queue_close(dq_queue *q);
int dqi_eth_start(dq_iface *i, dq_diag *diag);
void dqi_eth_stop(dq_iface *i);
void dqi_eth_close(dq_iface *i);
int dqi_eth_rx(dq_queue *q, dq_burst **b, uint32_t room);
int dqi_eth_tx(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
int dqi_eth_reap(dq_queue *q);
void dqi_eth_drop_rest(dq_queue *q);
int dqi_eth_arm(dq_queue *q, struct pollfd *fds, int max);
uint64_t dqi_eth_held(dq_queue *q);
int64_t dqi_eth_flush(dq_queue *q);
int64_t dqi_eth_flush_inbox(dq_queue *q);    // as dqi_eth_flush, without reading the device queues
extern const dqi_region_ops dqi_eth_regions; // those of the driver
int dqi_eth_lines(dq_iface *i, dq_line *l, int max);
void dqi_eth_refresh(dq_iface *i);
extern const dqi_flow_ops dqi_eth_flows;
extern const dqi_link_ops dqi_eth_link, dqi_eth_groups; // dqi_eth_groups: only multicast, for queues of
                                                        // payloads
// Operations common to all engines on a port; each engine adds its name, open, rx and flush.
#define DQI_PORT_OPS                                                                                         \
    .start = dqi_eth_start, .stop = dqi_eth_stop, .close = dqi_eth_close, .tx = dqi_eth_tx,                  \
    .held = dqi_eth_held, .lines = dqi_eth_lines
// Operations of engines that receive frames.
#define DQI_FRAME_OPS DQI_PORT_OPS, .flows = &dqi_eth_flows, .link = &dqi_eth_link
// Operations of engines that serve devices.
#define DQI_DEVICE_OPS                                                                                       \
    DQI_FRAME_OPS, .reap = dqi_eth_reap, .drop_rest = dqi_eth_drop_rest, .arm = dqi_eth_arm,                 \
                   .flush = dqi_eth_flush, .refresh = dqi_eth_refresh, .queue_open = dqi_eth_queue_open,     \
                   .queue_close = dqi_eth_queue_close, .regions = &dqi_eth_regions
// Adds a note to the report for each transmit queue whose buffers hold frames longer than the MTU of the
// port's network device, with the command that raises it. The program changes no settings of network devices.
void dqi_eth_note_mtu(const dqi_port *p, uint32_t mtu);
// Returns the port of an interface opened by dqi_eth_open.
static inline dqi_port *dqi_port_of(const dq_iface *i) { return i->engine; }

// Counts n packets dropped at the port. Any thread.
static inline void dqi_port_drop(dqi_port *p, dq_reason why, uint64_t n) {
    if (n > 0) dqi_add_shared(&p->c.dropped[why], n);
}

#endif
