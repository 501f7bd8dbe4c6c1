// gpu.c: payloads or whole packets that the device writes to GPU memory (GPUDirect RDMA): the memory is
// registered as external memory and DMA-mapped; the device's driver pins it (mlx5: with nvidia-peermem).
#include "gpu.h"

#include <errno.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <stdio.h>

#define PAGE (64u << 10) // GPU page size

static size_t whole_pages(uint64_t bytes) { return (bytes + PAGE - 1) / PAGE * PAGE; }

static void unmap(const dpdk_port *d, uint8_t *at, size_t bytes) {
    rte_dev_dma_unmap(d->info.device, at, (uintptr_t)at, bytes);
    rte_extmem_unregister(at, bytes);
}

// Returns 0 or an errno.
static int map(const dpdk_port *d, uint8_t *at, size_t bytes) {
    eal_log_clear();
    if (rte_extmem_register(at, bytes, NULL, 0, PAGE) != 0) return rte_errno;
    if (rte_dev_dma_map(d->info.device, at, (uintptr_t)at, bytes) == 0) return 0;
    int err = rte_errno ? rte_errno : EIO;
    rte_extmem_unregister(at, bytes);
    return err;
}

static int cannot_map(const dpdk_port *d, const char *queue, int err, dq_diag *diag) {
    char text[256];
    eal_log_read(text, sizeof text);
    return host->fail(
        diag, DQ_ESYS - err,
        "device %s of queue %s can't reach the GPU's memory: %s%s; hint: modprobe nvidia-peermem", d->device,
        queue, strerror(err), text);
}

// Returns why frames cannot be received in the queue's regions, whatever their memory; NULL: they can.
static const char *cannot_part(const dpdk_port *d, const dq_iface *i, const dq_queue *q, uint32_t seg) {
    if (i->n_rx > 1) return "several queues share the device's buffers";
    if (!memory_takes_any(d)) return "the driver needs buffers of its own";
    if (q->conf.n_regions > 2) return "it has more than a region for headers and one for payloads";
    if (q->conf.regions[seg]->conf.buf_size + 2 * DQ_HEADROOM > UINT16_MAX)
        return "the region's buffers are longer than 64 KiB";
    return q->conf.n_regions > 1 ? memory_cannot_split(d, q) : NULL;
}

static bool try_device(dqi_port *p, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                       dq_diag *why) {
    dpdk_port *d = dpdk_of(p);
    if (eal_start(why) != DQ_OK || device_open(p, why) != DQ_OK) return false;
    const char *cannot = cannot_part(d, p->iface, q, seg);
    int err = cannot ? 0 : map(d, at, bytes);
    if (cannot)
        host->fail(why, DQ_NOT_SUPPORTED, "queue %s: %s", q->conf.name, cannot);
    else if (err != 0)
        cannot_map(d, q->conf.name, err, why);
    else
        unmap(d, at, bytes);
    return !cannot && err == 0;
}

bool gpu_reaches(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                 dq_diag *why) {
    dpdk_port d = {.sees_all = -1, .asks = -1};
    dqi_port p = {.iface = (dq_iface *)i, .state = &d};
    bool ok = try_device(&p, q, seg, at, bytes, why);
    kernel_close(&d);
    device_close(&d);
    return ok;
}

int gpu_lend(const dqi_port *p, dpdk_port *d, dq_diag *diag) {
    const dq_queue *q = p->iface->n_rx > 0 ? p->iface->rx[0] : NULL;
    for (uint32_t s = 0; q && s < q->conf.n_regions; s++) {
        const dq_region *r = q->conf.regions[s];
        if (!gpu_has(r)) continue;
        if (p->copy)
            return host->fail(diag, DQ_NOT_SUPPORTED,
                              "interface %s: memory region %s lies in a GPU's memory, and %s; hint: kind "
                              "host_pinned",
                              p->iface->conf.name, r->conf.name, p->copy);
        int err = map(d, r->device, whole_pages((uint64_t)r->stride * r->conf.num_bufs));
        if (err != 0) return cannot_map(d, q->conf.name, err, diag);
        d->lent |= 1u << s;
        host->note(p->iface->session,
                   "memory region %s: device %s of queue %s puts packets into the GPU's memory itself "
                   "(GPUDirect)",
                   r->conf.name, d->device, q->conf.name);
    }
    return DQ_OK;
}

void gpu_take_back(dpdk_port *d) {
    for (uint32_t s = 0; s < DQ_MAX_SEGS; s++) {
        if (!(d->lent >> s & 1)) continue;
        const dq_region *r = d->parts[s]->region;
        unmap(d, r->device, whole_pages((uint64_t)r->stride * r->conf.num_bufs));
    }
    d->lent = 0;
}
