// lanes.c: finds the plain frames among 64 packets and reads a field of all of them.
#include "packet/lanes.h"

enum { PLAIN_L3 = 14, PLAIN_L4 = 34 };

const uint8_t dqi_zeros[DQI_PLAIN_LEN];

static inline uint64_t load64(const uint8_t *p) { return dqi_wire64(dqi_word(p)); }

static void find_raw(dqi_lanes *l) {
    l->least = UINT32_MAX;
    for (uint32_t i = 0; i < l->n; i++) {
        l->p.v[i] = (uintptr_t)dqi_lane_bytes(l, i);
        l->len.v[i] = l->in->len[l->first + i];
        l->least = l->len.v[i] < l->least ? l->len.v[i] : l->least;
    }
}

void dqi_lanes_look(dqi_lanes *l, const dqi_level *k, const dqi_packets *in, uint32_t first, dqi_look look,
                    bool payload) {
    l->in = in;
    l->first = first;
    l->n = in->n - first < DQI_LANES ? in->n - first : DQI_LANES;
    l->look = payload ? DQI_LOOK_RAW : look;
    l->payload = payload;
    l->all = l->n == DQI_LANES ? UINT64_MAX : (1ull << l->n) - 1;
    l->parsed = false;
    l->reached = l->n_words = 0;
    l->plain = l->udp = l->tcp = 0;
    if (l->look == DQI_LOOK_RAW) {
        l->plain = l->all;
        find_raw(l);
        return;
    }
    if (l->look == DQI_LOOK_EXTENTS)
        k->extents(l);
    else
        k->shape(l);
}

void dqi_lanes_parse(const dqi_lanes *l, uint32_t lane, dqi_pkt *out) {
    uint32_t i = l->first + lane;
    if (l->payload)
        dqi_parse_payload(l->in->len[i], out);
    else
        dqi_parse(dqi_lane_bytes(l, lane), l->in->len[i], out);
    out->index = i;
    out->flow_id = l->in->flow ? l->in->flow[i] : 0;
    bool timed = l->in->ts && l->in->ts[i] != DQ_NO_TIME;
    out->rx_time_ns = timed ? l->in->ts[i] - l->in->time_origin : 0;
    out->has_meta =
        (uint8_t)(DQI_HAS_INDEX | (l->in->flow ? DQI_HAS_FLOW_ID : 0) | (timed ? DQI_HAS_RX_TIME : 0));
}

const dqi_pkt *dqi_lanes_odd(dqi_lanes *l, uint32_t lane) {
    if (!l->parsed)
        for (uint64_t odd = l->all & ~l->plain; odd != 0; odd &= odd - 1) {
            uint32_t i = (uint32_t)__builtin_ctzll(odd);
            dqi_lanes_parse(l, i, &l->odd[i]);
        }
    l->parsed = true;
    return &l->odd[lane];
}

// ---- field positions --------------------------------------------------------------------------------------

// Returns the plain lanes that satisfy a field's need.
static uint64_t lanes_with(const dqi_lanes *l, uint8_t need) {
    if (need == 0) return l->plain;
    if (l->look == DQI_LOOK_RAW) return 0;
    if (need & (DQ_HAS_ETH | DQ_HAS_IPV4)) return l->plain;
    return (need & DQ_HAS_UDP ? l->udp : 0) | (need & DQ_HAS_TCP ? l->tcp : 0);
}

// Returns the bit position in plain frames of header fields that vary otherwise; 0: absent.
static uint32_t plain_moving(uint8_t meta) {
    switch (meta) {
    case DQ_META_ETHERTYPE:
        return 12 * 8;
    case DQ_META_IP_PROTO:
        return 23 * 8;
    case DQ_META_IP_TTL:
        return 22 * 8;
    case DQ_META_IP_TOS:
        return 15 * 8;
    default:
        return 0;
    }
}

// Returns the bits of a transport header that all of these transports have.
static uint32_t common_l4(uint8_t need) {
    if (need == DQ_HAS_TCP) return DQI_TCP_LEN * 8;
    return need != 0 && (need & ~(DQ_HAS_UDP | DQ_HAS_TCP)) == 0 ? DQI_UDP_LEN * 8 : 0;
}

