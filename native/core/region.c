// region.c: regions and the pools of their buffers.
//
// A pool is a LIFO stack of buffer ids: the buffer used last is most likely cached.
#include "core/region.h"
#include "core/core.h"
#include "core/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BUF_SIZE (1u << 31) // a stride must fit in 32 bits

struct dqi_pool {
    dqi_spin lock;
    uint32_t n;
    uint32_t ids[];
};

const char *dq_kind_name(int kind) {
    static const char *const names[DQ_KINDS] = {
#define X(id, name) name,
        DQ_KIND_ROWS(X)
#undef X
    };
    return kind >= 0 && kind < DQ_KINDS ? names[kind] : NULL;
}

int dqi_region_check(const dq_region_conf *conf, dq_diag *diag) {
    if (conf->buf_size > MAX_BUF_SIZE)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "region %s: buf_size is above %u", conf->name,
                        MAX_BUF_SIZE);
    if (conf->num_bufs == 0 || conf->buf_size == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "region %s: num_bufs and buf_size must be above 0",
                        conf->name);
    return DQ_OK;
}

int dqi_region_append(dq_session *s, const dq_region_conf *conf, dq_region **out, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    uint32_t n = core->n_regions;
    if (n == DQI_MAX_REGIONS)
        return dqi_fail(diag, DQ_NO_SPACE_AVAILABLE, "region %s: more than %d regions", conf->name,
                        DQI_MAX_REGIONS);
    dq_region *r = calloc(1, sizeof *r);
    if (!r) return dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory", conf->name);
    r->conf = *conf;
    r->cpu = conf->kind != DQ_KIND_DARK && conf->kind != DQ_KIND_DEVICE;
    r->session = s;
    dq_region *last = n ? core->regions[n - 1] : NULL;
    uint64_t first = last ? (uint64_t)last->first_id + last->n_ids : 0;
    if (first + conf->num_bufs >= DQI_NO_BUF) {
        free(r);
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "region %s: the session has more than 2^32 buffers",
                        conf->name);
    }
    r->first_id = (uint32_t)first;
    r->n_ids = conf->num_bufs;
    r->spare.id = DQI_NO_BUF;
    core->regions[n] = r;
    core->n_regions = n + 1; // published: pollers look buffers up in the list
    *out = r;
    return DQ_OK;
}

int dq_region_add(dq_session *s, const dq_region_conf *conf, dq_region **out, dq_diag *diag) {
    if (dqi_core_of(s)->open)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "region %s: the session is open already", conf->name);
    int err = dqi_region_check(conf, diag);
    return err == DQ_OK ? dqi_region_append(s, conf, out, diag) : err;
}

int dqi_region_share(dq_region *r, dq_diag *diag) {
    if (!r->holders) r->holders = calloc(r->conf.num_bufs, sizeof *r->holders);
    return r->holders
               ? DQ_OK
               : dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory for its side array", r->conf.name);
}

void dqi_region_want_groups(dq_region *r, uint32_t bytes, uint32_t least) {
    r->want_bytes = bytes;
    r->want_least = least;
}

// Forms the requested groups of the region's buffers; the last group is padded, so that no buffer is lost.
static int form_groups(dq_session *s, dq_region *r, dq_diag *diag) {
    uint32_t num = r->conf.num_bufs;
    r->group = 1;
    r->n_groups = num;
    if (r->want_bytes == 0) return DQ_OK;
    uint32_t group = (uint32_t)(((uint64_t)r->want_bytes + r->headroom + r->stride - 1) / r->stride);
    uint32_t n = (num + group - 1) / group;
    if (n < r->want_least) {
        dqi_note(s,
                 "region %s: %u buffers are too few for super-buffers: datagrams come one by one; hint: %u "
                 "buffers let the kernel hand over 64 KiB at a time",
                 r->conf.name, num, r->want_least * group);
        return DQ_OK;
    }
    r->group = group;
    r->n_groups = n;
    r->across = calloc(n, 1);
    dqi_note(s, "region %s: %u buffers of %u bytes are %u super-buffers of %llu KiB", r->conf.name, num,
             r->conf.buf_size, n, (unsigned long long)r->stride * group >> 10);
    return r->across ? dqi_region_share(r, diag)
                     : dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory for its groups", r->conf.name);
}

