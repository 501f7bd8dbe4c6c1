// writer.c: the stage behind write_pcap and write_raw; writer.h says what it promises.
//
// The queue's poller only passes a reference on; copying, formatting and the system's calls happen on the
// writer's own thread, so a slow disk holds no queue back. Entries of the ring are preallocated and come from
// a ring of free ones: that bounds what a writer holds, and lets a packet without a receive time take the
// time at which it came.
#include "writer.h"
#include "pcap_file.h"
#include "poller.h"
#include "raw_file.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define BATCH      32     // bursts between looks at the clock
#define NAP_NS     200000 // pause after work, so that a fast queue need not wake the writer for each burst
#define MAX_PREFIX 200    // bytes; leaves room for an index or a suffix in a file's name

typedef struct entry {
    dq_burst *burst;
    int64_t pushed_ns; // session time
    uint32_t n_bufs;   // buffers of each of these regions that the burst keeps
    uint32_t n_regions;
    uint16_t regions[DQ_MAX_SEGS];
} entry;

struct dqi_writer {
    dq_session *session;
    dq_writer_conf conf;
    // between the pollers and the writer
    dqi_ring work, idle; // of entries
    dqi_wake wake;
    _Atomic uint32_t quit;
    dqi_gauge held;                  // packets
    dqi_gauge bufs[DQI_MAX_REGIONS]; // that waiting bursts keep, by region
    entry entries[DQI_WRITER_DEPTH];
    // the writer's own
    dqi_counters c;
    dqi_pcap_file pcap;
    dqi_raw_file raw;
    bool open, threaded, failed, dirty;
    int64_t dirty_ns; // dirty: session time since when something waits for a flush
    int64_t retry_ns; // after a full disk: when to try again; 0: all is well
    pthread_t thread;
    pthread_mutex_t lock; // of error
    char error[2048];
};

// ---- names and errors -------------------------------------------------------------------------------------

// The file with this index; a pcap writer has one file.
static void path_of(const dqi_writer *w, uint64_t index, char *buf, size_t len) {
    const char *dir = w->conf.dir, *slash = dir[strlen(dir) - 1] == '/' ? "" : "/";
    if (w->conf.raw)
        snprintf(buf, len, "%s%s%s_%" PRIu64, dir, slash, w->conf.prefix, index);
    else
        snprintf(buf, len, "%s%s%s.pcap", dir, slash, w->conf.prefix);
}

static const char *words(int err) {
    switch (err) {
    case EWOULDBLOCK:
        return "another writer has this file open; hint: give each writer a prefix of its own";
    case ENOSPC:
        return "no space left on device; hint: free some, then writing goes on";
    case EDQUOT:
        return "disk quota exceeded; hint: free some, then writing goes on";
    case EFBIG:
        return "the file is as large as the file system or ulimit -f allows";
    case ENXIO:
        return "it is a pipe that nobody reads; hint: start its reader first";
    case EPIPE:
        return "the pipe's reader has ended";
    case ETIMEDOUT:
        return "the pipe's reader stands still";
    case ENOTDIR:
        return "it is not a folder";
    case EACCES:
        return "permission denied";
    case EROFS:
        return "the file system is read-only";
    case EIO:
        return "the device reports an input/output error";
    default:
        return strerror(err);
    }
}

static void on_error(dqi_writer *w, int err) {
    char path[sizeof w->conf.dir + sizeof w->conf.prefix + 32];
    path_of(w, w->raw.next, path, sizeof path);
    pthread_mutex_lock(&w->lock);
    if (w->error[0] == 0)
        snprintf(w->error, sizeof w->error, "%s: %s", path,
                 err != ENOENT ? words(err)
                 : w->conf.raw ? "the folder was removed while writing"
                               : "the file was removed while writing");
    pthread_mutex_unlock(&w->lock);
    if (err == ENOSPC || err == EDQUOT)
        w->retry_ns = dqi_mono_ns() + DQI_WRITER_RETRY_NS;
    else
        w->failed = true;
}

// True while nothing can be written; false also when it is time to try again.
static bool out_of_order(dqi_writer *w) {
    if (w->failed || w->retry_ns == 0) return w->failed;
    if (dqi_mono_ns() < w->retry_ns) return true;
    w->retry_ns = 0;
    return false;
}

// ---- writing: the writer's thread -------------------------------------------------------------------------

