// ethernet.h: what the engines of raw Ethernet have in common, and what they ask of a driver.
//
// A port is a network device with one or more device queues, its hardware queues. A driver (AF_PACKET,
// AF_XDP, DPDK) moves frames between device queues and memory. The common part (ethernet.c) does what a
// configuration promises whatever the device can do: flows, spreading over receive queues, isolation and
// drop-all, header split, counting.
//
// Receive: a queue's poller reads device queues of its own, then other device queues; one thread at a time
// has a device queue (try-lock). What it reads is classified; its own packets go into its current burst,
// those of other queues into bursts of their regions that it pushes into their inbound rings, before it lets
// the device queue go: the packets of one device queue stay in order. A piece that lies in a buffer of the
// queue's own region already (dqi_piece.buf) is taken as it is, any other is copied once; the report says
// which and why.
//
// Transmit: a driver's tx is the engine's tx.
#ifndef DQI_ETHERNET_H
#define DQI_ETHERNET_H

#include "core/dq_burst.h"
#include "core/counters.h"
#include "core/origin.h"
#include "core/socket_addr.h"
#include "pipeline/engine.h"
#include "pipeline/flows.h"
#include "pipeline/iface.h"

#include <netinet/in.h>

struct pollfd;

typedef struct dqi_port dqi_port;
typedef struct dqi_port_driver dqi_port_driver;
typedef struct dqi_kernel_groups dqi_kernel_groups;

// Some bytes of a received frame; valid until the device queue's release. A frame's headers lie in its first
// piece.
typedef struct dqi_piece {
    uint8_t *data; // may be written, and so may the 4 bytes in front of it where there is a tag
    uint32_t len;
    uint32_t buf; // id of the buffer of its device queue's region that it lies in, at least DQ_HEADROOM bytes
                  // behind the buffer's start; DQI_NO_BUF: it lies elsewhere. The reader owns such a buffer.
    uint32_t flow; // flow id that the device found, where port->marks; 0: none
    bool done;     // the device has carried out that flow's actions, whatever port->marks says by now
    bool broken;   // and what it took off had a wrong checksum
    uint16_t vlan_tci, vlan_tpid; // a tag that the device took out, in the first piece; tpid 0: none
    bool more;                    // the next piece belongs to the same frame
    int64_t ts;                   // session time; 0: the time of the read
    uint32_t loop;                // of a capture
    dqi_origin origin;            // and what that says; in the first piece
    // Where queues hold payloads, and flows have no say:
    const dqi_sockaddr *peer; // who sent it
    uint16_t queue;           // id of the queue that it is for
} dqi_piece;

typedef struct dqi_port_queue {
    dqi_port *port;
    uint32_t index;
    dqi_spin busy;
    dq_queue *reader; // whose poller reads it, during read and release: the driver's faults are counted there
    void *state;      // the driver's
    dq_region *region; // some receive queue's: pieces may lie in its buffers (dqi_piece.buf); NULL: none does
    dq_queue
        *split; // piece j of a frame may lie in a buffer of this queue's region j; NULL: one piece, as above
    struct dqi_eth_batch *batch; // ethernet.c's
    struct dqi_eth_heads *heads; // the same: its region's packets lie on a GPU (heads.h); NULL: they don't
    dqi_flow_rules *rules;       // of the port, at the last read
} dqi_port_queue;

struct dqi_port {
    dq_iface *iface;
    const dqi_port_driver *driver;
    void *state; // the driver's
    uint32_t n_queues;
    dqi_port_queue queues[DQ_MAX_QUEUES];
    dqi_flows flows; // the software classifier
    bool filters;    // the driver gives nothing to a device queue that no rule wants, when the interface is
                     // isolated
    bool
        marks; // pieces of device queue k that bring a flow id are all of queue k; software finds the others'
    bool transforms;                  // pieces may be `done`: the driver sets it before the first, for good
    bool pollable;                    // arm_rx has descriptors for all device queues
    bool direct;                      // some device queue has a region
    const char *copy;                 // why pieces are copied, or which; NULL: none is
    dq_stamps stamps;                 // where the times of pieces come from
    dqi_kernel_groups *kernel_groups; // kernel_groups.h; NULL: none
    dqi_counters c; // of the port: in what was read, out what went to queues; written by several threads:
                    // dqi_add_shared
};

