// stage_convert.c: converts payload elements into buffers of a region of its own: input packets may have
// other readers, and no space to grow.
#include "core/burst.h"
#include "core/err.h"
#include "core/peers.h"
#include "pipeline/dq_pipeline.h"
#include "pipeline/engine.h"
#include "pipeline/iface.h"
#include "pipeline/queue.h"
#include "pipeline/session.h"
#include "pipeline/stage.h"
#include "program/payload.h"
#include "reorder/convert.h"
#include "reorder/reorder.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct choice {
    uint64_t number;
    dqi_convert convert;
} choice;

typedef struct converter {
    dq_convert_conf conf;
    choice *choices; // without a type of packets: one
    uint32_t n_choices;
    dq_prog *type, *scale; // NULL: none
    dqi_payload_rule place;
} converter;

// Numbers of a chunk of packets from `first` on.
typedef struct numbers {
    uint32_t first;
    dqi_payload_numbers of;
    uint64_t type[DQI_PAYLOAD_CHUNK], scale[DQI_PAYLOAD_CHUNK];
    uint8_t has_type[DQI_PAYLOAD_CHUNK], has_scale[DQI_PAYLOAD_CHUNK];
} numbers;

// The conversion of a choice with the scale of a packet.
typedef struct scaled {
    const choice *of; // NULL: none yet
    dqi_convert convert;
} scaled;

enum { CONVERTED = -1, RAW = -2 };

// ---- types and scales -------------------------------------------------------------------------------------

static void compute(const converter *c, const dq_burst *in, uint32_t first, numbers *n) {
    n->first = first;
    dqi_payload_compute(in, &c->place, first, &n->of);
    const uint32_t left = in->n - first, some = left < DQI_PAYLOAD_CHUNK ? left : DQI_PAYLOAD_CHUNK;
    const dqi_packets packets = dqi_packets_at(in, first, some);
    const dqi_level *k = dqi_level_best();
    if (c->type) dqi_prog_eval(c->type, k, &packets, in->payload, n->type, n->has_type);
    if (c->scale) dqi_prog_eval(c->scale, k, &packets, in->payload, n->scale, n->has_scale);
}

static const choice *find_choice(const converter *c, uint64_t number) {
    for (uint32_t k = 0; k < c->n_choices; k++)
        if (c->choices[k].number == number) return &c->choices[k];
    return NULL;
}

static double scale_of(const converter *c, double factor, uint64_t number) {
    const double v = c->conf.scale_signed ? (double)(int64_t)number : (double)number;
    if (!c->conf.scale_power) return factor * v;
    return ldexp(factor, v < -4096 ? -4096 : v > 4096 ? 4096 : (int)v);
}

// Returns the conversion of the i-th packet of n. NULL: its type or scale is not known.
static const dqi_convert *choose(const converter *c, const numbers *n, uint32_t i, scaled *s) {
    const choice *k = c->choices;
    if (c->type) k = n->has_type[i] ? find_choice(c, n->type[i]) : NULL;
    if (!k || (c->scale && !n->has_scale[i])) return NULL;
    if (!c->scale) return &k->convert;
    if (s->of != k) *s = (scaled){k, k->convert};
    const dqk_unpack *u = &k->convert.unpack;
    dqk_unpack_scale(&s->convert.unpack, scale_of(c, u->scale, n->scale[i]), u->offset);
    return &s->convert;
}

// ---- single packet ----------------------------------------------------------------------------------------

// Updates lengths and checksums of a converted frame: len bytes at p; from: the original of `was` bytes with
// the same first `head`. No effect if its headers extend beyond those.
static void follow(uint8_t *p, uint32_t len, uint32_t head, const uint8_t *from, uint32_t was) {
    dqi_pkt k;
    if (!dqi_parse(from, was, &k) || k.l3 == DQI_NONE || k.payload == DQI_NONE || k.payload > head) return;
    if (k.has & DQ_HAS_IPV4) dqi_put_be16(p + k.l3 + 2, (uint16_t)(len - k.l3));
    if (k.has & DQ_HAS_IPV6) dqi_put_be16(p + k.l3 + 4, (uint16_t)(len - k.l3 - DQI_IPV6_LEN));
    if (k.has & DQ_HAS_UDP && !(k.has & DQ_HAS_FRAGMENT)) dqi_put_be16(p + k.l4 + 4, (uint16_t)(len - k.l4));
    k.len = len;
    dqi_csum_after(&(dqi_csum_change){.recompute = true}, p, &k);
}

// Copies the column values of packet i to the last packet of out.
static void copy_columns(dq_burst *out, const dq_burst *in, uint32_t i) {
    uint32_t k = out->n - 1;
    out->flow[k] = in->flow[i];
    out->ts[k] = in->ts[i];
    if (in->timed) out->tx_time[k] = in->tx_time[i];
    dqi_burst_copy_imms(out, k, in, i, 1);
    if (in->payload) dqi_burst_copy_peer(out, k, in, i);
}

