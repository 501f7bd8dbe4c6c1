// device.c: opens a device of libibverbs by its name or that of its kernel interface or PCI function,
// registers all regions of the session, creates completion queues and queue pairs.
#include "core/err.h"
#include "engine/ibverbs/raw.h"
#include "engine/rdma/verbs_memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LOOK_NS   INT64_C(10000000)
#define MTU_GUESS 9000 // when the MTU is unknown

// ---- lookup -----------------------------------------------------------------------------------------------

static bool read_line(const char *path, char *out, size_t len) {
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(out, (int)len, f);
    if (f) fclose(f);
    if (ok) out[strcspn(out, "\n")] = 0;
    return ok && out[0];
}

// Finds the kernel's interface of a port in its GID table; "": unknown.
static void find_netdev(const char *device, uint8_t port, char *out, size_t len) {
    char path[512];
    out[0] = 0;
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs", device, port);
    DIR *d = opendir(path);
    const struct dirent *e;
    while (d && !out[0] && (e = readdir(d)) != NULL) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/gid_attrs/ndevs/%.20s", device, port,
                 e->d_name);
        read_line(path, out, len);
    }
    if (d) closedir(d);
}

static bool is_pci(const char *device, const char *address) {
    char path[512], target[PATH_MAX];
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/device", device);
    const char *name = realpath(path, target) ? strrchr(target, '/') : NULL;
    return name && strcmp(name + 1, address) == 0;
}

// Returns true if the address names port `port` of the device.
static bool is_named(const char *address, const char *device, uint8_t port) {
    char netdev[32], text[80];
    snprintf(text, sizeof text, "%s:%u", device, port);
    find_netdev(device, port, netdev, sizeof netdev);
    return strcmp(address, text) == 0 || strcmp(address, netdev) == 0 ||
           (port == 1 && (strcmp(address, device) == 0 || is_pci(device, address)));
}

static int open_named(dqi_port *p, vb_device **list, int n, dq_diag *diag) {
    vraw_port *v = p->state;
    const dq_iface *i = p->iface;
    char names[256] = "";
    for (int k = 0; k < n; k++) {
        for (uint8_t port = 1; port <= 2; port++) {
            if (!is_named(i->conf.address, list[k]->name, port)) continue;
            v->port_num = port;
            v->ctx = vb.open_device(list[k]);
            if (v->ctx) return DQ_OK;
            return dqi_fail(diag, DQ_ESYS - errno, "interface %s: device %s: %s", i->conf.name, list[k]->name,
                            strerror(errno));
        }
        if (strlen(names) + 80 > sizeof names) continue;
        strcat(names, names[0] ? ", " : "");
        strcat(names, list[k]->name);
    }
    return dqi_fail(
        diag, DQ_ESYS - ENODEV,
        "interface %s: %s is not an RDMA device, and none belongs to it; there %s %s; hint: rdma link",
        i->conf.name, i->conf.address, n == 1 ? "is" : "are", names[0] ? names : "none");
}

// ---- properties -------------------------------------------------------------------------------------------

// Derives the MAC from an Ethernet port's first GID: fe80::/64 with an EUI-64 (RFC 4291, appendix A).
static bool mac_of_gid(const vb_gid *g, uint8_t mac[6]) {
    const uint8_t *e = g->raw + 8;
    if (g->raw[0] != 0xfe || e[3] != 0xff || e[4] != 0xfe) return false;
    memcpy(mac, e, 3);
    memcpy(mac + 3, e + 5, 3);
    mac[0] ^= 2;
    return true;
}

static bool mac_of_netdev(const char *netdev, uint8_t mac[6]) {
    char path[128], text[64] = "";
    unsigned m[6];
    snprintf(path, sizeof path, "/sys/class/net/%s/address", netdev);
    if (!netdev[0] || !read_line(path, text, sizeof text)) return false;
    if (sscanf(text, "%x:%x:%x:%x:%x:%x", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]) != 6) return false;
    for (int k = 0; k < 6; k++)
        mac[k] = (uint8_t)m[k];
    return true;
}

