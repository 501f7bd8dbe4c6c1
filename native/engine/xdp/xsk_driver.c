// xsk_driver.c: AF_XDP driver of ethernet.h: device properties, assignment of regions, configuration of the
// eBPF program.
#include "engine/xdp/xsk_driver.h"
#include "core/err.h"
#include "core/region.h"
#include "engine/ethernet/kernel_groups.h"
#include "engine/xdp/steer_map.h"
#include "engine/xdp/xsk.h"
#include "packet/layers.h"
#include "pipeline/actions.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if.h>
#include <linux/if_arp.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SOL_XDP
#define SOL_XDP 283
#endif

unsigned if_nametoindex(const char *); // net/if.h and linux/if.h exclude each other

// ---- the device -------------------------------------------------------------------------------------------

static bool ask(const char *device, unsigned long what, struct ifreq *r) {
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    snprintf(r->ifr_name, sizeof r->ifr_name, "%.15s", device);
    bool ok = fd >= 0 && ioctl(fd, what, r) == 0;
    if (fd >= 0) close(fd);
    return ok;
}

uint32_t xsk_count_queues(const char *device) {
    struct ethtool_channels c = {.cmd = ETHTOOL_GCHANNELS};
    struct ifreq r = {.ifr_data = (void *)&c};
    bool ok = ask(device, SIOCETHTOOL, &r) && c.rx_count + c.combined_count > 0;
    return ok ? c.rx_count + c.combined_count : 1;
}

uint32_t xsk_mtu_of(const char *device) {
    struct ifreq r = {0};
    return ask(device, SIOCGIFMTU, &r) ? (uint32_t)r.ifr_mtu : 1500;
}

bool xsk_takes_rules(const char *device) {
    struct ethtool_rxnfc n = {.cmd = ETHTOOL_GRXCLSRLCNT};
    struct ifreq r = {.ifr_data = (void *)&n};
    return ask(device, SIOCETHTOOL, &r);
}

// Returns true if the device delivers frames sent by another kernel, which may have incomplete checksums.
static bool hears_kernels(const char *device) {
    static const char *const drivers[] = {"veth", "tun", "virtio_net"};
    struct ethtool_drvinfo d = {.cmd = ETHTOOL_GDRVINFO};
    struct ifreq r = {.ifr_data = (void *)&d};
    for (size_t k = 0; k < sizeof drivers / sizeof *drivers && ask(device, SIOCETHTOOL, &r); k++)
        if (strcmp(d.driver, drivers[k]) == 0) return true;
    return false;
}

// Returns true if the device strips VLAN tags before the program runs; the tags are lost.
static bool loses_tags(const char *device) {
    struct ethtool_value v = {.cmd = ETHTOOL_GFLAGS};
    struct ifreq r = {.ifr_data = (void *)&v};
    return ask(device, SIOCETHTOOL, &r) && v.data & ETH_FLAG_RXVLAN;
}

static bool is_ethernet(const char *device) {
    struct ifreq r = {0};
    return ask(device, SIOCGIFHWADDR, &r) &&
           (r.ifr_hwaddr.sa_family == ARPHRD_ETHER || r.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK);
}

// Opens a socket that gets an error when the device goes down and receives no frames; -1 on failure.
static int watch(int index) {
    enum { NO_TYPE = 0xffff };
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = NO_TYPE, .sll_ifindex = index};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd >= 0) bind(fd, (struct sockaddr *)&at, sizeof at);
    return fd;
}

// Enables promiscuous mode; closing the socket disables it.
static int see_all(const xsk_port *x) {
    struct packet_mreq m = {.mr_ifindex = x->index, .mr_type = PACKET_MR_PROMISC};
    return setsockopt(x->watch, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) == 0 ? 0 : errno;
}

static bool is_gone(const xsk_port *x) {
    struct sockaddr_ll at = {0};
    socklen_t len = sizeof at;
    return getsockname(x->watch, (struct sockaddr *)&at, &len) == 0 && at.sll_ifindex != x->index;
}

int dq_iface_xdp(dq_iface *i, const dq_xdp *x) {
    dq_xdp *own = malloc(sizeof *own);
    if (!own) return DQ_ESYS - ENOMEM;
    *own = *x;
    free(i->given);
    i->given = own;
    return DQ_OK;
}

