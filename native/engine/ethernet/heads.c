#include "engine/ethernet/heads.h"
#include "core/clock.h"
#include "core/err.h"
#include "cuda/mover.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define HEADS_BATCHES 8
#define HEADS_BYTES   (DQI_ETH_PIECES * DQ_HEAD) // of a list: one full read

typedef struct flight {
    dqi_eth_batch batch;
    uint32_t n;             // pieces
    _Atomic uint32_t lists; // pending lists that copy their heads
} flight;

typedef struct dqi_eth_heads {
    dqi_mover *mover;
    dqi_gpu *gpu;
    bool given_up;
    uint32_t head, tail; // numbers of reads: [head, tail) are in flight, read k in batch k % HEADS_BATCHES
    uint32_t sent;       // reads before it are in lists already submitted
    flight flights[HEADS_BATCHES];
} dqi_eth_heads;

static flight *flight_of(dqi_eth_heads *h, uint32_t k) { return &h->flights[k % HEADS_BATCHES]; }

// ---- open and close ---------------------------------------------------------------------------------------

int dqi_eth_heads_open(dqi_port_queue *l, dq_diag *diag) {
    const dq_region *r = l->region;
    if (!r || !r->heads) return DQ_OK;
    char what[DQ_NAME_LEN + 32];
    snprintf(what, sizeof what, "memory region %s", r->conf.name);
    dqi_eth_heads *h = l->heads = calloc(1, sizeof *h);
    if (!h) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory for its heads", what);
    h->gpu = r->gpu;
    const dqi_mover_conf conf = {.gpu = r->gpu, .bytes = HEADS_BYTES, .delay_ns = DQI_LIST_NS};
    int err = dqi_mover_new(&conf, what, &h->mover, diag);
    if (err == DQ_OK)
        dqi_note(r->session,
                 "%s: whole packets are in the memory of GPU %d; a kernel copies their first %d bytes to the "
                 "host, for flows, filters and fields",
                 what, r->gpu->info.number, DQ_HEAD);
    return err;
}

void dqi_eth_heads_close(dqi_port_queue *l) {
    dqi_eth_heads *h = l->heads;
    l->heads = NULL;
    if (!h) return;
    for (; h->head != h->tail; h->head++)
        for (uint32_t i = 0; i < flight_of(h, h->head)->n; i++)
            dqi_bufs_free(l->port->iface->session, &flight_of(h, h->head)->batch.pieces[i].buf, 1);
    if (l->port->iface->session->memory_leaked) return; // the GPU may still write to it at any time
    dqi_mover_free(h->mover);
    free(h);
}

static bool is_lost(const dqi_eth_heads *h) { return h->given_up || dqi_gpu_lost(h->gpu, NULL, 0); }

bool dqi_eth_heads_lost(const dqi_port_queue *l) { return is_lost(l->heads); }

bool dqi_eth_heads_coming(const dqi_port_queue *l) { return l->heads && l->heads->head != l->heads->tail; }

void dqi_eth_heads_give_up(dqi_port_queue *l, int64_t waited_ns) {
    dq_session *s = l->port->iface->session;
    l->heads->given_up = true;
    dq_session_leak_memory(s);
    dqi_queue_fail(l->port->iface->rx[0], "GPU %d did not bring heads of packets: for %lld s it took nothing",
                   l->heads->gpu->info.number, (long long)(waited_ns / 1000000000));
}

// ---- reads ------------------------------------------------------------------------------------------------

// Adds the heads of a read's frames to the open list, which has room, as moves.
static void fetch(dqi_eth_heads *h, flight *f) {
    const dq_region *r = f->batch.region;
    dqk_move moves[DQI_ETH_PIECES];
    for (uint32_t i = 0; i < f->n; i++) {
        const dqi_piece *p = &f->batch.pieces[i];
        const uint64_t at = (uint64_t)(p->data - r->base) - r->offset;
        moves[i] = (dqk_move){(uintptr_t)(r->device + at), (uintptr_t)dqi_head_of(r, p->buf),
                              dqi_head_len(p->len), DQK_COPY};
    }
    dqi_mover_add(h->mover, moves, f->n, false, NULL, &f->lists);
}

// Keeps the frames that lie in a single buffer of the region; longer ones are dropped, as the CPU cannot copy
// out of GPU memory.
static void keep_whole(dqi_port *p, flight *f, uint32_t n) {
    dqi_piece *pieces = f->batch.pieces;
    for (uint32_t i = 0, end; i < n; i = end) {
        uint64_t bytes = 0;
        for (end = i; end == i || pieces[end - 1].more; end++)
            bytes += pieces[end].len;
        if (end == i + 1 && pieces[i].buf != DQI_NO_BUF) {
            pieces[f->n++] = pieces[i];
            continue;
        }
        dqi_add_shared(&p->c.in, 1);
        dqi_add_shared(&p->c.in_bytes, bytes);
        dqi_port_drop(p, DQ_DROP_TOO_LONG, 1);
        for (uint32_t k = i; k < end; k++)
            dqi_bufs_free(p->iface->session, &pieces[k].buf, 1);
    }
}

// Reads pieces into a free batch.
static void read_more(dqi_port_queue *l, dqi_eth_heads *h, uint32_t most) {
    const uint32_t inside = h->tail - h->head;
    bool lost = is_lost(h);
    if (inside == HEADS_BATCHES || (!lost && !dqi_mover_room(h->mover, DQI_ETH_PIECES))) return;
    flight *f = flight_of(h, h->tail);
    f->batch.region = l->region;
    f->batch.split = NULL;
    f->n = 0;
    uint32_t n = l->port->driver->read(l, f->batch.pieces, most);
    keep_whole(l->port, f, n);
    if (n > 0) l->port->driver->release(l);
    if (f->n > 0) {
        h->tail++;
        if (!lost) fetch(h, f);
    }
    if (!lost) dqi_mover_push(h->mover, false);
}

// Submits the pending moves when no earlier list is running; full or old lists are submitted by the mover
// itself.
static void send_on(dqi_eth_heads *h) {
    const bool flies =
        (int32_t)(h->sent - h->head) > 0 && dqi_load_acq32(&flight_of(h, h->sent - 1)->lists) > 0;
    if (h->sent == h->tail || flies || is_lost(h)) return;
    dqi_mover_push(h->mover, true);
    h->sent = h->tail;
}

static void look_again(dq_queue *q, const dqi_eth_heads *h) {
    int64_t next = dqi_mover_next(h->mover);
    if (!q || next == INT64_MAX) return;
    int64_t then = dq_now(q->session) + next;
    if (then < q->next_ns) q->next_ns = then;
}

static void check_gpu(dq_queue *q, const dqi_eth_heads *h) {
    char words[256];
    if (q && dqi_gpu_lost(h->gpu, words, sizeof words)) dqi_queue_fail(q, "%s", words);
}

dqi_eth_batch *dqi_eth_heads_read(dqi_port_queue *l, uint32_t most, uint32_t *n) {
    dqi_eth_heads *h = l->heads;
    read_more(l, h, most);
    dqi_mover_poll(h->mover, dqi_mono_ns());
    send_on(h);
    check_gpu(l->reader, h);
    flight *f = flight_of(h, h->head);
    *n = 0;
    if (h->head == h->tail || (!h->given_up && dqi_load_acq32(&f->lists) > 0)) {
        look_again(l->reader, h);
        return &f->batch;
    }
    h->head++;
    *n = f->n;
    return &f->batch;
}
