// flat_test.c: what a context does with a kernel's descriptors takes no memory that was not there at the
// start, whatever they say: allocations are counted, on all threads, over many of them.
#include "allocations.h"
#include "pipeline/connection/conn_table.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/poller.h"
#include "pipeline/session.h"
#include "rig.h"

#define DESCRIPTORS 100000u
#define FIRST       2000u // of them: buffers and lists of files reach their sizes
#define FAR         4096u // bytes that the peer lends

// ---- a peer whose memory is this process's ----------------------------------------------------------------

static _Alignas(64) uint8_t far_memory[FAR];

static void far_away(const dq_session *s, const dq_rma *m) {
    uint8_t *local = s->core.base + m->region->offset + m->offset, *remote = (uint8_t *)(uintptr_t)m->remote;
    uint64_t was;
    if (m->kind == DQ_RMA_WRITE) memcpy(remote, local, m->length);
    if (m->kind == DQ_RMA_READ) memcpy(local, remote, m->length);
    if (m->kind == DQ_RMA_FETCH_ADD || m->kind == DQ_RMA_COMPARE_SWAP) {
        memcpy(&was, remote, 8);
        memcpy(local, &was, 8);
        if (m->kind == DQ_RMA_FETCH_ADD)
            was += m->operand;
        else if (was == m->compare)
            was = m->operand;
        memcpy(remote, &was, 8);
    }
}

static uint32_t far_post(dq_queue *q, const dq_rma *list, uint32_t n) {
    for (uint32_t k = 0; k < n; k++) {
        far_away(q->session, &list[k]);
        dq_op_ok(list[k].op, 1, list[k].length);
    }
    return n;
}

static const dqi_rma_ops far_rma = {.post = far_post};

// ---- descriptors ------------------------------------------------------------------------------------------

typedef void write_descriptor(rig *r, uint64_t k);

static void file(rig *r, uint64_t k) {
    gn_u64 w[GN_TX_WORDS] = {rig_word0(GN_OP_FILE, 0, 64), gn_place(rig_row(r), rig_buf(r, k))};
    rig_post(r, 0, w);
}

static void copy(rig *r, uint64_t k) {
    gn_u64 w[GN_TX_WORDS] = {rig_word0(GN_OP_COPY, 0, 64), gn_place(rig_row(r), rig_buf(r, k)), 0,
                             gn_place(rig_row(r), rig_buf(r, k + 1))};
    rig_post(r, 0, w);
}

static void frame(rig *r, uint64_t k) { rig_send(r, 0, rig_buf(r, k), RIG_LEN); }

// Puts with a signal, inline ones, gets, sums and swaps in turn, some of two segments.
static void remote(rig *r, uint64_t k) {
    gn_u64 near = gn_place(rig_row(r), rig_buf(r, k)), peer = gn_place(dq_gn_peer(r->gn, 0), 0);
    gn_u64 w[][GN_TX_WORDS] = {
        {rig_word0(GN_OP_PUT, GN_SIGNAL, 64), near, 0, peer + 64, peer, 1},
        {rig_word0(GN_OP_PUT, GN_INLINE, 8), k, 0, peer + 128},
        {rig_word0(GN_OP_GET, 0, 64), near, 0, peer + 64},
        {rig_word0(GN_OP_ADD, 0, 0), 0, 0, 0, peer + 8, 1},
        {rig_word0(GN_OP_CAS, 0, 0), k / 8, 0, 0, peer + 16, k / 8 + 1},
        {rig_word0(GN_OP_PUT, GN_INLINE, 35), k, 0, peer + 256, k, k, 0},
        {rig_word0(GN_OP_PUT, GN_SPLIT | GN_SIGNAL, 64), near, 8, peer + 512, peer, 1, near + 128},
        {rig_word0(GN_OP_GET, GN_SPLIT, 64), near, 8, peer + 512, 0, 0, near + 128},
    };
    rig_post(r, 0, w[k % 8]);
}

// ---- the count --------------------------------------------------------------------------------------------

// Posts until so many are posted in all, and waits until they are done.
static void post(rig *r, write_descriptor *write, uint64_t until) {
    int64_t end = dqi_mono_ns() + BED_PATIENCE;
    dq_event ev[16];
    while (rig_completed(r, 0) < until && dqi_mono_ns() < end) {
        while (r->ticket[0] < until && rig_room(r, 0))
            write(r, r->ticket[0]);
        int n = dq_wait(r->b.w, 0, ev, 16);
        for (int k = 0; k < n; k++)
            dq_burst_unref(ev[k].b);
        if (n == 0 && r->b.conf.mode == BED_WORKER) sched_yield();
    }
    DQ_EQ(rig_completed(r, 0), until);
}

// Waits until the worker of a queue works, where it has one: what threads take at their start is not counted.
static void begun(const dq_queue *q) {
    dqi_poller_hold(q->poller);
    dqi_poller_release(q->poller);
}

static void count(rig *r, write_descriptor *write) {
    bed_tap_all(&r->b);
    begun(r->b.rx[0][0]);
    begun(r->b.tx[0][0]);
    post(r, write, FIRST);
    uint64_t before = atomic_load(&allocations);
    post(r, write, FIRST + DESCRIPTORS);
    DQ_EQ(atomic_load(&allocations) - before, 0);
    DQ_EQ(gn_load(&r->gn->tx[0].state->dropped), 0);
    rig_close(r);
}

#define EACH_REAL_MODE(m) for (bed_mode m = BED_DIRECT; m <= BED_WORKER && (bed_case(__func__, m), true); m++)

static void local(uint32_t op, write_descriptor *write) {
    EACH_REAL_MODE(m) {
        rig r;
        rig_open(&r, (bed_conf){.mode = m}, (dq_gn_conf){.n_tx = 1, .ops = 1u << op});
        count(&r, write);
    }
}

static void frames(void) { local(GN_OP_SEND, frame); }
static void copies(void) { local(GN_OP_COPY, copy); }
static void files(void) { local(GN_OP_FILE, file); }

static void operations(void) {
    EACH_REAL_MODE(m) {
        rig r;
        rig_bed(&r, (bed_conf){.mode = m});
        dq_iface *i = r.b.ifaces[0];
        dqi_engine_ops ops = *i->ops;
        ops.rma = &far_rma;
        i->ops = &ops;
        dq_remote lent = {
            .addr = (uintptr_t)far_memory, .bytes = FAR, .access = DQ_ACCESS_READ | DQ_ACCESS_WRITE};
        rig_context(&r,
                    (dq_gn_conf){.n_tx = 1,
                                 .ops = 1u << GN_OP_PUT | 1u << GN_OP_GET | 1u << GN_OP_ADD | 1u << GN_OP_CAS,
                                 .conn = i->index << DQI_CONN_ID_BITS | 1,
                                 .peers = {lent},
                                 .n_peers = 1});
        memset(far_memory, 0, 24);
        count(&r, remote);
        uint64_t sums[3];
        memcpy(sums, far_memory, sizeof sums);
        DQ_EQ(sums[0], (FIRST + DESCRIPTORS) / 4);
        DQ_EQ(sums[1], (FIRST + DESCRIPTORS) / 8);
        DQ_EQ(sums[2], (FIRST + DESCRIPTORS) / 8);
    }
}

int main(int argc, char **argv) {
    dq_begin(argc, argv);
    if (!allocations_count()) DQ_SKIP("allocations are not counted here");
    DQ_RUN(frames);
    DQ_RUN(copies);
    DQ_RUN(files);
    DQ_RUN(operations);
    return dq_done();
}
