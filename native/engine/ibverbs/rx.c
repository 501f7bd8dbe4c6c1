// rx.c: receive: buffers are posted to a queue pair and completed with frames.
//
// For a queue with one region its buffers are posted and passed on with the frame; for an only queue with two
// regions a buffer of each, so that the device splits frames. Buffers may be in GPU memory. The excess of a
// frame over its buffers goes into memory of the queue pair, so no frame is too long. For other queues whole
// frames go into that memory and are copied.
#include "core/dq_burst.h"
#include "core/err.h"
#include "engine/ibverbs/raw.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>

#define LOOK_AGAIN_NS 100000 // when the pool has no free buffers
#define CHAIN         64     // receives posted at once

// ---- open and close ---------------------------------------------------------------------------------------

static int open_places(dqi_port *p, vraw_rx *x) {
    const vraw_port *v = p->state;
    if (x->room >= v->frame) return 0;
    x->own_bytes = v->frame - x->room;
    size_t bytes = (size_t)x->own_bytes * VRAW_DEPTH;
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return errno;
    x->own = at;
    x->own_mr = vb.reg_mr(v->pd, at, bytes, VB_ACCESS_LOCAL_WRITE);
    return x->own_mr ? 0 : errno;
}

static uint32_t least(uint32_t a, uint32_t b) { return a < b ? a : b; }

// Selects the queue's regions for direct reception if possible.
static void take_parts(dqi_port_queue *l, dq_queue *q, vraw_rx *x) {
    dqi_port *p = l->port;
    const vraw_port *v = p->state;
    const dq_iface *i = p->iface;
    bool later = l->index >= p->n_queues; // then it is not the only one
    bool whole = q->conf.n_regions == 1 && v->attr.max_sge >= 2;
    bool split = q->conf.n_regions > 1 && !later && !vraw_cannot_split(v, i, q);
    if (!whole && !split) return;
    x->n_parts = q->conf.n_regions;
    for (uint32_t s = 0; s < x->n_parts; s++) {
        x->parts[s] = q->conf.regions[s];
        x->room += x->parts[s]->conf.buf_size;
        x->most = least(x->most, x->parts[s]->conf.num_bufs / 2 / i->n_rx);
    }
    x->reserve = i->n_rx > 1 ? x->most / 4 : 0;
    l->region = q->conf.regions[0];
    l->split = split ? q : NULL;
    p->direct = true;
}

int vraw_rx_open(dqi_port_queue *l, dq_queue *q, dq_diag *diag) {
    dqi_port *p = l->port;
    const vraw_port *v = p->state;
    const dq_iface *i = p->iface;
    vraw_rx *x = calloc(1, sizeof *x);
    if (!x) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
    l->state = x;
    x->most = least(VRAW_DEPTH, (uint32_t)v->attr.max_qp_wr);
    take_parts(l, q, x);
    if (x->most == 0) x->most = 1;
    int err = open_places(p, x);
    if (err == 0) err = vraw_cq_open(p, &x->cq, VRAW_DEPTH);
    vb_qp_init_attr a = {
        .send_cq = x->cq.cq,
        .recv_cq = x->cq.cq,
        .cap = {.max_send_wr = 1, .max_recv_wr = x->most, .max_send_sge = 1, .max_recv_sge = x->n_parts + 1}};
    if (err == 0) err = vraw_qp_open(p, &a, &x->qp);
    if (err == 0) return DQ_OK;
    return dqi_fail(diag, DQ_ESYS - err,
                    "interface %s: device %s: cannot create a raw packet queue pair: %s%s", i->conf.name,
                    v->ctx->device->name, strerror(err),
                    err == EPERM ? "; hint: run as root, or with the capability CAP_NET_RAW" : "");
}

// Frees the buffers of a slot.
static void free_slot(const dqi_port *p, const vraw_rx *x, uint32_t k) {
    for (uint32_t s = 0; s < x->n_parts; s++)
        dqi_bufs_free(p->iface->session, &x->ids[s][k], 1);
}

void vraw_rx_close(dqi_port_queue *l) {
    const dqi_port *p = l->port;
    vraw_rx *x = l->state;
    l->state = NULL;
    l->region = NULL;
    if (!x) return;
    if (x->qp) vb.destroy_qp(x->qp); // ends the device's writes
    for (; x->head != x->tail; x->head++)
        free_slot(p, x, x->head % VRAW_DEPTH);
    vraw_cq_close(&x->cq);
    if (x->own_mr) vb.dereg_mr(x->own_mr);
    if (x->own) munmap(x->own, (size_t)x->own_bytes * VRAW_DEPTH);
    free(x);
}

