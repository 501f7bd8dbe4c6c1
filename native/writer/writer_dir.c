// writer_dir.c: one folder of a writer: its thread, its files, and handling of write errors.
#include "core/burst.h"
#include "core/clock.h"
#include "core/err.h"
#include "core/thread.h"
#include "cuda/mover.h"
#include "pipeline/poller.h"
#include "pipeline/stage.h"
#include "writer/writer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define BATCH      32     // bursts between clock reads
#define NAP_NS     200000 // pause after work, so that a fast queue need not wake the writer for each burst
#define MIN_ROOM   (64u << 20) // bytes that a full disk must have free again while other dirs can write
#define PATH_BYTES (sizeof((dq_writer_conf *)0)->dirs[0] + sizeof((dq_writer_conf *)0)->prefix + 32)

// ---- errors -----------------------------------------------------------------------------------------------

void dqi_writer_keep_words(dqi_writer *w, const char *object, const char *words) {
    pthread_mutex_lock(&w->lock);
    if (w->error[0] == 0)
        snprintf(w->error, sizeof w->error, "%s%s%s", object ? object : "", object ? ": " : "", words);
    pthread_mutex_unlock(&w->lock);
}

// Handles the loss of the GPU with the packets: the dir fails.
static void lose_device(dqi_writer_dir *l) {
    dqi_writer *w = l->w;
    char words[256];
    dqi_gpu_lost(dqi_staging_gpu(atomic_load(&l->staging)), words, sizeof words);
    dqi_writer_keep_words(w, NULL, words);
    pthread_mutex_lock(&w->lock);
    dqi_stage_fail(w->stage, words);
    pthread_mutex_unlock(&w->lock);
    l->failed = true;
}

// Handles err: -errno or a dqi_file_error. names: of the file; NULL: the writer's own.
static void on_error(dqi_writer_dir *l, int err, uint64_t index, const dq_write_names *names) {
    dqi_writer *w = l->w;
    char path[PATH_BYTES];
    if (err == -DQI_EQUOTA || err == -DQI_ENOBLOCK || err == -DQI_ESAMPLES) { // the folder is usable
        if (!l->refused && !(err == -DQI_EQUOTA && w->conf.enough))
            dqi_writer_keep_words(w, NULL, dqi_disk_words(err));
        l->refused = true;
        return;
    }
    if (err == -EEXIST && names) { // here, too
        dqi_writer_file_path(w, l->number, names->prefix, index, path, sizeof path);
        dqi_writer_keep_words(w, path, dqi_disk_words(err));
        return;
    }
    l->err = err;
    atomic_store(&l->down, true);
    if (err == -DQI_EDEVICE) {
        lose_device(l);
        return;
    }
    if (l->f.file) index = l->f.index;
    dqi_writer_file_path(w, l->number, names ? names->prefix : NULL, index, path, sizeof path);
    dqi_writer_keep_words(w, path,
                          err != -ENOENT ? dqi_disk_words(err)
                          : l->f.file    ? "the file was removed while writing"
                                         : "the folder was removed while writing");
    if (err == -ENOSPC || err == -EDQUOT)
        l->retry_ns = dqi_mono_ns() + DQI_WRITER_RETRY_NS;
    else
        l->failed = true;
}

// Returns another dir that can write, or NULL.
static dqi_writer_dir *other_dir(const dqi_writer_dir *l) {
    dqi_writer_dir *to = dqi_writer_next_dir(l->w);
    return to != l && !atomic_load(&to->down) ? to : NULL;
}

static bool has_room(const dqi_writer_dir *l) {
    struct statvfs s;
    return statvfs(l->dir, &s) == 0 && (uint64_t)s.f_bavail * s.f_frsize >= MIN_ROOM;
}

// Whether the dir can't write; false also when it is time to retry.
static bool is_down(dqi_writer_dir *l) {
    if (!atomic_load_explicit(&l->down, memory_order_relaxed)) return false;
    if (l->failed || dqi_mono_ns() < l->retry_ns) return true;
    if (other_dir(l) && !has_room(l)) {
        l->retry_ns = dqi_mono_ns() + DQI_WRITER_RETRY_NS;
        return true;
    }
    atomic_store(&l->down, false);
    return false;
}

// ---- writing: the dir's thread ----------------------------------------------------------------------------

// Adds the outcome of packets to the counters.
static void settle(dqi_writer_dir *l, const dqi_file_tally *t) {
    dqi_add(&l->c.out, t->packets);
    dqi_add(&l->c.out_bytes, t->packet_bytes);
    dqi_drop(&l->c, DQ_DROP_WRITE_ERROR, t->lost);
    dqi_drop(&l->c, l->w->conf.enough ? DQ_DROP_ENOUGH : DQ_DROP_QUOTA, t->over_quota);
    dqi_drop(&l->c, DQ_DROP_DEVICE_LOST, t->device_lost);
    dqi_add(&l->c.extra[DQ_EXTRA_DELETED_FILES], t->deleted);
    dqi_add(&l->c.extra[DQ_EXTRA_TRUNCATED], t->cut);
    dqi_add(&l->c.extra[DQ_EXTRA_FILES], t->files);
    dqi_add(&l->c.extra[DQ_EXTRA_FILE_BYTES], t->file_bytes);
    if (t->stall_ns > 0 && !dqi_virtual(l->w->session)) {
        dqi_add(&l->c.extra[DQ_EXTRA_STALL_NS], (uint64_t)t->stall_ns);
        dqi_histogram_note(&l->stalls, (uint64_t)t->stall_ns);
    }
    dqi_gauge_add(&l->w->held, -(int64_t)(t->packets + t->lost + t->over_quota + t->device_lost));
}

