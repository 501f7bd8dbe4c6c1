// flat_file.h: packets back to back in one file, without anything between them.
#ifndef DQI_FLAT_FILE_H
#define DQI_FLAT_FILE_H

#include "block_file.h"

typedef struct dqi_flat_file {
    dqi_block_file file; // opened, flushed and closed by the caller
    uint32_t skip;       // bytes left out at the front of each packet
} dqi_flat_file;

// Adds packet i of b, which isn't needed afterwards. 0, or -errno of the write that it waited for: then
// packet i is not in the file, nor in the tally. One thread.
int dqi_flat_add(dqi_flat_file *f, const dq_burst *b, uint32_t i, dqi_file_tally *tally);

#endif
