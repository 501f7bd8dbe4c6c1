// pool.c: a session's regions as mempools.
//
// Each buffer of a region has one permanent mbuf whose data lies in the region. The mempool has no storage of
// its own: drivers allocate and free ids of the region's pool. So received frames are in the region without a
// copy, and the driver's free returns a sent buffer to the region.
#include "dpdk.h"
#include "gpu.h"

#include <errno.h>
#include <rte_bus.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_mempool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define OPS_NAME  "daqiri"
#define AT_HAND   512 // buffers that a thread may cache, of large regions
#define ASK_MORE  64u // buffers that it allocates beyond the current demand
#define HUGE_PAGE (2ul << 20)

_Static_assert(RTE_PKTMBUF_HEADROOM == DQ_HEADROOM, "frames start where the engine expects them");

static bound *all;

// Drivers clone packets only for segmentation (TSO), which is not used, so the buffers of all regions share
// one reference count that is always 1.
static struct rte_mbuf_ext_shared_info one_holder;

// ---- mempool operations on a region's pool ----------------------------------------------------------------

static int ops_alloc(struct rte_mempool *mp) {
    mp->pool_data = mp->pool_config;
    return 0;
}

static void ops_free(struct rte_mempool *mp) { (void)mp; }

static int ops_enqueue(struct rte_mempool *mp, void *const *objs, unsigned n) {
    pool *pl = mp->pool_data;
    if (pl->n < pl->region->conf.num_bufs) { // populating: the ids are in the region's pool already
        for (unsigned i = 0; i < n; i++)
            pl->headers[pl->n++] = objs[i];
        return 0;
    }
    uint32_t ids[BURST_MAX];
    for (unsigned i = 0; i < n;) {
        unsigned k = n - i < BURST_MAX ? n - i : BURST_MAX;
        for (unsigned j = 0; j < k; j++)
            ids[j] = pool_id(pl, objs[i + j]);
        host->bufs_free(pl->region->session, ids, k);
        i += k;
    }
    return 0;
}

static int ops_dequeue(struct rte_mempool *mp, void **objs, unsigned n) {
    pool *pl = mp->pool_data;
    uint32_t ids[BURST_MAX];
    if (!pl->live) return 0; // the mempool is being freed
    for (unsigned i = 0; i < n;) {
        unsigned k = n - i < BURST_MAX ? n - i : BURST_MAX;
        if (host->bufs_alloc(pl->region, ids, k) != k) {
            if (i > 0) ops_enqueue(mp, objs, i);
            return -ENOBUFS;
        }
        for (unsigned j = 0; j < k; j++)
            objs[i + j] = pl->headers[ids[j] - pl->region->first_id];
        i += k;
    }
    return 0;
}

static unsigned ops_count(const struct rte_mempool *mp) {
    const pool *pl = mp->pool_data;
    return pl->n; // used by DPDK only for statistics
}

static struct rte_mempool_ops ops = {
    .name = OPS_NAME,
    .alloc = ops_alloc,
    .free = ops_free,
    .enqueue = ops_enqueue,
    .dequeue = ops_dequeue,
    .get_count = ops_count,
};
RTE_MEMPOOL_REGISTER_OPS(ops)

// ---- mbufs ------------------------------------------------------------------------------------------------

static void header_init(struct rte_mempool *mp, void *arg, void *obj, unsigned k) {
    const pool *pl = arg;
    const dq_region *r = pl->region;
    struct rte_mbuf *m = obj;
    memset(m, 0, sizeof *m);
    m->buf_addr = pl->start + (uint64_t)k * r->stride;
    m->buf_len = (uint16_t)(r->stride < UINT16_MAX ? r->stride : UINT16_MAX);
    bool virtual = rte_eal_iova_mode() == RTE_IOVA_VA || gpu_has(r);
    rte_mbuf_iova_set(m, virtual ? (uintptr_t)m->buf_addr : RTE_BAD_IOVA);
    m->pool = mp;
    m->shinfo = &one_holder;
    m->ol_flags = pl->pinned ? RTE_MBUF_F_EXTERNAL : 0;
    m->nb_segs = 1;
    m->port = RTE_MBUF_PORT_INVALID;
    rte_mbuf_refcnt_set(m, 1);
    m->data_off = DQ_HEADROOM;
}

