// writer.c: the stage behind the writers; writer.h says what it promises.
//
// The queue's poller only passes a reference on; copying, formatting and the system's calls happen on the
// lanes' threads, so a slow disk holds no queue back. Entries of the rings are preallocated and come from
// a ring of free ones: that bounds what a writer holds, and lets a packet without a receive time take the
// time at which it came.
#include "writer.h"
#include "burst.h"
#include "engine.h"
#include "err.h"
#include "region.h"
#include "stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DOWN 0x10000 // added to the queue of a lane that can't write: more than any has

// ---- lanes ------------------------------------------------------------------------------------------------

dqi_lane *dqi_writer_lane(dqi_writer *w) {
    uint32_t n = w->conf.n_dirs, shortest = UINT32_MAX;
    uint32_t turn = n > 1 ? atomic_fetch_add_explicit(&w->turn, 1, memory_order_relaxed) : 0;
    dqi_lane *best = NULL;
    for (uint32_t i = 0; i < n; i++) {
        dqi_lane *l = &w->lanes[(turn + i) % n];
        uint32_t level = dqi_ring_level(&l->work) + (atomic_load(&l->down) ? DOWN : 0);
        if (level >= shortest) continue;
        shortest = level;
        best = l;
    }
    return best;
}

void dqi_writer_release(dqi_writer *w, dqi_entry *e) {
    for (uint32_t i = 0; i < e->n_regions; i++)
        dqi_gauge_add(&w->bufs[e->regions[i]], -(int64_t)e->n_bufs);
    dq_burst_unref(e->burst);
    dqi_ring_push(&w->idle, e, 0);
}

// ---- push: pollers' threads -------------------------------------------------------------------------------

// Notes in e which buffers the burst keeps from their regions.
static void list_buffers(dqi_entry *e, const dq_session *s, const dq_burst *b) {
    const dq_burst *owner = b->parent ? b->parent : b;
    *e = (dqi_entry){.n_bufs = owner->n_bufs};
    for (uint32_t seg = 0; seg < owner->nseg && owner->n_bufs > 0; seg++)
        for (uint32_t i = 0; i < s->n_regions; i++)
            if (owner->bufs[seg][0] - s->regions[i]->first_id < s->regions[i]->conf.num_bufs)
                e->regions[e->n_regions++] = (uint16_t)i;
}

// True when the writer keeps so much already that the queue would starve if it fell behind further.
static bool is_behind(const dqi_writer *w, const dqi_entry *e, const dq_burst *b) {
    const dq_burst *owner = b->parent ? b->parent : b;
    uint32_t bursts = w->session->conf.rx_meta_buffers;
    if (DQI_WRITER_DEPTH - dqi_ring_level(&w->idle) >= bursts / 4 * 3 &&
        dqi_burst_pool_level(owner->home) < bursts / 4)
        return true;
    for (uint32_t i = 0; i < e->n_regions; i++) {
        const dq_region *r = w->session->regions[e->regions[i]];
        int64_t kept = dqi_gauge_get(&w->bufs[e->regions[i]]);
        bool scarce = r->group == 1 || dqi_region_level(r) < r->n_groups / 4; // several may share a group
        if (kept > 0 && kept >= (int64_t)r->n_groups / 4 * 3 && scarce) return true;
    }
    return false;
}

// A free entry that lists the buffers of in, or NULL: the writer is behind.
static dqi_entry *take_entry(dqi_writer *w, const dq_burst *in, bool patient) {
    dqi_entry e;
    void *p;
    list_buffers(&e, w->session, in);
    if (!patient && is_behind(w, &e, in)) return NULL;
    if (!dqi_ring_pop(&w->idle, &p, NULL)) return NULL;
    *(dqi_entry *)p = e;
    return p;
}

// Takes a reference to in for a lane; false: the writer is behind.
static bool hand_over(dqi_writer *w, dq_burst *in, dq_write *op, bool patient) {
    dqi_entry *e = take_entry(w, in, patient);
    if (!e) return false;
    dq_burst_ref(in);
    e->burst = in;
    e->op = op;
    e->pushed_ns = dq_now(w->session);
    for (uint32_t i = 0; i < e->n_regions; i++)
        dqi_gauge_add(&w->bufs[e->regions[i]], e->n_bufs);
    dqi_gauge_add(&w->held, in->n);
    dqi_lane *l = dqi_writer_lane(w);
    dqi_ring_push(&l->work, e, 0); // has room for all entries
    if (l->threaded) dqi_wake_up(&l->wake);
    return true;
}

static int writer_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    dqi_writer *w = st->impl;
    bool wait = w->conf.policy == DQ_POLICY_WAIT;
    *out = in;
    if (atomic_load_explicit(&w->quit, memory_order_relaxed) != 0)
        dqi_drop(&node->c, DQ_DROP_STOPPED, in->n);
    else if (!hand_over(w, in, NULL, wait)) {
        if (wait) return DQ_NOT_READY;
        dqi_drop(&node->c, DQ_DROP_BEHIND, in->n);
    }
    return DQ_OK;
}

// ---- bursts from scripts: any task's thread ---------------------------------------------------------------

