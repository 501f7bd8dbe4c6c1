// disk.c: file output of pcap and contiguous raw writers.
//
// One write is in progress at a time, so that the file is a prefix of the written data whenever the process
// dies; the next block is filled meanwhile. The README has the measurements. Aligned writes are direct, the
// unaligned one at the end of a flush is buffered: the kernel keeps both views of a file coherent (a direct
// write first writes back and drops the cached pages it covers). There is no fsync: data survive the process,
// not a power failure.
#include "writer/disk.h"
#include "core/thread.h"
#include "pipeline/poller.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <unistd.h>

#define PAGE      4096  // default alignment, and the minimum used
#define MAX_ALIGN 65536 // larger ones would waste more than they gain
#define LINGER_MS 1000  // for a pipe's reader, once the writer has to end

// ---- direct or buffered -----------------------------------------------------------------------------------

static bool set_direct(dqi_disk *d, bool on) {
    if (d->direct == on) return true;
    int flags = fcntl(d->fd, F_GETFL);
    if (flags < 0 || fcntl(d->fd, F_SETFL, on ? flags | O_DIRECT : flags & ~O_DIRECT) < 0) return false;
    d->direct = on;
    return true;
}

// tmpfs and ramfs treat direct writes as buffered ones, since Linux 6.6.
static bool in_memory(int fd) {
    struct statfs s;
    return fstatfs(fd, &s) == 0 && (s.f_type == TMPFS_MAGIC || s.f_type == RAMFS_MAGIC);
}

// Returns the alignment of direct writes (statx, Linux 6.1); 0: not supported; PAGE if unknown.
static uint32_t wanted_align(int fd) {
#ifdef STATX_DIOALIGN
    struct statx sx = {0};
    if (statx(fd, "", AT_EMPTY_PATH, STATX_DIOALIGN, &sx) == 0 && (sx.stx_mask & STATX_DIOALIGN)) {
        uint32_t a =
            sx.stx_dio_offset_align > sx.stx_dio_mem_align ? sx.stx_dio_offset_align : sx.stx_dio_mem_align;
        return a == 0 || sx.stx_dio_offset_align == 0 ? 0 : a > PAGE ? a : PAGE;
    }
#endif
    (void)fd;
    return PAGE;
}

static void choose(dqi_disk *d) {
    uint32_t align = wanted_align(d->fd);
    d->align = 1;
    if (in_memory(d->fd))
        d->buffered = "the file system is in memory";
    else if (align == 0)
        d->buffered = "the file system has no direct writes";
    else if (align > MAX_ALIGN)
        d->buffered = "the file system's direct writes are too coarse";
    else if (!set_direct(d, true))
        d->buffered = "the file system refuses direct writes";
    else
        d->align = align;
}

// ---- single write -----------------------------------------------------------------------------------------

// Checks for changes by others: -ENOENT: the file has no name any more, -DQI_ECHANGED: its length differs; 0:
// none visible. A change between this check and the following write is not detected if the write results in
// the expected length.
static int touched(const dqi_disk *d, struct stat *st) {
    if (!d->regular || fstat(d->fd, st) != 0) return 0;
    if (st->st_nlink == 0) return -ENOENT;
    return (uint64_t)st->st_size == d->size ? 0 : -DQI_ECHANGED;
}

int dqi_disk_check(const dqi_disk *d, const char *path) {
    struct stat ours, named;
    int err = touched(d, &ours);
    if (err != 0 || !d->regular) return err;
    if (stat(path, &named) != 0) return -errno;
    return named.st_dev == ours.st_dev && named.st_ino == ours.st_ino ? 0 : -DQI_EREPLACED;
}

// Waits until a pipe's reader has made room. False: the writer has to end and there is still none.
static bool wait_for_reader(const dqi_disk *d) {
    struct pollfd p = {.fd = d->fd, .events = POLLOUT};
    for (;;) {
        bool last = d->quit && atomic_load(d->quit) != 0;
        int n = poll(&p, 1, LINGER_MS);
        if (n > 0 || (n < 0 && errno != EINTR)) return true; // the write returns the error
        if (n == 0 && last) return false;
    }
}

// Does one system call; returns the bytes written, or -errno.
static int64_t write_some(const dqi_disk *d) {
    if (d->gpu) return dqi_gpu_file_write(d->gpu, d->from + d->done, d->n - d->done, d->at + d->done);
    const uint8_t *from = d->buf + d->done;
    uint32_t n = d->n - d->done;
    ssize_t did = d->regular ? pwrite(d->fd, from, n, (off_t)(d->at + d->done)) : write(d->fd, from, n);
    return did > 0 ? did : did == 0 ? -EIO : -errno;
}