// Returns the size of a thread's cache, small for small regions, as cached buffers are unavailable to other
// threads.
static unsigned at_hand(uint32_t num_bufs) {
    unsigned n = num_bufs / 16;
    return n > AT_HAND ? AT_HAND : n;
}

// Lets a thread's cache keep all freed buffers but allocate little beyond the demand, so a burst that is sent
// as received takes no buffers from the region.
static void ask_for_little(struct rte_mempool *mp) {
    for (unsigned lcore = 0; mp->cache_size > 0 && lcore < RTE_MAX_LCORE; lcore++)
        mp->local_cache[lcore].size = RTE_MIN(mp->cache_size, ASK_MORE);
}

static int pool_open(pool *pl, dq_region *r, dq_diag *diag) {
    static uint32_t serial;
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof name, "dq%u", ++serial);
    pl->region = r;
    pl->start = gpu_has(r) ? r->device : r->base + r->offset;
    pl->inverse = UINT64_MAX / r->stride + 1;
    pl->headers = calloc(r->conf.num_bufs, sizeof *pl->headers);
    struct rte_pktmbuf_pool_private priv = {
        .mbuf_data_room_size = (uint16_t)(r->stride < UINT16_MAX ? r->stride : UINT16_MAX),
        .flags = pl->pinned ? RTE_PKTMBUF_POOL_F_PINNED_EXT_BUF : 0,
    };
    if (pl->headers)
        pl->mp = rte_mempool_create_empty(name, r->conf.num_bufs, sizeof(struct rte_mbuf),
                                          at_hand(r->conf.num_bufs), sizeof priv, SOCKET_ID_ANY, 0);
    if (pl->mp && rte_mempool_set_ops_byname(pl->mp, OPS_NAME, pl) == 0) {
        rte_pktmbuf_pool_init(pl->mp, &priv);
        if (rte_mempool_populate_default(pl->mp) == (int)r->conf.num_bufs) {
            rte_mempool_obj_iter(pl->mp, header_init, pl);
            ask_for_little(pl->mp);
            pl->live = true;
            return DQ_OK;
        }
    }
    return host->fail(diag, DQ_ESYS - ENOMEM,
                      "region %s: DPDK has no memory for %u packet headers (%s); hint: echo 256 > "
                      "/proc/sys/vm/nr_hugepages",
                      r->conf.name, r->conf.num_bufs,
                      eal_has_huge_pages() ? "huge pages are used up" : "no huge pages");
}

static void pool_close(pool *pl) {
    if (pl->n_unfit > 0) host->bufs_free(pl->region->session, pl->unfit, pl->n_unfit);
    free(pl->unfit);
    for (unsigned lcore = 0; pl->mp && lcore < RTE_MAX_LCORE; lcore++)
        rte_mempool_cache_flush(rte_mempool_default_cache(pl->mp, lcore), pl->mp);
    pl->live = false;
    rte_mempool_free(pl->mp);
    free(pl->headers);
    *pl = (pool){0};
}

// ---- physical addresses -----------------------------------------------------------------------------------

