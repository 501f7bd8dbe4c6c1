// block_file.h: the functions of the format of block files, for formats whose files are block files too. They
// are those of dqi_format.
#ifndef DQI_BLOCK_FILE_H
#define DQI_BLOCK_FILE_H

#include "writer/block_format.h"
#include "writer/format.h"

typedef struct dqi_block_file {
    dqi_buffered_file file;
    dqi_block_shape shape;
    uint8_t *header; // one block's header
} dqi_block_file;

int dqi_block_file_check(const char *writer, const dq_writer_conf *c, const dq_queue *q, dq_diag *diag);
uint64_t dqi_block_file_header_bytes(const dq_writer_conf *c);
uint64_t dqi_block_file_bytes_of(const dqi_buffered_file *f, const dq_writer_conf *c, const dq_burst *b,
                                 uint32_t i);
int dqi_block_file_open(dqi_buffered_file *f, const dqi_new_file *n, dqi_file_tally *t);
bool dqi_block_file_fits(const dqi_buffered_file *f, const dq_burst *b);
int dqi_block_file_add(dqi_buffered_file *f, const dq_burst *b, uint32_t i, int64_t ts, dqi_file_tally *t);
int dqi_block_file_close(dqi_buffered_file *f);

#endif
