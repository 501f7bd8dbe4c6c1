// field.c: field access and the table of field names.
//
// Whole bytes of 1, 2, 4 or 8 on a byte boundary are loaded at once; any other alignment uses a window of at
// most 9 bytes. Fields whose position varies with the packet (time to live, the ethertype after VLAN tags)
// are first converted to a position, so reading and writing share one path.
#include "packet/field.h"
#include "core/err.h"

#define ETH(off, width)                                                                                      \
    { .base = DQ_BASE_START, .need = DQ_HAS_ETH, .bit_width = width, .bit_offset = off }
#define L3(has, off, width)                                                                                  \
    { .base = DQ_BASE_L3, .need = has, .bit_width = width, .bit_offset = off }
#define L4(has, off, width)                                                                                  \
    { .base = DQ_BASE_L4, .need = has, .bit_width = width, .bit_offset = off }
#define META(what, has, width)                                                                               \
    { .base = DQ_BASE_META, .meta = what, .need = has, .bit_width = width }
#define ANY_IP    (DQ_HAS_IPV4 | DQ_HAS_IPV6)
#define ANY_PORTS (DQ_HAS_UDP | DQ_HAS_TCP)

static const dqi_named_field fields[] = {
    {"len", META(DQ_META_LEN, 0, 32),
     "bytes of the packet, as its queue holds it; of a capture, those that it had"},
    {"index", META(DQ_META_INDEX, 0, 32), "place in the burst, from 0"},
    {"flow_id", META(DQ_META_FLOW_ID, 0, 32), "id of the flow that matched, 0 for none"},
    {"rx_time",
     {.base = DQ_BASE_META, .meta = DQ_META_RX_TIME, .flags = DQ_FIELD_SIGNED, .bit_width = 64},
     "receive time, ns since the session's start, of a capture since its first packet"},
    {"payload_len", META(DQ_META_PAYLOAD_LEN, 0, 32), "bytes of the innermost payload"},
    {"eth_dst", ETH(0, 48), "destination MAC address"},
    {"eth_src", ETH(48, 48), "source MAC address"},
    {"ethertype", META(DQ_META_ETHERTYPE, DQ_HAS_ETH, 16), "EtherType behind any VLAN tags"},
    {"vlan_id", META(DQ_META_VLAN_ID, DQ_HAS_VLAN, 12), "VLAN of the outermost tag"},
    {"vlan_pcp",
     {.base = DQ_BASE_START, .need = DQ_HAS_VLAN, .bit_width = 3, .bit_offset = 112},
     "priority of the outermost VLAN tag"},
    {"ip_proto", META(DQ_META_IP_PROTO, ANY_IP, 8), "transport protocol, IPv4 or IPv6"},
    {"ip_ttl", META(DQ_META_IP_TTL, ANY_IP, 8), "time to live or hop limit"},
    {"ip_tos", META(DQ_META_IP_TOS, ANY_IP, 8), "type of service or traffic class"},
    {"ipv4_src", L3(DQ_HAS_IPV4, 96, 32), "source IPv4 address"},
    {"ipv4_dst", L3(DQ_HAS_IPV4, 128, 32), "destination IPv4 address"},
    {"ipv4_len", L3(DQ_HAS_IPV4, 16, 16), "total length in the IPv4 header, bytes"},
    {"ipv4_id", L3(DQ_HAS_IPV4, 32, 16), "identification in the IPv4 header"},
    {"ipv6_src_hi", L3(DQ_HAS_IPV6, 64, 64), "source IPv6 address, upper half"},
    {"ipv6_src_lo", L3(DQ_HAS_IPV6, 128, 64), "source IPv6 address, lower half"},
    {"ipv6_dst_hi", L3(DQ_HAS_IPV6, 192, 64), "destination IPv6 address, upper half"},
    {"ipv6_dst_lo", L3(DQ_HAS_IPV6, 256, 64), "destination IPv6 address, lower half"},
    {"port", L4(ANY_PORTS, 16, 16), "destination port, UDP or TCP"},
    {"src_port", L4(ANY_PORTS, 0, 16), "source port, UDP or TCP"},
    {"udp_src", L4(DQ_HAS_UDP, 0, 16), "UDP source port"},
    {"udp_dst", L4(DQ_HAS_UDP, 16, 16), "UDP destination port"},
    {"udp_len", L4(DQ_HAS_UDP, 32, 16), "length in the UDP header, bytes"},
    {"tcp_src", L4(DQ_HAS_TCP, 0, 16), "TCP source port"},
    {"tcp_dst", L4(DQ_HAS_TCP, 16, 16), "TCP destination port"},
    {"tcp_seq", L4(DQ_HAS_TCP, 32, 32), "TCP sequence number"},
    {"tcp_flags", L4(DQ_HAS_TCP, 104, 8), "TCP flags, FIN the lowest bit"},
    {"icmp_type", L4(DQ_HAS_ICMP, 0, 8), "ICMP or ICMPv6 type"},
};

