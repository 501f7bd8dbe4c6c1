// tx.c: transmit side of a queue: bursts from the ring or from a template are sent as the pace and their send
// times permit.
#include "core/burst.h"
#include "core/err.h"
#include "core/region.h"
#include "packet/dq_template.h"
#include "packet/template.h"
#include "pipeline/actions.h"
#include "pipeline/engine.h"
#include "pipeline/poller.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/tx_accuracy.h"
#include "pipeline/tx_gpu.h"

#include <string.h>

#define WARM_BYTES (512u << 10) // of a generated burst of large packets
#define WARM_LEAST 8

int dqi_tx_take_burst(dq_queue *q, uint32_t n, dq_burst **out) {
    if (!q->bursts) return DQ_NOT_SUPPORTED;
    dq_burst *b = dqi_burst_get(q->bursts);
    if (!b) return DQ_NO_FREE_BURST_BUFFERS;
    int err = dqi_burst_fill(b, q->conf.regions, q->conf.n_regions, n);
    if (err != DQ_OK) {
        b->n = b->n_bufs = 0;
        dq_burst_unref(b);
        return err;
    }
    b->queue = q;
    b->payload = q->iface->ops->payload;
    *out = b;
    return DQ_OK;
}

// Marks b's buffers as no longer holding the template.
static void unstamp(dq_queue *q, const dq_burst *b) {
    const dq_region *r = q->conf.regions[0];
    for (uint32_t i = 0; i < b->n && q->tx.stamped.places; i++) // forwarded packets are in other buffers
        if (b->bufs[0][i] - r->first_id < r->conf.num_bufs)
            q->tx.stamped.places[b->bufs[0][i] - r->first_id] = 0;
}

int dq_tx_alloc(dq_queue *q, uint32_t n, dq_burst **out) {
    if (q->conf.dir != DQ_TX || n == 0 || n > q->conf.batch_size) return DQ_INVALID_PARAMETER;
    int err = dqi_tx_take_burst(q, n, out);
    if (err != DQ_OK) return err;
    dq_burst *b = *out;
    unstamp(q, b); // the caller overwrites them
    for (uint32_t s = 0; s < b->nseg; s++)
        memset(b->len[s], 0, n * sizeof(uint32_t));
    memset(b->flow, 0, n * sizeof *b->flow);
    for (uint32_t i = 0; i < n; i++)
        b->ts[i] = DQ_NO_TIME;
    return DQ_OK;
}

static void count_in(dq_queue *q, uint32_t n, uint64_t bytes) {
    dqi_add_shared(&q->c.in, n);
    dqi_add_shared(&q->c.in_bytes, bytes);
    dqi_add_shared(&q->c.bursts, 1);
}

// Whether the caller is the task that polls q. Before its first wait a task is unknown: that wait sends.
static bool is_mine(const dq_queue *q) {
    const dqi_poller *p = q->poller;
    return q->conf.direct && p && !dqi_virtual(q->session) &&
           atomic_load_explicit(&p->task, memory_order_relaxed) == dqi_self();
}

int dqi_tx_reaches(dq_queue *q, uint32_t device_only, const dq_queue *from, dq_diag *diag) {
    if ((device_only & ~q->device_only) == 0) return DQ_OK;
    uint32_t others = 0; // not on a GPU
    for (uint32_t k = 0; k < from->conf.n_regions; k++)
        others |= (uint32_t)!from->conf.regions[k]->gpu << k;
    if ((device_only & ~q->device_only & others) == 0)
        return dqi_tx_reach_gpu(q, device_only & ~q->device_only, from->conf.regions, diag);
    uint32_t s = (uint32_t)__builtin_ctz(device_only & ~q->device_only);
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "queue %s can't send the %s segment of queue %s's packets, which lies in region %s, where the "
        "CPU can't read it: hint: a queue whose own regions are such memory can",
        q->conf.name, dq_ordinal(s), from->conf.name, from->conf.regions[s]->conf.name);
}