int dq_writer_write(dq_stage *writer, dq_burst *b, const dq_write_names *names, dq_write **out) {
    dqi_writer *w = writer->impl;
    if (names && names->prefix[0] && w->conf.kind != DQ_WRITE_RAW_PACKETS) return DQ_INVALID_PARAMETER;
    if (names && names->comment[0] && w->conf.kind != DQ_WRITE_PCAPNG) return DQ_INVALID_PARAMETER;
    uint32_t n = b->n;
    uint64_t bytes = b->bytes;
    if (atomic_load(&w->quit) != 0) return DQ_NOT_READY;
    dqi_burst_columns(b);
    dq_write *op = dqi_write_new(n, names);
    if (!op) return DQ_ESYS - ENOMEM;
    // Before a lane can see it: nobody may write to what is being written.
    dqi_burst_share(b);
    if (n > 0 && !hand_over(w, b, op, true)) {
        dqi_write_lost(op, n, -ECANCELED); // the writer's share
        dq_write_free(op);
        return DQ_NO_SPACE_AVAILABLE;
    }
    dqi_add_shared(&w->handed.in, n);
    dqi_add_shared(&w->handed.in_bytes, bytes);
    dqi_add_shared(&w->handed.bursts, 1);
    *out = op;
    return DQ_OK;
}

// ---- life: the control thread -----------------------------------------------------------------------------

// What came before a start that never happened.
static void discard(dqi_lane *l) {
    for (void *p; dqi_ring_pop(&l->work, &p, NULL);) {
        dqi_entry *e = p;
        dqi_drop(&l->c, DQ_DROP_STOPPED, e->burst->n);
        dqi_gauge_add(&l->w->held, -(int64_t)e->burst->n);
        dqi_write_lost(e->op, e->burst->n, -ECANCELED);
        dqi_writer_release(l->w, e);
    }
}

static int step_lanes(dqi_writer *w) {
    int n = 0;
    for (uint32_t i = 0; i < w->conf.n_dirs; i++)
        if (w->lanes[i].open) n += dqi_lane_drain(&w->lanes[i], INT32_MAX);
    return n;
}

static void writer_finish(dq_stage *st) {
    dqi_writer *w = st->impl;
    atomic_store(&w->quit, 1);
    for (uint32_t i = 0; i < w->conf.n_dirs; i++)
        dqi_lane_join(&w->lanes[i]);
    while (step_lanes(w) > 0) { // what lanes gave to others that had ended
    }
    for (uint32_t i = 0; i < w->conf.n_dirs; i++) {
        dqi_lane_close(&w->lanes[i]);
        discard(&w->lanes[i]);
    }
}

static int writer_start(dq_stage *st, dq_diag *diag) {
    dqi_writer *w = st->impl;
    int err = DQ_OK;
    w->name = st->name;
    for (uint32_t i = 0; i < w->conf.n_dirs && err == DQ_OK; i++)
        err = dqi_lane_check(&w->lanes[i], st->name, diag);
    uint64_t first = 0;
    if (err == DQ_OK && dqi_file_indexed(&w->conf)) {
        int found = dqi_file_first_index(&w->conf, &first);
        if (found != 0)
            err = dqi_fail(diag, DQ_ESYS + found, "writer %s: looking for its files: %s", st->name,
                           dqi_disk_words(found));
        atomic_store(&w->next_file, first);
    }
    for (uint32_t i = 0; i < w->conf.n_dirs && err == DQ_OK; i++)
        err = dqi_lane_open(&w->lanes[i], st->name, diag);
    for (uint32_t i = 0; i < w->conf.n_dirs && err == DQ_OK && !dqi_virtual(st->session); i++) {
        err = dqi_lane_start(&w->lanes[i]);
        if (err != DQ_OK) dqi_fail(diag, err, "writer %s: its thread: %s", st->name, dq_err_name(err));
    }
    if (err != DQ_OK) writer_finish(st);
    return err;
}

static int writer_step(dq_stage *st) { return step_lanes(st->impl); }

