// xsk_socket.c: AF_XDP sockets: UMEM, rings, bind (Documentation/networking/af_xdp.rst).
#include "core/err.h"
#include "engine/xdp/xsk.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

// Registers the whole arena, as packets may be sent from any region.
static int register_umem(const xsk_port *p, const dq_session *s, int fd) {
    struct xdp_umem_reg reg;
    memset(&reg, 0, sizeof reg);
    reg.addr = (uint64_t)(uintptr_t)s->core.base;
    reg.len = s->core.arena_bytes;
    reg.chunk_size = p->plan.chunk;
    return setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof reg) == 0 ? 0 : errno;
}

static int map_ring(xsk_ring *r, int fd, int64_t page, const struct xdp_ring_offset *o, size_t entry) {
    r->bytes = o->desc + XSK_RING * entry;
    void *map = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, page);
    if (map == MAP_FAILED) return errno;
    r->map = map;
    r->producer = (uint32_t *)((uint8_t *)map + o->producer);
    r->consumer = (uint32_t *)((uint8_t *)map + o->consumer);
    r->flags = (uint32_t *)((uint8_t *)map + o->flags);
    r->entries = (uint8_t *)map + o->desc;
    return 0;
}

static int make_rings(xsk_socket *x) {
    static const int options[] = {XDP_UMEM_FILL_RING, XDP_UMEM_COMPLETION_RING, XDP_RX_RING, XDP_TX_RING};
    uint32_t entries = XSK_RING;
    for (size_t k = 0; k < sizeof options / sizeof *options; k++)
        if (setsockopt(x->fd, SOL_XDP, options[k], &entries, sizeof entries) != 0) return errno;
    // Allows a whole ring per system call; older kernels ignore the option and send 32 packets per call.
    setsockopt(x->fd, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, &entries, sizeof entries);
    struct xdp_mmap_offsets o;
    socklen_t len = sizeof o;
    if (getsockopt(x->fd, SOL_XDP, XDP_MMAP_OFFSETS, &o, &len) != 0) return errno;
    int err = map_ring(&x->rx, x->fd, XDP_PGOFF_RX_RING, &o.rx, sizeof(struct xdp_desc));
    if (err == 0) err = map_ring(&x->tx, x->fd, XDP_PGOFF_TX_RING, &o.tx, sizeof(struct xdp_desc));
    if (err == 0) err = map_ring(&x->fill, x->fd, XDP_UMEM_PGOFF_FILL_RING, &o.fr, sizeof(uint64_t));
    if (err == 0)
        err = map_ring(&x->completion, x->fd, XDP_UMEM_PGOFF_COMPLETION_RING, &o.cr, sizeof(uint64_t));
    return err;
}

static int bind_as(const xsk_port *p, int fd, uint32_t queue, uint16_t flags, int shared) {
    struct sockaddr_xdp a = {.sxdp_family = AF_XDP,
                             .sxdp_flags = flags,
                             .sxdp_ifindex = (uint32_t)p->index,
                             .sxdp_queue_id = queue,
                             .sxdp_shared_umem_fd = shared};
    return bind(fd, (struct sockaddr *)&a, sizeof a) == 0 ? 0 : errno;
}

// Binds a socket. The first one probes the supported modes; the others share its UMEM and mode. Copy mode
// with fragments is preferred to zero-copy without if frames may exceed a buffer.
static int bind_socket(xsk_port *p, uint32_t queue) {
    if (queue > 0)
        return bind_as(p, p->sockets[queue].fd, queue, XDP_SHARED_UMEM, (uint32_t)p->sockets[0].fd);
    static const uint16_t ways[] = {XDP_ZEROCOPY | XDP_USE_SG, XDP_ZEROCOPY, XDP_COPY | XDP_USE_SG, XDP_COPY};
    const bool parts = p->mtu + XSK_TAGGED > p->plan.chunk - XSK_HEADROOM;
    int err = 0;
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        if (parts && ways[k] == XDP_ZEROCOPY) continue;
        err = bind_as(p, p->sockets[0].fd, 0, ways[k] | XDP_USE_NEED_WAKEUP, 0);
        p->zero_copy = ways[k] & XDP_ZEROCOPY;
        p->frags = ways[k] & XDP_USE_SG;
        if (err == 0 || err == EBUSY) break;
    }
    return err;
}

static int fail(const xsk_port *p, const dq_iface *i, int err, const char *what, dq_diag *diag) {
    const char *name = i->conf.name;
    switch (err) {
    case EBUSY:
        return dqi_fail(diag, DQ_ESYS - err,
                        "interface %s: %s has an AF_XDP socket already: another session or program uses it",
                        name, p->device);
    case ENOBUFS:
    case ENOMEM:
        return dqi_fail(
            diag, DQ_ESYS - err,
            "interface %s: AF_XDP on %s: %llu MiB of packet memory can't be locked; hint: lower num_bufs, "
            "or raise ulimit -l",
            name, p->device, (unsigned long long)(i->session->core.arena_bytes >> 20));
    default:
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "%s: %s", what, strerror(err));
    }
}

static int open_one(xsk_port *p, const dq_iface *i, uint32_t k, dq_diag *diag) {
    xsk_socket *x = &p->sockets[k];
    x->fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);
    if (x->fd < 0) return fail(p, i, errno, "AF_XDP", diag);
    int err = k == 0 ? register_umem(p, i->session, x->fd) : 0;
    if (err != 0) return fail(p, i, err, "AF_XDP memory", diag);
    err = make_rings(x);
    if (err != 0) return fail(p, i, err, "AF_XDP rings", diag);
    err = bind_socket(p, k);
    return err == 0 ? DQ_OK : fail(p, i, err, "AF_XDP", diag);
}

int xsk_sockets_open(xsk_port *p, const dq_iface *i, dq_diag *diag) {
    p->sockets = calloc(p->n, sizeof *p->sockets);
    if (!p->sockets) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    int err = DQ_OK;
    for (uint32_t k = 0; k < p->n; k++)
        p->sockets[k].fd = -1;
    for (uint32_t k = 0; err == DQ_OK && k < p->n; k++)
        err = open_one(p, i, k, diag);
    return err;
}

void xsk_sockets_close(xsk_port *p) {
    for (uint32_t k = p->sockets ? p->n : 0; k-- > 0;) { // in reverse order: the first socket owns the UMEM
        xsk_socket *x = &p->sockets[k];
        xsk_ring *rings[] = {&x->rx, &x->fill, &x->tx, &x->completion};
        for (size_t r = 0; r < sizeof rings / sizeof *rings; r++)
            if (rings[r]->map) munmap(rings[r]->map, rings[r]->bytes);
        if (x->fd >= 0) close(x->fd);
    }
    free(p->sockets);
    p->sockets = NULL;
}
