// burst_op.h: the operation of a burst that was handed to a writer.
#ifndef DQI_BURST_OP_H
#define DQI_BURST_OP_H

#include "pipeline/op.h"
#include "writer/disk.h"
#include "writer/dq_writer.h"

// What the burst has of its own for files of its own, or NULL. op NULL: NULL.
static inline const dq_write_names *dqi_op_names(const dq_op *op) {
    const dq_write_names *n = dqi_op_about(op);
    return n && n->prefix[0] ? n : NULL;
}

// The comment of its packets, or NULL. op NULL: NULL.
static inline const char *dqi_op_comment(const dq_op *op) {
    const dq_write_names *n = dqi_op_about(op);
    return n && n->comment[0] ? n->comment : NULL;
}

// n of its packets will not be in a file; err: -errno or dqi_file_error. op NULL: no effect.
static inline void dqi_op_lost(dq_op *op, uint32_t n, int err) {
    if (op) dq_op_lost(op, n, dqi_disk_words(err));
}

// dq_writer_write with an operation that is there, of as many parts as b has packets. What failed has begun
// nothing, and the operation is the caller's alone.
int dqi_writer_give(dq_stage *writer, dq_burst *b, dq_op *op);

#endif
