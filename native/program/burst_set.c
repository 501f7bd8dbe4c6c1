// burst_set.c: sets a field in every packet of a burst, with its checksums.
//
// In plain frames (lanes.h) the field lies in the same 8 bytes of all packets: they are changed together,
// with the checksums that cover them. Other frames, fields beyond the headers and fields that control
// checksum coverage are set one by one.
#include "program/burst_ops.h"
#include "program/dq_program.h"

enum { IP_CSUM = 24 }; // of plain frames

// ---- plain frames -----------------------------------------------------------------------------------------

// Reports whether bytes [from, to) and [a, b) overlap.
static bool touches(uint32_t from, uint32_t to, uint32_t a, uint32_t b) { return from < b && to > a; }

// Reports whether the bytes are checksums or control their coverage in plain frames (RFC 791, 768, 9293).
static bool is_special(uint32_t from, uint32_t to, uint8_t need) {
    static const uint8_t ipv4[][2] = {{14, 15}, {16, 18}, {20, 22}, {23, 24}, {24, 26}};
    for (size_t i = 0; i < sizeof ipv4 / sizeof *ipv4; i++)
        if (touches(from, to, ipv4[i][0], ipv4[i][1])) return true;
    if (need != DQ_HAS_TCP && touches(from, to, 38, 42)) return true;
    return touches(from, to, 50, 52);
}

// Computes the patch; false: plain frames can't be changed together.
static bool find_patch(const dqi_setter *c, dqi_patch *out) {
    uint32_t bit, width;
    *out = (dqi_patch){0};
    if (c->f.flags & DQ_FIELD_LE || !dqi_plain_field(&c->f, &bit, &width, &out->who)) return false;
    uint32_t from = bit / 8, to = (bit + width + 7) / 8;
    out->at = from < DQI_PLAIN_LEN - 8 ? from & ~1u : DQI_PLAIN_LEN - 8;
    if (from >= IP_CSUM && to <= IP_CSUM + 8) out->at = IP_CSUM; // one store for both
    if (to > out->at + 8) return false;
    out->shift = (out->at + 8) * 8 - bit - width;
    out->mask = dqi_wire64(UINT64_MAX >> (64 - width) << out->shift);
    if (c->csum == DQ_CSUM_KEEP || to <= 14) return true;
    if (from < 14 || is_special(from, to, c->f.need) || (from < 34 && to > 34)) return false;
    out->in_ip = from < 34;
    out->in_l4 = to > 26;
    if (out->in_ip && out->at <= IP_CSUM && IP_CSUM + 2 <= out->at + 8) {
        out->ip_shift = DQI_PAIR_SHIFT(IP_CSUM - out->at);
        out->ip_mask = 0xffffull << out->ip_shift;
    }
    return from < 34 || c->f.base == DQ_BASE_L4; // other fields may exceed some plain frames
}

// ---- any packet -------------------------------------------------------------------------------------------

static bool set_one(const dqi_packets *in, uint32_t i, bool payload, const dq_field *f, uint64_t v,
                    int csum) {
    uint8_t *p = in->base + in->off[i];
    uint32_t len = in->len[i], width;
    uint64_t bit;
    dqi_pkt pkt;
    if (payload)
        dqi_parse_payload(len, &pkt);
    else
        dqi_parse(p, len, &pkt);
    if (!dqi_field_place(len, &pkt, f, &bit, &width)) return false;
    if (payload || csum == DQ_CSUM_KEEP) return dqi_field_set(p, len, &pkt, f, v);
    dqi_csum_change ch;
    dqi_csum_before(&ch, p, &pkt, (uint32_t)(bit / 8), (uint32_t)((bit + width + 7) / 8));
    dqi_field_set(p, len, &pkt, f, v);
    dqi_csum_after(&ch, p, &pkt);
    return true;
}

// ---- both -------------------------------------------------------------------------------------------------

void dqi_setter_init(dqi_setter *c, const dq_field *f, int csum) {
    *c = (dqi_setter){.f = *f, .csum = csum};
    c->together = find_patch(c, &c->patch);
}

uint64_t dqi_set_lanes(const dqi_setter *c, const dqi_level *k, const dqi_packets *in, uint32_t first,
                       bool payload, const dqi_set_to *to) {
    uint32_t m = in->n - first < DQI_LANES ? in->n - first : DQI_LANES;
    uint64_t plain = 0, done = 0, lanes = to->lanes & UINT64_MAX >> (DQI_LANES - m);
    if (c->together && !payload && !to->by) {
        dqi_patch patch = c->patch;
        patch.start = to->start;
        patch.step = to->step;
        patch.values = to->values;
        patch.lanes = lanes;
        done = k->patch(in, first, m, &patch, &plain);
    }
    for (uint64_t odd = lanes & ~plain; odd != 0; odd &= odd - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(odd);
        dq_field f = c->f;
        if (to->by && to->by->v[i] > DQI_MOVED_MAX) continue;
        if (to->by) f.bit_offset += (uint32_t)to->by->v[i];
        uint64_t v = to->values ? to->values->v[i] : to->start + to->step * (first + i);
        done |= (uint64_t)set_one(in, first + i, payload, &f, v, c->csum) << i;
    }
    return done;
}

uint32_t dqi_verb_set(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f, uint64_t v,
                      uint64_t step, int csum) {
    const dqi_set_to to = {.lanes = UINT64_MAX, .start = v, .step = step};
    dqi_setter c;
    dqi_setter_init(&c, f, csum);
    uint32_t n = 0;
    for (uint32_t first = 0; first < in->n; first += DQI_LANES)
        n += (uint32_t)__builtin_popcountll(dqi_set_lanes(&c, k, in, first, payload, &to));
    return n;
}

uint32_t dqi_verb_set_at(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f,
                         const dq_prog *place, uint64_t v, uint64_t step, int csum) {
    dqi_set_to to = {.start = v, .step = step};
    dqi_setter c;
    dqi_col by;
    dqi_setter_init(&c, f, csum);
    to.by = &by;
    uint32_t n = 0;
    for (uint32_t first = 0; first < in->n; first += DQI_LANES) {
        to.lanes = dqi_places(place, k, in, first, payload, &by);
        n += (uint32_t)__builtin_popcountll(dqi_set_lanes(&c, k, in, first, payload, &to));
    }
    return n;
}
