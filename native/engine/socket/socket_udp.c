// socket_udp.c: receives single datagrams, a batch per system call, directly into packet buffers.
//
// A receive queue keeps a stock of free buffers that recvmmsg fills: message k uses buffer stock[k] and that
// buffer's entry in the table of peers. When the region has no free buffer, datagrams stay in the kernel,
// which counts its drops.
#include "core/peers.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <time.h>

#define QUIET_LOOK 64                // consecutive reads without data until the socket is checked
#define QUIET_MAX  (2 * QUIET_LOOK)  // and until it is considered failed; above: reported
#define REST_NS    INT64_C(10000000) // interval between reads of a failed socket
#define SOFT_MAX   16 // limit of errors of earlier datagrams (port unreachable) cleared in one read

// Sets up message k to use buffer stock[k].
static void point(dqi_sock_rx *r, uint32_t k) {
    uint8_t *packet = r->queue->session->core.base + dqi_buf_off(r->region, r->stock[k]);
    struct msghdr *m = &r->msgs[k].msg_hdr;
    r->iov[k] = (struct iovec){.iov_base = packet, .iov_len = r->limit};
    m->msg_name = dqi_buf_peer(r->region, r->stock[k]);
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

// Fills the gaps that n read messages left in the stock with the last buffers.
static void close_gaps(dqi_sock_rx *r, uint32_t n) {
    for (uint32_t k = n; k-- > 0;) {
        if (r->stock[k] == DQI_NO_BUF) {
            if (k != --r->n_stock) r->stock[k] = r->stock[r->n_stock];
        }
        if (k < r->n_stock) point(r, k);
    }
}

// Stores the destination of a datagram from its control message.
static void note_target(dqi_target *to, struct cmsghdr *h) {
    if (h->cmsg_level == IPPROTO_IP && h->cmsg_type == IP_PKTINFO) {
        struct in_pktinfo info;
        memcpy(&info, CMSG_DATA(h), sizeof info);
        to->family = AF_INET;
        memcpy(to->ip, &info.ipi_addr, sizeof info.ipi_addr);
    } else if (h->cmsg_level == IPPROTO_IPV6 && h->cmsg_type == IPV6_PKTINFO) {
        struct in6_pktinfo info;
        memcpy(&info, CMSG_DATA(h), sizeof info);
        to->family = AF_INET6;
        memcpy(to->ip, &info.ipi6_addr, sizeof info.ipi6_addr);
    }
}

// Extracts the kernel timestamp (0: none) and, unless `to` is NULL, the destination. Returns the length of
// the datagrams that the message consists of, 0: a single one.
static uint32_t parse(struct msghdr *m, int64_t *stamp, dqi_target *to) {
    int size = 0;
    *stamp = 0;
    if (to) to->family = 0;
    for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h; h = CMSG_NXTHDR(m, h)) {
        if (h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_TIMESTAMPNS) {
            struct timespec t;
            memcpy(&t, CMSG_DATA(h), sizeof t);
            *stamp = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
        } else if (h->cmsg_level == IPPROTO_UDP && h->cmsg_type == UDP_GRO) {
            memcpy(&size, CMSG_DATA(h), sizeof size);
        } else if (to) {
            note_target(to, h);
        }
    }
    return size > 0 ? (uint32_t)size : 0;
}

uint32_t dqi_udp_parse(struct msghdr *m, dqi_sconn *c, int64_t *ts, dqi_target *to) {
    int64_t stamp;
    uint32_t size = parse(m, &stamp, to);
    *ts = stamp ? dqi_stamps_time(&c->stamps, stamp) : c->stamps.now;
    return size;
}

void dqi_udp_settle_peer(const struct msghdr *m) {
    dqi_sockaddr *peer = m->msg_name;
    if (m->msg_namelen == 0) peer->sa.sa_family = AF_UNSPEC;
    dqi_addr_unmap(peer);
}

void dqi_udp_remember_peer(dqi_sock_rx *r, const dq_burst *b) {
    if (!r->sock->iface->conf.socket.server) return;
    const dqi_sockaddr *peer = dqi_burst_peer_addr(b, b->n - 1);
    if (peer->sa.sa_family == AF_UNSPEC) return;
    dqi_lock(&r->sock->peer_lock);
    r->sock->last_peer = *peer;
    dqi_unlock(&r->sock->peer_lock);
}

