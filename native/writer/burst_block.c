// burst_block.c: a reordered burst as a block (BLOCKS.md), for consumers that build files themselves.
#include "core/burst.h"
#include "writer/block_format.h"
#include "writer/dq_writer.h"

_Static_assert(DQ_BLOCK_FILE_HEADER == DQI_BLOCK_PAGE, "the file header is a page");

uint64_t dq_block_bytes(const dq_burst *b, uint32_t *header_bytes) {
    if (!b->aggregate) return 0;
    dqi_block_shape s = dqi_block_shape_of(b->aggregate, false);
    *header_bytes = s.header_bytes;
    return s.block_bytes;
}

void dq_block_file_header(const dq_burst *b, const char *writer, const char *text, uint64_t index,
                          uint8_t *dst) {
    dqi_block_shape s = dqi_block_shape_of(b->aggregate, false);
    dqi_block_put_file_header(dst, &s,
                              &(dqi_block_file_header){.writer = writer,
                                                       .text = text,
                                                       .index = index,
                                                       .created_ns = dq_now(b->session),
                                                       .clock = b->clock});
}

void dq_block_header(const dq_burst *b, uint8_t *dst) {
    dqi_block_shape s = dqi_block_shape_of(b->aggregate, false);
    dqi_block_put_header(dst, &s, b->aggregate);
}
