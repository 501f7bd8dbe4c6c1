// readahead.c: `filled` and `taken` count chunks; each has a single writer.
#include "engine/replay/readahead.h"
#include "core/err.h"
#include "core/thread.h"
#include "pipeline/poller.h"
#include "pipeline/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_MS 50 // wait for an idle pipe when its consumer blocks

static uint32_t get(_Atomic uint32_t *v) { return atomic_load_explicit(v, memory_order_acquire); }

// Reads until the chunk is full or the file ends.
static void read_chunk(dqi_readahead *r, dqi_chunk *k) {
    k->len = 0;
    k->err = 0;
    k->last = false;
    while (k->len < DQI_CHUNK_BYTES) {
        ssize_t n = pread(r->fd, k->bytes + k->len, DQI_CHUNK_BYTES - k->len, (off_t)r->at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) k->err = errno;
        k->last = n <= 0;
        if (n <= 0) return;
        k->len += (size_t)n;
        r->at += (uint64_t)n;
    }
}

// Waits until the pipe is readable or closed. Returns false if the thread shall exit or, without a thread, on
// a timeout.
static bool wait_readable(dqi_readahead *r) {
    struct pollfd fds[2] = {[1] = {.fd = r->fd, .events = POLLIN}};
    if (!r->threaded) return poll(fds + 1, 1, PATIENCE_MS) > 0;
    while (fds[1].revents == 0) {
        if (get(&r->quit) != 0) return false;
        dqi_wake_announce(&r->wake);
        if (get(&r->quit) != 0)
            dqi_wake_stay(&r->wake);
        else
            dqi_wake_sleep(&r->wake, fds, 2, INT64_MAX);
    }
    return true;
}

// Reads the available data; false: none.
static bool read_stream(dqi_readahead *r, dqi_chunk *k) {
    struct pollfd fd = {.fd = r->fd, .events = POLLIN};
    *k = (dqi_chunk){.bytes = k->bytes};
    if (!wait_readable(r)) return false;
    do {
        ssize_t n = read(r->fd, k->bytes + k->len, DQI_CHUNK_BYTES - k->len);
        if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
        if (n < 0) k->err = errno;
        k->last = n <= 0;
        if (n <= 0) return true;
        k->len += (size_t)n;
    } while (k->len < DQI_CHUNK_BYTES && poll(&fd, 1, 0) > 0);
    return true;
}

// Fills one chunk; returns false if none is empty or everything was read.
static bool fill(dqi_readahead *r) {
    uint32_t n = atomic_load_explicit(&r->filled, memory_order_relaxed);
    if (r->done || n - get(&r->taken) == DQI_CHUNKS) return false;
    dqi_chunk *k = &r->chunks[n % DQI_CHUNKS];
    if (!r->stream)
        read_chunk(r, k);
    else if (!read_stream(r, k))
        return false;
    if (k->last) {
        r->at = 0;
        r->done = k->err != 0 || r->loops == 1;
        r->loops -= r->loops > 1;
    }
    atomic_store_explicit(&r->filled, n + 1, memory_order_release);
    return true;
}

static void *read_on(void *arg) {
    dqi_readahead *r = arg;
    while (get(&r->quit) == 0) {
        if (fill(r)) {
            for (uint32_t k = 0; k < r->iface->n_rx; k++)
                dqi_queue_kick(r->iface->rx[k]);
            continue;
        }
        if (r->done) break;
        struct pollfd fd;
        dqi_wake_announce(&r->wake);
        if (get(&r->filled) - get(&r->taken) < DQI_CHUNKS || get(&r->quit) != 0)
            dqi_wake_stay(&r->wake);
        else
            dqi_wake_sleep(&r->wake, &fd, 1, INT64_MAX);
    }
    return NULL;
}

// ---- open and close ---------------------------------------------------------------------------------------

// path NULL: standard input.
static int open_file(dqi_readahead *r, const char *path, dq_diag *diag) {
    struct stat st;
    // The open of a pipe must not block.
    r->fd = path ? open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK) : fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
    if (!path) path = "standard input";
    if (r->fd < 0 || fstat(r->fd, &st) != 0)
        return dqi_fail(diag, DQ_ESYS - errno, "interface %s: %s: %s", r->iface->conf.name, path,
                        strerror(errno));
    r->stream = S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
    if (r->stream && r->loops != 1)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "interface %s: %s is a pipe, which is read once; hint: loops needs a file",
                        r->iface->conf.name, path);
    if (r->stream) return DQ_OK;
    if (!S_ISREG(st.st_mode))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: %s is neither a file nor a pipe",
                        r->iface->conf.name, path);
    if (st.st_size == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "interface %s: %s is empty", r->iface->conf.name, path);
    (void)posix_fadvise(r->fd, 0, 0, POSIX_FADV_SEQUENTIAL);
    return DQ_OK;
}

int dqi_readahead_open(dqi_readahead *r, const char *path, uint64_t loops, dq_iface *i, dq_diag *diag) {
    *r = (dqi_readahead){.fd = -1, .loops = loops, .iface = i, .wake = {.fd = -1}};
    int err = open_file(r, strcmp(path, "-") == 0 ? NULL : path, diag);
    if (err == DQ_OK) err = dqi_wake_init(&r->wake);
    for (int k = 0; err == DQ_OK && k < DQI_CHUNKS; k++) {
        uint8_t *mem = malloc(DQI_CHUNK_CARRY + DQI_CHUNK_BYTES);
        if (!mem) return dqi_fail(diag, DQ_ESYS - ENOMEM, "interface %s: no memory", i->conf.name);
        r->chunks[k].bytes = mem + DQI_CHUNK_CARRY;
    }
    if (err != DQ_OK) return err;
    if (!r->stream) fill(r);
    int e = r->chunks[0].err;
    return e == 0 ? DQ_OK
                  : dqi_fail(diag, DQ_ESYS - e, "interface %s: %s: %s", i->conf.name, path, strerror(e));
}

int dqi_readahead_start(dqi_readahead *r) {
    int err = dqi_thread_start(&r->thread, NULL, read_on, r);
    r->threaded = err == DQ_OK;
    return err;
}

void dqi_readahead_close(dqi_readahead *r) {
    if (r->threaded) {
        atomic_store(&r->quit, 1);
        dqi_wake_up(&r->wake);
        pthread_join(r->thread, NULL);
    }
    for (int k = 0; k < DQI_CHUNKS; k++)
        if (r->chunks[k].bytes) free(r->chunks[k].bytes - DQI_CHUNK_CARRY);
    dqi_wake_close(&r->wake);
    if (r->fd >= 0) close(r->fd);
    *r = (dqi_readahead){.fd = -1, .wake = {.fd = -1}};
}

// ---- consumer ---------------------------------------------------------------------------------------------

dqi_chunk *dqi_readahead_at(dqi_readahead *r, uint32_t k) {
    uint32_t n = atomic_load_explicit(&r->taken, memory_order_relaxed) + k;
    while (!r->threaded && (int32_t)(get(&r->filled) - n) <= 0 && fill(r)) {
    }
    return (int32_t)(get(&r->filled) - n) > 0 ? &r->chunks[n % DQI_CHUNKS] : NULL;
}

uint64_t dqi_readahead_size(const dqi_readahead *r) {
    struct stat st;
    return r->stream || fstat(r->fd, &st) != 0 ? 0 : (uint64_t)st.st_size;
}

void dqi_readahead_next(dqi_readahead *r) {
    atomic_fetch_add_explicit(&r->taken, 1, memory_order_release);
    dqi_wake_up(&r->wake);
}
