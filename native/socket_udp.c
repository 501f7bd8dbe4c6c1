// socket_udp.c: datagrams, whole batches a system call, straight into and out of packet buffers.
//
// A receive queue keeps a stock of free buffers that recvmmsg fills: message k goes into buffer stock[k], its
// sender's address into that buffer's headroom. When the region has no buffer left, datagrams stay with the
// kernel, which counts what it has to drop.
#include "socket_state.h"
#include "region.h"

#include <errno.h>
#include <string.h>

#define SOFT_MAX 16 // errors of earlier datagrams (port unreachable) taken off a socket in one read

// Points message k at buffer stock[k].
static void point(dqi_sock_rx *r, uint32_t k) {
    uint8_t *packet = r->queue->session->base + dqi_buf_off(r->region, r->stock[k]);
    struct msghdr *m = &r->msgs[k].msg_hdr;
    r->iov[k] = (struct iovec){.iov_base = packet, .iov_len = r->limit};
    m->msg_name = packet - DQ_HEADROOM;
    m->msg_namelen = sizeof(dqi_sockaddr);
    m->msg_iov = &r->iov[k];
    m->msg_iovlen = 1;
    m->msg_control = r->ctl + (size_t)k * DQI_SOCK_CTL;
    m->msg_controllen = DQI_SOCK_CTL;
}

uint32_t dqi_stock_fill(dqi_sock_rx *r, uint32_t n) {
    uint32_t had = r->n_stock;
    if (n > r->cap_stock) n = r->cap_stock;
    if (had >= n) return had;
    r->n_stock += dqi_bufs_some(r->region, r->stock + had, r->cap_stock - had);
    for (uint32_t k = had; r->msgs && k < r->n_stock; k++)
        point(r, k);
    return r->n_stock;
}

// Closes the gaps that n read messages left in the stock: each takes the last buffer.
static void close_gaps(dqi_sock_rx *r, uint32_t n) {
    for (uint32_t k = n; k-- > 0;) {
        if (r->stock[k] == DQI_NO_BUF) {
            if (k != --r->n_stock) r->stock[k] = r->stock[r->n_stock];
        }
        if (k < r->n_stock) point(r, k);
    }
}

// When the kernel got the message; *now, read at most once, where it doesn't say.
static int64_t arrival(struct msghdr *m, int64_t *now) {
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPNS) continue;
        struct timespec t;
        memcpy(&t, CMSG_DATA(c), sizeof t);
        return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
    }
    if (*now == 0) *now = dqi_sock_realtime_ns();
    return *now;
}

// The sender's address, as packets carry it.
static void settle_peer(const struct msghdr *m) {
    dqi_sockaddr *peer = m->msg_name;
    if (m->msg_namelen == 0) peer->sa.sa_family = AF_UNSPEC;
    dqi_addr_unmap(peer);
}

// A server's unaddressed packets go to whom the last packet of b is from.
static void remember_peer(dqi_sock_rx *r, const dq_burst *b) {
    const dqi_sockaddr *peer =
        (const dqi_sockaddr *)(const void *)(r->queue->session->base + b->off[0][b->n - 1] - DQ_HEADROOM);
    if (!r->sock->iface->conf.socket.server || peer->sa.sa_family == AF_UNSPEC) return;
    dqi_lock(&r->sock->peer_lock);
    r->sock->last_peer = *peer;
    dqi_unlock(&r->sock->peer_lock);
}

// Appends the n messages that were read to b; packets added.
static uint32_t take(dqi_sock_rx *r, dq_burst *b, uint32_t n) {
    uint32_t at = b->n;
    uint64_t all = 0, cut = 0;
    int64_t now = 0;
    for (uint32_t k = 0; k < n; k++) {
        struct msghdr *m = &r->msgs[k].msg_hdr;
        uint32_t len = r->msgs[k].msg_len;
        all += len;
        if (m->msg_flags & MSG_TRUNC) {
            cut++;
            continue;
        }
        settle_peer(m);
        b->off[0][at] = dqi_buf_off(r->region, r->stock[k]);
        b->len[0][at] = len;
        b->bufs[0][at] = r->stock[k];
        b->ts[at] = arrival(m, &now);
        b->flow[at] = 0;
        b->tx_time[at] = 0;
        b->bytes += len;
        at++;
        r->stock[k] = DQI_NO_BUF;
    }
    close_gaps(r, n);
    dqi_counters *c = &r->queue->c;
    dqi_add(&c->in, n);
    dqi_add(&c->in_bytes, all);
    if (cut) dqi_drop(c, DQ_DROP_TOO_LONG, cut);
    uint32_t added = at - b->n;
    b->n = b->n_bufs = at;
    if (added > 0) remember_peer(r, b);
    return added;
}

