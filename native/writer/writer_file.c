// writer_file.c: contiguous files of a dir. A packet that would exceed a limit goes to the next file, so none
// is split; that file is created for a packet, so none is empty.
#include "writer/writer_file.h"
#include "core/burst.h"
#include "writer/writer.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TIMELESS                                                                                             \
    "packets come that were captured without a time: a pcapng can say so, all other files of captures have " \
    "them with the time of the packet before"
#define OUTSIDE                                                                                              \
    "packets come whose times a file of this format can't have: a pcap has those from 1970 to 2106, a "      \
    "pcapng "                                                                                                \
    "those from 1970 on; they are written with the nearest one"
#define PCAP_LAST_NS ((INT64_C(1) << 32) * 1000000000 - 1) // seconds have 32 bits
#define REMARKED                                                                                             \
    "remarks of a capture on packets are not written (interface names, comments, flags, losses, "            \
    "checksums behind frames); hint: a pcapng contains them"

// ---- names ------------------------------------------------------------------------------------------------

bool dqi_file_indexed(const dqi_writer *w) {
    const dq_writer_conf *c = &w->conf;
    return w->format->about.aggregates || c->rotate_bytes || c->rotate_packets || c->rotate_ns || w->numbered;
}

// Replaces the suffix of a path by that of the file beside it. False: the format has none.
static bool go_beside(const dqi_writer *w, char *path, size_t len) {
    const dq_format *f = &w->format->about;
    size_t n = strlen(path) - strlen(f->suffix);
    if (f->beside) snprintf(path + n, len - n, "%s", f->beside);
    return f->beside != NULL;
}

static bool has_bytes(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0;
}

bool dqi_file_taken(const dqi_writer *w) {
    char path[sizeof((dq_writer_file *)0)->path];
    for (uint32_t i = 0; i < w->conf.n_dirs; i++) {
        dqi_writer_file_path(w, i, NULL, 0, path, sizeof path);
        if (has_bytes(path) || (go_beside(w, path, sizeof path) && has_bytes(path))) return true;
    }
    return false;
}

void dqi_writer_file_path(const dqi_writer *w, uint32_t dir, const char *prefix, uint64_t index, char *buf,
                          size_t len) {
    const dq_format *f = &w->format->about;
    const char *d = w->conf.dirs[dir], *slash = d[strlen(d) - 1] == '/' ? "" : "/";
    if (!prefix) prefix = w->conf.prefix;
    if (f->each || dqi_file_indexed(w))
        snprintf(buf, len, "%s%s%s_%0*" PRIu64 "%s", d, slash, prefix, f->each ? 1 : 6, index, f->suffix);
    else
        snprintf(buf, len, "%s%s%s%s", d, slash, prefix, f->suffix);
}

// Returns the index in a file's name, or -1.
static int64_t index_of(const dqi_writer *w, const char *name) {
    const char *prefix = w->conf.prefix;
    size_t n = strlen(prefix);
    char *end;
    if (strncmp(name, prefix, n) != 0 || name[n] != '_' || name[n + 1] < '0' || name[n + 1] > '9') return -1;
    long long index = strtoll(name + n + 1, &end, 10);
    const dq_format *f = &w->format->about;
    return strcmp(end, f->suffix) == 0 || (f->beside && strcmp(end, f->beside) == 0) ? index : -1;
}

int dqi_file_first_index(const dqi_writer *w, uint64_t *index) {
    int64_t most = -1;
    for (uint32_t i = 0; i < w->conf.n_dirs; i++) {
        DIR *d = opendir(w->conf.dirs[i]);
        if (!d) return -errno;
        for (struct dirent *e; (e = readdir(d)) != NULL;)
            if (index_of(w, e->d_name) > most) most = index_of(w, e->d_name);
        closedir(d);
    }
    *index = (uint64_t)(most + 1);
    return 0;
}

// ---- file list --------------------------------------------------------------------------------------------

