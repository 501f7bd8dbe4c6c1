// counters.c: counters and link state of a device.
#include "dpdk.h"

#include <stdio.h>
#include <stdlib.h>

#define LINE 512 // bytes of the line of counters in the report

// ---- ledger counters --------------------------------------------------------------------------------------

static void set(dqi_port *p, dq_extra figure, uint64_t v) {
    atomic_store_explicit(&p->c.extra[figure], v, memory_order_relaxed);
}

void port_refresh(dqi_port *p) {
    dpdk_port *d = dpdk_of(p);
    struct rte_eth_stats s;
    if (!d || !d->started) return;
    if (!d->stopping) kernel_refresh(p, d);
    if (rte_eth_stats_get(d->id, &s) != 0) return;
    if (!d->stopping) { // losses after the stop are not counted
        set(p, DQ_EXTRA_NIC_MISSED, s.imissed);
        set(p, DQ_EXTRA_NIC_NO_BUFFER, s.rx_nombuf);
        set(p, DQ_EXTRA_NIC_RX_ERRORS, s.ierrors);
    }
    if (driver_is(d, "net_tap"))
        return; // it counts every rejected attempt, though the packet is sent again or dropped
    set(p, DQ_EXTRA_NIC_TX_ERRORS, s.oerrors);
}

// ---- report -----------------------------------------------------------------------------------------------

// Returns true for a driver-specific counter whose name denotes a loss; DPDK's generic ones are in the
// ledger.
static bool names_loss(const char *name) {
    static const char *const all[] = {"rx_missed_errors", "rx_errors", "tx_errors",
                                      "rx_mbuf_allocation_errors"};
    static const char *const words[] = {"drop",   "discard", "err",    "miss",     "crc",     "nombuf",
                                        "no_buf", "out_of",  "no_mem", "overflow", "oversize"};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++)
        if (strcmp(name, all[k]) == 0) return false;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++)
        if (strstr(name, words[k])) return true;
    return false;
}

// Lists the nonzero loss counters of the device as "NAME N, ...".
static void list_losses(const dpdk_port *d, char *text, size_t len) {
    int n = rte_eth_xstats_get_names(d->id, NULL, 0);
    size_t at = 0;
    text[0] = 0;
    struct rte_eth_xstat_name *names = n > 0 ? calloc((size_t)n, sizeof *names) : NULL;
    struct rte_eth_xstat *values = n > 0 ? calloc((size_t)n, sizeof *values) : NULL;
    if (names && values && rte_eth_xstats_get_names(d->id, names, (unsigned)n) == n &&
        rte_eth_xstats_get(d->id, values, (unsigned)n) == n)
        for (int k = 0; k < n && at + sizeof names->name + 24 < len; k++)
            if (values[k].value != 0 && names_loss(names[k].name))
                at += (size_t)snprintf(text + at, len - at, "%s%s %llu", at ? ", " : "", names[k].name,
                                       (unsigned long long)values[k].value);
    free(names);
    free(values);
}

// Reports the link state if it changed; not for virtual devices, whose link is not real.
static void report_link(const dqi_port *p, dpdk_port *d, bool down_too) {
    struct rte_eth_link link = {0};
    char text[RTE_ETH_LINK_MAX_STR_LEN];
    if (d->vdev || rte_eth_link_get_nowait(d->id, &link) != 0) return;
    if (link.link_status != RTE_ETH_LINK_UP && !down_too) return; // NIC links come up later
    rte_eth_link_to_str(text, sizeof text, &link);
    if (strcmp(text, d->link) == 0) return;
    memcpy(d->link, text, sizeof d->link);
    host->note(p->iface->session, "interface %s: %s", p->iface->conf.name, text);
}

void counters_start(const dqi_port *p, dpdk_port *d) {
    rte_eth_xstats_reset(d->id);
    report_link(p, d, false);
}

void counters_stop(const dqi_port *p, dpdk_port *d) {
    char text[LINE];
    if (!d->started) return;
    report_link(p, d, true);
    list_losses(d, text, sizeof text);
    if (text[0])
        host->note(p->iface->session, "interface %s: the device counted %s", p->iface->conf.name, text);
}
