// pcap_tail.c: scans records with the capture reader. A truncated record results from the end of its writer;
// an invalid one means that the file is not a capture or is damaged, and it is not modified.
#include "writer/pcap_tail.h"
#include "capture/capture_file.h"
#include "writer/crc32c.h"
#include "writer/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define WINDOW (16u << 20) // maximum block size of pcapng readers

typedef struct walk {
    int fd;
    uint8_t *buf;
    uint64_t base; // offset of buf[0]
    uint32_t have;
    int err; // of reading
    dqi_capture capture;
} walk;

// Returns n <= WINDOW bytes at this file offset, or NULL if the file ends before.
static uint8_t *look(walk *w, uint64_t at, size_t n) {
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

// Returns the bytes of the record at this offset, 0 if truncated, or a dqi_file_error.
static int64_t record_at(walk *w, uint64_t at) {
    dqi_capture *c = &w->capture;
    dqi_capture_packet packet;
    size_t n = 1;
    int what = DQI_CAPTURE_MORE;
    while (what == DQI_CAPTURE_MORE) {
        uint8_t *p = look(w, at, n);
        if (!p) return 0;
        what = dqi_capture_next(c, p, w->have - (at - w->base), &packet, &n);
    }
    if (what == DQI_CAPTURE_BAD || n > WINDOW) return -DQI_ENOCAPTURE;
    const uint8_t *p = look(w, at, n); // a block skipped by the reader may be truncated
    if (p && c->form == DQI_CAPTURE_PCAPNG && dqi_capture_u32(c, p + n - 4) != n) return -DQI_ENOCAPTURE;
    return p ? (int64_t)n : 0;
}

// Checks that a file whose first record has n bytes can be appended to.
static int check_start(walk *w, int64_t n, const dqi_pcap_conf *conf) {
    const dqi_capture *c = &w->capture;
    if (!conf->ng && c->swapped && c->form != DQI_CAPTURE_PCAPNG) return -DQI_EORDER;
    if (n <= 0 || conf->ng != (c->form == DQI_CAPTURE_PCAPNG)) return -DQI_ENOCAPTURE;
    if (conf->ng) return 0;
    if (c->links[0].mul != (conf->micro ? 1000 : 1)) return -DQI_ERESOLUTION;
    if (c->links[0].snaplen != conf->snaplen) return -DQI_ESNAPLEN;
    return dqi_capture_u32(c, w->buf + DQI_PCAP_LINK) == DQI_LINK_ETHERNET ? 0 : -DQI_ELINK;
}

static int go_along(walk *w, const dqi_pcap_conf *conf, dqi_pcap_tail *out) {
    int64_t n = record_at(w, 0);
    if (w->err != 0 || out->size == 0) return w->err;
    int err = check_start(w, n, conf);
    for (; err == 0 && n > 0; n = record_at(w, out->whole)) {
        out->crc = dqi_crc32c(out->crc, look(w, out->whole, (size_t)n), (size_t)n);
        out->whole += (uint64_t)n;
    }
    if (err == 0 && n < 0) err = (int)n;
    return err != 0 ? err : w->err;
}

int dqi_pcap_find_tail(const char *path, const dqi_pcap_conf *conf, dqi_pcap_tail *out) {
    struct stat st;
    walk w = {.fd = open(path, O_RDONLY | O_CLOEXEC)};
    *out = (dqi_pcap_tail){0};
    if (w.fd < 0) return -errno;
    int err = -ENOMEM;
    w.buf = fstat(w.fd, &st) == 0 ? malloc(WINDOW) : NULL;
    if (w.buf) {
        out->size = (uint64_t)st.st_size;
        err = go_along(&w, conf, out);
    }
    dqi_capture_reset(&w.capture);
    free(w.buf);
    close(w.fd);
    return err;
}