// Returns the field's bit position in all plain frames, or DQI_NONE.
static uint32_t fixed_bit(const dq_field *f) {
    if (f->bit_offset > DQI_PLAIN_LEN * 8 || f->bit_offset % 8 + f->bit_width > 64) return DQI_NONE;
    if (f->flags & DQ_FIELD_LE) return DQI_NONE;
    uint32_t end = f->bit_offset + f->bit_width;
    switch (f->base) {
    case DQ_BASE_START:
        return end <= DQI_PLAIN_LEN * 8 ? f->bit_offset : DQI_NONE;
    case DQ_BASE_L3:
        return end <= DQI_IPV4_LEN * 8 ? PLAIN_L3 * 8 + f->bit_offset : DQI_NONE;
    case DQ_BASE_L4:
        return end <= common_l4(f->need) ? PLAIN_L4 * 8 + f->bit_offset : DQI_NONE;
    case DQ_BASE_META:
        return f->meta > DQ_META_PAYLOAD_LEN ? plain_moving(f->meta) : DQI_NONE;
    default:
        return DQI_NONE;
    }
}

dqi_look dqi_look_for(const dq_field *f) {
    if (dqi_field_unparsed(f)) return DQI_LOOK_RAW;
    return fixed_bit(f) == DQI_NONE ? DQI_LOOK_EXTENTS : DQI_LOOK_HEADERS;
}

bool dqi_plain_field(const dq_field *f, uint32_t *bit, uint32_t *width, dqi_who *who) {
    bool all = f->need == 0 || f->need & (DQ_HAS_ETH | DQ_HAS_IPV4);
    *bit = fixed_bit(f);
    *width = f->base != DQ_BASE_META ? f->bit_width : f->meta == DQ_META_ETHERTYPE ? 16 : 8;
    *who = (dqi_who){.any = all ? UINT64_MAX : 0,
                     .udp = f->need & DQ_HAS_UDP ? UINT64_MAX : 0,
                     .tcp = f->need & DQ_HAS_TCP ? UINT64_MAX : 0};
    if (*bit == 0 && f->base == DQ_BASE_META) *who = (dqi_who){0};
    return *bit != DQI_NONE;
}

// ---- loading ----------------------------------------------------------------------------------------------

// Loads a field with the same position in every plain frame.
static void load_fixed(const dqi_lanes *l, const dqi_level *k, uint32_t bit, uint32_t width, dqi_col *out) {
    uint32_t at = bit / 8 < DQI_PLAIN_LEN - 8 ? bit / 8 : DQI_PLAIN_LEN - 8;
    k->fixed(l, at, bit - at * 8, 64 - width, out);
}

// Loads bits that may span 9 bytes, or lie in a packet of fewer than 8.
static inline uint64_t load_at(const uint8_t *p, uint64_t len, uint64_t byte, uint32_t skip, uint32_t width) {
    if (skip + width > 64 || len < 8) return dqi_bits_get(p, byte * 8 + skip, width);
    uint64_t at = byte < len - 8 ? byte : len - 8;
    return load64(p + at) << ((byte - at) * 8 + skip) >> (64 - width);
}

// Does the same, with bits counted from the least significant one.
static inline uint64_t load_le_at(const uint8_t *p, uint64_t len, uint64_t byte, uint32_t skip,
                                  uint32_t width) {
    if (skip + width > 64 || len < 8) return dqi_bits_get_le(p, byte * 8 + skip, width);
    uint64_t at = byte < len - 8 ? byte : len - 8;
    return __builtin_bswap64(load64(p + at)) >> ((byte - at) * 8 + skip) & (UINT64_MAX >> (64 - width));
}

// Bounds of a field in plain lanes: it is relative to `start` plus `from` (NULL: 0) and ends at `limit`.
typedef struct bounds {
    uint32_t start;
    const dqi_col *from, *limit;
} bounds;

// Returns false if plain lanes have no such header.
static bool find_bounds(const dqi_lanes *l, uint8_t base, bounds *b) {
    *b = (bounds){.limit = &l->len};
    if (base == DQ_BASE_START) return true;
    if (l->look == DQI_LOOK_RAW) return base == DQ_BASE_PAYLOAD;
    b->limit = base == DQ_BASE_PAYLOAD ? &l->limit : &l->end;
    if (base == DQ_BASE_PAYLOAD)
        b->from = &l->payload_at;
    else
        b->start = base == DQ_BASE_L3 ? PLAIN_L3 : PLAIN_L4;
    return true;
}

