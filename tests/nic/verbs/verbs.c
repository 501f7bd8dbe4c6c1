// verbs.c: stands in for libibverbs (DAQIRI_VERBS): devices fake0, fake1, …, of which each two are on one
// wire in memory, with raw packet queue pairs and flow steering. It is made with libibverbs' own header, and
// keeps to its rules: states of queue pairs, sizes of queues, keys and ranges of memory, what may be
// destroyed before what. Who breaks one is ended with a message, so that no test passes then.
//
// DAQIRI_FAKE_VERBS: "noflows": no rules but that for everything; "nodmabuf": no memory of GPUs; behind a ':'
// the name of a file, to which each device that is closed adds a line with what it counted.
#include "verbs.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

pthread_mutex_t nic_lock = PTHREAD_MUTEX_INITIALIZER;
static nic_device devices[DEVICES];
static uint32_t keys = 1000, numbers = 100;

void nic_broken(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fputs("libibverbs: ", stderr);
    vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    va_end(ap);
    abort();
}

// ---- devices ----------------------------------------------------------------------------------------------

#undef ibv_get_device_list
struct ibv_device **ibv_get_device_list(int *n) {
    struct ibv_device **list = calloc(DEVICES + 1, sizeof *list);
    pthread_mutex_lock(&nic_lock);
    for (uint32_t k = 0; k < DEVICES; k++) {
        nic_device *d = &devices[k];
        d->index = k;
        d->device.node_type = IBV_NODE_CA;
        snprintf(d->device.name, sizeof d->device.name, "fake%u", k);
        list[k] = &d->device;
    }
    pthread_mutex_unlock(&nic_lock);
    if (n) *n = DEVICES;
    return list;
}

void ibv_free_device_list(struct ibv_device **list) { free(list); }

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
static int req_notify(struct ibv_cq *cq, int solicited);
static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

struct ibv_context *ibv_open_device(struct ibv_device *device) {
    struct verbs_context *v = calloc(1, sizeof *v);
    v->sz = sizeof *v;
    v->ibv_create_flow = nic_create_flow;
    v->ibv_destroy_flow = nic_destroy_flow;
    v->context.device = device;
    v->context.abi_compat = __VERBS_ABI_IS_EXTENDED;
    v->context.async_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    v->context.num_comp_vectors = 1;
    v->context.ops.poll_cq = poll_cq;
    v->context.ops.req_notify_cq = req_notify;
    v->context.ops.post_send = post_send;
    v->context.ops.post_recv = post_recv;
    pthread_mutex_lock(&nic_lock);
    ((nic_device *)device)->open++;
    pthread_mutex_unlock(&nic_lock);
    return &v->context;
}

static void tell(nic_device *d) {
    const char *how = getenv("DAQIRI_FAKE_VERBS"), *file = how ? strchr(how, ':') : NULL;
    FILE *f = file ? fopen(file + 1, "a") : NULL;
    if (!f) return;
    fprintf(f, "%s steered %lu default %lu unwanted %lu without buffer %lu\n", d->device.name, d->steered,
            d->by_default, d->unwanted, d->no_buffer);
    fclose(f);
}

int ibv_close_device(struct ibv_context *c) {
    nic_device *d = nic_of(c);
    pthread_mutex_lock(&nic_lock);
    if (--d->open == 0) {
        if (d->pds || d->cqs || d->channels || d->mrs || d->flows)
            nic_broken("%s is closed with %d domains, %d completion queues, %d channels left", d->device.name,
                       d->pds, d->cqs, d->channels);
        tell(d);
    }
    pthread_mutex_unlock(&nic_lock);
    close(c->async_fd);
    free((char *)c - offsetof(struct verbs_context, context));
    return 0;
}