enum { N_FIELDS = sizeof fields / sizeof fields[0] };

const dqi_named_field *dqi_field_table(uint32_t *n) {
    *n = N_FIELDS;
    return fields;
}

int dqi_field_check(const dq_field *f, dq_diag *diag) {
    if (f->base >= DQ_BASE_COUNT)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "field: unknown base %u", f->base);
    if (f->base == DQ_BASE_META ? f->meta == 0 || f->meta >= DQ_META_COUNT : f->meta != 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "field: unknown metadata %u", f->meta);
    if (f->bit_width < 1 || f->bit_width > 64)
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "field: bit_width %u is outside 1..64", f->bit_width);
    if (f->flags & ~(DQ_FIELD_LE | DQ_FIELD_SIGNED))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "field: unknown flags 0x%x", f->flags);
    if (f->base == DQ_BASE_META && (f->flags & DQ_FIELD_LE || f->bit_offset != 0))
        return dqi_fail(diag, DQ_INVALID_PARAMETER, "field: metadata has no byte order and no offset");
    return DQ_OK;
}

// Bits [bit, bit + width) of a packet.
typedef struct place {
    uint64_t bit;
    uint32_t width;
} place;

static uint32_t base_of(const dqi_pkt *k, uint8_t base) {
    switch (base) {
    case DQ_BASE_START:
        return 0;
    case DQ_BASE_L3:
        return k->l3;
    case DQ_BASE_L4:
        return k->l4;
    default:
        return k->payload;
    }
}

// Returns the end of the bytes that fields of this base may access: payload fields exclude Ethernet padding.
static uint32_t limit_of(const dqi_pkt *k, uint8_t base) {
    switch (base) {
    case DQ_BASE_START:
        return k->len;
    case DQ_BASE_PAYLOAD:
        return k->payload + k->payload_len;
    default:
        return k->end;
    }
}

// Returns the position of a header field that varies with the packet; width 0: metadata outside the packet.
static place moving_place(const dqi_pkt *k, uint8_t meta) {
    bool v4 = k->has & DQ_HAS_IPV4;
    switch (meta) {
    case DQ_META_ETHERTYPE:
        return (place){(uint64_t)(k->l3 - 2) * 8, 16};
    case DQ_META_VLAN_ID:
        return (place){14 * 8 + 4, 12};
    case DQ_META_IP_PROTO:
        return (place){(uint64_t)k->proto_off * 8, 8};
    case DQ_META_IP_TTL:
        return (place){(uint64_t)k->l3 * 8 + (v4 ? 64 : 56), 8};
    case DQ_META_IP_TOS:
        return (place){(uint64_t)k->l3 * 8 + (v4 ? 8 : 4), 8};
    default:
        return (place){0, 0};
    }
}

// Locates a field inside the packet; false: the packet lacks it.
static bool locate(uint32_t len, const dqi_pkt *k, const dq_field *f, place *at) {
    if (f->need != 0 && !(k->has & f->need)) return false;
    uint32_t limit = len;
    if (f->base == DQ_BASE_META) {
        if (k->l3 == DQI_NONE) return false;
        *at = moving_place(k, f->meta);
    } else {
        uint32_t base = base_of(k, f->base);
        if (base == DQI_NONE) return false;
        uint32_t own = limit_of(k, f->base);
        if (own < limit) limit = own;
        *at = (place){(uint64_t)base * 8 + f->bit_offset, f->bit_width};
    }
    return at->width != 0 && at->bit + at->width <= (uint64_t)limit * 8;
}

bool dqi_field_place(uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t *bit, uint32_t *width) {
    place at;
    if (!locate(len, pkt, f, &at)) return false;
    *bit = at.bit;
    *width = at.width;
    return true;
}