// Stores the file's note in the list, appended (fresh) or in its place. False: no memory.
static bool list_file(dqi_writer_dir *l, bool fresh) {
    dqi_writer *w = l->w;
    dqi_file_list *list = &w->list;
    pthread_mutex_lock(&w->lock);
    if (fresh && list->n == list->room) {
        uint32_t room = list->room ? 2 * list->room : 64;
        dqi_file_note *more = realloc(list->notes, room * sizeof *more);
        if (more) {
            list->notes = more;
            list->room = room;
        }
    }
    bool ok = !fresh || list->n < list->room;
    if (ok && fresh) l->f.number = list->n++;
    if (ok) list->notes[l->f.number] = l->f.note;
    pthread_mutex_unlock(&w->lock);
    return ok;
}

// ---- quota ------------------------------------------------------------------------------------------------

// Deletes the file unless its name belongs to another one by now; false: it still exists.
static bool unlink_ours(const dqi_file_note *n, const char *path) {
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT;
    if (st.st_dev != n->dev || st.st_ino != n->ino) return true;
    return unlink(path) == 0 || errno == ENOENT;
}

// Deletes the oldest closed file. False: none.
static bool delete_oldest(dqi_writer_dir *l, dqi_file_tally *t) {
    dqi_writer *w = l->w;
    dqi_file_list *list = &w->list;
    char path[sizeof((dq_writer_file *)0)->path];
    bool found = false;
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = list->oldest; i < list->n && !found; i++) {
        dqi_file_note *n = &list->notes[i];
        if (i == list->oldest && n->deleted) list->oldest++;
        if (!n->closed || n->deleted) continue;
        dqi_writer_file_path(w, n->dir, NULL, n->index, path, sizeof path);
        bool there = access(path, F_OK) == 0;
        n->deleted = found = unlink_ours(n, path);
        if (there && access(path, F_OK) != 0 && go_beside(w, path, sizeof path)) unlink(path);
        if (found) atomic_fetch_sub(&w->used, n->bytes);
    }
    pthread_mutex_unlock(&w->lock);
    t->deleted += found;
    return found;
}

bool dqi_quota_take(dqi_writer_dir *l, uint64_t bytes, dqi_file_tally *t) {
    dqi_writer *w = l->w;
    if (w->conf.quota == 0) return true;
    if (atomic_load_explicit(&w->full, memory_order_relaxed)) return false;
    while (atomic_fetch_add(&w->used, bytes) + bytes > w->conf.quota) {
        atomic_fetch_sub(&w->used, bytes);
        if (!w->conf.delete_oldest || !delete_oldest(l, t)) {
            atomic_store(&w->full, true);
            return false;
        }
    }
    return true;
}

void dqi_quota_return(dqi_writer_dir *l, int64_t bytes) {
    if (l->w->conf.quota != 0) atomic_fetch_sub(&l->w->used, (uint64_t)bytes);
}

// Returns the bytes of the file, including those of its end.
static uint64_t bytes_now(const dqi_writer_dir *l) {
    const dqi_format *f = l->w->format;
    return dqi_buffered_file_size(l->f.file) + (f->end_bytes ? f->end_bytes(l->f.file) : 0);
}

void dqi_file_count(dqi_writer_dir *l, uint64_t taken) {
    uint64_t now = l->f.open ? bytes_now(l) : 0;
    dqi_quota_return(l, (int64_t)(l->f.counted + taken - now));
    l->f.counted = now;
}

// ---- opening and closing ----------------------------------------------------------------------------------

static int open_file(dqi_writer_dir *l, const char *path, uint64_t index, const dqi_entry *e,
                     dqi_file_tally *t) {
    const dqi_writer *w = l->w;
    // An indexed name is claimed by creating the file.
    dqi_disk_mode mode = dqi_file_indexed(w) ? DQI_DISK_NEW
                         : w->conf.append    ? DQI_DISK_KEEP
                         : w->conf.overwrite ? DQI_DISK_REPLACE
                                             : DQI_DISK_FILL;
    const dqi_new_file n = {.path = path,
                            .index = index,
                            .mode = mode,
                            .overlap = !dqi_virtual(w->session),
                            .conf = &w->conf,
                            .writer = w->name,
                            .now = dq_now(w->session),
                            .first = e ? e->burst : NULL};
    return w->format->open(l->f.file, &n, t);
}