int ibv_query_device(struct ibv_context *c, struct ibv_device_attr *a) {
    (void)c;
    *a = (struct ibv_device_attr){.max_qp_wr = MAX_WR,
                                  .max_sge = MAX_SGE,
                                  .max_cqe = 1 << 16,
                                  .phys_port_cnt = 1,
                                  .max_raw_ethy_qp = 64};
    return 0;
}

#undef ibv_query_port
int ibv_query_port(struct ibv_context *c, uint8_t port, struct _compat_ibv_port_attr *out) {
    struct ibv_port_attr a = {.state = IBV_PORT_ACTIVE,
                              .max_mtu = IBV_MTU_4096,
                              .active_mtu = IBV_MTU_1024,
                              .gid_tbl_len = 1,
                              .max_msg_sz = MAX_FRAME,
                              .link_layer = IBV_LINK_LAYER_ETHERNET};
    (void)c;
    if (port != 1) return EINVAL;
    memcpy(out, &a, sizeof a);
    return 0;
}

int ibv_query_gid(struct ibv_context *c, uint8_t port, int index, union ibv_gid *g) {
    uint32_t k = nic_of(c)->index;
    const uint8_t raw[16] = {0xfe, 0x80, [8] = 0, 0, 0, 0xff, 0xfe, 0xfa, (uint8_t)(k >> 8), (uint8_t)k};
    if (port != 1 || index != 0) return -1;
    memcpy(g->raw, raw, 16);
    return 0;
}

int ibv_get_async_event(struct ibv_context *c, struct ibv_async_event *e) {
    (void)c, (void)e;
    errno = EAGAIN; // nothing happens to these devices
    return -1;
}

void ibv_ack_async_event(struct ibv_async_event *e) { (void)e; }

// ---- memory -----------------------------------------------------------------------------------------------

struct ibv_pd *ibv_alloc_pd(struct ibv_context *c) {
    struct ibv_pd *pd = calloc(1, sizeof *pd);
    pd->context = c;
    pthread_mutex_lock(&nic_lock);
    nic_of(c)->pds++;
    pthread_mutex_unlock(&nic_lock);
    return pd;
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
    nic_device *d = nic_of(pd->context);
    pthread_mutex_lock(&nic_lock);
    for (const nic_mr *m = d->mrs; m; m = m->next)
        if (m->mr.pd == pd) nic_broken("a domain is freed whose memory is still registered");
    if (pd->handle) nic_broken("a domain is freed that has %u queue pairs", pd->handle);
    d->pds--;
    pthread_mutex_unlock(&nic_lock);
    free(pd);
    return 0;
}

static struct ibv_mr *add_memory(struct ibv_pd *pd, void *addr, size_t length, int access, uint8_t *alias) {
    nic_device *d = nic_of(pd->context);
    nic_mr *m = calloc(1, sizeof *m);
    m->alias = alias;
    pthread_mutex_lock(&nic_lock);
    m->mr = (struct ibv_mr){.context = pd->context, .pd = pd, .addr = addr, .length = length, .lkey = ++keys};
    m->mr.handle = (uint32_t)access;
    m->next = d->mrs;
    d->mrs = m;
    pthread_mutex_unlock(&nic_lock);
    return &m->mr;
}

#undef ibv_reg_mr
struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access) {
    return add_memory(pd, addr, length, access, NULL);
}

struct ibv_mr *ibv_reg_dmabuf_mr(struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd,
                                 int access) {
    const char *how = getenv("DAQIRI_FAKE_VERBS");
    uint64_t page = 4096;
    if (how && strncmp(how, "nodmabuf", 8) == 0) {
        errno = EOPNOTSUPP;
        return NULL;
    }
    if (offset % page != iova % page) {
        errno = EINVAL;
        return NULL;
    }
    uint8_t *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, (off_t)offset);
    return at == MAP_FAILED ? NULL : add_memory(pd, (void *)(uintptr_t)iova, length, access, at);
}

