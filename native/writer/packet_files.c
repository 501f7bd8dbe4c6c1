// packet_files.c: a file for each packet or burst, straight from the packets' segments. A folder descriptor
// keeps the path from being walked for each file, and tells a folder that vanished from one that was
// replaced. Runs on the writer's thread.
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

#define NAME_BYTES 300 // a prefix of 255 and an index
#define GATHER     256 // segments of one system call

int dqi_packet_files_open(dqi_packet_files *r, const char *dir, const char *prefix, uint32_t skip,
                          _Atomic uint64_t *next) {
    *r = (dqi_packet_files){.prefix = prefix, .skip = skip, .next = next};
    r->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return r->dir < 0 ? -errno : 0;
}

// The packet's segments after the first skip bytes; their number, their bytes are added to *bytes.
static int pieces(const dq_burst *b, uint32_t i, uint64_t skip, struct iovec *iov, uint64_t *bytes) {
    int n = 0;
    for (uint32_t s = 0; s < b->nseg; s++) {
        uint32_t len = b->len[s][i];
        uint64_t cut = skip < len ? skip : len;
        skip -= cut;
        if (cut == len) continue;
        iov[n].iov_base = dqi_bytes(b, s, i) + cut;
        iov[n].iov_len = len - cut;
        *bytes += len - cut;
        n++;
    }
    return n;
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

static int write_packets(const dqi_packet_files *r, int fd, const dq_burst *b, uint32_t first, uint32_t n,
                         uint64_t *bytes) {
    struct iovec iov[GATHER];
    int used = 0, err = 0;
    *bytes = 0;
    for (uint32_t i = first; i < first + n && err == 0; i++) {
        if (used > GATHER - DQ_MAX_SEGS) {
            err = write_all(fd, iov, used);
            used = 0;
        }
        used += pieces(b, i, r->skip, iov + used, bytes);
    }
    return err == 0 ? write_all(fd, iov, used) : err;
}

static int write_file(const dqi_packet_files *r, const char *name, const dq_burst *b, uint32_t first,
                      uint32_t n, uint64_t *bytes) {
    int fd = openat(r->dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return -errno;
    int err = write_packets(r, fd, b, first, n, bytes);
    if (close(fd) != 0 && err == 0 && errno != EINTR) err = -errno;
    if (err != 0) unlinkat(r->dir, name, 0);
    return err;
}

// Writes file PREFIX_index.
static int add_file(const dqi_packet_files *r, uint64_t index, const dq_burst *b, uint32_t first, uint32_t n,
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
    uint64_t at = atomic_fetch_add(r->next, 1), after = at + 1;
    *index = at;
    int err = add_file(r, at, b, first, n, tally);
    if (err != 0) atomic_compare_exchange_strong(r->next, &after, at);
    return err;
}

int dqi_packet_files_add_named(const dqi_packet_files *r, const dq_write_names *names, const dq_burst *b,
                               uint32_t i, dqi_file_tally *tally) {
    dqi_packet_files named = {.dir = r->dir, .prefix = names->prefix, .skip = names->packet_data_offset};
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
              .options = "packet_data_offset per",
              .each = DQ_EACH_PACKET},
    .names = true,
};

const dqi_format dqi_format_raw_bursts = {
    .about = {.kind = "raw",
              .choice = "burst",
              .suffix = "",
              .options = "packet_data_offset per",
              .each = DQ_EACH_BURST},
};
