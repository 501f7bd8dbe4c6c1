// rewrite.c: applies rewrite rules to 64 packets at a time. Constants are written directly into the packets
// (burst_set.c); values that depend on the old ones are read as a column, changed, and written back.
#include "program/rewrite.h"
#include "core/err.h"
#include "packet/packet.h"
#include "program/burst_ops.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

typedef struct rule {
    dq_rewrite_rule of; // with a copy of the maps
    dqi_setter setter, low;
    dq_prog *place; // NULL: at the field's own offset
} rule;

struct dqi_rewrite {
    bool compute, loops;
    uint32_t n;
    rule rules[];
};

// The packets of one step.
typedef struct part {
    const dqi_level *k;
    const dqi_packets *in;
    uint32_t first, n;
    bool payload;
    uint64_t number;       // index of in's first packet
    const uint32_t *loops; // replay loops of in's packets
} part;

// ---- rules ------------------------------------------------------------------------------------------------

static int init_rule(rule *r, const dq_rewrite_rule *from, int csum, dq_diag *diag) {
    r->of = *from;
    r->of.maps = NULL;
    int err = dqi_field_check(&from->field, diag);
    if (err != DQ_OK) return err;
    if (from->field.base == DQ_BASE_META && from->field.meta < DQ_META_ETHERTYPE)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "it is not part of the packet");
    if (from->place.n > 0 && (from->field.base == DQ_BASE_META || from->field.bit_offset > DQI_MOVED_MAX))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "this field can't be moved");
    if (from->place.n > 0) err = dq_prog_new(from->place.insns, from->place.n, &r->place, diag);
    if (err != DQ_OK) return err;
    dqi_setter_init(&r->setter, &from->field, csum);
    if (from->low.bit_width > 0) {
        if (from->kind != DQ_REWRITE_MAP)
            return dqi_fail(diag, DQ_INVALID_PARAMETER, "two halves are for maps");
        err = dqi_field_check(&from->low, diag);
        if (err != DQ_OK) return err;
        dqi_setter_init(&r->low, &from->low, csum);
    }
    if (from->n_maps == 0) return DQ_OK;
    dq_rewrite_map *maps = malloc(from->n_maps * sizeof *maps);
    if (!maps) return dqi_fail(diag, DQ_ESYS - ENOMEM, "no memory for %u maps", from->n_maps);
    memcpy(maps, from->maps, from->n_maps * sizeof *maps);
    r->of.maps = maps;
    return DQ_OK;
}

void dqi_rewrite_free(dqi_rewrite *r) {
    if (!r) return;
    for (uint32_t i = 0; i < r->n; i++) {
        dq_prog_free(r->rules[i].place);
        free((void *)(uintptr_t)r->rules[i].of.maps);
    }
    free(r);
}

int dqi_rewrite_new(const dq_rewrite_rule *rules, uint32_t n, int csum, dqi_rewrite **out, dq_diag *diag) {
    if (n > DQ_MAX_REWRITE_RULES)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "%u rules: there is room for %d", n,
                        DQ_MAX_REWRITE_RULES);
    dqi_rewrite *r = calloc(1, sizeof *r + n * sizeof r->rules[0]);
    if (!r) return dqi_fail(diag, DQ_ESYS - ENOMEM, "no memory for %u rules", n);
    r->compute = csum == DQ_CSUM_COMPUTE;
    for (uint32_t i = 0; i < n; i++) {
        dq_diag why = {{0}};
        int err = init_rule(&r->rules[r->n++], &rules[i], r->compute ? DQ_CSUM_KEEP : csum, &why);
        if (err != DQ_OK) {
            dqi_rewrite_free(r);
            return dqi_fail(diag, err, "rule %u: %s", i + 1, why.text);
        }
        r->loops |= rules[i].kind == DQ_REWRITE_LOOP;
    }
    *out = r;
    return DQ_OK;
}

bool dqi_rewrite_loops(const dqi_rewrite *r) { return r->loops; }

