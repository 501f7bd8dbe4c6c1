// column.c: burst verbs: a field or number of every packet as a column, a condition as a list of indices or a
// count, a field set in all.
#include "core/burst.h"
#include "program/burst_ops.h"
#include "program/expr.h"

#include <string.h>

dqi_packets dqi_packets_of(dq_burst *b) {
    dqi_burst_columns(b);
    return dqi_packets_at(b, 0, b->n);
}

uint32_t dqi_verb_column(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f,
                         uint64_t *out, uint8_t *ok) {
    dqi_look look = dqi_look_for(f);
    uint32_t n = 0;
    for (uint32_t first = 0; first < in->n; first += DQI_LANES) {
        dqi_lanes l;
        dqi_col col;
        dqi_lanes_look(&l, k, in, first, look, payload);
        uint64_t has = dqi_lanes_load(&l, k, f, &col);
        memcpy(out + first, col.v, l.n * sizeof *out);
        if (ok && has == l.all)
            memset(ok + first, 1, l.n);
        else
            for (uint32_t i = 0; ok && i < l.n; i++)
                ok[first + i] = has >> i & 1;
        n += (uint32_t)__builtin_popcountll(has);
    }
    return n;
}

uint32_t dq_burst_column(dq_burst *b, const dq_field *f, uint64_t *out, uint8_t *ok) {
    if (dqi_field_check(f, NULL) != DQ_OK) return 0;
    dqi_packets in = dqi_packets_of(b);
    return dqi_verb_column(dqi_level_best(), &in, b->payload, f, out, ok);
}

uint32_t dq_burst_eval(dq_burst *b, const dq_prog *prog, uint64_t *out, uint8_t *ok) {
    dqi_packets in = dqi_packets_of(b);
    return dqi_prog_eval(prog, dqi_level_best(), &in, b->payload, out, ok);
}

uint64_t dq_column_differing_bits(const uint64_t *v, uint32_t n) {
    uint64_t differs = 0;
    for (uint32_t i = 0; i < n; i++)
        differs |= v[i] ^ v[0];
    return differs;
}

#define NARROW(type)                                                                                         \
    for (uint32_t i = 0; i < n; i++)                                                                         \
    ((type *)out)[i] = (type)v[i]

void dq_column_narrow(const uint64_t *v, uint32_t n, uint32_t bytes, void *out) {
    if (bytes == 1)
        NARROW(uint8_t);
    else if (bytes == 2)
        NARROW(uint16_t);
    else if (bytes == 4)
        NARROW(uint32_t);
    else
        NARROW(uint64_t);
}

uint32_t dq_burst_select(dq_burst *b, const dq_prog *prog, uint32_t *idx) {
    dqi_packets in = dqi_packets_of(b);
    return dqi_prog_select(prog, dqi_level_best(), &in, b->payload, idx);
}

uint32_t dq_burst_count(dq_burst *b, const dq_prog *prog) {
    dqi_packets in = dqi_packets_of(b);
    return dqi_prog_count(prog, dqi_level_best(), &in, b->payload);
}

int dq_burst_set(dq_burst *b, const dq_field *f, uint64_t v, uint64_t step, int csum) {
    if (!dqi_burst_writable(b) || dqi_field_check(f, NULL) != DQ_OK) return DQ_INVALID_PARAMETER;
    dqi_packets in = dqi_packets_of(b);
    return (int)dqi_verb_set(dqi_level_best(), &in, b->payload, f, v, step, csum);
}

uint64_t dqi_places(const dq_prog *place, const dqi_level *k, const dqi_packets *all, uint32_t first,
                    bool payload, dqi_col *out) {
    uint8_t ok[DQI_LANES];
    uint64_t has = 0;
    const dqi_packets in = {.base = all->base,
                            .off = all->off + first,
                            .len = all->len + first,
                            .whole = all->whole ? all->whole + first : NULL,
                            .origin = all->origin ? all->origin + first : NULL,
                            .flow = all->flow ? all->flow + first : NULL,
                            .ts = all->ts ? all->ts + first : NULL,
                            .time_origin = all->time_origin,
                            .n = all->n - first < DQI_LANES ? all->n - first : DQI_LANES};
    dqi_prog_eval(place, k, &in, payload, out->v, ok);
    for (uint32_t i = 0; i < in.n; i++)
        has |= (uint64_t)(ok[i] != 0) << i;
    return has;
}

int dq_burst_set_at(dq_burst *b, const dq_field *f, const dq_prog *place, uint64_t v, uint64_t step,
                    int csum) {
    if (!dqi_burst_writable(b) || dqi_field_check(f, NULL) != DQ_OK || f->base == DQ_BASE_META ||
        f->bit_offset > DQI_MOVED_MAX)
        return DQ_INVALID_PARAMETER;
    dqi_packets in = dqi_packets_of(b);
    return (int)dqi_verb_set_at(dqi_level_best(), &in, b->payload, f, place, v, step, csum);
}

bool dq_field_named(const char *name, dq_field *out) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(t[i].name, name) != 0) continue;
        *out = t[i].field;
        return true;
    }
    return false;
}

const char *dq_field_name(uint32_t i) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    return i < n ? t[i].name : NULL;
}

const char *dq_field_text(uint32_t i) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    return i < n ? t[i].help : NULL;
}
