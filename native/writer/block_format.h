// block_format.h: headers of a block file, version 1 (BLOCKS.md), independent of the output medium. No side
// effects.
#ifndef DQI_BLOCK_FORMAT_H
#define DQI_BLOCK_FORMAT_H

#include "core/dq_burst.h"

#define DQI_BLOCK_PAGE 4096 // bytes of the file header; data are aligned to it
#define DQI_BLOCK_TEXT 3072 // maximum bytes of the text in the file header

// Properties shared by all blocks of a file.
typedef struct dqi_block_shape {
    uint32_t slots, slot_bytes, cells, cell_bytes;
    int32_t dtype;
    bool extra;   // slots have a number
    bool by_slot; // one bit of the bitmap per slot, not per cell
    // derived from these
    uint32_t present_bits, extra_at;  // bits of the bitmap; offset in the block header, 0: none
    uint32_t header_bytes;            // per block
    uint64_t data_bytes, block_bytes; // without, and with header and padding
} dqi_block_shape;

dqi_block_shape dqi_block_shape_of(const dq_aggregate *a, bool by_slot);
bool dqi_block_same_shape(const dqi_block_shape *a, const dqi_block_shape *b);

typedef struct dqi_block_file_header {
    const char *writer, *text; // text: user text
    uint64_t index;            // index of the file
    int64_t created_ns;        // clock: dq_clock_id of created_ns
    int32_t clock;
} dqi_block_file_header;
// Writes the file header, DQI_BLOCK_PAGE bytes.
void dqi_block_put_file_header(uint8_t *dst, const dqi_block_shape *s, const dqi_block_file_header *h);
// Writes a block header, header_bytes long.
void dqi_block_put_header(uint8_t *dst, const dqi_block_shape *s, const dq_aggregate *a);

#endif
