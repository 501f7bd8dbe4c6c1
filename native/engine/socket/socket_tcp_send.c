// socket_tcp_send.c: transmit path of streams: many packets per system call.
//
// The kernel may accept part of a packet. The connection records the packet and the bytes sent; until its
// queue sends the rest, nothing else may be sent on the connection.
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"

#include <errno.h>
#include <string.h>

#define PARTS (1 + DQ_MAX_SEGS) // pieces of a packet: prefix and segments

static uint64_t payload(const dq_burst *b, uint32_t i) {
    uint64_t len = 0;
    for (uint32_t s = 0; s < b->nseg; s++)
        len += b->len[s][i];
    return len;
}

// Writes the prefix of packet i to out; returns its width, or -1 if this framing cannot encode the packet.
static int prefix_of(const dqi_sock *s, const dq_burst *b, uint32_t i, uint8_t out[8]) {
    return s->framing.kind == DQ_FRAMING_NONE ? 0 : dqi_framing_prefix(&s->framing, payload(b, i), out);
}

// Adds packet i's pieces, without its first `skip` bytes, to a list of n; returns the new number.
static uint32_t pieces(const dq_burst *b, uint32_t i, uint8_t *prefix, uint32_t width, uint64_t skip,
                       struct iovec *iov, uint32_t n) {
    for (int s = -1; s < (int)b->nseg; s++) {
        uint8_t *p = s < 0 ? prefix : dqi_bytes(b, s, i);
        uint64_t len = s < 0 ? width : b->len[s][i], cut = skip < len ? skip : len;
        skip -= cut;
        if (len > cut) n = (uint32_t)dqi_iov_add(iov, n, p + cut, len - cut);
    }
    return n;
}

// Gathers the pieces of packets first .. first + n, as many as a call takes; returns the number of packets.
// *bad: the next one cannot be sent.
static uint32_t gather(dqi_sock_tx *t, const dqi_sconn *c, const dq_burst *b, uint32_t first, uint32_t n,
                       uint32_t *n_iov, bool *bad) {
    uint32_t k = 0;
    *n_iov = 0;
    *bad = false;
    if (n > DQI_SOCK_IOVS) n = DQI_SOCK_IOVS; // number of prefixes
    for (; k < n && *n_iov + PARTS <= DQI_SOCK_IOVS; k++) {
        int width = prefix_of(t->sock, b, first + k, t->prefix[k]);
        *bad = width < 0;
        if (*bad) break;
        *n_iov =
            pieces(b, first + k, t->prefix[k], (uint32_t)width, k == 0 ? c->half_bytes : 0, t->iov, *n_iov);
    }
    return k;
}

// Counts the packets completed by `sent` bytes and records the sent part of the next. c.out_bytes counts only
// payload.
static uint32_t settle(dq_queue *q, dqi_sconn *c, const dq_burst *b, uint32_t first, uint32_t k,
                       uint64_t sent) {
    uint32_t done = 0, width = c->sock->framing.width;
    uint64_t bytes = 0, left = sent + c->half_bytes;
    for (; done < k; done++) {
        uint64_t len = payload(b, first + done);
        if (left < len + width) break;
        left -= len + width;
        bytes += len;
    }
    c->half_bytes = left;
    c->half_queue = left > 0 ? q : NULL;
    c->half_burst = b;
    c->half_at = first + done;
    uint64_t moved = atomic_load_explicit(&c->moved, memory_order_relaxed) + sent;
    atomic_store_explicit(&c->moved, moved, memory_order_relaxed);
    dqi_add(&q->c.out, done);
    dqi_add(&q->c.out_bytes, bytes);
    return done;
}

// Makes one system call. Returns the packets sent; -1: not now (blocked_fd is a full socket); -2: broken.
static int send_some(dq_queue *q, dqi_sconn *c, const dq_burst *b, uint32_t first, uint32_t k,
                     uint32_t n_iov) {
    dqi_sock_tx *t = q->engine;
    struct msghdr m = {.msg_iov = t->iov, .msg_iovlen = n_iov};
    ssize_t sent = 0;
    int err = 0;
    if (n_iov > 0) {
        sent = sendmsg(c->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
        err = errno;
        dqi_add(&q->c.extra[DQ_EXTRA_SYSCALLS], 1);
    }
    if (sent >= 0) return (int)settle(q, c, b, first, k, (uint64_t)sent);
    if (err == EINTR) return 0;
    if (err == EAGAIN || err == EWOULDBLOCK) {
        t->blocked_fd = c->fd;
        return -1;
    }
    if (err == ENOBUFS || err == ENOMEM) {
        q->next_ns = dq_now(q->session) + 100000;
        return -1;
    }
    atomic_store(&c->conn.broken, true);
    return -2;
}

// Sends packets. A partly sent packet of a lost connection is sent from its start on the next one.
static uint32_t send_all(dq_queue *q, dqi_sconn *c, const dq_burst *b, uint32_t first, uint32_t n) {
    uint32_t done = 0;
    while (done < n) {
        uint32_t n_iov;
        bool bad;
        uint32_t k = gather(q->engine, c, b, first + done, n - done, &n_iov, &bad);
        if (k == 0 && bad) {
            dqi_drop(&q->c, DQ_DROP_SEND_ERROR, 1);
            done++;
            continue;
        }
        int sent = send_some(q, c, b, first + done, k, n_iov);
        if (sent < 0) break;
        done += (uint32_t)sent;
    }
    return done;
}

// Returns true if the packet may be sent on c: no other packet is partly sent there.
static bool is_next(const dqi_sconn *c, const dq_queue *q, const dq_burst *b, uint32_t first) {
    return !c->half_queue || (c->half_queue == q && c->half_burst == b && c->half_at == first);
}

int dqi_tcp_send(dq_queue *q, dqi_sconn *c, uint32_t id, const dq_burst *b, uint32_t first, uint32_t n,
                 bool *full) {
    dqi_sock_tx *t = q->engine;
    uint32_t done = 0;
    int64_t due = q->next_ns;
    q->next_ns = 0; // retry at once unless the socket is full: another thread has the connection
    if (pthread_mutex_trylock(&c->tx_lock) != 0) return 0;
    bool mine = is_next(c, q, b, first);
    t->blocked_fd = -1;
    if (mine && dqi_sconn_takes(c) && dqi_sconn_id(c) == id) {
        q->next_ns = due;
        done = send_all(q, c, b, first, n);
        if (atomic_load(&c->conn.broken)) q->next_ns = 0;
    } else if (!mine) {
        q->next_ns = dq_now(q->session) + 100000;
    }
    *full = !mine || t->blocked_fd >= 0;
    if (b == q->tx.cur) t->stays = mine && c->half_queue ? id : 0;
    pthread_mutex_unlock(&c->tx_lock);
    return (int)done;
}
