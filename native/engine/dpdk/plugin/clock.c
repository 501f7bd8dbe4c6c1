// clock.c: the device's clock, used for receive timestamps and scheduled transmission. The length of its
// ticks is unknown, so it is compared with the session's clock at intervals; the relation is a line through
// the newest and an old reading of both.
#include "dpdk.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <rte_mbuf_dyn.h>
#include <time.h>

#define FIRST_NS   2000000   // interval between the first two readings; doubled each time
#define EVERY_NS   100000000 // up to this interval
#define TRIES      4         // attempts per reading, of which the fastest is used
#define CLOSE_NS   50000     // later readings that take longer are discarded
#define AHEAD_NS   10000000  // lead time with which packets are passed to the device
#define AFTER_NS   1000000   // delay after the last packet before the device is stopped
#define TX_OFFLOAD RTE_ETH_TX_OFFLOAD_SEND_ON_TIMESTAMP
#define RX_OFFLOAD RTE_ETH_RX_OFFLOAD_TIMESTAMP

// ---- readings ---------------------------------------------------------------------------------------------

// Reads both clocks at the same time, accurate to *within ns; returns false if the device's cannot be read.
static bool look(const dpdk_port *d, const dq_session *s, clock_reading *r, int64_t *within) {
    *within = INT64_MAX;
    for (int k = 0; k < TRIES; k++) {
        uint64_t ticks;
        int64_t before = host->now(s);
        if (rte_eth_read_clock(d->id, &ticks) != 0) return false;
        int64_t took = host->now(s) - before;
        if (took >= *within) continue;
        *within = took;
        *r = (clock_reading){ticks, before + took / 2};
    }
    return true;
}

static void take(device_clock *c, clock_reading r) {
    const clock_reading *old = &c->seen[c->n < CLOCK_READINGS ? 0 : c->n % CLOCK_READINGS];
    if (c->n > 0 && r.ticks != old->ticks)
        c->ns_per_tick = (double)(r.ns - old->ns) / (double)(int64_t)(r.ticks - old->ticks);
    c->seen[c->n++ % CLOCK_READINGS] = r;
    c->last = r;
    c->next = r.ns + (c->n < 8 ? RTE_MIN(FIRST_NS << c->n, EVERY_NS) : EVERY_NS);
}

void clock_follow_slow(const dpdk_port *d, const dq_session *s, device_clock *c, int64_t now) {
    clock_reading r = {0};
    int64_t within;
    if (look(d, s, &r, &within) && within < CLOSE_NS)
        take(c, r);
    else
        c->next = now + FIRST_NS;
}

bool clock_start(const dpdk_port *d, const dq_session *s, device_clock *c) {
    clock_reading r = {0};
    int64_t within;
    *c = (device_clock){0};
    for (int k = 0; k < 2; k++) {
        if (k > 0) nanosleep(&(struct timespec){.tv_nsec = FIRST_NS}, NULL);
        if (!look(d, s, &r, &within)) return false;
        take(c, r);
    }
    return c->ns_per_tick > 0;
}

// ---- capabilities -----------------------------------------------------------------------------------------

static void say(const dqi_port *p, const char *key, const char *why) {
    host->note(p->iface->session, "interface %s: %s: %s: software does it", p->iface->conf.name, key, why);
}

static const char *cannot(const dpdk_port *d, bool offered, const char *what) {
    uint64_t ticks;
    if (!offered) return what;
    return rte_eth_read_clock(d->id, &ticks) == 0 ? NULL : "the device's clock can't be read";
}

void clock_choose(dqi_port *p, dpdk_port *d, struct rte_eth_conf *conf) {
    const dq_iface *i = p->iface;
    if (i->conf.hardware_timestamps && i->n_rx > 0 && p->stamps != DQ_STAMPS_FILE) {
        const char *why = cannot(d, d->info.rx_offload_capa & RX_OFFLOAD, "the device stamps no packets");
        d->stamps = !why && rte_mbuf_dyn_rx_timestamp_register(&d->ts_offset, &d->ts_flag) == 0;
        if (!why && !d->stamps) why = "DPDK has no room for times";
        if (why) say(p, "hardware_timestamps", why);
    }
    if (i->conf.accurate_send && i->n_tx > 0) {
        const char *why =
            cannot(d, d->info.tx_offload_capa & TX_OFFLOAD, "the device sends at no given times");
        d->waits = !why && rte_mbuf_dyn_tx_timestamp_register(&d->wait_offset, &d->wait_flag) == 0;
        if (!why && !d->waits) why = "DPDK has no room for times";
        if (why) say(p, "accurate_send", why);
    }
    if (d->stamps) p->stamps = DQ_STAMPS_HARDWARE;
    conf->rxmode.offloads |= d->stamps ? RX_OFFLOAD : 0;
    conf->txmode.offloads |= d->waits ? TX_OFFLOAD : 0;
    for (uint32_t k = 0; d->waits && k < i->n_tx; k++)
        i->tx[k]->tx.ahead_ns = AHEAD_NS;
}

int clock_begin(const dqi_port *p, dpdk_port *d) {
    device_clock c;
    if (!d->stamps && !d->waits) return 0;
    if (!clock_start(d, p->iface->session, &c)) return -EIO;
    for (uint32_t k = 0; k < d->n_rxq; k++)
        d->queues[k].clock = c;
    for (uint32_t k = 0; k < d->n_txq; k++)
        d->txs[k].clock = c;
    return 0;
}

// ---- packets ----------------------------------------------------------------------------------------------

void clock_ask(const dpdk_port *d, tx_state *t, struct rte_mbuf **frames, uint32_t n, const int64_t *at,
               int64_t now) {
    for (uint32_t k = 0; k < n; k++) {
        struct rte_mbuf *m = frames[k];
        m->ol_flags &= ~d->wait_flag;
        if (!at || at[k] <= now) continue;
        m->ol_flags |= d->wait_flag;
        *RTE_MBUF_DYNFIELD(m, d->wait_offset, rte_mbuf_timestamp_t *) = clock_ticks(&t->clock, at[k]);
        t->last_time = at[k];
    }
}

void clock_end(const dqi_port *p, const dpdk_port *d) {
    int64_t last = 0, now = host->now(p->iface->session);
    for (uint32_t k = 0; d->waits && d->txs && k < d->n_txq; k++)
        last = RTE_MAX(last, d->txs[k].last_time);
    if (last + AFTER_NS > now)
        nanosleep(&(struct timespec){.tv_nsec = RTE_MIN(last - now, AHEAD_NS) + AFTER_NS}, NULL);
}
