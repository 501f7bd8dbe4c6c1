// burst_op.h: operation of a burst passed to a writer.
#ifndef DQI_BURST_OP_H
#define DQI_BURST_OP_H

#include "pipeline/op.h"
#include "writer/disk.h"
#include "writer/dq_writer.h"

// Returns the burst's own file names, or NULL. op NULL: NULL.
static inline const dq_write_names *dqi_op_names(const dq_op *op) {
    const dq_write_names *n = dqi_op_about(op);
    return n && n->prefix[0] ? n : NULL;
}

// Returns the comment of its packets, or NULL. op NULL: NULL.
static inline const char *dqi_op_comment(const dq_op *op) {
    const dq_write_names *n = dqi_op_about(op);
    return n && n->comment[0] ? n->comment : NULL;
}

// Settles n of its packets as not written; err: -errno or dqi_file_error. op NULL: no effect.
static inline void dqi_op_lost(dq_op *op, uint32_t n, int err) {
    if (op) dq_op_lost(op, n, dqi_disk_words(err));
}

// Like dq_writer_write, with an existing operation of as many parts as b has packets. On error no part has
// begun, and only the caller references the operation.
int dqi_writer_put(dq_stage *writer, dq_burst *b, dq_op *op);

#endif