static dqi_reach *reach_of(dqi_lanes *l, const dqi_level *k, uint8_t base, const bounds *b) {
    dqi_reach *r = &l->reach[base];
    if (l->reached >> base & 1) return r;
    l->reached |= 1u << base;
    r->at = &l->p;
    r->start = b->start;
    if (b->from && l->same_payload_at && l->plain != 0) {
        r->start = b->from->v[__builtin_ctzll(l->plain)];
    } else if (b->from) {
        r->at = &r->own;
        k->reach(l, b->from, &r->own);
    }
    r->end = r->room = r->at == &l->p ? l->least : 0;
    return r;
}

// Returns the plain lanes in which `end` bytes from there lie below the limit; *all: bytes that all lanes are
// known to have.
static uint64_t holding(const dqi_lanes *l, const dqi_level *k, const dqi_reach *r, const dqi_col *limit,
                        uint64_t end, uint64_t *all) {
    if (end <= *all) return l->plain;
    uint64_t has = k->holding(l, r->at, limit, end) & l->plain;
    if (has == l->plain) *all = end;
    return has;
}

// Returns the cached or newly read words that contain these bytes, 8 at most.
static const dqi_words *words_of(dqi_lanes *l, const dqi_level *k, dqi_reach *r, uint8_t base, uint64_t byte,
                                 uint32_t bytes) {
    uint32_t kept = l->n_words < DQI_WORDS ? l->n_words : DQI_WORDS;
    for (const dqi_words *w = l->words; w < l->words + kept; w++)
        if (w->base == base && w->byte <= byte && byte + bytes <= w->byte + 8) return w;
    uint64_t start = byte;
    for (uint64_t align = 8; align > 1 && start == byte; align /= 2) // header fields lie in aligned words
        if (byte % align + bytes <= 8) start = byte - byte % align;
    dqi_words *w = &l->words[l->n_words++ % DQI_WORDS];
    w->base = base;
    w->byte = start;
    w->lanes = holding(l, k, r, &l->len, r->start + start + 8, &r->room);
    k->gather(l, r->at, r->start + start, w->lanes, &w->v);
    return w;
}

// Loads a field at a fixed offset within the bounds: from cached words; individually in lanes that end less
// than 8 bytes after it, and in all lanes if its bits span 9 bytes.
static uint64_t load_bounded(dqi_lanes *l, const dqi_level *k, const dq_field *f, const bounds *b,
                             dqi_col *out) {
    uint64_t byte = f->bit_offset / 8, whole = 0;
    uint32_t skip = f->bit_offset % 8, bytes = (skip + f->bit_width + 7) / 8, right = 64u - f->bit_width;
    bool little = f->flags & DQ_FIELD_LE;
    dqi_reach *r = reach_of(l, k, f->base, b);
    uint64_t has = holding(l, k, r, b->limit, r->start + byte + bytes, &r->end);
    if (has != 0 && bytes <= 8) {
        const dqi_words *w = words_of(l, k, r, f->base, byte, bytes);
        uint32_t bit = (uint32_t)(byte - w->byte) * 8 + skip;
        k->part(l, &w->v, little, little ? right - bit : bit, right, out);
        whole = w->lanes;
    }
    for (uint64_t rest = has & ~whole; rest != 0; rest &= rest - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(rest);
        uint64_t at = r->at->v[i] - l->p.v[i] + r->start + byte;
        const uint8_t *p = dqi_lane_at(l, i);
        out->v[i] = little ? load_le_at(p, l->len.v[i], at, skip, f->bit_width)
                           : load_at(p, l->len.v[i], at, skip, f->bit_width);
    }
    return has;
}

