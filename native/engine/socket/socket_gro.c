// socket_gro.c: receives datagrams that the kernel coalesces (UDP_GRO), up to 64 KiB of one peer at a time.
//
// The region's buffers form groups of at least 64 KiB, super-buffers. There are two ways to read, selected by
// the messages of the last read: wide, where each message gets a super-buffer and its datagrams are slices of
// that; or narrow, for single datagrams, where each gets a buffer, plus spill space for the rest of a
// coalesced message, from which the excess datagrams are copied. So a small datagram never occupies 64 KiB,
// and coalesced ones are rarely copied.
//
// Messages read but not yet delivered, for lack of room or buffers, stay in place in msgs[at..n_read). The
// queue holds each super-buffer of its stock and of each waiting message.
#include "core/peers.h"
#include "engine/socket/socket_packets.h"
#include "engine/socket/socket_state.h"
#include "pipeline/engine.h"

#include <errno.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MESSAGE (64u << 10) // limit of a message in bytes
#define WIDE    16          // minimum of messages per call with super-buffers
#define WARM    (1u << 20)  // bytes filled by one call if that is less: they fit a core's cache
#define NARROW  128         // messages per call with a buffer each
#define LEAST   8           // super-buffers for each queue

static bool kernel_has_gro(void) {
    int on = 1, fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && setsockopt(fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
    if (fd >= 0) close(fd);
    return ok;
}

// Returns a queue that uses region r and is not a UDP receive queue, or NULL; counts the UDP receive queues
// in *users.
static const dq_queue *stranger(const dq_session *s, const dq_region *r, uint32_t *users) {
    for (uint32_t i = 0; i < s->n_ifaces; i++) {
        const dq_iface *f = s->ifaces[i];
        bool udp = f->ops == &dqi_engine_socket && f->conf.socket.proto == DQ_PROTO_UDP;
        for (uint32_t k = 0; k < f->n_rx + f->n_tx; k++) {
            const dq_queue *q = k < f->n_rx ? f->rx[k] : f->tx[k - f->n_rx];
            for (uint32_t n = 0; n < q->conf.n_regions; n++) {
                if (q->conf.regions[n] != r) continue;
                if (!udp || q->conf.dir != DQ_RX || n > 0) return q;
                ++*users;
            }
        }
    }
    return NULL;
}

void dqi_gro_claim(dq_iface *i) {
    if (i->conf.socket.proto != DQ_PROTO_UDP || i->n_rx == 0) return;
    if (!kernel_has_gro())
        return dqi_note(i->session,
                        "interface %s: this kernel has no UDP_GRO: datagrams are received one by one",
                        i->conf.name);
    for (uint32_t k = 0; k < i->n_rx; k++) {
        dq_region *r = i->rx[k]->conf.regions[0];
        uint32_t users = 0;
        const dq_queue *other = stranger(i->session, r, &users);
        if (!other)
            dqi_region_want_groups(r, MESSAGE, LEAST * users);
        else
            dqi_note(
                i->session,
                "interface %s: queue %s: datagrams are received one by one, because queue %s of interface %s "
                "also uses region %s; hint: with a region of its own the kernel delivers 64 KiB at a time",
                i->conf.name, i->rx[k]->conf.name, other->conf.name, other->iface->conf.name, r->conf.name);
    }
}

int dqi_gro_open(dqi_sock_rx *r) {
    const dq_region *g = r->region;
    r->gro = g->across != NULL;
    if (!r->gro) return DQ_OK;
    uint32_t users = 0;
    stranger(g->session, g, &users);
    r->cap_stock = g->n_groups / (4 * users);
    if (r->cap_stock > DQI_SOCK_BATCH) r->cap_stock = DQI_SOCK_BATCH;
    r->wide = g->group == 1;
    r->each = 1;
    r->aside.id = DQI_NO_BUF;
    // mmap: unused pages cost no memory.
    r->spill = g->group == 1 ? NULL
                             : mmap(NULL, (size_t)NARROW * MESSAGE, PROT_READ | PROT_WRITE,
                                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (r->spill == MAP_FAILED) r->spill = NULL;
    return r->spill || r->wide ? DQ_OK : DQ_ESYS - ENOMEM;
}

void dqi_gro_start(dqi_sock_rx *r) {
    int on = 1;
    if (r->gro) setsockopt(r->base->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on);
}

// ---- buffers ----------------------------------------------------------------------------------------------

static uint8_t *at_off(const dqi_sock_rx *r, uint64_t off) { return r->queue->session->core.base + off; }

// Takes super-buffers into the stock up to n; returns its level.
static uint32_t fill(dqi_sock_rx *r, uint32_t n) {
    if (n > r->cap_stock) n = r->cap_stock;
    if (r->n_stock < n) r->n_stock += dqi_bufs_some(r->region, r->stock + r->n_stock, n - r->n_stock);
    return r->n_stock;
}

// Removes the first n super-buffers from the stock.
static void shift(dqi_sock_rx *r, uint32_t n) {
    r->n_stock -= n;
    memmove(r->stock, r->stock + n, r->n_stock * sizeof *r->stock);
}

// Frees used-up super-buffers; all: also the one in use.
static void retire(dqi_sock_rx *r, bool all) {
    uint32_t group = r->region->group, n = (r->used + (all ? group - 1 : 0)) / group;
    dqi_bufs_free(r->queue->session, r->stock, n);
    shift(r, n);
    r->used = all ? 0 : r->used % group;
}

static void set_across(const dqi_sock_rx *r, uint32_t id, bool across) {
    r->region->across[(id - r->region->first_id) / r->region->group] = across;
}

// Returns the k-th unused buffer of the stock.
static uint32_t buf_at(const dqi_sock_rx *r, uint32_t k) {
    uint32_t group = r->region->group;
    return r->stock[(r->used + k) / group] + (r->used + k) % group;
}

// Adds a super-buffer to those held by b.
static void hold(dqi_sock_rx *r, dq_burst *b, uint32_t id) {
    if (b->n_bufs > 0 && b->bufs[0][b->n_bufs - 1] == id) return;
    dqi_buf_hold(r->region, id);
    b->bufs[0][b->n_bufs++] = id;
}

// ---- receive ----------------------------------------------------------------------------------------------

// Sets up message k with its buffer (n bytes of room) and optionally its spill space.
static void point(dqi_sock_rx *r, uint32_t k, uint32_t id, size_t n, bool spill) {
    uint8_t *packet = at_off(r, dqi_buf_off(r->region, id));
    r->bufs[k] = id;
    r->iov[2 * k] = (struct iovec){.iov_base = packet, .iov_len = n};
    if (spill)
        r->iov[2 * k + 1] = (struct iovec){.iov_base = r->spill + (size_t)k * MESSAGE, .iov_len = MESSAGE};
    r->msgs[k].msg_hdr = (struct msghdr){.msg_name = dqi_buf_peer(r->region, id),
                                         .msg_namelen = sizeof(dqi_sockaddr),
                                         .msg_iov = &r->iov[2 * k],
                                         .msg_iovlen = spill ? 2 : 1,
                                         .msg_control = r->ctl + (size_t)k * DQI_SOCK_CTL,
                                         .msg_controllen = DQI_SOCK_CTL};
}

// Sets up messages with a super-buffer each, for about room packets; returns their number.
static uint32_t aim_wide(dqi_sock_rx *r, uint32_t room) {
    uint32_t n = r->each > 1 ? room / r->each + 1 : room, most = WARM / (r->mean + 1);
    if (most < WIDE) most = WIDE;
    if (most > DQI_SOCK_BATCH) most = DQI_SOCK_BATCH;
    retire(r, true);
    n = n < most ? n : most;
    uint32_t have = fill(r, n);
    if (n > have) n = have;
    for (uint32_t k = 0; k < n; k++) {
        set_across(r, r->stock[k], true);
        point(r, k, r->stock[k], (size_t)r->region->stride * r->region->group - DQ_HEADROOM, false);
    }
    return n;
}

// Sets up messages with a buffer each, for at most room packets; returns their number.
static uint32_t aim_narrow(dqi_sock_rx *r, uint32_t room) {
    uint32_t group = r->region->group, n = WARM / r->region->stride;
    if (n < WIDE) n = WIDE;
    if (n > NARROW) n = NARROW;
    if (n > room) n = room;
    retire(r, false);
    uint32_t had = r->used > 0 ? 1 : 0;
    uint32_t have = fill(r, (r->used + n + group - 1) / group) * group - r->used;
    if (n > have) n = have;
    for (uint32_t k = had; k < r->n_stock; k++)
        set_across(r, r->stock[k], false);
    for (uint32_t k = 0; k < n; k++)
        point(r, k, buf_at(r, k), r->region->conf.buf_size, true);
    return n;
}

static bool is_late(const dqi_sock_rx *r, uint32_t k) { return r->msgs[k].msg_len == DQI_UDP_LATE; }

// Parses n messages read from c and selects how to read the next.
static void note_read(dqi_sock_rx *r, dqi_sconn *c, uint32_t n) {
    uint64_t packets = 0, bytes = 0;
    dqi_stamps_look(&c->stamps, r->queue->session);
    dqi_udp_sift(r, c, n);
    uint32_t group = r->region->group;
    for (uint32_t k = 0; k < n; k++) {
        if (is_late(r, k)) {
            packets++;
            continue;
        }
        uint32_t len = r->msgs[k].msg_len, size = dqi_udp_parse(&r->msgs[k].msg_hdr, c, &r->ts[k],
                                                                dqi_buf_target(r->region, r->bufs[k]));
        r->size[k] = size > 0 && size < len ? size : len;
        bytes += len;
        packets += r->size[k] < len ? (len + r->size[k] - 1) / r->size[k] : 1;
        dqi_udp_settle_peer(&r->msgs[k].msg_hdr);
    }
    r->at = 0;
    r->pos = 0;
    r->n_read = n;
    r->across = r->wide;
    if (r->wide)
        shift(r, n);
    else
        r->used += n;
    r->each = (uint32_t)(packets / n);
    r->mean = (uint32_t)(bytes / n);
    r->wide = group == 1 || (packets >= 2 * n && 4 * packets >= (uint64_t)group * n);
}

// ---- delivery ---------------------------------------------------------------------------------------------

// Part of a message that goes to one burst.
typedef struct part {
    uint32_t len, size; // length of the message and of its datagrams
    uint32_t n, cut;    // datagrams; datagrams that were too long
} part;

static part part_of(const dqi_sock_rx *r) {
    return (part){.len = r->msgs[r->at].msg_len, .size = r->size[r->at]};
}

// Returns the length of the next datagram.
static uint32_t next_len(const dqi_sock_rx *r, const part *p) {
    uint32_t left = p->len - r->pos;
    return left < p->size ? left : p->size;
}

static void append(const dqi_sock_rx *r, dq_burst *b, uint64_t off, uint32_t len) {
    uint32_t at = b->n++;
    b->off[0][at] = off;
    b->len[0][at] = len;
    b->ts[at] = r->ts[r->at];
    b->flow[at] = 0;
    b->bytes += len;
}

static void count(dqi_sock_rx *r, const part *p) {
    dqi_add(&r->queue->c.in, p->n);
    if (p->cut) dqi_drop(&r->queue->c, DQ_DROP_TOO_LONG, p->cut);
}

// Moves datagrams of the current message, which has a super-buffer, to b; returns true if none is left.
static bool cut_wide(dqi_sock_rx *r, dq_burst *b, uint32_t cap) {
    uint32_t id = r->bufs[r->at], before = b->n;
    uint64_t off = dqi_buf_off(r->region, id);
    part p = part_of(r);
    bool had = b->n_bufs > 0 && b->bufs[0][b->n_bufs - 1] == id, more;
    do {
        uint32_t len = next_len(r, &p);
        if (len <= r->limit)
            append(r, b, off + r->pos, len);
        else
            p.cut++;
        p.n++;
        r->pos += len;
        more = r->pos < p.len;
    } while (more && b->n < cap);
    count(r, &p);
    if (!more && !had && b->n > before) {
        b->bufs[0][b->n_bufs++] = id; // transfers the queue's reference to the burst
        return true;
    }
    if (b->n > before) hold(r, b, id);
    if (!more) dqi_bufs_free(r->queue->session, &id, 1);
    return !more;
}

// Copies len bytes of the current message from r->pos on to a separate buffer with the same sender; returns
// its id or DQI_NO_BUF.
static uint32_t copy_out(dqi_sock_rx *r, uint32_t len) {
    const struct iovec *v = r->iov + 2 * (size_t)r->at;
    uint32_t id = dqi_spare_take(r->region, &r->aside), first = (uint32_t)v[0].iov_len, here = 0;
    if (id == DQI_NO_BUF) return id;
    uint8_t *to = at_off(r, dqi_buf_off(r->region, id));
    dqi_buf_copy_peer(r->region, id, r->region, r->bufs[r->at]);
    if (r->pos < first) here = first - r->pos;
    memcpy(to, (const uint8_t *)v[0].iov_base + r->pos, here);
    memcpy(to + here, (const uint8_t *)v[1].iov_base + (r->pos + here - first), len - here);
    return id;
}

// As cut_wide, for a message with one buffer and possibly spilled data.
static bool cut_narrow(dqi_sock_rx *r, dq_burst *b, uint32_t cap) {
    part p = part_of(r);
    uint32_t room = (uint32_t)r->iov[2 * (size_t)r->at].iov_len;
    bool more;
    do {
        uint32_t len = next_len(r, &p), id = r->bufs[r->at];
        bool here = r->pos + len <= room;
        if (len > r->limit) {
            p.cut++;
        } else if (here || (id = copy_out(r, len)) != DQI_NO_BUF) {
            append(r, b, dqi_buf_off(r->region, id) + (here ? r->pos : 0), len);
            hold(r, b, dqi_group_of(r->region, id));
        } else {
            r->starved = true;
            break;
        }
        p.n++;
        r->pos += len;
        more = r->pos < p.len;
    } while (more && b->n < cap);
    count(r, &p);
    return r->pos == p.len;
}

// Advances to the next message and frees the buffer of the current one.
static void pass(dqi_sock_rx *r) {
    if (r->across) dqi_bufs_free(r->queue->session, &r->bufs[r->at], 1);
    r->at++;
    r->pos = 0;
}

// Moves read datagrams to b, up to cap packets.
static void deliver(dqi_sock_rx *r, dq_burst *b, uint32_t cap) {
    uint32_t from = b->n;
    b->slices = true;
    while (r->at < r->n_read && b->n < cap) {
        uint32_t pos = r->pos;
        if (is_late(r, r->at)) {
            pass(r);
            continue;
        }
        bool done = r->across ? cut_wide(r, b, cap) : cut_narrow(r, b, cap);
        dqi_add(&r->queue->c.in_bytes, r->pos - pos);
        if (!done) break;
        r->at++;
        r->pos = 0;
    }
    if (b->n > from) dqi_udp_remember_peer(r, b);
}

// Returns true if a partial burst should be delivered while its data is in the cache.
static bool is_enough(const dqi_sock_rx *r, const dq_burst *b) {
    return r->queue->rx.immediate && r->queue->conf.timeout_us == 0 && b->bytes >= WARM;
}

int dqi_gro_read(dqi_sock_rx *r, dqi_sconn *c, dq_burst *b, uint32_t room) {
    uint32_t before = b->n, cap = b->n + room;
    int soft = 0;
    deliver(r, b, cap);
    while (b->n < cap && r->at == r->n_read) {
        if (r->region->group > 1 && c != r->base) r->wide = false;
        uint32_t want = r->wide ? aim_wide(r, cap - b->n) : aim_narrow(r, cap - b->n);
        if (want == 0) {
            r->starved = true;
            break;
        }
        int n = dqi_udp_receive(r, c, want, &soft);
        if (n == 0) continue;
        if (n < 0) break;
        note_read(r, c, (uint32_t)n);
        deliver(r, b, cap);
        if ((uint32_t)n < want || r->late || is_enough(r, b)) break;
    }
    return (int)(b->n - before);
}

uint64_t dqi_gro_discard(dqi_sock_rx *r) {
    uint64_t n = 0, bytes = 0;
    for (; r->at < r->n_read; pass(r)) {
        part p = part_of(r);
        if (is_late(r, r->at)) continue;
        do {
            uint32_t len = next_len(r, &p);
            bytes += len;
            n++;
            r->pos += len;
        } while (r->pos < p.len);
    }
    dqi_add(&r->queue->c.in, n);
    dqi_add(&r->queue->c.in_bytes, bytes);
    return n;
}

void dqi_gro_close(dqi_sock_rx *r) {
    while (r->at < r->n_read)
        pass(r);
    if (r->gro) dqi_bufs_free(r->queue->session, &r->aside.id, 1);
    if (r->spill) munmap(r->spill, (size_t)NARROW * MESSAGE);
}