dq_xdp *xsk_given(const dq_iface *i) {
    static dq_xdp nothing;
    return i->given ? i->given : &nothing;
}

// ---- open and close ---------------------------------------------------------------------------------------

// Checks that AF_XDP can be used: a program is attached and the device has at most DQ_MAX_QUEUES queues.
static int check_program(const dq_iface *i, uint32_t n_queues, dq_diag *diag) {
    const dq_xdp *x = xsk_given(i);
    if (x->refused == EBUSY)
        return dqi_fail(
            diag, DQ_ESYS - EBUSY,
            "interface %s: %s has an XDP program already: another session or program uses it; hint: ip "
            "link show %s",
            i->conf.name, i->conf.address, i->conf.address);
    if (!x->steer)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: no AF_XDP: %s", i->conf.name,
                        x->why[0] ? x->why : "no eBPF program");
    if (n_queues > DQ_MAX_QUEUES)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "interface %s: no AF_XDP: %s has %u receive queues, at most %d can be read; hint: ethtool -L %s "
            "combined %d",
            i->conf.name, i->conf.address, n_queues, DQ_MAX_QUEUES, i->conf.address, DQ_MAX_QUEUES);
    return DQ_OK;
}

// Assigns a transmit queue to the k-th socket, modulo their number. Queues share sockets.
static int open_tx(dq_queue *q, xsk_port *x, uint32_t k, dq_diag *diag) {
    xsk_tx *t = calloc(1, sizeof *t);
    if (!t) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", q->iface->conf.name);
    t->socket = &x->sockets[k % x->n];
    q->engine = t;
    return DQ_OK;
}

static int open_queues(const dq_iface *i, xsk_port *x, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t k = 0; k < i->n_tx && err == DQ_OK; k++)
        err = open_tx(i->tx[k], x, k, diag);
    return err;
}

static int xsk_tx_open(dq_queue *q, dq_diag *diag) {
    return open_tx(q, dqi_port_of(q->iface)->state, q->conf.id, diag);
}

static void xsk_tx_close(dq_queue *q) {
    free(q->engine);
    q->engine = NULL;
}

static int open_device_queues(dqi_port *p, xsk_port *x, dq_diag *diag) {
    const dq_session *s = p->iface->session;
    const dq_region *last = s->core.regions[s->core.n_regions - 1];
    x->n_bufs = last->first_id + last->conf.num_bufs;
    if (p->iface->n_rx > 0) x->with_kernel = calloc(x->n_bufs, 1);
    if (p->iface->n_rx > 0 && !x->with_kernel)
        return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", p->iface->conf.name);
    xsk_settle(p, x);
    for (uint32_t k = 0; k < x->n; k++) {
        p->queues[k].state = &x->sockets[k];
        int err =
            p->iface->n_rx > 0 ? dq_steer_socket(xsk_given(p->iface)->steer, k, x->sockets[k].fd) : DQ_OK;
        if (err != DQ_OK)
            return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: no AF_XDP: its sockets' map: %s",
                            p->iface->conf.name, dq_err_name(err));
    }
    p->n_queues = p->iface->n_rx > 0 ? x->n : 0;
    return DQ_OK;
}

static void report_how(const dq_iface *i, const xsk_port *x) {
    const char *parts = x->zero_copy ? "; a frame lies within one buffer (this driver's zero-copy)"
                                     : "; a frame lies within one buffer (longer ones need Linux 6.6)";
    dqi_note(i->session, "interface %s: AF_XDP on %s: %s, eBPF program %s, %u queue%s%s", i->conf.name,
             i->conf.address, x->zero_copy ? "zero-copy" : "the kernel copies (the driver has no zero-copy)",
             xsk_given(i)->native ? "in the driver" : "behind the driver (which supports none)", x->n,
             x->n == 1 ? "" : "s", x->frags ? "" : parts);
    if (i->n_rx > 0 && loses_tags(i->conf.address))
        dqi_note(i->session,
                 "interface %s: %s may remove VLAN tags from frames, which are then lost; hint: ethtool -K "
                 "%s rxvlan off, and where a Linux VLAN device sends over veth, txvlan off there",
                 i->conf.name, i->conf.address, i->conf.address);
    if (i->n_rx > 0)
        dqi_note(i->session, "interface %s: %s", i->conf.name,
                 i->conf.flow_isolation
                     ? "packets that match no flow go to the kernel"
                     : "the kernel receives nothing from it, ARP included, as flow_isolation is off");
}

