// recording.c: what all formats of recordings check.
#include "writer/recording/recording.h"
#include "core/err.h"
#include "pipeline/queue.h"
#include "reorder/reorder.h"

int dqi_recording_check(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag) {
    const dqi_reorder *r = dqi_reorder_of(q);
    int32_t made = r ? r->conf.types.output : DQ_DTYPE_BYTES;
    if (made == DQ_DTYPE_BYTES || made == c->sample_dtype) return DQ_OK;
    return dqi_fail(
        diag, DQ_INVALID_PARAMETER,
        "writer %s: reorder %s makes %s, which samples.type does not describe; hint: make the type of "
        "the samples and output_type the same",
        writer, q->conf.name, dq_dtype_name(made));
}