int ibv_dereg_mr(struct ibv_mr *mr) {
    nic_device *d = nic_of(mr->context);
    pthread_mutex_lock(&nic_lock);
    nic_mr **at = &d->mrs;
    while (*at && &(*at)->mr != mr)
        at = &(*at)->next;
    if (!*at) nic_broken("memory is taken back that is not registered");
    *at = (*at)->next;
    pthread_mutex_unlock(&nic_lock);
    uint8_t *alias = ((nic_mr *)mr)->alias;
    if (alias) munmap(alias, mr->length);
    free(mr);
    return 0;
}

uint8_t *nic_reach(const nic_qp *q, const struct ibv_sge *s, int need) {
    const nic_mr *m = nic_of(q->qp.context)->mrs;
    while (m && m->mr.lkey != s->lkey)
        m = m->next;
    uint64_t from = m ? s->addr - (uintptr_t)m->mr.addr : 0;
    bool may = m && m->mr.pd == q->qp.pd && from <= m->mr.length && s->length <= m->mr.length - from &&
               ((int)m->mr.handle & need) == need;
    return !may ? NULL : m->alias ? m->alias + from : (uint8_t *)(uintptr_t)s->addr;
}

// ---- completion queues ------------------------------------------------------------------------------------

// Of one completion queue, as the only users have it.
typedef struct nic_channel {
    struct ibv_comp_channel ch;
    struct ibv_cq *cq;
} nic_channel;

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *c) {
    struct ibv_comp_channel *ch = calloc(1, sizeof(nic_channel));
    ch->context = c;
    ch->fd = eventfd(0, EFD_CLOEXEC | EFD_SEMAPHORE);
    pthread_mutex_lock(&nic_lock);
    nic_of(c)->channels++;
    pthread_mutex_unlock(&nic_lock);
    return ch;
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *ch) {
    pthread_mutex_lock(&nic_lock);
    if (ch->refcnt) nic_broken("a channel is destroyed that %d completion queues use", ch->refcnt);
    nic_of(ch->context)->channels--;
    pthread_mutex_unlock(&nic_lock);
    close(ch->fd);
    free(ch);
    return 0;
}

struct ibv_cq *ibv_create_cq(struct ibv_context *c, int cqe, void *context, struct ibv_comp_channel *ch,
                             int vector) {
    nic_cq *q = calloc(1, sizeof *q);
    if (cqe < 1 || vector != 0) nic_broken("a completion queue of %d entries, vector %d", cqe, vector);
    q->cq = (struct ibv_cq){.context = c, .channel = ch, .cq_context = context, .cqe = cqe};
    q->entries = calloc((size_t)cqe, sizeof *q->entries);
    pthread_mutex_lock(&nic_lock);
    nic_of(c)->cqs++;
    if (ch && ch->refcnt++ > 0) nic_broken("a channel has two completion queues");
    if (ch) ((nic_channel *)ch)->cq = &q->cq;
    pthread_mutex_unlock(&nic_lock);
    return &q->cq;
}

int ibv_resize_cq(struct ibv_cq *cq, int cqe) {
    (void)cq, (void)cqe;
    return EOPNOTSUPP;
}

int ibv_destroy_cq(struct ibv_cq *cq) {
    nic_cq *q = (nic_cq *)cq;
    pthread_mutex_lock(&nic_lock);
    if (q->users) nic_broken("a completion queue is destroyed that %d queue pairs use", q->users);
    if (q->events != q->acked)
        nic_broken("%u events are not acknowledged: destroying would block", q->events - q->acked);
    nic_of(cq->context)->cqs--;
    if (cq->channel) cq->channel->refcnt--;
    pthread_mutex_unlock(&nic_lock);
    free(q->entries);
    free(q);
    return 0;
}