static int xsk_open(dqi_port *p, dq_diag *diag) {
    const dq_iface *i = p->iface;
    xsk_port *x = calloc(1, sizeof *x);
    if (!x) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    p->state = x;
    x->index = (int)if_nametoindex(i->conf.address);
    x->watch = -1;
    if (x->index == 0 || !is_ethernet(i->conf.address))
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: %s is not an Ethernet device", i->conf.name,
                        i->conf.address);
    p->netdev = (uint32_t)x->index;
    snprintf(x->device, sizeof x->device, "%.15s", i->conf.address);
    x->mtu = xsk_mtu_of(x->device);
    x->n = xsk_count_queues(x->device);
    x->unfinished = hears_kernels(x->device);
    x->watch = watch(x->index);
    int err = check_program(i, x->n, diag);
    if (err == DQ_OK) err = xsk_make_plan(i, x, diag);
    if (err == DQ_OK) err = xsk_sockets_open(x, i, diag);
    if (err == DQ_OK) err = open_queues(i, x, diag);
    if (err == DQ_OK) err = open_device_queues(p, x, diag);
    if (err != DQ_OK) return err;
    dq_steer_isolate(xsk_given(i)->steer, i->conf.flow_isolation);
    if (i->n_rx > 0 && !i->conf.flow_isolation && (err = see_all(x)) != 0)
        return dqi_fail(diag, DQ_ESYS - err, "interface %s: %s: promiscuous mode: %s", i->conf.name,
                        i->conf.address, strerror(err));
    p->filters = true;
    report_how(i, x);
    xsk_report_direct(p, x);
    return DQ_OK;
}

static int xsk_start(dqi_port *p, dq_diag *diag) {
    (void)diag;
    xsk_port *x = p->state;
    for (uint32_t k = 0; x->with_kernel && k < p->n_queues; k++)
        xsk_fill(&p->queues[k]);
    if (x->with_kernel) dq_steer_run(xsk_given(p->iface)->steer, true);
    return DQ_OK;
}

static void xsk_close(dqi_port *p) {
    xsk_port *x = p->state;
    if (!x) return;
    xsk_sockets_close(x);
    if (x->watch >= 0) close(x->watch);
    for (uint32_t k = 0; k < p->iface->n_tx; k++)
        xsk_tx_close(p->iface->tx[k]);
    for (uint32_t id = 0; x->with_kernel && id < x->n_bufs; id++)
        if (x->with_kernel[id]) dqi_bufs_free(p->iface->session, &id, 1);
    free(x->with_kernel);
    free(x);
    p->state = NULL;
}

// ---- counters and rules -----------------------------------------------------------------------------------

// Adds the growth of a total to a counter of the port.
static void follow(dqi_count *c, uint64_t *seen, uint64_t total) {
    dqi_add_shared(c, total - *seen);
    *seen = total;
}

static void xsk_refresh(dqi_port *p) {
    xsk_port *x = p->state;
    if (!x || !x->with_kernel || x->stopped) return;
    uint64_t lost = 0;
    for (uint32_t k = 0; k < x->n; k++) {
        struct xdp_statistics s = {0};
        socklen_t len = sizeof s;
        if (getsockopt(x->sockets[k].fd, SOL_XDP, XDP_STATISTICS, &s, &len) == 0)
            lost += s.rx_dropped + s.rx_ring_full;
    }
    follow(&p->c.extra[DQ_EXTRA_KERNEL_DROPPED], &x->lost, lost);
    dq_steer_counts n;
    dq_steer_read(xsk_given(p->iface)->steer, &n);
    dqi_add_shared(&p->c.in, n.dropped - x->drop_all);
    follow(&p->c.in_bytes, &x->drop_all_bytes, n.dropped_bytes);
    follow(&p->c.dropped[DQ_DROP_DROP_ALL], &x->drop_all, n.dropped);
    if (x->gone || !is_gone(x)) return;
    x->gone = true;
    dqi_queue_error_add(p->iface->rx[0]->errors, ENODEV, 1);
}