// ---- buffers ----------------------------------------------------------------------------------------------

// Writes the scatter list of slot k; returns its length.
static int places(const dqi_port *p, const vraw_rx *x, uint32_t k, vb_sge sge[VRAW_PARTS + 1]) {
    int n = 0;
    for (uint32_t s = 0; s < x->n_parts; s++) {
        const dq_region *r = x->parts[s];
        uint64_t off = dqi_buf_off(r, x->ids[s][k]);
        sge[n++] = (vb_sge){
            .addr = (uintptr_t)(r->base + off), .length = r->conf.buf_size, .lkey = vraw_lkey(p, off)};
    }
    if (x->own)
        sge[n++] = (vb_sge){.addr = (uintptr_t)(x->own + (size_t)k * x->own_bytes),
                            .length = x->own_bytes,
                            .lkey = x->own_mr->lkey};
    return n;
}

// Posts n receives, whose buffers are in their slots.
static void post(dqi_port_queue *l, uint32_t n) {
    vraw_rx *x = l->state;
    vb_recv_wr wr[CHAIN], *bad;
    vb_sge sge[(VRAW_PARTS + 1) * CHAIN];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (x->tail + i) % VRAW_DEPTH;
        wr[i] = (vb_recv_wr){.wr_id = k,
                             .next = i + 1 < n ? &wr[i + 1] : NULL,
                             .sg_list = &sge[(VRAW_PARTS + 1) * i],
                             .num_sge = places(l->port, x, k, &sge[(VRAW_PARTS + 1) * i])};
    }
    int err = vb_post_recv(x->qp, wr, &bad);
    uint32_t done = err == 0 ? n : (uint32_t)(bad - wr);
    for (uint32_t i = done; i < n; i++)
        free_slot(l->port, x, (x->tail + i) % VRAW_DEPTH);
    if (err != 0) x->broken = true;
    x->tail += done;
}

// Allocates buffers of every part for at most n slots from the tail on; returns the number of slots.
static uint32_t take_buffers(const dqi_port *p, vraw_rx *x, uint32_t n) {
    uint32_t ids[VRAW_PARTS][CHAIN], got[VRAW_PARTS], all = n;
    for (uint32_t s = 0; s < x->n_parts; s++) {
        got[s] = dqi_bufs_some(x->parts[s], ids[s], all);
        all = got[s];
    }
    for (uint32_t s = 0; s < x->n_parts; s++) {
        dqi_bufs_free(p->iface->session, ids[s] + all, got[s] - all);
        for (uint32_t k = 0; k < all; k++)
            x->ids[s][(x->tail + k) % VRAW_DEPTH] = ids[s][k];
    }
    return all;
}

void vraw_fill(dqi_port_queue *l) {
    vraw_rx *x = l->state;
    uint32_t batch = least(CHAIN, x->most / 4 + 1);
    while (!x->broken && x->tail - x->head + batch <= x->most) {
        uint32_t n = take_buffers(l->port, x, batch);
        if (n > 0) post(l, n);
        if (n < batch) break;
    }
    dq_queue *q = l->reader;
    if (!q || x->broken || x->tail - x->head >= x->most / 2 || q->next_ns == 0) return;
    int64_t then = dq_now(q->session) + LOOK_AGAIN_NS; // the pool does not notify
    if (then < q->next_ns) q->next_ns = then;
}

bool vraw_posts(const dqi_port_queue *l, const dq_region *r) {
    const vraw_rx *x = l->state;
    bool has = false;
    for (uint32_t s = 0; x && s < x->n_parts; s++)
        has |= x->parts[s] == r;
    return has;
}

void vraw_share(dqi_port *p) {
    for (uint32_t l = 0; l < p->n_queues; l++) {
        vraw_rx *x = p->queues[l].state;
        dqi_lock(&p->queues[l].busy);
        if (x->n_parts == 1) x->reserve = x->most / 4;
        dqi_unlock(&p->queues[l].busy);
    }
}

// ---- frames -----------------------------------------------------------------------------------------------

