// block_format.h: the headers of a file of blocks, version 1 (BLOCKS.md), apart from how they get to a disk
// or elsewhere. Pure.
#ifndef DQI_BLOCK_FORMAT_H
#define DQI_BLOCK_FORMAT_H

#include "core/dq_burst.h"

#define DQI_BLOCK_PAGE 4096 // bytes: of the file's header; data begin at multiples of it
#define DQI_BLOCK_TEXT 3072 // bytes of the longest text in the file's header

// What all blocks of a file have in common.
typedef struct dqi_block_shape {
    uint32_t slots, slot_bytes, cells, cell_bytes;
    int32_t dtype;
    bool extra;   // each slot has a number
    bool by_slot; // the bitmap has a bit for each slot, not for each cell
    // following from these
    uint32_t present_bits, extra_at;  // bits of the bitmap; offset in a block's header, 0: none
    uint32_t header_bytes;            // of a block
    uint64_t data_bytes, block_bytes; // without and with header and padding
} dqi_block_shape;

dqi_block_shape dqi_block_shape_of(const dq_aggregate *a, bool by_slot);
bool dqi_block_same_shape(const dqi_block_shape *a, const dqi_block_shape *b);

typedef struct dqi_block_file_header {
    const char *writer, *text; // text: the user's
    uint64_t index;            // of the file
    int64_t created_ns;        // in this clock, dq_clock_id
    int32_t clock;
} dqi_block_file_header;
// Writes PAGE bytes.
void dqi_block_put_file_header(uint8_t *dst, const dqi_block_shape *s, const dqi_block_file_header *h);
// Writes the header_bytes before the data of a.
void dqi_block_put_header(uint8_t *dst, const dqi_block_shape *s, const dq_aggregate *a);

#endif
