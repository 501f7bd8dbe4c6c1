// buffered_file.c: buffering of records and accounting of their outcome.
//
// Direct writes start and end at multiples of the disk's alignment, records anywhere. So a buffer is written
// up to its last such multiple, and the rest is carried to the front of the next buffer. A flush then writes
// this rest separately, buffered, and still carries it: the next write covers it again. A record's mark stays
// with the buffer in which it ends, and a packet counts as written when all of it is in the file. After a
// failed write the file is cut to its last complete packet and everything after it is lost, including newly
// added records; the next record is placed there. Runs on the writer's thread.
#include "writer/buffered_file.h"
#include "core/burst.h"
#include "core/clock.h"
#include "core/region.h"
#include "writer/crc32c.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BUFFERED_BYTES (1u << 20)   // of a buffer whose write is a copy: fits the cache
#define SMALL_BYTES    (256u << 10) // smaller flushes are buffered, which needs no wait for the disk
#define MIN_RECORD     16           // minimum average bytes of a record: bounds the marks

static int buffer_init(dqi_file_buffer *b, uint32_t room) {
    // On huge pages if available: a direct write pins each page.
    b->buf = aligned_alloc(DQI_HUGE_PAGE, room < DQI_HUGE_PAGE ? DQI_HUGE_PAGE : room);
    b->marks = malloc(room / MIN_RECORD * sizeof *b->marks); // unused pages cost no memory
    if (!b->buf || !b->marks) return -ENOMEM;
    if (room >= DQI_HUGE_PAGE) madvise(b->buf, room, MADV_HUGEPAGE);
    return 0;
}

int dqi_buffered_file_open(dqi_buffered_file *f, const char *path, bool overlap, dqi_disk_mode mode) {
    *f = (dqi_buffered_file){.disk = {.fd = -1}};
    int err = dqi_disk_open(&f->disk, path, overlap, mode);
    f->room = f->disk.align > 1 ? DQI_BUFFER_BYTES : BUFFERED_BYTES;
    for (int i = 0; i < 2 && err == 0; i++)
        err = buffer_init(&f->buffers[i], f->room);
    if (err != 0) dqi_buffered_file_close(f);
    return err;
}

int dqi_buffered_file_resume(dqi_buffered_file *f, const char *path, uint64_t size, uint32_t crc) {
    dqi_file_buffer *b = &f->buffers[0];
    f->was = f->disk.size;
    f->kept = size;
    dqi_disk_cut(&f->disk, size);
    b->base = size - size % f->disk.align;
    b->used = f->clean = (uint32_t)(size - b->base);
    f->whole = f->crc_at = size;
    f->crc = f->whole_crc = crc;
    if (f->clean == 0) return 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return -errno;
    ssize_t n = pread(fd, b->buf, f->clean, (off_t)b->base);
    int err = n == (ssize_t)f->clean ? 0 : n < 0 ? -errno : -EIO;
    close(fd);
    return err;
}

// ---- settlement -------------------------------------------------------------------------------------------

static void lose(const dqi_file_mark *m, int err, dqi_file_tally *t) {
    *dqi_tally_of(t, err) += m->last;
    if (m->last) dqi_op_lost(m->op, 1, err);
}

// Settles the buffer's records up to byte `done`; the others are lost if err is set.
static void settle(dqi_buffered_file *f, dqi_file_buffer *b, uint32_t done, int err, dqi_file_tally *t) {
    for (uint32_t i = 0; i < b->n_marks; i++) {
        const dqi_file_mark *m = &b->marks[i];
        if (m->end > done) {
            lose(m, err, t);
            continue;
        }
        uint64_t end = b->base + m->end;
        if (end > f->whole) {
            t->file_bytes += end - f->whole;
            f->bytes += end - f->whole;
            f->whole = end;
        }
        t->packets += m->last;
        f->packets += m->last;
        t->packet_bytes += m->bytes;
        f->packet_bytes += m->bytes;
        t->cut += m->last && m->cut;
        dq_op_ok(m->op, m->last, m->bytes);
    }
    b->n_marks = 0;
}