// Frames have no timestamps, so the ring positions at the stop separate earlier from later frames.
static void xsk_stop(dqi_port *p) {
    xsk_port *x = p->state;
    for (uint32_t k = 0; x->with_kernel && k < x->n; k++)
        x->sockets[k].end = __atomic_load_n(x->sockets[k].rx.producer, __ATOMIC_ACQUIRE);
    xsk_refresh(p);
    x->stopped = true;
    dq_steer_run(xsk_given(p->iface)->steer, false);
}

// Returns copies of the rules for the program, which sees headers before decapsulation: rules that remove
// headers match on the outer ones only.
static dq_rule *outer_rules(const dq_iface *i, const dq_rule *rules, uint32_t n) {
    dq_rule *out = calloc((size_t)n + 1, sizeof *out);
    for (uint32_t k = 0; out && k < n; k++) {
        const dqi_acts *acts = rules[k].n_actions > 0 ? dqi_rx_actions_of(i, rules[k].order) : NULL;
        out[k] = rules[k];
        if (acts) dqi_layers_outer(&rules[k], acts, &out[k].match);
    }
    return out;
}

static int xsk_steer(dqi_port *p, const dq_rule *gone, uint32_t n_gone, const dq_rule *add, uint32_t n_add,
                     dq_diag *diag) {
    const dq_iface *i = p->iface;
    dq_diag why = {{0}};
    dq_rule *out = outer_rules(i, gone, n_gone), *in = outer_rules(i, add, n_add);
    int err = out && in ? dq_steer_change(xsk_given(i)->steer, out, n_gone, in, n_add, &why)
                        : dqi_fail(&why, DQ_ESYS - ENOMEM, "no memory for its flows");
    free(out);
    free(in);
    return err == DQ_OK ? err : dqi_fail(diag, err, "interface %s: %s", i->conf.name, why.text);
}

static void xsk_drop_all(dqi_port *p, bool drop) { dq_steer_drop_all(xsk_given(p->iface)->steer, drop); }

static int xsk_mac(const dqi_port *p, uint8_t mac[6]) {
    struct ifreq r = {0};
    if (!ask(((const xsk_port *)p->state)->device, SIOCGIFHWADDR, &r)) return DQ_ESYS - errno;
    memcpy(mac, r.ifr_hwaddr.sa_data, 6);
    return DQ_OK;
}

// The UMEM is the arena of the open: its pages stay with the kernel, and no others join them.
static int xsk_change_region(const dq_iface *i, const dq_region *r, dq_diag *diag) {
    return dqi_fail(
        diag, DQ_NOT_SUPPORTED,
        "interface %s: region%s%s: AF_XDP has registered the memory of the configuration with the "
        "kernel as a whole, until the session ends; hint: queues that are added can use regions of "
        "the configuration",
        i->conf.name, r ? " " : "", r ? r->conf.name : "s can't be added");
}

static const dqi_region_ops regions = {.change = xsk_change_region};

static uint32_t xsk_mtu(const dqi_port *p) { return ((const xsk_port *)p->state)->mtu; }

const dqi_port_driver dqi_driver_xsk = {
    .name = "AF_XDP",
    .open = xsk_open,
    .start = xsk_start,
    .stop = xsk_stop,
    .close = xsk_close,
    .read = xsk_read,
    .release = xsk_release,
    .tx = xsk_send,
    .reap = xsk_reap,
    .tx_open = xsk_tx_open,
    .tx_close = xsk_tx_close,
    .rx_added = xsk_share,
    .regions = &regions,
    .drop_rest = xsk_drop_rest,
    .held = xsk_held,
    .arm_rx = xsk_arm_rx,
    .refresh = xsk_refresh,
    .steer = xsk_steer,
    .drop_all = xsk_drop_all,
    .mac = xsk_mac,
    .multicast = dqi_kernel_multicast,
    .mtu = xsk_mtu,
};