int dqi_tx_put(dq_queue *q, dq_burst *b) {
    if (q->conf.dir != DQ_TX || b->nseg != q->conf.n_regions || b->session != q->session)
        return DQ_INVALID_PARAMETER;
    if ((b->device_only & ~q->device_only) && !dqi_tx_takes_gpu(q, b)) return DQ_NOT_SUPPORTED;
    uint32_t n = b->n;
    uint64_t bytes = b->bytes;
    if (n == 0) {
        dq_burst_unref(b);
        return DQ_OK;
    }
    if (b->to_columns && (!dqi_burst_exclusive(b) || b->queue->iface->ops != q->iface->ops))
        dqi_burst_columns(b);
    const dqi_conn_ops *conns = q->iface->ops->conns;
    if (conns && conns->refuse && conns->refuse(q, b)) return DQ_NO_SPACE_AVAILABLE;
    dqi_gauge_add(&q->held, n);
    if (!dqi_ring_push(&q->tx.ring, b, 0)) {
        dqi_gauge_add(&q->held, -(int64_t)n);
        return DQ_NO_SPACE_AVAILABLE;
    }
    count_in(q, n, bytes); // not earlier: counters never decrease
    return DQ_OK;
}

int dq_tx_send(dq_queue *q, dq_burst *b) {
    dq_burst *owner = dqi_burst_owner(b);
    const uint32_t was = owner->flags;
    if (owner != b || !dqi_burst_exclusive(b))
        dqi_burst_share(owner); // selections and their parent stay with the caller
    int err = dqi_tx_put(q, b);
    if (err != DQ_OK) {
        if (owner->flags != was) owner->flags = was;
        return err;
    }
    if (is_mine(q) && q->session->state == DQI_STARTED) {
        dqi_poller *p = q->poller;
        dqi_poller_begin(p);
        dqi_tx_poll(q);
        dqi_poller_end(p);
    } else
        dqi_queue_kick(q);
    return DQ_OK;
}

// Returns how many packets of len bytes a burst may have and stay in the core's cache: the pool reuses the
// most recent buffers, so the next burst finds them there.
static uint32_t warm_packets(uint32_t len) {
    uint32_t n = WARM_BYTES / (len + DQ_HEADROOM);
    return n > WARM_LEAST ? n : WARM_LEAST;
}

// Returns the checksums of the transmission that the device computes: those it supports, if no flow modifies
// frames.
static dqi_sums left_to_device(const dq_queue *q, const dqi_tx_acts *acts) {
    dqi_sums s = dqi_template_sums(q->tx.gen);
    return acts || (s.has & ~q->tx.device_sums) ? (dqi_sums){0} : s;
}

void dqi_tx_share_region(const dq_session *s, const dq_region *r) {
    for (uint32_t k = 0; k < s->n_ifaces; k++)
        for (uint32_t j = 0; j < s->ifaces[k]->n_tx; j++) {
            dq_queue *q = s->ifaces[k]->tx[j];
            bool known =
                !q->tx.stamped.places || atomic_load_explicit(&q->tx.unstamped, memory_order_relaxed);
            if (!known && q->conf.regions[0] == r) atomic_store(&q->tx.unstamped, true);
        }
}

// Returns the next burst to send, from the ring or generated from the template; NULL: none now.
static dq_burst *next_burst(dq_queue *q, const dqi_tx_acts *acts, int64_t now) {
    void *p;
    uint64_t left = atomic_load_explicit(&q->tx.gen_left, memory_order_relaxed);
    bool queued = dqi_ring_pop(&q->tx.ring, &p, NULL), busy = queued || (q->tx.gen && left > 0);
    if (busy && !atomic_load_explicit(&q->tx.busy, memory_order_relaxed)) dqi_pace_idle(q, now);
    atomic_store_explicit(&q->tx.busy, busy, memory_order_relaxed);
    q->tx.made = false;
    if (queued) return p;
    if (!busy) return NULL;
    uint32_t len = dqi_template_len(q->tx.gen);
    uint32_t n = q->conf.batch_size, bufs = q->conf.regions[0]->conf.num_bufs;
    if (n > bufs) n = bufs;
    if (n > warm_packets(len)) n = warm_packets(len);
    if (n > left) n = (uint32_t)left;
    n = dqi_pace_allow(q, now, len, n);
    dq_burst *b;
    if (n == 0) return NULL;
    int err = dqi_tx_take_burst(q, n, &b);
    // Receivers that share the region may hold so many buffers that a full batch never becomes free.
    if (err == DQ_NO_FREE_PACKET_BUFFERS && n > 1) err = dqi_tx_take_burst(q, n /= 2, &b);
    if (err != DQ_OK) { // all are in use by the receiver: retry soon
        if (!dqi_virtual(q->session)) q->next_ns = 0;
        return NULL;
    }
    b->sums = left_to_device(q, acts);
    bool stamped = q->tx.stamped.places && !atomic_load_explicit(&q->tx.unstamped, memory_order_relaxed);
    dqi_template_write(q->tx.gen, b, stamped ? &q->tx.stamped : NULL);
    q->tx.made = true;
    dqi_gauge_add(&q->held, n);
    count_in(q, n, b->bytes);
    return b;
}

