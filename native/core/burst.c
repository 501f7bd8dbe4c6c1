// burst.c: bursts and the pools of their descriptors.
//
// A descriptor is one block of columns sized for its queue's batch. One reference count covers the whole
// burst: a count per buffer would halve the rate. A selection is a burst whose columns are gathered from its
// parent and that references the parent instead of owning buffers; so every consumer sees one shape.
#include "core/burst.h"
#include "core/dq_burst.h"
#include "core/region.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

struct dqi_burst_pool {
    dqi_spin lock;
    uint32_t n, size, cap, nseg; // free ones; total
    dq_session *session;
    void *block;
    size_t bytes;
    dq_burst *free[];
};

static size_t column_bytes(uint32_t cap, uint32_t nseg, const dq_session *s) {
    const dqi_core *core = dqi_core_of(s);
    return (size_t)cap *
           ((nseg + core->heads) * (sizeof(uint64_t) + 2 * sizeof(uint32_t)) + 2 * sizeof(int64_t) +
            sizeof(uint32_t) + core->origins * sizeof(dqi_origin) + core->imms * sizeof(dqi_imm));
}

static size_t align64(size_t v) { return (v + 63) / 64 * 64; }

// Assigns a descriptor's columns, widest first, from the memory behind it.
static void carve(dq_burst *b, uint32_t cap, uint32_t nseg, const dq_session *session) {
    const dqi_core *core = dqi_core_of(session);
    uint8_t *p = (uint8_t *)b + align64(sizeof *b);
    b->ts = (int64_t *)p;
    b->tx_time = b->ts + cap;
    uint64_t *wide = (uint64_t *)(b->tx_time + cap);
    for (uint32_t s = 0; s < nseg; s++, wide += cap)
        b->off[s] = wide;
    if (core->heads) b->head = wide;
    wide += core->heads ? cap : 0;
    if (core->origins) b->origin = (dqi_origin *)wide;
    wide += core->origins ? cap * (sizeof(dqi_origin) / sizeof *wide) : 0;
    if (core->imms) b->imm = (dqi_imm *)wide;
    wide += core->imms ? cap : 0;
    uint32_t *narrow = (uint32_t *)wide;
    for (uint32_t s = 0; s < nseg; s++, narrow += 2 * (size_t)cap) {
        b->len[s] = narrow;
        b->bufs[s] = narrow + cap;
    }
    b->flow = narrow;
    if (core->heads) b->head_len = narrow + cap;
}

dqi_burst_pool *dqi_burst_pool_new(dq_session *s, uint32_t n, uint32_t cap, uint32_t nseg) {
    size_t each = align64(sizeof(dq_burst)) + align64(column_bytes(cap, nseg, s));
    // On separate cache lines: the last entries of a full pool are popped and pushed for every burst.
    size_t bytes = align64(sizeof(dqi_burst_pool) + n * sizeof(dq_burst *));
    dqi_burst_pool *p = aligned_alloc(64, bytes);
    if (!p) return NULL;
    memset(p, 0, bytes);
    p->n = p->size = n;
    p->bytes = n * each;
    // Mapped lazily, so that unused descriptors cost no memory.
    p->block =
        mmap(NULL, p->bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p->block == MAP_FAILED) {
        free(p);
        return NULL;
    }
    for (uint32_t i = 0; i < n; i++)
        p->free[n - 1 - i] = (dq_burst *)((uint8_t *)p->block + i * each);
    p->cap = cap;
    p->nseg = nseg;
    p->session = s;
    return p;
}

void dqi_burst_pool_free(dqi_burst_pool *p) {
    if (!p) return;
    munmap(p->block, p->bytes);
    free(p);
}

uint32_t dqi_burst_pool_level(dqi_burst_pool *p) {
    dqi_lock(&p->lock);
    uint32_t n = p->n;
    dqi_unlock(&p->lock);
    return n;
}

bool dqi_burst_pool_whole(dqi_burst_pool *p) { return dqi_burst_pool_level(p) == p->size; }

