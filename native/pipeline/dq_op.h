// dq_op.h: work that ends later, on a thread of its own: its account, and how a task hears of its end.
#ifndef DQ_OP_H
#define DQ_OP_H

#include "pipeline/dq_pipeline.h"

// What became of an operation so far.
typedef struct dq_op_state {
    bool done;                  // nothing more will change
    uint32_t completed, failed; // of its parts, packets mostly
    uint64_t bytes;             // of the completed ones
} dq_op_state;

// An operation of so many parts, which whoever does the work settles one by one; it ends with the last. The
// caller's until dq_op_free. DQ_ESYS - ENOMEM.
int dq_op_new(uint32_t parts, dq_op **out);
// n more parts are done, and so many bytes; or failed, for the reason in words. op NULL: no effect. Any
// thread.
void dq_op_ok(dq_op *op, uint32_t n, uint64_t bytes);
void dq_op_lost(dq_op *op, uint32_t n, const char *why);
// Any thread, also when the session has gone; dq_op_error: the first failure in words, or empty.
void dq_op_read(const dq_op *op, dq_op_state *out);
void dq_op_error(const dq_op *op, char *buf, size_t len);
// Tells w's task of the end, once, as an event DQ_EV_OP with this tag: at its next wait where the operation
// has ended already. INVALID_PARAMETER: it is watched. Any thread.
int dq_op_watch(dq_op *op, dq_waiter *w, uint64_t tag);
// Lets go of it; the work goes on. NULL is fine.
void dq_op_free(dq_op *op);

#endif