// Looks up the bus address of each buffer of a region on huge pages; removes buffers that span two pages with
// discontiguous bus addresses.
static int find_addresses(pool *pl, dq_diag *diag) {
    const dq_region *r = pl->region;
    uint8_t *start = r->base + r->offset;
    uint64_t bytes = (uint64_t)r->stride * r->conf.num_bufs, n_pages = (bytes + HUGE_PAGE - 1) / HUGE_PAGE;
    rte_iova_t *pages = calloc(n_pages, sizeof *pages);
    uint32_t *ids = calloc(r->conf.num_bufs, sizeof *ids), n = r->conf.num_bufs, fit = 0;
    pl->unfit = calloc(n_pages, sizeof *pl->unfit);
    int err = pages && ids && pl->unfit
                  ? DQ_OK
                  : host->fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory", r->conf.name);
    for (uint64_t p = 0; err == DQ_OK && p < n_pages; p++) {
        *(volatile uint8_t *)(start + p * HUGE_PAGE) = 0; // allocates the page
        pages[p] = rte_mem_virt2iova(start + p * HUGE_PAGE);
        if (pages[p] == RTE_BAD_IOVA)
            err = host->fail(diag, DQ_NOT_SUPPORTED,
                             "region %s: its physical addresses can't be read; hint: run as root",
                             r->conf.name);
    }
    if (err == DQ_OK) n = host->bufs_some(pl->region, ids, n);
    for (uint32_t i = 0; err == DQ_OK && i < n; i++) {
        uint64_t at = (uint64_t)(ids[i] - r->first_id) * r->stride, end = at + r->stride - 1;
        uint64_t p = at / HUGE_PAGE, q = end / HUGE_PAGE;
        rte_mbuf_iova_set(pl->headers[ids[i] - r->first_id], pages[p] + at % HUGE_PAGE);
        if (p == q || pages[q] == pages[p] + HUGE_PAGE)
            ids[fit++] = ids[i];
        else
            pl->unfit[pl->n_unfit++] = ids[i];
    }
    if (err == DQ_OK) host->bufs_free(r->session, ids, fit);
    free(pages);
    free(ids);
    return err;
}

// ---- sessions ---------------------------------------------------------------------------------------------

static bool any_pci(const dq_session *s) {
    for (uint32_t i = 0; i < s->n_ifaces; i++)
        if (strcmp(s->ifaces[i]->conf.engine, "dpdk") == 0 &&
            strncmp(s->ifaces[i]->conf.address, "vdev:", 5) != 0)
            return true;
    return false;
}

// Groups are allocated as a whole, and an mbuf's buffer has at most 64 KiB.
static const char *unfit_for_dpdk(const bound *b, const dq_region *r) {
    if (r->group > 1) return "the region's buffers are joined into super-buffers";
    if (r->stride > UINT16_MAX) return "the region's buffers are longer than 64 KiB";
    if (!r->cpu && !gpu_has(r)) return "the CPU can't read the region";
    if (b->physical && !r->huge && r->cpu)
        return "the region is not on huge pages, and the device needs physical addresses";
    return NULL;
}

static int bind_all(bound *b, dq_diag *diag) {
    int err = DQ_OK;
    for (uint32_t i = 0; err == DQ_OK && i < b->session->core.n_regions; i++, b->n++) {
        if (unfit_for_dpdk(b, b->session->core.regions[i])) continue;
        b->pools[i].pinned = any_pci(b->session) || gpu_has(b->session->core.regions[i]);
        err = pool_open(&b->pools[i], b->session->core.regions[i], diag);
        if (err == DQ_OK && b->physical && b->session->core.regions[i]->cpu)
            err = find_addresses(&b->pools[i], diag);
    }
    return err;
}

static void unbind_all(bound *b) {
    for (uint32_t i = 0; i < b->n; i++)
        pool_close(&b->pools[i]);
    bound **at = &all;
    while (*at && *at != b)
        at = &(*at)->next;
    if (*at) *at = b->next;
    free(b);
}

bound *bind_session(dq_session *s, dq_diag *diag) {
    rte_mbuf_ext_refcnt_set(&one_holder, 1);
    bound *b = all;
    while (b && b->session != s)
        b = b->next;
    if (!b) {
        b = calloc(1, sizeof *b);
        if (b) {
            *b = (bound){
                .session = s, .next = all, .physical = any_pci(s) && rte_eal_iova_mode() == RTE_IOVA_PA};
            all = b;
        }
        if (!b || bind_all(b, diag) != DQ_OK) {
            if (b)
                unbind_all(b);
            else
                host->fail(diag, DQ_ESYS - ENOMEM, "DPDK: no memory");
            b = NULL;
        }
    }
    if (b) b->users++;
    return b;
}

void unbind_session(bound *b) {
    if (b && --b->users == 0) unbind_all(b);
}

pool *pool_of(bound *b, const dq_region *r, const char **why) {
    *why = unfit_for_dpdk(b, r);
    for (uint32_t i = 0; i < b->n && !*why; i++)
        if (b->pools[i].region == r) return &b->pools[i];
    return NULL;
}
