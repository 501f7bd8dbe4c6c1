// batch_file.h: aggregates back to back in one file, each behind its header (BATCHES.md).
#ifndef DQI_BATCH_FILE_H
#define DQI_BATCH_FILE_H

#include "batch_format.h"
#include "block_file.h"

typedef struct dqi_batch_file {
    dqi_block_file file;
    dqi_batch_shape shape;
    uint8_t *header; // room for one of a batch
} dqi_batch_file;

// Creates a file for batches of this shape, see dqi_block_open. 0, or -errno (-EEXIST: there is one of
// that name): then nothing is left to close. Blocks. One thread at a time, as for all that follow.
int dqi_batch_open(dqi_batch_file *f, const char *path, const dqi_batch_shape *shape,
                   const dqi_batch_file_header *header, bool overlap, dqi_file_tally *tally);
// Adds the aggregate that b is, of the file's shape; b isn't needed afterwards. 0, or -errno of a write that
// it waited for: then it is not in the file, nor in the tally.
int dqi_batch_add(dqi_batch_file *f, const dq_burst *b, dqi_file_tally *tally);
// See dqi_block_close.
int dqi_batch_close(dqi_batch_file *f);

#endif