// Appends the n messages read from c to b; returns the packets added.
static uint32_t take(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t n) {
    uint32_t at = b->n;
    uint64_t all = 0, cut = 0;
    uint32_t came = n;
    dqi_stamps_look(&c->stamps, r->queue->session);
    dqi_udp_sift(r, c, n);
    for (uint32_t k = 0; k < n; k++) {
        struct msghdr *m = &r->msgs[k].msg_hdr;
        uint32_t len = r->msgs[k].msg_len;
        if (len == DQI_UDP_LATE) {
            came--;
            continue;
        }
        all += len;
        if (m->msg_flags & MSG_TRUNC) {
            cut++;
            continue;
        }
        dqi_udp_settle_peer(m);
        b->off[0][at] = dqi_buf_off(r->region, r->stock[k]);
        b->len[0][at] = len;
        b->bufs[0][at] = r->stock[k];
        dqi_udp_parse(m, c, &b->ts[at], dqi_buf_target(r->region, r->stock[k]));
        b->flow[at] = 0;
        b->bytes += len;
        at++;
        r->stock[k] = DQI_NO_BUF;
    }
    close_gaps(r, n);
    dqi_counters *count = &r->queue->c;
    dqi_add(&count->in, came);
    dqi_add(&count->in_bytes, all);
    if (cut) dqi_drop(count, DQ_DROP_TOO_LONG, cut);
    uint32_t added = at - b->n;
    b->n = b->n_bufs = at;
    if (added > 0) dqi_udp_remember_peer(r, b);
    return added;
}

bool dqi_udp_soft(int err) {
    return err == ECONNREFUSED || err == EHOSTUNREACH || err == ENETUNREACH || err == EHOSTDOWN ||
           err == ENETDOWN || err == EPROTO || err == ENOPROTOOPT || err == EMSGSIZE || err == EINTR;
}

// ---- failed sockets ---------------------------------------------------------------------------------------
//
// A socket that was shut down is always readable while reads return no data, so its poller would never sleep.
// After many reads without data the socket state is checked, twice, because an error that has just arrived is
// not permanent.

// Clears the socket's error queue, which a user may have enabled; returns false if it was empty.
static bool take_errors(int fd) {
    int k = 0;
    while (k < SOFT_MAX && recv(fd, NULL, 0, MSG_ERRQUEUE | MSG_DONTWAIT) >= 0)
        k++;
    return k > 0;
}

// Returns why a socket without data is ready, an errno; 0: it is not ready.
static int ailment(int fd) {
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    if (poll(&p, 1, 0) <= 0) return 0;
    if (p.revents & POLLNVAL) return EBADF;
    if (p.revents & (POLLHUP | POLLRDHUP)) return ESHUTDOWN;
    return take_errors(fd) ? 0 : EIO;
}

// Handles a read of c that returned no data because of err.
static void brought_none(dqi_sock_rx *r, dqi_sconn *c, int err) {
    if (dqi_udp_soft(err)) {
        c->quiet = 0;
        return;
    }
    if (err == EAGAIN || err == EWOULDBLOCK) {
        if (c->quiet < QUIET_MAX && ++c->quiet % QUIET_LOOK != 0) return;
        err = ailment(c->fd);
        dqi_add(&r->queue->c.extra[DQ_EXTRA_SYSCALLS], 1);
        if (err == 0) c->quiet = 0;
        if (c->quiet < QUIET_MAX) return;
    }
    if (c->quiet <= QUIET_MAX) dqi_queue_error_add(r->queue->errors, err, 1);
    c->quiet = QUIET_MAX + 1;
    r->rest_ns = dq_now(r->queue->session) + REST_NS;
}

// ---- the stop ---------------------------------------------------------------------------------------------
//
// Kernel timestamps separate earlier from later datagrams. The kernel starts timestamping a while after the
// first socket enables it; earlier datagrams get the time of their read, which is meaningless here. The first
// datagram of a read was queued before it, so its timestamp is older or missing; datagrams are queued in
// order, so all after a timestamped one have timestamps. Datagrams received at once on two cores may be out
// of order, and a timestamped one may still be on its way: reading therefore continues for DQI_ON_WAY_NS.

#define UNSTAMPED_NS INT64_C(100000000) // how long timestamps may be missing

static int64_t wall_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

bool dqi_udp_wait_over(dqi_sock_rx *r, const dqi_sconn *c) {
    struct pollfd p = {.fd = c->fd, .events = POLLIN};
    int64_t now = dq_now(r->queue->session); // must precede the poll
    if (r->over) return false;
    if (poll(&p, 1, 0) > 0 && p.revents & POLLIN) {
        r->looked_ns = wall_ns();
        return true;
    }
    r->over = now >= dqi_stop_time(r->queue->session) + DQI_ON_WAY_NS;
    return false;
}

// Returns true if a datagram with this kernel timestamp (0: none) and session time ts was received after the
// stop. *stamped: it, or one before it, was timestamped on arrival.
static bool is_late(const dqi_sock_rx *r, int64_t stamp, int64_t ts, bool *stamped) {
    const dq_session *s = r->queue->session;
    int64_t stop = dqi_stop_time(s);
    // Of datagrams read during the stop, only those of a young session may lack timestamps.
    if (r->looked_ns == 0) return ts >= stop && stop - s->core.start_ns > UNSTAMPED_NS;
    *stamped |= (stamp != 0 && stamp < r->looked_ns) || dq_now(s) - stop > UNSTAMPED_NS;
    return ts >= stop && *stamped;
}

