// staged.c: runs of bytes in the two buffers of a staging memory, in the order of use.
#include "writer/staged.h"
#include "core/burst.h"

static bool is_before(const dqi_staged_place *a, const dqi_staged_place *b) {
    if (a->i != b->i) return a->i < b->i;
    return a->seg != b->seg ? a->seg < b->seg : a->at < b->at;
}

// Advances to the next byte in device-only memory; false: none left.
static bool seek(const dq_burst *b, dqi_staged_place *p) {
    for (; p->i < b->n; p->i++, p->seg = 0)
        for (; p->seg < b->nseg; p->seg++, p->at = 0)
            if ((b->device_only >> p->seg & 1) && p->at < b->len[p->seg][p->i]) return true;
    return false;
}

static uint8_t *buffer_of(const dqi_staged *s, uint32_t run) { return dqi_staging_buffer(s->staging, run); }

// Starts filling a free buffer from this place on; false: no more data.
static bool begin_run(dqi_staged *s, dqi_staged_place at) {
    uint32_t k = (s->first + s->n) % 2;
    dqi_staged_run *r = &s->runs[k];
    if (!seek(s->b, &at)) return false;
    r->last = at;
    r->bytes = r->offset = 0;
    while (r->bytes < DQI_STAGING_BYTES && seek(s->b, &at)) {
        uint32_t left = s->b->len[at.seg][at.i] - at.at, room = DQI_STAGING_BYTES - r->bytes;
        uint32_t n = left < room ? left : room;
        dqi_staging_copy(s->staging, s->b, at.seg, at.i, at.at, buffer_of(s, k) + r->bytes, n, &r->lists);
        r->bytes += n;
        at.at += n;
    }
    r->end = at;
    dqi_staging_push(s->staging);
    s->n++;
    return true;
}

static dqi_staged_place end_of(const dqi_staged *s) { return s->runs[(s->first + s->n - 1) % 2].end; }

static void drop_first(dqi_staged *s) {
    s->first = (s->first + 1) % 2;
    s->n--;
    s->spent = false;
}

void dqi_staged_begin(dqi_staged *s, dq_burst *b) {
    s->b = b;
    s->begun = false;
}

void dqi_staged_end(dqi_staged *s) {
    if (s->n > 0) dqi_staging_land(s->staging, NULL);
    s->n = 0;
    s->spent = false;
}

// Advances the run to this place, which is within it.
static void advance(const dq_burst *b, dqi_staged_run *r, const dqi_staged_place *to) {
    dqi_staged_place at = r->last;
    while (seek(b, &at) && (at.i != to->i || at.seg != to->seg)) {
        r->offset += b->len[at.seg][at.i] - at.at;
        at = (dqi_staged_place){at.i, at.seg + 1, 0};
    }
    r->offset += to->at - at.at;
    r->last = *to;
}

const uint8_t *dqi_staged_bytes(dqi_staged *s, uint32_t seg, uint32_t i, uint32_t at, uint32_t *n) {
    if (!(s->b->device_only >> seg & 1)) return dqi_bytes(s->b, seg, i) + at;
    const dqi_staged_place p = {i, seg, at};
    if (!s->begun && begin_run(s, p)) begin_run(s, end_of(s));
    s->begun = true;
    if (s->n > 0 && !is_before(&p, &s->runs[s->first].end)) {
        s->spent = true;
        return NULL;
    }
    dqi_staged_run *r = &s->runs[s->first];
    *n = s->n > 0 && dqi_staging_land(s->staging, &r->lists) ? *n : 0;
    if (*n == 0) return NULL;
    advance(s->b, r, &p);
    if (*n > r->bytes - r->offset) *n = r->bytes - r->offset;
    return buffer_of(s, s->first) + r->offset;
}

void dqi_staged_release(dqi_staged *s) {
    if (!s->spent) return;
    dqi_staged_place end = end_of(s);
    drop_first(s);
    begin_run(s, end);
}
