// tx_timers.c: a histogram per kind of operation.
#include "gpunetio/host/tx_timers.h"
#include "core/clock.h"
#include "core/histogram.h"
#include "pipeline/stage.h"

#include <stdlib.h>

static const struct {
    uint32_t op;
    dq_histogram_kind kind;
} timed[] = {{GN_OP_SEND, DQ_HISTOGRAM_SEND_TIME}, {GN_OP_PUT, DQ_HISTOGRAM_PUT_TIME},
             {GN_OP_GET, DQ_HISTOGRAM_GET_TIME},   {GN_OP_ADD, DQ_HISTOGRAM_ADD_TIME},
             {GN_OP_COPY, DQ_HISTOGRAM_COPY_TIME}, {GN_OP_FILE, DQ_HISTOGRAM_FILE_TIME}};
#define TIMED (sizeof timed / sizeof *timed)

bool dqi_gn_timers_open(dqi_gn_tx *t) {
    if (t->gn->conf.timers) t->took = calloc(TIMED, sizeof *t->took);
    return t->took || !t->gn->conf.timers;
}

int64_t dqi_gn_timers_now(const dqi_gn_tx *t) { return t->took ? dqi_mono_ns() : 0; }

void dqi_gn_timers_note(dqi_gn_tx *t, uint32_t op, int64_t since, uint32_t n) {
    if (op == GN_OP_CAS) op = GN_OP_ADD; // one histogram of atomics
    for (uint32_t k = 0; t->took && k < TIMED; k++)
        if (timed[k].op == op)
            dqi_histogram_note_many(&t->took[k], (uint64_t)(dqi_gn_timers_now(t) - since), n);
}

bool dqi_gn_timers_histogram(const dq_stage *st, uint32_t k, dq_histogram *out) {
    const dqi_gn_tx *t = st->impl;
    for (uint32_t i = 0; t->took && i < TIMED; i++)
        if (t->ops >> timed[i].op & 1 && k-- == 0) {
            out->kind = (int32_t)timed[i].kind;
            dqi_histogram_read(&t->took[i], out);
            return true;
        }
    return false;
}