dq_burst *dqi_burst_get(dqi_burst_pool *p) {
    dqi_lock(&p->lock);
    dq_burst *b = p->n ? p->free[--p->n] : NULL;
    dqi_unlock(&p->lock);
    if (!b) return NULL;
    if (!b->home) {
        b->home = p;
        b->session = p->session;
        b->cap = p->cap;
        carve(b, p->cap, p->nseg, p->session);
    }
    b->nseg = p->nseg;
    b->n = b->n_bufs = b->flags = b->conn = 0;
    b->aggregate = NULL;
    b->bytes = 0;
    b->clock = dqi_virtual(p->session) ? DQ_CLOCK_VIRTUAL : DQ_CLOCK_REALTIME;
    b->time_origin = dqi_core_of(p->session)->start_ns;
    b->slices = b->timed = b->origins = b->imms = b->grown = b->payload = b->holes = b->heads = false;
    b->to_columns = NULL;
    b->device_only = 0;
    b->sums = (dqi_sums){0};
    b->due_ns = 0;
    b->parent = NULL;
    b->queue = NULL;
    atomic_store_explicit(&b->refs, 1, memory_order_relaxed);
    return b;
}

void dq_burst_columns(dq_burst *b) { dqi_burst_columns(b); }

void dq_burst_ref(dq_burst *b) {
    dqi_burst_columns(b);
    dqi_burst_hold(b);
}

void dq_burst_unref(dq_burst *b) {
    if (!b || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) return;
    dqi_burst_columns(b);
    if (b->parent)
        dq_burst_unref(b->parent);
    else
        for (uint32_t s = 0; s < b->nseg; s++)
            dqi_bufs_free(b->session, b->bufs[s], b->n_bufs);
    dqi_burst_pool *p = b->home;
    dqi_lock(&p->lock);
    p->free[p->n++] = b;
    dqi_unlock(&p->lock);
}

int dqi_burst_fill(dq_burst *b, dq_region *const *regions, uint32_t nseg, uint32_t n) {
    for (uint32_t s = 0; s < nseg; s++) {
        if (dqi_bufs_alloc(regions[s], b->bufs[s], n) != n) {
            while (s-- > 0)
                dqi_bufs_free(b->session, b->bufs[s], n);
            return DQ_NO_FREE_PACKET_BUFFERS;
        }
        const dq_region *r = regions[s];
        const uint64_t start = dqi_buf_off(r, r->first_id);
        const uint32_t first = r->first_id, stride = r->stride, *ids = b->bufs[s];
        uint64_t *off = b->off[s];
        for (uint32_t i = 0; i < n; i++)
            off[i] = start + (uint64_t)(ids[i] - first) * stride;
    }
    b->n = b->n_bufs = n;
    b->device_only = (uint8_t)dqi_device_only(regions, nseg);
    return DQ_OK;
}

uint32_t dqi_burst_take(dq_burst *b, dq_region *const *regions, uint32_t n) {
    uint32_t got = n;
    b->device_only = (uint8_t)dqi_device_only(regions, b->nseg);
    for (uint32_t s = 0; s < b->nseg; s++) {
        uint32_t k = dqi_bufs_some(regions[s], b->bufs[s] + b->n, got);
        for (uint32_t t = 0; k < got && t < s; t++)
            dqi_bufs_free(b->session, b->bufs[t] + b->n + k, got - k);
        got = k;
    }
    return got;
}

uint8_t *dqi_device_bytes(const dq_burst *b, uint32_t seg, uint32_t i) {
    const dq_region *r = b->device_only >> seg & 1 ? dqi_off_region(b->session, b->off[seg][i]) : NULL;
    return r ? r->device + (b->off[seg][i] - r->offset) : dqi_bytes(b, seg, i);
}

void dqi_burst_set_origin(dq_burst *b, uint32_t i, const dqi_origin *origin) {
    if (!b->origins) memset(b->origin, 0, b->cap * sizeof *b->origin);
    b->origins = true;
    b->origin[i] = *origin;
}

static void copy_origins(dq_burst *dst, uint32_t at, const dq_burst *src, uint32_t first, uint32_t n) {
    static const dqi_origin none;
    for (uint32_t i = 0; (src->origins || dst->origins) && i < n; i++)
        dqi_burst_set_origin(dst, at + i, src->origins ? &src->origin[first + i] : &none);
}

_Static_assert(sizeof(dqi_imm) == sizeof(uint64_t), "its column lies among those of 64 bits");

