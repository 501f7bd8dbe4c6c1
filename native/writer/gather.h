// gather.h: copies a packet's bytes from its segments.
#ifndef DQI_GATHER_H
#define DQI_GATHER_H

#include "core/dq_burst.h"
#include "writer/buffered_file.h"

#define DQI_PIECE (256u << 10) // available in dqi_buffered_file_room

// Copies at most max bytes of packet i, from byte skip on, over all segments, to dst, in
// dqi_buffered_file_room; returns the number copied. Bytes in a GPU's memory arrive later
// (dqi_buffered_file_copy).
uint32_t dqi_gather(dqi_buffered_file *f, const dq_burst *b, uint32_t i, uint32_t skip, uint8_t *dst,
                    uint32_t max);
// Adds n bytes of packet i from byte skip on, zero-padded to total, to the current record, and ends it as
// that of a whole packet of `bytes` bytes; in pieces, as buffers fill up. 0, or -errno as
// dqi_buffered_file_room.
int dqi_gather_record(dqi_buffered_file *f, const dq_burst *b, uint32_t i, uint32_t skip, uint64_t n,
                      uint64_t total, uint64_t bytes, dqi_file_tally *tally);

#endif