static int describe(dqi_port *p, dq_diag *diag) {
    vraw_port *v = p->state;
    const char *name = p->iface->conf.name, *device = v->ctx->device->name;
    char path[128], text[64];
    vb_gid g;
    int err = vb.query_device(v->ctx, &v->attr);
    if (err == 0) err = vb.query_port(v->ctx, v->port_num, &v->info);
    if (err != 0)
        return dqi_fail(diag, DQ_ESYS - err, "interface %s: device %s: %s", name, device, strerror(err));
    if (v->info.link_layer == VB_LINK_LAYER_INFINIBAND)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "interface %s: port %u of device %s is InfiniBand: it has no frames", name,
                        v->port_num, device);
    find_netdev(device, v->port_num, v->netdev, sizeof v->netdev);
    p->netdev = if_nametoindex(v->netdev);
    snprintf(path, sizeof path, "/sys/class/net/%s/mtu", v->netdev);
    if (v->netdev[0] && read_line(path, text, sizeof text)) v->mtu = (uint32_t)atoi(text);
    v->frame = (v->mtu > 0 ? v->mtu : MTU_GUESS) + VRAW_HEADERS;
    bool known = mac_of_netdev(v->netdev, v->mac) ||
                 (vb.query_gid(v->ctx, v->port_num, 0, &g) == 0 && mac_of_gid(&g, v->mac));
    if (!known)
        return dqi_fail(diag, DQ_NOT_SUPPORTED, "interface %s: device %s: cannot find its Ethernet address",
                        name, device);
    const vb_context_ex *x = (const void *)((const char *)v->ctx - offsetof(vb_context_ex, context));
    bool extended = v->ctx->abi_compat == (void *)UINTPTR_MAX && x->size >= sizeof *x;
    v->calls = extended && x->create_flow && x->destroy_flow ? x : NULL;
    if (v->calls || p->iface->n_rx == 0) return DQ_OK;
    return dqi_fail(diag, DQ_NOT_SUPPORTED,
                    "interface %s: device %s steers no flows to raw packet queue pairs; hint: another engine",
                    name, device);
}

// Returns true if a receive queue of the interface uses the region; other GPU regions are not registered, as
// their packets are copied before they are sent.
static bool is_received(const dq_iface *i, const dq_region *g) {
    bool has = false;
    for (uint32_t k = 0; k < i->n_rx; k++)
        for (uint32_t s = 0; s < i->rx[k]->conf.n_regions; s++)
            has |= i->rx[k]->conf.regions[s] == g;
    return has;
}

// Registers the k-th region of the session.
static int register_one(dqi_port *p, uint32_t k, dq_diag *diag) {
    vraw_port *v = p->state;
    const dq_iface *i = p->iface;
    vb_mr *mr = NULL;
    int err = dqi_verbs_register(v->pd, i->session->core.regions[k], VB_ACCESS_LOCAL_WRITE, i->conf.name, &mr,
                                 diag);
    v->mrs[k] = mr;
    return err;
}

static int register_all(dqi_port *p, dq_diag *diag) {
    vraw_port *v = p->state;
    dq_session *s = p->iface->session;
    for (uint32_t k = 0; k < s->core.n_regions; k++) {
        const dq_region *g = s->core.regions[k];
        if (!g->cpu && !is_received(p->iface, g)) continue;
        int err = register_one(p, k, diag);
        if (err != DQ_OK) return err;
        if (!g->cpu)
            dqi_note(s,
                     "memory region %s: device %s of interface %s puts packets into the GPU's memory itself "
                     "(DMA-BUF)",
                     g->conf.name, v->ctx->device->name, p->iface->conf.name);
    }
    return DQ_OK;
}

uint32_t vraw_lkey(const dqi_port *p, uint64_t off) {
    const vraw_port *v = p->state;
    const dq_session *s = p->iface->session;
    for (uint32_t k = 0; k < s->core.n_regions; k++) {
        const vb_mr *mr = atomic_load_explicit(&v->mrs[k], memory_order_acquire);
        if (mr && dqi_region_has(s->core.regions[k], off)) return mr->lkey;
    }
    return 0;
}

