// reorder.c: a reorder stage, or a heaps stage, alone: its push with bursts that lie ready, and its
// queue.
#include "reorder.h"
#include "clock.h"
#include "core/burst.h"
#include "core/dq_core.h"
#include "core/dq_ledger.h"
#include "core/err.h"
#include "core/region.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/pipe.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/stage.h"
#include "program/dq_program.h"
#include "reorder/dq_reorder.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    BURST = 64,
    BURSTS = 32,
    GPU_BURSTS = 256, // more than lists under way hold
    HEAD = 64,
    GPU_HEAD = 42, // of Ethernet, IPv4 and UDP: payloads begin nowhere round
    BLOCK = 4 << 20,
    BLOCKS = 16,
    HELD = BLOCKS - 4,
    ROUNDS = 1 << 16
};

typedef struct rig {
    dq_session *s;
    dq_region *blocks;
    dq_queue *rx, *tx, *aggregates;
    dq_stage *order;
    dq_pipe *pipe;
    dq_burst *in[GPU_BURSTS];
    uint32_t bursts, head; // how many of in; bytes in front of payloads
    uint64_t number, at;   // of the next packet; where memcpy continues, in bytes over all blocks
} rig;

// ---- a stage that holds blocks a while --------------------------------------------------------------------

typedef struct holder {
    dq_burst *held[HELD];
    uint32_t next;
} holder;

static int hold(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    holder *h = st->impl;
    (void)node;
    *out = h->held[h->next];
    h->held[h->next] = in;
    h->next = (h->next + 1) % HELD;
    return DQ_OK;
}

static void let_go(dq_stage *st) {
    holder *h = st->impl;
    for (uint32_t i = 0; i < HELD; i++) {
        dq_burst_unref(h->held[i]);
        h->held[i] = NULL;
    }
}

static void holder_free(dq_stage *st) { free(st->impl); }

static const dqi_stage_ops holder_ops = {
    .line_kind = DQ_LINE_STAGE, .consumer = true, .push = hold, .finish = let_go, .free = holder_free};

static int holder_add(rig *r, dq_diag *diag) {
    holder *h = calloc(1, sizeof *h);
    dq_stage *st;
    dq_pipe *pipe;
    if (!h) return DQ_ESYS - ENOMEM;
    int err = dqi_stage_add(r->s, "held", &holder_ops, h, &st, diag);
    if (err != DQ_OK) {
        free(h);
        return err;
    }
    return dq_pipe_add(r->aggregates, &st, 1, 0, &pipe, diag);
}

// ---- the session ------------------------------------------------------------------------------------------

static int add_queue(dq_iface *i, dq_dir dir, dq_region *r, dq_queue **out, dq_diag *diag) {
    const dq_queue_conf c = {.name = "reorder",
                             .dir = dir,
                             .direct = 1,
                             .core = -1,
                             .batch_size = BURST,
                             .n_regions = 1,
                             .regions = {r}};
    return dq_queue_add(i, &c, out, diag);
}

static int add_stage(rig *r, const dq_baseline_reorder *conf, dq_diag *diag) {
    const uint32_t payload = conf->payload;
    const dq_insn number[] = {{.op = DQ_OP_LOAD, .b = 64, .c = 8 * (r->head - 8)}, {.op = DQ_OP_RET}};
    const dq_reorder_conf c = {.region = r->blocks,
                               .seq = {number, 2},
                               .seq_bits = 64,
                               .slots = BLOCK / payload,
                               .slot_bytes = payload,
                               .payload_offset = r->head};
    const dq_insn block[] = {
        number[0], {.op = DQ_OP_PUSH, .imm = BLOCK / payload}, {.op = DQ_OP_DIV_U}, number[1]};
    const dq_insn place[] = {number[0],           {.op = DQ_OP_PUSH, .imm = BLOCK / payload},
                             {.op = DQ_OP_MOD_U}, {.op = DQ_OP_PUSH, .imm = payload},
                             {.op = DQ_OP_MUL},   number[1]};
    const dq_heaps_conf h = {.region = r->blocks,
                             .id = {block, 4},
                             .offset = {place, 6},
                             .heap_bytes = BLOCK,
                             .payload_offset = r->head};
    int err = conf->heaps ? dq_stage_heaps(r->s, "order", &h, &r->order, &r->aggregates, diag)
                          : dq_stage_reorder(r->s, "order", &c, &r->order, &r->aggregates, diag);
    if (err == DQ_OK) err = holder_add(r, diag);
    return err == DQ_OK ? dq_pipe_add(r->rx, &r->order, 1, 0, &r->pipe, diag) : err;
}

