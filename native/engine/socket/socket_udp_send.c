// socket_udp_send.c: sends datagrams, a batch per system call.
//
// A run of packets of equal length to one destination becomes one message (UDP_SEGMENT): it passes the
// kernel's stack once and is segmented at the device, which is several times cheaper. The last packet of a
// run may be shorter. If the kernel rejects the segmentation (longer than the path's MTU, a device without
// checksum offload), the run and all later packets of that length are sent one by one.
#include "core/peers.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>

#define RUN_PACKETS 64    // supported by every kernel with UDP_SEGMENT
#define RUN_BYTES   65507 // of one message: largest payload of an IPv4 datagram

typedef struct udp_out {
    dq_queue *q;
    dqi_sock_tx *t;
    dqi_sconn *c;
    const dq_burst *b;
    int family;
    bool named;         // each packet needs an address
    bool answers;       // the burst was received here: packets go to their senders
    uint32_t one_until; // packets before this one are sent one by one
    dqi_sockaddr peer;
} udp_out;

static int family_of(const dqi_sconn *c) { return c->conn.local.sa.sa_family; }

// Returns the destination of a server's unaddressed packets: the remote address, else the last sender.
static dqi_sockaddr default_peer(dqi_sock *s, int family) {
    dqi_sockaddr peer, fit = {0};
    dqi_lock(&s->peer_lock);
    peer = s->n_remote > 0 ? s->remote[0] : s->last_peer;
    dqi_unlock(&s->peer_lock);
    if (peer.sa.sa_family == AF_UNSPEC || !dqi_addr_fit(&peer, family, &fit)) fit.sa.sa_family = AF_UNSPEC;
    return fit;
}

// Stores the destination of packet i in *to. Returns false if there is none.
static bool address(const udp_out *o, uint32_t i, dqi_sockaddr *to) {
    const dqi_sockaddr *peer = o->answers ? dqi_burst_peer_addr(o->b, i) : NULL;
    if (peer && (peer->sa.sa_family == AF_INET || peer->sa.sa_family == AF_INET6))
        return dqi_addr_fit(peer, o->family, to);
    *to = o->peer;
    return to->sa.sa_family != AF_UNSPEC;
}

// ---- runs -------------------------------------------------------------------------------------------------

static uint32_t len_of(const dq_burst *b, uint32_t i) {
    uint32_t len = b->len[0][i];
    for (uint32_t s = 1; s < b->nseg; s++)
        len += b->len[s][i];
    return len;
}

// Appends packet i to m's list of pieces.
static void gather(const dq_burst *b, uint32_t i, struct msghdr *m) {
    for (uint32_t s = 0; s < b->nseg; s++)
        if (b->len[s][i] > 0)
            m->msg_iovlen = dqi_iov_add(m->msg_iov, m->msg_iovlen, dqi_bytes(b, s, i), b->len[s][i]);
}

static bool same_destination(const udp_out *o, uint32_t i, const dqi_sockaddr *to) {
    dqi_sockaddr other;
    return !o->answers || (address(o, i, &other) && memcmp(&other, to, dqi_addr_len(to)) == 0);
}

// Returns true if packets of this length may be sent as a run.
static bool runs(const udp_out *o, uint32_t i, uint32_t len) {
    uint32_t refused = atomic_load_explicit(&o->c->gso_refused, memory_order_relaxed);
    return len > 0 && i >= o->one_until && (refused == 0 || len < refused);
}

// Requests segmentation of message k into pieces of len bytes.
static void cut_after(dqi_sock_tx *t, uint32_t k, uint32_t len) {
    struct msghdr *m = &t->msgs[k].msg_hdr;
    uint16_t size = (uint16_t)len;
    m->msg_control = t->ctl + (size_t)k * DQI_SOCK_CTL;
    m->msg_controllen = CMSG_SPACE(sizeof size);
    struct cmsghdr *c = CMSG_FIRSTHDR(m);
    c->cmsg_level = IPPROTO_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof size);
    memcpy(CMSG_DATA(c), &size, sizeof size);
}

// Prepares message k, with its pieces at iov, from packet i and those of the n - 1 behind it that form a run.
// Returns DQ_REASONS, or why packet i cannot be sent.
static dq_reason prepare(const udp_out *o, uint32_t k, struct iovec *iov, uint32_t i, uint32_t n) {
    const dq_burst *b = o->b;
    struct msghdr *m = &o->t->msgs[k].msg_hdr;
    uint32_t len = len_of(b, i), max = o->t->sock->iface->conf.socket.max_payload, j = 1;
    *m = (struct msghdr){.msg_iov = iov};
    if (max && len > max) return DQ_DROP_TOO_LONG;
    if (o->named) {
        if (!address(o, i, &o->t->names[k])) return DQ_DROP_NO_PEER;
        m->msg_name = &o->t->names[k];
        m->msg_namelen = dqi_addr_len(&o->t->names[k]);
    }
    gather(b, i, m);
    if (m->msg_iovlen == 0) { // an empty datagram: some emulators require one piece
        iov[0] = (struct iovec){.iov_base = dqi_bytes(b, 0, i)};
        m->msg_iovlen = 1;
    }
    uint32_t most = !runs(o, i, len) ? 1 : RUN_BYTES / len < RUN_PACKETS ? RUN_BYTES / len : RUN_PACKETS;
    if (n > most) n = most;
    for (uint32_t last = len; j < n && last == len; j++) {
        last = len_of(b, i + j);
        if (last == 0 || last > len || !same_destination(o, i + j, &o->t->names[k])) break;
        gather(b, i + j, m);
    }
    if (j > 1) cut_after(o->t, k, len);
    o->t->runs[k] = j;
    return DQ_REASONS;
}