// ---- packets ----------------------------------------------------------------------------------------------

// Reads the old values of some of the packets; returns which have one.
static uint64_t read_old(const dq_field *f, const part *p, uint64_t lanes, const dqi_col *by, dqi_col *out) {
    dqi_lanes l;
    dqi_lanes_look(&l, p->k, p->in, p->first, dqi_look_for(f), p->payload);
    if (by) return dqi_lanes_load_at(&l, p->k, f, lanes, by, out);
    return lanes & dqi_lanes_load(&l, p->k, f, out);
}

static bool map_one(const dq_rewrite_rule *r, uint64_t *v, uint64_t *low) {
    for (uint32_t i = 0; i < r->n_maps; i++) {
        const dq_rewrite_map *m = &r->maps[i];
        if ((*v & m->mask) != m->from || (*low & m->low_mask) != m->low_from) continue;
        *v = (*v & ~m->mask) | m->to;
        *low = (*low & ~m->low_mask) | m->low_to;
        return true;
    }
    return false;
}

// Computes the new values, for maps together with the lower halves; returns which are to be written.
static uint64_t renew(const rule *r, const part *p, uint64_t lanes, dqi_col *v, dqi_col *low) {
    uint64_t some = 0;
    if (r->of.kind == DQ_REWRITE_LOOP) {
        for (uint32_t i = 0; p->loops && i < p->n; i++)
            v->v[i] += r->of.step * p->loops[p->first + i];
        return lanes;
    }
    for (uint32_t i = 0; i < p->n; i++) {
        uint64_t none = 0;
        some |= (uint64_t)map_one(&r->of, &v->v[i], low ? &low->v[i] : &none) << i;
    }
    return some & lanes;
}

// Applies a rule; returns the packets that have the field and were changed.
static uint64_t apply(const rule *r, const part *p) {
    dqi_col by, values, low;
    bool halves = r->of.low.bit_width > 0;
    dqi_set_to to = {.lanes = UINT64_MAX >> (DQI_LANES - p->n)};
    if (r->place) {
        to.lanes = dqi_places(r->place, p->k, p->in, p->first, p->payload, &by);
        to.by = &by;
    }
    if (r->of.kind == DQ_REWRITE_SET) {
        to.start = r->of.start + r->of.step * p->number;
        to.step = r->of.step;
    } else {
        to.lanes = read_old(&r->of.field, p, to.lanes, to.by, &values);
        if (halves) to.lanes = read_old(&r->of.low, p, to.lanes, to.by, &low);
        to.lanes = renew(r, p, to.lanes, &values, halves ? &low : NULL);
        to.values = &values;
    }
    uint64_t done = dqi_set_lanes(&r->setter, p->k, p->in, p->first, p->payload, &to);
    if (!halves) return done;
    to.values = &low;
    return done & dqi_set_lanes(&r->low, p->k, p->in, p->first, p->payload, &to);
}

static void compute(const part *p) {
    for (uint32_t i = p->first; i < p->first + p->n; i++) {
        dqi_pkt pkt;
        uint8_t *at = p->in->base + p->in->off[i];
        if (dqi_parse(at, p->in->len[i], &pkt)) dqi_csum_fill(at, &pkt);
    }
}

uint32_t dqi_rewrite_run(const dqi_rewrite *r, const dqi_level *k, const dqi_packets *in, bool payload,
                         uint64_t number, const uint32_t *loops) {
    uint32_t n = 0;
    for (uint32_t first = 0; first < in->n; first += DQI_LANES) {
        uint32_t m = in->n - first < DQI_LANES ? in->n - first : DQI_LANES;
        const part p = {k, in, first, m, payload, number, loops};
        uint64_t all = UINT64_MAX >> (DQI_LANES - m);
        for (uint32_t i = 0; i < r->n; i++)
            all &= apply(&r->rules[i], &p);
        if (r->compute && !payload) compute(&p);
        n += (uint32_t)__builtin_popcountll(all);
    }
    return n;
}