static uint32_t index_of(const dq_session *s, const dq_region *r) {
    uint32_t k = 0;
    while (s->core.regions[k] != r)
        k++;
    return k;
}

static int change_region(const dq_iface *i, const dq_region *r, dq_diag *diag) {
    const dqi_port *p = dqi_port_of(i);
    for (uint32_t l = 0; l < DQ_MAX_QUEUES; l++)
        if (r && vraw_posts(&p->queues[l], r))
            return dqi_fail(
                diag, DQ_NOT_SUPPORTED,
                "interface %s: region %s: device queue %u has its buffers posted until the session "
                "ends",
                i->conf.name, r->conf.name, l);
    return DQ_OK;
}

static int join_region(dq_iface *i, const dq_region *r, dq_diag *diag) {
    return register_one(dqi_port_of(i), index_of(i->session, r), diag);
}

static void leave_region(dq_iface *i, const dq_region *r) {
    vraw_port *v = dqi_port_of(i)->state;
    vb_mr *mr = atomic_exchange(&v->mrs[index_of(i->session, r)], NULL);
    if (mr) vb.dereg_mr(mr);
}

const dqi_region_ops vraw_regions = {.change = change_region, .join = join_region, .leave = leave_region};

// Returns the port's out-of-buffer counter of its driver (mlx5, mlx4); 0: not available.
static uint64_t no_buffer(const vraw_port *v) {
    char path[256], text[32];
    snprintf(path, sizeof path, "/sys/class/infiniband/%s/ports/%u/hw_counters/out_of_buffer",
             v->ctx->device->name, v->port_num);
    return read_line(path, text, sizeof text) ? strtoull(text, NULL, 10) : 0;
}

void vraw_refresh(dqi_port *p) {
    const vraw_port *v = p->state;
    atomic_store_explicit(&p->c.extra[DQ_EXTRA_NIC_NO_BUFFER], no_buffer(v) - v->no_buffer,
                          memory_order_relaxed);
}

static int nonblocking(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) != 0 ? errno : 0;
}

static int find_device(dqi_port *p, dq_diag *diag) {
    vraw_port *v = p->state;
    int n = 0, err = dqi_verbs_load(p->iface->conf.name, diag);
    if (err != DQ_OK) return err;
    vb_device **list = vb.get_device_list(&n);
    err = open_named(p, list, list ? n : 0, diag);
    if (list) vb.free_device_list(list);
    if (err == DQ_OK) err = describe(p, diag);
    if (err != DQ_OK) return err;
    v->pd = vb.alloc_pd(v->ctx);
    if (v->pd) return DQ_OK;
    return dqi_fail(diag, DQ_ESYS - errno, "interface %s: device %s: %s", p->iface->conf.name,
                    v->ctx->device->name, strerror(errno));
}

int vraw_device_open(dqi_port *p, dq_diag *diag) {
    vraw_port *v = p->state;
    int err = find_device(p, diag);
    if (err != DQ_OK) return err;
    nonblocking(v->ctx->async_fd);
    v->no_buffer = no_buffer(v);
    return register_all(p, diag);
}

void vraw_device_close(vraw_port *v) {
    for (uint32_t k = 0; k < DQI_MAX_REGIONS; k++)
        if (v->mrs[k]) vb.dereg_mr(v->mrs[k]);
    if (v->pd) vb.dealloc_pd(v->pd);
    if (v->ctx) vb.close_device(v->ctx);
}

const char *vraw_cannot_split(const vraw_port *v, const dq_iface *i, const dq_queue *q) {
    if (i->n_rx > 1) return "several receive queues: their frames are sorted by software";
    if (q->conf.n_regions != VRAW_PARTS) return "it has more than a region for headers and one for payloads";
    return v->attr.max_sge <= VRAW_PARTS ? "the device scatters a frame over too few places" : NULL;
}

// Returns why whole frames cannot be received into the queue's only region in GPU memory; NULL: they can.
static const char *cannot_keep_whole(const vraw_port *v, const dq_iface *i) {
    if (i->n_rx > 1) return "several receive queues: their frames are sorted by software";
    return v->attr.max_sge < 2 ? "the device scatters a frame over too few places" : NULL;
}

