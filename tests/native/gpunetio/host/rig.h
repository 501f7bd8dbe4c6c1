// rig.h: a context in a loop session, and a kernel played by the test: it writes slots as a GPU would.
#ifndef PROXY_RIG_H
#define PROXY_RIG_H

#include "../../bed.h"
#include "gpunetio/device/gn_check.h"
#include "gpunetio/host/context.h"
#include "pipeline/session.h"
#include "writer/dq_writer.h"

#include <unistd.h>

#define RIG_LEN 200

typedef struct rig {
    bed b;
    dq_gn *gn;
    dq_stage *rx_stage[DQ_GN_RINGS];
    uint64_t ticket[DQ_GN_RINGS]; // next one of each transmit ring
    uint64_t first;
    char dir[32]; // of the writer, where there is one
} rig;

// A writer of one file, in a folder of its own.
static inline dq_stage *rig_writer(rig *r) {
    dq_writer_conf c = {
        .kind = DQ_WRITE_RAW_FILE, .n_dirs = 1, .dirs = {"/tmp/dq-proxy-XXXXXX"}, .prefix = "t"};
    dq_diag d = {{0}};
    dq_stage *st = NULL;
    if (!mkdtemp(c.dirs[0])) abort();
    memcpy(r->dir, c.dirs[0], sizeof r->dir - 1);
    bed_must(dq_stage_writer(r->b.s, "disk", &c, &st, &d), &d, "writer");
    return st;
}

// Opens a bed with a region "more" for the kernel.
static inline void rig_bed(rig *r, bed_conf bc) {
    bc.more_bufs = bc.more_bufs ? bc.more_bufs : 64;
    bc.more_size = bc.more_size ? bc.more_size : 1024;
    memset(r, 0, sizeof *r);
    bc.timeout_us = bc.timeout_us ? bc.timeout_us : 10;
    bed_open(&r->b, bc);
}

// And a context of n_tx rings on its first transmit queue.
static inline void rig_context(rig *r, dq_gn_conf gc) {
    dq_diag d = {{0}};
    gc.name = "test";
    gc.gpu = DQ_HOST_GPU;
    for (uint32_t k = 0; k < gc.n_tx; k++)
        if (!gc.tx[k]) gc.tx[k] = r->b.tx[0][0];
    for (uint32_t k = 0; k < gc.n_rx; k++)
        if (!gc.rx[k]) gc.rx[k] = r->b.rx[0][0];
    gc.tx_slots = gc.tx_slots ? gc.tx_slots : 64;
    gc.rx_slots = gc.rx_slots ? gc.rx_slots : 64;
    gc.sem_slots = gc.sem_slots ? gc.sem_slots : 16;
    gc.ops = gc.ops ? gc.ops : 1u << GN_OP_SEND;
    if (gc.ops >> GN_OP_FILE & 1) gc.writers[gc.n_writers++] = rig_writer(r);
    gc.regions[gc.n_regions++] = r->b.more;
    r->first = gc.first;
    for (uint32_t k = 0; k < DQ_GN_RINGS; k++)
        r->ticket[k] = gc.first;
    bed_must(dq_gn_open(r->b.s, &gc, &r->gn, r->rx_stage, &d), &d, "context");
    for (uint32_t k = 0; k < r->gn->n_rx; k++)
        bed_pipe(gc.rx[k], &r->rx_stage[k], 1);
}

static inline void rig_open(rig *r, bed_conf bc, dq_gn_conf gc) {
    rig_bed(r, bc);
    rig_context(r, gc);
}

static inline void rig_close(rig *r) {
    dq_gn_abort(r->gn);
    dq_gn_detach(r->gn);
    dq_gn_release(r->gn);
    bed_close(&r->b);
    if (!r->dir[0]) return;
    char file[sizeof r->dir + 8];
    snprintf(file, sizeof file, "%s/t.raw", r->dir);
    unlink(file);
    rmdir(r->dir);
}

// The row of region "more".
static inline uint32_t rig_row(const rig *r) { return dqi_gn_row(r->gn, r->b.more); }
static inline uint8_t *rig_bytes(const rig *r, uint64_t offset) {
    return r->b.s->core.base + r->b.more->offset + offset;
}
// Where packet buffer k of region "more" begins.
static inline uint64_t rig_buf(const rig *r, uint64_t k) {
    return k % r->b.more->conf.num_bufs * r->b.more->stride;
}

static inline uint64_t rig_completed(const rig *r, uint32_t ring) {
    return gn_load(&r->gn->tx[ring].state->completed) & ~GN_SOME_FAILED;
}
static inline uint64_t rig_accepted(const rig *r, uint32_t ring) {
    return gn_load(&r->gn->tx[ring].state->accepted);
}

// Whether the ring has a slot for its next ticket.
static inline bool rig_room(const rig *r, uint32_t ring) {
    return r->ticket[ring] - rig_accepted(r, ring) < UINT64_C(1) << r->gn->tx[ring].log2;
}

static inline void rig_write_at(rig *r, uint32_t ring, uint64_t t, const gn_u64 *words) {
    dqi_gn_tx *tx = &r->gn->tx[ring];
    gn_write(tx->slots[gn_index(t, tx->log2)].w, GN_TX_WORDS, gn_lap(t, tx->log2), words);
}

// Writes the words of the ring's next ticket, which stands in the last one.
static inline void rig_post(rig *r, uint32_t ring, gn_u64 *words) {
    words[7] = r->ticket[ring] & ~GN_LAP;
    rig_write_at(r, ring, r->ticket[ring]++, words);
}

static inline gn_u64 rig_word0(uint32_t op, uint32_t flags, uint32_t bytes) {
    return (gn_u64)op << 56 | (gn_u64)flags << 48 | bytes;
}

static inline void rig_send(rig *r, uint32_t ring, uint64_t offset, uint32_t len) {
    gn_u64 w[GN_TX_WORDS] = {rig_word0(GN_OP_SEND, 0, len), gn_place(rig_row(r), offset)};
    rig_post(r, ring, w);
}

// Lets the session continue: serves taps, and polls what no worker does.
static inline void rig_go(rig *r) { bed_serve(&r->b, 1000000); }

// Until cond, or the bed's patience is at its end.
#define RIG_UNTIL(r, cond)                                                                                   \
    do {                                                                                                     \
        int64_t rig_end = dqi_mono_ns() + BED_PATIENCE;                                                      \
        while (!(cond) && dqi_mono_ns() < rig_end)                                                           \
            rig_go(r);                                                                                       \
        DQ_CHECK(cond);                                                                                      \
    } while (0)

static inline dq_line rig_line(const rig *r, const char *name) {
    return bed_line(r->b.s, name, DQ_LINE_STAGE, NULL);
}

#endif
