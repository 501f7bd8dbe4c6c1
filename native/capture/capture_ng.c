// capture_ng.c: pcapng blocks.
#include "capture/capture_file.h"

#include <limits.h>
#include <stddef.h>
#include <string.h>

#define BYTE_ORDER_MAGIC 0x1a2b3c4du
#define LEAST_BLOCK      12 // type, length, and the repeated length
#define NS_PER_S         1000000000

enum { OPT_END = 0, OPT_COMMENT = 1 };
enum { IF_NAME = 2, IF_DESCRIPTION = 3, IF_TSRESOL = 9, IF_FCSLEN = 13, IF_TSOFFSET = 14 };
enum { EPB_FLAGS = 2, EPB_DROPCOUNT = 4 };
enum { NAMES = 4, JOURNAL = 9, SECRETS = 10, CUSTOM = 0xbad, CUSTOM_NO_COPY = 0x40000bad };

// A block option with its value at p.
typedef struct option {
    uint32_t code, size;
    const uint8_t *p;
} option;

// Reads the option at *at of a block of len bytes and advances to the next; false: no more options.
static bool next_option(const dqi_capture *c, const uint8_t *p, size_t len, size_t *at, option *out) {
    if (*at + 4 > len - 4) return false;
    *out = (option){dqi_capture_u16(c, p + *at), dqi_capture_u16(c, p + *at + 2), p + *at + 4};
    if (out->code == OPT_END || *at + 4 + out->size > len - 4) return false;
    *at += 4 + ((out->size + 3) & ~3u);
    return true;
}

static void copy_text(char *to, size_t room, const option *o) {
    size_t n = o->size < room ? o->size : room - 1;
    memcpy(to, o->p, n);
    to[n] = 0;
}

static uint64_t u64_of(const dqi_capture *c, const uint8_t *p) {
    uint32_t a = dqi_capture_u32(c, p), b = dqi_capture_u32(c, p + 4);
    const uint16_t one = 1;
    bool little = (*(const uint8_t *)&one == 1) != c->swapped;
    return little ? (uint64_t)b << 32 | a : (uint64_t)a << 32 | b;
}

__extension__ typedef unsigned __int128 wide;

// ---- interfaces -------------------------------------------------------------------------------------------

// Sets the resolution from if_tsresol v: 10^-v s, or with the highest bit set 2^-v s.
static void set_resolution(dqi_capture_link *l, uint8_t v) {
    l->shift = v & 0x7f;
    if (v & 0x80) {
        l->mul = NS_PER_S;
        l->div = 0;
        return;
    }
    l->mul = l->div = 1;
    for (uint8_t k = v; k < 9; k++)
        l->mul *= 10;
    for (uint8_t k = 9; k < v; k++)
        if (__builtin_mul_overflow(l->div, (uint64_t)10, &l->div)) l->mul = 0; // the tick is too short
}

static int64_t time_of(const dqi_capture_link *l, uint32_t high, uint32_t low) {
    uint64_t ticks = (uint64_t)high << 32 | low;
    wide ns = (wide)ticks * l->mul;
    ns = l->div ? ns / l->div : ns >> l->shift;
    int64_t at = ns > INT64_MAX ? INT64_MAX : (int64_t)ns, sum;
    return __builtin_add_overflow(at, l->offset_ns, &sum) ? at : sum;
}

static void set_offset(const dqi_capture *c, dqi_capture_link *l, const uint8_t *p) {
    int64_t s = (int64_t)u64_of(c, p);
    if (__builtin_mul_overflow(s, (int64_t)NS_PER_S, &l->offset_ns)) l->offset_ns = 0;
}

static int add_interface(dqi_capture *c, const uint8_t *p, size_t len) {
    if (len < 20) return dqi_capture_bad(c, "an interface block of %zu bytes", len);
    dqi_capture_link l = {.type = dqi_capture_u16(c, p + 8),
                          .snaplen = dqi_capture_u32(c, p + 12),
                          .mul = 1000,
                          .div = 1,
                          .fcs = -1};
    option o;
    for (size_t at = 16; next_option(c, p, len, &at, &o);) {
        if (o.code == IF_NAME) copy_text(l.name, sizeof l.name, &o);
        if (o.code == IF_DESCRIPTION) copy_text(l.about, sizeof l.about, &o);
        if (o.code == IF_TSRESOL && o.size == 1) set_resolution(&l, o.p[0]);
        if (o.code == IF_TSOFFSET && o.size == 8) set_offset(c, &l, o.p);
        if (o.code == IF_FCSLEN && o.size == 1) l.fcs = o.p[0];
    }
    if (!dqi_capture_add_link(c, &l)) return dqi_capture_bad(c, "more interfaces than fit into memory");
    return DQI_CAPTURE_OTHER;
}

// ---- packets ----------------------------------------------------------------------------------------------

// Reads the options after the `there` bytes of a packet.
static void read_options(const dqi_capture *c, const uint8_t *p, size_t len, uint32_t there,
                         dqi_capture_packet *out) {
    option o;
    for (size_t at = 28 + (((size_t)there + 3) & ~(size_t)3); next_option(c, p, len, &at, &o);) {
        if (o.code == OPT_COMMENT && out->comment_len == 0) {
            out->comment = o.p;
            out->comment_len = o.size;
        }
        if (o.code == EPB_FLAGS && o.size == 4) {
            out->flags = dqi_capture_u32(c, o.p);
            out->has_flags = true;
        }
        if (o.code == EPB_DROPCOUNT && o.size == 8) out->dropped = u64_of(c, o.p);
    }
}

