// device.c: finds and probes the device of an address; reports what prevents it.
#include "dpdk.h"

#include <dirent.h>
#include <errno.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PCI         "/sys/bus/pci/devices/"
#define RING_FRAME  2048 // bytes of a frame in net_af_packet's ring
#define RING_HEADER 66   // bytes of them used by the kernel

// ---- PCI --------------------------------------------------------------------------------------------------

// Writes the kernel driver to which the device is bound, or an empty string.
static void kernel_driver(const char *address, char *name, size_t len) {
    char path[300], to[256];
    snprintf(path, sizeof path, PCI "%s/driver", address);
    ssize_t n = readlink(path, to, sizeof to - 1);
    name[0] = 0;
    if (n <= 0) return;
    to[n] = 0;
    const char *base = strrchr(to, '/');
    snprintf(name, len, "%s", base ? base + 1 : to);
}

// Returns true for drivers that pass the device to user space or share it with DPDK.
static bool lends(const char *driver) {
    static const char *const names[] = {"vfio-pci",  "uio_pci_generic", "igb_uio",
                                        "mlx5_core", "mlx4_core",       "mana"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(driver, names[i]) == 0) return true;
    return false;
}

static bool is_nic(const char *address) {
    char path[300];
    unsigned class = 0;
    snprintf(path, sizeof path, PCI "%s/class", address);
    FILE *f = fopen(path, "r");
    if (!f) return false;
    if (fscanf(f, "%x", &class) != 1) class = 0;
    fclose(f);
    return class >> 16 == 2;
}

// Lists the addresses of this host's NICs for a message.
static void list_nics(char *text, size_t len) {
    size_t at = 0;
    text[0] = 0;
    DIR *d = opendir(PCI);
    struct dirent *e;
    while (d && (e = readdir(d)) != NULL && at + 16 < len)
        if (e->d_name[0] != '.' && is_nic(e->d_name))
            at += (size_t)snprintf(text + at, len - at, "%s%s", at ? ", " : "", e->d_name);
    if (d) closedir(d);
}

static int check_pci(const dq_iface *i, const char *address, dq_diag *diag) {
    char path[300], text[256];
    snprintf(path, sizeof path, PCI "%s", address);
    if (access(path, F_OK) != 0) {
        list_nics(text, sizeof text);
        return host->fail(
            diag, DQ_ESYS - ENODEV, "interface %s: there is no PCI device %s; %s%s", i->conf.name, address,
            text[0] ? "this host's network cards: " : "this host has no network card on PCI", text);
    }
    kernel_driver(address, text, sizeof text);
    if (!lends(text))
        return host->fail(
            diag, DQ_ESYS - EBUSY,
            "interface %s: PCI device %s %s%s; hint: dpdk-devbind.py -b vfio-pci %s (uio_pci_generic "
            "without an IOMMU), or give the interface's Linux name as its address",
            i->conf.name, address, text[0] ? "is bound to the kernel's driver " : "is bound to no driver",
            text, address);
    return DQ_OK;
}

// ---- all devices ------------------------------------------------------------------------------------------

// Splits "vdev:NAME,ARGS" or a PCI address (adding the domain) into d->device and d->args.
static void split_address(dpdk_port *d, const char *address) {
    d->vdev = strncmp(address, "vdev:", 5) == 0;
    if (!d->vdev) {
        bool domain = strchr(address, ':') != strrchr(address, ':');
        snprintf(d->device, sizeof d->device, "%s%.200s", domain ? "" : "0000:", address);
        for (char *c = d->device; *c; c++)
            *c = (char)(*c >= 'A' && *c <= 'F' ? *c + ('a' - 'A') : *c);
        return;
    }
    size_t n = strcspn(address + 5, ",");
    snprintf(d->device, sizeof d->device, "%.*s", (int)n, address + 5);
    snprintf(d->args, sizeof d->args, "%s", address[5 + n] ? address + 5 + n + 1 : "");
}

// Finds the port of the device with this name, with its info; false: none.
static bool find_port(dpdk_port *d) {
    uint16_t id;
    RTE_ETH_FOREACH_DEV(id) {
        if (rte_eth_dev_info_get(id, &d->info) != 0 || !d->info.device) continue;
        if (strcmp(rte_dev_name(d->info.device), d->device) == 0) {
            d->id = id;
            return true;
        }
    }
    return false;
}

