// op.h: operations (dq_op.h), for those who do the work.
#ifndef DQI_OP_H
#define DQI_OP_H

#include "pipeline/dq_op.h"

// An operation of so many parts with a copy of `bytes` bytes of what the work needs to know. NULL: no memory.
// Held by the caller (until dq_op_free) and, while some part is open, by the work.
dq_op *dqi_op_new(uint32_t parts, const void *about, size_t bytes);
// The copy; NULL: op is NULL, or was made without.
const void *dqi_op_about(const dq_op *op);
// The operation holds b, with a reference of its own, until it ends. Once, before the work begins.
void dqi_op_hold(dq_op *op, dq_burst *b);

// Operations whose memory is there beforehand, for those that begin many.
typedef struct dqi_op_pool dqi_op_pool;
dqi_op_pool *dqi_op_pool_new(uint32_t n); // NULL: no memory
// One of them, as dqi_op_new makes it; NULL: all are taken. Any thread.
dq_op *dqi_op_take(dqi_op_pool *p, uint32_t parts);
// Its owner leaves it: those that are taken go on. NULL is fine.
void dqi_op_pool_free(dqi_op_pool *p);

#endif
