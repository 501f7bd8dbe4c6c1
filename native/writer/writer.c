// writer.c: writer stage; writer.h specifies its behaviour.
//
// The queue's poller only passes on a reference; copying, formatting and system calls run on the dirs'
// threads, so a slow disk does not block the queue. Ring entries are preallocated and recycled: that bounds
// the writer's memory, and records the arrival time for packets without a receive time.
#include "writer/writer.h"
#include "core/burst.h"
#include "core/err.h"
#include "core/region.h"
#include "cuda/memory.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/stage.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DOWN 0x10000 // added to the ring level of a dir that can't write: more than any level

// ---- dirs -------------------------------------------------------------------------------------------------

dqi_writer_dir *dqi_writer_next_dir(dqi_writer *w) {
    uint32_t n = w->conf.n_dirs, shortest = UINT32_MAX;
    uint32_t turn = n > 1 ? atomic_fetch_add_explicit(&w->turn, 1, memory_order_relaxed) : 0;
    dqi_writer_dir *best = NULL;
    for (uint32_t i = 0; i < n; i++) {
        dqi_writer_dir *l = &w->dirs[(turn + i) % n];
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

// ---- GPU memory -------------------------------------------------------------------------------------------

// Selects the transfer from these regions to the files, and reports it once: cuFile, or NULL for staging
// memory. With the lock `reaching` held.
static const dqi_cufile *choose_way(dqi_writer *w, dq_region *const *regions, uint32_t n) {
    char why[300] = "between packets there is something else";
    const dqi_cufile *lib = w->format->straight ? dqi_cufile_open(why, sizeof why) : NULL;
    for (uint32_t k = 0; k < n; k++) {
        if (!regions[k]->gpu) continue;
        int32_t gpu = regions[k]->conf.gpu;
        if (lib && !dqi_cuda_file_memory(regions[k], lib, why, sizeof why))
            dqi_note(w->session, "writer %s: cuFile copies what lies in region %s once more: %s",
                     w->stage->name, regions[k]->conf.name, why);
        if (w->reached) continue;
        w->reached = true;
        if (!lib)
            dqi_note(w->session, "writer %s: from GPU %d through pinned memory: %s", w->stage->name, gpu,
                     why);
        else if (lib->major > 0)
            dqi_note(w->session, "writer %s: from GPU %d by cuFile, nvidia-fs %u.%u", w->stage->name, gpu,
                     lib->major, lib->minor);
        else
            dqi_note(w->session,
                     "writer %s: from GPU %d by cuFile, which copies through the host where "
                     "nvidia-fs is not loaded",
                     w->stage->name, gpu);
    }
    return lib;
}

int dqi_writer_reach(dqi_writer *w, dq_region *const *regions, uint32_t n, dq_diag *diag) {
    char what[DQ_NAME_LEN + 16];
    int err = DQ_OK;
    snprintf(what, sizeof what, "writer %s", w->stage->name);
    pthread_mutex_lock(&w->reaching);
    const dqi_cufile *lib = choose_way(w, regions, n);
    for (uint32_t i = 0; i < w->conf.n_dirs && err == DQ_OK; i++)
        err = dqi_staging_reach(&w->dirs[i].staging, regions, n, lib, what, diag);
    pthread_mutex_unlock(&w->reaching);
    return err;
}

int dq_writer_reach(dq_stage *writer, dq_region *const *regions, uint32_t n, dq_diag *diag) {
    return dqi_writer_reach(writer->impl, regions, n, diag);
}

static int writer_join(dq_stage *st, dq_queue *q, dq_diag *diag) {
    return dqi_writer_reach(st->impl, q->conf.regions, q->conf.n_regions, diag);
}

// The same for a burst from a script.
static int reach_burst(dqi_writer *w, const dq_burst *b) {
    dq_region *regions[DQ_MAX_SEGS];
    dq_diag diag = {0};
    int n = dqi_staging_regions(b, regions);
    if (n < 0) return DQ_NOT_SUPPORTED;
    int err = dqi_writer_reach(w, regions, (uint32_t)n, &diag);
    if (err != DQ_OK) dqi_writer_keep_words(w, NULL, diag.text);
    return err;
}

// ---- push: pollers' threads -------------------------------------------------------------------------------

// Records in e the buffers that the burst takes from their regions.
static void list_buffers(dqi_entry *e, const dq_session *s, const dq_burst *b) {
    const dq_burst *owner = b->parent ? b->parent : b;
    *e = (dqi_entry){.n_bufs = owner->n_bufs};
    for (uint32_t seg = 0; seg < owner->nseg && owner->n_bufs > 0; seg++)
        for (uint32_t i = 0; i < s->core.n_regions; i++)
            if (owner->bufs[seg][0] - s->core.regions[i]->first_id < s->core.regions[i]->n_ids)
                e->regions[e->n_regions++] = (uint16_t)i;
}

// Whether the writer holds so much that the queue would starve if it fell further behind.
static bool is_behind(const dqi_writer *w, const dqi_entry *e, const dq_burst *b) {
    const dq_burst *owner = b->parent ? b->parent : b;
    uint32_t bursts = w->session->core.conf.rx_meta_buffers;
    if (DQI_WRITER_DEPTH - dqi_ring_level(&w->idle) >= bursts / 4 * 3 &&
        dqi_burst_pool_level(owner->home) < bursts / 4)
        return true;
    for (uint32_t i = 0; i < e->n_regions; i++) {
        const dq_region *r = w->session->core.regions[e->regions[i]];
        int64_t kept = dqi_gauge_get(&w->bufs[e->regions[i]]);
        bool scarce = r->group == 1 || dqi_region_level(r) < r->n_groups / 4; // several may share a group
        if (kept > 0 && kept >= (int64_t)r->n_groups / 4 * 3 && scarce) return true;
    }
    return false;
}

// Returns a free entry with the buffers of in, or NULL if the writer is behind.
static dqi_entry *take_entry(dqi_writer *w, const dq_burst *in, bool patient) {
    dqi_entry e;
    void *p;
    list_buffers(&e, w->session, in);
    if (!patient && is_behind(w, &e, in)) return NULL;
    if (!dqi_ring_pop(&w->idle, &p, NULL)) return NULL;
    *(dqi_entry *)p = e;
    return p;
}

// Queues a reference to in for a dir; false: the writer is behind.
static bool hand_over(dqi_writer *w, dq_burst *in, dq_op *op, bool patient) {
    dqi_entry *e = take_entry(w, in, patient);
    if (!e) return false;
    dq_burst_ref(in);
    e->burst = in;
    e->op = op;
    e->pushed_ns = dq_now(w->session);
    for (uint32_t i = 0; i < e->n_regions; i++)
        dqi_gauge_add(&w->bufs[e->regions[i]], e->n_bufs);
    dqi_gauge_add(&w->held, in->n);
    dqi_writer_dir *l = dqi_writer_next_dir(w);
    dqi_ring_push(&l->work, e, 0); // has space for all entries
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

int dqi_writer_put(dq_stage *writer, dq_burst *b, dq_op *op) {
    dqi_writer *w = writer->impl;
    uint32_t n = b->n;
    uint64_t bytes = b->bytes;
    if (atomic_load(&w->quit) != 0) return DQ_NOT_READY;
    dqi_burst_columns(b);
    int err = b->device_only ? reach_burst(w, b) : DQ_OK;
    if (err != DQ_OK) return err;
    // Before a dir can see it: data being written must not change.
    dqi_burst_share(b);
    if (n > 0 && !hand_over(w, b, op, true)) return DQ_NO_SPACE_AVAILABLE;
    dqi_add_shared(&w->handed.in, n);
    dqi_add_shared(&w->handed.in_bytes, bytes);
    dqi_add_shared(&w->handed.bursts, 1);
    return DQ_OK;
}

int dq_writer_write(dq_stage *writer, dq_burst *b, const dq_write_names *names, dq_op **out) {
    const dqi_writer *w = writer->impl;
    if (names && names->prefix[0] && !w->format->names) return DQ_INVALID_PARAMETER;
    if (names && names->comment[0] && !w->format->comments) return DQ_INVALID_PARAMETER;
    uint32_t n = b->n;
    dq_op *op = dqi_op_new(n, names, names ? sizeof *names : 0);
    if (!op) return DQ_ESYS - ENOMEM;
    int err = dqi_writer_put(writer, b, op);
    if (err == DQ_OK) {
        *out = op;
        return DQ_OK;
    }
    dqi_op_lost(op, n, -ECANCELED); // the writer's reference
    dq_op_free(op);
    return err;
}

// ---- lifecycle: the control thread ------------------------------------------------------------------------

// Drops bursts queued before a start that failed.
static void discard(dqi_writer_dir *l) {
    for (void *p; dqi_ring_pop(&l->work, &p, NULL);) {
        dqi_entry *e = p;
        dqi_drop(&l->c, DQ_DROP_STOPPED, e->burst->n);
        dqi_gauge_add(&l->w->held, -(int64_t)e->burst->n);
        dqi_op_lost(e->op, e->burst->n, -ECANCELED);
        dqi_writer_release(l->w, e);
    }
}

static int step_dirs(dqi_writer *w) {
    int n = 0;
    for (uint32_t i = 0; i < w->conf.n_dirs; i++)
        if (w->dirs[i].open) n += dqi_writer_dir_drain(&w->dirs[i], INT32_MAX);
    return n;
}

static void writer_finish(dq_stage *st) {
    dqi_writer *w = st->impl;
    atomic_store(&w->quit, 1);
    for (uint32_t i = 0; i < w->conf.n_dirs; i++)
        dqi_writer_dir_join(&w->dirs[i]);
    while (step_dirs(w) > 0) { // entries passed to dirs that had ended
    }
    for (uint32_t i = 0; i < w->conf.n_dirs; i++) {
        dqi_writer_dir_close(&w->dirs[i]);
        discard(&w->dirs[i]);
    }
}

static int writer_start(dq_stage *st, dq_diag *diag) {
    dqi_writer *w = st->impl;
    int err = DQ_OK;
    w->name = st->name;
    w->stage = st;
    for (uint32_t i = 0; i < w->conf.n_dirs && err == DQ_OK; i++)
        err = dqi_writer_dir_check(&w->dirs[i], st->name, diag);
    uint64_t first = 0;
    bool each = w->format->about.each != 0, kept = !w->conf.append && !w->conf.overwrite;
    w->numbered = err == DQ_OK && kept && !each && !dqi_file_indexed(w) && dqi_file_taken(w);
    if (err == DQ_OK && (dqi_file_indexed(w) || (each && kept))) {
        int found = dqi_file_first_index(w, &first);
        if (found != 0)
            err = dqi_fail(diag, DQ_ESYS + found, "writer %s: looking for its files: %s", st->name,
                           dqi_disk_words(found));
        atomic_store(&w->next_file, first);
    }
    for (uint32_t i = 0; i < w->conf.n_dirs && err == DQ_OK; i++)
        err = dqi_writer_dir_open(&w->dirs[i], st->name, diag);
    for (uint32_t i = 0; i < w->conf.n_dirs && err == DQ_OK && !dqi_virtual(st->session); i++) {
        err = dqi_writer_dir_start(&w->dirs[i]);
        if (err != DQ_OK) dqi_fail(diag, err, "writer %s: its thread: %s", st->name, dq_err_name(err));
    }
    if (err != DQ_OK) writer_finish(st);
    return err;
}

static int writer_poll(dq_stage *st) { return step_dirs(st->impl); }

static void destroy(dqi_writer *w) {
    for (uint32_t i = 0; i < w->conf.n_dirs; i++) {
        dqi_staging_free(atomic_load(&w->dirs[i].staging));
        dqi_ring_free(&w->dirs[i].work);
        free(w->dirs[i].f.file);
    }
    dqi_ring_free(&w->idle);
    free(w->list.notes);
    pthread_mutex_destroy(&w->lock);
    pthread_mutex_destroy(&w->reaching);
    free(w);
}

static void writer_free(dq_stage *st) {
    writer_finish(st);
    destroy(st->impl);
}

// ---- reporting --------------------------------------------------------------------------------------------

static uint64_t writer_held(const dq_stage *st) {
    const dqi_writer *w = st->impl;
    int64_t n = dqi_gauge_get(&w->held);
    return n > 0 ? (uint64_t)n : 0;
}

static void writer_line(const dq_stage *st, dq_line *line) {
    const dqi_writer *w = st->impl;
    dqi_line_add(line, &w->handed);
    for (uint32_t k = 0; k < w->conf.n_dirs; k++)
        dqi_line_add(line, &w->dirs[k].c);
    line->extra[DQ_EXTRA_STALL_NS] /= w->conf.n_dirs; // mean: dirs wait concurrently
}

static bool writer_histogram(const dq_stage *st, uint32_t k, dq_histogram *out) {
    const dqi_writer *w = st->impl;
    if (k > 0) return false;
    out->kind = DQ_HISTOGRAM_WRITE_STALL;
    for (uint32_t d = 0; d < w->conf.n_dirs; d++)
        dqi_histogram_read(&w->dirs[d].stalls, out);
    return true;
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
    uint64_t files = atomic_load_explicit(&w->dirs[dir].files, memory_order_relaxed);
    if (len > 0) buf[0] = 0;
    if (files > 0) dqi_writer_file_path(w, dir, NULL, files - 1, buf, len);
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
        dqi_writer_file_path(w, n->dir, NULL, n->index, out->path, sizeof out->path);
    }
    pthread_mutex_unlock(&w->lock);
    return known;
}

// ---- setup ------------------------------------------------------------------------------------------------

static int writer_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const dqi_writer *w = st->impl;
    return w->format->check ? w->format->check(st->name, &w->conf, q, diag) : DQ_OK;
}

static const dqi_stage_ops writer_ops = {
    .line_kind = DQ_LINE_WRITER,
    .consumer = true,
    .touches = DQI_TOUCHES_ALL,
    .reads_gpus = true,
    .check = writer_check,
    .join = writer_join,
    .push = writer_push,
    .held = writer_held,
    .line = writer_line,
    .histogram = writer_histogram,
    .start = writer_start,
    .poll = writer_poll,
    .finish = writer_finish,
    .blocks = true,
    .free = writer_free,
};

static bool init_dirs(dqi_writer *w) {
    bool ok = true;
    for (uint32_t i = 0; i < w->conf.n_dirs; i++) {
        dqi_writer_dir *l = &w->dirs[i];
        l->w = w;
        l->dir = w->conf.dirs[i];
        l->number = i;
        l->wake.fd = l->each.dir = -1;
        ok = dqi_ring_init(&l->work, DQI_WRITER_DEPTH) && ok;
        if (w->format->size == 0) continue;
        l->f.file = calloc(1, w->format->size);
        ok = l->f.file && ok;
    }
    return ok;
}

int dq_stage_writer(dq_session *s, const char *name, const dq_writer_conf *conf, dq_stage **out,
                    dq_diag *diag) {
    int err = dqi_writer_check(name, conf, diag);
    if (err != DQ_OK) return err;
    dqi_writer *w = calloc(1, sizeof *w);
    if (!w) return dqi_fail(diag, DQ_ESYS - ENOMEM, "writer %s: no memory", name);
    w->session = s;
    w->conf = *conf;
    w->format = dqi_format_of(conf->kind);
    pthread_mutex_init(&w->lock, NULL);
    pthread_mutex_init(&w->reaching, NULL);
    bool ok = init_dirs(w) && dqi_ring_init(&w->idle, DQI_WRITER_DEPTH);
    for (uint32_t i = 0; ok && i < DQI_WRITER_DEPTH; i++)
        dqi_ring_push(&w->idle, &w->entries[i], 0);
    err = ok ? dqi_stage_add(s, name, &writer_ops, w, out, diag)
             : dqi_fail(diag, DQ_ESYS - ENOMEM, "writer %s: no memory", name);
    if (err != DQ_OK) {
        destroy(w);
        return err;
    }
    (*out)->threaded = true;
    w->stage = *out;
    for (uint32_t i = 0; w->format->capture && i < s->n_ifaces; i++) {
        const dqi_conn_ops *conns = s->ifaces[i]->ops->conns;
        if (conns && conns->captured) conns->captured(s->ifaces[i]);
    }
    return DQ_OK;
}
