// xsk_rx.c: receive through AF_XDP: the kernel fills posted buffers and returns them in the receive ring.
//
// A frame longer than a chunk occupies several. The buffers of such frames, and of all frames that
// ethernet_rx.c copies, return to the kernel at the release; a frame in one buffer of the queue's own region
// is passed on in place, and the pool supplies the kernel with another buffer.
#include "core/region.h"
#include "engine/xdp/xsk.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>

#define LOOK_AGAIN_NS 100000 // when the pool has no free buffers

static void post(xsk_port *p, xsk_socket *x, const uint32_t *ids, uint32_t n) {
    const dq_region *r = x->region;
    for (uint32_t k = 0; k < n; k++) {
        p->with_kernel[ids[k]] = 1;
        *xsk_addr(&x->fill, x->fill.head + k) = r->offset + (uint64_t)(ids[k] - r->first_id) * r->stride;
    }
    xsk_produced(&x->fill, n);
    x->posted += n;
}

// Wakes a zero-copy driver that has found the fill ring empty.
static void kick(xsk_socket *x) {
    if (xsk_wants_kick(&x->fill) && xsk_unread(&x->fill) > 0)
        recvfrom(x->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL);
}

// Posts buffers in batches, because smaller refills are not worth taking the pool's lock.
void xsk_fill(dqi_port_queue *l) {
    enum { BATCH = 64 };
    xsk_port *p = l->port->state;
    xsk_socket *x = l->state;
    uint32_t ids[BATCH], batch = x->most_posted < 4 * BATCH ? x->most_posted / 4 + 1 : BATCH;
    while (x->posted + batch <= x->most_posted) {
        uint32_t n = dqi_bufs_some(x->region, ids, batch);
        if (n == 0) break;
        post(p, x, ids, n);
    }
    kick(x);
    // The pool does not notify when buffers become free, so poll again.
    if (l->reader && x->posted < x->most_posted / 2 && l->reader->next_ns != 0) {
        int64_t then = dq_now(l->reader->session) + LOOK_AGAIN_NS;
        if (then < l->reader->next_ns) l->reader->next_ns = then;
    }
}

// Returns how many of n descriptors from the ring's head on belong to complete frames.
static uint32_t whole(const xsk_ring *r, uint32_t n) {
    while (n > 0 && xsk_desc(r, r->head + n - 1)->options & XDP_PKT_CONTD)
        n--;
    return n;
}

// Takes n descriptors from the ring's head on. A frame in one buffer of a queue's own region is passed on in
// place unless the kernel has few buffers left, so that a slow consumer of that queue does not block frames
// of other queues.
static void take(dqi_port_queue *l, dqi_piece *out, uint32_t n) {
    xsk_port *p = l->port->state;
    xsk_socket *x = l->state;
    const dq_region *r = x->region;
    uint32_t spare = l->region && x->posted > x->reserve ? x->posted - x->reserve : 0;
    bool part = false;
    for (uint32_t k = 0; k < n; k++) {
        const struct xdp_desc *d = xsk_desc(&x->rx, x->rx.head + k);
        const uint32_t id = r->first_id + (uint32_t)((d->addr - r->offset) / r->stride);
        const bool more = d->options & XDP_PKT_CONTD;
        const bool away = spare > 0 && !more && !part;
        p->with_kernel[id] = !away;
        if (away)
            spare--;
        else
            x->loaned[x->n_loaned++] = id;
        out[k] = (dqi_piece){.data = l->port->iface->session->core.base + d->addr,
                             .len = d->len,
                             .buf = away ? id : DQI_NO_BUF,
                             .more = more};
        part = more;
    }
    x->posted -= n;
    xsk_consumed(&x->rx, n);
}

static void finish_checksums(dqi_piece *p, uint32_t n) {
    for (uint32_t k = 0, end; k < n; k = end) {
        for (end = k + 1; p[end - 1].more;)
            end++;
        xsk_finish_checksum(p + k, end - k);
    }
}

// Returns the number of descriptors received before the stop.
static uint32_t ready(const dqi_port_queue *l) {
    xsk_socket *x = l->state;
    uint32_t n = xsk_ready(&x->rx);
    if (dqi_receives(l->port->iface->session)) return n;
    uint32_t left = x->end - x->rx.head;
    return n < left ? n : left;
}

uint32_t xsk_read(dqi_port_queue *l, dqi_piece *out, uint32_t max) {
    const xsk_port *p = l->port->state;
    xsk_socket *x = l->state;
    uint32_t n = ready(l);
    n = whole(&x->rx, n < max ? n : max);
    if (n == 0) {
        xsk_fill(l);
        return 0;
    }
    take(l, out, n);
    if (p->unfinished) finish_checksums(out, n);
    return n;
}

void xsk_release(dqi_port_queue *l) {
    xsk_socket *x = l->state;
    post(l->port->state, x, x->loaned, x->n_loaned);
    x->n_loaned = 0;
    xsk_fill(l);
}

// Also reports once that the device went down.
int xsk_arm_rx(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max) {
    const xsk_port *p = l->port->state;
    int err = 0;
    socklen_t len = sizeof err;
    if (max < 2) return 0;
    if (getsockopt(p->watch, SOL_SOCKET, SO_ERROR, &err, &len) == 0 && err != 0)
        dqi_queue_error_add(q->errors, err, 1);
    fds[0] = (struct pollfd){.fd = ((const xsk_socket *)l->state)->fd, .events = POLLIN};
    fds[1] = (struct pollfd){.fd = p->watch}; // for its error
    return l->index == 0 ? 2 : 1;
}
