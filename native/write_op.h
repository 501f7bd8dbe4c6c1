// write_op.h: what became of one burst that a script handed to a writer; its readers are in dq.h
// (dq_write_read, dq_write_error, dq_write_free).
#ifndef DQI_WRITE_OP_H
#define DQI_WRITE_OP_H

#include "dq.h"

// An account of n packets, held by the caller (until dq_write_free) and, while some packet is open, by
// the writer. NULL: no memory. Any thread.
// names: of its files, copied; NULL: the writer's own.
dq_write *dqi_write_new(uint32_t n, const dq_write_names *names);
// The names that op was made with, or NULL: none for files. op NULL: NULL.
const dq_write_names *dqi_write_names(const dq_write *op);
// The comment that op was made with, or NULL. op NULL: NULL.
const char *dqi_write_comment(const dq_write *op);
// n more packets and so many bytes are in a file; n 0: a part of a packet. op NULL: no effect. One thread at
// a time, as for dqi_write_lost.
void dqi_write_ok(dq_write *op, uint32_t n, uint64_t bytes);
// n packets will not be in a file; err: -errno, -ECANCELED when nobody tried. op NULL: no effect.
void dqi_write_lost(dq_write *op, uint32_t n, int err);

#endif