void dqi_udp_mark_late(dqi_sock_rx *r, dqi_sconn *c, uint32_t n) {
    const dqi_stamps before = c->stamps;
    const int64_t stop = dqi_stop_time(r->queue->session), end = stop + DQI_ON_WAY_NS;
    bool stamped = false;
    r->late = false;
    for (uint32_t k = 0; k < n; k++) {
        int64_t stamp, last = c->stamps.last;
        parse(&r->msgs[k].msg_hdr, &stamp, NULL);
        int64_t ts = stamp ? dqi_stamps_time(&c->stamps, stamp) : c->stamps.now;
        if (!is_late(r, stamp, ts, &stamped)) continue;
        c->stamps.last = last; // an earlier one may follow
        r->msgs[k].msg_len = DQI_UDP_LATE;
        r->late = true;
        r->over |= ts >= end;
    }
    c->stamps = before;                             // they are parsed again
    if (c->stamps.now > stop) c->stamps.now = stop; // receive time of the remaining ones
}

// ---- receive ----------------------------------------------------------------------------------------------

int dqi_udp_receive(dqi_sock_rx *r, dqi_sconn *c, uint32_t want, int *soft) {
    if (!dqi_udp_goes_on(r, c)) return -1;
    int n = recvmmsg(c->fd, r->msgs, want, MSG_DONTWAIT, NULL);
    dqi_add(&r->queue->c.extra[DQ_EXTRA_SYSCALLS], 1);
    if (n < 0 && dqi_udp_soft(errno) && (*soft)++ < SOFT_MAX) return 0;
    if (n <= 0) {
        brought_none(r, c, n < 0 ? errno : ESHUTDOWN);
        return -1;
    }
    c->quiet = 0;
    return n;
}

int dqi_udp_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room) {
    uint32_t total = 0;
    int soft = 0;
    if (r->gro) return dqi_gro_read(r, c, b, room);
    while (total < room) {
        uint32_t want = room - total, have = dqi_stock_fill(r, want);
        if (want > have) want = have;
        if (want == 0) {
            r->starved = true;
            break;
        }
        int n = dqi_udp_receive(r, c, want, &soft);
        if (n == 0) continue;
        if (n < 0) break;
        total += take(r, c, b, (uint32_t)n);
        if ((uint32_t)n < want || r->late) break;
    }
    return (int)total;
}

// Sets up message k without room for data, only for its time.
static void blank(dqi_sock_rx *r, uint32_t k) {
    r->iov[k] = (struct iovec){.iov_base = &r->bin, .iov_len = 1};
    r->msgs[k].msg_hdr = (struct msghdr){.msg_iov = &r->iov[k],
                                         .msg_iovlen = 1,
                                         .msg_control = r->ctl + (size_t)k * DQI_SOCK_CTL,
                                         .msg_controllen = DQI_SOCK_CTL};
}

uint64_t dqi_udp_discard(dqi_sock_rx *r, dqi_sconn *c, int64_t until_ns) {
    uint64_t total = r->gro ? dqi_gro_discard(r) : 0, bytes = 0, before = total;
    int soft = 0;
    r->over = false;
    for (int64_t last = 0; last < until_ns && dqi_udp_goes_on(r, c);) {
        for (uint32_t k = 0; k < DQI_SOCK_BATCH; k++)
            blank(r, k);
        int n = recvmmsg(c->fd, r->msgs, DQI_SOCK_BATCH, MSG_DONTWAIT | MSG_TRUNC, NULL);
        dqi_add(&r->queue->c.extra[DQ_EXTRA_SYSCALLS], 1);
        if (n < 0 && dqi_udp_soft(errno) && soft++ < SOFT_MAX) continue;
        if (n <= 0) break;
        dqi_stamps_look(&c->stamps, r->queue->session);
        dqi_udp_sift(r, c, (uint32_t)n);
        for (int k = 0; k < n; k++) {
            uint32_t len = r->msgs[k].msg_len; // the message's full length, because of MSG_TRUNC
            if (len == DQI_UDP_LATE) continue;
            uint32_t size = dqi_udp_parse(&r->msgs[k].msg_hdr, c, &last, NULL);
            total += size > 0 && size < len ? (len + size - 1) / size : 1;
            bytes += len;
        }
    }
    for (uint32_t k = 0; k < r->n_stock && !r->gro; k++)
        point(r, k);
    dqi_add(&r->queue->c.in, total - before);
    dqi_add(&r->queue->c.in_bytes, bytes);
    return total;
}
