// pcapng.c: blocks: type and length, body, options, length again; all padded to 4 bytes.
#include "writer/pcapng.h"
#include "capture/capture_file.h"
#include "core/byteorder.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

enum {
    OPT_COMMENT = 1,
    SHB_OS = 3,
    SHB_USERAPPL = 4,
    IF_NAME = 2,
    IF_DESCRIPTION = 3,
    IF_TSRESOL = 9,
    IF_OS = 12,
    IF_FCSLEN = 13,
    EPB_FLAGS = 2,
    EPB_DROPCOUNT = 4,
    EPB_QUEUE = 6,
    ISB_STARTTIME = 2,
    ISB_ENDTIME = 3,
    ISB_IFRECV = 4,
    ISB_IFDROP = 5,
    ISB_OSDROP = 7,
};

static uint8_t *padded(uint8_t *at, uint32_t n) {
    while (n % 4 != 0) {
        *at++ = 0;
        n++;
    }
    return at;
}

static uint8_t *option(uint8_t *at, uint32_t code, const void *value, size_t n) {
    dqi_put_le16(at, code);
    dqi_put_le16(at + 2, (uint32_t)n);
    memcpy(at + 4, value, n);
    return padded(at + 4 + n, (uint32_t)n);
}

static uint8_t *text_option(uint8_t *at, uint32_t code, const char *text, size_t most) {
    size_t n = text ? strnlen(text, most) : 0;
    return n > 0 ? option(at, code, text, n) : at;
}

static uint8_t *u64_option(uint8_t *at, uint32_t code, uint64_t v) {
    uint8_t bytes[8];
    dqi_put_le64(bytes, v);
    return option(at, code, bytes, sizeof bytes);
}

// Writes a timestamp as two 32-bit halves, high one first.
static void put_time(uint8_t *at, uint64_t ts) {
    dqi_put_le32(at, (uint32_t)(ts >> 32));
    dqi_put_le32(at + 4, (uint32_t)ts);
}

static uint8_t *time_option(uint8_t *at, uint32_t code, uint64_t ts) {
    uint8_t bytes[8];
    put_time(bytes, ts);
    return option(at, code, bytes, sizeof bytes);
}

// Ends the options, if any, and the block; returns its bytes.
static uint32_t finish(uint8_t *dst, uint32_t type, const uint8_t *options, uint8_t *at) {
    if (at > options) {
        dqi_put_le32(at, 0);
        at += 4;
    }
    uint32_t n = (uint32_t)(at - dst) + 4;
    dqi_put_le32(at, n);
    dqi_put_le32(dst, type);
    dqi_put_le32(dst + 4, n);
    return n;
}

static uint8_t *os_option(uint8_t *at, uint32_t code) {
    struct utsname u;
    char text[160];
    if (uname(&u) != 0) return at;
    snprintf(text, sizeof text, "%.40s %.64s %.40s", u.sysname, u.release, u.machine);
    return text_option(at, code, text, sizeof text);
}

uint32_t dqi_pcapng_section(uint8_t *dst, const char *comment) {
    dqi_put_le32(dst + 8, 0x1a2b3c4d);
    dqi_put_le16(dst + 12, 1);
    dqi_put_le16(dst + 14, 0);
    memset(dst + 16, 0xff, 8); // unknown section length
    uint8_t *at = text_option(dst + 24, OPT_COMMENT, comment, DQI_PCAPNG_TEXT);
    at = os_option(at, SHB_OS);
    at = text_option(at, SHB_USERAPPL, "daqiri-run", 16);
    return finish(dst, DQI_NG_SECTION, dst + 24, at);
}

uint32_t dqi_pcapng_interface(uint8_t *dst, const char *name, const char *about, int32_t fcs,
                              uint32_t snaplen, bool micro) {
    const uint8_t fcs_bytes = (uint8_t)fcs;
    dqi_put_le32(dst + 8, 1); // Ethernet
    dqi_put_le32(dst + 12, snaplen);
    uint8_t *at = text_option(dst + 16, IF_NAME, name, 256);
    at = text_option(at, IF_DESCRIPTION, about, 256);
    at = option(at, IF_TSRESOL, micro ? "\x06" : "\x09", 1);
    at = os_option(at, IF_OS);
    if (fcs >= 0) at = option(at, IF_FCSLEN, &fcs_bytes, 1);
    return finish(dst, DQI_NG_INTERFACE, dst + 16, at);
}

// flow: comment already written for the packet's flow in this run, which is not repeated.
static uint8_t *remark_options(uint8_t *at, const dqi_remark *r, const char *flow) {
    uint8_t flags[4];
    dqi_put_le32(flags, r->flags);
    if (r->has_flags) at = option(at, EPB_FLAGS, flags, sizeof flags);
    if (r->dropped > 0) at = u64_option(at, EPB_DROPCOUNT, r->dropped);
    return strcmp(r->comment, flow) == 0 ? at : text_option(at, OPT_COMMENT, r->comment, sizeof r->comment);
}

uint32_t dqi_pcapng_packet_around(uint8_t *dst, const dqi_pcapng_packet *p) {
    uint8_t queue[4], *options = padded(dst + DQI_PCAPNG_HEAD + p->kept, p->kept);
    char flow[32];
    flow[0] = 0;
    dqi_put_le32(dst + 8, p->interface);
    put_time(dst + 12, p->ts);
    dqi_put_le32(dst + 20, p->kept);
    dqi_put_le32(dst + 24, p->len);
    dqi_put_le32(queue, p->queue);
    uint8_t *at = option(options, EPB_QUEUE, queue, sizeof queue);
    if (p->flow != 0) {
        snprintf(flow, sizeof flow, "flow %u", p->flow);
        at = text_option(at, OPT_COMMENT, flow, sizeof flow);
    }
    at = text_option(at, OPT_COMMENT, p->comment, 208);
    if (p->remark) at = remark_options(at, p->remark, flow);
    return finish(dst, DQI_NG_PACKET, options, at);
}

bool dqi_pcapng_is_simple(const dqi_pcapng_packet *p, uint32_t snaplen) {
    uint32_t implied = p->len < snaplen ? p->len : snaplen; // the block does not store the kept length
    return !p->timed && p->interface == 0 && p->queue == 0 && p->flow == 0 && !p->comment &&
           (!p->remark || p->remark == &p->remark->link->plain) && p->kept == implied;
}

uint32_t dqi_pcapng_simple_around(uint8_t *dst, const dqi_pcapng_packet *p) {
    dqi_put_le32(dst + 8, p->len);
    memmove(dst + 12, dst + DQI_PCAPNG_HEAD, p->kept);
    uint8_t *at = padded(dst + 12 + p->kept, p->kept);
    return finish(dst, DQI_NG_SIMPLE_PACKET, at, at);
}

uint32_t dqi_pcapng_statistics_of(uint8_t *dst, const dqi_pcapng_statistics *s, const char *comment) {
    dqi_put_le32(dst + 8, s->interface);
    put_time(dst + 12, s->end);
    uint8_t *at = text_option(dst + 20, OPT_COMMENT, comment, 512);
    at = time_option(at, ISB_STARTTIME, s->start);
    at = time_option(at, ISB_ENDTIME, s->end);
    at = u64_option(at, ISB_IFRECV, s->received);
    at = u64_option(at, ISB_IFDROP, s->dropped);
    at = u64_option(at, ISB_OSDROP, s->osdropped);
    return finish(dst, DQI_NG_STATISTICS, dst + 20, at);
}
