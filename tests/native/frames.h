// frames.h: frames for tests, written from a description, so that a test knows what is in them without
// parsing.
#ifndef FRAMES_H
#define FRAMES_H

#include "dqtest.h"

enum { FRAME_MAX = 512 };

// What a frame holds. Unused members are 0.
typedef struct frame {
    uint8_t eth_dst[6], eth_src[6];
    int n_vlans;
    uint16_t tci[2];
    uint16_t ethertype; // 0: from ip
    int ip;             // 0, 4 or 6
    uint8_t proto, ttl, tos;
    uint8_t src[16], dst[16]; // IPv4: the first 4
    uint32_t ip_options;      // bytes, multiple of 4
    int extensions;           // IPv6 destination option headers of 8 bytes
    uint16_t frag_offset;     // units of 8 bytes
    bool more_fragments;
    uint16_t sport, dport;
    uint32_t tcp_options; // bytes, multiple of 4
    uint32_t payload_len;
    uint8_t payload[128];
    uint32_t padding; // bytes behind the IP packet
    // where frame_write put things
    uint32_t l3, l4, payload_off, len;
} frame;

static inline uint8_t *put16(uint8_t *p, uint32_t v) {
    p[0] = (uint8_t)(v >> 8);
    p[1] = (uint8_t)v;
    return p + 2;
}

static inline bool frame_ports(const frame *f) {
    return f->ip != 0 && (f->proto == 6 || f->proto == 17) && f->frag_offset == 0;
}

static inline uint32_t frame_l4_len(const frame *f) {
    if (!frame_ports(f)) return 0;
    return f->proto == 6 ? 20 + f->tcp_options : 8;
}

static inline uint8_t *frame_write_ip4(const frame *f, uint8_t *p) {
    uint32_t header = 20 + f->ip_options;
    *p++ = (uint8_t)(0x40 | header / 4);
    *p++ = f->tos;
    p = put16(p, header + frame_l4_len(f) + f->payload_len);
    p = put16(p, 0x1234);
    p = put16(p, (f->more_fragments ? 0x2000u : 0u) | f->frag_offset);
    *p++ = f->ttl;
    *p++ = f->proto;
    p = put16(p, 0);
    memcpy(p, f->src, 4);
    memcpy(p + 4, f->dst, 4);
    memset(p + 8, 1, f->ip_options);
    return p + 8 + f->ip_options;
}

static inline uint8_t *frame_write_ip6(const frame *f, uint8_t *p) {
    bool fragment = f->frag_offset != 0 || f->more_fragments;
    uint32_t ext_len = 8u * (uint32_t)f->extensions + (fragment ? 8 : 0);
    *p++ = (uint8_t)(0x60 | f->tos >> 4);
    *p++ = (uint8_t)(f->tos << 4);
    p = put16(p, 0);
    p = put16(p, ext_len + frame_l4_len(f) + f->payload_len);
    *p++ = f->extensions ? 60 : fragment ? 44 : f->proto;
    *p++ = f->ttl;
    memcpy(p, f->src, 16);
    memcpy(p + 16, f->dst, 16);
    p += 32;
    for (int i = 0; i < f->extensions; i++, p += 8) {
        memset(p, 0, 8);
        p[0] = i + 1 < f->extensions ? 60 : fragment ? 44 : f->proto;
    }
    if (fragment) {
        memset(p, 0, 8);
        p[0] = f->proto;
        put16(p + 2, (uint32_t)f->frag_offset << 3 | (f->more_fragments ? 1 : 0));
        p += 8;
    }
    return p;
}

static inline uint8_t *frame_write_l4(const frame *f, uint8_t *p) {
    uint32_t n = frame_l4_len(f);
    if (n == 0) return p;
    memset(p, 0, n);
    put16(p, f->sport);
    put16(p + 2, f->dport);
    if (f->proto == 6)
        p[12] = (uint8_t)(n / 4 << 4);
    else
        put16(p + 4, 8 + f->payload_len);
    return p + n;
}