void nic_complete(nic_cq *q, struct ibv_wc wc, nic_qp *sender, uint32_t at) {
    if (q->tail - q->head == (uint32_t)q->cq.cqe)
        nic_broken("a completion queue of %d entries overruns", q->cq.cqe);
    uint32_t k = q->tail++ % (uint32_t)q->cq.cqe;
    q->entries[k].wc = wc;
    q->entries[k].sender = sender;
    q->entries[k].at = at;
    if (!q->armed) return;
    q->armed = false;
    uint64_t one = 1;
    if (write(q->cq.channel->fd, &one, sizeof one) != sizeof one) nic_broken("no event");
    q->events++;
}

static int poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc) {
    nic_cq *q = (nic_cq *)cq;
    int k = 0;
    pthread_mutex_lock(&nic_lock);
    for (; k < n && q->head != q->tail; k++, q->head++) {
        uint32_t at = q->head % (uint32_t)cq->cqe;
        wc[k] = q->entries[at].wc;
        if (q->entries[at].sender) q->entries[at].sender->freed = q->entries[at].at + 1;
    }
    pthread_mutex_unlock(&nic_lock);
    return k;
}

static int req_notify(struct ibv_cq *cq, int solicited) {
    if (solicited || !cq->channel) nic_broken("notification without a channel");
    pthread_mutex_lock(&nic_lock);
    ((nic_cq *)cq)->armed = true;
    pthread_mutex_unlock(&nic_lock);
    return 0;
}

int ibv_get_cq_event(struct ibv_comp_channel *ch, struct ibv_cq **cq, void **context) {
    uint64_t n;
    *cq = ((nic_channel *)ch)->cq;
    *context = NULL;
    return read(ch->fd, &n, sizeof n) == sizeof n ? 0 : -1;
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int n) {
    nic_cq *q = (nic_cq *)cq;
    pthread_mutex_lock(&nic_lock);
    q->acked += n;
    if (q->acked > q->events) nic_broken("more events are acknowledged than there were");
    pthread_mutex_unlock(&nic_lock);
}

// ---- queue pairs ------------------------------------------------------------------------------------------

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *a) {
    const struct ibv_qp_cap *c = &a->cap;
    if (a->qp_type != IBV_QPT_RAW_PACKET || !a->send_cq || !a->recv_cq || c->max_send_wr > MAX_WR ||
        c->max_recv_wr > MAX_WR || c->max_send_sge > MAX_SGE || c->max_recv_sge > MAX_SGE ||
        c->max_inline_data > 256) {
        errno = EINVAL;
        return NULL;
    }
    nic_qp *q = calloc(1, sizeof *q);
    q->qp = (struct ibv_qp){.context = pd->context,
                            .qp_context = a->qp_context,
                            .pd = pd,
                            .send_cq = a->send_cq,
                            .recv_cq = a->recv_cq,
                            .state = IBV_QPS_RESET,
                            .qp_type = a->qp_type};
    q->cap = *c;
    q->all_signaled = a->sq_sig_all;
    q->recv = calloc(c->max_recv_wr + 1, sizeof *q->recv);
    pthread_mutex_lock(&nic_lock);
    q->qp.qp_num = ++numbers;
    pd->handle++;
    ((nic_cq *)a->send_cq)->users++;
    ((nic_cq *)a->recv_cq)->users++;
    pthread_mutex_unlock(&nic_lock);
    return &q->qp;
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask) {
    static const int masks[] = {[IBV_QPS_INIT] = IBV_QP_STATE | IBV_QP_PORT,
                                [IBV_QPS_RTR] = IBV_QP_STATE,
                                [IBV_QPS_RTS] = IBV_QP_STATE};
    int to = (int)a->qp_state, err = EINVAL;
    pthread_mutex_lock(&nic_lock);
    if (to == IBV_QPS_ERR && mask == IBV_QP_STATE && qp->state != IBV_QPS_RESET) {
        err = 0;
        qp->state = IBV_QPS_ERR;
        nic_flush((nic_qp *)qp);
    } else if (to >= IBV_QPS_INIT && to <= IBV_QPS_RTS && to == (int)qp->state + 1 && mask == masks[to]) {
        err = to == IBV_QPS_INIT && a->port_num != 1 ? EINVAL : 0;
        if (err == 0) qp->state = a->qp_state;
    }
    pthread_mutex_unlock(&nic_lock);
    return err;
}