// Loads a field at a bit offset that varies per lane.
static uint64_t load_moved(const dqi_lanes *l, const dq_field *f, const bounds *b, const dqi_col *by,
                           uint64_t lanes, dqi_col *out) {
    uint64_t has = 0;
    bool little = f->flags & DQ_FIELD_LE;
    for (lanes &= l->plain; lanes != 0; lanes &= lanes - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(lanes);
        if (by->v[i] > DQI_MOVED_MAX) continue;
        uint64_t bit = f->bit_offset + by->v[i], at = b->start + bit / 8 + (b->from ? b->from->v[i] : 0);
        uint32_t skip = bit % 8;
        if (at + (skip + f->bit_width + 7) / 8 > b->limit->v[i]) continue;
        const uint8_t *p = dqi_lane_at(l, i);
        out->v[i] = little ? load_le_at(p, l->len.v[i], at, skip, f->bit_width)
                           : load_at(p, l->len.v[i], at, skip, f->bit_width);
        has |= UINT64_C(1) << i;
    }
    return has;
}

static uint64_t load_plain(dqi_lanes *l, const dqi_level *k, const dq_field *f, dqi_col *out) {
    uint64_t has = lanes_with(l, f->need);
    uint32_t bit, width;
    dqi_who who;
    bounds b;
    if (l->look != DQI_LOOK_RAW && dqi_plain_field(f, &bit, &width, &who)) {
        load_fixed(l, k, bit, width, out);
        return (l->plain & who.any) | (l->udp & who.udp) | (l->tcp & who.tcp);
    }
    return find_bounds(l, f->base, &b) ? has & load_bounded(l, k, f, &b, out) : 0;
}

// Loads payload lengths of packets of which only the beginning is on the host, from their headers.
static uint64_t load_whole_payload(const dqi_lanes *l, dqi_col *out) {
    uint64_t has = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        const uint32_t k = l->first + i;
        dqi_pkt pkt;
        if (l->payload)
            dqi_parse_payload(l->in->whole[k], &pkt);
        else
            dqi_parse_head(dqi_lane_bytes(l, i), l->in->len[k], l->in->whole[k], &pkt);
        out->v[i] = pkt.payload_len;
        has |= (uint64_t)(pkt.payload != DQI_NONE) << i;
    }
    return has;
}

// Loads packet metadata.
static uint64_t load_meta(dqi_lanes *l, uint8_t meta, dqi_col *out) {
    const dqi_packets *in = l->in;
    uint64_t timeless = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        uint32_t k = l->first + i;
        bool timed;
        switch (meta) {
        case DQ_META_LEN:
            out->v[i] = (in->whole ? in->whole[k] : in->len[k]) + (in->origin ? in->origin[k].cut : 0);
            break;
        case DQ_META_INDEX:
            out->v[i] = k;
            break;
        case DQ_META_FLOW_ID:
            out->v[i] = in->flow ? in->flow[k] : 0;
            break;
        case DQ_META_RX_TIME:
            timed = in->ts && in->ts[k] != DQ_NO_TIME;
            out->v[i] = timed ? (uint64_t)(in->ts[k] - in->time_origin) : 0;
            timeless |= (uint64_t)!timed << i;
            break;
        default: // DQ_META_PAYLOAD_LEN; odd lanes are overwritten later
            out->v[i] = l->look == DQI_LOOK_RAW ? l->len.v[i] : l->limit.v[i] - l->payload_at.v[i];
        }
    }
    if (meta == DQ_META_PAYLOAD_LEN) return l->plain;
    bool there = meta == DQ_META_FLOW_ID ? in->flow != NULL : meta != DQ_META_RX_TIME || in->ts != NULL;
    return there ? l->all & ~timeless : 0;
}

// Zeroes lanes that were not loaded.
static void clear(uint64_t lanes, dqi_col *out) {
    for (; lanes != 0; lanes &= lanes - 1)
        out->v[__builtin_ctzll(lanes)] = 0;
}

static void extend_sign(const dqi_level *k, const dq_field *f, dqi_col *out) {
    uint32_t surplus = 64u - f->bit_width;
    if (f->flags & DQ_FIELD_SIGNED) k->cut(out, surplus, surplus, true);
}

