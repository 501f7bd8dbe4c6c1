// capture.h: for tests of writers: a session with bursts to write, and a reader of pcap files that shares
// nothing with the engine.
#ifndef CAPTURE_H
#define CAPTURE_H

#include "dqtest.h"

#include "core/peers.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <unistd.h>

// A session without interfaces, and a queue of a made-up interface that bursts claim to come from.
typedef struct rig {
    dq_session *s;
    dq_region *regions[DQ_MAX_SEGS];
    uint32_t nseg;
    dqi_burst_pool *bursts;
    dqi_engine_ops ops;
    dqi_conn_ops conns;
    dq_iface iface;
    dq_queue queue;
    char dir[64];
} rig;

#define RIG_BURSTS   512
#define RIG_START_NS 1700000000000000000

static inline void must(bool ok, const char *what) {
    if (ok) return;
    fprintf(stderr, "%s: set-up: %s: %s\n", dq_case, what, strerror(errno));
    exit(1);
}

// The made-up interface has connections, which read describes.
static inline void rig_conns(rig *r, int (*read)(dq_iface *i, uint32_t conn, dq_conn_info *out)) {
    r->conns.read = read;
    r->ops.conns = &r->conns;
}

// With segments in memory of these kinds.
static inline void rig_open_kinds(rig *r, bool virtual_clock, uint32_t nseg, const int32_t *kinds,
                                  uint32_t num_bufs, uint32_t buf_size) {
    dq_session_conf conf = {.virtual_clock = virtual_clock,
                            .start_ns = virtual_clock ? RIG_START_NS : 0,
                            .rx_meta_buffers = RIG_BURSTS};
    memset(r, 0, sizeof *r);
    must(dq_session_new(&conf, &r->s, NULL) == DQ_OK, "session");
    r->nseg = nseg;
    for (uint32_t i = 0; i < nseg; i++) {
        dq_region_conf rc = {.kind = kinds[i], .affinity = -1, .num_bufs = num_bufs, .buf_size = buf_size};
        snprintf(rc.name, sizeof rc.name, "r%u", i);
        must(dq_region_add(r->s, &rc, &r->regions[i], NULL) == DQ_OK, "region");
    }
    must(dq_session_open(r->s, NULL) == DQ_OK, "open");
    r->bursts = dqi_burst_pool_new(r->s, RIG_BURSTS, 64, nseg);
    must(r->bursts != NULL, "bursts");
    r->iface.session = r->queue.session = r->s;
    r->iface.ops = &r->ops;
    r->queue.iface = &r->iface;
    const char *tmp = getenv("TMPDIR");
    snprintf(r->dir, sizeof r->dir, "%s/daqiri-XXXXXX", tmp && strlen(tmp) < 40 ? tmp : "/tmp");
    must(mkdtemp(r->dir) != NULL, "mkdtemp");
}

static inline void rig_open(rig *r, bool virtual_clock, uint32_t nseg, uint32_t num_bufs, uint32_t buf_size) {
    const int32_t kinds[DQ_MAX_SEGS] = {DQ_KIND_HOST, DQ_KIND_HOST, DQ_KIND_HOST, DQ_KIND_HOST};
    rig_open_kinds(r, virtual_clock, nseg, kinds, num_bufs, buf_size);
}

// What the rig makes are payloads of a socket, whose peers are kept.
static inline void rig_payloads(rig *r) {
    r->ops.payload = true;
    must(dqi_region_keep_peers(r->regions[0], NULL) == DQ_OK, "peers");
}

static inline void remove_folder(const char *dir) {
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;)
        unlinkat(dirfd(d), e->d_name, 0);
    if (d) closedir(d);
    rmdir(dir);
}

// Closes the session; every buffer and every descriptor must be back.
static inline void rig_close(rig *r) {
    remove_folder(r->dir);
    DQ_EQ(dqi_burst_pool_level(r->bursts), RIG_BURSTS);
    DQ_EQ(dq_session_close(r->s), 0);
    dqi_burst_pool_free(r->bursts);
}

// A path in the rig's folder; valid until the next call but three.
static inline const char *rig_path(const rig *r, const char *name) {
    static char paths[4][512];
    static int at;
    char *p = paths[at++ % 4];
    snprintf(p, sizeof paths[0], "%s/%s", r->dir, name);
    return p;
}

// A burst of n packets of length 0.
static inline dq_burst *rig_burst(rig *r, uint32_t n) {
    dq_burst *b = dqi_burst_get(r->bursts);
    must(b && dqi_burst_fill(b, r->regions, r->nseg, n) == DQ_OK, "burst");
    b->queue = &r->queue;
    b->payload = r->iface.ops && r->iface.ops->payload;
    return b;
}

static inline uint8_t *seg_bytes(const dq_burst *b, uint32_t seg, uint32_t i) {
    return b->session->core.base + b->off[seg][i];
}

static inline void put_seg(dq_burst *b, uint32_t seg, uint32_t i, const void *bytes, uint32_t len) {
    memcpy(seg_bytes(b, seg, i), bytes, len);
    b->bytes += len;
    b->len[seg][i] = len;
}

// Fills segment seg of packet i with len bytes that depend on tag.
static inline void fill_seg(dq_burst *b, uint32_t seg, uint32_t i, uint32_t len, uint64_t tag) {
    for (uint32_t k = 0; k < len; k++)
        seg_bytes(b, seg, i)[k] = (uint8_t)(tag * 31 + k * 7 + k / 251);
    b->bytes += len;
    b->len[seg][i] = len;
}

static inline bool is_fill(const uint8_t *p, uint32_t len, uint64_t tag) {
    for (uint32_t k = 0; k < len; k++)
        if (p[k] != (uint8_t)(tag * 31 + k * 7 + k / 251)) return false;
    return true;
}

// ---- reading ----------------------------------------------------------------------------------------------

typedef struct record {
    int64_t ts;
    uint32_t kept, len;
    const uint8_t *data;
} record;

typedef struct capture {
    uint8_t *bytes;
    size_t size;
    uint32_t snaplen, n;
    bool whole; // the header is right and the last record is not cut
    record *records;
} capture;

static inline uint32_t read_le32(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

// The whole file; NULL when there is none. free() it.
static inline uint8_t *slurp(const char *path, size_t *size) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    struct stat st;
    must(fstat(fileno(f), &st) == 0, path);
    uint8_t *p = malloc((size_t)st.st_size + 1);
    must(p != NULL, "memory");
    *size = fread(p, 1, (size_t)st.st_size, f);
    fclose(f);
    return p;
}

static inline capture capture_read(const char *path) {
    static const uint8_t start[] = {0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    capture c = {0};
    c.bytes = slurp(path, &c.size);
    if (!c.bytes || c.size < 24 || memcmp(c.bytes, start, sizeof start) != 0 || read_le32(c.bytes + 20) != 1)
        return c;
    c.snaplen = read_le32(c.bytes + 16);
    c.records = malloc((c.size / 16 + 1) * sizeof *c.records);
    must(c.records != NULL, "memory");
    size_t at = 24;
    while (c.size - at >= 16) {
        const uint8_t *h = c.bytes + at;
        record r = {.ts = read_le32(h) * INT64_C(1000000000) + read_le32(h + 4),
                    .kept = read_le32(h + 8),
                    .len = read_le32(h + 12),
                    .data = h + 16};
        if (r.kept > c.size - at - 16) break;
        c.records[c.n++] = r;
        at += 16 + r.kept;
    }
    c.whole = at == c.size;
    return c;
}

static inline void capture_free(capture *c) {
    free(c->bytes);
    free(c->records);
}

#endif