// Begins packet i of `all` bytes in the next buffer of out, with the first `from` bytes of the original.
static uint8_t *append(const converter *c, const dq_burst *in, uint32_t i, uint64_t all, uint32_t from,
                       dq_burst *out) {
    const uint32_t k = out->n++;
    out->off[0][k] = dqi_buf_off(c->conf.region, out->bufs[0][k]);
    out->len[0][k] = (uint32_t)all;
    out->bytes += all;
    copy_columns(out, in, i);
    uint8_t *at = dqi_bytes(out, 0, k);
    memcpy(at, dqi_bytes(in, 0, i), from);
    return at;
}

// Appends packet i unchanged. Returns RAW, or the drop reason.
static int pass(const converter *c, const dq_burst *in, uint32_t i, dq_burst *out) {
    const uint32_t all = in->len[0][i];
    if (all > c->conf.region->conf.buf_size) return DQ_DROP_TOO_LONG;
    append(c, in, i, all, all, out);
    return RAW;
}

// Appends packet i, converted, to out, which has a buffer for it. Returns CONVERTED, RAW, or the drop reason.
static int convert_packet(const converter *c, const dq_burst *in, const numbers *n, uint32_t i, scaled *s,
                          dq_burst *out) {
    const uint8_t *p = dqi_bytes(in, 0, i);
    const dqi_convert *convert = choose(c, n, i - n->first, s);
    uint32_t from, to, len;
    bool frame = !in->payload;
    if (!convert) return pass(c, in, i, out);
    if (!dqi_payload_find(in, &c->place, &n->of, i, n->first, &from, &to)) return DQ_DROP_BAD_PLACE;
    if (!dqi_convert_size(convert, to - from, &len)) return DQ_DROP_BAD_PAYLOAD;
    uint64_t all = (uint64_t)from + len;
    if (all > c->conf.region->conf.buf_size || (frame && all > UINT16_MAX)) return DQ_DROP_TOO_LONG;
    uint8_t *at = append(c, in, i, all, from, out);
    dqi_convert_bytes(convert, at + from, p + from, to - from);
    if (frame) follow(at, (uint32_t)all, from, p, in->len[0][i]);
    return CONVERTED;
}

// ---- bursts -----------------------------------------------------------------------------------------------

// Returns an empty burst with buffers for *n packets, at most in->n. NULL: none.
static dq_burst *begin(const converter *c, const dq_burst *in, uint32_t *n) {
    dq_burst *out = dqi_burst_get(in->session->core.picks);
    if (!out) return NULL;
    out->nseg = 1;
    out->conn = in->conn;
    out->flags = in->flags;
    dqi_burst_take_clock(out, in);
    out->timed = in->timed;
    out->queue = in->queue;
    out->payload = in->payload;
    *n = dqi_burst_take(out, (dq_region *const[]){c->conf.region}, in->n);
    return out;
}

static void give_up(dq_burst *out, uint32_t n) {
    dqi_bufs_free(out->session, out->bufs[0], n);
    dq_burst_unref(out);
}

static int convert_push(dq_stage *st, dqi_node *node, dq_burst *in, dq_burst **out) {
    const converter *c = st->impl;
    uint32_t room = 0;
    dq_burst *b = begin(c, in, &room);
    if (room < in->n && c->conf.policy == DQ_POLICY_WAIT) {
        if (b) give_up(b, room);
        return DQ_NOT_READY;
    }
    *out = NULL;
    numbers n;
    scaled s = {.of = NULL};
    for (uint32_t i = 0; i < in->n; i++) {
        if (i % DQI_PAYLOAD_CHUNK == 0) compute(c, in, i, &n);
        int what = !b             ? DQ_DROP_NO_BURST_BUFFER
                   : b->n == room ? DQ_DROP_NO_PACKET_BUFFER
                                  : convert_packet(c, in, &n, i, &s, b);
        if (what == RAW)
            dqi_add(&node->c.extra[DQ_EXTRA_RAW], 1);
        else if (what != CONVERTED)
            dqi_drop(&node->c, (dq_reason)what, 1);
    }
    dq_burst_unref(in);
    if (!b) return DQ_OK;
    dqi_bufs_free(b->session, b->bufs[0] + b->n, room - b->n);
    b->n_bufs = b->n;
    dqi_add(&node->c.out, b->n);
    dqi_add(&node->c.out_bytes, b->bytes);
    if (b->n > 0)
        *out = b;
    else
        dq_burst_unref(b);
    return DQ_OK;
}

// ---- stage ------------------------------------------------------------------------------------------------