// Records since when data wait for a flush: earlier data left with the last submitted buffer.
static void look_for_dirt(dqi_writer_dir *l) {
    if (!l->f.open || !dqi_buffered_file_dirty(l->f.file)) {
        l->dirty = false;
    } else if (!l->dirty || l->turns != l->f.file->turns) {
        l->dirty = true;
        l->turns = l->f.file->turns;
        l->dirty_ns = dq_now(l->w->session);
    }
}

// Calls dqi_buffered_file_flush or dqi_buffered_file_reap, and handles the result.
static void catch_up(dqi_writer_dir *l, int (*with)(dqi_buffered_file *, dqi_file_tally *)) {
    dqi_file_tally t = {0};
    int err = with(l->f.file, &t);
    settle(l, &t);
    if (err != 0) on_error(l, err, 0, NULL);
    look_for_dirt(l);
}

// Ends the dir's file.
static void end_file(dqi_writer_dir *l) {
    dqi_file_tally t = {0};
    int err = dqi_file_end(l, &t);
    settle(l, &t);
    if (err != 0) on_error(l, err, 0, NULL);
    look_for_dirt(l);
}

void dqi_writer_note_indirect(dqi_writer_dir *l, const char *why) {
    if (!l->indirect)
        dqi_note(l->w->session, "writer %s: %s: from the GPU through pinned memory: %s", l->w->name, l->dir,
                 why);
    l->indirect = true;
}

// Writes n packets of the entry's burst, from i on, to a file of their own; *index: its index.
static int add_file(dqi_writer_dir *l, const dqi_entry *e, uint32_t i, uint32_t n, uint64_t *index,
                    dqi_file_tally *t) {
    const dq_burst *b = e->burst;
    const dq_write_names *names = dqi_op_names(e->op);
    uint64_t before = t->packet_bytes, bytes = dqi_burst_sum(b, i, n);
    *index = i;
    if (!dqi_quota_take(l, bytes, t)) return -DQI_EQUOTA;
    int err = names ? dqi_packet_files_add_named(&l->each, names, b, i, t)
                    : dqi_packet_files_add(&l->each, b, i, n, index, t);
    if (l->each.indirect[0]) dqi_writer_note_indirect(l, l->each.indirect);
    dqi_quota_return(l, (int64_t)(bytes - (t->packet_bytes - before)));
    if (err != 0) return err;
    if (!names) atomic_store_explicit(&l->files, *index + 1, memory_order_relaxed);
    dq_op_ok(e->op, n, t->packet_bytes - before);
    return 0;
}

static void write_burst(dqi_writer_dir *l, const dqi_entry *e) {
    uint32_t n = e->burst->n, step = l->w->format->about.each == DQ_EACH_BURST ? n : 1;
    dqi_file_tally t = {0};
    if (e->burst->device_only && !l->f.file) {
        l->staged.staging = atomic_load(&l->staging);
        dqi_staged_begin(&l->staged, e->burst);
    }
    for (uint32_t i = 0; i < n; i += step) {
        uint64_t index = 0;
        bool down = is_down(l);
        int err = down ? l->err : l->f.file ? dqi_file_add(l, e, i, &t) : add_file(l, e, i, step, &index, &t);
        if (err == 0) continue;
        *dqi_tally_of(&t, err) += step;
        dqi_op_lost(e->op, step, err);
        if (!down) on_error(l, err, index, dqi_op_names(e->op));
    }
    dqi_staged_end(&l->staged);
    settle(l, &t);
    l->asked |= e->op != NULL;
    look_for_dirt(l);
}

static void pass_on(dqi_writer_dir *to, dqi_entry *e) {
    dqi_ring_push(&to->work, e, 0); // has space for all entries
    if (to->threaded) dqi_wake_up(&to->wake);
}

// Whether GPU copies for the files are pending.
static bool copies_go_on(dqi_writer_dir *l) {
    dqi_staging *s = atomic_load(&l->staging);
    return s && dqi_staging_busy(s);
}

static bool flush_is_due(const dqi_writer_dir *l) {
    return l->dirty && ((l->asked && dqi_ring_level(&l->work) == 0) ||
                        dq_now(l->w->session) - l->dirty_ns >= DQI_WRITER_LAG_NS);
}

