// raw.h: what the parts of the driver for raw packets over verbs share.
//
// A device queue is a queue pair of its own, whose receive side has buffers posted; a transmit queue is
// another, whose send side is used. Threads: those of ethernet.h.
#ifndef DQI_VRAW_H
#define DQI_VRAW_H

#include "core/region.h"
#include "core/session.h"
#include "engine/ethernet/ethernet.h"
#include "engine/ibverbs/flow_abi.h"
#include "engine/rdma/verbs_dl.h"
#include "pipeline/queue.h"

#define VRAW_DEPTH   1024u // receives posted, at most; a power of two
#define VRAW_SENDS   256u  // sends under way; a power of two
#define VRAW_POLL    64    // completions looked at together
#define VRAW_FLOWS   256u  // rules in a device
#define VRAW_FORMS   2     // of a rule: IPv4 and IPv6
#define VRAW_PARTS   2     // regions that a frame is split over by the device
#define VRAW_HEADERS 22    // bytes of a frame beyond the MTU: addresses, type, two tags

typedef struct vraw_cq {
    vb_comp_channel *channel;
    vb_cq *cq;
    bool armed;
    uint32_t at, n; // of what was taken and not looked at yet
    vb_wc wc[VRAW_POLL];
} vraw_cq;

// A device queue. The receive with number k has slot k % VRAW_DEPTH.
typedef struct vraw_rx {
    vraw_cq cq; // first
    vb_qp *qp;
    dq_region *parts[VRAW_PARTS]; // whose buffers are posted, one behind the other
    uint32_t n_parts;             // 0: places of its own are, which are copied from
    uint32_t room;                // bytes of the parts' buffers
    uint32_t most;                // receives to be posted
    uint32_t reserve;             // of which so many aren't given away
    uint32_t head, tail;          // of what is posted: numbers
    uint32_t ids[VRAW_PARTS][VRAW_DEPTH];
    uint32_t loaned[256 * VRAW_PARTS], n_loaned; // buffers that come back at the release
    uint8_t *own;                                // behind the parts: what goes beyond them; else whole frames
    uint32_t own_bytes;                          // of each slot
    vb_mr *own_mr;
    bool broken; // its queue pair is in error
} vraw_rx;

// A packet that was posted to send.
typedef struct vraw_sent {
    dq_burst *b; // goes with it: a reference; NULL
    uint32_t bytes;
} vraw_sent;

typedef struct vraw_tx {
    vraw_cq cq; // first
    vb_qp *qp;
    uint32_t head, tail; // of what is under way
    vraw_sent sent[VRAW_SENDS];
    vb_send_wr wr[VRAW_SENDS];
    vb_sge sge[VRAW_SENDS * DQ_MAX_SEGS];
    uint32_t inline_bytes;
    dqi_gauge inside; // packets under way, for readers
    bool broken;
} vraw_tx;

// A rule, and its forms in the device.
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
    char netdev[32]; // the kernel's interface behind it; "": not known
    uint32_t mtu;    // its, 0: not known
    uint32_t frame;  // bytes of the longest frame, without FCS
    uint8_t mac[6];
    vb_mr *mrs[DQI_MAX_REGIONS];
    bool started;
    bool isolates;              // the device does: what no rule wants is the kernel's
    const vb_context_ex *calls; // flow steering; NULL: the device has none
    vb_flow *all;               // the rule for all that no other takes
    vraw_rule *rules;           // VRAW_FLOWS
    uint32_t n_rules;
    bool gave_up;       // software has the rules until there are none
    uint64_t no_buffer; // of the device at the open
    int64_t looked_ns;  // at what the device says of itself
} vraw_port;

// ---- device.c: control thread -----------------------------------------------------------------------------

int vraw_device_open(dqi_port *p, dq_diag *diag);
// Whether the device puts segment `seg` of the queue's frames, or all of them, into a GPU's memory
// (reaches_gpu of the engine).
bool vraw_reaches_gpu(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                      dq_diag *why);
// Why the device can't split the queue's frames over its regions; NULL: it can.
const char *vraw_cannot_split(const vraw_port *v, const dq_iface *i, const dq_queue *q);
void vraw_device_close(vraw_port *v);
// The local key of this arena offset; 0: it isn't registered.
uint32_t vraw_lkey(const dqi_port *p, uint64_t off);
// A completion queue of n entries with a channel, and a queue pair that is ready to send and receive.
int vraw_cq_open(const dqi_port *p, vraw_cq *q, uint32_t n);
int vraw_qp_open(const dqi_port *p, vb_qp_init_attr *a, vb_qp **out);
void vraw_cq_close(vraw_cq *q);
// The next completion, which stays the next until `at` is moved on; NULL: none.
vb_wc *vraw_next(vraw_cq *q);
// Has the channel's descriptor tell of the next completion; false: there is one already.
bool vraw_arm(vraw_cq *q);
// Reads how often the port found no buffer, a figure of the device's that has other programs' share too.
void vraw_refresh(dqi_port *p);
// What the device says of itself is counted as faults of q, now and then.
void vraw_look(dqi_port *p, dq_queue *q);

// ---- the others -------------------------------------------------------------------------------------------

int vraw_rx_open(dqi_port *p, dqi_port_queue *l, dq_diag *diag);
void vraw_rx_close(dqi_port *p, dqi_port_queue *l);
void vraw_fill(dqi_port_queue *l);
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
// Has frames come, or no more.
int vraw_steer_start(dqi_port *p, dq_diag *diag);
void vraw_steer_stop(dqi_port *p);

#endif
