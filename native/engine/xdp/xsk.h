// xsk.h: parts of the AF_XDP driver: sockets and rings (xsk_socket.c), placement of frames (xsk_regions.c),
// receive (xsk_rx.c), transmit (xsk_tx.c), driver (xsk_driver.c).
//
// The session's arena is the UMEM: the kernel fills buffers of a region and sends from any address of the
// arena. Each receive queue of the device has a socket and is a device queue of the port, assigned to one
// receive queue of the interface. If that queue's region is suitable, the kernel fills its buffers (direct);
// otherwise it fills buffers of a staging region added by the driver, from which ethernet_rx.c copies
// (xsk_regions.c).
#ifndef DQI_XSK_H
#define DQI_XSK_H

#include "engine/ethernet/ethernet.h"
#include "engine/xdp/steer.h"

#include <linux/if_xdp.h>

#ifndef XDP_USE_SG // Linux 6.6
#define XDP_USE_SG    (1 << 4)
#define XDP_PKT_CONTD (1 << 0)
#endif
#ifndef XDP_MAX_TX_SKB_BUDGET // Linux 6.17
#define XDP_MAX_TX_SKB_BUDGET 9
#endif

enum {
    XSK_RING = 2048,    // entries of each ring
    XSK_HEADROOM = 256, // bytes that the kernel reserves in front of a frame in its chunk
    XSK_TAGGED = 18,    // bytes of a frame beyond the MTU
    XSK_MAX_PARTS = 17, // the kernel's limit of descriptors per frame
};

// Single-producer single-consumer ring shared with the kernel.
typedef struct xsk_ring {
    uint32_t *producer, *consumer, *flags;
    void *entries; // struct xdp_desc in rx and tx, uint64_t addresses in fill and completion
    uint32_t head; // index of our side, published by xsk_produced or xsk_consumed
    uint32_t seen; // cached index of the other side
    void *map;
    size_t bytes;
} xsk_ring;

// Packets of one tx call that the kernel has not completed.
typedef struct xsk_sent {
    dq_queue *queue;
    dq_burst *burst; // NULL: later entries contain further packets of it
    uint32_t n;      // packets
    uint32_t end;    // value of xsk_socket.sent behind its last descriptor
    uint64_t bytes;
} xsk_sent;

typedef struct xsk_socket {
    int fd;
    // receive: protected by the device queue lock
    xsk_ring rx, fill;
    dq_region *region;                   // filled by the kernel; NULL: no reception
    uint32_t most_posted;                // limit of buffers owned by the kernel
    uint32_t reserve;                    // minimum that the kernel keeps; below it frames are copied
    uint32_t posted;                     // buffers owned by the kernel
    uint32_t end;                        // end of the receive ring at the stop; valid after it
    uint32_t loaned[XSK_RING], n_loaned; // ids of the last read that return to the kernel
    // transmit: protected by tx_busy
    dqi_spin tx_busy;
    xsk_ring tx, completion;
    uint32_t sent, completed; // counts of descriptors
    xsk_sent out[XSK_RING];   // [out_tail, out_head): not completed
    uint32_t out_head, out_tail;
} xsk_socket;

// Decided before the arena is laid out, and recomputed after it.
typedef struct xsk_plan {
    uint32_t queues, mtu;
    uint32_t chunk;                  // bytes; the same for all sockets
    const char *copy[DQ_MAX_QUEUES]; // why the kernel cannot fill the receive queue's region; NULL: it can
    bool staged;                     // some device queue needs the staging region
} xsk_plan;

typedef struct xsk_port {
    char device[16];
    int index;
    uint32_t mtu;
    xsk_plan plan;
    uint8_t *with_kernel; // by buffer id; 1: owned by the kernel; NULL: no reception
    uint32_t n_bufs;      // size of with_kernel
    bool zero_copy, frags;
    bool unfinished; // frames may arrive with incomplete checksums
    int watch;       // socket whose error reports that the device went down
    bool gone;       // the device was removed
    bool stopped;    // kernel drops are no longer counted
    uint32_t n;
    xsk_socket *sockets;
    uint64_t lost;                     // frames dropped by the kernel, as counted by the sockets
    uint64_t drop_all, drop_all_bytes; // as counted by the eBPF program
} xsk_port;