// A partial direct write (full disk, limit) continues unaligned, which requires buffered mode.
static bool go_on_buffered(dqi_disk *d, int64_t err) {
    if (err != -EINVAL || d->gpu || !d->direct || !set_direct(d, false)) return false;
    d->refused = d->done == 0;
    return true;
}

static int write_all(dqi_disk *d) {
    struct stat st;
    int err = touched(d, &st);
    if (err != 0) return err;
    set_direct(d, d->align > 1 && d->n % d->align == 0 && d->at % d->align == 0);
    while (d->done < d->n) {
        int64_t n = write_some(d);
        if (n > 0) {
            d->done += (uint32_t)n;
            if (d->size < d->at + d->done) d->size = d->at + d->done;
        } else if (n == -EAGAIN && !wait_for_reader(d))
            return -ETIMEDOUT;
        else if (n != -EAGAIN && n != -EINTR && !go_on_buffered(d, n))
            return (int)n;
    }
    return 0;
}

// ---- thread -----------------------------------------------------------------------------------------------

static void *disk_thread(void *arg) {
    dqi_disk *d = arg;
    dqi_thread_name("disk", "");
    pthread_mutex_lock(&d->lock);
    for (;;) {
        while (!d->busy && !d->ending)
            pthread_cond_wait(&d->changed, &d->lock);
        if (!d->busy) break;
        pthread_mutex_unlock(&d->lock);
        d->err = write_all(d);
        pthread_mutex_lock(&d->lock);
        d->busy = false;
        pthread_cond_broadcast(&d->changed);
    }
    pthread_mutex_unlock(&d->lock);
    return NULL;
}

static void begin(dqi_disk *d, uint32_t n, uint64_t at) {
    d->n = n;
    d->at = at;
    d->done = 0;
    if (!d->threaded) {
        d->err = write_all(d);
        return;
    }
    pthread_mutex_lock(&d->lock);
    d->busy = true;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
}

void dqi_disk_begin(dqi_disk *d, const uint8_t *buf, uint32_t n, uint64_t at) {
    d->buf = buf;
    d->gpu = NULL;
    begin(d, n, at);
}

void dqi_disk_begin_gpu(dqi_disk *d, const dqi_gpu_file *gpu, uint64_t from, uint32_t n, uint64_t at) {
    d->gpu = gpu;
    d->from = from;
    begin(d, n, at);
}

bool dqi_disk_ready(dqi_disk *d) {
    pthread_mutex_lock(&d->lock);
    bool ready = !d->busy;
    pthread_mutex_unlock(&d->lock);
    return ready;
}

int dqi_disk_end(dqi_disk *d, uint32_t *done) {
    pthread_mutex_lock(&d->lock);
    while (d->busy)
        pthread_cond_wait(&d->changed, &d->lock);
    pthread_mutex_unlock(&d->lock);
    if (d->refused && d->err == 0) { // the write failed only because it was direct
        d->align = 1;
        d->buffered = "the file system refuses direct writes";
    }
    d->refused = false;
    *done = d->done;
    return d->err;
}

// ---- lifecycle --------------------------------------------------------------------------------------------

static int give_up(dqi_disk *d, int err) {
    close(d->fd);
    d->fd = -1;
    return -err;
}

