// lane_shape.h: frame types, and the ends of packets and payloads, part of lane_body.h.

// Byte k of a word in memory order, and the number in bytes k and k + 1 in wire order.
#define BYTE(w, k)   ((w) >> DQI_BYTE_SHIFT(k) & 0xff)
#define NUMBER(w, k) (WIRE(w) >> (48 - 8 * (k)) & 0xffff)

// WIDTH frames: their addresses and words (dqi_lanes), and all ones in plain lanes.
typedef struct NAME(frames) {
    VU p, w12, w20, w28, w36, w46;
    VU plain, udp, tcp;
} NAME(frames);

// Locates frames; those too short to be plain, and unused lanes, read as zeros.
static inline void NAME(find)(const dqi_packets *in, uint32_t i, NAME(frames) * f) {
    const uint64_t *off = in->off + i;
    const uint32_t *len = in->len + i;
    if (i + WIDTH <= in->n) {
        VU there = *(const VL *)off + (uintptr_t)in->base;
        VU small = SPREAD(__builtin_convertvector(*(const VN *)len, VU) - DQI_PLAIN_LEN);
        f->p = WHERE(small, ALL((uintptr_t)dqi_zeros)) | WHERE(~small, there);
    } else {
        VU p = {0};
        for (uint32_t j = 0; j < WIDTH; j++)
            p[j] = (uintptr_t)(i + j >= in->n || len[j] < DQI_PLAIN_LEN ? dqi_zeros : in->base + off[j]);
        f->p = p;
    }
}

// Layouts: RFC 791, 768, 9293. Accepts what dqi_plain (packet.h) accepts, and transports other than UDP, TCP
// and ICMP. With ports (a constant) only `udp` and `tcp` are valid, not `plain`.
static inline void NAME(look_for)(const dqi_packets *in, uint32_t first, bool ports, NAME(frames) * f) {
    NAME(find)(in, first, f);
    GATHER(f);
    f->w46 = WORDS(f->p, 46);
    VU a = f->w12, b = f->w20;
    VU total = NUMBER(a, 4), proto = BYTE(b, 3);
    // ethertype, version and header length; fragment offset and more-fragments bit are 0
    VU wrong = ((a ^ DQI_BYTES(0x0800450000000000)) & DQI_BYTES(0xffffff0000000000)) |
               (b & DQI_BYTES(0x3fff000000000000)) << DQI_UNUSED_SHIFT;
    VU is_udp = EQUAL(proto, DQI_PROTO_UDP), is_tcp = EQUAL(proto, DQI_PROTO_TCP);
    // A difference is negative, with the top bit set, where a length is too small.
    VU bad_udp = (total - (DQI_IPV4_LEN + DQI_UDP_LEN)) | (NUMBER(f->w36, 2) - DQI_UDP_LEN);
    VU bad_tcp = (total - (DQI_IPV4_LEN + DQI_TCP_LEN)) | (BYTE(f->w46, 0) - (DQI_TCP_LEN / 4 << 4));
    VU bad = (bad_udp & is_udp) | (bad_tcp & is_tcp);
    if (!ports) bad |= (total - DQI_IPV4_LEN) | EQUAL(proto, DQI_PROTO_ICMP) | EQUAL(proto, DQI_PROTO_ICMPV6);
    f->plain = SPREAD(EQUAL(wrong, 0) & ~bad);
    f->udp = f->plain & is_udp;
    f->tcp = f->plain & is_tcp;
}

static inline void NAME(look)(const dqi_packets *in, uint32_t first, NAME(frames) * f) {
    NAME(look_for)(in, first, false, f);
}

static inline VU NAME(smaller)(VU a, VU b) {
    VU less = LESS(a, b);
    return WHERE(less, a) | WHERE(~less, b);
}

static inline VU NAME(lengths)(const dqi_lanes *l, uint32_t i) {
    const uint32_t *len = l->in->len + l->first + i;
    if (i + WIDTH <= l->n) return __builtin_convertvector(*(const VN *)len, VU);
    VU out = {0};
    for (uint32_t j = 0; i + j < l->n; j++)
        out[j] = len[j];
    return out;
}