// What an earlier datagram met on its way; says nothing about this socket.
static bool is_soft(int err) {
    return err == ECONNREFUSED || err == EHOSTUNREACH || err == ENETUNREACH || err == EHOSTDOWN ||
           err == ENETDOWN || err == EPROTO || err == ENOPROTOOPT || err == EMSGSIZE || err == EINTR;
}

int dqi_udp_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room) {
    uint32_t total = 0;
    int soft = 0;
    while (total < room) {
        uint32_t want = room - total, have = dqi_stock_fill(r, want);
        if (want > have) want = have;
        if (want == 0) {
            r->starved = true;
            break;
        }
        int n = recvmmsg(c->fd, r->msgs, want, MSG_DONTWAIT, NULL);
        dqi_add(&r->queue->c.extra[DQ_EXTRA_SYSCALLS], 1);
        if (n < 0 && is_soft(errno) && soft++ < SOFT_MAX) continue;
        if (n <= 0) break;
        total += take(r, b, (uint32_t)n);
        if ((uint32_t)n < want) break;
    }
    return (int)total;
}

// Message k without room for a datagram's bytes, only for its time.
static void blank(dqi_sock_rx *r, uint32_t k) {
    r->iov[k] = (struct iovec){.iov_base = &r->bin, .iov_len = 1};
    r->msgs[k].msg_hdr = (struct msghdr){.msg_iov = &r->iov[k],
                                         .msg_iovlen = 1,
                                         .msg_control = r->ctl + (size_t)k * DQI_SOCK_CTL,
                                         .msg_controllen = DQI_SOCK_CTL};
}

