// engine_dpdk.c: the dpdk engine's part in this binary: loads libdaqiri_dpdk.so, whose driver serves the
// common part of raw Ethernet (ethernet.h).
#include "core/dq_burst.h"
#include "core/err.h"
#include "core/region.h"
#include "engine/dpdk/dpdk_abi.h"
#include "packet/layers.h"
#include "pipeline/actions.h"
#include "pipeline/engine.h"
#include "pipeline/queue.h"
#include "pipeline/responder.h"
#include "pipeline/session.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIBRARY  "libdaqiri_dpdk.so"
#define BUSY_NS  1000000 // time after a packet during which an idle queue is polled continuously
#define PAUSE_NS 100000  // polling interval afterwards

// ---- library ----------------------------------------------------------------------------------------------

static const dqi_dpdk_host table = {
    .seal = DQI_DPDK_SEAL,
    .fail = dqi_fail,
    .note = dqi_note,
    .bufs_alloc = dqi_bufs_alloc,
    .bufs_some = dqi_bufs_some,
    .bufs_free = dqi_bufs_free,
    .unref = dq_burst_unref,
    .drop = dqi_drop,
    .now = dq_now,
    .rx_actions_of = dqi_rx_actions_of,
    .layers_outer = dqi_layers_outer,
    .queue_error = dqi_queue_error_add,
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const dqi_dpdk_driver *driver;

// Returns the k-th candidate path, NULL after the last.
static const char *place(int k, char *path, size_t len) {
    const char *named = getenv("DAQIRI_DPDK");
    if (named && *named) return k == 0 ? named : NULL;
    char exe[3072];
    ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
    if (n <= 0 || k > 1) return NULL;
    exe[n] = 0;
    char *slash = strrchr(exe, '/');
    if (slash) *slash = 0;
    snprintf(path, len, "%s/%s" LIBRARY, exe, k == 0 ? "" : "../lib/");
    return path;
}

// Finds the first candidate that exists; stores it in path, or the first candidate if none exists.
static int find_library(const char *iface, char *path, size_t len, dq_diag *diag) {
    char here[4096];
    const char *p;
    for (int k = 0; (p = place(k, here, sizeof here)) != NULL; k++) {
        if (k == 0) snprintf(path, len, "%s", p);
        if (access(p, F_OK) != 0) continue;
        snprintf(path, len, "%s", p);
        return DQ_OK;
    }
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "interface %s: engine dpdk needs %s, which is not there; hint: install DPDK (apt-get install "
        "libdpdk-dev) and build with make, or set DAQIRI_DPDK to its path",
        iface, path);
}

int dq_dpdk_there(const char *iface, dq_diag *diag) {
    char path[4096] = LIBRARY;
    return find_library(iface, path, sizeof path, diag);
}

// Loads the driver once. Requires the lock.
static int load(const dq_iface *i, dq_diag *diag) {
    char path[4096] = LIBRARY;
    int err = find_library(i->conf.name, path, sizeof path, diag);
    if (err != DQ_OK) return err;
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!lib)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "interface %s: engine dpdk: %s; hint: apt-get install libdpdk-dev", i->conf.name,
                        dlerror());
    dqi_dpdk_entry_fn *entry;
    *(void **)&entry = dlsym(lib, DQI_DPDK_ENTRY);
    driver = entry ? entry(&table) : NULL;
    if (driver) return DQ_OK;
    dlclose(lib);
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "interface %s: engine dpdk: %s was built for another version of this program; hint: make",
                    i->conf.name, path);
}

static int need_driver(const dq_iface *i, dq_diag *diag) {
    pthread_mutex_lock(&lock);
    int err = driver ? DQ_OK : load(i, diag);
    pthread_mutex_unlock(&lock);
    return err;
}

static int dpdk_open(dq_iface *i, dq_diag *diag) {
    int err = need_driver(i, diag);
    return err == DQ_OK ? dqi_eth_open(i, &driver->port, diag) : err;
}

static bool dpdk_reaches_gpu(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                             dq_diag *why) {
    return need_driver(i, why) == DQ_OK && driver->reaches_gpu(i, q, seg, at, bytes, why);
}

// ---- receive ----------------------------------------------------------------------------------------------

// Fast path without rules and responder: all packets belong to the only queue and go from the device directly
// into its burst. The lock is for a queue that is being added and reads the device queue, too.
static int receive_straight(dqi_port *p, dq_queue *q, dq_burst *b, uint32_t room) {
    uint64_t had = b->bytes;
    b->queue = q;
    if (!dqi_try_lock(&p->queues[0].busy)) return 0;
    uint32_t n = driver->receive(p, b, room);
    dqi_unlock(&p->queues[0].busy);
    if (n == 0) return 0;
    uint64_t bytes = b->bytes - had;
    dqi_add_shared(&p->c.in, n);
    dqi_add_shared(&p->c.in_bytes, bytes);
    dqi_add_shared(&p->c.out, n);
    dqi_add_shared(&p->c.out_bytes, bytes);
    dqi_add_shared(&q->c.in, n);
    dqi_add_shared(&q->c.in_bytes, bytes);
    return (int)n;
}

// Schedules the next poll: continuous for a while after a packet, then at intervals or when a descriptor
// becomes readable.
static void look_again(dq_queue *q, int n, int64_t now) {
    if (n > 0 || q->tx.now_ns == 0) q->tx.now_ns = now; // time of the last packet
    bool busy = now - q->tx.now_ns < BUSY_NS;
    if (!busy && dqi_port_of(q->iface)->pollable && q->rx.n_pipes > 0) return;
    int64_t next = busy ? now : now + PAUSE_NS;
    if (next < q->next_ns) q->next_ns = next;
}

static int dpdk_rx(dq_queue *q, dq_burst **b, uint32_t room) {
    dqi_port *p = dqi_port_of(q->iface);
    bool alone = q->iface->n_rx == 1 && q == q->iface->rx[0]; // a queue being added is not listed yet
    bool plain = p->direct && alone && room > 0 && !dqi_responder_of(q->iface) && !dqi_flows_any(&p->flows) &&
                 !q->iface->conf.flow_isolation && !dqi_flows_drops(&p->flows);
    int n = plain ? receive_straight(p, q, *b, room) : 0;
    int64_t now = n > 0 ? (*b)->ts[(*b)->n - (uint32_t)n] : dq_now(q->session);
    if (n == 0) {
        dqi_burst_columns(*b);
        n = dqi_eth_rx(q, b, room);
    }
    if (room > 0 && (n > 0 || q->session->state < DQI_STOPPED)) look_again(q, n, now);
    return n;
}

const dqi_engine_ops dqi_engine_dpdk = {
    .name = "dpdk",
    .open = dpdk_open,
    .reaches_gpu = dpdk_reaches_gpu,
    .rx = dpdk_rx,
    DQI_DEVICE_OPS,
};