// Updates the checksum with b's bytes up to this file offset.
static void sum_up(dqi_buffered_file *f, const dqi_file_buffer *b, uint64_t to) {
    if (to <= f->crc_at) return;
    f->crc = dqi_crc32c(f->crc, b->buf + (f->crc_at - b->base), to - f->crc_at);
    f->crc_at = to;
}

// Ends the GPU copies into the buffer being filled, which is then used or discarded. False: bytes are
// missing.
static bool end_copies(dqi_buffered_file *f, bool used) {
    if (!f->landing) return true;
    bool all = dqi_staging_land(f->staging, NULL);
    f->landing = false;
    if (f->landed) f->landed(f, all && used);
    return all;
}

// Recovers from a failed write of b: discards everything after the last complete packet and continues there.
static void restart(dqi_buffered_file *f, const dqi_file_buffer *b, int err, dqi_file_tally *t) {
    dqi_file_buffer *next = &f->buffers[f->at];
    end_copies(f, false);
    for (uint32_t i = 0; i < next->n_marks; i++)
        lose(&next->marks[i], err, t);
    f->failures++;
    f->crc = f->whole_crc;
    f->crc_at = f->whole;
    dqi_disk_cut(&f->disk, f->whole);
    next->base = f->whole - f->whole % f->disk.align;
    if (next->base < b->base &&
        next->base < f->whole) { // a packet of several buffers: its first ones have been reused
        f->disk.align = 1;
        f->disk.buffered = "a packet of several buffers did not fit, and the file ends unaligned";
        next->base = f->whole;
    }
    f->clean = next->used = (uint32_t)(f->whole - next->base);
    next->n_marks = 0;
    if (f->clean > 0) memcpy(next->buf, b->buf + (next->base - b->base), f->clean);
}

// Handles the loss of data in the buffer being filled: cuts the file to its last complete packet.
static void give_up(dqi_buffered_file *f, int err, dqi_file_tally *t) {
    dqi_file_buffer *b = &f->buffers[f->at];
    for (uint32_t i = 0; i < b->n_marks; i++)
        lose(&b->marks[i], err, t);
    f->failures++;
    f->crc = f->whole_crc;
    f->crc_at = b->base = f->whole;
    b->used = b->n_marks = f->clean = 0;
    dqi_disk_cut(&f->disk, f->whole);
    if (f->whole % f->disk.align == 0) return;
    f->disk.align = 1;
    f->disk.buffered = "a packet was lost, and the file ends unaligned";
}

// Completes a direct write from a GPU to the file.
static int end_straight(dqi_buffered_file *f, dqi_file_tally *t) {
    uint32_t done = 0;
    int err = dqi_disk_end(&f->disk, &done);
    bool summed = dqi_staging_add_sum(f->staging, &f->crc);
    f->busy = false;
    f->crc_at += done;
    dq_burst_unref(f->straight);
    f->straight = NULL;
    if (err == 0 && !summed) err = -DQI_EDEVICE;
    if (err == 0) return 0;
    end_copies(f, false);
    give_up(f, err, t);
    return err;
}

// Completes the write of the other buffer.
static int end_write(dqi_buffered_file *f, dqi_file_tally *t) {
    if (!f->busy) return 0;
    if (f->straight) return end_straight(f, t);
    dqi_file_buffer *b = &f->buffers[1 - f->at];
    uint32_t done = 0;
    int err = dqi_disk_end(&f->disk, &done);
    f->busy = false;
    uint64_t before = f->whole;
    settle(f, b, done, err, t);
    if (f->whole > before) {
        sum_up(f, b, f->whole);
        f->whole_crc = f->crc;
    }
    if (err != 0)
        restart(f, b, err, t);
    else
        sum_up(f, b, b->base + done); // start of a packet that the next buffer ends
    return err;
}

