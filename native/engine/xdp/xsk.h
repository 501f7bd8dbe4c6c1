// xsk.h: the AF_XDP driver's parts: sockets and their rings (xsk_socket.c), whose buffers they fill
// (xsk_regions.c), receiving (xsk_rx.c), sending (xsk_tx.c), the driver (xsk_driver.c).
//
// The session's arena is the UMEM: the kernel fills buffers of a region and sends from any address of the
// arena. Each receive queue of the device has a socket, a device queue of the port, which is at home at a
// receive queue of the interface. Where that queue's region allows it the kernel fills its buffers (direct);
// else it fills those of a region that the driver adds to the session, and ethernet_rx.c copies
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
    XSK_HEADROOM = 256, // bytes that the kernel leaves in front of a frame in its chunk
    XSK_TAGGED = 18,    // bytes of a frame beyond the MTU
    XSK_MAX_PARTS = 17, // descriptors of one frame, as the kernel limits them
};

// A ring between us and the kernel: one side produces, the other consumes.
typedef struct xsk_ring {
    uint32_t *producer, *consumer, *flags;
    void *entries; // struct xdp_desc of rx and tx, uint64_t addresses of fill and completion
    uint32_t head; // our side's index, published by xsk_publish
    uint32_t seen; // of the other side
    void *map;
    size_t bytes;
} xsk_ring;

// Packets that the kernel has been given and not completed: those of one call of tx.
typedef struct xsk_sent {
    dq_queue *queue;
    dq_burst *burst; // NULL: more of it comes in a later entry
    uint32_t n;      // packets
    uint32_t end;    // descriptors sent before the next entry, counted from the start
    uint64_t bytes;
} xsk_sent;

typedef struct xsk_socket {
    int fd;
    // receive: whoever has the device queue
    xsk_ring rx, fill;
    dq_region *region;                   // whose buffers the kernel fills; NULL: nothing is received
    uint32_t most_posted;                // buffers that the kernel has at most
    uint32_t reserve;                    // and at least, as far as frames can be copied instead of given away
    uint32_t posted;                     // buffers that the kernel has
    uint32_t end;                        // of the receive ring at the stop; known after it
    uint32_t loaned[XSK_RING], n_loaned; // buffer ids of the last read that go back to the kernel
    // transmit: whoever has tx_busy
    dqi_spin tx_busy;
    xsk_ring tx, completion;
    uint32_t sent, completed; // descriptors
    xsk_sent out[XSK_RING];   // [out_tail, out_head): not completed
    uint32_t out_head, out_tail;
} xsk_socket;

// What is decided before the arena is laid out, and found again behind it.
typedef struct xsk_plan {
    uint32_t queues, mtu;
    uint32_t chunk;                  // bytes; the same for all sockets
    const char *copy[DQ_MAX_QUEUES]; // why the kernel can't fill the receive queue's region; NULL: it can
    bool staged;                     // some device queue needs the driver's own region
} xsk_plan;

typedef struct xsk_port {
    char device[16];
    int index;
    uint32_t mtu;
    xsk_plan plan;
    uint8_t *with_kernel; // 1: the kernel has the buffer with this id; NULL: nothing is received
    uint32_t n_bufs;      // ids
    bool zero_copy, frags;
    bool unfinished; // frames may come with unfinished checksums
    int watch;       // a socket that hears of the device's fate
    bool gone;       // the device is no more
    bool stopped;    // what the kernel drops counts no more
    uint32_t n;
    xsk_socket *sockets;
    uint64_t lost;                     // frames that the kernel dropped, as the sockets count
    uint64_t drop_all, drop_all_bytes; // as the program counts
} xsk_port;

// A transmit queue.
typedef struct xsk_tx {
    xsk_socket *socket;
    dqi_gauge inside;  // packets not completed
    uint32_t idle;     // looks without a completion
    int64_t looked_ns; // when the following were looked up
    uint32_t mtu;
    int down; // why it sends nothing, an errno: there is no carrier, or the device is no more; 0: it does
} xsk_tx;

// ---- sockets ----------------------------------------------------------------------------------------------

// Opens p->n sockets over the arena, zero-copy where the driver can, with fragments where the kernel can. An
// error names the interface; DQ_NOT_SUPPORTED: this kernel or device has no AF_XDP, for the reason in diag.
int xsk_sockets_open(xsk_port *p, const dq_iface *i, dq_diag *diag);
void xsk_sockets_close(xsk_port *p);

// ---- whose buffers ----------------------------------------------------------------------------------------

// The device's receive queues; 1 where it does not say.
uint32_t xsk_count_queues(const char *device);
uint32_t xsk_mtu_of(const char *device);
// Whether the device takes rules for which frames go to which of its queues.
bool xsk_takes_rules(const char *device);
// How the interface's program is attached, as dq_iface_xdp told; without that nothing is.
dq_xdp *xsk_given(const dq_iface *i);
// Fills x->plan; x->n and x->mtu are known. DQ_NOT_SUPPORTED: the arena is not what dqi_xsk_claim expected.
int xsk_make_plan(const dq_iface *i, xsk_port *x, dq_diag *diag);
// Gives each socket, and its device queue, the region that it fills.
void xsk_settle(dqi_port *p, xsk_port *x);
// Sets p->direct and p->copy; what else there is to say goes into the report.
void xsk_say_where(dqi_port *p, const xsk_port *x);

// ---- rings ------------------------------------------------------------------------------------------------

// Entries that may be consumed.
static inline uint32_t xsk_ready(xsk_ring *r) {
    if (r->seen == r->head) r->seen = __atomic_load_n(r->producer, __ATOMIC_ACQUIRE);
    return r->seen - r->head;
}
// Entries that the consumer has not taken yet.
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

// ---- the driver's calls (ethernet.h) ----------------------------------------------------------------------

// Gives the kernel buffers of the socket's region, as many as it may have. Whoever has the device queue.
void xsk_fill(dqi_port_queue *l);
uint32_t xsk_read(dqi_port_queue *l, dqi_piece *out, uint32_t max);
void xsk_release(dqi_port_queue *l);
// Finishes the checksum of a frame of n pieces, if it is unfinished.
void xsk_finish_checksum(dqi_piece *p, uint32_t n);
int xsk_arm_rx(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max);
int xsk_send(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n);
int xsk_reap(dq_queue *q);
void xsk_drop_rest(dq_queue *q);
uint64_t xsk_held(dq_queue *q);

#endif
