// column.c: burst verbs: one field of every packet as a column, a condition as a list of indices, a field set
// in all.
#include "burst.h"
#include "expr.h"
#include "field.h"

#include <string.h>

static void parse(const dq_burst *b, uint32_t i, bool payload, dqi_pkt *pkt) {
    if (payload)
        dqi_parse_payload(b->len[0][i], pkt);
    else
        dqi_parse(b->session->base + b->off[0][i], b->len[0][i], pkt);
    pkt->flow_id = b->flow[i];
    pkt->index = i;
    pkt->rx_time_ns = b->ts[i];
    pkt->has_meta = DQI_HAS_FLOW_ID | DQI_HAS_INDEX | DQI_HAS_RX_TIME;
}

static bool holds_payload(const dq_burst *b) { return b->queue && b->queue->iface->ops->payload; }

uint32_t dq_burst_column(dq_burst *b, const dq_field *f, uint64_t *out, uint8_t *ok) {
    if (dqi_field_check(f, NULL) != DQ_OK) return 0;
    bool payload = holds_payload(b);
    uint32_t n = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        dqi_pkt pkt;
        parse(b, i, payload, &pkt);
        out[i] = 0;
        bool has = dqi_field_get(b->session->base + b->off[0][i], b->len[0][i], &pkt, f, &out[i]);
        if (ok) ok[i] = has;
        n += has;
    }
    return n;
}

uint32_t dqi_burst_accept(const dq_burst *b, const dqi_prog *prog, uint32_t *idx) {
    const uint8_t *base = dqi_burst_base(b);
    if (holds_payload(b))
        return dqi_prog_select_payload(prog, base, b->off[0], b->len[0], b->flow, b->ts, b->n, idx);
    return dqi_prog_select(prog, base, b->off[0], b->len[0], b->flow, b->ts, b->n, idx);
}

int dq_burst_select(dq_burst *b, const dq_insn *insns, uint32_t n_insns, uint32_t *idx) {
    dqi_prog *prog = NULL;
    int err = dqi_prog_new(insns, n_insns, &prog, NULL);
    if (err != DQ_OK) return err;
    uint32_t n = dqi_burst_accept(b, prog, idx);
    dqi_prog_free(prog);
    return (int)n;
}

int dq_burst_set(dq_burst *b, const dq_field *f, uint64_t v, uint64_t step, int checksums) {
    if (!dqi_burst_writable(b) || dqi_field_check(f, NULL) != DQ_OK) return DQ_INVALID_PARAMETER;
    bool payload = holds_payload(b);
    int n = 0;
    for (uint32_t i = 0; i < b->n; i++, v += step) {
        dqi_pkt pkt;
        uint8_t *p = b->session->base + b->off[0][i];
        parse(b, i, payload, &pkt);
        if (!dqi_field_set(p, b->len[0][i], &pkt, f, v)) continue;
        if (checksums && !payload) dqi_csum_fill(p, &pkt);
        n++;
    }
    return n;
}

bool dq_field_named(const char *name, dq_field *out) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    for (uint32_t i = 0; i < n; i++) {
        if (strcmp(t[i].name, name) != 0) continue;
        *out = t[i].field;
        return true;
    }
    return false;
}

const char *dq_field_name(uint32_t i) {
    uint32_t n;
    const dqi_named_field *t = dqi_field_table(&n);
    return i < n ? t[i].name : NULL;
}