// Takes what became of packets into the counters.
static void settle(dqi_writer *w, const dqi_file_tally *t) {
    dqi_add(&w->c.out, t->packets);
    dqi_add(&w->c.out_bytes, t->packet_bytes);
    dqi_drop(&w->c, DQ_DROP_WRITE_ERROR, t->lost);
    dqi_add(&w->c.extra[DQ_EXTRA_TRUNCATED], t->cut);
    dqi_add(&w->c.extra[DQ_EXTRA_FILES], t->files);
    dqi_add(&w->c.extra[DQ_EXTRA_FILE_BYTES], t->file_bytes);
    if (!dqi_virtual(w->session)) dqi_add(&w->c.extra[DQ_EXTRA_STALL_NS], (uint64_t)t->write_ns);
    dqi_gauge_add(&w->held, -(int64_t)(t->packets + t->lost));
}

static void flush(dqi_writer *w) {
    dqi_file_tally t = {0};
    w->dirty = false;
    int err = dqi_pcap_flush(&w->pcap, &t);
    settle(w, &t);
    if (err != 0) on_error(w, -err);
}

static void write_burst(dqi_writer *w, const entry *e) {
    const dq_burst *b = e->burst;
    dqi_file_tally t = {0};
    for (uint32_t i = 0; i < b->n; i++) {
        if (out_of_order(w)) {
            t.lost++;
            continue;
        }
        int err = w->conf.raw ? dqi_raw_add(&w->raw, b, i, &t)
                              : dqi_pcap_add(&w->pcap, b, i, b->ts[i] ? b->ts[i] : e->pushed_ns, &t);
        if (err == 0) continue;
        t.lost++;
        on_error(w, -err);
    }
    settle(w, &t);
    if (!w->dirty && !w->conf.raw && dqi_pcap_dirty(&w->pcap)) {
        w->dirty = true;
        w->dirty_ns = dq_now(w->session);
    }
}

// Lets go of the entry's burst.
static void release(dqi_writer *w, entry *e) {
    for (uint32_t i = 0; i < e->n_regions; i++)
        dqi_gauge_add(&w->bufs[e->regions[i]], -(int64_t)e->n_bufs);
    dq_burst_unref(e->burst);
    dqi_ring_push(&w->idle, e, 0);
}

// Writes at most max waiting bursts; their number.
static int drain(dqi_writer *w, int max) {
    int n = 0;
    for (void *p; n < max && dqi_ring_pop(&w->work, &p, NULL); n++) {
        entry *e = p;
        write_burst(w, e);
        release(w, e);
    }
    if (w->dirty && dq_now(w->session) - w->dirty_ns >= DQI_WRITER_LAG_NS) flush(w);
    return n;
}

// Sleeps until a burst comes or a flush is due.
static void sleep_idle(dqi_writer *w) {
    int64_t left = w->dirty ? DQI_WRITER_LAG_NS - (dq_now(w->session) - w->dirty_ns) : INT64_MAX;
    struct pollfd fds[1];
    dqi_wake_announce(&w->wake);
    if (left > 0 && dqi_ring_level(&w->work) == 0 && atomic_load(&w->quit) == 0)
        dqi_wake_sleep(&w->wake, fds, 1, left);
    else
        dqi_wake_stay(&w->wake);
}

