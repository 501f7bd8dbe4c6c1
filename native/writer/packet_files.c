// packet_files.c: a file per packet or burst, written directly from the packets' segments. A folder
// descriptor avoids a path walk per file, and distinguishes a removed folder from a replaced one. Runs on the
// writer's thread.
#include "writer/packet_files.h"
#include "core/burst.h"
#include "core/clock.h"
#include "writer/format.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#define NAME_BYTES 300 // prefix of 255 bytes and an index
#define GATHER     256 // segments per system call

int dqi_packet_files_open(dqi_packet_files *r, const char *dir, const dq_writer_conf *conf,
                          _Atomic uint64_t *next, dqi_staged *staged) {
    *r = (dqi_packet_files){.prefix = conf->prefix,
                            .skip = conf->packet_data_offset,
                            .overwrite = conf->overwrite,
                            .next = next,
                            .staged = staged};
    r->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return r->dir < 0 ? -errno : 0;
}

static int write_all(int fd, struct iovec *iov, int n) {
    while (n > 0) {
        ssize_t done = writev(fd, iov, n);
        if (done < 0 && errno == EINTR) continue;
        if (done <= 0) return done < 0 ? -errno : -EIO;
        for (; n > 0 && (size_t)done >= iov->iov_len; iov++, n--)
            done -= (ssize_t)iov->iov_len;
        if (n > 0) {
            iov->iov_base = (uint8_t *)iov->iov_base + done;
            iov->iov_len -= (size_t)done;
        }
    }
    return 0;
}

// Data of the next system call on a file.
typedef struct pieces {
    int fd, used;
    struct iovec iov[GATHER];
} pieces;

static int put_out(const dqi_packet_files *r, pieces *p) {
    int err = write_all(p->fd, p->iov, p->used);
    p->used = 0;
    if (r->staged) dqi_staged_release(r->staged);
    return err;
}

static void add_piece(pieces *p, const uint8_t *from, uint32_t n) {
    struct iovec *last = p->used > 0 ? &p->iov[p->used - 1] : NULL;
    if (last && (const uint8_t *)last->iov_base + last->iov_len == from)
        last->iov_len += n;
    else
        p->iov[p->used++] = (struct iovec){(void *)(uintptr_t)from, n};
}

// Adds bytes [at, end) of a segment.
static int add_segment(const dqi_packet_files *r, pieces *p, const dq_burst *b, uint32_t s, uint32_t i,
                       uint32_t at, uint32_t end) {
    for (int err; at < end;) {
        uint32_t n = end - at;
        const uint8_t *from =
            b->device_only >> s & 1 ? dqi_staged_bytes(r->staged, s, i, at, &n) : dqi_bytes(b, s, i) + at;
        if (n == 0) return -DQI_EDEVICE;
        if ((!from || p->used == GATHER) && (err = put_out(r, p)) != 0) return err;
        if (!from) continue;
        add_piece(p, from, n);
        at += n;
    }
    return 0;
}

// Writes packets directly from a GPU's memory while they are page-aligned. *whole: packets completely
// written; *rest: bytes written of the following one.
static int write_pages(const dqi_gpu_file *g, const dq_burst *b, uint32_t skip, uint32_t first, uint32_t n,
                       uint32_t *whole, uint32_t *rest) {
    uint64_t at = 0;
    for (*whole = *rest = 0; *whole < n && *rest == 0;) {
        uint32_t i = first + *whole, len = b->len[0][i] > skip ? b->len[0][i] - skip : 0;
        uint64_t from = (uintptr_t)dqi_device_bytes(b, 0, i) + skip;
        if (from % DQI_GPU_PAGE != 0) return 0;
        for (uint32_t done = 0, pages = len / DQI_GPU_PAGE * DQI_GPU_PAGE; done < pages;) {
            int64_t did = dqi_gpu_file_write(g, from + done, pages - done, at);
            if (did < 0) return (int)did;
            done += (uint32_t)did;
            at += (uint64_t)did;
        }
        if (len % DQI_GPU_PAGE == 0)
            ++*whole;
        else if (len < DQI_GPU_PAGE)
            return 0;
        else
            *rest = len / DQI_GPU_PAGE * DQI_GPU_PAGE;
    }
    return 0;
}