// Handles a failed receive: its queue pair receives no more.
static void lose(dqi_port_queue *l, vraw_rx *x, uint32_t slot, int status) {
    free_slot(l->port, x, slot);
    if (!x->broken && l->reader) dqi_queue_error_add(l->reader->errors, EIO, 1);
    if (!x->broken)
        dqi_note(l->port->iface->session, "interface %s: device queue %u stopped receiving: %s",
                 l->port->iface->conf.name, l->index, vb_status_text(status));
    x->broken = true;
}

// Returns true for frames in GPU memory, which the CPU cannot copy.
static bool is_far(const vraw_rx *x) { return x->n_parts > 0 && !x->parts[x->n_parts - 1]->cpu; }

// Returns true if a burst can take the buffers of a slot. A frame that ends in the first of two is copied.
static bool is_given(const vraw_rx *x, uint32_t len) {
    if (x->n_parts > 1) return len > x->parts[0]->conf.buf_size && len <= x->room;
    return len <= x->room && (x->tail - x->head > x->reserve || is_far(x));
}

static bool is_out_of_reach(const vraw_rx *x, uint32_t len) { return len > x->room && is_far(x); }

// Writes the pieces of a frame in a slot; returns their number.
static uint32_t pieces(vraw_rx *x, uint32_t slot, uint32_t len, dqi_piece *out) {
    uint32_t n = 0, at = 0;
    bool given = is_given(x, len);
    for (uint32_t s = 0; s < x->n_parts; s++) {
        const dq_region *r = x->parts[s];
        uint32_t id = x->ids[s][slot], part = least(len - at, r->conf.buf_size);
        if (!given) x->loaned[x->n_loaned++] = id;
        if (part == 0) continue;
        out[n++] = (dqi_piece){.data = r->base + dqi_buf_off(r, id),
                               .len = part,
                               .buf = given ? id : DQI_NO_BUF,
                               .more = at + part < len};
        at += part;
    }
    if (at < len)
        out[n++] =
            (dqi_piece){.data = x->own + (size_t)slot * x->own_bytes, .len = len - at, .buf = DQI_NO_BUF};
    return n;
}

static void drop_long(const dqi_port_queue *l, const vraw_rx *x, uint32_t slot, uint32_t len) {
    dqi_add_shared(&l->port->c.in, 1);
    dqi_add_shared(&l->port->c.in_bytes, len);
    dqi_port_drop(l->port, DQ_DROP_TOO_LONG, 1);
    free_slot(l->port, x, slot);
}

uint32_t vraw_read(dqi_port_queue *l, dqi_piece *out, uint32_t max) {
    vraw_rx *x = l->state;
    uint32_t n = 0;
    const vb_wc *wc;
    for (uint32_t looked = 0; n + VRAW_PARTS + 1 <= max && looked < max && (wc = vraw_next(&x->cq)) != NULL;
         looked++) {
        uint32_t slot = (uint32_t)wc->wr_id;
        x->head++;
        x->cq.at++;
        if (wc->status != VB_WC_SUCCESS)
            lose(l, x, slot, wc->status);
        else if (is_out_of_reach(x, wc->byte_len))
            drop_long(l, x, slot, wc->byte_len);
        else
            n += pieces(x, slot, wc->byte_len, out + n);
    }
    if (n > 0) return n;
    if (l->reader && l->index == 0) vraw_look(l->port, l->reader);
    vraw_fill(l);
    return 0;
}

void vraw_release(dqi_port_queue *l) {
    vraw_rx *x = l->state;
    if (x->n_loaned > 0) dqi_bufs_free(l->port->iface->session, x->loaned, x->n_loaned);
    x->n_loaned = 0;
    vraw_fill(l);
}

int vraw_arm_rx(dqi_port_queue *l, dq_queue *q, struct pollfd *fds, int max) {
    vraw_rx *x = l->state;
    if (max < 1) return 0;
    if (!dqi_try_lock(&l->busy)) { // being read by another thread; retry soon
        int64_t then = dq_now(q->session) + LOOK_AGAIN_NS;
        if (then < q->next_ns) q->next_ns = then;
        return 0;
    }
    bool empty = vraw_arm(&x->cq);
    dqi_unlock(&l->busy);
    if (!empty) q->next_ns = 0;
    fds[0] = (struct pollfd){.fd = x->cq.channel->fd, .events = POLLIN};
    return 1;
}