static void destroy(dqi_writer *w) {
    for (uint32_t i = 0; i < w->conf.n_dirs; i++)
        dqi_ring_free(&w->lanes[i].work);
    dqi_ring_free(&w->idle);
    free(w->list.notes);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

static void writer_free(dq_stage *st) {
    writer_finish(st);
    destroy(st->impl);
}

// ---- what it tells ----------------------------------------------------------------------------------------

static uint64_t writer_held(const dq_stage *st) {
    const dqi_writer *w = st->impl;
    int64_t n = dqi_gauge_get(&w->held);
    return n > 0 ? (uint64_t)n : 0;
}

static void writer_line(const dq_stage *st, dq_line *line) {
    const dqi_writer *w = st->impl;
    line->in += dqi_get(&w->handed.in);
    line->in_bytes += dqi_get(&w->handed.in_bytes);
    line->bursts += dqi_get(&w->handed.bursts);
    for (uint32_t k = 0; k < w->conf.n_dirs; k++) {
        const dqi_counters *c = &w->lanes[k].c;
        line->out += dqi_get(&c->out);
        line->out_bytes += dqi_get(&c->out_bytes);
        for (int i = 0; i < DQ_REASONS; i++)
            line->dropped[i] += dqi_get(&c->dropped[i]);
        for (int i = 0; i < DQ_EXTRAS; i++)
            line->extra[i] += dqi_get(&c->extra[i]) / (i == DQ_EXTRA_STALL_NS ? w->conf.n_dirs : 1);
    }
}

static void writer_spread(const dq_stage *st, dq_spread *out) {
    const dqi_writer *w = st->impl;
    out->kind = DQ_SPREAD_WRITE_STALL;
    for (uint32_t k = 0; k < w->conf.n_dirs; k++)
        dqi_spread_read(&w->lanes[k].stalls, out);
}

void dq_writer_error(dq_stage *writer, char *buf, size_t len) {
    dqi_writer *w = writer->impl;
    pthread_mutex_lock(&w->lock);
    snprintf(buf, len, "%s", w->error);
    pthread_mutex_unlock(&w->lock);
}

bool dq_writer_path(dq_stage *writer, uint32_t dir, char *buf, size_t len) {
    const dqi_writer *w = writer->impl;
    if (dir >= w->conf.n_dirs) return false;
    uint64_t files = atomic_load_explicit(&w->lanes[dir].files, memory_order_relaxed);
    if (len > 0) buf[0] = 0;
    if (files > 0) dqi_lane_path(&w->lanes[dir], files - 1, buf, len);
    return true;
}

bool dq_writer_file_read(dq_stage *writer, uint32_t number, dq_writer_file *out) {
    dqi_writer *w = writer->impl;
    pthread_mutex_lock(&w->lock);
    bool known = number < w->list.n;
    if (known) {
        const dqi_file_note *n = &w->list.notes[number];
        *out = (dq_writer_file){.bytes = n->bytes,
                                .packets = n->packets,
                                .first_ns = n->first_ns,
                                .last_ns = n->last_ns,
                                .first_batch = n->first_batch,
                                .last_batch = n->last_batch,
                                .crc32c = n->crc32c,
                                .closed = n->closed,
                                .deleted = n->deleted};
        dqi_writer_file_path(&w->conf, n->dir, n->index, out->path, sizeof out->path);
    }
    pthread_mutex_unlock(&w->lock);
    return known;
}

// ---- making one -------------------------------------------------------------------------------------------

static const dqi_stage_ops writer_ops = {
    .line_kind = DQ_LINE_WRITER,
    .consumer = true,
    .check = dqi_writer_check_queue,
    .push = writer_push,
    .held = writer_held,
    .line = writer_line,
    .spread = writer_spread,
    .start = writer_start,
    .step = writer_step,
    .finish = writer_finish,
    .free = writer_free,
};

static dqi_block_file *blocks_of(dqi_lane *l, int kind) {
    switch (kind) {
    case DQ_WRITE_PCAP:
    case DQ_WRITE_PCAPNG:
        return &l->f.pcap.file;
    case DQ_WRITE_RAW_FILE:
        return &l->f.flat.file;
    case DQ_WRITE_BATCHES:
        return &l->f.batch.file;
    default:
        return NULL;
    }
}

static bool init_lanes(dqi_writer *w) {
    bool ok = true;
    for (uint32_t i = 0; i < w->conf.n_dirs; i++) {
        dqi_lane *l = &w->lanes[i];
        l->w = w;
        l->dir = w->conf.dirs[i];
        l->number = i;
        l->wake.fd = l->raw.dir = -1;
        l->blocks = blocks_of(l, w->conf.kind);
        ok = dqi_ring_init(&l->work, DQI_WRITER_DEPTH) && ok;
    }
    return ok;
}

static bool is_capture(const dq_writer_conf *c) {
    return c->kind == DQ_WRITE_PCAP || c->kind == DQ_WRITE_PCAPNG;
}

int dq_stage_writer(dq_session *s, const char *name, const dq_writer_conf *conf, dq_stage **out,
                    dq_diag *diag) {
    int err = dqi_writer_check(name, conf, diag);
    if (err != DQ_OK) return err;
    dqi_writer *w = calloc(1, sizeof *w);
    if (!w) return dqi_fail(diag, DQ_ESYS - ENOMEM, "writer %s: no memory", name);
    w->session = s;
    w->conf = *conf;
    pthread_mutex_init(&w->lock, NULL);
    bool ok = init_lanes(w) && dqi_ring_init(&w->idle, DQI_WRITER_DEPTH);
    for (uint32_t i = 0; ok && i < DQI_WRITER_DEPTH; i++)
        dqi_ring_push(&w->idle, &w->entries[i], 0);
    err = ok ? dqi_stage_add(s, name, &writer_ops, w, out, diag)
             : dqi_fail(diag, DQ_ESYS - ENOMEM, "writer %s: no memory", name);
    if (err != DQ_OK) destroy(w);
    for (uint32_t i = 0; err == DQ_OK && is_capture(conf) && i < s->n_ifaces; i++)
        if (s->ifaces[i]->ops->captured) s->ifaces[i]->ops->captured(s->ifaces[i]);
    return err;
}