// The same if cuFile accepts the file; leaves the descriptor at the end of the written data.
static int write_straight(dqi_packet_files *r, int fd, const dq_burst *b, uint32_t first, uint32_t n,
                          uint32_t *whole, uint32_t *rest) {
    dqi_staging *s = r->staged->staging;
    const dqi_cufile *lib = s ? dqi_staging_cufile(s) : NULL;
    dqi_gpu_file g;
    *whole = *rest = 0;
    if (!(b->device_only & 1) || b->nseg > 1 || !lib || r->refused) return 0;
    if (((uintptr_t)dqi_device_bytes(b, 0, first) + r->skip) % DQI_GPU_PAGE != 0) {
        snprintf(r->indirect, sizeof r->indirect, "%s", DQI_GPU_NO_PAGE);
        return 0;
    }
    r->refused = !dqi_gpu_file_open(&g, fd, dqi_staging_gpu(s), lib, r->indirect, sizeof r->indirect);
    if (r->refused) return 0;
    int err = write_pages(&g, b, r->skip, first, n, whole, rest);
    dqi_gpu_file_close(&g);
    return err != 0 ? err : lseek(fd, 0, SEEK_END) < 0 ? -errno : 0;
}

static int write_packets(dqi_packet_files *r, int fd, const dq_burst *b, uint32_t first, uint32_t n,
                         uint64_t *bytes) {
    pieces p = {.fd = fd};
    uint32_t whole, rest;
    int err = write_straight(r, fd, b, first, n, &whole, &rest);
    *bytes = rest;
    for (uint32_t i = first; i < first + whole; i++)
        *bytes += b->len[0][i] > r->skip ? b->len[0][i] - r->skip : 0;
    if (err != 0) return err;
    for (uint32_t i = first + whole; i < first + n; i++) {
        uint64_t skip = r->skip + rest;
        rest = 0;
        for (uint32_t s = 0; s < b->nseg; s++) {
            uint32_t len = b->len[s][i], cut = skip < len ? (uint32_t)skip : len;
            if ((err = add_segment(r, &p, b, s, i, cut, len)) != 0) return err;
            skip -= cut;
            *bytes += len - cut;
        }
    }
    return put_out(r, &p);
}

static int write_file(dqi_packet_files *r, const char *name, const dq_burst *b, uint32_t first, uint32_t n,
                      uint64_t *bytes) {
    int fd = openat(r->dir, name, O_WRONLY | O_CREAT | (r->overwrite ? O_TRUNC : O_EXCL) | O_CLOEXEC, 0644);
    if (fd < 0) return -errno;
    int err = write_packets(r, fd, b, first, n, bytes);
    if (close(fd) != 0 && err == 0 && errno != EINTR) err = -errno;
    if (err != 0) unlinkat(r->dir, name, 0);
    return err;
}

// Writes the file PREFIX_index.
static int add_file(dqi_packet_files *r, uint64_t index, const dq_burst *b, uint32_t first, uint32_t n,
                    dqi_file_tally *tally) {
    char name[NAME_BYTES];
    uint64_t bytes;
    snprintf(name, sizeof name, "%s_%" PRIu64, r->prefix, index);
    int64_t began = dqi_mono_ns();
    int err = write_file(r, name, b, first, n, &bytes);
    tally->stall_ns += dqi_mono_ns() - began;
    if (err != 0) return err;
    tally->files++;
    tally->packets += n;
    tally->packet_bytes += bytes;
    tally->file_bytes += bytes;
    return 0;
}

int dqi_packet_files_add(dqi_packet_files *r, const dq_burst *b, uint32_t first, uint32_t n, uint64_t *index,
                         dqi_file_tally *tally) {
    uint64_t at, after;
    int err;
    do {
        at = atomic_fetch_add(r->next, 1);
        after = at + 1;
        err = add_file(r, at, b, first, n, tally);
    } while (err == -EEXIST);
    *index = at;
    if (err != 0) atomic_compare_exchange_strong(r->next, &after, at);
    return err;
}

int dqi_packet_files_add_named(dqi_packet_files *r, const dq_write_names *names, const dq_burst *b,
                               uint32_t i, dqi_file_tally *tally) {
    dqi_packet_files named = {.dir = r->dir,
                              .prefix = names->prefix,
                              .skip = names->packet_data_offset,
                              .overwrite = r->overwrite,
                              .staged = r->staged};
    return add_file(&named, i, b, i, 1, tally);
}

void dqi_packet_files_close(dqi_packet_files *r) {
    if (r->dir >= 0) close(r->dir);
    r->dir = -1;
}

const dqi_format dqi_format_raw_packets = {
    .about = {.kind = "raw",
              .choice = "packet",
              .suffix = "",
              .options = "overwrite packet_data_offset per",
              .each = DQ_EACH_PACKET},
    .names = true,
};

const dqi_format dqi_format_raw_bursts = {
    .about = {.kind = "raw",
              .choice = "burst",
              .suffix = "",
              .options = "overwrite packet_data_offset per",
              .each = DQ_EACH_BURST},
    .straight = true,
};