static int packet_of(dqi_capture *c, uint8_t *p, size_t len, uint32_t link, dqi_capture_packet *out) {
    if (len < 32) return dqi_capture_bad(c, "a packet block of %zu bytes", len);
    if (link >= c->n_links)
        return dqi_capture_bad(c, "a packet of interface %u, and the section has %u so far", link,
                               c->n_links);
    const dqi_capture_link *l = &c->links[link];
    uint32_t there = dqi_capture_u32(c, p + 20);
    if (there > len - 32 || there > DQI_CAPTURE_MAX_FRAME)
        return dqi_capture_bad(c, "a packet of %u bytes in a block of %zu", there, len);
    *out = (dqi_capture_packet){.data = p + 28,
                                .len = there,
                                .orig = dqi_capture_u32(c, p + 24),
                                .link = l->type,
                                .interface = link,
                                .ts = time_of(l, dqi_capture_u32(c, p + 12), dqi_capture_u32(c, p + 16))};
    read_options(c, p, len, there, out);
    return DQI_CAPTURE_PACKET;
}

// Parses an obsolete packet block: its drop count has 16 bits; all ones means unknown.
static int obsolete_packet(dqi_capture *c, uint8_t *p, size_t len, dqi_capture_packet *out) {
    int what = packet_of(c, p, len, dqi_capture_u16(c, p + 8), out);
    uint32_t drops = what == DQI_CAPTURE_PACKET ? dqi_capture_u16(c, p + 10) : UINT16_MAX;
    if (drops != UINT16_MAX) out->dropped = drops;
    return what;
}

// Parses a simple packet block: it has no timestamp, and no captured length if the snaplen truncates it.
static int simple_packet(dqi_capture *c, uint8_t *p, size_t len, dqi_capture_packet *out) {
    if (len < 16 || c->n_links == 0)
        return dqi_capture_bad(
            c, len < 16 ? "a packet block of %zu bytes" : "a packet block of %zu bytes before any interface",
            len);
    const dqi_capture_link *l = &c->links[0];
    uint32_t orig = dqi_capture_u32(c, p + 8), there = orig;
    if (l->snaplen > 0 && there > l->snaplen) there = l->snaplen;
    if (there > len - 16 || there > DQI_CAPTURE_MAX_FRAME)
        return dqi_capture_bad(c, "a packet of %u bytes in a block of %zu", there, len);
    *out =
        (dqi_capture_packet){.data = p + 12, .len = there, .orig = orig, .link = l->type, .ts = DQ_NO_TIME};
    return DQI_CAPTURE_PACKET;
}

// ---- blocks -----------------------------------------------------------------------------------------------

static int begin_section(dqi_capture *c, const uint8_t *p) {
    uint32_t version = dqi_capture_u16(c, p + 12);
    if (version != 1) return dqi_capture_bad(c, "pcapng version %u; only 1 is known", version);
    c->n_links = 0;
    c->section++;
    return DQI_CAPTURE_OTHER;
}

static bool known(uint32_t type) {
    return type == DQI_NG_SECTION || type == DQI_NG_INTERFACE || type == DQI_NG_OBSOLETE_PACKET ||
           type == DQI_NG_SIMPLE_PACKET || type == DQI_NG_PACKET;
}

// Sets the byte order from a section's magic; false: not a valid magic.
static bool set_order(dqi_capture *c, const uint8_t *p) {
    c->swapped = false;
    uint32_t mark = dqi_capture_u32(c, p + 8);
    c->swapped = mark == __builtin_bswap32(BYTE_ORDER_MAGIC);
    return c->swapped || mark == BYTE_ORDER_MAGIC;
}

static int read_block(dqi_capture *c, uint32_t type, uint8_t *p, size_t len, dqi_capture_packet *out) {
    switch (type) {
    case DQI_NG_SECTION:
        return len < 28 ? dqi_capture_bad(c, "a section block of %zu bytes", len) : begin_section(c, p);
    case DQI_NG_INTERFACE:
        return add_interface(c, p, len);
    case DQI_NG_SIMPLE_PACKET:
        return simple_packet(c, p, len, out);
    case DQI_NG_PACKET:
        return packet_of(c, p, len, len < 12 ? 0 : dqi_capture_u32(c, p + 8), out);
    default:
        return obsolete_packet(c, p, len, out);
    }
}

int dqi_capture_next_block(dqi_capture *c, uint8_t *p, size_t n, dqi_capture_packet *out, size_t *used) {
    if (n < LEAST_BLOCK) return dqi_capture_more(LEAST_BLOCK, used);
    uint32_t type = dqi_capture_u32(c, p);
    if (type == DQI_NG_SECTION && !set_order(c, p))
        return dqi_capture_bad(c, "a section without its byte order");
    uint32_t len = dqi_capture_u32(c, p + 4);
    if (len < LEAST_BLOCK || len % 4 != 0) return dqi_capture_bad(c, "a block of %u bytes", len);
    *used = len;
    if (!known(type)) {
        c->unread +=
            type == NAMES || type == JOURNAL || type == SECRETS || type == CUSTOM || type == CUSTOM_NO_COPY;
        return DQI_CAPTURE_OTHER;
    }
    if (len > DQI_CAPTURE_MAX_BLOCK) return dqi_capture_bad(c, "a block of %u bytes", len);
    if (n < len) return DQI_CAPTURE_MORE;
    uint32_t again = dqi_capture_u32(c, p + len - 4);
    if (again != len) return dqi_capture_bad(c, "a block of %u bytes that ends as one of %u", len, again);
    return read_block(c, type, p, len, out);
}