static const char *hint_of(const dpdk_port *d) {
    const bool root = geteuid() == 0;
    if (d->vdev)
        return root ? "; hint: vdev:NAME,KEY=VALUE,… as DPDK's guide of the driver lists them"
                    : "; hint: vdev:NAME,KEY=VALUE,… as DPDK's guide of the driver lists them; it may need "
                      "root";
    return root ? "" : "; hint: this device may need root";
}

// Returns the value of KEY=NUMBER in the device's arguments.
static uint32_t number_of(const dpdk_port *d, const char *key, uint32_t otherwise) {
    const char *at = strstr(d->args, key);
    return at ? (uint32_t)strtoul(at + strlen(key), NULL, 10) : otherwise;
}

// Rejects silent misbehavior of net_af_packet: two devices of one process on one interface each receive part
// of the frames, and frames longer than the ring's are truncated.
static int check_kernel(const dq_iface *i, const dpdk_port *d, dq_diag *diag) {
    struct rte_eth_dev_info other;
    struct rte_ether_addr mac = {0}, its = {0};
    uint16_t id;
    if (strcmp(d->info.driver_name, "net_af_packet") != 0) return DQ_OK;
    rte_eth_macaddr_get(d->id, &mac); // interface numbers repeat across namespaces
    RTE_ETH_FOREACH_DEV(id) {
        if (id == d->id || rte_eth_dev_info_get(id, &other) != 0 || rte_eth_macaddr_get(id, &its) != 0)
            continue;
        if (other.if_index == d->info.if_index && strcmp(other.driver_name, "net_af_packet") == 0 &&
            rte_is_same_ether_addr(&mac, &its))
            return host->fail(diag, DQ_ESYS - EBUSY,
                              "interface %s: device %s: another net_af_packet device of this process has its "
                              "Linux interface; the two would share the frames",
                              i->conf.name, d->device);
    }
    uint32_t room = number_of(d, "framesz=", RING_FRAME) - RING_HEADER, mtu = kernel_mtu(d);
    if (mtu + FRAME_EXTRA <= room) return DQ_OK;
    return host->fail(diag, DQ_INVALID_PARAMETER,
                      "interface %s: device %s: its ring takes frames of %u bytes, and the MTU is %u: longer "
                      "ones would be cut; hint: framesz=%u,blocksz=%u in its arguments",
                      i->conf.name, d->device, room, mtu,
                      mtu < 8000    ? 8192
                      : mtu < 16000 ? 16384
                                    : 131072,
                      mtu < 8000    ? 8192
                      : mtu < 16000 ? 16384
                                    : 131072);
}

int device_open(dqi_port *p, dq_diag *diag) {
    dpdk_port *d = dpdk_of(p);
    const dq_iface *i = p->iface;
    split_address(d, i->conf.address);
    if (d->device[0] == 0)
        return host->fail(diag, DQ_INVALID_PARAMETER, "interface %s: the device is missing: vdev:NAME,ARGS",
                          i->conf.name);
    int err = d->vdev ? DQ_OK : check_pci(i, d->device, diag);
    if (err != DQ_OK) return err;
    if (find_port(d))
        return host->fail(
            diag, DQ_ESYS - EBUSY,
            "interface %s: device %s is in use by another interface of this process; hint: s:close() ends a "
            "session that has run",
            i->conf.name, d->device);
    eal_log_clear();
    int failed = rte_eal_hotplug_add(d->vdev ? "vdev" : "pci", d->device, d->args);
    if (failed == 0 && find_port(d)) {
        d->probed = true;
        kernel_open(d);
        return check_kernel(i, d, diag);
    }
    char why[256];
    eal_log_read(why, sizeof why);
    if (failed == 0) rte_eal_hotplug_remove(d->vdev ? "vdev" : "pci", d->device);
    failed = failed < -EPERM ? -failed : ENODEV; // -1 carries no information
    return host->fail(diag, DQ_ESYS - failed, "interface %s: DPDK can't use device %s%s%s", i->conf.name,
                      d->device, why, hint_of(d));
}

void device_close(dpdk_port *d) {
    if (!d->probed) return;
    rte_eth_dev_close(d->id);
    rte_eal_hotplug_remove(d->vdev ? "vdev" : "pci", d->device);
    d->probed = false;
}