const char *dqi_tx_writes(const dq_queue *q) {
    return q->conf.tx_eth_src ? "the source address into frames (tx_eth_src)" : NULL;
}

// Sets the source address of every frame to the interface's MAC, unless the burst has other readers.
static void set_eth_src(dq_queue *q, dq_burst *b) {
    uint8_t mac[6];
    if (!dqi_burst_exclusive(b) || b->parent || dq_iface_mac(q->iface, mac) != DQ_OK) return;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->len[0][i] >= 12) memcpy(dqi_bytes(b, 0, i) + 6, mac, 6);
}

// Returns how many packets of b from tx_pos on may leave now; sets next_ns if none may.
static uint32_t allowed(dq_queue *q, int64_t now) {
    dq_burst *b = q->tx.cur;
    uint32_t n = b->n - q->tx.pos;
    if (b->timed) {
        if (n > q->conf.batch_size)
            n = q->conf.batch_size; // the rest of a larger forwarded burst follows later
        const int64_t *at = b->tx_time + q->tx.pos;
        uint32_t k = 0;
        for (; k < n && at[k] <= now + q->tx.ahead_ns; k++)
            q->tx.timing->asked[k] = at[k];
        if (k == 0 && at[0] - q->tx.ahead_ns < q->next_ns) q->next_ns = at[0] - q->tx.ahead_ns;
        n = k;
    }
    return n > 0 ? dqi_pace_count(q, now, b, q->tx.pos, n) : 0;
}

// Accounts k sent packets of the transmission.
static void count_made(dq_queue *q, uint32_t k) {
    uint64_t left = atomic_load_explicit(&q->tx.gen_left, memory_order_relaxed);
    if (left != UINT64_MAX) atomic_store_explicit(&q->tx.gen_left, left - k, memory_order_relaxed);
}

// Returns the next burst ready to send, without packets if all were dropped. NULL: none now.
static dq_burst *take_next(dq_queue *q, int64_t now) {
    dqi_tx_acts *acts = dqi_tx_acts_hold(q->iface);
    bool coming = dqi_tx_is_bringing(q);
    dq_burst *b = coming ? dqi_tx_brought(q) : q->tx.shared ? q->tx.shared : next_burst(q, acts, now);
    if (b && (acts || q->conf.tx_eth_src)) dqi_burst_columns(b);
    // A copy in progress continues even if the last flow has been deleted since.
    bool own = !coming && (acts || q->tx.shared || (b && (b->device_only & ~q->device_only)));
    if (b && own) b = dqi_tx_own(q, b);
    if (b && (own || coming)) unstamp(q, b);
    if (b && q->conf.tx_eth_src) set_eth_src(q, b);
    uint32_t dropped = b && acts ? dqi_tx_actions(q, acts, b) : 0;
    if (q->tx.made && dropped > 0) count_made(q, dropped);
    dqi_tx_acts_let_go(acts);
    return b;
}

// Accounts n packets that have left; timed: with send times.
static void account(dq_queue *q, int64_t now, uint32_t n, bool timed) {
    dqi_gauge_add(&q->held, -(int64_t)n);
    if (q->tx.made) count_made(q, n);
    if (timed) dqi_tx_accuracy_timed(q->tx.timing, &q->c, now, q->tx.since, n);
    dqi_pace_spend(q, now, n);
    if (timed) q->tx.timing->fresh = true; // gaps due to send times are not pacing errors
}

// Whether there is nothing to send: the poll then skips the clock.
static bool is_idle(dq_queue *q) {
    bool made = q->tx.gen && atomic_load_explicit(&q->tx.gen_left, memory_order_relaxed) > 0;
    if (made || !dqi_tx_idle(q)) return false;
    atomic_store_explicit(&q->tx.busy, false, memory_order_relaxed);
    q->tx.made = false;
    return true;
}