static bool get_meta(const dqi_pkt *k, uint8_t meta, uint64_t *v) {
    switch (meta) {
    case DQ_META_LEN:
        *v = k->len;
        return true;
    case DQ_META_FLOW_ID:
        *v = k->flow_id;
        return k->has_meta & DQI_HAS_FLOW_ID;
    case DQ_META_RX_TIME:
        *v = (uint64_t)k->rx_time_ns;
        return k->has_meta & DQI_HAS_RX_TIME;
    case DQ_META_INDEX:
        *v = k->index;
        return k->has_meta & DQI_HAS_INDEX;
    default: // DQ_META_PAYLOAD_LEN
        *v = k->payload_len;
        return k->payload != DQI_NONE;
    }
}

uint64_t dqi_bits_get_le(const uint8_t *p, uint64_t bit, uint32_t width) {
    p += bit / 8;
    uint32_t skip = bit % 8, n_bytes = (skip + width + 7) / 8;
    uint64_t v = 0;
    for (uint32_t i = n_bytes < 8 ? n_bytes : 8; i-- > 0;)
        v = v << 8 | p[i];
    v >>= skip;
    if (n_bytes > 8) v |= (uint64_t)p[8] << (64 - skip);
    return v & (UINT64_MAX >> (64 - width));
}

// Loads bits in wire order at any alignment: accesses at most 9 bytes.
static uint64_t load_bits(const uint8_t *p, place at) {
    p += at.bit / 8;
    uint32_t skip = at.bit % 8, n_bytes = (skip + at.width + 7) / 8;
    uint64_t v = p[0] & (0xffu >> skip);
    uint32_t last = n_bytes > 8 ? 8 : n_bytes;
    for (uint32_t i = 1; i < last; i++)
        v = v << 8 | p[i];
    uint32_t surplus = n_bytes * 8 - skip - at.width;
    if (n_bytes <= 8) return v >> surplus;
    return v << (8 - surplus) | p[8] >> surplus;
}

uint64_t dqi_bits_get(const uint8_t *p, uint64_t bit, uint32_t width) {
    const uint8_t *b = p + bit / 8;
    if (bit % 8 != 0) return load_bits(p, (place){bit, width});
    switch (width) {
    case 8:
        return b[0];
    case 16:
        return dqi_be16(b);
    case 32:
        return dqi_be32(b);
    case 64:
        return dqi_be64(b);
    default:
        return load_bits(p, (place){bit, width});
    }
}

static inline uint64_t extend_sign(uint64_t v, uint32_t width) {
    uint64_t sign = 1ull << (width - 1);
    return (v ^ sign) - sign;
}

bool dqi_field_get(const uint8_t *p, uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t *v) {
    if (f->base == DQ_BASE_META && f->meta <= DQ_META_PAYLOAD_LEN) return get_meta(pkt, f->meta, v);
    place at;
    if (!locate(len, pkt, f, &at)) return false;
    uint64_t got =
        f->flags & DQ_FIELD_LE ? dqi_bits_get_le(p, at.bit, at.width) : dqi_bits_get(p, at.bit, at.width);
    *v = f->flags & DQ_FIELD_SIGNED ? extend_sign(got, at.width) : got;
    return true;
}

static void store_bits_le(uint8_t *p, place at, uint64_t v) {
    for (uint32_t left = at.width; left > 0;) {
        uint32_t low = at.bit % 8, n = left < 8 - low ? left : 8 - low;
        uint8_t mask = (uint8_t)(((1u << n) - 1) << low), *b = p + at.bit / 8;
        *b = (uint8_t)((*b & ~mask) | ((v << low) & mask));
        v >>= n;
        at.bit += n;
        left -= n;
    }
}

static void store_bits(uint8_t *p, place at, uint64_t v) {
    for (uint32_t left = at.width; left > 0;) {
        uint64_t bit = at.bit + left - 1; // the lowest bit not written yet
        uint32_t low = 7 - bit % 8;       // its position in its byte
        uint32_t n = left < 8 - low ? left : 8 - low;
        uint8_t mask = (uint8_t)(((1u << n) - 1) << low);
        uint8_t *b = p + bit / 8;
        *b = (uint8_t)((*b & ~mask) | ((v << low) & mask));
        v >>= n;
        left -= n;
    }
}

bool dqi_field_set(uint8_t *p, uint32_t len, const dqi_pkt *pkt, const dq_field *f, uint64_t v) {
    place at;
    if (!locate(len, pkt, f, &at)) return false;
    if (f->flags & DQ_FIELD_LE)
        store_bits_le(p, at, v);
    else
        store_bits(p, at, v);
    return true;
}
