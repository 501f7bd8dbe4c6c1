// payload.h: position of the payload that a stage processes in a received packet.
#ifndef DQI_PAYLOAD_H
#define DQI_PAYLOAD_H

#include "core/burst.h"
#include "program/expr.h"

enum { DQI_PAYLOAD_CHUNK = 128 }; // packets per computation

typedef struct dqi_payload_rule {
    uint32_t segment, offset; // bytes from the segment's start,
    bool at_payload;          // or from the innermost payload's start (segment 0)
    dq_prog *header;          // further bytes to skip; NULL: none
    dq_prog *length;          // payload bytes; NULL, or absent for a packet: all available
} dqi_payload_rule;

// Compiles the rule's two programs from numbers (n 0: none). INVALID_PARAMETER as dq_prog_new.
static inline int dqi_payload_rule_init(dqi_payload_rule *r, const dq_number *header, const dq_number *length,
                                        dq_diag *diag) {
    int err = header->n ? dq_prog_new(header->insns, header->n, &r->header, diag) : DQ_OK;
    if (err == DQ_OK && length->n) err = dq_prog_new(length->insns, length->n, &r->length, diag);
    return err;
}

static inline void dqi_payload_rule_free(dqi_payload_rule *r) {
    dq_prog_free(r->header);
    dq_prog_free(r->length);
}

// Computed numbers of a chunk of packets.
typedef struct dqi_payload_numbers {
    uint64_t header[DQI_PAYLOAD_CHUNK], length[DQI_PAYLOAD_CHUNK];
    uint8_t has_header[DQI_PAYLOAD_CHUNK], has_length[DQI_PAYLOAD_CHUNK];
} dqi_payload_numbers;

// Computes the numbers of packets [first, first + DQI_PAYLOAD_CHUNK) of b, or as many as there are.
static inline void dqi_payload_compute(const dq_burst *b, const dqi_payload_rule *r, uint32_t first,
                                       dqi_payload_numbers *out) {
    if (!r->header && !r->length) return;
    const uint32_t left = b->n - first;
    const dqi_packets in = dqi_packets_at(b, first, left < DQI_PAYLOAD_CHUNK ? left : DQI_PAYLOAD_CHUNK);
    const dqi_level *k = dqi_level_best();
    if (r->header) dqi_prog_eval(r->header, k, &in, b->payload, out->header, out->has_header);
    if (r->length) dqi_prog_eval(r->length, k, &in, b->payload, out->length, out->has_length);
}

// Computes the start and end offset of packet k's payload in its segment, which may be equal; false: it has
// no payload, or a truncated one. n: the numbers of the packets from `first` on.
static inline bool dqi_payload_locate(const dq_burst *b, const dqi_payload_rule *r,
                                      const dqi_payload_numbers *n, uint32_t k, uint32_t first,
                                      uint32_t *from, uint32_t *to) {
    uint64_t at = 0, end = b->len[r->segment][k];
    uint32_t i = k - first;
    if (r->at_payload && !b->payload) {
        dqi_pkt pkt;
        const uint32_t have = dqi_seen_len(b)[k];
        if (!dqi_parse_head(dqi_seen_bytes(b, k), have, (uint32_t)end, &pkt) || pkt.payload == DQI_NONE)
            return false;
        at = pkt.payload;
        end = (uint64_t)pkt.payload + pkt.payload_len;
    }
    at += r->offset;
    if (r->header) {
        if (!n->has_header[i] || n->header[i] > end) return false;
        at += n->header[i];
    }
    if (at > end) return false;
    if (r->length && n->has_length[i]) {
        if (n->length[i] > end - at) return false;
        end = at + n->length[i];
    }
    *from = (uint32_t)at;
    *to = (uint32_t)end;
    return true;
}

// Does the same, but fails for empty payloads.
static inline bool dqi_payload_find(const dq_burst *b, const dqi_payload_rule *r,
                                    const dqi_payload_numbers *n, uint32_t k, uint32_t first, uint32_t *from,
                                    uint32_t *to) {
    return dqi_payload_locate(b, r, n, k, first, from, to) && *from < *to;
}

#endif
