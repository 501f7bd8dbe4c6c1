// gather.h: the bytes of a packet out of its segments.
#ifndef DQI_GATHER_H
#define DQI_GATHER_H

#include "core/dq_burst.h"
#include "writer/buffered_file.h"

#define DQI_PIECE (256u << 10) // bytes: dqi_buffered_file_room has them

// Copies at most max bytes of packet i, from byte skip on, over all its segments, to dst, which lies at
// dqi_buffered_file_room; the number copied. What lies in a GPU's memory comes later
// (dqi_buffered_file_copy).
uint32_t dqi_gather(dqi_buffered_file *f, const dq_burst *b, uint32_t i, uint32_t skip, uint8_t *dst,
                    uint32_t max);
// Adds the first n bytes of packet i from byte skip on, zeros up to total, to the record that was begun, and
// ends it as that of the whole packet, of so many bytes: in pieces, which go out as buffers fill. 0, or
// -errno as dqi_buffered_file_room.
int dqi_gather_record(dqi_buffered_file *f, const dq_burst *b, uint32_t i, uint32_t skip, uint64_t n,
                      uint64_t total, uint64_t bytes, dqi_file_tally *tally);

#endif