// Writes the frame into buf (FRAME_MAX bytes) and notes in *f where its parts are. Checksums are 0.
static inline uint32_t frame_write(frame *f, uint8_t *buf) {
    uint8_t *p = buf;
    memcpy(p, f->eth_dst, 6);
    memcpy(p + 6, f->eth_src, 6);
    p += 12;
    for (int i = 0; i < f->n_vlans; i++) {
        p = put16(p, i + 1 < f->n_vlans ? 0x88a8 : 0x8100);
        p = put16(p, f->tci[i]);
    }
    p = put16(p, f->ip == 4 ? 0x0800 : f->ip == 6 ? 0x86dd : f->ethertype);
    f->l3 = (uint32_t)(p - buf);
    if (f->ip == 4) p = frame_write_ip4(f, p);
    if (f->ip == 6) p = frame_write_ip6(f, p);
    f->l4 = (uint32_t)(p - buf);
    if (f->ip != 0) p = frame_write_l4(f, p);
    f->payload_off = (uint32_t)(p - buf);
    memcpy(p, f->payload, f->payload_len);
    p += f->payload_len;
    memset(p, 0, f->padding);
    return f->len = (uint32_t)(p - buf) + f->padding;
}

static inline void fill_random(uint64_t *seed, uint8_t *p, uint32_t n) {
    for (uint32_t i = 0; i < n; i++)
        p[i] = (uint8_t)dq_rand(seed);
}

// A random frame; narrow: addresses and ports from a few values, so that rules hit.
static inline void frame_random(uint64_t *seed, bool narrow, frame *f) {
    static const uint8_t protos[] = {17, 17, 17, 6, 6, 47};
    memset(f, 0, sizeof *f);
    fill_random(seed, f->eth_dst, 6);
    fill_random(seed, f->eth_src, 6);
    fill_random(seed, f->src, 16);
    fill_random(seed, f->dst, 16);
    if (narrow) {
        memset(f->src, 10, 15);
        memset(f->dst, 11, 15);
        f->src[15] = f->src[3] = (uint8_t)dq_below(seed, 4);
        f->dst[15] = f->dst[3] = (uint8_t)dq_below(seed, 4);
        memset(f->eth_dst, 2, 5);
        f->eth_dst[5] = (uint8_t)dq_below(seed, 2);
    }
    f->n_vlans = dq_below(seed, 4) == 0 ? 1 + (int)dq_below(seed, 2) : 0;
    f->tci[0] = (uint16_t)(narrow ? dq_below(seed, 3) : dq_rand(seed));
    f->tci[1] = (uint16_t)dq_rand(seed);
    f->ip = dq_below(seed, 8) == 0 ? 0 : dq_below(seed, 4) == 0 ? 6 : 4;
    f->ethertype = f->ip == 0 ? (dq_below(seed, 2) ? 0xaefe : 0x0806) : 0;
    f->proto = f->ip ? protos[dq_below(seed, 6)] : 0;
    f->ttl = (uint8_t)dq_rand(seed);
    f->tos = (uint8_t)dq_rand(seed);
    f->ip_options = f->ip == 4 && dq_below(seed, 4) == 0 ? 4 * dq_below(seed, 11) : 0;
    f->extensions = f->ip == 6 ? (int)dq_below(seed, 3) : 0;
    if (dq_below(seed, 6) == 0) {
        f->frag_offset = (uint16_t)(f->ip ? dq_below(seed, 3) : 0);
        f->more_fragments = f->ip && dq_below(seed, 2);
    }
    f->sport = (uint16_t)(narrow ? 1000 + dq_below(seed, 4) : dq_rand(seed));
    f->dport = (uint16_t)(narrow ? 2000 + dq_below(seed, 4) : dq_rand(seed));
    f->tcp_options = dq_below(seed, 4) == 0 ? 4 * dq_below(seed, 11) : 0;
    f->payload_len = dq_below(seed, sizeof f->payload);
    fill_random(seed, f->payload, f->payload_len);
    if (narrow && f->payload_len >= 6) f->payload[1] = (uint8_t)dq_below(seed, 4);
    f->padding = f->ip && dq_below(seed, 3) == 0 ? dq_below(seed, 20) : 0;
}

#endif
