// socket_tcp.c: receive path of streams.
//
// Without framing, a read fills many buffers of the stock, each of which is a packet; bursts take them as
// they have room, and nothing else is read until all are delivered. With framing, bytes are read into one
// buffer of the connection and cut in place: messages are slices, and the buffer is held by every burst that
// has some of them, and by the connection while it has unread bytes.
#include "core/peers.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"

#include <errno.h>
#include <linux/tcp.h>
#include <string.h>
#include <sys/uio.h>

#define FRAMED_READS 16 // reads of one connection in a turn

static uint8_t *packet_of(const dqi_sock_rx *r, uint32_t id) {
    return r->queue->session->core.base + dqi_buf_off(r->region, id);
}

// Stores the peer's address with a packet, as for datagrams.
static void stamp_peer(const dqi_sock_rx *r, const dqi_sconn *c, uint32_t id) {
    *dqi_buf_peer(r->region, id) = c->conn.peer;
}

static void append(dq_burst *b, uint64_t off, uint32_t len, int64_t now) {
    uint32_t at = b->n++;
    b->off[0][at] = off;
    b->len[0][at] = len;
    b->ts[at] = now;
    b->flow[at] = 0;
    b->bytes += len;
}

// Handles a read without data: end of stream, error, or nothing for now.
static void note_end(dqi_sconn *c, ssize_t n, int err) {
    if (n < 0 && (err == EAGAIN || err == EWOULDBLOCK || err == EINTR)) return;
    c->ended = true;
    c->why = n == 0 ? DQ_OK : DQ_ESYS - err;
}

// ---- the stop ---------------------------------------------------------------------------------------------

void dqi_tcp_stop(dqi_sconn *c) {
    struct tcp_info info = {0};
    socklen_t len = sizeof info;
    int err = getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &info, &len);
    bool known =
        err == 0 && len >= offsetof(struct tcp_info, tcpi_bytes_received) + sizeof info.tcpi_bytes_received;
    c->until = known ? info.tcpi_bytes_received : UINT64_MAX; // not filled by some emulated kernels: all
                                                              // available data then
}

// Returns false when everything received before the stop was read.
static bool goes_on(const dqi_sconn *c) {
    return dqi_receives(c->sock->iface->session) || c->taken < c->until;
}

// Counts the bytes of a read; returns how many of them were received before the stop.
static uint64_t in_time(dqi_sconn *c, uint64_t got) {
    c->taken += got;
    if (dqi_receives(c->sock->iface->session) || c->taken <= c->until) return got;
    uint64_t late = c->taken - c->until;
    return late < got ? got - late : 0;
}

// ---- chunks -----------------------------------------------------------------------------------------------

// Reads into as many buffers of the stock as a call takes, regardless of the burst's room; filled ones stay
// at the top of the stock, in order. Returns false if there was no data.
static bool fill(dqi_sock_rx *r, dqi_sconn *c, uint32_t room) {
    if (!goes_on(c)) return false;
    uint32_t most = DQI_SOCK_READ / r->limit, want = room > most ? room : most;
    if (want > DQI_SOCK_BATCH) want = DQI_SOCK_BATCH;
    uint32_t have = dqi_stock_fill(r, want);
    if (want > have) want = have;
    if (want == 0) {
        r->starved = true;
        return false;
    }
    for (uint32_t k = 0; k < want; k++)
        r->iov[k] = (struct iovec){.iov_base = packet_of(r, r->stock[have - 1 - k]), .iov_len = r->limit};
    ssize_t got = readv(c->fd, r->iov, (int)want);
    int err = errno;
    dqi_add(&r->queue->c.extra[DQ_EXTRA_SYSCALLS], 1);
    if (got <= 0) {
        note_end(c, got, err);
        return false;
    }
    r->filled = in_time(c, (uint64_t)got);
    return r->filled > 0;
}

static int read_chunks(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room) {
    if (room == 0 || (r->filled == 0 && !fill(r, c, room))) return 0;
    int64_t now = dq_now(r->queue->session);
    uint64_t before = r->filled;
    uint32_t n = 0;
    for (; r->filled > 0 && n < room; n++) {
        uint32_t id = r->stock[--r->n_stock], len = r->filled < r->limit ? (uint32_t)r->filled : r->limit;
        stamp_peer(r, c, id);
        b->bufs[0][b->n] = id;
        append(b, dqi_buf_off(r->region, id), len, now);
        r->filled -= len;
    }
    b->n_bufs = b->n;
    r->more = r->filled > 0 ? c : NULL;
    dqi_add(&r->queue->c.in, n);
    dqi_add(&r->queue->c.in_bytes, before - r->filled);
    return (int)n;
}