int ibv_destroy_qp(struct ibv_qp *qp) {
    nic_qp *q = (nic_qp *)qp;
    pthread_mutex_lock(&nic_lock);
    if (q->flows) nic_broken("a queue pair is destroyed that %d rules lead to", q->flows);
    nic_cq *cqs[2] = {(nic_cq *)qp->send_cq, (nic_cq *)qp->recv_cq};
    for (int k = 0; k < 2; k++) {
        cqs[k]->users--;
        for (uint32_t at = cqs[k]->head; at != cqs[k]->tail; at++) // slots no longer report it
            if (cqs[k]->entries[at % (uint32_t)cqs[k]->cq.cqe].sender == q)
                cqs[k]->entries[at % (uint32_t)cqs[k]->cq.cqe].sender = NULL;
    }
    qp->pd->handle--;
    pthread_mutex_unlock(&nic_lock);
    free(q->recv);
    free(q);
    return 0;
}

static int post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad) {
    nic_qp *q = (nic_qp *)qp;
    int err = 0;
    pthread_mutex_lock(&nic_lock);
    if (qp->state == IBV_QPS_RESET) nic_broken("receives are posted to a queue pair that is reset");
    for (; wr; wr = wr->next) {
        bool full = q->recv_tail - q->recv_head == q->cap.max_recv_wr;
        err = full ? ENOMEM : wr->num_sge < 0 || (uint32_t)wr->num_sge > q->cap.max_recv_sge ? EINVAL : 0;
        if (err != 0) break;
        uint32_t k = q->recv_tail++ % q->cap.max_recv_wr;
        q->recv[k].wr_id = wr->wr_id;
        q->recv[k].n = wr->num_sge;
        for (int s = 0; s < wr->num_sge; s++)
            q->recv[k].sge[s] = wr->sg_list[s];
    }
    if (qp->state == IBV_QPS_ERR) nic_flush(q);
    pthread_mutex_unlock(&nic_lock);
    if (err != 0) *bad = wr;
    return err;
}

void nic_flush(nic_qp *q) {
    for (; q->recv_head != q->recv_tail; q->recv_head++)
        nic_complete((nic_cq *)q->qp.recv_cq,
                     (struct ibv_wc){.wr_id = q->recv[q->recv_head % q->cap.max_recv_wr].wr_id,
                                     .status = IBV_WC_WR_FLUSH_ERR,
                                     .opcode = IBV_WC_RECV,
                                     .qp_num = q->qp.qp_num},
                     NULL, 0);
}

// One send; its status.
static enum ibv_wc_status send_one(nic_qp *q, const struct ibv_send_wr *wr) {
    static uint8_t frame[MAX_FRAME + 1]; // under the lock
    uint32_t len = 0;
    bool inline_ = wr->send_flags & IBV_SEND_INLINE;
    if (q->qp.state == IBV_QPS_ERR) return IBV_WC_WR_FLUSH_ERR;
    for (int s = 0; s < wr->num_sge; s++) {
        const struct ibv_sge *g = &wr->sg_list[s];
        const uint8_t *from = inline_ ? (void *)(uintptr_t)g->addr : nic_reach(q, g, 0);
        if (!from) return IBV_WC_LOC_PROT_ERR;
        if (g->length > MAX_FRAME - len) return IBV_WC_LOC_LEN_ERR;
        memcpy(frame + len, from, g->length);
        len += g->length;
    }
    if (inline_ && len > q->cap.max_inline_data)
        nic_broken("%u bytes are sent inline, %u fit", len, q->cap.max_inline_data);
    if (len < 14) return IBV_WC_LOC_QP_OP_ERR;
    nic_deliver(&devices[nic_of(q->qp.context)->index ^ 1], frame, len);
    return IBV_WC_SUCCESS;
}