static void *writer_thread(void *arg) {
    dqi_writer *w = arg;
    for (;;) {
        bool quit = atomic_load(&w->quit) != 0; // before the look at the ring: nothing is pushed after it
        int n = drain(w, BATCH);
        if (n == 0 && quit) return NULL;
        if (n == 0)
            sleep_idle(w);
        else if (n < BATCH && !quit)
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

// ---- push: pollers' threads -------------------------------------------------------------------------------

// Notes in e which buffers the burst keeps from their regions.
static void list_buffers(entry *e, const dq_session *s, const dq_burst *b) {
    const dq_burst *owner = b->parent ? b->parent : b;
    *e = (entry){.n_bufs = owner->n_bufs};
    for (uint32_t seg = 0; seg < owner->nseg && owner->n_bufs > 0; seg++)
        for (uint32_t i = 0; i < s->n_regions; i++)
            if (owner->bufs[seg][0] - s->regions[i]->first_id < s->regions[i]->conf.num_bufs)
                e->regions[e->n_regions++] = (uint16_t)i;
}

// True when the writer keeps so much already that the queue would starve if it fell behind further.
static bool is_behind(const dqi_writer *w, const entry *e, const dq_burst *b) {
    const dq_burst *owner = b->parent ? b->parent : b;
    uint32_t bursts = w->session->conf.rx_meta_buffers;
    if (dqi_ring_level(&w->work) >= bursts / 4 * 3 && dqi_burst_pool_level(owner->home) < bursts / 4)
        return true;
    for (uint32_t i = 0; i < e->n_regions; i++) {
        int64_t kept = dqi_gauge_get(&w->bufs[e->regions[i]]);
        if (kept > 0 && kept >= (int64_t)w->session->regions[e->regions[i]]->conf.num_bufs / 4 * 3)
            return true;
    }
    return false;
}

// A free entry that lists the buffers of in, or NULL: the writer is behind.
static entry *take_entry(dqi_writer *w, const dq_burst *in) {
    entry e;
    void *p;
    list_buffers(&e, w->session, in);
    if (w->conf.policy == DQ_POLICY_DROP && is_behind(w, &e, in)) return NULL;
    if (!dqi_ring_pop(&w->idle, &p, NULL)) return NULL;
    *(entry *)p = e;
    return p;
}

static int writer_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    dqi_writer *w = st->impl;
    *out = in;
    if (atomic_load_explicit(&w->quit, memory_order_relaxed) != 0) {
        dqi_drop(&node->c, DQ_DROP_STOPPED, in->n);
        return DQ_OK;
    }
    entry *e = take_entry(w, in);
    if (!e && w->conf.policy == DQ_POLICY_WAIT) return DQ_NOT_READY;
    if (!e) {
        dqi_drop(&node->c, DQ_DROP_BEHIND, in->n);
        return DQ_OK;
    }
    dq_burst_ref(in);
    e->burst = in;
    e->pushed_ns = dq_now(st->session);
    for (uint32_t i = 0; i < e->n_regions; i++)
        dqi_gauge_add(&w->bufs[e->regions[i]], e->n_bufs);
    dqi_gauge_add(&w->held, in->n);
    dqi_ring_push(&w->work, e, 0); // has room for all entries
    if (w->threaded) dqi_wake_up(&w->wake);
    return DQ_OK;
}

// ---- life: the control thread -----------------------------------------------------------------------------

// The folder must be there: a misspelt one would otherwise fill the wrong disk.
static int check_folder(const dqi_writer *w, const char *name, dq_diag *diag) {
    struct stat s;
    const char *dir = w->conf.dir;
    int err = stat(dir, &s) != 0 ? errno : S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
    if (err == 0 && w->conf.raw && access(dir, W_OK | X_OK) != 0) err = errno;
    if (err == 0) return DQ_OK;
    if (err == ENOENT)
        return dqi_fail(diag, DQ_ESYS - err, "writer %s: folder %s: there is none; hint: mkdir -p %s", name,
                        dir, dir);
    return dqi_fail(diag, DQ_ESYS - err, "writer %s: folder %s: %s", name, dir, words(err));
}

static int open_file(dqi_writer *w, const char *name, dq_diag *diag) {
    char path[sizeof w->conf.dir + sizeof w->conf.prefix + 32];
    dqi_file_tally t = {0};
    path_of(w, 0, path, sizeof path);
    int err = check_folder(w, name, diag);
    if (err != DQ_OK) return err;
    err = w->conf.raw ? dqi_raw_open(&w->raw, w->conf.dir, w->conf.prefix, w->conf.packet_data_offset)
                      : dqi_pcap_open(&w->pcap, path, w->conf.snaplen, &t);
    if (err != 0)
        return dqi_fail(diag, DQ_ESYS + err, "writer %s: %s: %s", name, w->conf.raw ? w->conf.dir : path,
                        words(-err));
    settle(w, &t);
    w->pcap.file.quit = &w->quit;
    w->open = true;
    return DQ_OK;
}

static void close_file(dqi_writer *w) {
    w->open = false;
    if (w->conf.raw) {
        dqi_raw_close(&w->raw);
        return;
    }
    flush(w);
    int err = dqi_pcap_close(&w->pcap);
    if (err != 0) on_error(w, -err);
}

static int writer_start(dq_stage *st, dq_diag *diag) {
    dqi_writer *w = st->impl;
    int err = open_file(w, st->name, diag);
    if (err != DQ_OK || dqi_virtual(st->session)) return err;
    err = dqi_wake_init(&w->wake);
    if (err == DQ_OK) err = dqi_thread_start(&w->thread, writer_thread, w);
    if (err != DQ_OK) {
        dqi_wake_close(&w->wake);
        close_file(w);
        return dqi_fail(diag, err, "writer %s: its thread: %s", st->name, dq_err_name(err));
    }
    w->threaded = true;
    return DQ_OK;
}

static int writer_step(dq_stage *st) {
    dqi_writer *w = st->impl;
    return w->open ? drain(w, INT32_MAX) : 0;
}

// What came before a start that never happened.
static void discard(dqi_writer *w) {
    for (void *p; dqi_ring_pop(&w->work, &p, NULL);) {
        entry *e = p;
        dqi_drop(&w->c, DQ_DROP_STOPPED, e->burst->n);
        dqi_gauge_add(&w->held, -(int64_t)e->burst->n);
        release(w, e);
    }
}

static void writer_finish(dq_stage *st) {
    dqi_writer *w = st->impl;
    if (atomic_exchange(&w->quit, 1) != 0) return;
    if (w->threaded) {
        dqi_wake_up(&w->wake);
        pthread_join(w->thread, NULL);
        dqi_wake_close(&w->wake);
    }
    if (w->open) {
        drain(w, INT32_MAX);
        close_file(w);
    }
    discard(w);
}

static void destroy(dqi_writer *w) {
    dqi_ring_free(&w->work);
    dqi_ring_free(&w->idle);
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
    line->out += dqi_get(&w->c.out);
    line->out_bytes += dqi_get(&w->c.out_bytes);
    for (int i = 0; i < DQ_REASONS; i++)
        line->dropped[i] += dqi_get(&w->c.dropped[i]);
    for (int i = 0; i < DQ_EXTRAS; i++)
        line->extra[i] += dqi_get(&w->c.extra[i]);
}

void dq_writer_error(dq_stage *writer, char *buf, size_t len) {
    dqi_writer *w = writer->impl;
    pthread_mutex_lock(&w->lock);
    snprintf(buf, len, "%s", w->error);
    pthread_mutex_unlock(&w->lock);
}

void dq_writer_path(dq_stage *writer, char *buf, size_t len) {
    const dqi_writer *w = writer->impl;
    uint64_t files = dqi_get(&w->c.extra[DQ_EXTRA_FILES]);
    if (len > 0) buf[0] = 0;
    if (files > 0) path_of(w, files - 1, buf, len);
}

// ---- making one -------------------------------------------------------------------------------------------

static const dqi_stage_ops writer_ops = {
    .line_kind = DQ_LINE_WRITER,
    .consumer = true,
    .push = writer_push,
    .held = writer_held,
    .line = writer_line,
    .start = writer_start,
    .step = writer_step,
    .finish = writer_finish,
    .free = writer_free,
};

static int check_conf(const char *name, const dq_writer_conf *c, dq_diag *diag) {
    if (c->dir[0] == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "writer %s: the folder's name is empty", name);
    if (c->prefix[0] == 0 || strchr(c->prefix, '/'))
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "writer %s: prefix \"%s\": must be the start of a file's name, without folders", name,
                        c->prefix);
    if (strlen(c->prefix) > MAX_PREFIX)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "writer %s: prefix is longer than %d bytes", name,
                        MAX_PREFIX);
    if (c->snaplen > DQI_PCAP_MAX_SNAPLEN)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "writer %s: snaplen %u: readers of pcap files take at most %d", name, c->snaplen,
                        DQI_PCAP_MAX_SNAPLEN);
    return DQ_OK;
}

int dq_stage_writer(dq_session *s, const char *name, const dq_writer_conf *conf, dq_stage **out,
                    dq_diag *diag) {
    int err = check_conf(name, conf, diag);
    if (err != DQ_OK) return err;
    dqi_writer *w = calloc(1, sizeof *w);
    if (!w) return dqi_fail(diag, DQ_ESYS - ENOMEM, "writer %s: no memory", name);
    w->session = s;
    w->conf = *conf;
    w->raw.dir = w->pcap.file.fd = w->wake.fd = -1;
    pthread_mutex_init(&w->lock, NULL);
    bool ok = dqi_ring_init(&w->work, DQI_WRITER_DEPTH) && dqi_ring_init(&w->idle, DQI_WRITER_DEPTH);
    for (uint32_t i = 0; ok && i < DQI_WRITER_DEPTH; i++)
        dqi_ring_push(&w->idle, &w->entries[i], 0);
    err = ok ? dqi_stage_add(s, name, &writer_ops, w, out, diag)
             : dqi_fail(diag, DQ_ESYS - ENOMEM, "writer %s: no memory", name);
    if (err != DQ_OK) destroy(w);
    return err;
}
