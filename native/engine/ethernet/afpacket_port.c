// afpacket_port.c: driver for any Linux interface: one ring for each receive queue (afpacket_ring.c), joined
// into a fanout group if there are several, and one socket for each transmit queue (afpacket_tx.c).
//
// AF_PACKET is a tap: the kernel's protocols also receive these frames.
#include "engine/ethernet/afpacket_port.h"
#include "core/dq_burst.h"
#include "core/err.h"
#include "core/region.h"
#include "engine/ethernet/afpacket_ring.h"
#include "engine/ethernet/afpacket_tx.h"
#include "engine/ethernet/kernel_groups.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEADERS 22 // bytes of a frame beyond the MTU: addresses, type, two tags

typedef struct packet_port {
    int index; // of the interface
    int fd;    // for ioctl
    uint32_t mtu;
    uint8_t mac[6];
    dqi_afpacket_ring rings[DQ_MAX_QUEUES];
    bool outgoing; // frames that this machine sends are received, too
    bool gone;     // the interface was removed
    bool stopped;  // kernel drops are no longer counted
} packet_port;

static int fail(const dq_iface *i, int err, dq_diag *diag) {
    const char *hint = err == EPERM ? "; hint: run as root, or with the capability CAP_NET_RAW (sudo "
                                      "setcap cap_net_raw+ep FILE, which is the program's)"
                                    : "";
    return dqi_fail(diag, DQ_ESYS - err, "interface %s: %s: %s%s", i->conf.name, i->conf.address,
                    dq_err_name(DQ_ESYS - err), hint);
}

// ---- properties of the interface --------------------------------------------------------------------------

static void name_interfaces(char *buf, size_t len) {
    size_t at = 0;
    struct if_nameindex *all = if_nameindex();
    buf[0] = 0;
    for (const struct if_nameindex *n = all; n && n->if_index != 0 && at + IF_NAMESIZE + 2 < len; n++)
        at += (size_t)snprintf(buf + at, len - at, "%s%s", at ? ", " : "", n->if_name);
    if (all) if_freenameindex(all);
}

static int find(const dq_iface *i, int *index, dq_diag *diag) {
    char names[256];
    if (strlen(i->conf.address) >= IF_NAMESIZE)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: %s: the name of a Linux interface has at most %d characters",
                        i->conf.name, i->conf.address, IF_NAMESIZE - 1);
    *index = (int)if_nametoindex(i->conf.address);
    if (*index != 0) return DQ_OK;
    name_interfaces(names, sizeof names);
    return dqi_fail(diag, DQ_ESYS - ENODEV, "interface %s: there is no Linux interface %s; there are %s",
                    i->conf.name, i->conf.address, names);
}

static int ask(const dqi_port *p, unsigned long what, struct ifreq *r) {
    const packet_port *s = p->state;
    memcpy(r->ifr_name, p->iface->conf.address,
           strlen(p->iface->conf.address) + 1); // length checked by find()
    return ioctl(s->fd, what, r) == 0 ? 0 : errno;
}

static bool joins_packets(const dqi_port *p) {
    struct ethtool_value v = {.cmd = ETHTOOL_GGRO};
    struct ifreq r = {.ifr_data = (void *)&v};
    return ask(p, SIOCETHTOOL, &r) == 0 && v.data != 0;
}

