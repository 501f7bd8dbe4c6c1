// raw.h: internal interfaces of the driver for raw packets over verbs.
//
// Each device queue is a queue pair whose receive side has buffers posted; each transmit queue is another
// whose send side is used. Threads: as in ethernet.h.
#ifndef DQI_VRAW_H
#define DQI_VRAW_H

#include "core/region.h"
#include "engine/ethernet/ethernet.h"
#include "engine/ibverbs/flow_abi.h"
#include "engine/rdma/verbs_dl.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#define VRAW_DEPTH   1024u // limit of posted receives; a power of two
#define VRAW_SENDS   256u  // sends in flight; a power of two
#define VRAW_POLL    64    // completions polled at once
#define VRAW_FLOWS   256u  // rules in a device
#define VRAW_FORMS   2     // forms of a rule: IPv4 and IPv6
#define VRAW_PARTS   2     // regions over which the device splits a frame
#define VRAW_HEADERS 22    // bytes of a frame beyond the MTU: addresses, type, two tags

typedef struct vraw_cq {
    vb_comp_channel *channel;
    vb_cq *cq;
    bool armed;
    uint32_t at, n; // completions polled, and the next to handle
    vb_wc wc[VRAW_POLL];
} vraw_cq;

// Device queue. Receive number k uses slot k % VRAW_DEPTH.
typedef struct vraw_rx {
    vraw_cq cq; // must be first
    vb_qp *qp;
    dq_region *parts[VRAW_PARTS]; // regions whose buffers are posted, in the order of a frame's parts
    uint32_t n_parts;             // 0: its own memory is posted and frames are copied
    uint32_t room;                // bytes of a frame that the parts' buffers hold
    uint32_t most;                // target number of posted receives
    uint32_t reserve;             // minimum that is kept by copying frames
    uint32_t head, tail;          // numbers of the posted receives: [head, tail)
    uint32_t ids[VRAW_PARTS][VRAW_DEPTH];
    uint32_t loaned[256 * VRAW_PARTS], n_loaned; // buffers to free at the release
    uint8_t *own;                                // own memory: excess beyond the parts, or whole frames
    uint32_t own_bytes;                          // of each slot
    vb_mr *own_mr;
    bool broken; // its queue pair is in the error state
} vraw_rx;

// A posted send.
typedef struct vraw_sent {
    dq_burst *b; // reference released with it; NULL
    uint32_t bytes;
} vraw_sent;

typedef struct vraw_tx {
    vraw_cq cq; // must be first
    vb_qp *qp;
    uint32_t head, tail; // sends in flight: [head, tail)
    vraw_sent sent[VRAW_SENDS];
    vb_send_wr wr[VRAW_SENDS];
    vb_sge sge[VRAW_SENDS * DQ_MAX_SEGS];
    uint32_t inline_bytes;
    dqi_gauge inside; // packets in flight, for other threads
    bool broken;
} vraw_tx;

// A rule and its forms in the device.
typedef struct vraw_rule {
    dq_rule rule;
    vb_flow *flows[VRAW_FORMS];
} vraw_rule;

typedef struct vraw_port {
    vb_context *ctx;
    vb_pd *pd;
    vb_device_attr attr;
    vb_port_attr info;
    uint8_t port_num;
    char netdev[32]; // the kernel's interface; "": unknown
    uint32_t mtu;    // MTU of netdev; 0: unknown
    uint32_t frame;  // longest frame in bytes, without FCS
    uint8_t mac[6];
    vb_mr *_Atomic mrs[DQI_MAX_REGIONS]; // of the session's regions; NULL: not registered
    bool started;
    bool isolates;              // isolation by the device: unmatched frames go to the kernel
    const vb_context_ex *calls; // flow steering; NULL: not supported
    vb_flow *all;               // the default rule, for frames that match no other
    vraw_rule *rules;           // VRAW_FLOWS entries
    uint32_t n_rules;
    bool gave_up;       // some rules are software only, until there are none
    uint64_t no_buffer; // the device's counter at the open
    int64_t looked_ns;  // last check for device events
} vraw_port;

// ---- device.c: control thread -----------------------------------------------------------------------------

int vraw_device_open(dqi_port *p, dq_diag *diag);
// Returns true if the device can store segment `seg` of the queue's frames, or whole frames, in GPU memory
// (dqi_engine_ops.reaches_gpu).
bool vraw_reaches_gpu(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                      dq_diag *why);
// Returns why the device cannot split the queue's frames over its regions; NULL: it can.
const char *vraw_cannot_split(const vraw_port *v, const dq_iface *i, const dq_queue *q);
void vraw_device_close(vraw_port *v);
// Returns the local key for this arena offset; 0: not registered.
uint32_t vraw_lkey(const dqi_port *p, uint64_t off);
extern const dqi_region_ops vraw_regions;
// Create a completion queue of n entries with a channel, and a queue pair that is ready to send and receive.
int vraw_cq_open(const dqi_port *p, vraw_cq *q, uint32_t n);
int vraw_qp_open(const dqi_port *p, vb_qp_init_attr *a, vb_qp **out);
void vraw_cq_close(vraw_cq *q);
// Returns the next completion, which the caller consumes by advancing `at`; NULL: none.
vb_wc *vraw_next(vraw_cq *q);
// Requests a notification of the next completion on the channel; returns false if one is pending already.
bool vraw_arm(vraw_cq *q);
// Reads the port's out-of-buffer counter, which includes other programs on the device.
void vraw_refresh(dqi_port *p);
// Counts the device's asynchronous events as errors of q, at intervals.
void vraw_look(dqi_port *p, dq_queue *q);

// ---- rx.c, tx.c, steer.c ----------------------------------------------------------------------------------

int vraw_rx_open(dqi_port_queue *l, dq_queue *q, dq_diag *diag);
void vraw_rx_close(dqi_port_queue *l);
void vraw_fill(dqi_port_queue *l);
// Whether the device queue posts buffers of the region.
bool vraw_posts(const dqi_port_queue *l, const dq_region *r);
// Makes each device queue that passes on its buffers keep some, as several receive queues take them.
void vraw_share(dqi_port *p);
uint32_t vraw_read(dqi_port_queue *l, dqi_piece *out, uint32_t max);
void vraw_release(dqi_port_queue *l);
int vraw_arm_rx(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max);

int vraw_tx_open(const dqi_port *p, dq_queue *q, dq_diag *diag);
void vraw_tx_close(dq_queue *q);
int vraw_send(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
int vraw_reap(dq_queue *q);
uint64_t vraw_held(dq_queue *q);
void vraw_drop_rest(dq_queue *q);

int vraw_steer(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
               dq_diag *diag);
// Enable and disable the delivery of frames.
int vraw_steer_start(dqi_port *p, dq_diag *diag);
void vraw_steer_stop(dqi_port *p);

#endif
