// burst_set.c: sets a field in every packet of a burst, with its checksums.
//
// In plain frames (lanes.h) the field lies in the same 8 bytes of all packets: they are changed together, and
// so are the checksums that cover them. Other frames, fields beyond the headers and fields that say what
// checksums cover are set one by one.
#include "program/dq_program.h"
#include "program/burst_ops.h"

enum { IP_CSUM = 24 }; // of plain frames

// One call's parameters.
typedef struct change {
    dq_field f;
    uint64_t v, step;
    int csum;
} change;

// ---- plain frames -----------------------------------------------------------------------------------------

// Bytes [from, to) touch one of [a, b).
static bool touches(uint32_t from, uint32_t to, uint32_t a, uint32_t b) { return from < b && to > a; }

// Bytes that say what a checksum covers, and checksums, in plain frames (RFC 791, 768, 9293).
static bool is_special(uint32_t from, uint32_t to, uint8_t need) {
    static const uint8_t ipv4[][2] = {{14, 15}, {16, 18}, {20, 22}, {23, 24}, {24, 26}};
    for (size_t i = 0; i < sizeof ipv4 / sizeof *ipv4; i++)
        if (touches(from, to, ipv4[i][0], ipv4[i][1])) return true;
    if (need != DQ_HAS_TCP && touches(from, to, 38, 42)) return true;
    return touches(from, to, 50, 52);
}

// False where plain frames can't be changed together.
static bool find_patch(const change *c, dqi_patch *out) {
    uint32_t bit, width;
    *out = (dqi_patch){.v = c->v, .step = c->step};
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
    return from < 34 || c->f.base == DQ_BASE_L4; // else some plain frames may end there
}

// ---- any packet -------------------------------------------------------------------------------------------

static bool set_one(const dqi_packets *in, uint32_t i, bool payload, const change *c) {
    uint8_t *p = in->base + in->off[i];
    uint32_t len = in->len[i], width;
    uint64_t v = c->v + c->step * i, bit;
    dqi_pkt pkt;
    if (payload)
        dqi_parse_payload(len, &pkt);
    else
        dqi_parse(p, len, &pkt);
    if (!dqi_field_place(len, &pkt, &c->f, &bit, &width)) return false;
    if (payload || c->csum == DQ_CSUM_KEEP) return dqi_field_set(p, len, &pkt, &c->f, v);
    dqi_csum_change ch;
    dqi_csum_before(&ch, p, &pkt, (uint32_t)(bit / 8), (uint32_t)((bit + width + 7) / 8));
    dqi_field_set(p, len, &pkt, &c->f, v);
    dqi_csum_after(&ch, p, &pkt);
    return true;
}

uint32_t dqi_verb_set(const dqi_level *k, const dqi_packets *in, bool payload, const dq_field *f, uint64_t v,
                      uint64_t step, int csum) {
    change c = {.f = *f, .v = v, .step = step, .csum = csum};
    dqi_patch patch;
    bool together = !payload && find_patch(&c, &patch);
    uint32_t n = 0;
    for (uint32_t first = 0; first < in->n; first += DQI_LANES) {
        uint32_t m = in->n - first < DQI_LANES ? in->n - first : DQI_LANES;
        uint64_t plain = 0, odd = UINT64_MAX >> (DQI_LANES - m);
        if (together) n += (uint32_t)__builtin_popcountll(k->patch(in, first, m, &patch, &plain));
        for (odd &= ~plain; odd != 0; odd &= odd - 1)
            n += set_one(in, first + (uint32_t)__builtin_ctzll(odd), payload, &c);
    }
    return n;
}

uint32_t dqi_verb_set_at(const dqi_packets *in, bool payload, const dq_field *f, const uint64_t *by,
                         const uint8_t *ok, uint64_t v, uint64_t step, int csum) {
    uint32_t n = 0;
    for (uint32_t i = 0; i < in->n; i++) {
        change c = {.f = *f, .v = v, .step = step, .csum = csum};
        if (!ok[i] || by[i] > DQI_MOVED_MAX) continue;
        c.f.bit_offset += (uint32_t)by[i];
        n += set_one(in, i, payload, &c);
    }
    return n;
}
