// op.h: operations (dq_op.h), for those who do the work.
#ifndef DQI_OP_H
#define DQI_OP_H

#include "pipeline/dq_op.h"

// An operation of so many parts with a copy of `bytes` bytes of what the work needs to know. NULL: no memory.
// Held by the caller (until dq_op_free) and, while some part is open, by the work.
dq_op *dqi_op_new(uint32_t parts, const void *about, size_t bytes);
// The copy; NULL: op is NULL, or was made without.
const void *dqi_op_about(const dq_op *op);
// The operation holds b, with a reference of its own, until it ends. Before the work begins; false: no
// memory.
bool dqi_op_hold(dq_op *op, dq_burst *b);

#endif