void dqi_burst_set_imm(dq_burst *b, uint32_t i, dqi_imm imm) {
    if (!b->imms && imm.of == DQI_IMM_NONE) return;
    if (!b->imms) memset(b->imm, 0, b->cap * sizeof *b->imm);
    b->imms = true;
    b->imm[i] = imm;
}

void dqi_burst_copy_imms(dq_burst *dst, uint32_t at, const dq_burst *src, uint32_t first, uint32_t n) {
    for (uint32_t i = 0; (src->imms || dst->imms) && i < n; i++)
        dqi_burst_set_imm(dst, at + i, dqi_burst_imm(src, first + i));
}

bool dq_burst_imm(const dq_burst *b, uint32_t i, uint32_t *value) {
    if (i >= b->n || dqi_burst_imm(b, i).of == DQI_IMM_NONE) return false;
    *value = b->imm[i].value;
    return true;
}

// Copies the columns of n packets, without buffer ids.
static void copy_columns(dq_burst *dst, uint32_t at, const dq_burst *src, uint32_t first, uint32_t n) {
    for (uint32_t s = 0; s < dst->nseg; s++) {
        memcpy(dst->off[s] + at, src->off[s] + first, n * sizeof(uint64_t));
        memcpy(dst->len[s] + at, src->len[s] + first, n * sizeof(uint32_t));
    }
    if (src->heads) {
        memcpy(dst->head + at, src->head + first, n * sizeof *dst->head);
        memcpy(dst->head_len + at, src->head_len + first, n * sizeof *dst->head_len);
    }
    memcpy(dst->flow + at, src->flow + first, n * sizeof *dst->flow);
    memcpy(dst->ts + at, src->ts + first, n * sizeof *dst->ts);
    copy_origins(dst, at, src, first, n);
    dqi_burst_copy_imms(dst, at, src, first, n);
    if (!src->timed && !dst->timed) return;
    if (!dst->timed) memset(dst->tx_time, 0, at * sizeof *dst->tx_time);
    if (src->timed)
        memcpy(dst->tx_time + at, src->tx_time + first, n * sizeof *dst->tx_time);
    else
        memset(dst->tx_time + at, 0, n * sizeof *dst->tx_time);
    dst->timed = true;
}

uint64_t dqi_burst_sum(const dq_burst *b, uint32_t first, uint32_t n) {
    uint64_t bytes = 0;
    for (uint32_t s = 0; s < b->nseg; s++)
        for (uint32_t i = first; i < first + n; i++)
            bytes += b->len[s][i];
    return bytes;
}

void dqi_burst_move(dq_burst *dst, dq_burst *src, uint32_t first, uint32_t n) {
    copy_columns(dst, dst->n, src, first, n);
    for (uint32_t s = 0; s < dst->nseg; s++) {
        memcpy(dst->bufs[s] + dst->n, src->bufs[s] + first, n * sizeof(uint32_t));
        for (uint32_t i = first; i < first + n; i++)
            src->bufs[s][i] = DQI_NO_BUF;
    }
    dst->bytes += dqi_burst_sum(src, first, n);
    dst->grown |= src->grown;
    dst->device_only |= src->device_only;
    dst->heads |= src->heads;
    dst->holes |= src->holes;
    dst->n += n;
    dst->n_bufs += n;
}

#define SWAP(column)                                                                                         \
    do {                                                                                                     \
        __typeof__((column)[0]) t = (column)[i];                                                             \
        (column)[i] = (column)[k];                                                                           \
        (column)[k] = t;                                                                                     \
    } while (0)

void dqi_burst_swap(dq_burst *b, uint32_t i, uint32_t k) {
    for (uint32_t s = 0; s < b->nseg; s++) {
        SWAP(b->off[s]);
        SWAP(b->len[s]);
        SWAP(b->bufs[s]);
    }
    if (b->heads) {
        SWAP(b->head);
        SWAP(b->head_len);
    }
    SWAP(b->flow);
    SWAP(b->ts);
    if (b->timed) SWAP(b->tx_time);
    if (b->origins) SWAP(b->origin);
    if (b->imms) SWAP(b->imm);
}