int dqi_disk_open(dqi_disk *d, const char *path, bool threaded, dqi_disk_mode mode) {
    int flags = O_WRONLY | O_CREAT | O_NONBLOCK | O_CLOEXEC | (mode == DQI_DISK_NEW ? O_EXCL : 0);
    *d = (dqi_disk){.fd = open(path, flags, 0644), .align = 1};
    if (d->fd < 0) return -errno;
    struct stat st;
    // Locked before it is checked and truncated. File systems without locks are accepted.
    if (fstat(d->fd, &st) != 0) return give_up(d, errno);
    d->regular = S_ISREG(st.st_mode);
    if (d->regular && flock(d->fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
        return give_up(d, EWOULDBLOCK);
    if (fstat(d->fd, &st) != 0) return give_up(d, errno);
    d->size = mode == DQI_DISK_KEEP ? (uint64_t)st.st_size : 0;
    if (d->regular && mode == DQI_DISK_FILL && st.st_size > 0) return give_up(d, EEXIST);
    if (d->regular && mode == DQI_DISK_REPLACE && ftruncate(d->fd, 0) != 0) return give_up(d, errno);
    if (!d->regular)
        d->buffered = "it is not a regular file";
    else if (threaded)
        choose(d);
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    if (threaded && dqi_thread_start(&d->thread, NULL, disk_thread, d) != DQ_OK) {
        dqi_disk_close(d);
        return -EAGAIN;
    }
    d->threaded = threaded;
    return 0;
}

void dqi_disk_reserve(dqi_disk *d, uint64_t size) {
    struct statvfs s;
    if (!d->regular || fstatvfs(d->fd, &s) != 0 || (uint64_t)s.f_bavail * s.f_frsize / 2 < size) return;
    if (fallocate(d->fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)size) != 0) return; // best effort
}

void dqi_disk_cut(dqi_disk *d, uint64_t size) {
    struct stat st;
    // A file changed by others is left alone: ftruncate would fill it with zeros.
    if (!d->regular || d->err == -DQI_ECHANGED || fstat(d->fd, &st) != 0 || (uint64_t)st.st_size < size)
        return;
    if (ftruncate(d->fd, (off_t)size) == 0) d->size = size; // otherwise a reader sees a partial packet
}

int dqi_disk_close(dqi_disk *d) {
    if (d->fd < 0) return 0;
    if (d->threaded) {
        pthread_mutex_lock(&d->lock);
        d->ending = true;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
        pthread_join(d->thread, NULL);
    }
    pthread_mutex_destroy(&d->lock);
    pthread_cond_destroy(&d->changed);
    struct stat st;
    int err = touched(d, &st) == -ENOENT ? -ENOENT : 0;
    // Network file systems may report a full disk only on close.
    if (close(d->fd) != 0 && errno != EINTR) err = -errno;
    *d = (dqi_disk){.fd = -1, .align = 1};
    return err;
}

// ---- error texts ------------------------------------------------------------------------------------------

const char *dqi_disk_words(int err) {
    switch (-err) {
    case EWOULDBLOCK:
        return "another writer has this file open; hint: give each writer a prefix of its own";
    case ENOSPC:
        return "no space left on device; hint: free some, then writing continues";
    case EDQUOT:
        return "disk quota exceeded; hint: free some, then writing continues";
    case EFBIG:
        return "the file is as large as the file system or ulimit -f allows";
    case ENXIO:
        return "it is a pipe without a reader; hint: start its reader first";
    case EPIPE:
        return "the pipe's reader has ended";
    case ETIMEDOUT:
        return "the pipe's reader stands still";
    case ENOTDIR:
        return "it is not a folder";
    case EISDIR:
        return "it is a folder; hint: name a file, or another prefix";
    case EEXIST:
        return "a file of this name is there, and stays as it is; hint: another folder or prefix, or "
               "overwrite = "
               "true";
    case EACCES:
        return "permission denied";
    case EROFS:
        return "the file system is read-only";
    case EIO:
        return "the device reports an input/output error";
    case ENOENT:
        return "it was removed while writing";
    case DQI_ECHANGED:
        return "something else changed its length while it was written: none of its packets count as written";
    case DQI_EREPLACED:
        return "another file took its name while it was written: none of its packets count as written";
    case DQI_EQUOTA:
        return "the writer's quota is used up: nothing more is written; hint: a larger quota, or when_full = "
               "\"delete_oldest\"";
    case DQI_ENOBLOCK:
        return "received packets outside of batches; hint: put a reorder stage before the writer";
    case DQI_ESAMPLES:
        return "received packets that do not consist of whole samples; hint: set packet_data_offset to the "
               "bytes of the headers before the samples, or correct the type of the samples";
    case DQI_ENOCAPTURE:
        return "it can't be appended to: it is not a capture of this format, or damaged before its end";
    case DQI_EORDER:
        return "it can't be appended to: it was written in the other order of bytes; hint: another prefix";
    case DQI_ERESOLUTION:
        return "it can't be appended to: its times have another resolution; hint: precision = \"us\" or "
               "\"ns\"";
    case DQI_ESNAPLEN:
        return "it can't be appended to: it has another snaplen; hint: give that one";
    case DQI_ELINK:
        return "it can't be appended to: its link type is not Ethernet";
    case DQI_EDEVICE:
        return "the GPU that had its packets is lost";
    case ECANCELED:
        return "the session ended before it was written";
    default:
        return strerror(-err);
    }
}
