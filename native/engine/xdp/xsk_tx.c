// xsk_tx.c: transmit through AF_XDP, by reference from any address of the arena.
//
// A descriptor must not cross a chunk of the UMEM, so a packet that spans several chunks is sent in parts.
// The kernel completes descriptors in order (where it does not, it has copied them before), so a count of
// completions identifies the finished bursts. Queues that share a socket serialize with a try-lock.
#include "core/dq_burst.h"
#include "engine/xdp/xsk.h"
#include "packet/packet.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define SOON_NS  50000    // interval between polls for completions
#define LATER_NS 10000000 // interval when nothing completes because the link is down
#define PATIENCE 20       // polls
#define LOOK_NS  1000000  // interval between checks of the device

// ---- completions ------------------------------------------------------------------------------------------

static void let_go(xsk_sent *s) {
    dqi_add_shared(&s->queue->c.out, s->n); // may be called by the poller of another queue
    dqi_add_shared(&s->queue->c.out_bytes, s->bytes);
    dqi_gauge_add(&((xsk_tx *)s->queue->engine)->inside, -(int64_t)s->n);
    if (s->burst) dq_burst_unref(s->burst);
}

// Completes the entries that the kernel has sent; returns their number. Requires tx_busy.
static int complete(xsk_socket *x) {
    uint32_t n = xsk_ready(&x->completion);
    int done = 0;
    if (n == 0) return 0;
    x->completed += n;
    xsk_consumed(&x->completion, n);
    for (; x->out_tail != x->out_head; x->out_tail++, done++) {
        xsk_sent *s = &x->out[x->out_tail % XSK_RING];
        if ((int32_t)(x->completed - s->end) < 0) break;
        let_go(s);
    }
    return done;
}