// Reports the properties of the first file, once per folder.
static void note_first(const dqi_writer_dir *l, const char *path) {
    const dqi_buffered_file *f = l->f.file;
    if (f->disk.buffered)
        dqi_note(l->w->session, "writer %s: %s: buffered: %s", l->w->name, path, f->disk.buffered);
    if (f->was > 0)
        dqi_note(l->w->session, "writer %s: %s: continues after %" PRIu64 " bytes%s", l->w->name, path,
                 f->kept, f->kept < f->was ? "; an incomplete record after them was removed" : "");
}

// Returns the list note of a file that was just created.
static dqi_file_note note_of(const dqi_writer_dir *l) {
    struct stat st = {0};
    fstat(l->f.file->disk.fd, &st);
    return (dqi_file_note){
        .index = l->f.index, .dir = (uint16_t)l->number, .dev = st.st_dev, .ino = st.st_ino};
}

int dqi_file_begin(dqi_writer_dir *l, const dqi_entry *e, dqi_file_tally *t) {
    dqi_writer *w = l->w;
    bool indexed = dqi_file_indexed(w);
    uint64_t index = 0, after;
    char path[sizeof((dq_writer_file *)0)->path];
    int err;
    do {
        if (indexed) index = atomic_fetch_add(&w->next_file, 1);
        dqi_writer_file_path(w, l->number, NULL, index, path, sizeof path);
        err = open_file(l, path, index, e, t);
    } while (indexed && err == -EEXIST);
    l->f.index = index;
    after = index + 1;
    if (err != 0) {
        if (indexed) atomic_compare_exchange_strong(&w->next_file, &after, index);
        return err;
    }
    l->f.file->disk.quit = &w->quit;
    l->f.open = true;
    l->f.packets = 0;
    l->f.opened_ns = dq_now(w->session);
    l->f.note = note_of(l);
    if (w->conf.rotate_bytes) dqi_disk_reserve(&l->f.file->disk, w->conf.rotate_bytes);
    if (!list_file(l, true)) return -ENOMEM; // it is closed later
    if (atomic_exchange(&l->files, index + 1) == 0) note_first(l, path);
    return 0;
}

// Checks that the file is unmodified and has its name; otherwise none of its packets count as written.
static int vouch(dqi_writer_dir *l, dqi_file_tally *t) {
    dqi_file_note *n = &l->f.note;
    char path[sizeof((dq_writer_file *)0)->path];
    dqi_writer_file_path(l->w, n->dir, NULL, n->index, path, sizeof path);
    int err = dqi_disk_check(&l->f.file->disk, path);
    n->closed = true;
    if (err != 0) {
        dqi_buffered_file_disown(l->f.file, t);
        return err;
    }
    n->bytes = l->f.file->whole;
    n->packets = l->f.file->packets;
    n->crc32c = l->f.file->whole_crc;
    if (l->w->conf.rotate_bytes) dqi_disk_cut(&l->f.file->disk, n->bytes);
    return 0;
}

int dqi_file_end(dqi_writer_dir *l, dqi_file_tally *t) {
    const dqi_format *f = l->w->format;
    if (!l->f.open) return 0;
    int err = dqi_buffered_file_flush(l->f.file, t);
    if (err == 0 && f->end) {
        l->f.file->op = NULL;                                    // the operation may be gone
        f->end(l->f.file, l->w->name, dq_now(l->w->session), t); // the flush also reports a full disk
        err = dqi_buffered_file_flush(l->f.file, t);
    }
    int changed = vouch(l, t), last = f->close(l->f.file);
    l->f.open = false;
    // Bytes in the file stay counted.
    dqi_quota_return(l, (int64_t)(l->f.counted - l->f.note.bytes));
    l->f.counted = 0;
    list_file(l, false);
    return err != 0 ? err : changed != 0 ? changed : last;
}

// ---- adding -----------------------------------------------------------------------------------------------

