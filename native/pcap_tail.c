// pcap_tail.c: a walk over records by their lengths. What ends too early was cut off by the end of its
// writer; a length that no record has means that the file is no capture, or a damaged one, and it is left
// alone.
#include "pcap_tail.h"
#include "crc32c.h"
#include "disk.h"
#include "pcap_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW    (16u << 20) // bytes of the longest block that readers of pcapng take
#define MAX_BLOCK WINDOW

typedef struct walk {
    int fd;
    uint8_t *buf;
    uint64_t base; // offset of buf[0]
    uint32_t have;
    int err; // of reading
} walk;

// n <= WINDOW bytes at this offset of the file, NULL where it ends before.
static const uint8_t *look(walk *w, uint64_t at, uint32_t n) {
    if (at >= w->base && at + n <= w->base + w->have) return w->buf + (at - w->base);
    w->base = at;
    w->have = 0;
    while (w->have < WINDOW && w->err == 0) {
        ssize_t got = pread(w->fd, w->buf + w->have, WINDOW - w->have, (off_t)(at + w->have));
        if (got == 0) break;
        if (got > 0)
            w->have += (uint32_t)got;
        else if (errno != EINTR)
            w->err = -errno;
    }
    return n <= w->have ? w->buf : NULL;
}

static uint32_t get32(const uint8_t *p, bool big) {
    return big ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3]
               : (uint32_t)p[3] << 24 | (uint32_t)p[2] << 16 | (uint32_t)p[1] << 8 | p[0];
}

// Bytes of the record at this offset, 0: it is cut off. Or a dqi_file_error.
typedef int64_t (*measure)(walk *w, uint64_t at, bool *big);

static int64_t pcap_record(walk *w, uint64_t at, bool *big) {
    const uint8_t *h = look(w, at, 16);
    if (!h) return 0;
    uint32_t kept = get32(h + 8, *big);
    if (kept > DQI_PCAP_MAX_SNAPLEN) return -DQI_ENOCAPTURE;
    return look(w, at, 16 + kept) ? 16 + (int64_t)kept : 0;
}

static int64_t pcapng_block(walk *w, uint64_t at, bool *big) {
    const uint8_t *h = look(w, at, 12);
    if (!h) return 0;
    if (get32(h, false) == 0x0a0d0d0a) *big = get32(h + 8, true) == 0x1a2b3c4d;
    uint32_t n = get32(h + 4, *big);
    if (n < 12 || n % 4 != 0 || n > MAX_BLOCK) return -DQI_ENOCAPTURE;
    h = look(w, at, n);
    if (h && get32(h + n - 4, *big) != n) return -DQI_ENOCAPTURE;
    return h ? n : 0;
}

static int go_along(walk *w, uint64_t at, bool big, measure of, dqi_pcap_tail *out) {
    for (int64_t n = (int64_t)at; n != 0; n = of(w, out->whole, &big)) {
        if (n < 0) return (int)n;
        const uint8_t *p = look(w, out->whole, (uint32_t)n);
        out->crc = dqi_crc32c(out->crc, p, (size_t)n);
        out->whole += (uint64_t)n;
    }
    return w->err;
}

static int begin(walk *w, const char *path, dqi_pcap_tail *out) {
    struct stat st;
    *out = (dqi_pcap_tail){0};
    *w = (walk){.fd = open(path, O_RDONLY | O_CLOEXEC)};
    if (w->fd < 0) return -errno;
    w->buf = fstat(w->fd, &st) == 0 ? malloc(WINDOW) : NULL;
    if (!w->buf) {
        close(w->fd);
        return -ENOMEM;
    }
    out->size = (uint64_t)st.st_size;
    return 0;
}

static int end(walk *w, int err) {
    close(w->fd);
    free(w->buf);
    return err;
}

static int check_header(const uint8_t *h, uint32_t magic, uint32_t snaplen) {
    uint32_t has = get32(h, false), swapped = get32(h, true);
    if (swapped == DQI_PCAP_MAGIC_NS || swapped == DQI_PCAP_MAGIC_US) return -DQI_EORDER;
    if (has != DQI_PCAP_MAGIC_NS && has != DQI_PCAP_MAGIC_US) return -DQI_ENOCAPTURE;
    if (has != magic) return -DQI_ERESOLUTION;
    if (get32(h + 16, false) != snaplen) return -DQI_ESNAPLEN;
    return get32(h + 20, false) == 1 ? 0 : -DQI_ELINK;
}

int dqi_pcap_find_tail(const char *path, uint32_t magic, uint32_t snaplen, dqi_pcap_tail *out) {
    walk w;
    int err = begin(&w, path, out);
    if (err != 0) return err;
    const uint8_t *h = look(&w, 0, 24);
    if (!h) return end(&w, w.err != 0 || out->size == 0 ? w.err : -DQI_ENOCAPTURE);
    err = check_header(h, magic, snaplen);
    return end(&w, err == 0 ? go_along(&w, 24, false, pcap_record, out) : err);
}

int dqi_pcapng_find_tail(const char *path, dqi_pcap_tail *out) {
    walk w;
    int err = begin(&w, path, out);
    if (err != 0) return err;
    const uint8_t *h = look(&w, 0, 12);
    if (!h && w.err == 0 && out->size == 0) return end(&w, 0);
    bool big = false;
    int64_t first = h && get32(h, false) == 0x0a0d0d0a ? pcapng_block(&w, 0, &big) : -DQI_ENOCAPTURE;
    if (w.err != 0) return end(&w, w.err);
    if (first <= 0) return end(&w, -DQI_ENOCAPTURE);
    return end(&w, go_along(&w, (uint64_t)first, big, pcapng_block, out));
}