int dqi_writer_dir_drain(dqi_writer_dir *l, int max) {
    int n = 0;
    if (l->f.open) catch_up(l, dqi_buffered_file_reap);
    if (dqi_file_is_due(l)) end_file(l);
    is_down(l); // checks for free space
    for (void *p; n < max && dqi_ring_pop(&l->work, &p, NULL); n++) {
        dqi_entry *e = p;
        dqi_writer_dir *to = is_down(l) ? other_dir(l) : NULL;
        if (to) {
            pass_on(to, e);
        } else {
            write_burst(l, e);
            dqi_writer_release(l->w, e);
        }
    }
    if (flush_is_due(l)) {
        catch_up(l, dqi_buffered_file_flush);
        l->asked = false;
    }
    if (n == 0 && dqi_virtual(l->w->session) && copies_go_on(l)) { // virtual time must not advance
        dqi_mover_nap();
        n++;
    }
    return n;
}

// Sleeps until a burst arrives, a flush is due, or a full disk is to be checked again.
static void sleep_idle(dqi_writer_dir *l) {
    int64_t left = l->dirty ? DQI_WRITER_LAG_NS - (dq_now(l->w->session) - l->dirty_ns) : INT64_MAX;
    if (atomic_load(&l->down) && !l->failed && left > DQI_WRITER_RETRY_NS) left = DQI_WRITER_RETRY_NS;
    if (l->f.open && l->w->conf.rotate_ns && l->f.packets > 0) {
        int64_t due = l->f.opened_ns + l->w->conf.rotate_ns - dq_now(l->w->session);
        if (due < left) left = due;
    }
    struct pollfd fds[1];
    dqi_wake_announce(&l->wake);
    if (left > 0 && dqi_ring_level(&l->work) == 0 && atomic_load(&l->w->quit) == 0)
        dqi_wake_sleep(&l->wake, fds, 1, left);
    else
        dqi_wake_stay(&l->wake);
}

static void *dir_thread(void *arg) {
    dqi_writer_dir *l = arg;
    dqi_thread_name("write", l->w->name);
    for (;;) {
        bool quit = atomic_load(&l->w->quit) != 0; // read before the ring: nothing is pushed after it is set
        int n = dqi_writer_dir_drain(l, BATCH);
        if (n == 0 && quit) return NULL;
        if (n == 0 && copies_go_on(l))
            dqi_mover_nap();
        else if (n == 0)
            sleep_idle(l);
        else if (n < BATCH && !quit)
            nanosleep(&(struct timespec){.tv_nsec = NAP_NS}, NULL);
    }
}

// ---- lifecycle: the control thread ------------------------------------------------------------------------

// Files of aggregates are opened for the first one, whose shape they need; files of packets when packets
// arrive.
static bool begins_at_once(const dqi_writer_dir *l) { return l->f.file && !l->w->format->about.aggregates; }

// The folder must exist: otherwise a misspelt one would fill the wrong disk.
int dqi_writer_dir_check(const dqi_writer_dir *l, const char *name, dq_diag *diag) {
    struct stat s;
    int err = stat(l->dir, &s) != 0 ? errno : S_ISDIR(s.st_mode) ? 0 : ENOTDIR;
    if (err == 0 && !begins_at_once(l) && access(l->dir, W_OK | X_OK) != 0) err = errno;
    if (err == 0) return DQ_OK;
    if (err == ENOENT)
        return dqi_fail(diag, DQ_ESYS - err, "writer %s: folder %s: there is none; hint: mkdir -p %s", name,
                        l->dir, l->dir);
    return dqi_fail(diag, DQ_ESYS - err, "writer %s: folder %s: %s", name, l->dir, dqi_disk_words(-err));
}

int dqi_writer_dir_open(dqi_writer_dir *l, const char *name, dq_diag *diag) {
    dqi_writer *w = l->w;
    char path[PATH_BYTES];
    dqi_file_tally t = {0};
    dqi_writer_file_path(w, l->number, NULL, atomic_load(&w->next_file), path, sizeof path);
    int err = 0;
    if (!l->f.file)
        err = dqi_packet_files_open(&l->each, l->dir, &w->conf, &w->next_file, &l->staged);
    else if (begins_at_once(l))
        err = dqi_file_begin(l, NULL, &t);
    if (err != 0)
        return dqi_fail(diag, -err < DQI_EQUOTA ? DQ_ESYS + err : DQ_INVALID_PARAMETER, "writer %s: %s: %s",
                        name, l->f.file ? path : l->dir, dqi_disk_words(err));
    settle(l, &t);
    dqi_file_count(l, 0);
    l->open = true;
    return DQ_OK;
}

int dqi_writer_dir_start(dqi_writer_dir *l) {
    int err = dqi_wake_init(&l->wake);
    if (err == DQ_OK) err = dqi_thread_start(&l->thread, NULL, dir_thread, l);
    if (err != DQ_OK) dqi_wake_close(&l->wake);
    l->threaded = err == DQ_OK;
    return err;
}

void dqi_writer_dir_join(dqi_writer_dir *l) {
    if (!l->threaded) return;
    dqi_wake_up(&l->wake);
    pthread_join(l->thread, NULL);
}

void dqi_writer_dir_close(dqi_writer_dir *l) {
    if (l->threaded) dqi_wake_close(&l->wake);
    l->threaded = false;
    if (!l->open) return;
    l->open = false;
    if (!l->f.file) {
        dqi_packet_files_close(&l->each);
        return;
    }
    end_file(l);
}