uint64_t dqi_tcp_forget(dqi_sock_rx *r) {
    uint64_t n = (r->filled + r->limit - 1) / r->limit;
    dqi_add(&r->queue->c.in, n);
    dqi_add(&r->queue->c.in_bytes, r->filled);
    r->filled = 0;
    return n;
}

// ---- messages ---------------------------------------------------------------------------------------------

// Returns the start of a stream buffer: width bytes into the headroom, so that the bytes after a first prefix
// are aligned.
static uint8_t *room_of(const dqi_sock_rx *r, uint32_t id) {
    return packet_of(r, id) - r->sock->framing.width;
}

static void drop_buf(dqi_sock_rx *r, dqi_sconn *c) {
    if (c->buf != DQI_NO_BUF) dqi_bufs_free(r->queue->session, &c->buf, 1);
    c->buf = DQI_NO_BUF;
}

// Provides room for the current or a new message. Returns false if no buffer is free.
static bool make_room(dqi_sock_rx *r, dqi_sconn *c) {
    const dqi_framing *f = &r->sock->framing;
    if (dqi_cut_fits(f, &c->cut)) return true;
    if (dqi_stock_fill(r, 1) == 0) {
        r->starved = true;
        return false;
    }
    uint32_t id = r->stock[--r->n_stock];
    stamp_peer(r, c, id);
    dqi_cut_move(f, &c->cut, room_of(r, id), f->width + r->region->conf.buf_size);
    drop_buf(r, c);
    c->buf = id;
    return true;
}

// Adds the connection's buffer to those held by the burst.
static void hold(dqi_sock_rx *r, const dqi_sconn *c, dq_burst *b) {
    b->slices = true;
    if (b->n_bufs > 0 && b->bufs[0][b->n_bufs - 1] == c->buf) return;
    dqi_buf_hold(r->region, c->buf);
    b->bufs[0][b->n_bufs++] = c->buf;
}

// Appends at most room complete messages to b; returns their number.
static uint32_t cut(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room, int64_t now) {
    uint32_t n = 0, at, len;
    uint64_t bytes = 0;
    int got = 0;
    while (n < room && (got = dqi_cut_next(&r->sock->framing, &c->cut, &at, &len)) > 0) {
        hold(r, c, b);
        append(b, (uint64_t)(c->cut.base + at - r->queue->session->core.base), len, now);
        bytes += len;
        n++;
    }
    dqi_add(&r->queue->c.in, n);
    dqi_add(&r->queue->c.in_bytes, bytes);
    if (got >= 0) return n;
    dqi_add(&r->queue->c.in, 1);
    dqi_add(&r->queue->c.in_bytes, dqi_cut_pending(&r->sock->framing, &c->cut));
    dqi_drop(&r->queue->c, DQ_DROP_BAD_FRAMING, 1);
    c->cut = (dqi_cutter){0};
    c->ended = true;
    c->why = DQ_ESYS - EBADMSG;
    return n;
}

// Reads once into the connection's buffer. Returns true if there may be more.
static bool read_on(dqi_sock_rx *r, dqi_sconn *c) {
    if (!goes_on(c) || !make_room(r, c)) return false;
    uint32_t space = c->cut.room - c->cut.to;
    ssize_t got = recv(c->fd, c->cut.base + c->cut.to, space, MSG_DONTWAIT);
    int err = errno;
    dqi_add(&r->queue->c.extra[DQ_EXTRA_SYSCALLS], 1);
    if (got <= 0) {
        note_end(c, got, err);
        return false;
    }
    c->cut.to += (uint32_t)in_time(c, (uint64_t)got);
    return (uint32_t)got == space;
}

static int read_messages(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room) {
    uint32_t n = 0;
    int64_t now = dq_now(r->queue->session);
    bool more = !c->ended;
    for (int k = 0;; k++) {
        n += cut(r, c, b, room - n, now);
        if (n == room || !more || c->ended || k == FRAMED_READS) break;
        more = read_on(r, c);
    }
    bool left = c->cut.base && dqi_cut_pending(&r->sock->framing, &c->cut) > 0;
    r->more = n == room && left ? c : NULL;
    if (!left) {
        c->cut = (dqi_cutter){0};
        drop_buf(r, c);
    }
    return (int)n;
}

int dqi_tcp_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room) {
    int n = 0;
    if (r->sock->framing.kind != DQ_FRAMING_NONE)
        n = read_messages(r, c, b, room);
    else if (!c->ended)
        n = read_chunks(r, c, b, room);
    if (n > 0 && c->ended) r->more = c; // its end is reported after its data
    return n;
}