static int describe(dqi_port *p, dq_diag *diag) {
    packet_port *s = p->state;
    const dq_iface *i = p->iface;
    struct ifreq r = {0};
    int err = ask(p, SIOCGIFHWADDR, &r);
    if (err != 0) return fail(i, err, diag);
    int type = r.ifr_hwaddr.sa_family;
    if (type != ARPHRD_ETHER && type != ARPHRD_LOOPBACK)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "interface %s: %s carries no Ethernet frames (its type is %d)", i->conf.name,
                        i->conf.address, type);
    memcpy(s->mac, r.ifr_hwaddr.sa_data, sizeof s->mac);
    if ((err = ask(p, SIOCGIFMTU, &r)) != 0) return fail(i, err, diag);
    s->mtu = (uint32_t)r.ifr_mtu;
    s->outgoing = i->conf.outgoing != 0 && type != ARPHRD_LOOPBACK; // what lo sends, it receives as well
    if (ask(p, SIOCGIFFLAGS, &r) == 0 && !(r.ifr_flags & IFF_UP))
        dqi_note(i->session, "interface %s: %s is down; hint: ip link set %s up", i->conf.name,
                 i->conf.address, i->conf.address);
    if (i->n_rx > 0 && s->outgoing)
        dqi_note(
            i->session, "interface %s: packets that this machine sends are received, too%s", i->conf.name,
            i->conf.joined ? ""
                           : "; joined ones (TSO, GSO) are dropped and counted; hint: the key joined of rx");
    if (i->n_rx > 0 && i->conf.joined)
        dqi_note(
            i->session,
            "interface %s: packets that the kernel joined (GRO, TSO) are received as such, up to %d bytes",
            i->conf.name, DQI_JOINED_MAX);
    else if (i->n_rx > 0 && joins_packets(p))
        dqi_note(i->session,
                 "interface %s: %s joins packets (GRO): joined ones are dropped and counted; hint: ethtool "
                 "-K %s gro off, or the key joined of rx",
                 i->conf.name, i->conf.address, i->conf.address);
    return DQ_OK;
}

// ---- open and close ---------------------------------------------------------------------------------------

// Enables promiscuous mode; the kernel disables it when the ring's socket is closed.
static int see_all(const packet_port *s) {
    struct packet_mreq m = {.mr_ifindex = s->index, .mr_type = PACKET_MR_PROMISC};
    return setsockopt(s->rings[0].fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &m, sizeof m) == 0 ? 0 : errno;
}

// Checks that long frames can be stored.
static int check_joined(const dq_iface *i, dq_diag *diag) {
    if (!i->conf.joined) return DQ_OK;
    if (!i->conf.joined->cpu)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: the host can't access region %s, which is for joined packets; hint: a "
                        "region of kind host",
                        i->conf.name, i->conf.joined->conf.name);
    for (uint32_t k = 0; k < i->n_rx; k++)
        if (i->rx[k]->conf.n_regions != 1)
            return dqi_fail(diag, DQ_NOT_SUPPORTED,
                            "interface %s: queue %s splits packets over %u regions, and joined packets are "
                            "not split; hint: one region",
                            i->conf.name, i->rx[k]->conf.name, i->rx[k]->conf.n_regions);
    return DQ_OK;
}

static int open_rings(dqi_port *p, dq_diag *diag) {
    packet_port *s = p->state;
    const dq_iface *i = p->iface;
    for (uint32_t k = 0; k < i->n_rx; k++)
        i->rx[k]->rx.stamping = DQ_STAMPS_KERNEL;
    int group = i->n_rx > 1 ? DQI_PACKET_NEW_GROUP : DQI_PACKET_ALONE;
    for (uint32_t k = 0; k < i->n_rx; k++) {
        int err = dqi_afpacket_ring_open(&s->rings[k], s->index, s->mtu + HEADERS, &group, s->outgoing,
                                         i->conf.joined);
        if (err != 0 &&
            group == DQI_PACKET_NEW_GROUP) { // old kernels cannot form a group while the interface is down
            group = DQI_PACKET_ALONE;
            err = dqi_afpacket_ring_open(&s->rings[k], s->index, s->mtu + HEADERS, &group, s->outgoing,
                                         i->conf.joined);
        }
        if (err != 0) return fail(i, err, diag);
        p->queues[k].state = &s->rings[k];
        p->n_queues = k + 1;
        if (group == DQI_PACKET_ALONE) break;
    }
    int err = i->n_rx > 0 && !i->conf.flow_isolation ? see_all(s) : 0;
    return err == 0 ? DQ_OK : fail(i, err, diag);
}

