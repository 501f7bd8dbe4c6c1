// counters.c: reads and writes of packet counters that are not on the packet path; the tables of dq_ledger.h
// as arrays.
#include "core/counters.h"
#include "core/dq_ledger.h"

void dqi_queue_error_add(dqi_queue_error errors[DQI_QUEUE_ERRORS], int err, uint64_t n) {
    int k = 0;
    for (; k < DQI_QUEUE_ERRORS - 1; k++) {
        int32_t had = 0;
        if (atomic_compare_exchange_strong(&errors[k].err, &had, err) || had == err) break;
    }
    if (k == DQI_QUEUE_ERRORS - 1) atomic_store(&errors[k].err, DQ_OTHER_ERRORS);
    dqi_add_shared(&errors[k].n, n);
}

void dqi_line_add(dq_line *l, const dqi_counters *c) {
    l->in += dqi_get(&c->in);
    l->in_bytes += dqi_get(&c->in_bytes);
    l->out += dqi_get(&c->out);
    l->out_bytes += dqi_get(&c->out_bytes);
    l->bursts += dqi_get(&c->bursts);
    for (int i = 0; i < DQ_REASONS; i++)
        l->dropped[i] += dqi_get(&c->dropped[i]);
    for (int i = 0; i < DQ_EXTRAS; i++)
        l->extra[i] += dqi_get(&c->extra[i]);
}

void dqi_drop(dqi_counters *c, dq_reason why, uint64_t n) { dqi_add(&c->dropped[why], n); }

// ---- tables ----------------------------------------------------------------------------------------------

const dq_reason_row dq_reasons[DQ_REASONS] = {
#define X(id, name, wanted, text, advice) {name, wanted, text, advice},
    DQ_REASON_ROWS(X)
#undef X
};

const dq_extra_row dq_extras[DQ_EXTRAS] = {
#define X(id, name, unit, text) {name, unit, text},
    DQ_EXTRA_ROWS(X)
#undef X
};

const dq_histogram_row dq_histogram_rows[DQ_HISTOGRAMS] = {
#define X(id, name, unit, line, metric, text, title) {name, unit, DQ_LINE_##line, metric, text, title},
    DQ_HISTOGRAM_ROWS(X)
#undef X
};