uint64_t dqi_udp_discard(dqi_sock_rx *r, dqi_sconn *c, int64_t until_ns) {
    uint64_t total = 0, bytes = 0;
    int soft = 0;
    for (int64_t now = 0, last = 0; last < until_ns;) {
        for (uint32_t k = 0; k < DQI_SOCK_BATCH; k++)
            blank(r, k);
        int n = recvmmsg(c->fd, r->msgs, DQI_SOCK_BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
        dqi_add(&r->queue->c.extra[DQ_EXTRA_SYSCALLS], 1);
        if (n < 0 && is_soft(errno) && soft++ < SOFT_MAX) continue;
        if (n <= 0) break;
        for (int k = 0; k < n; k++)
            bytes += r->msgs[k].msg_len; // the datagram's own length, because of MSG_TRUNC
        total += (uint64_t)n;
        last = arrival(&r->msgs[n - 1].msg_hdr, &now);
    }
    for (uint32_t k = 0; k < r->n_stock; k++)
        point(r, k);
    dqi_add(&r->queue->c.in, total);
    dqi_add(&r->queue->c.in_bytes, bytes);
    return total;
}

// ---- sending ----------------------------------------------------------------------------------------------

typedef struct udp_out {
    dq_queue *q;
    dqi_sock_tx *t;
    dqi_sconn *c;
    const dq_burst *b;
    int family;
    bool named;   // each packet needs an address
    bool answers; // and has its own: the burst was received here
    dqi_sockaddr peer;
} udp_out;

static int family_of(const dqi_sconn *c) { return c->local.sa.sa_family; }

// Whom unaddressed packets of a server go to: the remote address, else who was heard last.
static dqi_sockaddr default_peer(dqi_sock *s, int family) {
    dqi_sockaddr peer, fit = {0};
    dqi_lock(&s->peer_lock);
    peer = s->n_remote > 0 ? s->remote[0] : s->last_peer;
    dqi_unlock(&s->peer_lock);
    if (peer.sa.sa_family == AF_UNSPEC || !dqi_addr_fit(&peer, family, &fit)) fit.sa.sa_family = AF_UNSPEC;
    return fit;
}

// The address for packet i into *to. False: nobody.
static bool address(const udp_out *o, uint32_t i, dqi_sockaddr *to) {
    const struct sockaddr_in6 *slot = o->answers ? dqi_burst_peer_addr(o->b, i) : NULL;
    if (slot && (slot->sin6_family == AF_INET || slot->sin6_family == AF_INET6))
        return dqi_addr_fit((const dqi_sockaddr *)(const void *)slot, o->family, to);
    *to = o->peer;
    return to->sa.sa_family != AF_UNSPEC;
}

// Prepares message k from packet i. DQ_REASONS: done; else why the packet can't be sent.
static dq_reason prepare(const udp_out *o, uint32_t k, uint32_t i) {
    const dq_burst *b = o->b;
    struct msghdr *m = &o->t->msgs[k].msg_hdr;
    struct iovec *iov = o->t->iov + (size_t)k * DQ_MAX_SEGS;
    uint64_t len = 0;
    uint32_t max = o->t->sock->iface->conf.socket.max_payload;
    *m = (struct msghdr){.msg_iov = iov};
    for (uint32_t s = 0; s < b->nseg; s++) {
        if (b->len[s][i] == 0) continue;
        len += b->len[s][i];
        iov[m->msg_iovlen++] =
            (struct iovec){.iov_base = b->session->base + b->off[s][i], .iov_len = b->len[s][i]};
    }
    if (max && len > max) return DQ_DROP_TOO_LONG;
    if (!o->named) return DQ_REASONS;
    if (!address(o, i, &o->t->names[k])) return DQ_DROP_NO_PEER;
    m->msg_name = &o->t->names[k];
    m->msg_namelen = dqi_addr_len(&o->t->names[k]);
    return DQ_REASONS;
}

// Prepares packets first .. first + n, as many as one call takes and as far as they can be sent; *why: the
// next can't.
static uint32_t prepare_some(const udp_out *o, uint32_t first, uint32_t n, dq_reason *why) {
    uint32_t k = 0;
    *why = DQ_REASONS;
    for (; k < n && k < DQI_SOCK_BATCH; k++) {
        *why = prepare(o, k, first + k);
        if (*why != DQ_REASONS) break;
    }
    return k;
}

// One system call for k messages: packets gone; 0: try them again, for the same reason at most once; -1: not
// now. *failed counts failures of the first.
static int send_some(const udp_out *o, uint32_t k, uint32_t *failed) {
    dqi_counters *c = &o->q->c;
    int n = sendmmsg(o->c->fd, o->t->msgs, k, MSG_NOSIGNAL | MSG_DONTWAIT);
    int err = errno;
    dqi_add(&c->extra[DQ_EXTRA_SYSCALLS], 1);
    if (n > 0) {
        uint64_t bytes = 0;
        for (int i = 0; i < n; i++)
            bytes += o->t->msgs[i].msg_len;
        dqi_add(&c->out, (uint64_t)n);
        dqi_add(&c->out_bytes, bytes);
        *failed = 0;
        return n;
    }
    if (n == 0 || err == EAGAIN || err == EWOULDBLOCK) {
        o->t->blocked_fd = o->c->fd;
        return -1;
    }
    if (err == ENOBUFS || err == ENOMEM) { // no readiness tells when there is memory again
        o->q->next_ns = dq_now(o->q->session) + 100000;
        return -1;
    }
    if (is_soft(err) && err != EMSGSIZE && (*failed)++ == 0) return 0;
    *failed = 0;
    dqi_drop(c, DQ_DROP_SEND_ERROR, 1);
    return 1;
}

static uint32_t send_all(const udp_out *o, uint32_t first, uint32_t n) {
    uint32_t done = 0, failed = 0;
    while (done < n) {
        dq_reason why;
        uint32_t k = prepare_some(o, first + done, n - done, &why);
        if (k == 0) {
            dqi_drop(&o->q->c, why, 1);
            done++;
            continue;
        }
        int sent = send_some(o, k, &failed);
        if (sent < 0) break;
        done += (uint32_t)sent;
    }
    return done;
}

int dqi_udp_send(dq_queue *q, dqi_sconn *c, uint32_t id, const dq_burst *b, uint32_t first, uint32_t n) {
    dqi_sock_tx *t = q->engine;
    dqi_sock *s = t->sock;
    udp_out o = {.q = q, .t = t, .c = c, .b = b, .family = family_of(c)};
    if (id == 0) {
        const dq_queue *from = b->queue;
        bool server = s->iface->conf.socket.server;
        o.named = server || dqi_addr_is_multicast(&s->remote[0]);
        o.answers = server && from && from->iface == s->iface && from->conf.dir == DQ_RX;
        if (o.named) o.peer = default_peer(s, o.family);
        return (int)send_all(&o, first, n);
    }
    if (pthread_mutex_trylock(&c->tx_lock) != 0) {
        q->next_ns = 0;
        return 0;
    }
    uint32_t done = 0;
    if (dqi_conn_state(c) == DQI_CONN_OPEN && dqi_conn_id(c) == id)
        done = send_all(&o, first, n);
    else
        q->next_ns = 0;
    pthread_mutex_unlock(&c->tx_lock);
    return (int)done;
}
