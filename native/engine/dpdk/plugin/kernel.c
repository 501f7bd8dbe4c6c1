// kernel.c: the kernel's interface of a device (net_af_packet, net_af_xdp, net_tap): state that DPDK's
// drivers do not report, or leave behind when the process is killed.
#include "dpdk.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// ---- interface state --------------------------------------------------------------------------------------

// Returns 0 or an errno; ENODEV: the interface was removed.
static int ask(const dpdk_port *d, unsigned long what, struct ifreq *r) {
    r->ifr_ifindex = (int)d->info.if_index;
    if (d->info.if_index == 0 || ioctl(d->asks, SIOCGIFNAME, r) != 0) return ENODEV;
    return ioctl(d->asks, what, r) == 0 ? 0 : errno;
}

uint32_t kernel_mtu(const dpdk_port *d) {
    struct ifreq r = {0};
    return ask(d, SIOCGIFMTU, &r) == 0 ? (uint32_t)r.ifr_mtu : 0;
}

int kernel_state(const dpdk_port *d) {
    struct ifreq r = {0};
    if (d->info.if_index == 0) return 0;
    int err = ask(d, SIOCGIFFLAGS, &r);
    return err != 0 ? ENODEV : r.ifr_flags & IFF_UP ? 0 : ENETDOWN;
}

// ---- sockets of net_af_packet -----------------------------------------------------------------------------

static int option(int fd, int name) {
    int value = -1;
    socklen_t len = sizeof value;
    return getsockopt(fd, SOL_PACKET, name, &value, &len) == 0 ? value : -1;
}

// The driver's sockets use TPACKET_V2 without a virtio header, unlike the engine's own.
static bool is_drivers(int fd, const dpdk_port *d, const struct rte_ether_addr *mac) {
    struct sockaddr_ll at = {0};
    socklen_t len = sizeof at;
    return getsockname(fd, (struct sockaddr *)&at, &len) == 0 && at.sll_family == AF_PACKET &&
           at.sll_ifindex == (int)d->info.if_index && memcmp(at.sll_addr, mac, sizeof *mac) == 0 &&
           option(fd, PACKET_VERSION) == TPACKET_V2 && option(fd, PACKET_VNET_HDR) == 0;
}

static void find_sockets(dpdk_port *d) {
    DIR *dir = opendir("/proc/self/fd");
    struct dirent *e;
    struct rte_ether_addr mac = {0}; // interface numbers are not unique across namespaces
    rte_eth_macaddr_get(d->id, &mac);
    d->n_sockets = 0;
    while (dir && (e = readdir(dir)) != NULL && d->n_sockets < DQ_MAX_QUEUES)
        if (isdigit((unsigned char)e->d_name[0]) && is_drivers(atoi(e->d_name), d, &mac))
            d->sockets[d->n_sockets++] = atoi(e->d_name);
    if (dir) closedir(dir);
}

// Returns the frames dropped on full rings since the last call; reading resets the kernel's counter.
static uint64_t lost(const dpdk_port *d) {
    uint64_t n = 0;
    for (uint32_t k = 0; k < d->n_sockets; k++) {
        struct tpacket_stats s = {0};
        socklen_t len = sizeof s;
        if (getsockopt(d->sockets[k], SOL_PACKET, PACKET_STATISTICS, &s, &len) == 0) n += s.tp_drops;
    }
    return n;
}

// ---- open and close ---------------------------------------------------------------------------------------

void kernel_open(dpdk_port *d) {
    d->asks = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0); // in the device's network namespace
    if (strcmp(d->info.driver_name, "net_af_packet") == 0) find_sockets(d);
}

// The drivers set an interface flag, which persists if the process is killed; a membership does not.
bool kernel_promiscuous(dpdk_port *d) {
    if (strcmp(d->info.driver_name, "net_af_packet") != 0 && strcmp(d->info.driver_name, "net_af_xdp") != 0)
        return false;
    struct packet_mreq m = {.mr_ifindex = (int)d->info.if_index, .mr_type = PACKET_MR_PROMISC};
    d->sees_all = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); // protocol 0: receives nothing
    return d->sees_all >= 0 && setsockopt(d->sees_all, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) == 0;
}

// An interface that goes down leaves a socket error that would wake the poller repeatedly; reading it clears
// it.
int kernel_arm(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max) {
    (void)q;
    const dpdk_port *d = dpdk_of(l->port);
    int err;
    socklen_t len = sizeof err;
    if (!l->port->pollable || max < 1) return 0;
    getsockopt(d->sockets[l->index], SOL_SOCKET, SO_ERROR, &err, &len);
    *fds = (struct pollfd){.fd = d->sockets[l->index], .events = POLLIN};
    return 1;
}

void kernel_start(const dpdk_port *d) { lost(d); }

void kernel_refresh(dqi_port *p, dpdk_port *d) {
    if (d->info.if_index == 0) return;
    dqi_add_shared(&p->c.extra[DQ_EXTRA_KERNEL_DROPPED], lost(d));
    int state = kernel_state(d);
    if (state != d->state && state != 0 && p->iface->n_rx > 0)
        host->queue_error(p->iface->rx[0]->errors, state, 1);
    d->state = state;
    uint32_t mtu = kernel_mtu(d);
    if (mtu > 0) atomic_store_explicit(&d->max_frame, mtu + FRAME_EXTRA, memory_order_relaxed);
}

void kernel_close(dpdk_port *d) {
    if (d->sees_all >= 0) close(d->sees_all);
    if (d->asks >= 0) close(d->asks);
    d->sees_all = d->asks = -1;
}
