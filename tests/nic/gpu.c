// gpu.c: a card that reaches GPUs' memory: what is mapped for it must have been registered, and only mapped
// memory may be written into. The GPU is tests/gpu/fake's, whose addresses are none of the processor's.
#include "nic.h"

#include <dlfcn.h>
#include <errno.h>
#include <rte_dev.h>
#include <rte_errno.h>
#include <stdlib.h>

#define RANGES 16

static struct range {
    uint8_t *at;
    size_t bytes;
    bool mapped;
} ranges[RANGES];

static struct range *find(const void *at) {
    for (int k = 0; k < RANGES; k++)
        if (ranges[k].bytes > 0 && (const uint8_t *)at >= ranges[k].at &&
            (const uint8_t *)at < ranges[k].at + ranges[k].bytes)
            return &ranges[k];
    return NULL;
}

int rte_extmem_register(void *at, size_t bytes, rte_iova_t iovas[], unsigned n, size_t page) {
    int err = NIC_NEXT(rte_extmem_register)(at, bytes, iovas, n, page);
    for (int k = 0; err == 0 && k < RANGES; k++) {
        if (ranges[k].bytes > 0) continue;
        ranges[k] = (struct range){at, bytes, false};
        return 0;
    }
    return err == 0 ? -1 : err;
}

int rte_extmem_unregister(void *at, size_t bytes) {
    struct range *r = find(at);
    if (!r || r->at != at || r->bytes != bytes) nic_die("memory returned that it does not know");
    if (r->mapped) nic_die("memory returned that is mapped for the card");
    *r = (struct range){0};
    return NIC_NEXT(rte_extmem_unregister)(at, bytes);
}

int rte_dev_dma_map(struct rte_device *dev, void *at, uint64_t iova, size_t bytes) {
    struct range *r = find(at);
    (void)dev;
    if (!nic_has("gpu")) { // the bus of virtual devices would say yes to everything
        rte_errno = ENOTSUP;
        return -1;
    }
    if (!r || r->at != at || r->bytes != bytes || iova != (uintptr_t)at)
        nic_die("mapped what is not registered");
    r->mapped = true;
    nic_write_down("mapped", (int64_t)bytes);
    return 0;
}

int rte_dev_dma_unmap(struct rte_device *dev, void *at, uint64_t iova, size_t bytes) {
    struct range *r = find(at);
    (void)dev;
    (void)iova;
    if (!r || !r->mapped || r->at != at || r->bytes != bytes) nic_die("unmapped what is not mapped");
    r->mapped = false;
    nic_write_down("unmapped", (int64_t)bytes);
    return 0;
}

void *nic_reach(void *at, size_t bytes) {
    const struct range *r = find(at);
    if (!r) return at; // the host's
    if (!r->mapped) nic_die("a part that goes into memory which isn't mapped for it");
    void *driver = dlopen(getenv("DAQIRI_CUDA"), RTLD_NOW | RTLD_NOLOAD);
    void *(*peer)(uint64_t at, uint64_t bytes);
    *(void **)&peer = driver ? dlsym(driver, "fake_reach") : NULL;
    void *to = peer ? peer((uintptr_t)at, bytes) : NULL;
    if (!to) nic_die("a part that goes where the GPU has no memory");
    dlclose(driver);
    nic_write_down("gpu", 0);
    return to;
}
