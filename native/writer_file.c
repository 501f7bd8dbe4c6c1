// writer_file.c: one file of a lane after the other. A packet goes to the next file before it would make this
// one too long, so none is split; the next one is begun when a packet comes for it, so none is empty.
#include "writer_file.h"
#include "burst.h"
#include "writer.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

// ---- names ------------------------------------------------------------------------------------------------

static const char *suffix(const dq_writer_conf *c) {
    return c->kind == DQ_WRITE_PCAP      ? ".pcap"
           : c->kind == DQ_WRITE_PCAPNG  ? ".pcapng"
           : c->kind == DQ_WRITE_BATCHES ? ".dqb"
                                         : ".raw";
}

bool dqi_file_indexed(const dq_writer_conf *c) {
    return c->kind == DQ_WRITE_BATCHES || c->rotate_bytes || c->rotate_packets || c->rotate_ns;
}

void dqi_writer_file_path(const dq_writer_conf *c, uint32_t dir, uint64_t index, char *buf, size_t len) {
    const char *d = c->dirs[dir], *slash = d[strlen(d) - 1] == '/' ? "" : "/";
    if (dqi_file_indexed(c))
        snprintf(buf, len, "%s%s%s_%06" PRIu64 "%s", d, slash, c->prefix, index, suffix(c));
    else
        snprintf(buf, len, "%s%s%s%s", d, slash, c->prefix, suffix(c));
}

// The index in a file's name, or -1.
static int64_t index_of(const dq_writer_conf *c, const char *name) {
    size_t n = strlen(c->prefix);
    char *end;
    if (strncmp(name, c->prefix, n) != 0 || name[n] != '_' || name[n + 1] < '0' || name[n + 1] > '9')
        return -1;
    long long index = strtoll(name + n + 1, &end, 10);
    return strcmp(end, suffix(c)) == 0 ? index : -1;
}

int dqi_file_first_index(const dq_writer_conf *c, uint64_t *index) {
    int64_t most = -1;
    for (uint32_t i = 0; i < c->n_dirs; i++) {
        DIR *d = opendir(c->dirs[i]);
        if (!d) return -errno;
        for (struct dirent *e; (e = readdir(d)) != NULL;)
            if (index_of(c, e->d_name) > most) most = index_of(c, e->d_name);
        closedir(d);
    }
    *index = (uint64_t)(most + 1);
    return 0;
}

// ---- the list ---------------------------------------------------------------------------------------------