// Wakes the kernel to send from the ring; each call sends a bounded number of packets.
static void kick(dq_queue *q, xsk_socket *x) {
    for (int k = 0; k < XSK_RING / 32 && xsk_unread(&x->tx) > 0 && xsk_wants_kick(&x->tx); k++) {
        dqi_add(&q->c.extra[DQ_EXTRA_SYSCALLS], 1);
        if (sendto(x->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0) return;
        if (errno == EAGAIN || errno == EINTR) { // more to send, or the completion ring is full
            complete(x);
            continue;
        }
        if (errno == EBUSY || errno == ENOBUFS) return;
        dqi_queue_error_add(q->errors, errno, 1);
        return;
    }
}

static void look_again(dq_queue *q, xsk_tx *t, bool moved) {
    t->idle = moved ? 0 : t->idle + 1;
    int64_t then = q->tx.now_ns + (t->idle < PATIENCE ? SOON_NS : LATER_NS);
    if (then < q->next_ns) q->next_ns = then;
}

// Rereads MTU and link state of the device, as the kernel silently drops packets that the device rejects.
static void look_at_device(dq_queue *q, xsk_tx *t) {
    const xsk_port *p = dqi_port_of(q->iface)->state;
    if (q->tx.now_ns - t->looked_ns < LOOK_NS) return;
    t->looked_ns = q->tx.now_ns;
    struct ifreq r = {0};
    memcpy(r.ifr_name, p->device, sizeof p->device);
    if (ioctl(p->watch, SIOCGIFMTU, &r) == 0) t->mtu = (uint32_t)r.ifr_mtu;
    struct ethtool_value v = {.cmd = ETHTOOL_GLINK};
    r.ifr_data = (void *)&v;
    const bool up = ioctl(p->watch, SIOCETHTOOL, &r) == 0 ? v.data != 0 : errno == EOPNOTSUPP;
    const bool same = ioctl(p->watch, SIOCGIFINDEX, &r) == 0 && r.ifr_ifindex == p->index;
    t->down = !same ? ENODEV : up ? 0 : ENETDOWN; // the name may belong to another device now
}

int xsk_reap(dq_queue *q) {
    xsk_tx *t = q->engine;
    xsk_socket *x = t->socket;
    if (dqi_gauge_get(&t->inside) == 0 || !dqi_try_lock(&x->tx_busy)) return 0;
    q->tx.now_ns = dq_now(q->session);
    int done = complete(x);
    look_at_device(q, t);
    if (done == 0 && t->down == 0 && xsk_unread(&x->tx) > 0) kick(q, x);
    dqi_unlock(&x->tx_busy);
    if (dqi_gauge_get(&t->inside) > 0) look_again(q, t, done > 0);
    return done;
}

// ---- transmit ---------------------------------------------------------------------------------------------

// Returns the number of descriptors for packet i of b.
static uint32_t parts_of(const xsk_port *p, const dq_burst *b, uint32_t i) {
    uint32_t n = 0;
    for (uint32_t s = 0; s < b->nseg; s++) {
        uint64_t off = b->off[s][i], len = b->len[s][i];
        if (len > 0) n += (uint32_t)((off + len - 1) / p->plan.chunk - off / p->plan.chunk + 1);
    }
    return n;
}

// Writes the descriptors of packet i, starting at entry `at` of the ring.
static void put(const xsk_port *p, xsk_ring *r, uint32_t at, const dq_burst *b, uint32_t i) {
    struct xdp_desc *d = NULL;
    for (uint32_t s = 0; s < b->nseg; s++) {
        uint64_t off = b->off[s][i];
        for (uint32_t left = b->len[s][i], n; left > 0; left -= n, off += n) {
            uint32_t room = p->plan.chunk - (uint32_t)(off % p->plan.chunk);
            n = left < room ? left : room;
            d = xsk_desc(r, at++);
            *d = (struct xdp_desc){.addr = off, .len = n, .options = XDP_PKT_CONTD};
        }
    }
    d->options = 0;
}

static uint32_t length_of(const dq_burst *b, uint32_t i) {
    uint32_t len = 0;
    for (uint32_t s = 0; s < b->nseg; s++)
        len += b->len[s][i];
    return len;
}

// Returns the bytes that packet i may have beyond the MTU.
static uint32_t header_of(const dq_burst *b, uint32_t i) {
    enum { TAG = 4 };
    const uint8_t *data = dqi_bytes(b, 0, i);
    bool tagged = b->len[0][i] >= DQI_ETH_LEN && dqi_be16(data + 12) == DQI_TYPE_VLAN;
    return DQI_ETH_LEN + (tagged ? TAG : 0);
}

// Returns the drop reason for packet i, of len bytes in this many parts; DQ_REASONS: none.
static dq_reason refuses(dq_queue *q, const dq_burst *b, uint32_t i, uint32_t len, uint32_t parts) {
    const xsk_port *p = dqi_port_of(q->iface)->state;
    if (len < DQI_ETH_LEN) return DQ_DROP_SEND_ERROR;
    if (len > ((xsk_tx *)q->engine)->mtu + header_of(b, i)) return DQ_DROP_TOO_LONG;
    return parts > (p->frags ? XSK_MAX_PARTS : 1) ? DQ_DROP_TOO_LONG : DQ_REASONS;
}

// Writes packets into the ring as long as there is room; returns the number taken of n, including dropped
// ones.
static uint32_t put_all(dq_queue *q, const xsk_port *p, xsk_socket *x, const dq_burst *b, uint32_t first,
                        uint32_t n, xsk_sent *s) {
    uint32_t room = XSK_RING - (x->sent - x->completed), used = 0, k = 0;
    for (; k < n; k++) {
        uint32_t len = length_of(b, first + k), parts = parts_of(p, b, first + k);
        dq_reason why = refuses(q, b, first + k, len, parts);
        if (why != DQ_REASONS) {
            dqi_drop(&q->c, why, 1);
            continue;
        }
        if (used + parts > room) break;
        put(p, &x->tx, x->tx.head + used, b, first + k);
        used += parts;
        s->n++;
        s->bytes += len;
    }
    if (used > 0) xsk_produced(&x->tx, used);
    x->sent += used;
    return k;
}

static int lose(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n, int err) {
    dqi_drop(&q->c, DQ_DROP_SEND_ERROR, n);
    dqi_queue_error_add(q->errors, err, n);
    if (first + n == b->n) dq_burst_unref(b);
    return (int)n;
}

// Records the packets of a call until the kernel has completed them. Where all of them were dropped, and none
// is before them, no completion would follow: their burst is free.
static void record(xsk_socket *x, const xsk_sent *s) {
    if (s->n > 0 || x->out_head != x->out_tail)
        x->out[x->out_head++ % XSK_RING] = *s;
    else if (s->burst)
        dq_burst_unref(s->burst);
}

int xsk_send(dq_queue *q, dq_burst *b, uint32_t first, uint32_t n) {
    xsk_tx *t = q->engine;
    xsk_socket *x = t->socket;
    xsk_port *p = dqi_port_of(q->iface)->state;
    if (!dqi_try_lock(&x->tx_busy)) {
        look_again(q, t, true);
        return 0;
    }
    complete(x);
    look_at_device(q, t);
    if (t->down != 0) {
        dqi_unlock(&x->tx_busy);
        return lose(q, b, first, n, t->down);
    }
    xsk_sent s = {.queue = q};
    uint32_t k = x->out_head - x->out_tail == XSK_RING ? 0 : put_all(q, p, x, b, first, n, &s);
    if (k == n && first + n == b->n) s.burst = b;
    s.end = x->sent;
    if (k > 0) record(x, &s);
    dqi_gauge_add(&t->inside, s.n);
    kick(q, x);
    complete(x);
    dqi_unlock(&x->tx_busy);
    if (dqi_gauge_get(&t->inside) > 0 || k == 0) look_again(q, t, k > 0);
    return (int)k;
}

uint64_t xsk_held(dq_queue *q) {
    const xsk_tx *t = q->engine;
    return t ? (uint64_t)dqi_gauge_get(&t->inside) : 0;
}

// Drops packets that the kernel has not completed: the link is down or the device was removed.
void xsk_drop_rest(dq_queue *q) {
    xsk_tx *t = q->engine;
    if (!t) return;
    xsk_socket *x = t->socket;
    complete(x);
    for (uint32_t k = x->out_tail; k != x->out_head; k++) {
        xsk_sent *s = &x->out[k % XSK_RING];
        if (s->queue != q) continue;
        dqi_drop(&q->c, DQ_DROP_STOPPED, s->n);
        dqi_gauge_add(&t->inside, -(int64_t)s->n);
        if (s->burst) dq_burst_unref(s->burst);
        s->n = 0;
        s->bytes = 0;
        s->burst = NULL;
    }
}
