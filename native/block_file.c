// block_file.c: the file under a pcap writer.
//
// Records gather in one aligned block. Each write(2) begins and ends at a record boundary, so a process that
// is killed leaves a file that is cut at most inside its last write; after a failed write the file is cut
// back to its last whole record. A reader can therefore always use what is there. Runs on the writer's
// thread.
#include "block_file.h"
#include "dqi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define ALIGN       4096
#define FIRST_MARKS 4096
#define LINGER_MS   1000 // for a pipe's reader, once the writer is to end

static int give_up(dqi_block_file *f, int err) {
    dqi_block_close(f);
    return -err;
}

int dqi_block_open(dqi_block_file *f, const char *path) {
    *f = (dqi_block_file){.fd = open(path, O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC, 0644)};
    if (f->fd < 0) return -errno;
    struct stat st;
    if (fstat(f->fd, &st) != 0) return give_up(f, errno);
    f->regular = S_ISREG(st.st_mode);
    // Emptied only once it is ours. A file system without locks is no reason not to write.
    if (f->regular && flock(f->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return give_up(f, EWOULDBLOCK);
    if (f->regular && ftruncate(f->fd, 0) != 0) return give_up(f, errno);
    f->buf = aligned_alloc(ALIGN, DQI_BLOCK_BYTES);
    f->cap_marks = FIRST_MARKS;
    f->marks = malloc(f->cap_marks * sizeof *f->marks);
    if (!f->buf || !f->marks) return give_up(f, ENOMEM);
    return 0;
}

uint8_t *dqi_block_room(dqi_block_file *f, uint32_t n) {
    if (n > DQI_BLOCK_BYTES - f->used) return NULL;
    if (f->n_marks == f->cap_marks) {
        // Grows to what a block of the shortest records needs; a failure only makes blocks smaller.
        dqi_block_mark *more = realloc(f->marks, 2 * f->cap_marks * sizeof *more);
        if (!more) return NULL;
        f->marks = more;
        f->cap_marks *= 2;
    }
    return f->buf + f->used;
}

void dqi_block_commit(dqi_block_file *f, uint32_t n, uint32_t packet_bytes, bool last, bool cut) {
    f->used += n;
    f->marks[f->n_marks++] =
        (dqi_block_mark){.end = f->used, .bytes = packet_bytes, .last = last, .cut = cut};
}

// True when no name leads to the file any more.
static bool removed(const dqi_block_file *f) {
    struct stat st;
    return f->regular && fstat(f->fd, &st) == 0 && st.st_nlink == 0;
}

// Waits until a pipe's reader has made room. False: the writer is to end, and there still is none.
static bool wait_for_reader(const dqi_block_file *f) {
    struct pollfd p = {.fd = f->fd, .events = POLLOUT};
    for (;;) {
        bool last = f->quit && atomic_load(f->quit) != 0;
        int n = poll(&p, 1, LINGER_MS);
        if (n > 0 || (n < 0 && errno != EINTR)) return true; // the write tells what is wrong
        if (n == 0 && last) return false;
    }
}

// Writes the whole block; *done: bytes that are in the file. 0, or -errno.
static int write_block(dqi_block_file *f, uint32_t *done) {
    *done = 0;
    while (*done < f->used) {
        ssize_t n = write(f->fd, f->buf + *done, f->used - *done);
        int err = n == 0 ? EIO : errno;
        if (n > 0)
            *done += (uint32_t)n;
        else if (err == EAGAIN && !wait_for_reader(f))
            return -ETIMEDOUT;
        else if (err != EAGAIN && err != EINTR)
            return -err;
    }
    return 0;
}

// Ends the file after `keep` bytes of the block.
static void cut_back(dqi_block_file *f, uint32_t keep) {
    off_t end = (off_t)(f->size + keep);
    // If even this fails, a reader sees one torn record at the end; the write's own error is what gets
    // reported.
    if (f->regular && ftruncate(f->fd, end) == 0) lseek(f->fd, end, SEEK_SET);
}

int dqi_block_flush(dqi_block_file *f, dqi_file_tally *tally) {
    if (f->used == 0) return 0;
    uint32_t done = 0, keep = 0;
    int64_t began = dqi_mono_ns();
    int err = removed(f) ? -ENOENT : write_block(f, &done);
    tally->write_ns += dqi_mono_ns() - began;
    for (uint32_t i = 0; i < f->n_marks; i++) {
        const dqi_block_mark *m = &f->marks[i];
        if (m->end <= done) {
            keep = m->end;
            tally->packets += m->last;
            tally->packet_bytes += m->bytes;
            tally->cut += m->last && m->cut;
        } else {
            tally->lost += m->last;
        }
    }
    if (err != 0 && keep < done) cut_back(f, keep);
    tally->file_bytes += keep;
    f->size += keep;
    f->used = f->n_marks = 0;
    return err;
}

int dqi_block_close(dqi_block_file *f) {
    int err = 0;
    if (f->fd >= 0) {
        if (removed(f)) err = -ENOENT;
        // A network file system may report a full disk only here.
        if (close(f->fd) != 0 && errno != EINTR) err = -errno;
    }
    free(f->buf);
    free(f->marks);
    *f = (dqi_block_file){.fd = -1};
    return err;
}