// Creates a selection of n packets: idx[0..n) or, if idx is NULL, the first n.
static int pick(dq_burst *b, const uint32_t *idx, uint32_t n, dq_burst **out) {
    dqi_burst_columns(b);
    dq_burst *c =
        n <= dqi_core_of(b->session)->picks_cap ? dqi_burst_get(dqi_core_of(b->session)->picks) : NULL;
    if (!c) return DQ_NO_FREE_BURST_BUFFERS;
    c->nseg = b->nseg;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = idx ? idx[i] : i;
        for (uint32_t s = 0; s < c->nseg; s++) {
            c->off[s][i] = b->off[s][k];
            c->len[s][i] = b->len[s][k];
            c->bytes += c->len[s][i];
        }
        if (b->heads) {
            c->head[i] = b->head[k];
            c->head_len[i] = b->head_len[k];
        }
        c->flow[i] = b->flow[k];
        c->ts[i] = b->ts[k];
        if (b->timed) c->tx_time[i] = b->tx_time[k];
        if (b->origins) dqi_burst_set_origin(c, i, &b->origin[k]);
        dqi_burst_copy_imms(c, i, b, k, 1);
    }
    c->n = n;
    c->conn = b->conn;
    c->flags = b->flags & ~DQ_BURST_SHARED; // its columns are private; its packets belong to the owner
    c->holes = b->holes;
    c->device_only = b->device_only;
    c->heads = b->heads;
    c->aggregate = b->aggregate;
    dqi_burst_take_clock(c, b);
    c->timed = b->timed;
    c->slices = true;
    c->queue = b->queue;
    c->payload = b->payload;
    c->parent = dqi_burst_owner(b);
    dq_burst_ref(c->parent);
    *out = c;
    return DQ_OK;
}

int dq_burst_pick(dq_burst *b, const uint32_t *idx, uint32_t n, dq_burst **out) {
    for (uint32_t i = 0; i < n; i++)
        if (idx[i] >= b->n) return DQ_INVALID_PARAMETER;
    return pick(b, idx, n, out);
}

void dq_burst_view(dq_burst *b, dq_view *out) {
    dqi_burst_columns(b);
    dqi_burst_view_raw(b, out);
}

void dqi_burst_view_raw(dq_burst *b, dq_view *out) {
    *out = (dq_view){
        .base = dqi_core_of(b->session)->base,
        .n = b->n,
        .nseg = b->nseg,
        .flags = b->flags,
        .owner_flags = &dqi_burst_owner(b)->flags,
        .clock = b->clock,
        .time_origin = b->time_origin,
        .conn = b->conn,
        .bytes = b->bytes,
        .device_only = b->device_only,
        .head = b->heads ? b->head : NULL,
        .head_len = b->heads ? b->head_len : NULL,
        .flow = b->flow,
        .ts = b->ts,
        .queue = b->queue,
        .handles = b->to_columns ? b : NULL,
    };
    for (uint32_t s = 0; s < b->nseg; s++) {
        out->off[s] = b->off[s];
        out->len[s] = b->len[s];
    }
}

int64_t *dq_burst_times(dq_burst *b) {
    if (b->flags & DQ_BURST_SHARED) return NULL;
    if (!b->timed) memset(b->tx_time, 0, b->cap * sizeof *b->tx_time);
    b->timed = true;
    return b->tx_time;
}

const dq_region *dq_burst_region(const dq_burst *b, uint32_t s) {
    return b->n > 0 && s < b->nseg ? dqi_off_region(b->session, b->off[s][0]) : NULL;
}

const dq_aggregate *dq_burst_aggregate(const dq_burst *b) { return b->aggregate; }

bool dqi_burst_writable(const dq_burst *b) {
    return ((b->flags | dqi_burst_owner(b)->flags) & DQ_BURST_SHARED) == 0;
}

static void set_shared(dq_burst *b) {
    if (!(b->flags & DQ_BURST_SHARED)) b->flags |= DQ_BURST_SHARED; // no store if set: others may read
}

void dqi_burst_share(dq_burst *b) {
    set_shared(dqi_burst_owner(b));
    set_shared(b);
}

