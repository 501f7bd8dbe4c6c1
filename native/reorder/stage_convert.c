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
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct converter {
    dq_convert_conf conf;
    dqi_convert convert;
    dqi_payload_rule place;
} converter;

// Numbers of a chunk of packets from `first` on.
typedef struct numbers {
    uint32_t first;
    dqi_payload_numbers of;
} numbers;

enum { CONVERTED = -1 };

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

// Appends the converted packet i to out, which has a buffer for it. Returns CONVERTED, or the drop reason.
static int convert_packet(const converter *c, const dq_burst *in, const numbers *n, uint32_t i,
                          dq_burst *out) {
    const uint8_t *p = dqi_bytes(in, 0, i);
    uint32_t from, to, len, k = out->n;
    bool frame = !in->payload;
    if (!dqi_payload_find(in, &c->place, &n->of, i, n->first, &from, &to)) return DQ_DROP_BAD_PLACE;
    if (!dqi_convert_size(&c->convert, to - from, &len)) return DQ_DROP_BAD_PAYLOAD;
    uint64_t all = (uint64_t)from + len;
    if (all > c->conf.region->conf.buf_size || (frame && all > UINT16_MAX)) return DQ_DROP_TOO_LONG;
    out->off[0][k] = dqi_buf_off(c->conf.region, out->bufs[0][k]);
    out->len[0][k] = (uint32_t)all;
    out->bytes += all;
    out->n++;
    uint8_t *at = dqi_bytes(out, 0, k);
    memcpy(at, p, from);
    dqi_convert_bytes(&c->convert, at + from, p + from, to - from);
    if (frame) follow(at, (uint32_t)all, from, p, in->len[0][i]);
    copy_columns(out, in, i);
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
    for (uint32_t i = 0; i < in->n; i++) {
        if (i % DQI_PAYLOAD_CHUNK == 0) {
            n.first = i;
            dqi_payload_compute(in, &c->place, i, &n.of);
        }
        int what = !b             ? DQ_DROP_NO_BURST_BUFFER
                   : b->n == room ? DQ_DROP_NO_PACKET_BUFFER
                                  : convert_packet(c, in, &n, i, b);
        if (what != CONVERTED) dqi_drop(&node->c, (dq_reason)what, 1);
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
    return dqi_convert_find(&c->conf.types, &c->convert, what, diag);
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