bool dqi_file_is_due(const dqi_writer_dir *l) {
    return l->f.open && l->w->conf.rotate_ns && l->f.packets > 0 &&
           dq_now(l->w->session) - l->f.opened_ns >= l->w->conf.rotate_ns;
}

// Whether the packet has to go to the next file.
static bool is_full(const dqi_writer_dir *l, const dqi_entry *e, uint64_t bytes) {
    const dq_writer_conf *c = &l->w->conf;
    const dqi_format *f = l->w->format;
    if (f->fits && !f->fits(l->f.file, e->burst)) return true;
    if (l->f.packets == 0) return false;
    return (c->rotate_packets && l->f.packets >= c->rotate_packets) ||
           (c->rotate_bytes && bytes_now(l) + bytes > c->rotate_bytes) || dqi_file_is_due(l);
}

// Adds a note to the report the first time.
static void note_once(const dqi_writer_dir *l, bool *noted, const char *text) {
    if (!*noted) dqi_note(l->w->session, "writer %s: %s", l->w->name, text);
    *noted = true;
}

static void note_packet(dqi_writer_dir *l, const dq_burst *b, int64_t ts) {
    dqi_file_note *n = &l->f.note;
    const dq_aggregate *a = b->aggregate;
    int64_t first = a ? a->first_ns : ts, last = a ? a->last_ns : ts;
    if (l->f.packets++ == 0) {
        n->first_ns = n->last_ns = DQ_NO_TIME;
        n->first_batch = a ? a->batch_id : 0;
    }
    if (n->first_ns == DQ_NO_TIME) n->first_ns = first;
    if (last != DQ_NO_TIME) n->last_ns = last;
    n->last_batch = a ? a->batch_id : 0;
}

// Returns the time of a packet in a file.
static int64_t file_time(dqi_writer_dir *l, int64_t ts) {
    const int32_t kind = l->w->conf.kind;
    const int64_t last = kind == DQ_WRITE_PCAP ? PCAP_LAST_NS : INT64_MAX;
    if (ts == DQ_NO_TIME || (kind != DQ_WRITE_PCAP && kind != DQ_WRITE_PCAPNG) || (ts >= 0 && ts <= last))
        return ts;
    note_once(l, &l->outside, OUTSIDE);
    return ts < 0 ? 0 : last;
}

int dqi_file_add(dqi_writer_dir *l, const dqi_entry *e, uint32_t i, dqi_file_tally *t) {
    const dq_burst *b = e->burst;
    const dqi_format *f = l->w->format;
    const dq_writer_conf *c = &l->w->conf;
    if (f->about.aggregates && (!b->aggregate || b->aggregate->slots == 0)) return -DQI_ENOBLOCK;
    uint64_t bytes = f->bytes_of(l->f.file, c, b, i);
    int err = l->f.open && is_full(l, e, bytes) ? dqi_file_end(l, t) : 0;
    if (err != 0) return err;
    if (!l->f.open && f->header_bytes) bytes += f->header_bytes(c);
    if (!dqi_quota_take(l, bytes, t)) return -DQI_EQUOTA;
    if (!l->f.open) err = dqi_file_begin(l, e, t);
    // Packets created here get their arrival time; captured ones without a time stay without.
    int64_t ts = b->ts[i] == DQ_NO_TIME && b->clock != DQ_CLOCK_FILE ? e->pushed_ns : b->ts[i];
    l->f.file->op = e->op;
    if (ts == DQ_NO_TIME) note_once(l, &l->timeless, TIMELESS);
    if (c->kind != DQ_WRITE_PCAPNG && dqi_remark_of(b, i)) note_once(l, &l->remarked, REMARKED);
    if (err == 0 && b->device_only && !l->f.file->staging)
        err = dqi_buffered_file_stage(l->f.file, atomic_load(&l->staging), t);
    if (err == 0) err = f->add(l->f.file, b, i, file_time(l, ts), t);
    if (l->f.file->indirect[0]) dqi_writer_note_indirect(l, l->f.file->indirect);
    if (err == 0) note_packet(l, b, ts);
    if (c->quota) dqi_file_count(l, bytes);
    return err;
}