static int port_open(dqi_port *p, dq_diag *diag) {
    const dq_iface *i = p->iface;
    packet_port *s = calloc(1, sizeof *s);
    if (!s) return fail(i, ENOMEM, diag);
    p->state = s;
    p->stamps = DQ_STAMPS_KERNEL;
    p->copy = "AF_PACKET hands out frames in a ring of its own";
    for (uint32_t k = 0; k < DQ_MAX_QUEUES; k++)
        s->rings[k].fd = -1;
    s->fd = -1;
    int err = check_joined(i, diag);
    if (err == DQ_OK) err = find(i, &s->index, diag);
    if (err != DQ_OK) return err;
    p->netdev = (uint32_t)s->index;
    s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (s->fd < 0) return fail(i, errno, diag);
    if ((err = describe(p, diag)) == DQ_OK) err = open_rings(p, diag);
    for (uint32_t k = 0; err == DQ_OK && k < i->n_tx; k++) {
        int no = dqi_afpacket_tx_open(i->tx[k], s->index);
        if (no != 0) err = fail(i, no, diag);
    }
    if (err != DQ_OK) return err;
    dqi_eth_note_mtu(p, s->mtu);
    if (i->n_rx > 0)
        dqi_note(i->session, "interface %s: the kernel's protocols also receive the packets", i->conf.name);
    return DQ_OK;
}

static int tx_open(dq_queue *q, dq_diag *diag) {
    const packet_port *s = dqi_port_of(q->iface)->state;
    int no = dqi_afpacket_tx_open(q, s->index);
    if (no == 0) return DQ_OK;
    dqi_afpacket_tx_close(q);
    return fail(q->iface, no, diag);
}

static int port_start(dqi_port *p, dq_diag *diag) {
    (void)diag;
    for (uint32_t k = 0; k < p->n_queues; k++)
        dqi_afpacket_ring_start(p->queues[k].state);
    return DQ_OK;
}

static void port_close(dqi_port *p) {
    packet_port *s = p->state;
    if (!s) return;
    for (uint32_t k = 0; k < DQ_MAX_QUEUES; k++)
        dqi_afpacket_ring_close(&s->rings[k]);
    for (uint32_t k = 0; k < p->iface->n_tx; k++)
        dqi_afpacket_tx_close(p->iface->tx[k]);
    if (s->fd >= 0) close(s->fd);
    free(s);
    p->state = NULL;
}

// ---- operation --------------------------------------------------------------------------------------------

static int arm_rx(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max) {
    if (max < 1) return 0;
    int err = dqi_afpacket_ring_error(l->state); // set once after the interface went down
    if (err != 0) dqi_queue_error_add(q->errors, err, 1);
    fds[0] = (struct pollfd){.fd = ((dqi_afpacket_ring *)l->state)->fd, .events = POLLIN};
    return 1;
}

// The removal of an interface is not notified; it is detected here, whenever the ledger is read.
static void refresh(dqi_port *p) {
    packet_port *s = p->state;
    if (!s || s->stopped) return;
    for (uint32_t k = 0; k < p->n_queues; k++)
        dqi_add_shared(&p->c.extra[DQ_EXTRA_KERNEL_DROPPED], dqi_afpacket_ring_lost(&s->rings[k]));
    if (p->n_queues == 0 || s->gone || !dqi_afpacket_ring_gone(&s->rings[0])) return;
    s->gone = true;
    dqi_queue_error_add(p->iface->rx[0]->errors, ENODEV, 1);
}

// Frames still enter the rings after the stop; their timestamps identify the earlier ones. Kernel drops after
// the stop are not counted.
static void port_stop(dqi_port *p) {
    refresh(p);
    ((packet_port *)p->state)->stopped = true;
}

static uint32_t port_mtu(const dqi_port *p) { return ((const packet_port *)p->state)->mtu; }

static int port_mac(const dqi_port *p, uint8_t mac[6]) {
    memcpy(mac, ((const packet_port *)p->state)->mac, 6);
    return DQ_OK;
}

const dqi_port_driver dqi_driver_packet = {
    .name = "AF_PACKET",
    .open = port_open,
    .tx_open = tx_open,
    .tx_close = dqi_afpacket_tx_close,
    .start = port_start,
    .stop = port_stop,
    .close = port_close,
    .read = dqi_afpacket_ring_read,
    .release = dqi_afpacket_ring_release,
    .tx = dqi_afpacket_tx,
    .arm_rx = arm_rx,
    .arm_tx = dqi_afpacket_tx_arm,
    .refresh = refresh,
    .mac = port_mac,
    .mtu = port_mtu,
    .multicast = dqi_kernel_multicast,
};