static int convert_check(const dq_stage *st, const dq_queue *q, dq_diag *diag) {
    const converter *c = st->impl;
    const dq_region *r = c->conf.region;
    if (dqi_reorder_of(q))
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "convert %s: %s gives aggregates: hint: give data_types to that reorder stage",
                        st->name, q->conf.name);
    if (q->conf.n_regions > 1)
        return dqi_fail(
            diag, DQ_NOT_SUPPORTED,
            "convert %s: queue %s splits packets into %u segments, and it takes whole ones: hint: "
            "one memory region, and payload_byte_offset",
            st->name, q->conf.name, q->conf.n_regions);
    if (!q->iface->ops->payload && !c->place.at_payload && c->place.offset == 0)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "convert %s: queue %s holds frames, and their headers are not elements: hint: at = "
                        "\"payload\", or payload_byte_offset",
                        st->name, q->conf.name);
    if (q->conf.batch_size > r->conf.num_bufs)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "convert %s: region %s has %u buffers, and a burst of queue %s up to %u packets: "
                        "num_bufs must be at least that",
                        st->name, r->conf.name, r->conf.num_bufs, q->conf.name, q->conf.batch_size);
    return DQ_OK;
}

static void converter_free(converter *c) {
    dqi_payload_rule_free(&c->place);
    dq_prog_free(c->type);
    dq_prog_free(c->scale);
    free(c->choices);
    free(c);
}

static void convert_free(dq_stage *st) { converter_free(st->impl); }

static const dqi_stage_ops convert_ops = {
    .line_kind = DQ_LINE_STAGE,
    .touches = DQI_TOUCHES_ALL,
    .check = convert_check,
    .push = convert_push,
    .free = convert_free,
};

// Finds the conversion of each choice.
static int find_conversions(converter *c, const char *what, dq_diag *diag) {
    const dq_convert_conf *conf = &c->conf;
    const dq_sample_choice all = {.types = conf->types}, *choices = conf->n_choices ? conf->choices : &all;
    c->n_choices = conf->n_choices ? conf->n_choices : 1;
    c->choices = calloc(c->n_choices, sizeof *c->choices);
    if (!c->choices) return dqi_fail(diag, DQ_ESYS - ENOMEM, "%s: no memory", what);
    int err = DQ_OK;
    for (uint32_t k = 0; k < c->n_choices && err == DQ_OK; k++) {
        dq_data_types t = choices[k].types;
        t.any_scale = conf->scale.n > 0;
        c->choices[k].number = choices[k].number;
        err = dqi_convert_find(&t, &c->choices[k].convert, what, diag);
    }
    if (err == DQ_OK && conf->n_choices) err = dq_prog_new(conf->type.insns, conf->type.n, &c->type, diag);
    if (err == DQ_OK && conf->scale.n) err = dq_prog_new(conf->scale.insns, conf->scale.n, &c->scale, diag);
    return err;
}

static int prepare(converter *c, dq_session *s, const char *name, dq_diag *diag) {
    char what[DQ_NAME_LEN + 16];
    const dq_region *r = c->conf.region;
    snprintf(what, sizeof what, "convert %.*s", DQ_NAME_LEN, name);
    if (!r || s->state == DQI_NEW)
        return dqi_fail(diag, DQ_INVALID_PARAMETER,
                        "%s: it needs a memory region, and a session that is open", what);
    if (r->gpu)
        return dqi_fail(diag, DQ_NOT_SUPPORTED,
                        "%s: region %s is a GPU's memory: hint: s:copy with data_types converts by the GPU",
                        what, r->conf.name);
    int err = dqi_stage_may_take(s, what, r, c->conf.policy == DQ_POLICY_WAIT, diag);
    if (err == DQ_OK) err = dqi_region_keep_peers(c->conf.region, diag);
    if (err != DQ_OK) return err;
    return find_conversions(c, what, diag);
}

int dq_stage_convert(dq_session *s, const char *name, const dq_convert_conf *conf, dq_stage **out,
                     dq_diag *diag) {
    converter *c = malloc(sizeof *c);
    if (!c) return dqi_fail(diag, DQ_ESYS - ENOMEM, "convert %s: no memory", name);
    *c = (converter){.conf = *conf,
                     .place = {.offset = conf->payload_offset, .at_payload = conf->at_payload != 0}};
    int err = prepare(c, s, name, diag);
    if (err == DQ_OK) err = dqi_payload_rule_init(&c->place, &conf->header, &conf->length, diag);
    if (err == DQ_OK) err = dqi_stage_add(s, name, &convert_ops, c, out, diag);
    if (err != DQ_OK) {
        converter_free(c);
        return err;
    }
    (*out)->region = conf->region;
    (*out)->waits = conf->policy == DQ_POLICY_WAIT;
    return DQ_OK;
}