// Returns the bytes from the start of packet i's segment to the end of its buffer.
static uint32_t room_of(const dq_burst *b, uint32_t seg, uint32_t i, const dq_region **region) {
    if (dqi_burst_hole(b, seg, i)) return 0;
    uint64_t off = b->off[seg][i];
    if (!*region || !dqi_region_has(*region, off)) *region = dqi_off_region(b->session, off);
    const dq_region *r = *region;
    if (!r) return 0;
    if (b->parent ? b->parent->slices : b->slices) return b->len[seg][i]; // other slices follow
    uint64_t start = b->slices || b->parent ? off - (off - r->offset) % r->stride
                                            : dqi_buf_off(r, b->bufs[seg][i]) - r->headroom;
    uint64_t end = start + r->headroom + r->conf.buf_size;
    return off < end ? (uint32_t)(end - off) : 0;
}

// Limits the packet's head to the packet's length.
static void trim_head(dq_burst *b, uint32_t seg, uint32_t i) {
    if (seg == 0 && b->heads && b->head_len[i] > b->len[0][i]) b->head_len[i] = b->len[0][i];
}

int dq_burst_set_len(dq_burst *b, uint32_t seg, int64_t i, uint32_t len) {
    if (seg >= b->nseg || i >= (int64_t)b->n || !dqi_burst_writable(b)) return DQ_INVALID_PARAMETER;
    dqi_burst_columns(b);
    uint32_t from = i < 0 ? 0 : (uint32_t)i, to = i < 0 ? b->n : from + 1;
    const dq_region *region = NULL;
    for (uint32_t k = from; k < to; k++)
        if (len > room_of(b, seg, k, &region)) return DQ_INVALID_PARAMETER;
    for (uint32_t k = from; k < to; k++) {
        b->bytes += (uint64_t)len - b->len[seg][k];
        b->len[seg][k] = len;
        trim_head(b, seg, k);
    }
    return DQ_OK;
}

// Reports whether buffers of single packets can be freed at once, because no selection or writer references
// the burst. If not, they are freed with the burst.
static bool gives_back(const dq_burst *b) { return !b->slices && !b->parent && dqi_burst_exclusive(b); }

int dq_burst_truncate(dq_burst *b, uint32_t n) {
    if (n > b->n || !dqi_burst_writable(b)) return DQ_INVALID_PARAMETER;
    dqi_burst_columns(b);
    b->bytes -= dqi_burst_sum(b, n, b->n - n);
    if (gives_back(b)) {
        for (uint32_t s = 0; s < b->nseg; s++)
            dqi_bufs_free(b->session, b->bufs[s] + n, b->n_bufs - n);
        b->n_bufs = n;
    }
    b->n = n;
    return DQ_OK;
}

// Sets the length of one segment of one packet to 0 permanently and frees its buffer.
static void free_one(dq_burst *b, uint32_t seg, uint32_t i) {
    if (!dqi_burst_writable(b)) return; // it is freed with the burst
    dqi_burst_columns(b);
    if (gives_back(b)) {
        dqi_bufs_free(b->session, b->bufs[seg] + i, 1);
        b->bufs[seg][i] = DQI_NO_BUF;
    }
    b->bytes -= b->len[seg][i];
    b->len[seg][i] = 0;
    trim_head(b, seg, i);
    b->holes = true;
}

int dq_burst_free_packet(dq_burst *b, uint32_t i) {
    if (i >= b->n) return DQ_INVALID_PARAMETER;
    for (uint32_t s = 0; s < b->nseg; s++)
        free_one(b, s, i);
    return DQ_OK;
}

int dq_burst_free_segment(dq_burst *b, uint32_t seg) {
    if (seg >= b->nseg) return DQ_INVALID_PARAMETER;
    for (uint32_t i = 0; i < b->n; i++)
        free_one(b, seg, i);
    return DQ_OK;
}

int dq_burst_free_packet_segment(dq_burst *b, uint32_t seg, uint32_t i) {
    if (seg >= b->nseg || i >= b->n) return DQ_INVALID_PARAMETER;
    free_one(b, seg, i);
    return DQ_OK;
}

int dq_burst_redirect(dq_burst *b, uint32_t conn, dq_burst **out) {
    *out = b;
    if (b->conn == conn) return DQ_OK;
    if (!dqi_burst_exclusive(b)) {
        int err = pick(b, NULL, b->n, out);
        if (err != DQ_OK) return err;
        dq_burst_unref(b);
    }
    (*out)->conn = conn;
    return DQ_OK;
}