// ---- GPU copies -------------------------------------------------------------------------------------------

int dqi_buffered_file_stage(dqi_buffered_file *f, dqi_staging *s, dqi_file_tally *tally) {
    int err = end_write(f, tally);
    for (uint32_t k = 0; k < 2; k++) {
        dqi_file_buffer *b = &f->buffers[k];
        uint8_t *to = dqi_staging_buffer(s, k);
        if (k == f->at) memcpy(to, b->buf, b->used);
        free(b->buf);
        b->buf = to;
    }
    f->staging = s;
    return err;
}

void dqi_buffered_file_copy(dqi_buffered_file *f, dq_burst *b, uint32_t seg, uint32_t i, uint32_t from,
                            uint8_t *to, uint32_t n) {
    f->landing = true;
    dqi_staging_copy(f->staging, b, seg, i, from, to, n, NULL);
}

int dqi_buffered_file_land(dqi_buffered_file *f, dqi_file_tally *tally) {
    if (end_copies(f, true)) return 0;
    end_write(f, tally);
    give_up(f, -DQI_EDEVICE, tally);
    return -DQI_EDEVICE;
}

// ---- submission -------------------------------------------------------------------------------------------

// Moves the contents of b after byte `from` to the front of next: bytes, and the marks of records that end
// after byte n. Returns the number of marks that stay.
static uint32_t carry(const dqi_file_buffer *b, dqi_file_buffer *next, uint32_t from, uint32_t n) {
    uint32_t first = b->n_marks;
    while (first > 0 && b->marks[first - 1].end > n)
        first--;
    for (uint32_t i = first; i < b->n_marks; i++) {
        next->marks[i - first] = b->marks[i];
        next->marks[i - first].end -= from;
    }
    next->n_marks = b->n_marks - first;
    next->base = b->base + from;
    next->used = b->used - from;
    memcpy(next->buf, b->buf + from, next->used);
    return first;
}

// Submits the first n bytes of the buffer being filled to the disk and switches buffers. The previous write
// must have completed.
static void hand_over(dqi_buffered_file *f, uint32_t n) {
    dqi_file_buffer *b = &f->buffers[f->at], *next = &f->buffers[1 - f->at];
    uint32_t from = n - n % f->disk.align;
    b->n_marks = carry(b, next, from, n);
    f->clean = n - from;
    f->at = 1 - f->at;
    f->busy = true;
    f->turns++;
    dqi_disk_begin(&f->disk, b->buf, n, b->base);
}

void dqi_buffered_file_disown(dqi_buffered_file *f, dqi_file_tally *tally) {
    tally->packets -= f->packets;
    tally->lost += f->packets;
    tally->packet_bytes -= f->packet_bytes;
    tally->file_bytes -= f->bytes;
    f->packets = f->packet_bytes = f->bytes = 0;
}

static uint32_t aligned(const dqi_buffered_file *f) {
    uint32_t used = f->buffers[f->at].used;
    return used - used % f->disk.align;
}

// Submits a full buffer after the previous write; without a thread, also waits for it. All of it if its marks
// are used up: records without bytes may lie after the aligned part.
static int push(dqi_buffered_file *f, dqi_file_tally *t) {
    int64_t began = dqi_mono_ns();
    int err = end_write(f, t);
    t->stall_ns += dqi_mono_ns() - began;
    if (err == 0) err = dqi_buffered_file_land(f, t);
    bool all = f->buffers[f->at].n_marks == f->room / MIN_RECORD;
    if (err == 0) hand_over(f, all ? f->buffers[f->at].used : aligned(f));
    return err == 0 && !f->disk.threaded ? end_write(f, t) : err;
}

int dqi_buffered_file_reap(dqi_buffered_file *f, dqi_file_tally *tally) {
    return f->busy && dqi_disk_ready(&f->disk) ? end_write(f, tally) : 0;
}

