// op.h: operations (dq_op.h), worker's interface.
#ifndef DQI_OP_H
#define DQI_OP_H

#include "pipeline/dq_op.h"

// Creates an operation of `parts` parts with a copy of `bytes` bytes of context for the worker. Referenced by
// the caller (until dq_op_free) and, while parts are unsettled, by the worker. NULL: no memory.
dq_op *dqi_op_new(uint32_t parts, const void *about, size_t bytes);
// Returns the copied context; NULL: op is NULL or has none.
const void *dqi_op_about(const dq_op *op);
// Makes the operation hold a reference to b until it completes. Once, before the work begins.
void dqi_op_hold(dq_op *op, dq_burst *b);

// Preallocated operations, for callers that start many.
typedef struct dqi_op_pool dqi_op_pool;
dqi_op_pool *dqi_op_pool_new(uint32_t n); // NULL: no memory
// Takes an operation, initialized as by dqi_op_new; NULL: all are in use. Any thread.
dq_op *dqi_op_take(dqi_op_pool *p, uint32_t parts);
// Frees the pool once its operations in use have returned. NULL is allowed.
void dqi_op_pool_free(dqi_op_pool *p);

#endif