// Transmit queue.
typedef struct xsk_tx {
    xsk_socket *socket;
    dqi_gauge inside;  // packets not completed
    uint32_t idle;     // consecutive polls without a completion
    int64_t looked_ns; // time at which mtu and down were read
    uint32_t mtu;
    int down; // errno if the device cannot send (no carrier, or removed); 0: it can
} xsk_tx;

// ---- sockets ----------------------------------------------------------------------------------------------

// Opens p->n sockets on the arena, zero-copy and with fragments where supported. Errors name the interface;
// DQ_NOT_SUPPORTED: the kernel or device has no AF_XDP, with the reason in diag.
int xsk_sockets_open(xsk_port *p, const dq_iface *i, dq_diag *diag);
void xsk_sockets_close(xsk_port *p);

// ---- placement of received frames -------------------------------------------------------------------------

// Returns the number of receive queues of the device; 1 if unknown.
uint32_t xsk_count_queues(const char *device);
uint32_t xsk_mtu_of(const char *device);
// Returns true if the device supports rules that select its receive queue.
bool xsk_takes_rules(const char *device);
// Returns the state passed to dq_iface_xdp, or an empty one.
dq_xdp *xsk_given(const dq_iface *i);
// Fills x->plan from x->n and x->mtu. DQ_NOT_SUPPORTED: the arena differs from what dqi_xsk_claim planned.
int xsk_make_plan(const dq_iface *i, xsk_port *x, dq_diag *diag);
// Assigns a region to each socket and its device queue.
void xsk_settle(dqi_port *p, xsk_port *x);
// Makes each device queue that passes on its buffers keep some, as several receive queues take them.
void xsk_share(dqi_port *p);
// Sets p->direct and p->copy, and reports where frames are placed.
void xsk_report_direct(dqi_port *p, const xsk_port *x);

// ---- rings ------------------------------------------------------------------------------------------------

// Returns the number of entries ready to consume.
static inline uint32_t xsk_ready(xsk_ring *r) {
    if (r->seen == r->head) r->seen = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
    return r->seen - r->head;
}
// Returns the number of produced entries that the consumer has not taken.
static inline uint32_t xsk_unread(const xsk_ring *r) {
    return r->head - __atomic_load_n(r->consumer, __ATOMIC_ACQUIRE);
}
static inline void xsk_consumed(xsk_ring *r, uint32_t n) {
    r->head += n;
    __atomic_store_n(r->consumer, r->head, __ATOMIC_RELEASE);
}
static inline void xsk_produced(xsk_ring *r, uint32_t n) {
    r->head += n;
    __atomic_store_n(r->producer, r->head, __ATOMIC_RELEASE);
}
static inline struct xdp_desc *xsk_desc(const xsk_ring *r, uint32_t k) {
    return (struct xdp_desc *)r->entries + (k & (XSK_RING - 1));
}
static inline uint64_t *xsk_addr(const xsk_ring *r, uint32_t k) {
    return (uint64_t *)r->entries + (k & (XSK_RING - 1));
}
static inline bool xsk_wants_kick(const xsk_ring *r) {
    return __atomic_load_n(r->flags, __ATOMIC_RELAXED) & XDP_RING_NEED_WAKEUP;
}

// ---- driver operations (ethernet.h) -----------------------------------------------------------------------

// Posts buffers of the socket's region to the fill ring, up to most_posted. Requires the device queue lock.
void xsk_fill(dqi_port_queue *l);
uint32_t xsk_read(dqi_port_queue *l, dqi_piece *out, uint32_t max);
void xsk_release(dqi_port_queue *l);
// Completes the checksum of a frame of n pieces if the sender left it incomplete.
void xsk_finish_checksum(dqi_piece *p, uint32_t n);
int xsk_arm_rx(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max);
int xsk_send(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
int xsk_reap(dq_queue *q);
void xsk_drop_rest(dq_queue *q);
uint64_t xsk_held(dq_queue *q);

#endif