// Prepares messages from packets [first, first + n) for one call, up to the first that cannot be sent for the
// reason *why.
static uint32_t prepare_some(const udp_out *o, uint32_t first, uint32_t n, dq_reason *why) {
    uint32_t k = 0, used = 0, i = 0;
    *why = DQ_REASONS;
    while (i < n && k < DQI_SOCK_BATCH && used + DQ_MAX_SEGS <= DQI_SOCK_IOVS) {
        uint32_t room = (DQI_SOCK_IOVS - used) / o->b->nseg, left = n - i;
        *why = prepare(o, k, o->t->iov + used, first + i, left < room ? left : room);
        if (*why != DQ_REASONS) break;
        used += (uint32_t)o->t->msgs[k].msg_hdr.msg_iovlen;
        i += o->t->runs[k++];
    }
    return k;
}

// ---- send -------------------------------------------------------------------------------------------------

static uint32_t count_sent(const udp_out *o, int n) {
    uint64_t bytes = 0;
    uint32_t packets = 0;
    for (int i = 0; i < n; i++) {
        bytes += o->t->msgs[i].msg_len;
        packets += o->t->runs[i];
    }
    dqi_add(&o->q->c.out, packets);
    dqi_add(&o->q->c.out_bytes, bytes);
    return packets;
}

// Handles a rejected run that starts with packet i: its packets are sent one by one, as are all later ones
// that the kernel would reject for the same reason.
static void break_up(udp_out *o, uint32_t i, int err) {
    uint32_t len = len_of(o->b, i), had = atomic_load_explicit(&o->c->gso_refused, memory_order_relaxed);
    if (err == EIO || err == EOPNOTSUPP || err == ENOPROTOOPT) len = DQI_GSO_NEVER;
    bool learned = len == DQI_GSO_NEVER || err == EMSGSIZE || err == EINVAL;
    if (learned && (had == 0 || len < had))
        atomic_store_explicit(&o->c->gso_refused, len, memory_order_relaxed);
    o->one_until = i + o->t->runs[0];
}

// Sends k messages, from packet i on, with one system call. Returns the packets sent; 0: retry, at most once
// for the same reason; -1: not now. *failed counts failures of the first message.
static int send_some(udp_out *o, uint32_t i, uint32_t k, uint32_t *failed) {
    dqi_counters *c = &o->q->c;
    int n = sendmmsg(o->c->fd, o->t->msgs, k, MSG_NOSIGNAL | MSG_DONTWAIT);
    int err = errno;
    dqi_add(&c->extra[DQ_EXTRA_SYSCALLS], 1);
    if (n > 0) {
        *failed = 0;
        return (int)count_sent(o, n);
    }
    if (n == 0 || err == EAGAIN || err == EWOULDBLOCK) {
        o->t->blocked_fd = o->c->fd;
        return -1;
    }
    if (err == ENOBUFS || err == ENOMEM) { // free memory is not signaled by readiness
        o->q->next_ns = dq_now(o->q->session) + 100000;
        return -1;
    }
    if (dqi_udp_soft(err) && err != EMSGSIZE && (*failed)++ == 0) return 0;
    *failed = 0;
    if (o->t->runs[0] > 1) {
        break_up(o, i, err);
        return 0;
    }
    dqi_drop(c, DQ_DROP_SEND_ERROR, 1);
    dqi_queue_error_add(o->q->errors, err, 1);
    return 1;
}

static uint32_t send_all(udp_out *o, uint32_t first, uint32_t n) {
    uint32_t done = 0, failed = 0;
    while (done < n) {
        dq_reason why;
        uint32_t k = prepare_some(o, first + done, n - done, &why);
        if (k == 0) {
            dqi_drop(&o->q->c, why, 1);
            done++;
            continue;
        }
        int sent = send_some(o, first + done, k, &failed);
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
    if (dqi_sconn_state(c) == DQI_CONN_OPEN && dqi_sconn_id(c) == id)
        done = send_all(&o, first, n);
    else
        q->next_ns = 0;
    pthread_mutex_unlock(&c->tx_lock);
    return (int)done;
}
