// dq_op.h: asynchronous operations: progress counters and completion events for tasks.
#ifndef DQ_OP_H
#define DQ_OP_H

#include "pipeline/dq_pipeline.h"

// Progress of an operation.
typedef struct dq_op_state {
    bool done;                  // all values are final
    uint32_t completed, failed; // parts, usually packets
    uint64_t bytes;             // of the completed ones
} dq_op_state;

// Creates an operation of `parts` parts, which the worker settles one by one; it completes with the last. The
// caller frees it with dq_op_free. Returns DQ_ESYS - ENOMEM without memory.
int dq_op_new(uint32_t parts, dq_op **out);
// Settle n more parts: as completed, with the given bytes, or as failed, with the reason as text. No effect
// if op is NULL. Any thread.
void dq_op_ok(dq_op *op, uint32_t n, uint64_t bytes);
void dq_op_lost(dq_op *op, uint32_t n, const char *why);
// Read the progress, and the text of the first failure (empty: none). Any thread, also after the session has
// closed.
void dq_op_read(const dq_op *op, dq_op_state *out);
void dq_op_error(const dq_op *op, char *buf, size_t len);
// Posts one DQ_EV_OP event with this tag to w's task on completion; if the operation has already completed,
// at the task's next wait. INVALID_PARAMETER: it has a watcher. Any thread.
int dq_op_watch(dq_op *op, dq_waiter *w, uint64_t tag);
// Releases the caller's reference; the work continues. NULL is allowed.
void dq_op_free(dq_op *op);

#endif