int dqi_tx_poll(dq_queue *q) {
    q->next_ns = INT64_MAX;
    int work = q->iface->ops->reap ? q->iface->ops->reap(q) : 0;
    for (int round = 0; round < 4 && !is_idle(q); round++) {
        int64_t now = q->tx.now_ns = dq_now(q->session);
        if (!q->tx.cur) {
            q->tx.cur = take_next(q, now);
            q->tx.pos = 0;
            q->tx.since = now;
            if (!q->tx.cur) {
                work += dqi_virtual(q->session) && dqi_tx_is_bringing(q); // virtual time must not advance
                break;
            }
            if (q->tx.cur->n == 0) {
                dq_burst_unref(q->tx.cur);
                q->tx.cur = NULL;
                work++;
                continue;
            }
        }
        uint32_t n = allowed(q, now);
        if (n == 0) break;
        uint32_t end = q->tx.cur->n;
        bool timed = q->tx.cur->timed;
        int k = q->iface->ops->tx(q, q->tx.cur, q->tx.pos, n);
        if (k <= 0) break;
        account(q, now, (uint32_t)k, timed);
        q->tx.pos += (uint32_t)k;
        if (q->tx.pos == end) q->tx.cur = NULL; // the engine has consumed the reference
        work++;
        if (q->tx.made) break; // let receivers process it while it is cached
    }
    if (work > 0) q->next_ns = 0;
    return work;
}

bool dqi_tx_idle(const dq_queue *q) {
    return !q->tx.cur && !q->tx.shared && !dqi_tx_is_bringing(q) && dqi_ring_level(&q->tx.ring) == 0;
}

static void drop_burst(dq_queue *q, dq_burst *b, uint32_t from) {
    dqi_drop(&q->c, DQ_DROP_STOPPED, b->n - from);
    dqi_gauge_add(&q->held, -(int64_t)(b->n - from));
    dq_burst_unref(b);
}

void dqi_tx_drop_rest(dq_queue *q) {
    void *p;
    dq_burst *last = dqi_tx_brought_last(q);
    if (last) drop_burst(q, last, 0);
    if (q->tx.cur) drop_burst(q, q->tx.cur, q->tx.pos);
    if (q->tx.shared) drop_burst(q, q->tx.shared, q->tx.shared_pos);
    q->tx.cur = q->tx.shared = NULL;
    while (dqi_ring_pop(&q->tx.ring, &p, NULL))
        drop_burst(q, p, 0);
}

int dq_tx_transmit(dq_queue *q, dq_template *t, uint64_t count) {
    if (q->conf.dir != DQ_TX) return DQ_INVALID_PARAMETER;
    if (t && (q->conf.n_regions != 1 || dqi_template_len(t) > q->conf.regions[0]->conf.buf_size))
        return DQ_INVALID_PARAMETER;
    dqi_poller_hold(q->poller);
    dqi_tx_accuracy_end(q);
    dqi_template_ref(t);
    dq_template_unref(q->tx.gen);
    q->tx.gen = t;
    if (++q->tx.stamped.stamp == 0) q->tx.stamped.stamp = 1; // 0: none
    q->tx.busy = q->tx.made = false;
    atomic_store(&q->tx.gen_left, t == NULL ? 0 : count == 0 ? UINT64_MAX : count);
    dqi_poller_release(q->poller);
    dqi_queue_kick(q);
    return DQ_OK;
}

int dq_tx_device_times(const dq_queue *q) { return q->tx.ahead_ns > 0; }

uint64_t dq_tx_remaining(const dq_queue *q) { return atomic_load(&q->tx.gen_left); }

uint64_t dqi_queue_held(const dq_queue *q) {
    uint64_t inside =
        q->iface->engine && q->iface->ops->held ? q->iface->ops->held((dq_queue *)(uintptr_t)q) : 0;
    return (uint64_t)dqi_gauge_get(&q->held) + inside;
}

uint64_t dq_tx_waiting(const dq_queue *q) {
    uint64_t left = dq_tx_remaining(q);
    return left == UINT64_MAX ? left : left + dqi_queue_held(q);
}
