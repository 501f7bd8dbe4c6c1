// ledger_rows.c: the tables of dq_ledger.h as arrays.
#include "core/dq_ledger.h"

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