uint64_t dqi_lanes_load(dqi_lanes *l, const dqi_level *k, const dq_field *f, dqi_col *out) {
    bool meta = f->base == DQ_BASE_META && f->meta <= DQ_META_PAYLOAD_LEN;
    if (meta && f->meta == DQ_META_PAYLOAD_LEN && l->in->whole) {
        uint64_t there = load_whole_payload(l, out);
        clear(~there, out);
        return there;
    }
    uint64_t has = meta ? load_meta(l, f->meta, out) : load_plain(l, k, f, out);
    if (!meta) extend_sign(k, f, out);
    if (!meta || f->meta == DQ_META_PAYLOAD_LEN)
        for (uint64_t odd = l->all & ~l->plain; odd != 0; odd &= odd - 1) {
            uint32_t i = (uint32_t)__builtin_ctzll(odd);
            bool ok = dqi_field_get(dqi_lane_bytes(l, i), l->in->len[l->first + i], dqi_lanes_odd(l, i), f,
                                    &out->v[i]);
            has |= (uint64_t)ok << i;
        }
    clear(~has, out);
    return has;
}

// Reports whether all lanes have the same number: common, as packets of one stream mostly have one shape.
static bool is_same(const dqi_lanes *l, const dqi_col *a) {
    uint64_t other = 0;
    for (uint32_t i = 0; i < DQI_LANES; i++)
        other |= a->v[i] ^ a->v[0];
    return other == 0 && l->all == UINT64_MAX;
}

uint64_t dqi_lanes_load_at(dqi_lanes *l, const dqi_level *k, const dq_field *f, uint64_t lanes,
                           const dqi_col *by, dqi_col *out) {
    bounds b;
    if (lanes == UINT64_MAX && is_same(l, by) && by->v[0] <= DQI_MOVED_MAX) {
        dq_field moved = *f;
        moved.bit_offset += (uint32_t)by->v[0];
        return dqi_lanes_load(l, k, &moved, out);
    }
    dqi_col got;
    uint64_t has = 0;
    if (find_bounds(l, f->base, &b)) has = load_moved(l, f, &b, by, lanes & lanes_with(l, f->need), &got);
    extend_sign(k, f, &got);
    for (uint64_t odd = lanes & l->all & ~l->plain; odd != 0; odd &= odd - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(odd);
        if (by->v[i] > DQI_MOVED_MAX) continue;
        dq_field moved = *f;
        moved.bit_offset += (uint32_t)by->v[i];
        bool ok = dqi_field_get(dqi_lane_bytes(l, i), l->in->len[l->first + i], dqi_lanes_odd(l, i), &moved,
                                &got.v[i]);
        has |= (uint64_t)ok << i;
    }
    clear(~has, &got);
    *out = got;
    return has;
}

// Returns the innermost payload of a lane; false: it has none.
static bool payload_of(dqi_lanes *l, uint32_t i, const uint8_t **p, uint64_t *len) {
    if (!(l->plain >> i & 1)) {
        const dqi_pkt *k = dqi_lanes_odd(l, i);
        if (k->payload == DQI_NONE || k->payload > l->in->len[l->first + i]) return false;
        uint64_t there = l->in->len[l->first + i] - k->payload;
        *p = dqi_lane_bytes(l, i) + k->payload;
        *len = k->payload_len < there ? k->payload_len : there;
        return true;
    }
    bool whole = l->look == DQI_LOOK_RAW; // the queue holds payloads
    uint64_t from = whole ? 0 : l->payload_at.v[i], to = whole ? l->len.v[i] : l->limit.v[i];
    *p = dqi_lane_at(l, i) + from;
    *len = to - from;
    return from < to;
}

uint64_t dqi_lanes_find(dqi_lanes *l, const dqi_item_key *key, uint32_t bit_offset, uint64_t lanes,
                        const dqi_col *by, const dqi_col *count, dqi_col *out) {
    uint64_t has = 0;
    dqi_col got;
    for (uint64_t left = lanes & l->all; left != 0; left &= left - 1) {
        uint32_t i = (uint32_t)__builtin_ctzll(left);
        const uint8_t *p;
        uint64_t len, at = (bit_offset + by->v[i]) / 8;
        if (by->v[i] > DQI_MOVED_MAX || !payload_of(l, i, &p, &len) || at > len) continue;
        has |= (uint64_t)dqi_item_find(p + at, len - at, count->v[i], key, &got.v[i]) << i;
    }
    clear(~has, &got);
    *out = got;
    return has;
}