static int post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad) {
    nic_qp *q = (nic_qp *)qp;
    int err = 0;
    pthread_mutex_lock(&nic_lock);
    if (qp->state != IBV_QPS_RTS && qp->state != IBV_QPS_ERR)
        nic_broken("sends are posted in state %d", qp->state);
    for (; wr; wr = wr->next) {
        bool full = q->sent - q->freed == q->cap.max_send_wr;
        bool wrong =
            wr->opcode != IBV_WR_SEND || wr->num_sge < 0 || (uint32_t)wr->num_sge > q->cap.max_send_sge;
        err = full ? ENOMEM : wrong ? EINVAL : 0;
        if (err != 0) break;
        uint32_t at = q->sent++;
        enum ibv_wc_status s = send_one(q, wr);
        if (s != IBV_WC_SUCCESS || q->all_signaled || (wr->send_flags & IBV_SEND_SIGNALED))
            nic_complete(
                (nic_cq *)qp->send_cq,
                (struct ibv_wc){.wr_id = wr->wr_id, .status = s, .opcode = IBV_WC_SEND, .qp_num = qp->qp_num},
                q, at);
        if (s != IBV_WC_SUCCESS) qp->state = IBV_QPS_ERR;
    }
    pthread_mutex_unlock(&nic_lock);
    if (err != 0) *bad = wr;
    return err;
}

void nic_deliver(nic_device *d, const uint8_t *frame, uint32_t len) {
    nic_flow *f = nic_match(d, frame, len);
    if (!f) {
        d->unwanted++;
        return;
    }
    nic_qp *q = f->qp;
    if (q->qp.state < IBV_QPS_RTR || q->qp.state > IBV_QPS_SQD || q->recv_head == q->recv_tail) {
        d->no_buffer++;
        return;
    }
    uint32_t k = q->recv_head++ % q->cap.max_recv_wr, at = 0;
    struct ibv_wc wc = {
        .wr_id = q->recv[k].wr_id, .opcode = IBV_WC_RECV, .byte_len = len, .qp_num = q->qp.qp_num};
    for (int s = 0; s < q->recv[k].n && wc.status == IBV_WC_SUCCESS; s++) {
        const struct ibv_sge *g = &q->recv[k].sge[s];
        uint32_t n = len - at < g->length ? len - at : g->length;
        uint8_t *to = nic_reach(q, g, IBV_ACCESS_LOCAL_WRITE);
        if (!to)
            wc.status = IBV_WC_LOC_PROT_ERR;
        else
            memcpy(to, frame + at, n);
        at += n;
    }
    if (wc.status == IBV_WC_SUCCESS && at < len) wc.status = IBV_WC_LOC_LEN_ERR;
    nic_complete((nic_cq *)q->qp.recv_cq, wc, NULL, 0);
    if (f->attr->type == IBV_FLOW_ATTR_NORMAL)
        d->steered++;
    else
        d->by_default++;
    if (wc.status == IBV_WC_SUCCESS) return;
    q->qp.state = IBV_QPS_ERR;
    nic_flush(q);
}

// ---- what raw packets have no use for ---------------------------------------------------------------------

int ibv_query_qp(struct ibv_qp *qp, struct ibv_qp_attr *a, int mask, struct ibv_qp_init_attr *init) {
    (void)qp, (void)a, (void)mask, (void)init;
    return EOPNOTSUPP;
}
struct ibv_ah *ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *a) {
    return (void)pd, (void)a, errno = EOPNOTSUPP, NULL;
}
struct ibv_ah *ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh,
                                     uint8_t port) {
    return (void)pd, (void)wc, (void)grh, (void)port, errno = EOPNOTSUPP, NULL;
}
int ibv_destroy_ah(struct ibv_ah *ah) { return (void)ah, EOPNOTSUPP; }
