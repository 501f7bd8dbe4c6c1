// capture_file.c: detection of the file format, and pcap. capture_ng.c has pcapng.
#include "capture/capture_file.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_LINKS 65536
#define LINK_TYPE 0xffffu    // other bits: if LINK_FCS is set,
#define LINK_FCS  (1u << 26) // the highest 4 bits are the FCS length in units of 16 bits
#define NS_PER_S  1000000000

int dqi_capture_bad(dqi_capture *c, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->why, sizeof c->why, fmt, ap);
    va_end(ap);
    return DQI_CAPTURE_BAD;
}

uint32_t dqi_capture_u32(const dqi_capture *c, const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return c->swapped ? __builtin_bswap32(v) : v;
}

uint16_t dqi_capture_u16(const dqi_capture *c, const uint8_t *p) {
    uint16_t v;
    memcpy(&v, p, sizeof v);
    return c->swapped ? __builtin_bswap16(v) : v;
}

int dqi_capture_more(size_t need, size_t *used) {
    *used = need;
    return DQI_CAPTURE_MORE;
}

bool dqi_capture_add_link(dqi_capture *c, const dqi_capture_link *l) {
    if (c->n_links == MAX_LINKS) return false;
    if (c->n_links == c->cap) {
        uint32_t cap = c->cap ? 2 * c->cap : 4;
        dqi_capture_link *more = realloc(c->links, cap * sizeof *more);
        if (!more) return false;
        c->links = more;
        c->cap = cap;
    }
    c->links[c->n_links++] = *l;
    return true;
}

void dqi_capture_reset(dqi_capture *c) {
    free(c->links);
    *c = (dqi_capture){0};
}

// ---- format detection -------------------------------------------------------------------------------------

// Returns the program that decompresses the file, by its first bytes; NULL: it is not compressed.
static const char *unpacker(const uint8_t *p) {
    static const struct {
        uint8_t len, bytes[4];
        const char *name;
    } known[] = {{2, {0x1f, 0x8b}, "gunzip"},
                 {3, {'B', 'Z', 'h'}, "bunzip2"},
                 {4, {0xfd, '7', 'z', 'X'}, "unxz"},
                 {4, {0x28, 0xb5, 0x2f, 0xfd}, "unzstd"},
                 {4, {0x04, 0x22, 0x4d, 0x18}, "unlz4"}};
    for (size_t k = 0; k < sizeof known / sizeof *known; k++)
        if (memcmp(p, known[k].bytes, known[k].len) == 0) return known[k].name;
    return NULL;
}

static int pcap_header(dqi_capture *c, const uint8_t *p, bool ns) {
    uint32_t link = dqi_capture_u32(c, p + DQI_PCAP_LINK);
    dqi_capture_link l = {.type = link & LINK_TYPE,
                          .fcs = link & LINK_FCS ? (int32_t)(link >> 28) * 2 : -1,
                          .snaplen = dqi_capture_u32(c, p + 16),
                          .mul = ns ? 1 : 1000,
                          .div = 1};
    uint32_t major = dqi_capture_u16(c, p + 4), minor = dqi_capture_u16(c, p + 6);
    if (major != 2) return dqi_capture_bad(c, "pcap version %u.%u; only 2.x is known", major, minor);
    if (!dqi_capture_add_link(c, &l)) return dqi_capture_bad(c, "no memory");
    c->form = DQI_CAPTURE_PCAP;
    return DQI_CAPTURE_OTHER;
}

// Parses the start of a file.
static int begin(dqi_capture *c, uint8_t *p, size_t n, dqi_capture_packet *out, size_t *used) {
    if (n < 4) return dqi_capture_more(4, used);
    uint32_t magic = dqi_capture_u32(c, p), other = __builtin_bswap32(magic);
    if (magic == DQI_NG_SECTION) {
        c->form = DQI_CAPTURE_PCAPNG;
        return dqi_capture_next_block(c, p, n, out, used);
    }
    const char *tool = unpacker(p);
    if (tool) return dqi_capture_bad(c, "it is compressed: unpack it first (%s)", tool);
    c->swapped = other == DQI_PCAP_MAGIC_US || other == DQI_PCAP_MAGIC_NS;
    if (c->swapped) magic = other;
    if (magic != DQI_PCAP_MAGIC_US && magic != DQI_PCAP_MAGIC_NS)
        return dqi_capture_bad(c, "neither pcap nor pcapng: it begins with %02x %02x %02x %02x", p[0], p[1],
                               p[2], p[3]);
    if (n < DQI_PCAP_HEADER) return dqi_capture_more(DQI_PCAP_HEADER, used);
    *used = DQI_PCAP_HEADER;
    return pcap_header(c, p, magic == DQI_PCAP_MAGIC_NS);
}

// ---- pcap -------------------------------------------------------------------------------------------------

static int next_record(dqi_capture *c, uint8_t *p, size_t n, dqi_capture_packet *out, size_t *used) {
    if (n < DQI_PCAP_RECORD) return dqi_capture_more(DQI_PCAP_RECORD, used);
    uint32_t len = dqi_capture_u32(c, p + 8);
    if (len > DQI_CAPTURE_MAX_FRAME) return dqi_capture_bad(c, "a packet of %u bytes", len);
    *used = DQI_PCAP_RECORD + len;
    if (n < *used) return DQI_CAPTURE_MORE;
    *out = (dqi_capture_packet){.data = p + DQI_PCAP_RECORD,
                                .len = len,
                                .orig = dqi_capture_u32(c, p + 12),
                                .link = c->links[0].type,
                                .ts = (int64_t)dqi_capture_u32(c, p) * NS_PER_S +
                                      (int64_t)(dqi_capture_u32(c, p + 4) * c->links[0].mul)};
    return DQI_CAPTURE_PACKET;
}

int dqi_capture_next(dqi_capture *c, uint8_t *p, size_t n, dqi_capture_packet *out, size_t *used) {
    switch (c->form) {
    case DQI_CAPTURE_PCAP:
        return next_record(c, p, n, out, used);
    case DQI_CAPTURE_PCAPNG:
        return dqi_capture_next_block(c, p, n, out, used);
    default:
        return begin(c, p, n, out, used);
    }
}