uint32_t dqi_page_size(void) { return (uint32_t)sysconf(_SC_PAGESIZE); }

uint32_t dqi_stride(uint32_t buf_size, uint32_t headroom, uint32_t align) {
    uint32_t natural = buf_size & -buf_size, page = dqi_page_size();
    if (natural > page) natural = page;
    if (headroom == 0 && natural > align) align = natural;
    return (uint32_t)dqi_round_up((uint64_t)headroom + buf_size, align);
}

int dqi_region_size(dq_region *r, uint32_t align, dq_diag *diag) {
    r->stride = dqi_stride(r->conf.buf_size, r->headroom, align);
    return form_groups(r->session, r, diag);
}

// ---- pools -----------------------------------------------------------------------------------------------

int dqi_pool_fill(dq_region *r) {
    uint32_t n = r->n_groups;
    r->pool = malloc(sizeof *r->pool + n * sizeof(uint32_t));
    if (!r->pool) return -ENOMEM;
    r->pool->lock = (dqi_spin){0};
    r->pool->n = n;
    for (uint32_t i = 0; i < n; i++)
        r->pool->ids[i] = r->first_id + (n - 1 - i) * r->group;
    return 0;
}

int dqi_pools_fill(dq_session *s, dq_diag *diag) {
    dqi_core *core = dqi_core_of(s);
    for (uint32_t i = 0; i < core->n_regions; i++)
        if (dqi_pool_fill(core->regions[i]) != 0)
            return dqi_fail(diag, DQ_ESYS - ENOMEM, "region %s: no memory", core->regions[i]->conf.name);
    return DQ_OK;
}

void dqi_region_forget(dq_region *r) {
    free(r->pool);
    free(r->across);
    free(atomic_exchange(&r->peers, NULL));
    free(atomic_exchange(&r->targets, NULL));
    free(atomic_exchange(&r->loops, NULL));
    free(r->holders);
    r->pool = NULL;
    r->across = NULL;
    r->holders = NULL;
}

uint32_t dqi_region_out(dq_region *r) {
    dqi_lock(&r->spare_lock);
    uint32_t spare = r->spare.id != DQI_NO_BUF;
    dqi_unlock(&r->spare_lock);
    return r->n_groups - dqi_region_level(r) - spare;
}

uint64_t dqi_regions_free(dq_session *s) {
    dqi_core *core = dqi_core_of(s);
    uint64_t missing = 0;
    for (uint32_t i = 0; i < core->n_regions; i++) {
        dq_region *r = core->regions[i];
        if (r->pool) dqi_bufs_free(s, &r->spare.id, 1);
        if (r->pool) missing += (uint64_t)(r->n_groups - r->pool->n) * r->group;
        dqi_region_forget(r);
        if (r->bound) r->bound->release(r->bound);
        free(r);
    }
    core->n_regions = 0;
    return missing;
}

void dqi_region_ascend(dq_region *r) {
    uint32_t *ids = r->pool->ids;
    for (uint32_t i = 0, k = r->pool->n; i + 1 < k; i++) {
        uint32_t last = ids[--k];
        ids[k] = ids[i];
        ids[i] = last;
    }
}

void dq_region_read(const dq_region *r, dq_region_info *out) {
    *out = (dq_region_info){
        .base = r->cpu ? r->base : NULL,
        .device = r->device,
        .offset = r->offset,
        .stride = r->stride,
        .headroom = r->headroom,
        .num_bufs = r->conf.num_bufs,
        .buf_size = r->conf.buf_size,
        .group = r->group,
        .kind = r->conf.kind,
        .huge = r->huge,
        .cpu = r->cpu,
        .bytes = dqi_region_bytes(r),
    };
    if (!r->pool) return;
    out->free_bufs = dqi_region_level(r) * r->group;
    if (out->free_bufs > out->num_bufs) out->free_bufs = out->num_bufs; // the last group is padded
}