// Computes the ends of IP packet and payload and the payload's start, and their extremes over plain frames.
static inline void NAME(ends)(dqi_lanes *l, uint32_t i, const NAME(frames) * f, VU span[3]) {
    VU len = NAME(lengths)(l, i);
    VU end = NAME(smaller)(len, NUMBER(f->w12, 4) + DQI_ETH_LEN);
    VU header = WHERE(f->udp, ALL(DQI_UDP_LEN)) + WHERE(f->tcp, BYTE(f->w46, 0) >> 4 << 2) + PLAIN_L4;
    VU udp_end = NAME(smaller)(end, NUMBER(f->w36, 2) + PLAIN_L4);
    VU from = NAME(smaller)(header, end), limit = WHERE(f->udp, udp_end) | WHERE(~f->udp, end);
    AT(&l->len) = len;
    AT(&l->end) = end;
    AT(&l->payload_at) = from;
    AT(&l->limit) = limit;
    span[0] = NAME(smaller)(span[0], limit | ~f->plain >> 1);
    span[1] &= from | ~f->plain;
    span[2] |= from & f->plain;
}

static inline void NAME(survey)(dqi_lanes *l, bool extents) {
    uint64_t plain = 0, udp = 0, tcp = 0;
    VU span[3] = {ALL(UINT64_MAX >> 1), ALL(UINT64_MAX), ALL(0)};
    SOME {
        NAME(frames) f;
        NAME(look)(l->in, l->first + i, &f);
        AT(&l->p) = f.p;
        PUT(plain, f.plain);
        PUT(udp, f.udp);
        PUT(tcp, f.tcp);
        if (extents) NAME(ends)(l, i, &f, span);
    }
    l->plain = plain;
    l->udp = udp;
    l->tcp = tcp;
    l->least = UINT64_MAX >> 1;
    uint64_t low = UINT64_MAX, high = 0;
    for (uint32_t j = 0; j < WIDTH; j++) {
        l->least = span[0][j] < l->least ? span[0][j] : l->least;
        low &= span[1][j];
        high |= span[2][j];
    }
    l->same_payload_at = low == high;
}

// Reports whether the first frame is plain UDP and the others have the same length and shape headers: then
// results of look_for and ends for the first hold for all. Common for packets of one stream.
static inline bool NAME(alike)(dqi_lanes *l, bool extents) {
    const uint64_t *off = l->in->off + l->first;
    const uint32_t *len = l->in->len + l->first;
    uint32_t odd = 0;
    for (uint32_t i = 0; i < l->n; i++)
        odd |= len[i] ^ len[0];
    if (odd != 0 || len[0] < DQI_PLAIN_LEN) return false;
    const uint8_t *base = l->in->base + PLAIN_SHAPE;
    const VR first = *(const VR *)(base + off[0]);
    VR differ = {0};
    for (uint32_t i = 0; i < l->n; i++)
        differ |= *(const VR *)(base + off[i]) ^ first;
    differ &= *(const VR *)plain_shape;
    if ((differ[0] | differ[1] | differ[2] | differ[3]) != 0) return false;
    NAME(frames) f;
    NAME(look)(l->in, l->first, &f);
    if (!(BITS(f.udp) & 1)) return false;
    VU span[3] = {{0}};
    if (extents) NAME(ends)(l, 0, &f, span);
    SOME {
        if (i + WIDTH <= l->n)
            f.p = *(const VL *)(off + i) + (uintptr_t)l->in->base;
        else
            NAME(find)(l->in, l->first + i, &f);
        AT(&l->p) = f.p;
        if (!extents) continue;
        AT(&l->len) = ALL(l->len.v[0]);
        AT(&l->end) = ALL(l->end.v[0]);
        AT(&l->payload_at) = ALL(l->payload_at.v[0]);
        AT(&l->limit) = ALL(l->limit.v[0]);
    }
    l->plain = l->udp = l->all;
    l->least = l->limit.v[0];
    l->same_payload_at = true;
    return true;
}

static void NAME(shape)(dqi_lanes *l) {
    if (!NAME(alike)(l, false)) NAME(survey)(l, false);
}

static void NAME(extents)(dqi_lanes *l) {
    if (!NAME(alike)(l, true)) NAME(survey)(l, true);
}