static int rig_open(rig *r, const dq_baseline_reorder *conf, dq_diag *diag) {
    const dq_session_conf sc = {.rx_meta_buffers = 64, .tx_meta_buffers = 2 * GPU_BURSTS};
    r->bursts = conf->gpu ? GPU_BURSTS : BURSTS;
    r->head = conf->gpu ? GPU_HEAD : HEAD;
    const dq_region_conf pc = {.name = "packets",
                               .kind = conf->gpu ? DQ_KIND_HOST_PINNED : DQ_KIND_HOST,
                               .affinity = -1,
                               .num_bufs = r->bursts * BURST,
                               .buf_size = r->head + conf->payload};
    const dq_region_conf bc = {.name = "blocks",
                               .kind = conf->gpu ? DQ_KIND_DEVICE : DQ_KIND_HOST,
                               .affinity = -1,
                               .num_bufs = BLOCKS,
                               .buf_size = BLOCK};
    const dq_iface_conf ic = {.name = "reorder", .engine = "loop"};
    dq_region *packets;
    dq_iface *i;
    int err = dq_session_new(&sc, &r->s, diag);
    if (err == DQ_OK) err = dq_region_add(r->s, &pc, &packets, diag);
    if (err == DQ_OK) err = dq_region_add(r->s, &bc, &r->blocks, diag);
    if (err == DQ_OK) err = dq_iface_add(r->s, &ic, &i, diag);
    if (err == DQ_OK) err = add_queue(i, DQ_RX, packets, &r->rx, diag);
    if (err == DQ_OK) err = add_queue(i, DQ_TX, packets, &r->tx, diag);
    if (err == DQ_OK) err = dq_session_open(r->s, diag);
    if (err == DQ_OK) err = add_stage(r, conf, diag);
    if (err == DQ_OK) err = dq_session_start(r->s, diag);
    for (uint32_t k = 0; err == DQ_OK && k < r->bursts; k++) {
        err = dq_tx_alloc(r->tx, BURST, &r->in[k]);
        if (err != DQ_OK) return dqi_fail(diag, err, "no burst of packets: %s", dq_err_name(err));
        dq_burst_set_len(r->in[k], 0, -1, r->head + conf->payload);
        r->in[k]->queue = r->rx;
    }
    return err;
}

static void rig_close(rig *r) {
    for (uint32_t k = 0; k < r->bursts; k++)
        dq_burst_unref(r->in[k]);
    if (r->s) dq_session_stop(r->s, 0);
    dq_session_close(r->s);
}

// ---- rounds -----------------------------------------------------------------------------------------------

static void renumber(rig *r, const dq_burst *b) {
    for (uint32_t i = 0; i < BURST; i++) {
        uint64_t number = htobe64(r->number++);
        memcpy(r->s->core.base + b->off[0][i] + r->head - 8, &number, sizeof number);
    }
}

// False: a burst was not taken as a whole.
static bool reorder_round(rig *r) {
    for (uint32_t k = 0; k < r->bursts; k++) {
        dq_burst *rest = NULL;
        dq_burst_ref(r->in[k]);
        if (r->order->ops->push(r->order, &r->pipe->nodes[0], r->in[k], &rest) != DQ_OK || rest) return false;
        dqi_rx_poll(r->aggregates);
    }
    return true;
}

static void copy_round(rig *r, uint32_t payload) {
    uint8_t *to = r->s->core.base + dqi_buf_off(r->blocks, r->blocks->first_id);
    for (uint32_t k = 0; k < r->bursts; k++)
        for (uint32_t i = 0; i < BURST; i++) {
            uint64_t block = r->at / BLOCK % BLOCKS;
            memcpy(to + block * r->blocks->stride + r->at % BLOCK,
                   r->s->core.base + r->in[k]->off[0][i] + r->head, payload);
            r->at += payload;
        }
}

// Rounds on the processor, which renumbers the packets for each.
static int measure(rig *r, const dq_baseline_reorder *c, dq_baseline_reorder_figures *out, dq_diag *diag) {
    double *took = malloc(ROUNDS * sizeof *took);
    uint32_t n = 0;
    if (!took) return dqi_fail(diag, DQ_ESYS - ENOMEM, "no memory for %d times", ROUNDS);
    bool whole = true;
    for (double end = baseline_seconds(CLOCK_MONOTONIC) + c->seconds;
         n < ROUNDS && whole && baseline_seconds(CLOCK_MONOTONIC) < end;) {
        for (uint32_t k = 0; k < r->bursts; k++)
            renumber(r, r->in[k]);
        double from = baseline_seconds(CLOCK_THREAD_CPUTIME_ID);
        if (c->copy)
            copy_round(r, c->payload);
        else
            whole = reorder_round(r);
        took[n++] = baseline_seconds(CLOCK_THREAD_CPUTIME_ID) - from;
    }
    const uint64_t each = (uint64_t)r->bursts * BURST;
    if (n > 0) out->bytes_per_s = (double)(each * c->payload) / baseline_median(took, n);
    out->packets = each * n;
    out->bytes = out->packets * c->payload;
    free(took);
    return whole ? DQ_OK : dqi_fail(diag, DQ_INTERNAL_ERROR, "the stage didn't take a burst as a whole");
}

