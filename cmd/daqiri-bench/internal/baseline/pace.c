// pace.c: when paced packets arrive, seen by the receiver's clock.
#include "pace.h"
#include "core/clock.h"
#include "core/dq_burst.h"
#include "core/dq_core.h"
#include "core/err.h"
#include "core/thread.h"
#include "packet/dq_template.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/dq_session.h"
#include "pipeline/poller.h"
#include "pipeline/stages/dq_stages.h"

#include <errno.h>
#include <stdlib.h>

#define FRAME   64
#define BATCH   64
#define BUFFERS 4096

// Until when to wait for the next packet.
static int64_t patience(const dq_baseline_pace *c) { return dqi_mono_ns() + (int64_t)(1e9 + 10e9 / c->pps); }

// ---- the baseline loop ------------------------------------------------------------------------------------

typedef struct spinner {
    double gap_ns;
    uint32_t n;
    _Atomic uint32_t quit;
    _Alignas(64) _Atomic uint32_t sent;
} spinner;

static void *spin(void *arg) {
    spinner *b = arg;
    int64_t start = dqi_mono_ns() + 1000000;
    for (uint32_t i = 0; i < b->n && !atomic_load_explicit(&b->quit, memory_order_relaxed); i++) {
        int64_t due = start + (int64_t)(i * b->gap_ns);
        while (dqi_mono_ns() < due)
            dqi_pause();
        atomic_store_explicit(&b->sent, i + 1, memory_order_release);
    }
    return NULL;
}

static int run_spinner(const dq_baseline_pace *c, int64_t *at, uint32_t *got, dq_diag *diag) {
    spinner b = {.gap_ns = 1e9 / c->pps, .n = c->n};
    pthread_t t;
    int err = dqi_thread_start(&t, NULL, spin, &b);
    if (err != DQ_OK) return dqi_fail(diag, err, "baseline pacer: thread: %s", dq_err_name(err));
    int64_t now = 0;
    for (int64_t end = patience(c); *got < c->n && (now = dqi_mono_ns()) < end;) {
        uint32_t sent = atomic_load_explicit(&b.sent, memory_order_acquire);
        if (sent == *got) {
            dqi_pause();
            continue;
        }
        while (*got < sent)
            at[(*got)++] = now;
        end = patience(c);
    }
    atomic_store(&b.quit, 1);
    pthread_join(t, NULL);
    return DQ_OK;
}

// ---- the engine's pacer -----------------------------------------------------------------------------------

typedef struct rig {
    dq_session *s;
    dq_waiter *w;
    dq_template *t;
    dq_queue *rx, *tx;
} rig;

static int add_queue(dq_iface *i, dq_dir dir, dq_region *r, dq_queue **out, dq_diag *diag) {
    dq_queue_conf c = {.name = "pace",
                       .dir = dir,
                       .direct = dir == DQ_RX,
                       .core = -1,
                       .batch_size = BATCH,
                       .n_regions = 1,
                       .regions = {r}};
    return dq_queue_add(i, &c, out, diag);
}

// A loop interface that receives its own packets: a paced worker sends, the caller's thread receives.
static int rig_open(rig *r, dq_diag *diag) {
    const dq_session_conf sc = {.rx_meta_buffers = 256, .tx_meta_buffers = 256};
    const dq_region_conf rc = {.name = "pace", .affinity = -1, .num_bufs = BUFFERS, .buf_size = 256};
    const dq_iface_conf ic = {.name = "pace", .engine = "loop"};
    const uint8_t frame[FRAME] = {0};
    dq_region *region;
    dq_iface *i;
    dq_stage *tap;
    dq_pipe *pipe;
    int err = dq_session_new(&sc, &r->s, diag);
    if (err == DQ_OK) err = dq_waiter_new(&r->w, diag);
    if (err == DQ_OK) err = dq_region_add(r->s, &rc, &region, diag);
    if (err == DQ_OK) err = dq_iface_add(r->s, &ic, &i, diag);
    if (err == DQ_OK) err = add_queue(i, DQ_RX, region, &r->rx, diag);
    if (err == DQ_OK) err = add_queue(i, DQ_TX, region, &r->tx, diag);
    if (err == DQ_OK) err = dq_session_open(r->s, diag);
    if (err == DQ_OK) err = dq_waiter_adopt(r->w, r->rx);
    if (err == DQ_OK) err = dq_stage_tap(r->s, "seen", r->w, 0, 1024, DQ_POLICY_WAIT, 1, &tap, diag);
    if (err == DQ_OK) err = dq_pipe_add(r->rx, &tap, 1, 0, &pipe, diag);
    if (err == DQ_OK) err = dq_template_new(frame, FRAME, NULL, 0, 0, 1, &r->t, diag);
    return err == DQ_OK ? dq_session_start(r->s, diag) : err;
}

static void rig_close(rig *r) {
    if (r->s) dq_session_stop(r->s, 0);
    dq_session_close(r->s);
    dq_waiter_free(r->w);
    dq_template_unref(r->t);
}

static void receive(rig *r, const dq_baseline_pace *c, int64_t *at, uint32_t *got) {
    dq_event ev; // one at a time: a wait for more lasts while they come, and the clock would be read too late
    for (int64_t now = 0, end = patience(c); *got < c->n && now < end;) {
        int n = dq_wait(r->w, 0, &ev, 1);
        now = dqi_mono_ns();
        if (n == 0) continue;
        end = patience(c);
        for (uint32_t i = 0; i < ev.view.n && *got < c->n; i++)
            at[(*got)++] = now;
        dq_burst_unref(ev.b);
    }
}

static int run_engine(const dq_baseline_pace *c, int64_t *at, uint32_t *got, dq_diag *diag) {
    rig r = {0};
    int err = rig_open(&r, diag);
    if (err == DQ_OK) {
        dq_tx_pace(r.tx, 0, c->pps);
        err = dq_tx_transmit(r.tx, r.t, c->n);
    }
    if (err == DQ_OK) receive(&r, c, at, got);
    rig_close(&r);
    return err;
}

int dq_baseline_pace_run(const dq_baseline_pace *c, int64_t *at, uint32_t *got, dq_diag *diag) {
    *got = 0;
    if (c->n == 0 || !(c->pps > 0))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "pacing: %u packets at %g a second", c->n, c->pps);
    return c->engine ? run_engine(c, at, got, diag) : run_spinner(c, at, got, diag);
}