bool vraw_reaches_gpu(const dq_iface *i, const dq_queue *q, uint32_t seg, uint8_t *at, uint64_t bytes,
                      dq_diag *why) {
    vraw_port v = {0};
    dqi_port p = {.iface = (dq_iface *)i, .state = &v};
    char what[2 * DQ_NAME_LEN + 32];
    (void)seg;
    bool ok = find_device(&p, why) == DQ_OK;
    const char *cannot = !ok                      ? NULL
                         : q->conf.n_regions == 1 ? cannot_keep_whole(&v, i)
                                                  : vraw_cannot_split(&v, i, q);
    snprintf(what, sizeof what, "queue %s", q->conf.name);
    if (cannot) dqi_fail(why, DQ_NOT_SUPPORTED, "%s: %s", what, cannot);
    ok = ok && !cannot && dqi_verbs_reach_gpu(v.pd, at, bytes, what, why);
    vraw_device_close(&v);
    return ok;
}

void vraw_look(dqi_port *p, dq_queue *q) {
    vraw_port *v = p->state;
    vb_async_event e;
    int64_t now = dq_now(q->session);
    if (now - v->looked_ns < LOOK_NS) return;
    v->looked_ns = now;
    while (vb.get_async_event(v->ctx, &e) == 0) {
        if (e.event_type == VB_EVENT_PORT_ERR) dqi_queue_error_add(q->errors, ENETDOWN, 1);
        if (e.event_type == VB_EVENT_DEVICE_FATAL) dqi_queue_error_add(q->errors, ENODEV, 1);
        vb.ack_async_event(&e);
    }
}

// ---- queues -----------------------------------------------------------------------------------------------

int vraw_cq_open(const dqi_port *p, vraw_cq *q, uint32_t n) {
    const vraw_port *v = p->state;
    q->channel = vb.create_comp_channel(v->ctx);
    if (!q->channel) return errno;
    int err = nonblocking(q->channel->fd);
    if (err == 0) q->cq = vb.create_cq(v->ctx, (int)n, NULL, q->channel, 0);
    return err != 0 ? err : q->cq ? 0 : errno;
}

int vraw_qp_open(const dqi_port *p, vb_qp_init_attr *a, vb_qp **out) {
    const vraw_port *v = p->state;
    a->qp_type = VB_QPT_RAW_PACKET;
    *out = vb.create_qp(v->pd, a);
    if (!*out) return errno;
    vb_qp_attr s = {.qp_state = VB_QPS_INIT, .port_num = v->port_num};
    int err = vb.modify_qp(*out, &s, VB_QP_STATE | VB_QP_PORT);
    s.qp_state = VB_QPS_RTR;
    if (err == 0) err = vb.modify_qp(*out, &s, VB_QP_STATE);
    s.qp_state = VB_QPS_RTS;
    if (err == 0) err = vb.modify_qp(*out, &s, VB_QP_STATE);
    return err;
}

static void take_events(vraw_cq *q) {
    vb_take_events(q->channel);
    q->armed = false;
}

void vraw_cq_close(vraw_cq *q) {
    if (q->cq) {
        take_events(q);
        vb.destroy_cq(q->cq);
    }
    if (q->channel) vb.destroy_comp_channel(q->channel);
}

static void poll_again(vraw_cq *q) {
    int n = vb_poll_cq(q->cq, VRAW_POLL, q->wc);
    q->at = 0;
    q->n = n > 0 ? (uint32_t)n : 0;
}

vb_wc *vraw_next(vraw_cq *q) {
    if (q->at == q->n) {
        if (q->armed) take_events(q);
        poll_again(q);
    }
    return q->at < q->n ? &q->wc[q->at] : NULL;
}

bool vraw_arm(vraw_cq *q) {
    if (!q->armed) vb_req_notify(q->cq);
    q->armed = true;
    if (q->at == q->n) poll_again(q); // earlier completions trigger no event
    return q->at == q->n;
}
