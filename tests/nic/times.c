// times.c: a card with a clock: it stamps what it receives, and holds what it sends until its time.
#include "nic.h"

#include <pthread.h>
#include <rte_mbuf_dyn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BEGAN_NS INT64_C(123456789012345) // on the clock when the machine started
#define TICKS    7919                     // in
#define TICKS_NS 25000                    // so many ns
#define HELD     1024
#define PAUSE_US 50

// Frames that wait to be sent by one queue.
typedef struct held {
    nic_queue *q;
    struct rte_mbuf *frames[HELD];
    uint32_t first, n;
} held;

static held all[NIC_PORTS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *record;

// ---- the clock --------------------------------------------------------------------------------------------

static int64_t ns_of(clockid_t id) {
    struct timespec t;
    clock_gettime(id, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static uint64_t ticks_now(void) {
    return (uint64_t)((__int128)(ns_of(CLOCK_MONOTONIC) + BEGAN_NS) * TICKS / TICKS_NS);
}

// The time since the epoch at which the clock shows this.
static int64_t epoch_of(uint64_t ticks) {
    int64_t mono = (int64_t)((__int128)ticks * TICKS_NS / TICKS) - BEGAN_NS;
    return mono + ns_of(CLOCK_REALTIME) - ns_of(CLOCK_MONOTONIC);
}

int rte_eth_read_clock(uint16_t port, uint64_t *clock) {
    if (!nic_has("stamps") && !nic_has("waits")) return NIC_NEXT(rte_eth_read_clock)(port, clock);
    *clock = ticks_now();
    return 0;
}

// ---- the record -------------------------------------------------------------------------------------------

void nic_write_down(const char *what, int64_t number) {
    const char *path = getenv("DAQIRI_NIC_RECORD");
    if (!path) return;
    if (!record) record = fopen(path, "w");
    if (!record) nic_die("no record");
    if (number)
        fprintf(record, "%s %lld\n", what, (long long)number);
    else
        fprintf(record, "%s\n", what);
    fflush(record);
}

static int field_of(const char *flag, uint64_t *mask) {
    int bit = rte_mbuf_dynflag_lookup(flag, NULL),
        at = rte_mbuf_dynfield_lookup(RTE_MBUF_DYNFIELD_TIMESTAMP_NAME, NULL);
    if (bit < 0 || at < 0) nic_die("the field for times was not registered");
    *mask = RTE_BIT64(bit);
    return at;
}

// ---- packets ----------------------------------------------------------------------------------------------

void nic_stamp(struct rte_mbuf **frames, uint16_t n) {
    uint64_t flag = 0;
    int at = n > 0 ? field_of(RTE_MBUF_DYNFLAG_RX_TIMESTAMP_NAME, &flag) : 0;
    for (uint16_t k = 0; k < n; k++) {
        uint64_t ticks = ticks_now();
        *RTE_MBUF_DYNFIELD(frames[k], at, rte_mbuf_timestamp_t *) = ticks;
        frames[k]->ol_flags |= flag;
        nic_write_down("received", epoch_of(ticks));
    }
}

// Sends the first frames whose time has come; the caller has the lock.
static void send_due(held *h) {
    uint64_t flag, now = ticks_now();
    int at = field_of(RTE_MBUF_DYNFLAG_TX_TIMESTAMP_NAME, &flag);
    while (h->n > 0) {
        struct rte_mbuf *m = h->frames[h->first];
        uint64_t due = *RTE_MBUF_DYNFIELD(m, at, rte_mbuf_timestamp_t *);
        bool timed = m->ol_flags & flag;
        if (timed && due > now) return;
        if (h->q->driver(h->q->data, &m, 1) != 1) return;
        if (timed) nic_write_down("asked", epoch_of(due));
        h->first = (h->first + 1) % HELD;
        h->n--;
    }
}

static void *look(void *arg) {
    held *h = arg;
    for (;; usleep(PAUSE_US)) {
        pthread_mutex_lock(&lock);
        if (h->q) send_due(h);
        pthread_mutex_unlock(&lock);
    }
    return NULL;
}

uint16_t nic_hold(nic_queue *q, struct rte_mbuf **frames, uint16_t n) {
    static bool started[NIC_PORTS];
    held *h = &all[q->port];
    pthread_t thread;
    uint16_t k = 0;
    pthread_mutex_lock(&lock);
    if (h->q && h->q != q) nic_die("several queues that wait");
    h->q = q;
    if (!started[q->port]) pthread_create(&thread, NULL, look, h);
    started[q->port] = true;
    for (; k < n && h->n < HELD; k++, h->n++)
        h->frames[(h->first + h->n) % HELD] = frames[k];
    pthread_mutex_unlock(&lock);
    return k;
}

void nic_hold_end(uint16_t port) {
    held *h = &all[port];
    pthread_mutex_lock(&lock);
    if (h->q) send_due(h);
    for (; h->n > 0; h->n--, h->first = (h->first + 1) % HELD) {
        rte_pktmbuf_free(h->frames[h->first]);
        nic_write_down("lost", 0);
    }
    h->q = NULL;
    pthread_mutex_unlock(&lock);
}