int dqi_buffered_file_flush(dqi_buffered_file *f, dqi_file_tally *tally) {
    int64_t began = dqi_mono_ns();
    int err = end_write(f, tally);
    if (err == 0) err = dqi_buffered_file_land(f, tally);
    if (err == 0 && aligned(f) >= SMALL_BYTES && f->disk.align > 1) {
        hand_over(f, aligned(f));
        err = end_write(f, tally);
    }
    if (err == 0 && dqi_buffered_file_dirty(f)) {
        hand_over(f, f->buffers[f->at].used);
        err = end_write(f, tally);
    }
    tally->stall_ns += dqi_mono_ns() - began;
    return err;
}

// ---- without the buffers ----------------------------------------------------------------------------------

bool dqi_buffered_file_straight(dqi_buffered_file *f) {
    if (f->gpu.lib) return true;
    const dqi_cufile *lib = f->staging ? dqi_staging_cufile(f->staging) : NULL;
    if (!lib || f->refused || !f->disk.regular) return false;
    f->refused = !dqi_gpu_file_open(&f->gpu, f->disk.fd, dqi_staging_gpu(f->staging), lib, f->indirect,
                                    sizeof f->indirect);
    return !f->refused;
}

// Writes all records added so far, which are whole pages.
static int write_added(dqi_buffered_file *f, dqi_file_tally *t) {
    int64_t began = dqi_mono_ns();
    int err = end_write(f, t);
    if (err == 0) err = dqi_buffered_file_land(f, t);
    if (err == 0 && dqi_buffered_file_dirty(f)) {
        hand_over(f, f->buffers[f->at].used);
        err = end_write(f, t);
    }
    t->stall_ns += dqi_mono_ns() - began;
    return err;
}

int dqi_buffered_file_put(dqi_buffered_file *f, dq_burst *b, uint64_t from, uint32_t n,
                          dqi_file_tally *tally) {
    int err = write_added(f, tally);
    if (err != 0) return err;
    dqi_file_buffer *next = &f->buffers[f->at];
    dqi_burst_hold(b);
    f->straight = b;
    f->busy = true;
    f->turns++;
    dqi_staging_sum(f->staging, from, n);
    dqi_disk_begin_gpu(&f->disk, &f->gpu, from, n, next->base);
    next->base += n;
    return f->disk.threaded ? 0 : end_write(f, tally);
}

// ---- filling ----------------------------------------------------------------------------------------------

uint8_t *dqi_buffered_file_room(dqi_buffered_file *f, uint32_t n, dqi_file_tally *tally, int *err) {
    dqi_file_buffer *b = &f->buffers[f->at];
    *err = 0;
    if (n > f->room - b->used || b->n_marks == f->room / MIN_RECORD) {
        *err = push(f, tally);
        if (*err != 0) return NULL;
        b = &f->buffers[f->at];
    }
    return b->buf + b->used;
}

void dqi_buffered_file_extend(dqi_buffered_file *f, uint32_t n) { f->buffers[f->at].used += n; }

void dqi_buffered_file_commit(dqi_buffered_file *f, uint32_t n, uint64_t packet_bytes, bool last, bool cut) {
    dqi_file_buffer *b = &f->buffers[f->at];
    b->used += n;
    b->marks[b->n_marks++] =
        (dqi_file_mark){.end = b->used, .bytes = packet_bytes, .last = last, .cut = cut, .op = f->op};
}

int dqi_buffered_file_close(dqi_buffered_file *f) {
    uint32_t done;
    if (f->busy) dqi_disk_end(&f->disk, &done);
    if (f->straight) dqi_staging_add_sum(f->staging, &f->crc);
    dq_burst_unref(f->straight);
    dqi_gpu_file_close(&f->gpu);
    end_copies(f, false);
    int err = dqi_disk_close(&f->disk);
    for (int i = 0; i < 2; i++) {
        if (!f->staging) free(f->buffers[i].buf);
        free(f->buffers[i].marks);
    }
    *f = (dqi_buffered_file){.disk = {.fd = -1, .align = 1}};
    return err;
}