struct dqi_port_driver {
    const char *name; // in the report: "AF_XDP, zero-copy", …: dqi_note says more
    // Acquires the device: sets n_queues, direct or copy, filters, stamps. Regions are mapped, queues known.
    // An error names the interface and what to do.
    int (*open)(dqi_port *p, dq_diag *diag);
    int (*start)(dqi_port *p, dq_diag *diag); // frames come from here on; NULL
    void (*stop)(dqi_port *p);                // no further frames; what came stays readable; NULL
    void (*close)(dqi_port *p);               // works on a half-open port; leaves the device as it was
    // Reads at most max pieces (whole frames only) of a device queue; their number. The caller has the device
    // queue, and calls release before it reads again. Frames that can't be handed on (cut, joined) are
    // counted here: p->c.in and p->c.dropped, by dqi_add_shared. Never blocks.
    uint32_t (*read)(dqi_port_queue *l, dqi_piece *out, uint32_t max);
    // The last read's pieces that lie elsewhere are the driver's again.
    void (*release)(dqi_port_queue *l);
    // As in dqi_engine_ops; each transmit queue's `engine` is the driver's.
    int (*tx)(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
    int (*reap)(dq_queue *q);       // NULL
    void (*drop_rest)(dq_queue *q); // NULL
    uint64_t (*held)(dq_queue *q);  // NULL
    // Descriptors that become readable when a device queue has frames, or a transmit queue has room; at most
    // max. Called before each sleep, by q's poller, without the device queue.
    int (*arm_rx)(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max);
    int (*arm_tx)(dq_queue *q, struct pollfd *fds, int max); // NULL
    // Reads the device's and the kernel's counters into p->c.extra; NULL. Any thread, one at a time.
    void (*refresh)(dqi_port *p);
    // Rules that hold no more and others that do, told after the software classifier has them. The driver may
    // let the device do some of it; an error refuses the change. NULL: software does all.
    int (*steer)(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
                 dq_diag *diag);
    void (*drop_all)(dqi_port *p, bool drop); // what comes is dropped, by the driver, too; NULL
    int (*mac)(const dqi_port *p, uint8_t mac[6]);
    uint32_t (*mtu)(const dqi_port *p); // as in dqi_engine_ops; NULL: no limit is known
    // The kernel joins and leaves groups for the port. NULL: we report them ourselves, and the device is to
    // receive these n groups (set_rx_macs; NULL: it receives all), instead of those of the last call; told
    // again after the start.
    int (*multicast)(dqi_port *p, const char *group, const char *source, bool join, dq_diag *diag);
    int (*set_rx_macs)(dqi_port *p, const uint8_t (*macs)[6], uint32_t n, dq_diag *diag);
};

// dqi_engine_ops of an engine whose driver is chosen at open.
int dqi_eth_open(dq_iface *i, const dqi_port_driver *d, dq_diag *diag);
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
int64_t dqi_eth_flush_inbox(dq_queue *q); // the same, but that nothing is read from the device queues
int dqi_eth_lines(dq_iface *i, dq_line *l, int max);
void dqi_eth_refresh(dq_iface *i);
extern const dqi_flow_ops dqi_eth_flows;
extern const dqi_link_ops dqi_eth_link, dqi_eth_groups; // groups: multicast alone, of payloads
// What all engines over a port have in common; each adds its name, open, rx and flush.
#define DQI_PORT_OPS                                                                                         \
    .start = dqi_eth_start, .stop = dqi_eth_stop, .close = dqi_eth_close, .tx = dqi_eth_tx,                  \
    .held = dqi_eth_held, .lines = dqi_eth_lines
// And those of frames.
#define DQI_FRAME_OPS DQI_PORT_OPS, .flows = &dqi_eth_flows, .link = &dqi_eth_link
// And those of devices.
#define DQI_DEVICE_OPS                                                                                       \
    DQI_FRAME_OPS, .reap = dqi_eth_reap, .drop_rest = dqi_eth_drop_rest, .arm = dqi_eth_arm,                 \
                   .flush = dqi_eth_flush, .refresh = dqi_eth_refresh
// The port of an interface that dqi_eth_open has opened.
static inline dqi_port *dqi_port_of(const dq_iface *i) { return i->engine; }

// Counts n packets dropped on the port. Any thread.
static inline void dqi_port_drop(dqi_port *p, dq_reason why, uint64_t n) {
    if (n > 0) dqi_add_shared(&p->c.dropped[why], n);
}

#endif