// Puts the file's note into the list: at its end, or in the place that it has. False: no memory.
static bool list_file(dqi_lane *l, bool fresh) {
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

// ---- the quota --------------------------------------------------------------------------------------------

// Deletes the file, unless its name is another's by now; false: it is still there.
static bool unlink_ours(const dqi_file_note *n, const char *path) {
    struct stat st;
    if (lstat(path, &st) != 0) return errno == ENOENT;
    if (st.st_dev != n->dev || st.st_ino != n->ino) return true;
    return unlink(path) == 0 || errno == ENOENT;
}

// Deletes the oldest file that is closed. False: there is none.
static bool delete_oldest(dqi_lane *l, dqi_file_tally *t) {
    dqi_writer *w = l->w;
    dqi_file_list *list = &w->list;
    char path[sizeof((dq_writer_file *)0)->path];
    bool found = false;
    pthread_mutex_lock(&w->lock);
    for (uint32_t i = list->oldest; i < list->n && !found; i++) {
        dqi_file_note *n = &list->notes[i];
        if (i == list->oldest && n->deleted) list->oldest++;
        if (!n->closed || n->deleted) continue;
        dqi_writer_file_path(&w->conf, n->dir, n->index, path, sizeof path);
        n->deleted = found = unlink_ours(n, path);
        if (found) atomic_fetch_sub(&w->used, n->bytes);
    }
    pthread_mutex_unlock(&w->lock);
    t->deleted += found;
    return found;
}

bool dqi_quota_take(dqi_lane *l, uint64_t bytes, dqi_file_tally *t) {
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

void dqi_quota_return(dqi_lane *l, int64_t bytes) {
    if (l->w->conf.quota != 0) atomic_fetch_sub(&l->w->used, (uint64_t)bytes);
}

// Bytes that the file has, and those of its end.
static uint64_t bytes_now(const dqi_lane *l) {
    return dqi_block_size(l->blocks) + (l->blocks == &l->f.pcap.file ? dqi_pcap_end_bytes(&l->f.pcap) : 0);
}

void dqi_file_count(dqi_lane *l, uint64_t taken) {
    uint64_t now = l->f.open ? bytes_now(l) : 0;
    dqi_quota_return(l, (int64_t)(l->f.counted + taken - now));
    l->f.counted = now;
}

// ---- beginning and ending ---------------------------------------------------------------------------------

static int open_batches(dqi_lane *l, const char *path, uint64_t index, const dqi_entry *e, bool overlap,
                        dqi_file_tally *t) {
    const dq_writer_conf *c = &l->w->conf;
    const dqi_batch_shape shape = dqi_batch_shape_of(e->burst->aggregate, c->by_slot);
    const dqi_batch_file_header h = {.writer = l->w->name,
                                     .text = c->text,
                                     .index = index,
                                     .created_ns = dq_now(l->w->session),
                                     .clock = e->burst->clock};
    return dqi_batch_open(&l->f.batch, path, &shape, &h, overlap, t);
}

static int open_file(dqi_lane *l, const char *path, uint64_t index, const dqi_entry *e, dqi_file_tally *t) {
    const dq_writer_conf *c = &l->w->conf;
    bool overlap = !dqi_virtual(l->w->session);
    // A name with an index is taken by whoever makes the file.
    dqi_disk_mode mode = dqi_file_indexed(c) ? DQI_DISK_NEW : c->append ? DQI_DISK_KEEP : DQI_DISK_EMPTY;
    if (c->kind == DQ_WRITE_BATCHES) return open_batches(l, path, index, e, overlap, t);
    if (c->kind == DQ_WRITE_RAW_FILE) {
        l->f.flat.skip = c->packet_data_offset;
        int err = dqi_block_open(&l->f.flat.file, path, overlap, mode);
        t->files += err == 0;
        return err;
    }
    const dqi_pcap_conf p = {.ng = c->kind == DQ_WRITE_PCAPNG,
                             .micro = c->micro,
                             .mode = mode,
                             .snaplen = c->snaplen,
                             .comment = c->text};
    return dqi_pcap_open(&l->f.pcap, path, &p, overlap, t);
}

// Says what was found, once for each folder.
static void tell(const dqi_lane *l, const char *path) {
    const dqi_pcap_file *p = &l->f.pcap;
    if (l->blocks->disk.buffered)
        dqi_note(l->w->session, "writer %s: %s: buffered: %s", l->w->name, path, l->blocks->disk.buffered);
    if (l->blocks == &p->file && p->was > 0)
        dqi_note(l->w->session, "writer %s: %s: goes on behind %" PRIu64 " bytes%s", l->w->name, path,
                 p->was - p->cut, p->cut ? "; a record that was cut off behind them is gone" : "");
}

// What the list has of a file that was just begun.
static dqi_file_note note_of(const dqi_lane *l) {
    struct stat st = {0};
    fstat(l->blocks->disk.fd, &st);
    return (dqi_file_note){
        .index = l->f.index, .dir = (uint16_t)l->number, .dev = st.st_dev, .ino = st.st_ino};
}

int dqi_file_begin(dqi_lane *l, const dqi_entry *e, dqi_file_tally *t) {
    dqi_writer *w = l->w;
    bool indexed = dqi_file_indexed(&w->conf);
    uint64_t index = 0, after;
    char path[sizeof((dq_writer_file *)0)->path];
    int err;
    do {
        if (indexed) index = atomic_fetch_add(&w->next_file, 1);
        dqi_writer_file_path(&w->conf, l->number, index, path, sizeof path);
        err = open_file(l, path, index, e, t);
    } while (indexed && err == -EEXIST);
    l->f.index = index;
    after = index + 1;
    if (err != 0) {
        if (indexed) atomic_compare_exchange_strong(&w->next_file, &after, index);
        return err;
    }
    l->blocks->disk.quit = &w->quit;
    l->f.open = true;
    l->f.packets = 0;
    l->f.opened_ns = dq_now(w->session);
    l->f.note = note_of(l);
    if (w->conf.rotate_bytes) dqi_disk_reserve(&l->blocks->disk, w->conf.rotate_bytes);
    if (!list_file(l, true)) return -ENOMEM; // it is closed in due course
    if (atomic_exchange(&l->files, index + 1) == 0) tell(l, path);
    return 0;
}

static int close_file(dqi_lane *l) {
    return l->blocks == &l->f.pcap.file    ? dqi_pcap_close(&l->f.pcap)
           : l->blocks == &l->f.batch.file ? dqi_batch_close(&l->f.batch)
                                           : dqi_block_close(l->blocks);
}

static void put_end(dqi_lane *l, dqi_file_tally *t) {
    char comment[256];
    if (l->w->conf.kind != DQ_WRITE_PCAPNG) return;
    snprintf(comment, sizeof comment, "writer %s: %" PRIu64 " packets in this file", l->w->name,
             l->blocks->packets);
    dqi_pcap_end(&l->f.pcap, dq_now(l->w->session), comment, t); // a full disk shows in the flush, too
}

// Whether the file is what was written and has its name still; else none of its packets count as written.
static int vouch(dqi_lane *l, dqi_file_tally *t) {
    dqi_file_note *n = &l->f.note;
    char path[sizeof((dq_writer_file *)0)->path];
    dqi_writer_file_path(&l->w->conf, n->dir, n->index, path, sizeof path);
    int err = dqi_disk_check(&l->blocks->disk, path);
    n->closed = true;
    if (err != 0) {
        dqi_block_disown(l->blocks, t);
        return err;
    }
    n->bytes = l->blocks->whole;
    n->packets = l->blocks->packets;
    n->crc32c = l->blocks->whole_crc;
    if (l->w->conf.rotate_bytes) dqi_disk_cut(&l->blocks->disk, n->bytes);
    return 0;
}

int dqi_file_end(dqi_lane *l, dqi_file_tally *t) {
    if (!l->f.open) return 0;
    int err = dqi_block_flush(l->blocks, t);
    if (err == 0) {
        put_end(l, t);
        err = dqi_block_flush(l->blocks, t);
    }
    int changed = vouch(l, t), last = close_file(l);
    l->f.open = false;
    // What is in the file stays counted.
    dqi_quota_return(l, (int64_t)(l->f.counted - l->f.note.bytes));
    l->f.counted = 0;
    list_file(l, false);
    return err != 0 ? err : changed != 0 ? changed : last;
}

// ---- adding -----------------------------------------------------------------------------------------------

bool dqi_file_is_due(const dqi_lane *l) {
    return l->f.open && l->w->conf.rotate_ns && l->f.packets > 0 &&
           dq_now(l->w->session) - l->f.opened_ns >= l->w->conf.rotate_ns;
}

// Bytes of a file's header, at most.
static uint64_t header_bytes(const dq_writer_conf *c) {
    return c->kind == DQ_WRITE_PCAP      ? 24
           : c->kind == DQ_WRITE_PCAPNG  ? 512 + strlen(c->text)
           : c->kind == DQ_WRITE_BATCHES ? DQI_BATCH_PAGE
                                         : 0;
}

// Bytes that packet i of e takes at most.
static uint64_t bytes_of(const dqi_lane *l, const dqi_entry *e, uint32_t i) {
    const dq_burst *b = e->burst;
    if (l->blocks == &l->f.batch.file)
        return dqi_batch_shape_of(b->aggregate, l->w->conf.by_slot).batch_bytes;
    if (l->blocks == &l->f.pcap.file) return dqi_pcap_bytes_of(&l->f.pcap, b, i);
    uint32_t len = dqi_packet_len(b, i), skip = l->f.flat.skip;
    return len > skip ? len - skip : 0;
}

// True when the packet has to go to the next file.
static bool is_full(const dqi_lane *l, const dqi_entry *e, uint64_t bytes) {
    const dq_writer_conf *c = &l->w->conf;
    if (l->blocks == &l->f.batch.file) {
        dqi_batch_shape s = dqi_batch_shape_of(e->burst->aggregate, c->by_slot);
        if (!dqi_batch_same_shape(&s, &l->f.batch.shape)) return true;
    }
    if (l->f.packets == 0) return false;
    return (c->rotate_packets && l->f.packets >= c->rotate_packets) ||
           (c->rotate_bytes && bytes_now(l) + bytes > c->rotate_bytes) || dqi_file_is_due(l);
}

static int put(dqi_lane *l, const dqi_entry *e, uint32_t i, int64_t ts, dqi_file_tally *t) {
    l->blocks->op = e->op;
    return l->blocks == &l->f.pcap.file    ? dqi_pcap_add(&l->f.pcap, e->burst, i, ts, t)
           : l->blocks == &l->f.batch.file ? dqi_batch_add(&l->f.batch, e->burst, t)
                                           : dqi_flat_add(&l->f.flat, e->burst, i, t);
}

static void note_packet(dqi_lane *l, const dq_burst *b, int64_t ts) {
    dqi_file_note *n = &l->f.note;
    const dq_aggregate *a = b->aggregate;
    if (l->f.packets++ == 0) {
        n->first_ns = a ? a->first_ns : ts;
        n->first_batch = a ? a->batch_id : 0;
    }
    n->last_ns = a ? a->last_ns : ts;
    n->last_batch = a ? a->batch_id : 0;
}

int dqi_file_add(dqi_lane *l, const dqi_entry *e, uint32_t i, dqi_file_tally *t) {
    const dq_burst *b = e->burst;
    if (l->w->conf.kind == DQ_WRITE_BATCHES && (!b->aggregate || b->aggregate->slots == 0))
        return -DQI_ENOBATCH;
    uint64_t bytes = bytes_of(l, e, i);
    int err = l->f.open && is_full(l, e, bytes) ? dqi_file_end(l, t) : 0;
    if (err != 0) return err;
    if (!l->f.open) bytes += header_bytes(&l->w->conf);
    if (!dqi_quota_take(l, bytes, t)) return -DQI_EQUOTA;
    if (!l->f.open) err = dqi_file_begin(l, e, t);
    int64_t ts = b->ts[i] ? b->ts[i] : e->pushed_ns;
    if (err == 0) err = put(l, e, i, ts, t);
    if (err == 0) note_packet(l, b, ts);
    if (l->w->conf.quota) dqi_file_count(l, bytes);
    return err;
}