uint32_t dqi_region_level(const dq_region *r) {
    dqi_lock(&r->pool->lock);
    uint32_t n = r->pool->n;
    dqi_unlock(&r->pool->lock);
    return n;
}

// ---- buffers ----------------------------------------------------------------------------------------------

static uint32_t pop_ids(dq_region *r, uint32_t *ids, uint32_t n, bool all) {
    dqi_pool *p = r->pool;
    dqi_lock(&p->lock);
    if (n > p->n) n = all ? 0 : p->n;
    p->n -= n;
    memcpy(ids, p->ids + p->n, n * sizeof *ids);
    dqi_unlock(&p->lock);
    if (r->holders)
        for (uint32_t i = 0; i < n; i++)
            atomic_store_explicit(&r->holders[ids[i] - r->first_id], 1, memory_order_relaxed);
    return n;
}

uint32_t dqi_bufs_alloc(dq_region *r, uint32_t *ids, uint32_t n) { return pop_ids(r, ids, n, true); }

uint32_t dqi_bufs_some(dq_region *r, uint32_t *ids, uint32_t n) { return pop_ids(r, ids, n, false); }

dq_region *dqi_buf_region(const dq_session *s, uint32_t id) {
    const dqi_core *core = dqi_core_of(s);
    for (uint32_t i = 0; i < core->n_regions; i++)
        if (id - core->regions[i]->first_id < core->regions[i]->n_ids) return core->regions[i];
    return NULL;
}

dq_region *dqi_off_region(const dq_session *s, uint64_t off) {
    const dqi_core *core = dqi_core_of(s);
    for (uint32_t i = 0; i < core->n_regions; i++)
        if (dqi_region_has(core->regions[i], off)) return core->regions[i];
    return NULL;
}

void dqi_buf_hold(dq_region *r, uint32_t id) {
    atomic_fetch_add_explicit(&r->holders[id - r->first_id], 1, memory_order_relaxed);
}

static void push_ids(dq_region *r, const uint32_t *ids, uint32_t n) {
    dqi_lock(&r->pool->lock);
    memcpy(r->pool->ids + r->pool->n, ids, n * sizeof *ids);
    r->pool->n += n;
    dqi_unlock(&r->pool->lock);
}

// Drops one reference of each; buffers without references return to the pool.
static void drop_holders(dq_region *r, const uint32_t *ids, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        if (atomic_fetch_sub_explicit(&r->holders[ids[i] - r->first_id], 1, memory_order_acq_rel) == 1)
            push_ids(r, ids + i, 1);
}

// Has no early exit, so that the compiler vectorizes the loop: all ids in one region is the common case.
static bool all_in(const dq_region *r, const uint32_t *ids, uint32_t n) {
    const uint32_t first = r->first_id, num = r->conf.num_bufs;
    uint32_t outside = 0;
    for (uint32_t i = 0; i < n; i++)
        outside |= ids[i] - first >= num;
    return !outside;
}

void dqi_bufs_free(dq_session *s, const uint32_t *ids, uint32_t n) {
    for (uint32_t i = 0; i < n;) {
        if (ids[i] == DQI_NO_BUF) {
            i++;
            continue;
        }
        dq_region *r = dqi_buf_region(s, ids[i]);
        uint32_t k = n;
        if (!all_in(r, ids + i, n - i))
            for (k = i + 1; k < n && ids[k] - r->first_id < r->conf.num_bufs;)
                k++;
        if (r->holders)
            drop_holders(r, ids + i, k - i);
        else
            push_ids(r, ids + i, k - i);
        i = k;
    }
}

uint32_t dqi_spare_take(dq_region *r, dqi_spare *s) {
    if (s->id == DQI_NO_BUF || s->used == r->group) {
        dqi_bufs_free(r->session, &s->id, 1);
        *s = (dqi_spare){.id = DQI_NO_BUF};
        if (dqi_bufs_alloc(r, &s->id, 1) == 0) return DQI_NO_BUF;
        r->across[(s->id - r->first_id) / r->group] = 0;
    }
    return s->id + s->used++;
}