// ---- rounds with a GPU ------------------------------------------------------------------------------------

typedef struct plan {
    double seconds; // of pushes that took a burst at once
    uint64_t packets;
} plan;

// What a poller does between bursts.
static void poll_gpu(rig *r) {
    dqi_stage_poll(r->order);
    dqi_rx_poll(r->aggregates);
}

// False: it was not taken as a whole.
static bool push_to_gpu(rig *r, dq_burst *b, plan *p) {
    dq_burst *rest = NULL;
    while (!dqi_burst_exclusive(b)) // its list is under way
        poll_gpu(r);
    renumber(r, b);
    dq_burst_ref(b);
    double from = baseline_seconds(CLOCK_MONOTONIC);
    int err = r->order->ops->push(r->order, &r->pipe->nodes[0], b, &rest);
    if (err == DQ_OK) {
        p->seconds += baseline_seconds(CLOCK_MONOTONIC) - from;
        p->packets += b->n;
    }
    for (; err == DQ_NOT_READY; err = r->order->ops->push(r->order, &r->pipe->nodes[0], b, &rest))
        poll_gpu(r);
    poll_gpu(r);
    return err == DQ_OK && !rest;
}

// Until the GPU has released all bursts.
static void drain(rig *r) {
    for (uint32_t k = 0; k < r->bursts; k++)
        while (!dqi_burst_exclusive(r->in[k]))
            poll_gpu(r);
}

static bool gpu_round(rig *r, plan *p) {
    bool whole = true;
    for (uint32_t k = 0; k < r->bursts && whole; k++)
        whole = push_to_gpu(r, r->in[k], p);
    return whole;
}

static int measure_gpu(rig *r, const dq_baseline_reorder *c, dq_baseline_reorder_figures *out,
                       dq_diag *diag) {
    const uint64_t each = (uint64_t)r->bursts * BURST;
    plan warm = {0}, p = {0};
    bool whole = gpu_round(r, &warm);
    drain(r);
    uint64_t rounds = 0;
    double from = baseline_seconds(CLOCK_MONOTONIC);
    for (; whole && (rounds == 0 || baseline_seconds(CLOCK_MONOTONIC) - from < c->seconds); rounds++)
        whole = gpu_round(r, &p);
    drain(r);
    out->bytes_per_s = (double)(each * rounds * c->payload) / (baseline_seconds(CLOCK_MONOTONIC) - from);
    out->packets = each * (rounds + 1);
    out->bytes = out->packets * c->payload;
    if (p.packets > 0) out->plan_ns = p.seconds * 1e9 / (double)p.packets;
    uint64_t moved = dqi_get(&r->aggregates->c.in_bytes);
    if (whole && moved + BLOCKS * (uint64_t)BLOCK >= out->bytes && moved <= out->bytes) return DQ_OK;
    return dqi_fail(diag, DQ_INTERNAL_ERROR, "%llu bytes of payload became blocks of %llu",
                    (unsigned long long)out->bytes, (unsigned long long)moved);
}

static int check(const dq_baseline_reorder *c, dq_diag *diag) {
    if (c->payload == 0 || BLOCK % c->payload != 0 || BLOCK / c->payload % BURST != 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "payloads of %u bytes: they fill no block of 4 MiB in bursts of %d", c->payload,
                        BURST);
    if (c->gpu && (c->copy || c->heaps))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "a GPU neither copies here nor fills heaps");
    return DQ_OK;
}

int dq_baseline_reorder_run(const dq_baseline_reorder *c, dq_baseline_reorder_figures *out, dq_diag *diag) {
    rig r = {0};
    *out = (dq_baseline_reorder_figures){0};
    int err = check(c, diag);
    if (err != DQ_OK) return err;
    err = rig_open(&r, c, diag);
    if (err == DQ_OK) err = c->gpu ? measure_gpu(&r, c, out, diag) : measure(&r, c, out, diag);
    uint64_t lost = 0;
    for (int why = 0; r.pipe && why < DQ_REASONS; why++)
        lost += dqi_get(&r.pipe->nodes[0].c.dropped[why]);
    if (err == DQ_OK && lost > 0)
        err = dqi_fail(diag, DQ_INTERNAL_ERROR, "%llu packets of the bench were dropped",
                       (unsigned long long)lost);
    rig_close(&r);
    return err;
}
